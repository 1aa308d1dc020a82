/* ops_pool.c - ONNX's pools; see onnx.h.
 *
 * Pools over one axis are pools over rows of one; those over three are two, one
 * behind the other, since maxima and means are separable. What engines have no
 * pool for, taps that lie apart and sums of powers, is done axis by axis: sums
 * by a GATHER, maxima by one a tap.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* ---- pools of the graph ---- */

static TensorId pool_plane(Onnx *x, OnnxNode *n, TensorId in,
                           const OnnxWindow *w) {
    NodeId id = onnx_add(x, n, OP_POOL, "pool", 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    PoolAttr *pool = &graph_node(x->graph, id)->attr.pool;
    pool->kind = (PoolKind)n->op->kind;
    pool->ceil = onnx_int(x, n, "ceil_mode", 0) != 0;
    pool->count_pad = onnx_int(x, n, "count_include_pad", 0) != 0;
    for (int i = 0; i < 2; i++) {
        pool->kernel[i] = w->kernel[i];
        pool->stride[i] = w->stride[i];
        pool->pad[i] = (uint32_t)w->pad[i];
        pool->pad_end[i] = (uint32_t)w->pad_end[i];
    }
    return onnx_end(x, id);
}

/* Over the last two axes, then over the one before them. */
static TensorId pool_volume(Onnx *x, OnnxNode *n, TensorId in,
                            const OnnxWindow *w) {
    Shape s = onnx_in(x, n, 0)->shape;
    OnnxWindow plane = {.n = 2}, depth = {.n = 1};
    for (int i = 0; i < 2; i++) {
        plane.kernel[i] = w->kernel[i + 1];
        plane.stride[i] = w->stride[i + 1];
        plane.pad[i] = w->pad[i + 1];
        plane.pad_end[i] = w->pad_end[i + 1];
    }
    depth.kernel[0] = w->kernel[0];
    depth.stride[0] = w->stride[0];
    depth.pad[0] = w->pad[0];
    depth.pad_end[0] = w->pad_end[0];
    depth.kernel[1] = depth.stride[1] = 1;
    in = onnx_reshape(
        x, n, in,
        shape_nchw(s.dim[0], s.dim[1] * s.dim[2], s.dim[3], s.dim[4]));
    in = pool_plane(x, n, in, &plane);
    if (in.i == NONE)
        return in;
    uint32_t h = onnx_shape(x, in)->dim[2], wide = onnx_shape(x, in)->dim[3];
    in = onnx_reshape(x, n, in,
                      shape_nchw(s.dim[0], s.dim[1], s.dim[2], h * wide));
    in = pool_plane(x, n, in, &depth);
    if (in.i == NONE)
        return in;
    uint32_t d = onnx_shape(x, in)->dim[2];
    return onnx_reshape(x, n, in, (Shape){5, {s.dim[0], s.dim[1], d, h, wide}});
}

/* ---- axis by axis ---- */

typedef enum AxisPool { AXIS_MAX, AXIS_MEAN, AXIS_SUM } AxisPool;

/* The windows along one axis: where taps lie, and which lie inside. */
typedef struct Taps {
    uint32_t size, count, kernel, stride, dilation, pad, pad_end;
} Taps;

/* As pool_out_size, for a window that its dilation makes longer. */
static Taps taps_of(const OnnxWindow *w, uint32_t i, uint32_t size, bool ceil) {
    Taps t = {size,
              0,
              w->kernel[i],
              w->stride[i],
              w->dilation[i],
              (uint32_t)w->pad[i],
              (uint32_t)w->pad_end[i]};
    PoolAttr reach = {.ceil = ceil};
    uint64_t kernel = (uint64_t)t.dilation * (t.kernel - 1) + 1;
    if (kernel > UINT32_MAX)
        return t;
    reach.kernel[0] = (uint32_t)kernel;
    reach.stride[0] = t.stride;
    reach.pad[0] = t.pad;
    reach.pad_end[0] = t.pad_end;
    t.count = pool_out_size(&reach, 0, size);
    return t;
}

static int64_t tap_at(const Taps *t, uint32_t window, uint32_t tap) {
    return (int64_t)window * t->stride + (int64_t)tap * t->dilation - t->pad;
}

static bool tap_in_padding(const Taps *t, uint32_t window, uint32_t tap) {
    return tap_at(t, window, tap) < (int64_t)t->size + t->pad_end;
}

static bool tap_inside(const Taps *t, uint32_t window, uint32_t tap) {
    int64_t at = tap_at(t, window, tap);
    return at >= 0 && at < t->size;
}

/* Sums, each tap with a factor; 0 outside. */
static TensorId sum_axis(Onnx *x, OnnxNode *n, TensorId in, uint32_t axis,
                         const Taps *t, AxisPool kind, bool count_pad) {
    uint64_t all = (uint64_t)t->count * t->kernel;
    double *index = ARENA_ARRAY(x->arena, double, all);
    double *factor = ARENA_ARRAY(x->arena, double, all);
    for (uint32_t c = 0; c < t->count; c++) {
        uint32_t inside = 0;
        for (uint32_t k = 0; k < t->kernel; k++)
            inside += count_pad ? tap_in_padding(t, c, k) : tap_inside(t, c, k);
        double each = kind == AXIS_SUM || !inside ? 1 : 1.0 / inside;
        for (uint32_t k = 0; k < t->kernel; k++) {
            bool is = tap_inside(t, c, k);
            index[(uint64_t)c * t->kernel + k] =
                is ? (double)tap_at(t, c, k) : 0;
            factor[(uint64_t)c * t->kernel + k] = is ? each : 0;
        }
    }
    return onnx_gather(x, n, in, axis, t->count, t->kernel, index, factor);
}

/* Maxima: a tap outside shows an element that the window has anyhow. */
static TensorId max_axis(Onnx *x, OnnxNode *n, TensorId in, uint32_t axis,
                         const Taps *t) {
    TensorId most = NO_TENSOR;
    for (uint32_t k = 0; k < t->kernel; k++) {
        double *index = ARENA_ARRAY(x->arena, double, t->count);
        for (uint32_t c = 0; c < t->count; c++) {
            uint32_t tap = k;
            for (uint32_t i = 0; i < t->kernel && !tap_inside(t, c, tap); i++)
                tap = i;
            if (!tap_inside(t, c, tap)) {
                onnx_error(x, n, "a window has no element of its input");
                return NO_TENSOR;
            }
            index[c] = (double)tap_at(t, c, tap);
        }
        TensorId shown = onnx_gather(x, n, in, axis, t->count, 1, index, NULL);
        most = k ? onnx_binary(x, n, ELT_MAX, most, shown) : shown;
    }
    return most;
}

static TensorId pool_axes(Onnx *x, OnnxNode *n, TensorId in,
                          const OnnxWindow *w, AxisPool kind) {
    bool ceil = onnx_int(x, n, "ceil_mode", 0) != 0;
    bool count_pad = onnx_int(x, n, "count_include_pad", 0) != 0;
    for (uint32_t i = 0; in.i != NONE && i < w->n; i++) {
        Taps t = taps_of(w, i, onnx_shape(x, in)->dim[2 + i], ceil);
        if (!t.count || (uint64_t)t.count * t.kernel > 1 << 24 ||
            (kind == AXIS_MAX && t.kernel > 256)) {
            onnx_error(x, n,
                       "a window of %u, dilated %u times, over %u is "
                       "not supported",
                       t.kernel, t.dilation, t.size);
            return NO_TENSOR;
        }
        in = kind == AXIS_MAX ? max_axis(x, n, in, 2 + i, &t)
                              : sum_axis(x, n, in, 2 + i, &t, kind, count_pad);
    }
    return in;
}

static bool is_dilated(const OnnxWindow *w) {
    for (uint32_t i = 0; i < w->n; i++)
        if (w->dilation[i] > 1 && w->kernel[i] > 1)
            return true;
    return false;
}

/* The windows over an input of rank 3 to 5. */
static bool pool_window(Onnx *x, OnnxNode *n, OnnxWindow *w) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    if (in->rank < 3)
        return onnx_error(x, n, "needs axes behind channels");
    if (!onnx_window(x, n, in->rank - 2, NULL, w))
        return false;
    onnx_pad_same(w, in->dim + 2);
    return true;
}

