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

/* ---- strides along a line ---- */

/* A line whose windows step further than engines can: element t * s + j is
 * channel j of pixel t, so that windows move by 1 and have a s-th of the taps.
 */
typedef struct Blocks {
    Shape plane, line; /* C x s x n; C * s x 1 x n */
    Node conv;
} Blocks;

static bool is_line(const Match *m, const Node *node) {
    const ConvAttr *c = &node->attr.conv;
    const Shape *in = &match_in(m, 0)->shape;
    return in->rank == 4 && in->dim[0] == 1 && in->dim[2] == 1 &&
           c->kernel[0] == 1 && c->stride[0] == 1 && !c->pad[0] &&
           !c->pad_end[0] && c->groups == 1 && c->stride[1] > 1 &&
           (c->dilation[1] == 1 || c->kernel[1] == 1) &&
           node->constant[CONST_WEIGHT].i != NONE;
}

static bool makes_blocks(const Match *m, Blocks *b) {
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    b->conv = *match_node(m, 0);
    if (!is_line(m, &b->conv) || match_engine(m, 0) >= 0)
        return false;
    ConvAttr *c = &b->conv.attr.conv;
    uint32_t s = c->stride[1], taps = (c->kernel[1] + s - 1) / s;
    uint32_t n = out->dim[3] + taps - 1;
    b->plane = shape_nchw(1, in->dim[1], s, n);
    b->line = shape_nchw(1, in->dim[1] * s, 1, n);
    *c = (ConvAttr){.out_c = c->out_c,
                    .groups = 1,
                    .kernel = {1, taps},
                    .stride = {1, 1},
                    .dilation = {1, 1}};
    Node pixels = *match_node(m, 0), reshape = pixels;
    pixels.op = OP_PIXELS;
    pixels.act = reshape.act = (Act){0};
    pixels.attr = (Attrs){.plane = {s, n}};
    reshape.op = OP_RESHAPE;
    reshape.attr = (Attrs){.reshape = b->line};
    return candidate_engine(m, &pixels, in, &b->plane) >= 0 &&
           candidate_engine(m, &reshape, &b->plane, &b->line) >= 0 &&
           candidate_engine(m, &b->conv, &b->line, out) >= 0;
}

static bool steps_far(const Match *m) {
    Blocks b;
    return makes_blocks(m, &b);
}

/* Tap q * s + j of channel c is tap q of channel c * s + j. */
static ConstId blocked_weights(Match *m, const Blocks *b, uint32_t s) {
    const Const *is =
        graph_const(m->g, match_node(m, 0)->constant[CONST_WEIGHT]);
    const uint32_t *d = is->shape.dim;
    uint32_t taps = b->conv.attr.conv.kernel[1];
    Shape shape = shape_nchw(d[0], d[1] * s, 1, taps);
    double *old =
        ARENA_ARRAY(m->context->scratch, double, shape_count(&is->shape));
    double *made = ARENA_ARRAY(m->g->arena, double, shape_count(&shape));
    const_read_f64(is, old);
    for (size_t oc = 0; oc < (size_t)d[0] * d[1]; oc++)
        for (uint32_t k = 0; k < d[3]; k++)
            made[(oc * s + k % s) * taps + k / s] = old[oc * d[3] + k];
    return graph_add_const(
        m->g, (Const){.shape = shape, .kind = CONST_F64, .data = made});
}

static void go_by_blocks(Match *m) {
    Blocks b;
    if (!makes_blocks(m, &b))
        bug("rule stride-blocks: there are none");
    const ConvAttr *c = &match_node(m, 0)->attr.conv;
    uint32_t s = c->stride[1], pad = c->pad[1], n = b.plane.dim[3];
    uint32_t size = match_in(m, 0)->shape.dim[3];
    double *index = ARENA_ARRAY(m->context->scratch, double, (size_t)s *n);
    for (uint32_t j = 0; j < s; j++)
        for (uint32_t t = 0; t < n; t++) {
            uint64_t at = (uint64_t)t * s + j;
            bool zero = at < pad || at - pad >= size;
            index[(size_t)j * n + t] = zero ? (double)size : (double)(at - pad);
        }
    ConstId weight = blocked_weights(m, &b, s);
    const char *name = match_node(m, 0)->name;
    const NewNode plane = {
        .op = OP_PIXELS,
        .name = arena_printf(m->g->arena, "%s__plane", name),
        .n_in = 1,
        .in = match_node(m, 0)->in,
        .attr = {.plane = {s, n}},
        .gloss = "X__plane has the elements of a stride of X in a column"};
    TensorId in = match_add(m, 0, &plane);
    graph_node(m->g, graph_tensor(m->g, in)->producer)->constant[CONST_INDEX] =
        write_constant(m, s * n, index);
    const NewNode line = {
        .op = OP_RESHAPE,
        .name = arena_printf(m->g->arena, "%s__blocks", name),
        .n_in = 1,
        .in = &in,
        .attr = {.reshape = b.line},
        .gloss = "X__blocks has the elements of a stride of X as channels"};
    in = match_add(m, 0, &line);
    Node *node = match_node(m, 0);
    node->attr.conv = b.conv.attr.conv;
    node->in = ARENA_COPY(m->g->arena, TensorId, &in, 1);
    node->constant[CONST_WEIGHT] = weight;
}

static const Rule stride_rows[] = {
    {"stride-blocks",
     1,
     {OPS(CONV)},
     steps_far,
     go_by_blocks,
     "windows that step further along a line than engines can move by 1 over "
     "blocks of it"},
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
