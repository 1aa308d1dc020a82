/* volumes_reduce.c - sums, means and maxima over axes of views; see volumes.c.
 *
 * Along pixels they are pools, along all channels reductions that engines know,
 * along the channels of heads convolutions by ones; else the axis becomes
 * channels. Norms of vectors are sums between a square and a root.
 */
#include "passes/volumes.h"

/* A reduction that engines know between two functions of each element. */
typedef struct Parts {
    ReduceKind kind;
    bool squared;
    ActKind before, behind;
} Parts;

static Parts parts_of(ReduceKind kind) {
    static const Parts parts[REDUCE_COUNT] = {
        [REDUCE_MEAN] = {REDUCE_MEAN, false, ACT_NONE, ACT_NONE},
        [REDUCE_SUM] = {REDUCE_SUM, false, ACT_NONE, ACT_NONE},
        [REDUCE_MAX] = {REDUCE_MAX, false, ACT_NONE, ACT_NONE},
        [REDUCE_MIN] = {REDUCE_MAX, false, ACT_NEG, ACT_NEG},
        [REDUCE_L1] = {REDUCE_SUM, false, ACT_ABS, ACT_NONE},
        [REDUCE_L2] = {REDUCE_SUM, true, ACT_NONE, ACT_SQRT},
        [REDUCE_SQUARES] = {REDUCE_SUM, true, ACT_NONE, ACT_NONE},
        [REDUCE_LOG_SUM] = {REDUCE_SUM, false, ACT_NONE, ACT_LOG},
        [REDUCE_LOG_SUM_EXP] = {REDUCE_COUNT, false, ACT_NONE, ACT_NONE},
        [REDUCE_PROD] = {REDUCE_COUNT, false, ACT_NONE, ACT_NONE},
        [REDUCE_ARGMAX] = {REDUCE_COUNT, false, ACT_NONE, ACT_NONE},
        [REDUCE_ARGMAX_LAST] = {REDUCE_COUNT, false, ACT_NONE, ACT_NONE},
        [REDUCE_ARGMIN] = {REDUCE_COUNT, false, ACT_NONE, ACT_NONE},
        [REDUCE_ARGMIN_LAST] = {REDUCE_COUNT, false, ACT_NONE, ACT_NONE},
    };
    return parts[kind];
}

static bool engines_know(const Volumes *v, ReduceKind kind) {
    Parts parts = parts_of(kind);
    return parts.kind == kind ||
           (parts.kind != REDUCE_COUNT && volumes_has(v, HW_OP_ACT) &&
            volumes_has(v, HW_OP_MUL) && volumes_has(v, HW_OP_SCALE));
}

/* ---- layers ---- */

static TensorId times(Volumes *v, TensorId in, double factor) {
    uint32_t c = graph_tensor(v->g, in)->shape.dim[1];
    Layer layer = layer_of(OP_SCALE, "volume", in);
    layer.no_bias = true;
    layer.constant[CONST_SCALE] = constant_of(v->g, shape_of(c), factor, 0);
    return volumes_add(v, &layer);
}

static TensorId element_by_element(Volumes *v, ActKind kind, TensorId in) {
    if (kind == ACT_NONE)
        return in;
    if (kind == ACT_NEG)
        return times(v, in, -1);
    Layer layer = layer_of(OP_ACT, "volume", in);
    layer.act.kind = kind;
    return volumes_add(v, &layer);
}

static TensorId square(Volumes *v, TensorId in) {
    Layer layer = layer_of(OP_ELTWISE, "volume", in);
    layer.attr.elt.kind = ELT_MUL;
    layer.n_in = 2;
    layer.in[1] = in;
    return volumes_add(v, &layer);
}

/* ---- ways to sum up axes ---- */

/* What is left of the axes. */
static void collapse(Volumes *v, View *view, uint32_t axes) {
    for (uint32_t i = 0; i < view->rank; i++)
        if (axes >> i & 1)
            view->axis[i] = axis_of(v->arena, 1, VIEW_C, 0, 0);
}

/* Along rows (1), columns (2) or both. */
static uint32_t pixels_along(const View *view, uint32_t axes) {
    uint32_t along = 0;
    for (uint32_t i = 0; i < view->rank; i++)
        for (uint32_t d = VIEW_Y; d <= VIEW_X && axes >> i & 1; d++)
            for (uint32_t k = 1; k < view->axis[i].n; k++)
                along |=
                    (uint32_t)(view->axis[i].at[d][k] != view->axis[i].at[d][0])
                    << (d - VIEW_Y);
    return along;
}

static bool pools(Volumes *v, View *view, ReduceKind kind, uint32_t axes) {
    uint32_t along = pixels_along(view, axes), n = 1;
    if (!along || (kind == REDUCE_SUM && !volumes_has(v, HW_OP_POOL_AVG)) ||
        along & pixels_along(view, ~axes & ((1u << view->rank) - 1)))
        return false;
    Layer layer = layer_of(OP_POOL, "volume", view->base);
    PoolAttr *pool = &layer.attr.pool;
    pool->kind = kind == REDUCE_MAX ? POOL_MAX : POOL_AVG;
    for (uint32_t i = 0; i < 2; i++) {
        bool all = along >> i & 1;
        n *= all ? view->size[VIEW_Y + i] : 1;
        pool->kernel[i] = all ? view->size[VIEW_Y + i] : 1;
        pool->stride[i] = 1;
        view->size[VIEW_Y + i] = all ? 1 : view->size[VIEW_Y + i];
    }
    if (view->size[VIEW_Y] * view->size[VIEW_X] == 1) {
        pool->global = true;
        pool->kernel[0] = pool->kernel[1] = 1;
    }
    TensorId made = volumes_add(v, &layer);
    if (kind == REDUCE_SUM)
        made = times(v, made, n);
    collapse(v, view, axes);
    *view = view_over(view, made, view->size[VIEW_C]);
    return true;
}

