/* rules_sample.c - layers for an engine that moves its windows by 1, and takes
 * a pool of codes only behind a convolution.
 *
 * A stride becomes a convolution of every place and a sample of every second
 * one (a pool of 1 x 1). Where the first sample is not place 0, an identity
 * with its one tap beside the middle moves the volume. What an engine wants
 * larger is padded behind, and cut again. Each rule is asked for by a key of
 * `rewrites`, and fires only where an engine runs the result.
 */
#include "passes/sample_nodes.h"

#include "graph/quant.h"

#include <string.h>

#define ASKED(m, key) ((m)->context->spec && (m)->context->spec->key)

/* ---- strides ---- */

/* How a strided convolution samples: from place `at` on, of a volume padded
 * behind. */
typedef struct Sampling {
    uint32_t stride, at[2], behind[2];
    Attrs conv;
    Shape in, places; /* padded; of the convolution at stride 1 */
} Sampling;

static bool samples_axis(const ConvAttr *conv, int axis, uint32_t in,
                         uint32_t out, Sampling *s) {
    uint32_t mid = (conv->kernel[axis] - 1) / 2, stride = conv->stride[axis];
    if (conv->pad[axis] > mid || conv->dilation[axis] != 1)
        return false;
    s->at[axis] = mid - conv->pad[axis];
    if (s->at[axis])
        return s->at[axis] == 1 && stride == 2 && in % 2 == 0 && out == in / 2;
    s->behind[axis] = (stride - in % stride) % stride;
    return out == (in + s->behind[axis]) / stride;
}

static bool samples(const Match *m, uint32_t i, Sampling *s) {
    const ConvAttr *conv = &match_node(m, i)->attr.conv;
    const Shape *in = &match_in(m, i)->shape, *out = &match_out(m, i)->shape;
    uint32_t stride = conv->stride[0], hw[2];
    *s = (Sampling){.stride = stride};
    if (!ASKED(m, stride_as_sample) || !is_code_volume(m, i) ||
        conv->kernel[0] != conv->kernel[1] || conv->stride[1] != stride ||
        (stride != 2 && stride != 4))
        return false;
    for (int a = 0; a < 2; a++) {
        if (!samples_axis(conv, a, extent(in, a), extent(out, a), s))
            return false;
        hw[a] = extent(in, a) + s->behind[a];
    }
    s->conv = same_conv(conv->out_c, conv->groups, conv->kernel[0]);
    s->in = with_extents(in, in->dim[1], hw);
    s->places = with_extents(in, conv->out_c, hw);
    return runs_conv(m, &s->conv, &s->in, &s->places);
}

static bool moves(const Sampling *s) {
    return s->at[0] || s->at[1];
}

static bool stride_alone(const Match *m) {
    Sampling s;
    if (!samples(m, 0, &s))
        return false;
    Attrs pool = max_pool(1, s.stride, 0);
    uint32_t c = s.places.dim[1];
    bool direct = !moves(&s) && !node_is_depthwise(m->g, match_node(m, 0));
    Attrs last = direct ? s.conv : same_conv(c, 1, moves(&s) ? 3 : 1);
    return runs_conv_pool(m, &last, &pool,
                          direct ? &match_node(m, 0)->act : NULL,
                          direct ? &s.in : &s.places, &match_out(m, 0)->shape);
}

static TensorId every_place(Match *m, uint32_t i, const Sampling *s) {
    TensorId in = make_padded(m, i, match_node(m, i)->in[0], s->behind);
    Made conv = {.suffix = "places",
                 .gloss = "X__places is X at stride 1, of which X is a sample",
                 .op = OP_CONV,
                 .attr = s->conv,
                 .like =
                     ARENA_COPY(m->context->scratch, Node, match_node(m, i), 1),
                 .quant = match_out(m, i)->quant};
    return make_node(m, i, in, &conv);
}

static void sample_alone(Match *m) {
    Sampling s;
    samples(m, 0, &s);
    bool depthwise = node_is_depthwise(m->g, match_node(m, 0));
    TensorId at = every_place(m, 0, &s);
    if (moves(&s) || depthwise)
        at = make_identity(m, 0, at, true, s.at);
    Attrs pool = max_pool(1, s.stride, 0);
    node_become(m->g, match_node(m, 0), OP_POOL, &pool, 1, &at);
}

/* ---- a strided depthwise convolution before one of 1 x 1 ---- */

static bool is_pointwise(const ConvAttr *conv) {
    for (int a = 0; a < 2; a++)
        if (conv->kernel[a] != 1 || conv->stride[a] != 1 || conv->pad[a] ||
            conv->pad_end[a])
            return false;
    return conv->groups == 1;
}

