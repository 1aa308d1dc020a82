/* volumes.c - the pass `volumes`: tensors of tokens become volumes whose pixels
 * they are.
 *
 * In: a graph and a machine. Out: the same function, in which what works on
 * [tokens, channels], on lines of time or on heads of attention works on
 * volumes [1, c, h, w]; a reshape, a transposition, a slice, a roll, a window
 * is a view (view.h), and no layer. A layer that cannot be converted reads
 * tensors of their own shapes, which are made of volumes where needed.
 */
#include "passes/volumes.h"

#include "graph/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- layers ---- */

Layer layer_of(OpKind op, const char *suffix, TensorId in) {
    Layer layer = {.op = op, .suffix = suffix, .n_in = 1, .in = {in}};
    for (uint32_t i = 0; i < CONST_ROLES; i++)
        layer.constant[i] = NO_CONST;
    return layer;
}

Layer layer_of_heads(TensorId in, uint32_t heads, uint32_t out) {
    Layer layer = layer_of(OP_CONV, "volume", in);
    layer.attr.conv = (ConvAttr){.out_c = heads * out,
                                 .groups = heads,
                                 .kernel = {1, 1},
                                 .stride = {1, 1},
                                 .dilation = {1, 1}};
    return layer;
}

/* The layer of these inputs, quantised as they are. */
static TensorId add_of(Volumes *v, const Layer *layer, uint32_t n,
                       const TensorId *in) {
    const char *name =
        arena_printf(v->g->arena, "%s__%s", v->node->name, layer->suffix);
    NodeId id = graph_add(v->g, layer->op, name, v->node->loc, n, in);
    Node *node = graph_node(v->g, id);
    node->attr = layer->attr;
    node->act = layer->act;
    node->no_bias = layer->no_bias;
    memcpy(node->constant, layer->constant, sizeof node->constant);
    graph_gloss(v->g, "X__volume is the layer X over pixels of a volume; "
                      "X__channels, X__pixels, X__plane, X__turn and X__shape "
                      "put what it reads, or its result, into order");
    TensorId out = graph_add_output(v->g, id, node->name);
    graph_tensor(v->g, out)->quant = graph_tensor(v->g, in[0])->quant;
    if (!graph_infer(v->g, id, v->context->diag))
        bug("pass volumes: no shape for %s", name);
    graph_merge_names(v->g, id, v->id);
    return out;
}

TensorId volumes_add(Volumes *v, const Layer *layer) {
    return add_of(v, layer, layer->n_in, layer->in);
}

TensorId volumes_join(Volumes *v, const char *suffix, uint32_t n,
                      const TensorId *in) {
    Layer layer = layer_of(OP_CONCAT, suffix, in[0]);
    layer.attr.axis.axis = 1;
    return add_of(v, &layer, n, in);
}

ConstId volumes_const(Volumes *v, Shape shape, const double *value) {
    Const c = {.shape = shape,
               .kind = CONST_F64,
               .data =
                   ARENA_COPY(v->g->arena, double, value, shape_count(&shape))};
    return graph_add_const(v->g, c);
}

bool volumes_has(const Volumes *v, HwOp op) {
    return hwspec_engine(v->context->spec, op) >= 0;
}

bool volumes_alike(const double *value, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (fabs(value[i] - value[0]) > 0)
            return false;
    return true;
}

static const Shape *shape_of_tensor(const Volumes *v, TensorId tensor) {
    return &graph_tensor(v->g, tensor)->shape;
}

TensorId volumes_reshaped(Volumes *v, TensorId in, const Shape *shape) {
    Layer layer = layer_of(OP_RESHAPE, "shape", in);
    layer.attr.reshape = *shape;
    return shape_equal(shape_of_tensor(v, in), shape) ? in
                                                      : volumes_add(v, &layer);
}

TensorId volumes_turned(Volumes *v, TensorId in, const Shape *perm) {
    Layer layer = layer_of(OP_TRANSPOSE, "turn", in);
    layer.attr.perm = *perm;
    return volumes_add(v, &layer);
}

const Const *volumes_value(const Volumes *v, TensorId tensor) {
    const Node *node = graph_node(v->g, graph_tensor(v->g, tensor)->producer);
    while (node->op == OP_RESHAPE && node->act.kind == ACT_NONE)
        node = graph_node(v->g, graph_tensor(v->g, node->in[0])->producer);
    return node->op == OP_CONSTANT
               ? graph_const(v->g, node->constant[CONST_VALUE])
               : NULL;
}