static void sum_channels(Volumes *v, View *view, ReduceKind kind,
                         uint32_t axes) {
    Layer layer = layer_of(OP_REDUCE, "volume", view->base);
    layer.attr.reduce.kind = kind;
    layer.attr.reduce.axes = 1u << 1;
    collapse(v, view, axes);
    *view = view_over(view, volumes_add(v, &layer), 1);
}

/* Each head by itself: a group of a convolution whose weights are one number.
 */
static bool sum_heads(Volumes *v, View *view, ReduceKind kind, uint32_t axes) {
    uint32_t from = 0, to = view->rank;
    while (!(axes >> from & 1))
        from++;
    while (!(axes >> (to - 1) & 1))
        to--;
    uint32_t heads = volumes_groups(v, view, from, to);
    if (kind == REDUCE_MAX || !heads || !volumes_has(v, HW_OP_CONV_GROUPED) ||
        axes != (1u << to) - (1u << from))
        return false;
    uint32_t n = view->size[VIEW_C] / heads;
    Layer layer = layer_of_heads(view->base, heads, 1);
    layer.no_bias = true;
    layer.constant[CONST_WEIGHT] = constant_of(
        v->g, shape_nchw(heads, n, 1, 1), kind == REDUCE_MEAN ? 1.0 / n : 1, 0);
    collapse(v, view, axes);
    volumes_widen(v, view, n, 1);
    *view = view_over(view, volumes_add(v, &layer), heads);
    return true;
}

/* As many parts as are worth a copy each. */
enum { MOST_FOLDS = 8 };

/* Parts of an axis, one for each of its indices, are added up, or compared. */
static bool fold_axis(Volumes *v, View *view, ReduceKind kind, uint32_t axis) {
    uint32_t n = view->axis[axis].n;
    TensorId sum = NO_TENSOR;
    View first = {0};
    for (uint32_t i = 0; i < n && n <= MOST_FOLDS; i++) {
        View part = *view;
        view_pick(v->arena, &part, axis, 1, &i);
        if (!volumes_compact(v, &part) || (i && !view_same(&first, &part)))
            return false;
        first = i ? first : part;
        Layer layer = layer_of(OP_ELTWISE, "volume", sum);
        layer.attr.elt.kind = kind == REDUCE_MAX ? ELT_MAX : ELT_ADD;
        layer.n_in = 2;
        layer.in[1] = part.base;
        sum = i ? volumes_add(v, &layer) : part.base;
    }
    if (sum.i == NONE)
        return false;
    if (kind == REDUCE_MEAN)
        sum = times(v, sum, 1.0 / n);
    *view = view_over(&first, sum, first.size[VIEW_C]);
    return true;
}

/* Each axis by itself becomes channels. */
static bool sum_by_axis(Volumes *v, View *view, ReduceKind kind,
                        uint32_t axes) {
    for (uint32_t i = 0; i < view->rank; i++) {
        if (!(axes >> i & 1) || view->axis[i].n == 1)
            continue;
        if (fold_axis(v, view, kind, i))
            continue;
        if (!volumes_has(v, HW_OP_REDUCE_MEAN) ||
            !volumes_by_channel(v, view, i))
            return false;
        sum_channels(v, view, kind, 1u << i);
    }
    return true;
}

static bool reduce(Volumes *v, View *view, ReduceKind kind, uint32_t axes) {
    uint32_t moves = 0, kept = 0, along = 0;
    View made = *view;
    if (!volumes_compact(v, &made) && !volumes_lay(v, &made))
        return sum_by_axis(v, view, kind, axes);
    for (uint32_t i = 0; i < made.rank; i++) {
        *(axes >> i & 1 ? &moves : &kept) |= view_moves(&made, i);
        along |= (uint32_t)(view_moves(&made, i) == MOVES_PIXELS) << i;
    }
    along &= axes;
    bool ok = false;
    if (moves == MOVES_CHANNELS && !(kept & MOVES_CHANNELS)) {
        sum_channels(v, &made, kind, axes);
        ok = true;
    } else if (moves == MOVES_CHANNELS) {
        ok = sum_heads(v, &made, kind, axes);
    } else if (moves == MOVES_PIXELS) {
        ok = pools(v, &made, kind, axes);
    } else if (along) {
        ok = pools(v, &made, kind, along) &&
             reduce(v, &made, kind, axes & ~along);
    }
    if (ok)
        *view = made;
    return ok || sum_by_axis(v, view, kind, axes);
}

/* Of an image by itself the passes that follow know means and maxima of planes.
 */
static bool is_known_pool(const Volumes *v) {
    uint32_t axes = v->node->attr.reduce.axes;
    ReduceKind kind = v->node->attr.reduce.kind;
    return volumes_plain(v, 0) && axes != 1u << 2 && axes != 1u << 3 &&
           (kind == REDUCE_MEAN || kind == REDUCE_MAX ||
            (kind == REDUCE_SUM && axes == 1u << 1));
}

bool convert_reduce(Volumes *v) {
    View view;
    ReduceKind kind = v->node->attr.reduce.kind;
    Parts parts = parts_of(kind);
    if (is_known_pool(v) || volumes_has_act(v) || !engines_know(v, kind) ||
        !volumes_see(v, 0, &view))
        return false;
    TensorId in = element_by_element(v, parts.before, view.base);
    view =
        view_over(&view, parts.squared ? square(v, in) : in, view.size[VIEW_C]);
    if (!reduce(v, &view, parts.kind, v->node->attr.reduce.axes))
        return false;
    view = view_over(&view, element_by_element(v, parts.behind, view.base),
                     view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}
