/* rules_machine.c - layers in the forms that a machine has.
 *
 * Each rule fires only where an engine runs the result; groups and strides
 * only where the hwspec asks for it.
 */
#include "passes/passes_int.h"

#include <string.h>

/* ---- sums of many ---- */

static bool all_same_shape(const Match *m) {
    const Node *node = match_node(m, 0);
    const Shape *first = &match_in(m, 0)->shape;
    for (uint32_t k = 1; k < node->n_in; k++)
        if (!shape_equal(first, &graph_tensor(m->g, node->in[k])->shape))
            return false;
    return true;
}

static bool has_coefficients(const Node *node) {
    for (uint32_t k = 0; node->attr.elt.coeff && k < node->n_in; k++)
        if (node->attr.elt.coeff[k] != 1.0)
            return true;
    return false;
}

static bool splits(const Match *m) {
    const Node *node = match_node(m, 0);
    if (node->n_in < 3 || has_coefficients(node) || !all_same_shape(m))
        return false;
    Node pair = *node;
    pair.n_in = 2;
    return candidate_engine(m, &pair, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

static void split(Match *m) {
    match_node(m, 0)->attr.elt.coeff = NULL;
    NewNode pair = {
        .op = OP_ELTWISE,
        .name = arena_printf(m->g->arena, "%s__part", match_node(m, 0)->name),
        .n_in = 2,
        .in = match_node(m, 0)->in,
        .attr = match_node(m, 0)->attr,
        .gloss = "X__part is made of the first operands of X, which engines "
                 "take two at a time",
    };
    TensorId part = match_add(m, 0, &pair);
    Node *node = match_node(m, 0);
    node->in[1] = part;
    node->in++;
    node->n_in--;
}

static const Rule split_rows[] = {
    {"eltwise-pairs",
     1,
     {OPS(ELTWISE)},
     splits,
     split,
     "an engine combines two volumes; ((a + b) + c) is the order of the sum"},
};
const RuleSet split_rules = {"split", sizeof split_rows / sizeof *split_rows,
                             split_rows};

/* ---- groups ---- */

static bool expands(const Match *m) {
    Node dense = *match_node(m, 0);
    bool asked = m->context->spec && m->context->spec->expand_groups;
    if (!asked || dense.attr.conv.groups < 2 ||
        dense.constant[CONST_WEIGHT].i == NONE)
        return false;
    const Shape *weight =
        &graph_const(m->g, dense.constant[CONST_WEIGHT])->shape;
    Shape wide = *weight;
    wide.dim[1] *= dense.attr.conv.groups;
    dense.attr.conv.groups = 1;
    return shape_count(&wide) < SHAPE_MAX_COUNT && match_engine(m, 0) < 0 &&
           candidate_engine(m, &dense, &match_in(m, 0)->shape,
                            &match_out(m, 0)->shape) >= 0;
}

/* Factors by input channel within a group, for all groups. */
static const double *repeat(Match *m, const double *factor, uint32_t n,
                            uint32_t times) {
    double *wide = ARENA_ARRAY(m->g->arena, double, (size_t)n *times);
    for (uint32_t i = 0; i < times; i++)
        memcpy(wide + (size_t)i * n, factor, n * sizeof *wide);
    return wide;
}

static void expand(Match *m) {
    Node *node = match_node(m, 0);
    uint32_t groups = node->attr.conv.groups;
    Const c = *graph_const(m->g, node->constant[CONST_WEIGHT]);
    if (c.mul1)
        c.mul1 = repeat(m, c.mul1, c.shape.dim[1], groups);
    c.shape.dim[1] *= groups;
    c.groups = groups;
    node->attr.conv.groups = 1;
    node->constant[CONST_WEIGHT] = graph_add_const(m->g, c);
}

static const Rule groups_rows[] = {
    {"expand-groups",
     1,
     {ON_CODES | OPS(CONV)},
     expands,
     expand,
     "a machine without groups multiplies by the zeros between them"},
};
const RuleSet groups_rules = {
    "groups", sizeof groups_rows / sizeof *groups_rows, groups_rows};

/* ---- strided 1x1 convolutions ---- */

static bool is_1x1_stride2(const ConvAttr *conv) {
    for (int axis = 0; axis < 2; axis++)
        if (conv->kernel[axis] != 1 || conv->stride[axis] != 2 ||
            conv->pad[axis] || conv->pad_end[axis])
            return false;
    return true;
}

static Attrs subsampling(void) {
    return (Attrs){
        .pool = {.kind = POOL_MAX, .kernel = {1, 1}, .stride = {2, 2}}};
}

static bool subsamples(const Match *m) {
    bool asked = m->context->spec && m->context->spec->conv_1x1_stride2;
    Node conv = *match_node(m, 0), pool = conv;
    if (!asked || !is_1x1_stride2(&conv.attr.conv))
        return false;
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    Shape between = *out;
    between.dim[1] = in->dim[1];
    pool.op = OP_POOL;
    pool.act = (Act){0};
    pool.attr = subsampling();
    conv.attr.conv.stride[0] = conv.attr.conv.stride[1] = 1;
    return candidate_engine(m, &pool, in, &between) >= 0 &&
           candidate_engine(m, &conv, &between, out) >= 0;
}

static void subsample(Match *m) {
    TensorId in = match_node(m, 0)->in[0];
    NewNode pool = {
        .op = OP_POOL,
        .name = arena_printf(m->g->arena, "maxpool_%s", match_node(m, 0)->name),
        .n_in = 1,
        .in = &in,
        .attr = subsampling(),
        .gloss = "maxpool_X is what the strides of X leave of its operand",
    };
    TensorId between = match_add(m, 0, &pool);
    Node *conv = match_node(m, 0);
    conv->in[0] = between;
    conv->attr.conv.stride[0] = conv->attr.conv.stride[1] = 1;
}

static const Rule stride_rows[] = {
    {"conv-1x1-stride2",
     1,
     {ON_CODES | OPS(CONV)},
     subsamples,
     subsample,
     "a pool of 1x1 windows drops what the stride skips, then the array runs "
     "at its full rate"},
};
const RuleSet stride_rules = {
    "stride", sizeof stride_rows / sizeof *stride_rows, stride_rows};