/* ---- views of operands ---- */

static bool is_image(const Shape *shape) {
    return shape->rank == 4 && shape->dim[0] == 1;
}

const View *volumes_view(const Volumes *v, TensorId tensor) {
    static const View none = {.base = {NONE}};
    return tensor.i < v->n ? &v->view[tensor.i] : &none;
}

bool volumes_see(Volumes *v, uint32_t k, View *out) {
    TensorId in = v->node->in[k];
    const Shape *shape = shape_of_tensor(v, in);
    *out = *volumes_view(v, in);
    if (out->base.i == NONE && is_image(shape) && !volumes_value(v, in))
        *out = view_of_image(v->arena, in, shape);
    return out->base.i != NONE;
}

bool volumes_see_last(Volumes *v, uint32_t k, View *out) {
    TensorId in = v->node->in[k];
    Shape own = *shape_of_tensor(v, in);
    *out = *volumes_view(v, in);
    if (out->base.i != NONE)
        return true;
    uint32_t c = own.rank ? own.dim[own.rank - 1] : 0;
    if (own.rank < 2 || volumes_value(v, in))
        return false;
    uint32_t tokens = (uint32_t)(shape_count(&own) / c);
    Shape lies = {4, {1, 1, tokens, c}}, perm = {4, {0, 3, 2, 1}};
    Shape image = {4, {1, c, tokens, 1}};
    if (own.rank == 4 && own.dim[0] == 1) {
        lies = own;
        perm = (Shape){4, {0, 3, 1, 2}};
        image = (Shape){4, {1, c, own.dim[1], own.dim[2]}};
    }
    TensorId made = volumes_reshaped(v, in, tokens > 1 ? &lies : &image);
    if (tokens > 1)
        made = volumes_turned(v, made, &perm);
    View view = view_of_image(v->arena, made, &image);
    view_transpose(&view, &(Shape){4, {0, 2, 3, 1}});
    if (!view_reshape(v->arena, &view, &own))
        return false;
    *out = view;
    if (in.i < v->n) {
        v->view[in.i] = view;
        v->whole[in.i] = in;
    }
    return true;
}

void volumes_give(Volumes *v, const View *view) {
    v->view[v->node->out[0].i] = *view;
}

/* ---- what a view sees of its volume, as a volume ---- */

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Different places of a merged axis, in ascending order; false if one is there
 * twice. */
static bool places_sorted(Arena *arena, const uint32_t *at, uint32_t n,
                          uint32_t **out) {
    *out = ARENA_COPY(arena, uint32_t, at, n);
    qsort(*out, n, sizeof **out, ascending);
    for (uint32_t i = 1; i < n; i++)
        if ((*out)[i] == (*out)[i - 1])
            return false;
    return true;
}

static uint32_t rank_in(const uint32_t *sorted, uint32_t n, uint32_t at) {
    const uint32_t *found = bsearch(&at, sorted, n, sizeof at, ascending);
    return found ? (uint32_t)(found - sorted) : 0;
}

/* Axes that move along some dimensions get the vectors of a part of them. */
static bool renumber(Volumes *v, View *view, uint32_t moves,
                     const ViewAxis *made) {
    View some = *view, parts_of = *view;
    Shape parts = {0};
    some.rank = 1;
    some.axis[0] = *made;
    for (uint32_t i = 0; i < view->rank; i++)
        if (view_moves(view, i) == moves)
            parts.dim[parts.rank++] = view->axis[i].n;
    if (!parts.rank)
        parts = (Shape){1, {1}};
    if (!view_reshape(v->arena, &some, &parts))
        return false;
    bool pixels = moves == MOVES_PIXELS;
    uint32_t first = pixels ? VIEW_Y : VIEW_C, last = pixels ? VIEW_X : VIEW_C;
    for (uint32_t i = 0, k = 0; i < view->rank; i++) {
        bool own = view_moves(&parts_of, i) == moves;
        for (uint32_t d = first; d <= last; d++)
            view->axis[i].at[d] =
                own ? some.axis[k].at[d]
                    : ARENA_ARRAY(v->arena, uint32_t, view->axis[i].n);
        k += own;
    }
    return true;
}