/* ---- maxima and where they were ---- */

static bool max_places(Onnx *x, OnnxNode *n, const OnnxWindow *w) {
    TensorId in = onnx_tensor_in(x, n, 0);
    NodeId id = onnx_routine(x, n, ROUTINE_MAX_INDEX, 1, &in);
    onnx_out(x, n, 1)->type = ONNX_INT64;
    return onnx_three(x, n, id, "kernel", w, w->kernel, NULL) &&
           onnx_set_windows(x, n, id, w) &&
           onnx_number_is(x, n, id, "ceil",
                          onnx_int(x, n, "ceil_mode", 0) != 0) &&
           onnx_number_is(x, n, id, "columns",
                          onnx_int(x, n, "storage_order", 0) != 0) &&
           onnx_set(x, n, 1, onnx_end(x, id), NULL);
}

bool onnx_pool(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape;
    OnnxWindow w;
    if (!pool_window(x, n, &w) || (onnx_wants(n, 1) && !max_places(x, n, &w)))
        return false;
    TensorId from = onnx_tensor_in(x, n, 0);
    if (is_dilated(&w)) {
        AxisPool kind = n->op->kind == POOL_MAX ? AXIS_MAX : AXIS_MEAN;
        return onnx_set(x, n, 0, pool_axes(x, n, from, &w, kind), NULL);
    }
    onnx_window_plane(&w);
    if (in.rank == 5)
        return onnx_set(x, n, 0, pool_volume(x, n, from, &w), NULL);
    from = onnx_reshape(x, n, from, onnx_plane(&in));
    TensorId out = pool_plane(x, n, from, &w);
    return onnx_set(x, n, 0, onnx_line(x, n, out, in.rank == 3), NULL);
}

