/* rules_forms.c - layers in the form in which an engine of the machine runs
 * them.
 *
 * - A slice of channels is a gather of channels; one of what another gathers
 *   takes it from where that one does.
 * - A mean or a maximum over height and width is a global pool.
 * - What is one number by channel is the second operand.
 */
#include "passes/passes_int.h"

#include "graph/quant.h"

static bool has_engine(const Match *m, HwOp op) {
    return m->context->spec && hwspec_engine(m->context->spec, op) >= 0;
}

static bool is_volume(const Shape *shape) {
    return shape->rank == 4 && shape->dim[0] == 1;
}

/* ---- gathers of channels ---- */

static bool gathers_channels(const Match *m, const Node *node) {
    return node->op == OP_GATHER && node->attr.gather.axis == 1 &&
           node->act.kind == ACT_NONE && quant_picks(m->g, node);
}

static ConstId table(Match *m, uint32_t n, const double *value) {
    Const c = {.shape = {2, {n, 1}},
               .kind = CONST_F64,
               .data = ARENA_COPY(m->g->arena, double, value, n)};
    return graph_add_const(m->g, c);
}

/* Node `i` becomes the gather of these channels of `from`, or of what that one
 * is itself a gather of. */
static void become_gather(Match *m, uint32_t i, TensorId from, uint32_t n,
                          double *index) {
    const Node *maker = graph_node(m->g, graph_tensor(m->g, from)->producer);
    if (gathers_channels(m, maker)) {
        double *known = read_constant(m, maker->constant[CONST_INDEX],
                                      maker->attr.gather.n, 0);
        for (uint32_t k = 0; k < n; k++)
            index[k] = known[(uint32_t)index[k]];
        from = maker->in[0];
    }
    double *one = ARENA_ARRAY(m->context->scratch, double, n);
    for (uint32_t k = 0; k < n; k++)
        one[k] = 1;
    ConstId indices = table(m, n, index), factors = table(m, n, one);
    Node *node = match_node(m, i);
    node->op = OP_GATHER;
    node->attr = (Attrs){.gather = {.axis = 1, .n = n, .taps = 1}};
    node->in = ARENA_COPY(m->g->arena, TensorId, &from, 1);
    node->constant[CONST_INDEX] = indices;
    node->constant[CONST_VALUE] = factors;
}

static bool is_slice_of_channels(const Match *m) {
    const Node *node = match_node(m, 0);
    return has_engine(m, HW_OP_GATHER) && node->attr.slice.axis == 1 &&
           node->act.kind == ACT_NONE && is_volume(&match_in(m, 0)->shape);
}

static void gather_slice(Match *m) {
    const Node *node = match_node(m, 0);
    uint32_t begin = node->attr.slice.begin;
    uint32_t n = shape_dim(&match_out(m, 0)->shape, 1);
    double *index = ARENA_ARRAY(m->context->scratch, double, n);
    for (uint32_t k = 0; k < n; k++)
        index[k] = begin + k;
    become_gather(m, 0, node->in[0], n, index);
}

/* ---- reductions ---- */

static Node global_pool(const Match *m) {
    Node pool = *match_node(m, 0);
    bool mean = pool.attr.reduce.kind == REDUCE_MEAN;
    pool.op = OP_POOL;
    pool.attr = (Attrs){.pool = {.kind = mean ? POOL_AVG : POOL_MAX,
                                 .global = true,
                                 .kernel = {1, 1},
                                 .stride = {1, 1}}};
    return pool;
}

static bool is_global_pool(const Match *m) {
    const Node *node = match_node(m, 0);
    bool known = node->attr.reduce.kind == REDUCE_MEAN ||
                 node->attr.reduce.kind == REDUCE_MAX;
    if (!known || node->attr.reduce.axes != (1u << 2 | 1u << 3) ||
        node->act.kind != ACT_NONE || !is_volume(&match_in(m, 0)->shape))
        return false;
    Node pool = global_pool(m);
    return candidate_engine(m, &pool, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void pool_globally(Match *m) {
    *match_node(m, 0) = global_pool(m);
}

/* ---- one number by channel ---- */

static bool is_channels_first(const Match *m) {
    Node node = *match_node(m, 0);
    if (node.n_in != 2 || node.attr.elt.coeff ||
        (node.attr.elt.kind != ELT_ADD && node.attr.elt.kind != ELT_MUL))
        return false;
    TensorId in[] = {node.in[1], node.in[0]};
    node.in = in;
    const Shape *full = &graph_tensor(m->g, in[0])->shape;
    return shape_count(full) > shape_count(&match_in(m, 0)->shape) &&
           candidate_engine(m, &node, full, &match_out(m, 0)->shape) >= 0;
}

static void put_channels_second(Match *m) {
    Node *node = match_node(m, 0);
    TensorId first = node->in[0];
    node->in[0] = node->in[1];
    node->in[1] = first;
}

static const Rule rules[] = {
    {"slice-of-channels",
     1,
     {ON_CODES | OPS(SLICE)},
     is_slice_of_channels,
     gather_slice,
     "some channels, where an engine gathers channels"},
    {"reduce-plane",
     1,
     {OPS(REDUCE)},
     is_global_pool,
     pool_globally,
     "a mean or a maximum over height and width is a global pool"},
    {"channels-second",
     1,
     {OPS(ELTWISE)},
     is_channels_first,
     put_channels_second,
     "engines take what is one number by channel as their second operand"},
};

const RuleSet forms_rules = {"forms", sizeof rules / sizeof *rules, rules};