/* Axes of the view that move so, as one; with what the others add. */
static ViewAxis axis_that(Volumes *v, const View *view, uint32_t moves) {
    View some = *view;
    some.rank = 0;
    for (uint32_t i = 0; i < view->rank; i++)
        if (view_moves(view, i) == moves || view_moves(view, i) == 0)
            some.axis[some.rank++] = view->axis[i];
    for (uint32_t i = 0; i < view->rank; i++) /* where the others begin */
        if (view_moves(view, i) != moves && view_moves(view, i)) {
            View first = *view;
            view_pick(v->arena, &first, i, 1, (uint32_t[]){0});
            some.axis[some.rank < SHAPE_MAX_RANK ? some.rank++ : 0] =
                first.axis[i];
        }
    return view_merged(v->arena, &some, 0, some.rank);
}

/* A convolution that makes only these channels. */
static bool conv_of_some(Volumes *v, TensorId base, uint32_t n,
                         const uint32_t *channel, TensorId *out) {
    const Node *conv = graph_node(v->g, graph_tensor(v->g, base)->producer);
    if (conv->op != OP_CONV || conv->attr.conv.groups != 1 ||
        quant_is_at(v->g, conv) || conv->constant[CONST_WEIGHT].i == NONE ||
        conv->act.kind == ACT_PRELU || graph_is_output(v->g, base))
        return false;
    const Const *weight = graph_const(v->g, conv->constant[CONST_WEIGHT]);
    uint64_t row = shape_count(&weight->shape) / weight->shape.dim[0];
    Arena *scratch = arena_new("some channels");
    double *all = ARENA_ARRAY(scratch, double, shape_count(&weight->shape));
    double *some = ARENA_ARRAY(scratch, double, row *n);
    const_read_f64(weight, all);
    for (uint32_t i = 0; i < n; i++)
        memcpy(some + i * row, all + channel[i] * row, row * sizeof *some);
    Layer layer = layer_of(OP_CONV, "channels", conv->in[0]);
    Shape shape = weight->shape;
    shape.dim[0] = n;
    layer.attr = conv->attr;
    layer.attr.conv.out_c = n;
    layer.act = conv->act;
    layer.no_bias = conv->no_bias;
    layer.constant[CONST_WEIGHT] = volumes_const(v, shape, some);
    if (conv->constant[CONST_BIAS].i != NONE) {
        const_read_f64(graph_const(v->g, conv->constant[CONST_BIAS]), all);
        for (uint32_t i = 0; i < n; i++)
            some[i] = all[channel[i]];
        layer.constant[CONST_BIAS] = volumes_const(v, shape_of(n), some);
    }
    arena_free(scratch);
    *out = volumes_add(v, &layer);
    return true;
}

TensorId volumes_channels(Volumes *v, TensorId base, uint32_t n,
                          const uint32_t *channel) {
    TensorId out;
    if (conv_of_some(v, base, n, channel, &out))
        return out;
    Layer layer = layer_of(OP_GATHER, "channels", base);
    double *index = ARENA_ARRAY(v->arena, double, n);
    double *one = ARENA_ARRAY(v->arena, double, n);
    for (uint32_t i = 0; i < n; i++) {
        index[i] = channel[i];
        one[i] = 1;
    }
    layer.attr.gather.axis = 1;
    layer.attr.gather.n = n;
    layer.attr.gather.taps = 1;
    layer.constant[CONST_INDEX] = volumes_const(v, (Shape){2, {n, 1}}, index);
    layer.constant[CONST_VALUE] = volumes_const(v, (Shape){2, {n, 1}}, one);
    return volumes_add(v, &layer);
}

static bool compact_channels(Volumes *v, View *view) {
    ViewAxis all = axis_that(v, view, MOVES_CHANNELS);
    uint32_t n = all.n, *sorted;
    if (!places_sorted(v->arena, all.at[VIEW_C], n, &sorted))
        return false;
    ViewAxis made = axis_of(v->arena, n, VIEW_C, 0, 0);
    for (uint32_t i = 0; i < n; i++)
        made.at[VIEW_C][i] = rank_in(sorted, n, all.at[VIEW_C][i]);
    View part = *view;
    part.size[VIEW_C] = n;
    if (!renumber(v, &part, MOVES_CHANNELS, &made))
        return false;
    if (n < view->size[VIEW_C])
        part.base = volumes_channels(v, view->base, n, sorted);
    *view = part;
    return true;
}