bool onnx_global_pool(Onnx *x, OnnxNode *n) {
    Shape in = onnx_in(x, n, 0)->shape, out = in;
    if (in.rank < 3)
        return onnx_error(x, n, "needs axes behind channels");
    uint64_t rest = shape_count(&in) / in.dim[0] / in.dim[1];
    Shape plane =
        in.rank == 4 ? in : shape_nchw(in.dim[0], in.dim[1], 1, (uint32_t)rest);
    TensorId from = onnx_reshape(x, n, onnx_tensor_in(x, n, 0), plane);
    NodeId id = onnx_add(x, n, OP_POOL, "pool", 1, &from);
    if (id.i == NONE)
        return false;
    graph_node(x->graph, id)->attr.pool.kind = (PoolKind)n->op->kind;
    graph_node(x->graph, id)->attr.pool.global = true;
    for (uint32_t i = 2; i < out.rank; i++)
        out.dim[i] = 1;
    return onnx_set(x, n, 0, onnx_reshape(x, n, onnx_end(x, id), out), NULL);
}

/* What lies behind the result where output_shape asks for more. */
static bool grown(Onnx *x, OnnxNode *n, TensorId *out) {
    uint32_t count, none[SHAPE_MAX_RANK] = {0}, behind[SHAPE_MAX_RANK] = {0};
    int64_t *want;
    if (!onnx_in(x, n, 2))
        return true;
    if (!onnx_list_in(x, n, 2, &count, &want))
        return false;
    const Shape *is = onnx_shape(x, *out);
    for (uint32_t i = 0; i < count && i < is->rank; i++) {
        if (want[i] < is->dim[i] || want[i] > 1 << 24)
            return onnx_error(x, n, "its output_shape is too small");
        behind[i] = (uint32_t)(want[i] - is->dim[i]);
    }
    *out = onnx_pad(x, n, *out, none, behind, 0);
    return true;
}

