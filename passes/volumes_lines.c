/* volumes_lines.c - windows and borders over turned images; see volumes.c.
 *
 * Networks over time have images of one row, [1, c, 1, t], where volumes have
 * one column, or the other way round: kernels, strides and borders turn with
 * them.
 */
#include "passes/volumes.h"

#include "base/arith.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

/* Whether the axis goes once along a dimension, and does nothing else. */
static bool goes_along(const View *view, uint32_t axis, uint32_t dim) {
    const ViewAxis *a = &view->axis[axis];
    bool same = a->n == view->size[dim];
    for (uint32_t d = 0; d < VIEW_DIMS; d++)
        for (uint32_t i = 0; same && i < a->n; i++)
            same = a->at[d][i] == (d == dim ? i : 0);
    return same;
}

static bool see_turned(Volumes *v, View *out) {
    return volumes_view(v, v->node->in[0])->base.i != NONE &&
           v->node->act.kind != ACT_PRELU && volumes_see(v, 0, out) &&
           out->rank == 4 && out->axis[0].n == 1 &&
           goes_along(out, 1, VIEW_C) && goes_along(out, 2, VIEW_X) &&
           goes_along(out, 3, VIEW_Y);
}

static void turn(uint32_t pair[2]) {
    uint32_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

static Layer same_layer(const Volumes *v, const View *view) {
    Layer layer = layer_of(v->node->op, "volume", view->base);
    layer.attr = v->node->attr;
    layer.act = v->node->act;
    layer.no_bias = v->node->no_bias;
    for (uint32_t i = 0; i < CONST_ROLES; i++)
        layer.constant[i] = v->node->constant[i];
    return layer;
}

static bool give_turned(Volumes *v, const Layer *layer) {
    static const Shape turned = {4, {0, 1, 3, 2}};
    TensorId out = volumes_add(v, layer);
    View view = view_of_image(v->arena, out, &graph_tensor(v->g, out)->shape);
    view_transpose(&view, &turned);
    volumes_give(v, &view);
    return true;
}

/* The sums that a GATHER makes along an axis of `from` elements, as a matrix.
 */
static double *matrix_of(Volumes *v, uint32_t from) {
    uint32_t n = v->node->attr.gather.n, taps = v->node->attr.gather.taps;
    double *index = ARENA_ARRAY(v->arena, double, (size_t)n *taps);
    double *factor = ARENA_ARRAY(v->arena, double, (size_t)n *taps);
    double *matrix = ARENA_ARRAY(v->arena, double, (size_t)n *from);
    const_read_f64(graph_const(v->g, v->node->constant[CONST_INDEX]), index);
    const_read_f64(graph_const(v->g, v->node->constant[CONST_VALUE]), factor);
    for (size_t i = 0; i < (size_t)n * taps; i++)
        matrix[i / taps * from + (size_t)index[i]] += factor[i];
    return matrix;
}

static bool is_identity(const double *matrix, uint32_t n, uint32_t from) {
    bool same = n == from;
    for (size_t i = 0; same && i < (size_t)n * n; i++)
        same = fabs(matrix[i] - (i / n == i % n)) <= 0;
    return same;
}

/* Rows or columns between others, as bilinear resizes have them: they are
 * channels meanwhile, which a convolution mixes. */
bool convert_taps(Volumes *v) {
    View view;
    TensorId image;
    const Node *node = v->node;
    uint32_t axis = node->attr.gather.axis, n = node->attr.gather.n;
    if (node->act.kind != ACT_NONE || quant_is_at(v->g, node) ||
        node->constant[CONST_INDEX].i == NONE ||
        node->constant[CONST_VALUE].i == NONE ||
        !volumes_has(v, HW_OP_TRANSPOSE) || !volumes_see(v, 0, &view))
        return false;
    uint32_t from = volumes_in(v, 0)->dim[axis];
    if ((uint64_t)n * from > 1 << 24)
        return false;
    double *matrix = matrix_of(v, from);
    if (is_identity(matrix, n, from)) {
        volumes_give(v, &view);
        return true;
    }
    if (axis < 2 || !volumes_image(v, &view, &image))
        return false;
    Shape perm = {4, {0, axis, axis == 2 ? 1 : 2, axis == 2 ? 3 : 1}};
    Shape shape = shape_nchw(n, from, 1, 1);
    Layer layer = layer_of(OP_CONV, "volume", volumes_turned(v, image, &perm));
    layer.attr.conv = (ConvAttr){.out_c = n,
                                 .groups = 1,
                                 .kernel = {1, 1},
                                 .stride = {1, 1},
                                 .dilation = {1, 1}};
    layer.no_bias = true;
    layer.constant[CONST_WEIGHT] = volumes_const(v, shape, matrix);
    image = volumes_turned(v, volumes_add(v, &layer), &perm);
    view = view_of_image(v->arena, image, volumes_out(v));
    volumes_give(v, &view);
    return true;
}

/* [1, c, heads, tokens] whose heads lie in channels, too: groups, all with the
 * same weights. */
static uint32_t heads_along(Volumes *v, const View *view) {
    uint32_t c = view->axis[1].n, heads = NONE;
    for (uint32_t i = 0; i < c; i++)
        if (view->axis[1].at[VIEW_C][i] != i)
            return NONE;
    for (uint32_t i = 2; i < 4; i++)
        if (view_moves(view, i) == MOVES_CHANNELS)
            heads = heads == NONE ? i : 4;
    if (heads > 3 || view_moves(view, 1) & MOVES_PIXELS ||
        view_moves(view, 5 - heads) & MOVES_CHANNELS ||
        (uint64_t)view->axis[heads].n * c != view->size[VIEW_C])
        return NONE;
    for (uint32_t i = 0; i < view->axis[heads].n; i++)
        if (view->axis[heads].at[VIEW_C][i] % c)
            return NONE;
    return volumes_has(v, HW_OP_CONV_GROUPED) ? heads : NONE;
}

/* The same `n` times, one behind the other. */
static ConstId repeated(Volumes *v, ConstId id, uint32_t n,
                        const Shape *shape) {
    const Const *c = graph_const(v->g, id);
    size_t count = shape_count(&c->shape);
    double *value = ARENA_ARRAY(v->arena, double, count *n);
    const_read_f64(c, value);
    for (uint32_t i = 1; i < n; i++)
        memcpy(value + i * count, value, count * sizeof *value);
    return volumes_const(v, *shape, value);
}

static bool is_point(const ConvAttr *conv) {
    bool point = conv->groups == 1;
    for (uint32_t i = 0; i < 2; i++)
        point &= conv->kernel[i] == 1 && conv->stride[i] == 1 &&
                 !conv->pad[i] && !conv->pad_end[i];
    return point;
}

static bool conv_of_heads(Volumes *v) {
    View view;
    const Node *node = v->node;
    ConstId weight = node->constant[CONST_WEIGHT],
            bias = node->constant[CONST_BIAS];
    if (volumes_plain(v, 0) || !is_point(&node->attr.conv) ||
        node->act.kind == ACT_PRELU || weight.i == NONE ||
        !volumes_see(v, 0, &view) || view.rank != 4 || view.axis[0].n != 1 ||
        !volumes_compact(v, &view))
        return false;
    uint32_t heads = heads_along(v, &view);
    if (heads == NONE)
        return false;
    uint32_t n = view.axis[heads].n, c = view.axis[1].n;
    uint32_t out = node->attr.conv.out_c;
    Layer layer = same_layer(v, &view);
    layer.attr.conv.groups = n;
    layer.attr.conv.out_c = n * out;
    Shape shape = shape_nchw(n * out, c, 1, 1), line = shape_of(n * out);
    layer.constant[CONST_WEIGHT] = repeated(v, weight, n, &shape);
    if (bias.i != NONE)
        layer.constant[CONST_BIAS] = repeated(v, bias, n, &line);
    View made = view_over(&view, volumes_add(v, &layer), n * out);
    made.axis[1] = axis_of(v->arena, out, VIEW_C, 0, 1);
    made.axis[heads] = axis_of(v->arena, n, VIEW_C, 0, 0);
    for (uint32_t i = 0; i < n; i++)
        made.axis[heads].at[VIEW_C][i] =
            view.axis[heads].at[VIEW_C][i] / c * out;
    volumes_give(v, &made);
    return true;
}

/* ---- images of a batch, which are windows of one volume ---- */

/* Images one above the other: of height `h`, each begins `step` rows behind the
 * one before, with rows of zeros between. */
typedef struct Stack {
    uint32_t images, h, w, step;
} Stack;

static TensorId stacked(Volumes *v, const View *view, const Stack *s) {
    uint32_t plane[] = {(s->images - 1) * s->step + s->h, s->w};
    uint32_t all = view->size[VIEW_Y] * view->size[VIEW_X];
    uint32_t *pixel =
        ARENA_ARRAY(v->arena, uint32_t, (size_t)plane[0] * plane[1]);
    const ViewAxis *axis = view->axis;
    for (uint32_t y = 0; y < plane[0]; y++)
        for (uint32_t x = 0; x < s->w; x++) {
            uint32_t n = y / s->step, row = y % s->step, at[VIEW_DIMS];
            for (uint32_t d = VIEW_Y; d <= VIEW_X && row < s->h; d++)
                at[d] =
                    (axis[0].at[d][n] + axis[2].at[d][row] + axis[3].at[d][x]) %
                    view->size[d];
            pixel[y * s->w + x] =
                row < s->h ? at[VIEW_Y] * view->size[VIEW_X] + at[VIEW_X] : all;
        }
    return volumes_pixels(v, view->base, plane, pixel);
}

static bool see_images(Volumes *v, View *view) {
    return !volumes_plain(v, 0) && v->node->act.kind != ACT_PRELU &&
           volumes_has(v, HW_OP_GATHER_PIXELS) && volumes_see(v, 0, view) &&
           view->rank == 4 && view->axis[0].n > 1 && volumes_compact(v, view) &&
           goes_along(view, 1, VIEW_C) &&
           !((view_moves(view, 0) | view_moves(view, 2) | view_moves(view, 3)) &
             MOVES_CHANNELS);
}

/* A layer of windows, whose padding is zeros. */
static bool over_images(Volumes *v, const uint32_t kernel[2],
                        const uint32_t stride[2], const uint32_t pad[2],
                        const uint32_t pad_end[2]) {
    View view;
    if (!see_images(v, &view))
        return false;
    Layer layer = same_layer(v, &view);
    const Shape *out = volumes_out(v);
    bool point = true;
    for (uint32_t i = 0; i < 2; i++)
        point &= kernel[i] == 1 && stride[i] == 1 && !pad[i] && !pad_end[i];
    if (!point) {
        const Shape *in = volumes_in(v, 0);
        uint32_t most = larger32(pad[0], pad_end[0]);
        uint32_t step = (in->dim[2] + most + stride[0] - 1) / stride[0];
        Stack s = {in->dim[0], in->dim[2], in->dim[3], step * stride[0]};
        layer.in[0] = stacked(v, &view, &s);
        view.size[VIEW_Y] = (s.images - 1) * step + out->dim[2];
        view.size[VIEW_X] = out->dim[3];
        view.axis[0] = axis_of(v->arena, s.images, VIEW_Y, 0, step);
        view.axis[2] = axis_of(v->arena, out->dim[2], VIEW_Y, 0, 1);
        view.axis[3] = axis_of(v->arena, out->dim[3], VIEW_X, 0, 1);
    }
    view.axis[1] = axis_of(v->arena, out->dim[1], VIEW_C, 0, 1);
    TensorId made = volumes_add(v, &layer);
    const Shape *is = &graph_tensor(v->g, made)->shape;
    if (is->dim[2] != view.size[VIEW_Y] || is->dim[3] != view.size[VIEW_X])
        return false;
    view = view_over(&view, made, out->dim[1]);
    volumes_give(v, &view);
    return true;
}

static bool conv_of_images(Volumes *v) {
    const ConvAttr *c = &v->node->attr.conv;
    const uint32_t reach[] = {(c->kernel[0] - 1) * c->dilation[0] + 1,
                              (c->kernel[1] - 1) * c->dilation[1] + 1};
    return over_images(v, reach, c->stride, c->pad, c->pad_end);
}

/* Of kernels of one row or one column: elsewhere weights would turn, too. */
bool convert_conv(Volumes *v) {
    View view;
    const ConvAttr *conv = &v->node->attr.conv;
    if (conv_of_heads(v) || conv_of_images(v))
        return true;
    if ((conv->kernel[0] > 1 && conv->kernel[1] > 1) || !see_turned(v, &view))
        return false;
    Layer layer = same_layer(v, &view);
    ConvAttr *own = &layer.attr.conv;
    uint32_t *const pairs[] = {own->kernel, own->stride, own->dilation,
                               own->pad, own->pad_end};
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        turn(pairs[i]);
    ConstId *weight = &layer.constant[CONST_WEIGHT];
    if (weight->i != NONE) {
        const Const *is = graph_const(v->g, *weight);
        Shape shape = is->shape;
        turn(&shape.dim[2]);
        *weight =
            graph_add_const(v->g, const_reshaped(v->g->arena, is, &shape));
    }
    return give_turned(v, &layer);
}

bool convert_pool(Volumes *v) {
    View view;
    if (!see_turned(v, &view))
        return false;
    Layer layer = same_layer(v, &view);
    PoolAttr *own = &layer.attr.pool;
    uint32_t *const pairs[] = {own->kernel, own->stride, own->pad,
                               own->pad_end};
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        turn(pairs[i]);
    return give_turned(v, &layer);
}

/* ---- channels beside those of each head ---- */

/* Of channel c a copy, or the value of padding. */
static void fill_padded(const ViewAxis *own, uint32_t heads, uint32_t before,
                        uint32_t wide, double value, double *weight,
                        double *bias) {
    for (uint32_t i = 0; i < heads * wide; i++) {
        uint32_t k = i % wide - before;
        if (i % wide >= before && k < own->n)
            weight[(size_t)i * own->n + own->at[VIEW_C][k] % own->n] = 1;
        else
            bias[i] = value;
    }
}

/* The axis, which is the channels of heads, is padded: a convolution whose
 * weights are ones and zeros, with a bias. */
static bool pad_heads(Volumes *v, View view, uint32_t axis) {
    uint32_t before = v->node->attr.pad.before[axis - 2];
    uint32_t behind = v->node->attr.pad.behind[axis - 2];
    if (!volumes_compact(v, &view) || !volumes_has(v, HW_OP_CONV_GROUPED))
        return false;
    uint32_t heads = volumes_groups(v, &view, axis, axis + 1);
    uint32_t n = view.axis[axis].n, wide = before + n + behind;
    if (!heads || view_moves(&view, axis) != MOVES_CHANNELS)
        return false;
    double *weight = ARENA_ARRAY(v->arena, double, (size_t)heads *wide *n);
    double *bias = ARENA_ARRAY(v->arena, double, (size_t)heads *wide);
    fill_padded(&view.axis[axis], heads, before, wide, v->node->attr.pad.value,
                weight, bias);
    Layer layer = layer_of_heads(view.base, heads, wide);
    layer.constant[CONST_WEIGHT] =
        volumes_const(v, shape_nchw(heads * wide, n, 1, 1), weight);
    layer.constant[CONST_BIAS] = volumes_const(v, shape_of(heads * wide), bias);
    volumes_widen(v, &view, n, wide);
    view.axis[axis] = axis_of(v->arena, wide, VIEW_C, 0, 1);
    view = view_over(&view, volumes_add(v, &layer), heads * wide);
    volumes_give(v, &view);
    return true;
}

static bool pads_heads(Volumes *v) {
    const Attrs *attr = &v->node->attr;
    bool pads[2];
    View view;
    for (uint32_t i = 0; i < 2; i++)
        pads[i] = attr->pad.before[i] || attr->pad.behind[i];
    return pads[0] != pads[1] && !volumes_plain(v, 0) && !volumes_has_act(v) &&
           volumes_see(v, 0, &view) && pad_heads(v, view, pads[0] ? 2 : 3);
}

bool convert_pad(Volumes *v) {
    View view;
    if (pads_heads(v))
        return true;
    if (!see_turned(v, &view))
        return false;
    Layer layer = same_layer(v, &view);
    turn(layer.attr.pad.before);
    turn(layer.attr.pad.behind);
    return give_turned(v, &layer);
}
