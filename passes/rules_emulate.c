/* rules_emulate.c - activations that a machine lacks, from those it has.
 *
 * Only where no engine of the machine knows the activation at all, and engines
 * run all of its parts, so that volumes need not visit the host:
 *
 *     leaky(x) = s + relu((1 / alpha - 1) s)      with s = alpha x
 *     relu6(x) = y - relu(y - 6)                   with y = relu(x)
 *
 * The first factor then folds into the layer before, like any SCALE, and the
 * innermost relu fuses into it.
 */
#include "passes/passes_int.h"

#define BIT(kind) (UINT32_C(1) << (kind))

/* A processor knows all. */
static bool machine_knows(const HwSpec *spec, HwAct act) {
    if (hwspec_engine(spec, HW_OP_LAYER) >= 0)
        return true;
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

static const char *gloss(const Match *m) {
    return match_node(m, 0)->act.kind == ACT_LEAKY
               ? "X__slope and X__rest are a x and relu((1 - a) x), the sum of "
                 "which is the leaky ReLU X"
               : "X__relu is y = relu(x), X__above relu(y - 6) and X__minus "
                 "-relu(y - 6): y + X__minus is the ReLU6 X";
}

static TensorId add(Match *m, OpKind op, const char *suffix, TensorId in,
                    ActKind act) {
    NewNode node = {
        .op = op,
        .name =
            arena_printf(m->g->arena, "%s__%s", match_node(m, 0)->name, suffix),
        .n_in = 1,
        .in = &in,
        .act = {.kind = act},
        .gloss = gloss(m),
    };
    return match_add(m, 0, &node);
}

/* One factor and one shift for all channels, before the activation. */
static TensorId add_scale(Match *m, const char *suffix, TensorId in, double a,
                          double b, ActKind act) {
    TensorId out = add(m, OP_SCALE, suffix, in, act);
    uint32_t n = shape_dim(&match_in(m, 0)->shape, 1);
    ConstId scale = constant_of(m->g, shape_of(n), a, 0);
    ConstId bias = constant_of(m->g, shape_of(n), b, 0);
    Node *node = graph_node(m->g, graph_tensor(m->g, out)->producer);
    node->constant[CONST_SCALE] = scale;
    node->constant[CONST_BIAS] = bias;
    return out;
}

/* ---- leaky ---- */

static bool adds_up(const Match *m) {
    return runs(m, OP_SCALE, ACT_NONE) && runs(m, OP_ELTWISE, ACT_NONE);
}

static bool is_leaky(const Match *m) {
    double alpha = match_node(m, 0)->act.alpha;
    return alpha > 1e-3 && alpha < 1.0 &&
           needs_parts(m, ACT_LEAKY, HW_ACT_LEAKY) && adds_up(m);
}

/* The activation's own node becomes the sum. */
static void sum_up(Match *m, TensorId a, TensorId b) {
    Node *node = match_node(m, 0);
    TensorId both[] = {a, b};
    node->op = OP_ELTWISE;
    node->attr = (Attrs){.elt = {ELT_ADD, NULL}};
    node->act = (Act){0};
    node->n_in = 2;
    node->in = ARENA_COPY(m->g->arena, TensorId, both, 2);
}

static void make_leaky(Match *m) {
    double alpha = match_node(m, 0)->act.alpha;
    TensorId in = match_node(m, 0)->in[0];
    TensorId slope = add_scale(m, "slope", in, alpha, 0, ACT_NONE);
    TensorId rest =
        add_scale(m, "rest", slope, (1.0 - alpha) / alpha, 0, ACT_RELU);
    sum_up(m, slope, rest);
}

/* ---- relu6 ---- */

static bool is_relu6(const Match *m) {
    return needs_parts(m, ACT_RELU6, HW_ACT_RELU6) && adds_up(m);
}

/* Exact below 6, which 6 - relu(6 - y) would not be. */
static void make_relu6(Match *m) {
    TensorId in = match_node(m, 0)->in[0];
    TensorId relu = add(m, OP_ACT, "relu", in, ACT_RELU);
    TensorId above = add_scale(m, "above", relu, 1, -6, ACT_RELU);
    sum_up(m, relu, add_scale(m, "minus", above, -1, 0, ACT_NONE));
}

/* ---- behind a maximum ---- */

static bool can_wait(const Match *m) {
    return match_node(m, 1)->attr.pool.kind == POOL_MAX &&
           shape_count(&match_out(m, 1)->shape) <
               shape_count(&match_in(m, 0)->shape) &&
           (is_leaky(m) || is_relu6(m));
}

/* Tensors stay between the places. */
static void trade_places(Match *m) {
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
     trade_places,
     "a maximum commutes with what never falls, and leaves less to emulate"},
};
const RuleSet delay_rules = {"delay", sizeof delay / sizeof *delay, delay};

static const Rule rules[] = {
    {"leaky-is-sum",
     1,
     {OPS(ACT)},
     is_leaky,
     make_leaky,
     "alpha x + relu((1 - alpha) x): the machine has relu, but no leaky relu"},
    {"relu6-is-sum",
     1,
     {OPS(ACT)},
     is_relu6,
     make_relu6,
     "y - relu(y - 6), y = relu(x): the machine has relu, but no relu6"},
};
const RuleSet emulate_rules = {"emulate", sizeof rules / sizeof *rules, rules};
