/* rules_bias.c - what is added to inner products becomes their bias, and GELU,
 * which exports write as five layers, becomes one.
 */
#include "passes/passes_int.h"

#include <math.h>

/* ---- constants of other nodes ---- */

/* The values of a CONSTANT, perhaps in another shape; NULL: it is none. */
static const Const *value_of(const Graph *g, TensorId tensor) {
    const Node *node = graph_node(g, graph_tensor(g, tensor)->producer);
    if (node->op == OP_RESHAPE && node->act.kind == ACT_NONE)
        node = graph_node(g, graph_tensor(g, node->in[0])->producer);
    return node->op == OP_CONSTANT ? graph_const(g, node->constant[CONST_VALUE])
                                   : NULL;
}

/* One number by the last axis of `shape`, the same along all others. */
static bool goes_along_last(const Graph *g, TensorId tensor,
                            const Shape *shape) {
    const Shape *own = &graph_tensor(g, tensor)->shape;
    return shape->rank && own->rank == shape->rank &&
           own->dim[own->rank - 1] == shape->dim[shape->rank - 1] &&
           shape_count(own) == own->dim[own->rank - 1];
}

/* ---- bias ---- */

/* The operand of a sum that is not the product; both may be either. */
static uint32_t other_operand(const Node *sum, TensorId product) {
    return same_tensor(sum->in[0], product) ? 1 : 0;
}

/* Whether the product can have the activation of the sum. Slopes by channel go
 * along another axis. */
static bool product_applies(const HwSpec *spec, const Act *act) {
    uint32_t number = hw_act_number(act_name[act->kind]);
    bool known = act->kind == ACT_NONE || !spec ||
                 hwspec_engine(spec, HW_OP_LAYER) >= 0;
    for (uint32_t e = 0; !known && number && e < spec->n_engines; e++)
        known = (spec->engine[e].acts[HW_OP_CONV] |
                 spec->engine[e].acts[HW_OP_FC]) >>
                    (number - 1) &
                1;
    return known && act->kind != ACT_PRELU;
}

static bool is_bias(const Match *m, uint32_t last) {
    const Node *sum = match_node(m, last), *fc = match_node(m, 0);
    if (sum->attr.elt.kind != ELT_ADD || sum->attr.elt.coeff ||
        sum->n_in != 2 || fc->constant[CONST_BIAS].i != NONE ||
        fc->act.kind != ACT_NONE ||
        !product_applies(m->context->spec, &sum->act))
        return false;
    TensorId product = match_node(m, last - 1)->out[0];
    TensorId other = sum->in[other_operand(sum, product)];
    const Shape *shape = &match_out(m, last)->shape;
    return value_of(m->g, other) && goes_along_last(m->g, other, shape) &&
           shape_equal(shape, &match_out(m, last - 1)->shape) &&
           shape->dim[shape->rank - 1] == fc->attr.fc.out;
}

static void take_bias(Match *m, uint32_t last) {
    Node *sum = match_node(m, last), *fc = match_node(m, 0);
    TensorId product = match_node(m, last - 1)->out[0];
    const Const *value = value_of(m->g, sum->in[other_operand(sum, product)]);
    Shape flat = shape_of(fc->attr.fc.out);
    fc->constant[CONST_BIAS] =
        graph_add_const(m->g, const_reshaped(m->g->arena, value, &flat));
    fc->no_bias = false;
    if (last > 1) /* the product alone is nowhere any more */
        match_out(m, 0)->origin = NO_TENSOR;
    fc->act = sum->act;
    match_fuse_behind(m, last - 1);
}

static bool is_bias_of_rows(const Match *m) {
    return match_node(m, 1)->act.kind == ACT_NONE && is_bias(m, 2);
}

static void take_bias_of_rows(Match *m) {
    take_bias(m, 2);
}

static bool is_plain_bias(const Match *m) {
    return is_bias(m, 1);
}

static void take_plain_bias(Match *m) {
    take_bias(m, 1);
}

/* ---- GELU ---- */

/* Whether the node is a * x + b for these numbers, the same for all channels.
 */