bool onnx_unpool(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape;
    OnnxWindow w;
    if (in->rank < 3 || !onnx_window(x, n, in->rank - 2, NULL, &w))
        return false;
    uint32_t size[ONNX_MAX_AXES];
    for (uint32_t i = 0; i < w.n; i++) {
        int64_t s = (int64_t)(in->dim[2 + i] - 1) * w.stride[i] + w.kernel[i] -
                    w.pad[i] - w.pad_end[i];
        if (s < 1 || s > 1 << 24)
            return onnx_error(x, n, "its output is empty or too large");
        size[i] = (uint32_t)s;
    }
    TensorId of[] = {onnx_tensor_in(x, n, 0), onnx_tensor_in(x, n, 1)};
    NodeId id = onnx_routine(x, n, ROUTINE_UNPOOL, 2, of);
    if (!onnx_three(x, n, id, "size", &w, size, NULL))
        return false;
    TensorId out = onnx_end(x, id);
    return out.i != NONE && grown(x, n, &out) && onnx_set(x, n, 0, out, NULL);
}

/* ---- norms ---- */

static TensorId to_power(Onnx *x, OnnxNode *n, TensorId in, double p) {
    if (in.i == NONE)
        return in;
    Shape one = onnx_rank(&(Shape){0}, onnx_shape(x, in)->rank);
    return onnx_binary(x, n, ELT_POW, in,
                       onnx_constant(x, n, onnx_fill(one, p)));
}

/* |x|^p. */
static TensorId powers(Onnx *x, OnnxNode *n, TensorId in, int64_t p) {
    if (p == 2)
        return onnx_binary(x, n, ELT_MUL, in, in);
    TensorId size = onnx_act(x, n, in, (Act){.kind = ACT_ABS});
    return p == 1 ? size : to_power(x, n, size, (double)p);
}

static TensorId root(Onnx *x, OnnxNode *n, TensorId in, int64_t p) {
    return p == 1   ? in
           : p == 2 ? onnx_act(x, n, in, (Act){.kind = ACT_SQRT})
                    : to_power(x, n, in, 1.0 / (double)p);
}

static bool exponent(Onnx *x, OnnxNode *n, int64_t *p) {
    *p = onnx_int(x, n, "p", 2);
    return (*p >= 1 && *p <= 64) ||
           onnx_error(x, n, "p = %lld is not supported", (long long)*p);
}

bool onnx_lp_pool(Onnx *x, OnnxNode *n) {
    OnnxWindow w;
    int64_t p;
    if (!exponent(x, n, &p) || !pool_window(x, n, &w))
        return false;
    TensorId out = powers(x, n, onnx_tensor_in(x, n, 0), p);
    out = pool_axes(x, n, out, &w, AXIS_SUM);
    return onnx_set(x, n, 0, root(x, n, out, p), NULL);
}

bool onnx_global_lp_pool(Onnx *x, OnnxNode *n) {
    int64_t p;
    uint32_t rank = onnx_in(x, n, 0)->shape.rank;
    if (rank < 3)
        return onnx_error(x, n, "needs axes behind channels");
    if (!exponent(x, n, &p))
        return false;
    TensorId out = powers(x, n, onnx_tensor_in(x, n, 0), p);
    out = onnx_reduce(x, n, out, REDUCE_SUM, ((1u << rank) - 1) & ~3u);
    return onnx_set(x, n, 0, root(x, n, out, p), NULL);
}

/* By the sum of |x|^p along one axis. */
bool onnx_lp_norm(Onnx *x, OnnxNode *n) {
    int64_t p;
    uint32_t axis;
    if (!exponent(x, n, &p) || !onnx_axis(x, n, onnx_int(x, n, "axis", -1),
                                          onnx_in(x, n, 0)->shape.rank, &axis))
        return false;
    TensorId in = onnx_tensor_in(x, n, 0);
    TensorId norm = powers(x, n, in, p);
    norm = onnx_reduce(x, n, norm, REDUCE_SUM, 1u << axis);
    return onnx_set(x, n, 0,
                    onnx_binary(x, n, ELT_DIV, in, root(x, n, norm, p)), NULL);
}
