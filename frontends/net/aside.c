/* aside.c - layers whose inputs are constants, by the reference evaluation;
 * see net.h. */
#include "frontends/net/net.h"

static const uint64_t most_products = UINT64_C(1) << 28;
enum { MOST_ELEMENTS = 1 << 24 };

Graph *net_aside(Net *net) {
    Graph *whole = net->g;
    net->g = graph_new(net->arena, "constants");
    return whole;
}

static bool is_small(const Graph *g) {
    uint64_t products = 0, elements = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        products += graph_products(g, &g->node.at[i]);
    for (uint32_t i = 0; i < g->tensor.n; i++)
        elements += shape_count(&g->tensor.at[i].shape);
    return products <= most_products && elements <= MOST_ELEMENTS;
}

/* Weights that a file has not are seeded when all of it is read; a layer may do
 * without a bias. */
static bool has_constants(const Graph *g) {
    for (uint32_t i = 0; i < g->node.n; i++)
        for (ConstRole role = 0; role < CONST_ROLES; role++) {
            Shape shape;
            if (role != CONST_BIAS && g->node.at[i].constant[role].i == NONE &&
                graph_const_shape(g, (NodeId){i}, role, &shape))
                return false;
        }
    return true;
}

/* In the order of the file. */
static Const value_of(Net *net, const Values *values, TensorId tensor) {
    static const uint32_t to_file[] = {0, 2, 3, 1};
    Const c = {.shape = graph_tensor(net->g, tensor)->shape,
               .kind = CONST_F32,
               .data = values->at[tensor.i]};
    return net->nhwc && c.shape.rank == 4
               ? net_permute(net, &c, c.shape, to_file)
               : c;
}

bool net_back(Net *net, Graph *whole, uint32_t n, const TensorId *out,
              Const *value) {
    uint32_t made = 0;
    for (uint32_t i = 0; i < n; i++)
        made += out[i].i != NONE;
    bool good = made && is_small(net->g) && has_constants(net->g);
    Values values =
        good ? graph_eval(net->arena, net->g, 0, NULL) : (Values){0};
    for (uint32_t i = 0; good && i < n; i++)
        if (out[i].i != NONE)
            value[i] = value_of(net, &values, out[i]);
    net->g = whole;
    return good;
}
