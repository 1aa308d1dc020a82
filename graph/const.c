/* const.c - constants for layers whose files hold none.
 *
 * In: a graph with shapes. Out: each missing constant as a seeded recipe.
 * Weights are uniform with variance 2 / fan_in, which keeps the mean square of
 * activations through a convolution and its ReLU (He, Zhang, Ren, Sun:
 * "Delving deep into rectifiers", 2015). A layer that ends in a residual sum
 * gets a quarter of that spread: each sum then adds an eighth to the mean
 * square, where otherwise 50 blocks would multiply it by 3^50.
 * A constant depends on the seed, the layer's name and its role alone.
 */
#include "graph/graph.h"

#include "base/rng.h"

#include <math.h>

static const double residual_gain = 0.25;

/* Mean and spread by role; a weight's spread is times sqrt(6 / fan_in). The
 * scale's mean undoes what dividing by the variances gains on average. */
typedef struct Recipe {
    double mean, spread;
} Recipe;
static const Recipe recipes[CONST_ROLES] = {
    [CONST_WEIGHT] = {0.0, 1.0}, [CONST_BIAS] = {0.0, 0.05},
    [CONST_SCALE] = {0.95, 0.2}, [CONST_MEAN] = {0.0, 0.1},
    [CONST_VAR] = {1.0, 0.5},    [CONST_SLOPE] = {0.25, 0.05},
    [CONST_VALUE] = {0.0, 1.0},  [CONST_INDEX] = {0.0, 0.0},
};

/* Terms in the sum that makes one output. */
static double fan_in(const Graph *g, const Node *node, const Shape *weight) {
    double terms = (double)shape_count(weight);
    if (node->op != OP_DECONV)
        return terms / weight->dim[0];
    const ConvAttr *conv = &node->attr.conv;
    double in_c = (double)graph_tensor(g, node->in[0])->shape.dim[1];
    double area = (double)conv->kernel[0] * conv->kernel[1] /
                  ((double)conv->stride[0] * conv->stride[1]);
    return in_c / conv->groups * fmax(area, 1.0);
}

static bool is_linear(const Node *node) {
    bool keeps = node->op == OP_BN || node->op == OP_SCALE ||
                 node->op == OP_IDENTITY || node->op == OP_RESHAPE;
    return keeps && node->act.kind == ACT_NONE;
}

/* Whether nothing but linear layers lies between the node and a sum. */
static bool ends_in_sum(const Graph *g, const Uses *uses, const Node *node) {
    while (node->act.kind == ACT_NONE && node->n_out == 1) {
        uint32_t first = uses->start[node->out[0].i];
        if (uses->start[node->out[0].i + 1] != first + 1)
            return false;
        node = graph_node(g, uses->node[first]);
        if (node->op == OP_ELTWISE)
            return node->attr.elt.kind == ELT_ADD;
        if (!is_linear(node))
            return false;
    }
    return false;
}

static Const seeded(const Graph *g, const Uses *uses, const Node *node,
                    ConstRole role, const Shape *shape, uint64_t seed) {
    Const c = {
        .shape = *shape,
        .kind = CONST_SEEDED,
        .seed = rng_seed(node->name, rng_seed(const_role_name[role], seed)),
        .mean = recipes[role].mean,
        .spread = recipes[role].spread,
    };
    if (role == CONST_WEIGHT) {
        c.spread *= sqrt(6.0 / fan_in(g, node, shape));
        if (ends_in_sum(g, uses, node))
            c.spread *= residual_gain;
    }
    return c;
}

/* A bias may be missing because the layer has none. */
static bool wants(const Graph *g, NodeId id, ConstRole role, bool has_weights,
                  Shape *shape) {
    const Node *node = graph_node(g, id);
    if (node->dead || node->constant[role].i != NONE)
        return false;
    if (role == CONST_BIAS && (node->no_bias || has_weights))
        return false;
    return graph_const_shape(g, id, role, shape);
}

static bool seed_node(Graph *g, const Uses *uses, NodeId id, uint64_t seed) {
    Node *node = graph_node(g, id);
    bool has_weights = node->constant[CONST_WEIGHT].i != NONE ||
                       node->constant[CONST_SCALE].i != NONE;
    bool any = false;
    for (ConstRole role = 0; role < CONST_ROLES; role++) {
        Shape shape;
        if (!wants(g, id, role, has_weights, &shape))
            continue;
        node->constant[role] =
            graph_add_const(g, seeded(g, uses, node, role, &shape, seed));
        any = true;
    }
    return any;
}

uint32_t graph_seed_constants(Graph *g, uint64_t seed) {
    Arena *scratch = arena_new("graph_seed_constants");
    Uses uses = graph_uses(scratch, g);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += seed_node(g, &uses, (NodeId){i}, seed);
    arena_free(scratch);
    return n;
}