static bool stride_before_pointwise(const Match *m) {
    Sampling s;
    const Node *point = match_node(m, 1);
    if (!node_is_depthwise(m->g, match_node(m, 0)) ||
        !is_pointwise(&point->attr.conv) || !samples(m, 0, &s) ||
        !is_code_volume(m, 1))
        return false;
    Attrs pool = max_pool(1, s.stride, 0);
    Attrs conv = {.conv = point->attr.conv};
    return point->attr.conv.out_c < 32 * s.places.dim[1] &&
           runs_conv_pool(m, &conv, &pool, &point->act, &s.places,
                          &match_out(m, 1)->shape);
}

static void sample_behind_pointwise(Match *m) {
    Sampling s;
    samples(m, 0, &s);
    TensorId at = every_place(m, 0, &s);
    if (moves(&s))
        at = make_identity(m, 0, at, false, s.at);
    Made conv = {.suffix = "places",
                 .gloss = "X__places is X at stride 1, of which X is a sample",
                 .op = OP_CONV,
                 .attr = {.conv = match_node(m, 1)->attr.conv},
                 .like =
                     ARENA_COPY(m->context->scratch, Node, match_node(m, 1), 1),
                 .quant = match_out(m, 1)->quant};
    at = make_node(m, 1, at, &conv);
    Attrs pool = max_pool(1, s.stride, 0);
    node_become(m->g, match_node(m, 1), OP_POOL, &pool, 1, &at);
    match_kill(m, 0);
}

/* ---- phases: an input whose rows and columns are dealt out ---- */

/* Places of the whole kernel in one of phases: row i of the kernel is row
 * `place` of phase `phase`. False if it is beyond the neighbours. */
static bool phase_of(uint32_t i, uint32_t pad, uint32_t *place,
                     uint32_t *phase) {
    int32_t at = (int32_t)i - (int32_t)pad + 2; /* from row -2 on */
    *place = (uint32_t)at / 2;
    *phase = (uint32_t)at % 2;
    return at >= 0 && *place < 3;
}

static bool deals_axis(const ConvAttr *conv, int axis, uint32_t in,
                       uint32_t out) {
    uint32_t place, phase;
    for (uint32_t i = 0; i < conv->kernel[axis]; i++)
        if (!phase_of(i, conv->pad[axis], &place, &phase))
            return false;
    return conv->stride[axis] == 2 && conv->dilation[axis] == 1 &&
           out == (in + 1) / 2;
}

static bool deals(const Match *m) {
    const Node *node = match_node(m, 0);
    const ConvAttr *conv = &node->attr.conv;
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    Sampling s;
    if (!ASKED(m, input_by_phases) || !is_code_volume(m, 0) ||
        conv->groups > 1 ||
        graph_node(m->g, match_in(m, 0)->producer)->op != OP_INPUT ||
        node->constant[CONST_WEIGHT].i == NONE ||
        !const_has_codes(graph_const(m->g, node->constant[CONST_WEIGHT]), 1))
        return false;
    for (int a = 0; a < 2; a++)
        if (!deals_axis(conv, a, extent(in, a), extent(out, a)))
            return false;
    if (samples(m, 0, &s) && !moves(&s))
        return false;
    const uint32_t hw[] = {extent(out, 0), extent(out, 1)};
    Shape dealt = with_extents(in, 4 * in->dim[1], hw);
    Attrs same = same_conv(conv->out_c, 1, 3);
    return runs_conv(m, &same, &dealt, out);
}

static ConstId deal_weights(Match *m, const ConvAttr *conv, uint32_t in_c) {
    const Const *c =
        graph_const(m->g, match_node(m, 0)->constant[CONST_WEIGHT]);
    Const codes = const_codes(c);
    uint64_t n = shape_count(&codes.shape);
    double *from = ARENA_ARRAY(m->context->scratch, double, n);
    Shape shape = shape_nchw(conv->out_c, 4 * in_c, 3, 3);
    Const out = {
        .shape = shape, .kind = c->kind, .zero = c->zero, .mul0 = c->mul0};
    uint8_t *to = ARENA_ARRAY(m->g->arena, uint8_t, shape_count(&shape));
    memset(to, c->zero, shape_count(&shape));
    const_read_f64(&codes, from);
    for (uint32_t o = 0; o < conv->out_c * in_c; o++)
        for (uint32_t i = 0; i < conv->kernel[0]; i++)
            for (uint32_t k = 0; k < conv->kernel[1]; k++) {
                uint32_t y, x, ph, pw, f = o / in_c, ch = o % in_c;
                phase_of(i, conv->pad[0], &y, &ph);
                phase_of(k, conv->pad[1], &x, &pw);
                uint32_t channel = (2 * ph + pw) * in_c + ch;
                to[((f * 4 * in_c + channel) * 3 + y) * 3 + x] =
                    (uint8_t)((int32_t)*from++ + c->zero);
            }
    out.data = to;
    return graph_add_const(m->g, out);
}

