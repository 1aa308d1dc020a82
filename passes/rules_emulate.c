/* rules_emulate.c - activations that a machine lacks, from those it has.
 *
 * Only where no engine of the machine knows the activation at all, and engines
 * run all of its parts, so that volumes need not visit the host:
 *
 *     leaky(x) = s + relu((1 / alpha - 1) s)      with s = alpha x
 *     relu6(x) = 6 - relu(6 - relu(x))
 *
 * The first factor then folds into the layer before, like any SCALE, and the
 * innermost relu fuses into it.
 */
#include "passes/passes_int.h"

#define BIT(kind) (UINT32_C(1) << (kind))

static bool machine_knows(const HwSpec *spec, HwAct act) {
    for (uint32_t e = 0; e < spec->n_engines; e++)
        for (int op = 0; op < HW_OP_COUNT; op++)
            if (spec->engine[e].acts[op] & BIT(act))
                return true;
    return false;
}

/* Whether an engine runs `op` on volumes of the activation's shape. */
static bool runs(const Match *m, OpKind op, ActKind act) {
    TensorId in = match_node(m, 0)->in[0], both[] = {in, in};
    Node node = {.op = op,
                 .name = "part",
                 .n_in = op == OP_ELTWISE ? 2 : 1,
                 .in = both,
                 .n_out = 1,
                 .out = &in,
                 .act = {.kind = act}};
    const Shape *shape = &match_in(m, 0)->shape;
    return candidate_engine(m, &node, shape, shape) >= 0;
}

static bool needs_parts(const Match *m, ActKind kind, HwAct act) {
    const HwSpec *spec = m->context->spec;
    return spec && match_node(m, 0)->act.kind == kind &&
           !machine_knows(spec, act) && runs(m, OP_SCALE, ACT_RELU);
}

/* A SCALE of one factor and one shift, before the activation. */
static TensorId add_scale(Match *m, const char *suffix, TensorId in, double a,
                          double b, ActKind act) {
    static const Attrs none;
    const char *name =
        arena_printf(m->g->arena, "%s__%s", match_node(m, 0)->name, suffix);
    NodeId id = match_add(m, 0, OP_SCALE, name, 1, &in, &none);
    uint32_t n = shape_dim(&match_in(m, 0)->shape, 1);
    ConstId scale = constant_of(m->g, shape_of(n), a, 0);
    ConstId bias = constant_of(m->g, shape_of(n), b, 0);
    Node *node = graph_node(m->g, id);
    node->constant[CONST_SCALE] = scale;
    node->constant[CONST_BIAS] = bias;
    node->act.kind = act;
    return node->out[0];
}

/* ---- leaky ---- */

static bool is_sum(const Match *m) {
    double alpha = match_node(m, 0)->act.alpha;
    return alpha > 1e-3 && alpha < 1.0 &&
           needs_parts(m, ACT_LEAKY, HW_ACT_LEAKY) &&
           runs(m, OP_SCALE, ACT_NONE) && runs(m, OP_ELTWISE, ACT_NONE);
}

static void make_sum(Match *m) {
    double alpha = match_node(m, 0)->act.alpha;
    TensorId sum[2];
    sum[0] = add_scale(m, "slope", match_node(m, 0)->in[0], alpha, 0, ACT_NONE);
    sum[1] = add_scale(m, "rest", sum[0], (1.0 - alpha) / alpha, 0.0, ACT_RELU);
    Node *node = match_node(m, 0);
    node->op = OP_ELTWISE;
    node->attr = (Attrs){.elt = {ELT_ADD, NULL}};
    node->act = (Act){0};
    node->n_in = 2;
    node->in = ARENA_COPY(m->g->arena, TensorId, sum, 2);
}

/* ---- relu6 ---- */

static bool is_two_scales(const Match *m) {
    return needs_parts(m, ACT_RELU6, HW_ACT_RELU6) &&
           runs(m, OP_SCALE, ACT_NONE);
}

static void make_two_scales(Match *m) {
    TensorId in = match_node(m, 0)->in[0];
    TensorId relu = add_scale(m, "relu", in, 1, 0, ACT_RELU);
    TensorId room = add_scale(m, "room", relu, -1, 6, ACT_RELU);
    uint32_t n = shape_dim(&match_in(m, 0)->shape, 1);
    ConstId scale = constant_of(m->g, shape_of(n), -1, 0);
    ConstId bias = constant_of(m->g, shape_of(n), 6, 0);
    Node *node = match_node(m, 0);
    node->op = OP_SCALE;
    node->act = (Act){0};
    node->in[0] = room;
    node->constant[CONST_SCALE] = scale;
    node->constant[CONST_BIAS] = bias;
}

/* ---- behind a maximum ---- */

static bool can_wait(const Match *m) {
    return match_node(m, 1)->attr.pool.kind == POOL_MAX &&
           shape_count(&match_out(m, 1)->shape) <
               shape_count(&match_in(m, 0)->shape) &&
           (is_sum(m) || is_two_scales(m));
}

/* The two nodes trade places; tensors stay between the places. */
static void wait(Match *m) {
    Node *first = match_node(m, 0), *second = match_node(m, 1);
    Node act = *first, pool = *second;
    *first = pool;
    first->in = act.in;
    first->out = act.out;
    *second = act;
    second->in = pool.in;
    second->out = pool.out;
    match_out(m, 0)->shape = match_out(m, 1)->shape;
    match_out(m, 0)->origin = NO_TENSOR;
}

static const Rule delay[] = {
    {"act-behind-max",
     2,
     {OPS(ACT), OPS(POOL)},
     can_wait,
     wait,
     "a maximum commutes with what never falls, and leaves less to emulate"},
};
const RuleSet delay_rules = {"delay", sizeof delay / sizeof *delay, delay};

static const Rule rules[] = {
    {"leaky-is-sum",
     1,
     {OPS(ACT)},
     is_sum,
     make_sum,
     "alpha x + relu((1 - alpha) x): the machine has relu, but no leaky relu"},
    {"relu6-is-scales",
     1,
     {OPS(ACT)},
     is_two_scales,
     make_two_scales,
     "6 - relu(6 - relu(x)): the machine has relu, but no relu6"},
};
const RuleSet emulate_rules = {"emulate", sizeof rules / sizeof *rules, rules};