/* How many different rows there are; 0: not each with the same columns. */
static uint32_t rows_of(const uint32_t *sorted, uint32_t n, uint32_t w) {
    uint32_t columns = 1;
    while (columns < n && sorted[columns] / w == sorted[0] / w)
        columns++;
    for (uint32_t i = 0; i < n; i++)
        if (n % columns || sorted[i] % w != sorted[i % columns] % w ||
            sorted[i] / w != sorted[i - i % columns] / w)
            return 0;
    return n / columns;
}

TensorId volumes_pixels(Volumes *v, TensorId base, const uint32_t plane[2],
                        const uint32_t *pixel) {
    Layer layer = layer_of(OP_PIXELS, "pixels", base);
    uint32_t n = plane[0] * plane[1];
    double *index = ARENA_ARRAY(v->arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        index[i] = pixel[i];
    layer.attr.plane[0] = plane[0];
    layer.attr.plane[1] = plane[1];
    layer.constant[CONST_INDEX] = volumes_const(v, shape_of(n), index);
    return volumes_add(v, &layer);
}

static bool compact_pixels(Volumes *v, View *view) {
    ViewAxis all = axis_that(v, view, MOVES_PIXELS);
    uint32_t n = all.n, w = view->size[VIEW_X], *sorted;
    uint32_t *at = ARENA_ARRAY(v->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        at[i] = all.at[VIEW_Y][i] * w + all.at[VIEW_X][i];
    if (!places_sorted(v->arena, at, n, &sorted))
        return false;
    uint32_t rows = rows_of(sorted, n, w);
    rows = rows ? rows : n;
    View part = *view;
    part.size[VIEW_Y] = rows;
    part.size[VIEW_X] = n / rows;
    ViewAxis made = axis_of(v->arena, n, VIEW_Y, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t place = rank_in(sorted, n, at[i]);
        made.at[VIEW_Y][i] = place / part.size[VIEW_X];
        made.at[VIEW_X][i] = place % part.size[VIEW_X];
    }
    if (!renumber(v, &part, MOVES_PIXELS, &made))
        return false;
    if (n == view->size[VIEW_Y] * w) {
        *view = part;
        return true;
    }
    part.base = volumes_pixels(v, view->base, &part.size[VIEW_Y], sorted);
    *view = part;
    return true;
}

void volumes_widen(Volumes *v, View *view, uint32_t n, uint32_t wide) {
    for (uint32_t i = 0; i < view->rank; i++) {
        ViewAxis *axis = &view->axis[i];
        uint32_t *at = ARENA_ARRAY(v->arena, uint32_t, axis->n);
        for (uint32_t k = 0; k < axis->n; k++)
            at[k] = axis->at[VIEW_C][k] / n * wide;
        axis->at[VIEW_C] = at;
    }
}

bool volumes_mixes(const View *view, uint32_t axis) {
    return view_moves(view, axis) == (MOVES_CHANNELS | MOVES_PIXELS);
}

bool volumes_split(Volumes *v, View *view, uint32_t axis, uint32_t n) {
    Shape shape = view_shape(view), split = {.rank = shape.rank + 1};
    for (uint32_t i = 0; i < shape.rank; i++)
        split.dim[i + (i > axis)] = shape.dim[i];
    split.dim[axis] = shape.dim[axis] / n;
    split.dim[axis + 1] = n;
    return view_reshape(v->arena, view, &split) && !volumes_mixes(view, axis) &&
           !volumes_mixes(view, axis + 1);
}

/* Axes that move along both, as pairs that do not; false where there is none
 * such. */
static bool unmix(Volumes *v, View *view) {
    for (uint32_t i = 0; i < view->rank; i++) {
        bool split = !volumes_mixes(view, i);
        uint32_t all = view->axis[i].n;
        for (uint32_t n = 2; !split && n < all && view->rank < SHAPE_MAX_RANK;
             n++) {
            View made = *view;
            split = all % n == 0 && volumes_split(v, &made, i, n);
            *view = split ? made : *view;
        }
        if (!split)
            return false;
    }
    return true;
}

bool volumes_compact(Volumes *v, View *view) {
    View made = *view;
    Shape shape = view_shape(view);
    if (!unmix(v, &made) || !compact_channels(v, &made) ||
        !compact_pixels(v, &made) ||
        (made.rank != shape.rank && !view_reshape(v->arena, &made, &shape)))
        return false;
    *view = made;
    return true;
}

static bool counts_up(const uint32_t *at, uint32_t n, uint32_t all) {
    bool same = n == all;
    for (uint32_t i = 0; i < n && same; i++)
        same = at[i] == i;
    return same;
}

bool volumes_image(Volumes *v, const View *view, TensorId *out) {
    if (view->rank != 4 || view->axis[0].n != 1 ||
        view_moves(view, 1) & MOVES_PIXELS ||
        (view_moves(view, 2) | view_moves(view, 3)) & MOVES_CHANNELS)
        return false;
    View first = *view;
    for (uint32_t i = 2; i < 4; i++)
        view_pick(v->arena, &first, i, 1, (uint32_t[]){0});
    ViewAxis channels = view_merged(v->arena, &first, 0, 4);
    first = *view;
    view_pick(v->arena, &first, 1, 1, (uint32_t[]){0});
    ViewAxis pixels = view_merged(v->arena, &first, 0, 4);
    uint32_t plane[] = {view->axis[2].n, view->axis[3].n};
    for (uint32_t i = 0; i < pixels.n; i++)
        pixels.at[VIEW_Y][i] =
            pixels.at[VIEW_Y][i] * view->size[VIEW_X] + pixels.at[VIEW_X][i];
    *out = view->base;
    if (!counts_up(channels.at[VIEW_C], channels.n, view->size[VIEW_C]))
        *out = volumes_channels(v, *out, channels.n, channels.at[VIEW_C]);
    if (plane[0] != view->size[VIEW_Y] || plane[1] != view->size[VIEW_X] ||
        !counts_up(pixels.at[VIEW_Y], pixels.n, plane[0] * plane[1]))
        *out = volumes_pixels(v, *out, plane, pixels.at[VIEW_Y]);
    return true;
}

/* ---- tensors of their own shapes ---- */

static TensorId whole_new(Volumes *v, const View *view, TensorId t) {
    View part = *view;
    TensorId image;
    const uint64_t moves = OPS(RESHAPE) | OPS(TRANSPOSE) | OPS(SLICE) |
                           OPS(GATHER) | OPS(CONCAT) | OPS(IDENTITY);
    Shape shape = view_shape(view);
    uint64_t n = shape_count(&shape);
    if (volumes_image(v, view, &image))
        return image;
    volumes_compact(v, &part);
    uint32_t *place = view_places(v->arena, &part);
    uint64_t all =
        (uint64_t)part.size[VIEW_C] * part.size[VIEW_Y] * part.size[VIEW_X];
    if (volumes_in_order(v, &part, &image) ||
        volumes_shuffled(v, view, &image) || volumes_permuted(v, &part, &image))
        return image;
    if (moves >> graph_node(v->g, graph_tensor(v->g, t)->producer)->op & 1)
        return t; /* made as it was */
    Shape line = {2, {1, (uint32_t)all}};
    Layer layer =
        layer_of(OP_GATHER, "order", volumes_reshaped(v, part.base, &line));
    double *index = ARENA_ARRAY(v->arena, double, n);
    double *one = ARENA_ARRAY(v->arena, double, n);
    for (uint64_t i = 0; i < n; i++) {
        index[i] = place[i];
        one[i] = 1;
    }
    layer.attr.gather.axis = 1;
    layer.attr.gather.n = (uint32_t)n;
    layer.attr.gather.taps = 1;
    Shape table = {2, {(uint32_t)n, 1}};
    layer.constant[CONST_INDEX] = volumes_const(v, table, index);
    layer.constant[CONST_VALUE] = volumes_const(v, table, one);
    return volumes_reshaped(v, volumes_add(v, &layer), &shape);
}

static bool puts_channels_last(const Node *node, TensorId base) {
    static const Shape last = {4, {0, 2, 3, 1}};
    return node->op == OP_TRANSPOSE && node->act.kind == ACT_NONE &&
           shape_equal(&node->attr.perm, &last) && node->in[0].i == base.i;
}

/* Whether the tensor is made of the volume just as it would be. */
static bool is_whole(const Volumes *v, TensorId t, TensorId base) {
    const Node *node = graph_node(v->g, graph_tensor(v->g, t)->producer);
    if (puts_channels_last(node, base))
        return true;
    if (node->op != OP_RESHAPE || node->act.kind != ACT_NONE)
        return false;
    TensorId in = node->in[0];
    return in.i == base.i ||
           puts_channels_last(
               graph_node(v->g, graph_tensor(v->g, in)->producer), base);
}

static TensorId whole_of(Volumes *v, TensorId t) {
    if (t.i >= v->n || v->view[t.i].base.i == NONE ||
        is_whole(v, t, v->view[t.i].base))
        return t;
    if (v->whole[t.i].i == NONE)
        v->whole[t.i] = whole_new(v, &v->view[t.i], t);
    return v->whole[t.i];
}

/* ---- the walk ---- */

static Convert *const convert[OP_COUNT] = {
    [OP_RESHAPE] = convert_reshape, [OP_TRANSPOSE] = convert_transpose,
    [OP_SLICE] = convert_slice,     [OP_GATHER] = convert_gather,
    [OP_CONCAT] = convert_concat,   [OP_IDENTITY] = convert_identity,
    [OP_ACT] = convert_act,         [OP_SCALE] = convert_scale,
    [OP_BN] = convert_scale,        [OP_ELTWISE] = convert_eltwise,
    [OP_NORM] = convert_norm,       [OP_SOFTMAX] = convert_softmax,
    [OP_REDUCE] = convert_reduce,   [OP_FC] = convert_fc,
    [OP_MATMUL] = convert_matmul,   [OP_CONV] = convert_conv,
    [OP_POOL] = convert_pool,       [OP_PAD] = convert_pad,
    [OP_ROUTINE] = convert_routine,
};

static void at_hand(Volumes *v, NodeId id) {
    v->id = id;
    v->at = *graph_node(v->g, id);
    v->node = &v->at;
}

/* What the nodes that stay read, as tensors of its own shape: those that
 * outputs depend on, and results themselves. Others keep what they read: they
 * go. */
static void make_tensors(Volumes *v) {
    VEC(NodeId) open = {0};
    bool *seen = ARENA_ARRAY(v->arena, bool, v->g->tensor.n);
    uint32_t known = v->g->tensor.n;
    for (uint32_t i = 0; i < v->g->output.n; i++) {
        TensorId out = v->g->output.at[i];
        at_hand(v, graph_tensor(v->g, out)->producer);
        TensorId whole = whole_of(v, out);
        const Node *from =
            graph_node(v->g, graph_tensor(v->g, whole)->producer);
        if (whole.i != out.i &&
            (graph_is_output(v->g, whole) || from->op == OP_INPUT)) {
            Layer copy = layer_of(OP_RESHAPE, "shape", whole);
            copy.attr.reshape = graph_tensor(v->g, whole)->shape;
            whole = volumes_add(v, &copy);
        }
        if (whole.i != out.i)
            graph_take_over(v->g, whole, out);
        vec_push(v->arena, &open, graph_tensor(v->g, whole)->producer);
    }
    while (open.n) {
        NodeId id = open.at[--open.n];
        at_hand(v, id);
        for (uint32_t k = 0; k < v->node->n_in; k++) {
            TensorId in = v->node->in[k], whole = whole_of(v, in);
            graph_node(v->g, id)->in[k] = whole;
            if (whole.i < known && seen[whole.i])
                continue;
            if (whole.i < known)
                seen[whole.i] = true;
            vec_push(v->arena, &open, graph_tensor(v->g, whole)->producer);
        }
    }
}

/* Of codes only what moves them. */
static bool may_convert(const Volumes *v) {
    const Node *node = v->node;
    bool codes = quant_is_at(v->g, node);
    return !node->dead && node->n_in && node->n_out == 1 &&
           (!codes || (quant_moves(v->g, node) && quant_is_one(v->g, node) &&
                       node->act.kind == ACT_NONE));
}

bool volumes_run(Graph *g, PassContext *context) {
    Volumes v = {.g = g, .context = context, .arena = context->scratch};
    uint32_t nodes = g->node.n;
    if (!context->spec)
        return true;
    v.n = g->tensor.n;
    v.view = ARENA_ARRAY(v.arena, View, v.n);
    v.whole = ARENA_ARRAY(v.arena, TensorId, v.n);
    for (uint32_t i = 0; i < v.n; i++) {
        v.view[i].base = NO_TENSOR;
        v.whole[i] = NO_TENSOR;
    }
    for (NodeId id = {0}; id.i < nodes; id.i++) {
        at_hand(&v, id);
        Convert *to = convert[v.node->op];
        if (to && may_convert(&v))
            to(&v);
    }
    make_tensors(&v);
    graph_compact(g);
    return graph_sort(g, context->diag);
}