static TensorId add_shape(Match *m, TensorId in, Shape shape) {
    Made reshape = {.suffix = "rows",
                    .gloss = "X__rows and X__phases deal rows and columns of "
                             "what X reads out: the even ones, the odd ones",
                    .op = OP_RESHAPE,
                    .attr = {.reshape = shape},
                    .quant = graph_tensor(m->g, in)->quant};
    return make_node(m, 0, in, &reshape);
}

static void deal(Match *m) {
    const ConvAttr conv = match_node(m, 0)->attr.conv;
    const Shape in = match_in(m, 0)->shape;
    uint32_t h = (extent(&in, 0) + 1) / 2, w = (extent(&in, 1) + 1) / 2;
    const uint32_t behind[] = {extent(&in, 0) % 2, extent(&in, 1) % 2};
    ConstId weight = deal_weights(m, &conv, in.dim[1]);
    TensorId at = make_padded(m, 0, match_node(m, 0)->in[0], behind);
    at = add_shape(m, at, shape_nchw(in.dim[1] * h, 2, w, 2));
    Made phases = {.suffix = "phases",
                   .gloss = "X__rows and X__phases deal rows and columns of "
                            "what X reads out: the even ones, the odd ones",
                   .op = OP_TRANSPOSE,
                   .attr = {.perm = {4, {1, 3, 0, 2}}},
                   .quant = graph_tensor(m->g, at)->quant};
    at = make_node(m, 0, at, &phases);
    at = add_shape(m, at, shape_nchw(1, 4 * in.dim[1], h, w));
    Node *node = match_node(m, 0);
    node->attr = same_conv(conv.out_c, 1, 3);
    node->in = ARENA_COPY(m->g->arena, TensorId, &at, 1);
    node->constant[CONST_WEIGHT] = weight;
}

/* ---- inner products ---- */

static bool is_dense(const Match *m) {
    const Node *node = match_node(m, 0);
    if (!ASKED(m, fc_as_conv) || match_in(m, 0)->shape.rank < 2 ||
        match_out(m, 0)->shape.rank != 2 ||
        match_out(m, 0)->shape.dim[0] != 1 ||
        match_out(m, 0)->quant.type == QUANT_NONE ||
        node->constant[CONST_WEIGHT].i == NONE)
        return false;
    const Const *w = graph_const(m->g, node->constant[CONST_WEIGHT]);
    if (w->mul1 || !const_has_codes(w, 1) || shape_count(&w->shape) < 1024)
        return false;
    const HwEngine *e = NULL;
    int32_t engine = hwspec_engine(m->context->spec, HW_OP_CONV);
    if (engine >= 0)
        e = &m->context->spec->engine[engine];
    uint32_t in = w->shape.dim[1], out = w->shape.dim[0];
    return e && hw_range_has(&e->limit[HW_LIMIT_IN_C], in) &&
           hw_range_has(&e->limit[HW_LIMIT_OUT_C], out);
}

/* What a reshape made this tensor from, where that has the wanted shape. */
static TensorId before_reshape(const Match *m, TensorId in,
                               const Shape *wanted) {
    const Node *maker = graph_node(m->g, graph_tensor(m->g, in)->producer);
    if (maker->op != OP_RESHAPE || maker->act.kind != ACT_NONE ||
        !quant_is_one(m->g, maker) ||
        !shape_equal(&graph_tensor(m->g, maker->in[0])->shape, wanted))
        return in;
    return maker->in[0];
}