static bool is_scale_by(const Match *m, const Node *node, double a, double b) {
    if (node->op != OP_SCALE || node->act.kind != ACT_NONE)
        return false;
    uint32_t n = shape_dim(&graph_tensor(m->g, node->in[0])->shape, 1);
    const double *scale = read_constant(m, node->constant[CONST_SCALE], n, 1);
    const double *bias = read_constant(m, node->constant[CONST_BIAS], n, 0);
    for (uint32_t i = 0; i < n; i++)
        if (fabs(scale[i] - a) > 1e-6 * fabs(a) || fabs(bias[i] - b) > 1e-6)
            return false;
    return true;
}

static const Node *maker(const Match *m, TensorId tensor) {
    return graph_node(m->g, graph_tensor(m->g, tensor)->producer);
}

/* x * (1 + erf(x / sqrt(2))), whose last three layers these are. */
static bool is_twice_gelu(const Match *m) {
    const Node *erf = match_node(m, 0), *mul = match_node(m, 2);
    const Node *root = maker(m, erf->in[0]);
    if (erf->act.kind != ACT_ERF || !is_scale_by(m, match_node(m, 1), 1, 1) ||
        mul->attr.elt.kind != ELT_MUL || mul->n_in != 2 ||
        mul->act.kind != ACT_NONE || root->op != OP_SCALE)
        return false;
    TensorId x = mul->in[other_operand(mul, match_node(m, 1)->out[0])];
    return is_scale_by(m, root, sqrt(0.5), 0) && same_tensor(root->in[0], x);
}

/* Twice the activation: files halve it next. */
static void make_twice_gelu(Match *m) {
    Node *erf = match_node(m, 0), *twice = match_node(m, 1);
    const Node *mul = match_node(m, 2);
    uint32_t n = shape_dim(&match_in(m, 1)->shape, 1);
    erf->in[0] = mul->in[other_operand(mul, twice->out[0])];
    erf->act = (Act){.kind = ACT_GELU};
    twice->constant[CONST_SCALE] = constant_of(m->g, shape_of(n), 2, 0);
    twice->constant[CONST_BIAS] = NO_CONST;
    twice->no_bias = true;
    graph_tensor(m->g, erf->out[0])->origin = NO_TENSOR;
    graph_tensor(m->g, twice->out[0])->origin = NO_TENSOR;
    match_fuse_behind(m, 1);
}

static bool undo_each_other(const Match *m) {
    return is_scale_by(m, match_node(m, 0), 2, 0) &&
           is_scale_by(m, match_node(m, 1), 0.5, 0) &&
           !graph_is_output(m->g, match_node(m, 1)->out[0]);
}

static void drop_both(Match *m) {
    match_bypass(m, 1);
    match_bypass(m, 0);
}

static const Rule bias_rules_rows[] = {
    {"bias-rows",
     3,
     {OPS(FC), OPS(RESHAPE), OPS(ELTWISE) | BY_SECOND},
     is_bias_of_rows,
     take_bias_of_rows,
     "what is added to each row of a product is its bias"},
    {"bias-of-rows",
     3,
     {OPS(FC), OPS(RESHAPE), OPS(ELTWISE)},
     is_bias_of_rows,
     take_bias_of_rows,
     "the same, the other way round"},
    {"bias",
     2,
     {OPS(FC), OPS(ELTWISE)},
     is_plain_bias,
     take_plain_bias,
     "the same, in one shape"},
    {"bias-second",
     2,
     {OPS(FC), OPS(ELTWISE) | BY_SECOND},
     is_plain_bias,
     take_plain_bias,
     "the same, the other way round"},
    {"gelu",
     3,
     {OPS(ACT), OPS(SCALE), OPS(ELTWISE) | BY_SECOND},
     is_twice_gelu,
     make_twice_gelu,
     "x (1 + erf(x / sqrt(2))) is twice an activation"},
    {"gelu-first",
     3,
     {OPS(ACT), OPS(SCALE), OPS(ELTWISE)},
     is_twice_gelu,
     make_twice_gelu,
     "the same, the other way round"},
    {"twice-half",
     2,
     {OPS(SCALE), OPS(SCALE)},
     undo_each_other,
     drop_both,
     "half of twice is the whole"},
};
const RuleSet bias_rules = {
    "bias", sizeof bias_rules_rows / sizeof *bias_rules_rows, bias_rules_rows};