static void dense_as_conv(Match *m) {
    const Node fc = *match_node(m, 0);
    Const weight = *graph_const(m->g, fc.constant[CONST_WEIGHT]);
    uint32_t in_c = weight.shape.dim[1], out_c = weight.shape.dim[0];
    Shape shape = shape_nchw(out_c, in_c, 1, 1);
    Shape image = shape_nchw(1, in_c, 1, 1);
    TensorId at = before_reshape(m, fc.in[0], &image);
    Made column = {.suffix = "column",
                   .gloss = "X__column is what X reads as channels of 1 x 1",
                   .op = OP_RESHAPE,
                   .attr = {.reshape = image},
                   .quant = match_in(m, 0)->quant};
    if (!shape_equal(&graph_tensor(m->g, at)->shape, &image))
        at = make_node(m, 0, at, &column);
    ConstId w =
        graph_add_const(m->g, const_reshaped(m->g->arena, &weight, &shape));
    Node like = fc;
    like.constant[CONST_WEIGHT] = w;
    Made conv = {.suffix = "sums",
                 .gloss = "X__sums is X as channels of 1 x 1",
                 .op = OP_CONV,
                 .attr = same_conv(out_c, 1, 1),
                 .like = &like,
                 .quant = match_out(m, 0)->quant};
    at = make_node(m, 0, at, &conv);
    Attrs flat = {.reshape = match_out(m, 0)->shape};
    node_become(m->g, match_node(m, 0), OP_RESHAPE, &flat, 1, &at);
}

/* ---- least extents ---- */

/* What is padded behind, so that an engine takes it. */
static bool too_small(const Match *m, uint32_t behind[2]) {
    static const HwLimitKind limit[] = {HW_LIMIT_IN_H, HW_LIMIT_IN_W};
    int32_t engine =
        m->context->spec ? hwspec_engine(m->context->spec, HW_OP_CONV) : -1;
    if (engine < 0)
        return false;
    for (int a = 0; a < 2; a++) {
        const HwRange *range =
            &m->context->spec->engine[engine].limit[limit[a]];
        uint32_t is = extent(&match_in(m, 0)->shape, a);
        behind[a] = range->set && is < range->lo ? (uint32_t)range->lo - is : 0;
    }
    return behind[0] || behind[1];
}

static bool is_small(const Match *m) {
    uint32_t behind[2], hw[2];
    const ConvAttr *conv = &match_node(m, 0)->attr.conv;
    if (!ASKED(m, pad_to_limits) || !is_code_volume(m, 0) ||
        conv->stride[0] != 1 || conv->stride[1] != 1 || !too_small(m, behind))
        return false;
    for (int a = 0; a < 2; a++)
        hw[a] = extent(&match_in(m, 0)->shape, a) + behind[a];
    Shape in =
        with_extents(&match_in(m, 0)->shape, match_in(m, 0)->shape.dim[1], hw);
    Shape out = with_extents(&in, conv->out_c, hw);
    Attrs attr = {.conv = *conv};
    return runs_conv(m, &attr, &in, &out);
}

/* A 1 x 1 convolution does not see what is beside: if it reads what was cut
 * from a volume of the size wanted, it may as well read that. */
static TensorId uncut(const Match *m, const uint32_t hw[2]) {
    TensorId at = match_node(m, 0)->in[0];
    for (int i = 0; i < 2; i++) {
        const Node *cut = graph_node(m->g, graph_tensor(m->g, at)->producer);
        if (cut->op != OP_SLICE || cut->attr.slice.begin ||
            cut->attr.slice.axis < 2)
            return NO_TENSOR;
        at = cut->in[0];
        const Shape *shape = &graph_tensor(m->g, at)->shape;
        if (extent(shape, 0) == hw[0] && extent(shape, 1) == hw[1])
            return at;
    }
    return NO_TENSOR;
}

static TensorId add_cut(Match *m, TensorId in, uint32_t axis, uint32_t end) {
    Made cut = {.suffix = "cut",
                .gloss = "X__cut is X without the rows that padding brought",
                .op = OP_SLICE,
                .attr = {.slice = {axis, 0, end}},
                .quant = graph_tensor(m->g, in)->quant};
    return make_node(m, 0, in, &cut);
}

static void pad_and_cut(Match *m) {
    uint32_t behind[2], hw[2];
    const Node conv = *match_node(m, 0);
    const Shape out = match_out(m, 0)->shape;
    too_small(m, behind);
    for (int a = 0; a < 2; a++)
        hw[a] = extent(&match_in(m, 0)->shape, a) + behind[a];
    bool sees = conv.attr.conv.kernel[0] > 1 || conv.attr.conv.kernel[1] > 1;
    TensorId at = sees ? NO_TENSOR : uncut(m, hw);
    if (at.i == NONE)
        at = make_padded(m, 0, conv.in[0], behind);
    Made large = {.suffix = "large",
                  .gloss = "X__large is X of a volume with padding behind it",
                  .op = OP_CONV,
                  .attr = {.conv = conv.attr.conv},
                  .like = &conv,
                  .quant = match_out(m, 0)->quant};
    at = make_node(m, 0, at, &large);
    if (behind[0] && behind[1])
        at = add_cut(m, at, 2, extent(&out, 0));
    uint32_t axis = behind[1] ? 1 : 0;
    Attrs cut = {.slice = {2 + axis, 0, extent(&out, (int)axis)}};
    node_become(m->g, match_node(m, 0), OP_SLICE, &cut, 1, &at);
}

/* ---- pools ---- */

/* Of 3 x 3 by 2, whose last window may stick out: of 2 x 2 by 1, then by 2. */
static bool is_two_pools(const Match *m) {
    const PoolAttr *pool = &match_node(m, 0)->attr.pool;
    const Shape *in = &match_in(m, 0)->shape, *out = &match_out(m, 0)->shape;
    if (!ASKED(m, pool_behind_conv) || !is_code_volume(m, 0) || pool->global ||
        pool->kind != POOL_MAX || in->dim[1] < 2 ||
        match_node(m, 0)->act.kind != ACT_NONE)
        return false;
    for (int a = 0; a < 2; a++)
        if (pool->kernel[a] != 3 || pool->stride[a] != 2 || pool->pad[a] ||
            extent(out, a) != extent(in, a) / 2)
            return false;
    Attrs conv = same_conv(in->dim[1], 1, 1), first = max_pool(2, 1, 1);
    return runs_conv_pool(m, &conv, &first, NULL, in, in);
}

static void make_two_pools(Match *m) {
    Made first = {.suffix = "pairs",
                  .gloss = "X__pairs has the largest of 2 x 2; of these X has "
                           "the largest",
                  .op = OP_POOL,
                  .attr = max_pool(2, 1, 1),
                  .quant = match_in(m, 0)->quant};
    TensorId at = make_node(m, 0, match_node(m, 0)->in[0], &first);
    Attrs second = max_pool(2, 2, 0);
    node_become(m->g, match_node(m, 0), OP_POOL, &second, 1, &at);
}

static bool lacks_conv(const Match *m) {
    const Tensor *in = match_in(m, 0);
    const Node *pool = match_node(m, 0);
    bool behind = graph_node(m->g, in->producer)->op == OP_CONV &&
                  match_is_private(m, pool->in[0]);
    if (!ASKED(m, pool_behind_conv) || !is_code_volume(m, 0) || behind ||
        pool->attr.pool.kind != POOL_MAX || pool->act.kind != ACT_NONE)
        return false;
    Attrs conv = same_conv(in->shape.dim[1], 1, 1);
    Attrs attr = {.pool = pool->attr.pool};
    return runs_conv_pool(m, &conv, &attr, NULL, &in->shape,
                          &match_out(m, 0)->shape);
}

static void give_conv(Match *m) {
    const uint32_t at[] = {0, 0};
    TensorId in = make_identity(m, 0, match_node(m, 0)->in[0], true, at);
    match_node(m, 0)->in[0] = in;
}

/* First, since a depthwise convolution alone is a sample, too. */
static const Rule first[] = {
    {"input-by-phases",
     1,
     {ON_CODES | OPS(CONV)},
     deals,
     deal,
     "a stride of 2 whose first window is not in the middle of place 0: even "
     "and odd rows and columns of the input become channels"},
    {"stride-before-1x1",
     2,
     {ON_CODES | OPS(CONV), OPS(CONV)},
     stride_before_pointwise,
     sample_behind_pointwise,
     "an engine moves by 1, and samples behind a convolution that is not "
     "depthwise"},
};
const RuleSet phases_rules = {"phases", sizeof first / sizeof *first, first};

static const Rule rows[] = {
    {"stride-is-sample",
     1,
     {ON_CODES | OPS(CONV)},
     stride_alone,
     sample_alone,
     "an engine moves by 1, and samples what it made"},
    {"fc-is-1x1",
     1,
     {ON_CODES | OPS(FC)},
     is_dense,
     dense_as_conv,
     "an engine convolves, and has no inner product"},
    {"pad-to-limits",
     1,
     {ON_CODES | OPS(CONV)},
     is_small,
     pad_and_cut,
     "an engine takes no smaller volumes"},
    {"max-3x3-by-2",
     1,
     {ON_CODES | OPS(POOL)},
     is_two_pools,
     make_two_pools,
     "the largest of 3 x 3 is the largest of 2 x 2 of 2 x 2"},
    {"pool-needs-conv",
     1,
     {ON_CODES | OPS(POOL)},
     lacks_conv,
     give_conv,
     "an engine pools only what it has convolved"},
};
const RuleSet sample_rules = {"sample", sizeof rows / sizeof *rows, rows};
