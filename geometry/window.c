/* window.c - which rows and columns of a node's operand a part of its result is
 * made from.
 *
 * Input: a graph, a node, a span of its result along an axis (0 rows, 1
 * columns). Output: the span of the operand, clipped to it, with the padding
 * that is left. Pure functions of the node's attributes.
 */
#include "geometry/geometry.h"

/* ---- rows ---- */

/* Windows over an axis: output rows [at, at + n) of a kernel read the input
 * rows [at, at + n) that it leaves here, before clipping. */
typedef struct Span {
    int64_t at, n;
} Span;

static Span window(Span out, uint32_t kernel, uint32_t stride,
                   uint32_t dilation, uint32_t pad) {
    return (Span){out.at * stride - pad,
                  (out.n - 1) * stride + (int64_t)dilation * (kernel - 1) + 1};
}

static Span pool_window(const PoolAttr *pool, uint32_t axis, Span out,
                        uint32_t in) {
    if (pool->global)
        return (Span){0, in};
    return window(out, pool->kernel[axis], pool->stride[axis], 1,
                  pool->pad[axis]);
}

static Span conv_window(const ConvAttr *conv, uint32_t axis, Span out) {
    return window(out, conv->kernel[axis], conv->stride[axis],
                  conv->dilation[axis], conv->pad[axis]);
}

/* Cuts to [0, size); at least one row is left. */
static Span clip(Span s, int64_t size, uint32_t *pad_top) {
    int64_t end = s.at + s.n < size ? s.at + s.n : size;
    int64_t at = s.at < 0 ? 0 : s.at;
    if (at > size - 1)
        at = size - 1;
    if (end <= at)
        end = at + 1;
    *pad_top = s.at < 0 ? (uint32_t)-s.at : 0;
    return (Span){at, end - at};
}

static uint32_t in_size(const Graph *g, const Node *node, uint32_t axis) {
    Volume v = plan_volume(g, node->in[0]);
    return axis ? v.w : v.h;
}

static uint32_t mid_size(const Graph *g, const Node *node, uint32_t axis) {
    const ConvAttr *c = &node->attr.conv;
    return conv_out_size(in_size(g, node, axis), c->kernel[axis],
                         c->stride[axis], c->dilation[axis], c->pad[axis],
                         c->pad_end[axis]);
}

/* Inputs of a transposed convolution that reach the output rows. Instructions
 * cut one padding from both sides of what these make: no other rows can be
 * made by themselves. */
static Rows deconv_rows(const Graph *g, const Node *node, uint32_t axis,
                        Span out) {
    const ConvAttr *c = &node->attr.conv;
    int64_t size = in_size(g, node, axis), stride = c->stride[axis];
    int64_t reach = (int64_t)(c->kernel[axis] - 1) * c->dilation[axis];
    int64_t first = out.at + c->pad[axis] - reach;
    int64_t at = first > 0 ? (first + stride - 1) / stride : 0;
    int64_t last = (out.at + out.n - 1 + c->pad[axis]) / stride;
    last = last < size ? last : size - 1;
    int64_t pad = out.at + c->pad[axis] - at * stride;
    if (at > last || pad < 0 ||
        (last - at) * stride + reach + 1 - 2 * pad != out.n)
        return (Rows){0};
    return (Rows){(uint32_t)at, (uint32_t)(last - at + 1), (uint32_t)pad, 0};
}

/* An instruction says the padding on top; what lies behind is implied by the
 * output's height, and can be no more than that or the window reaches. */
static bool starts_inside(Span out, uint32_t stride, Span in, uint32_t pad) {
    return (out.n - 1) * stride < in.n + 2 * (int64_t)pad;
}

static bool windows_inside(const Node *node, uint32_t axis, Span out, Span mid,
                           Span in, const Rows *r) {
    const ConvAttr *conv = &node->attr.conv;
    const PoolAttr *pool = &node->attr.pool;
    bool global = pool->global;
    switch (node->op) {
    case OP_CONV:
        return starts_inside(out, conv->stride[axis], in, r->pad_top);
    case OP_POOL:
        return global || starts_inside(out, pool->stride[axis], in, r->pad_top);
    case OP_CONV_POOL:
        return starts_inside(mid, conv->stride[axis], in, r->pad_top) &&
               (global ||
                starts_inside(out, pool->stride[axis], mid, r->pool_pad_top));
    default:
        return true;
    }
}

/* in_rows is 0 where the rows cannot be computed from a plank: such as rows
 * that read nothing but padding behind the input. */
Rows axis_needed(const Graph *g, NodeId id, uint32_t axis, uint32_t at,
                 uint32_t n) {
    const Node *node = graph_node(g, id);
    int64_t size = in_size(g, node, axis);
    Span span = {at, n}, out = span, mid = span;
    Rows r = {0};
    switch (node->op) {
    case OP_DECONV:
        return deconv_rows(g, node, axis, span);
    case OP_CONV:
        span = conv_window(&node->attr.conv, axis, span);
        break;
    case OP_POOL:
        span = pool_window(&node->attr.pool, axis, span, (uint32_t)size);
        break;
    case OP_CONV_POOL:
        span =
            pool_window(&node->attr.pool, axis, span, mid_size(g, node, axis));
        mid = clip(span, mid_size(g, node, axis), &r.pool_pad_top);
        span = conv_window(&node->attr.conv, axis, mid);
        break;
    case OP_UPSAMPLE: {
        uint32_t f = node->attr.up.factor[axis];
        span = (Span){at / f, (at + n + f - 1) / f - at / f};
        break;
    }
    case OP_CONCAT:
        break;
    default:
        if (!node_goes_by_pixel(node) && !(axis == 0 && node_goes_by_row(node)))
            span = (Span){0, size};
    }
    if (span.at >= size)
        return (Rows){0};
    span = clip(span, size, &r.pad_top);
    if (!windows_inside(node, axis, out, mid, span, &r))
        return (Rows){0};
    r.in_row = (uint32_t)span.at;
    r.in_rows = (uint32_t)span.n;
    return r;
}

uint32_t axis_before_pool(const Graph *g, NodeId id, uint32_t axis, uint32_t at,
                          uint32_t n) {
    const Node *node = graph_node(g, id);
    uint32_t size = mid_size(g, node, axis), pad;
    Span span = pool_window(&node->attr.pool, axis, (Span){at, n}, size);
    return (uint32_t)clip(span, size, &pad).n;
}

Rows rows_needed(const Graph *g, NodeId id, uint32_t row, uint32_t rows) {
    return axis_needed(g, id, 0, row, rows);
}

static uint32_t pad_in_front(const Node *node, uint32_t axis) {
    switch (node->op) {
    case OP_CONV:
    case OP_CONV_POOL:
    case OP_DECONV:
        return node->attr.conv.pad[axis];
    case OP_POOL:
        return node->attr.pool.pad[axis];
    default:
        return 0;
    }
}

Rows axis_whole(const Graph *g, NodeId id, uint32_t axis) {
    const Node *node = graph_node(g, id);
    return (Rows){.in_rows = in_size(g, node, axis),
                  .pad_top = pad_in_front(node, axis),
                  .pool_pad_top =
                      node->op == OP_CONV_POOL ? node->attr.pool.pad[axis] : 0};
}

Rows columns_needed(const Graph *g, NodeId id, uint32_t col, uint32_t cols) {
    bool all = cols == plan_volume(g, graph_node(g, id)->out[0]).w;
    return all ? axis_whole(g, id, 1) : axis_needed(g, id, 1, col, cols);
}

/* ---- what transposed convolutions and upsampling make at a time ---- */

bool deconv_spreads(const Node *node) {
    const ConvAttr *c = &node->attr.conv;
    for (uint32_t axis = 0; axis < 2; axis++)
        if (c->kernel[axis] != c->stride[axis] || c->pad[axis] ||
            c->pad_end[axis] || c->dilation[axis] != 1)
            return false;
    return true;
}

uint32_t node_quantum(const Graph *g, NodeId id, uint32_t axis) {
    const Node *node = graph_node(g, id);
    if (node->op == OP_DECONV && deconv_spreads(node))
        return node->attr.conv.stride[axis];
    return node->op == OP_UPSAMPLE ? node->attr.up.factor[axis] : 1;
}

/* ---- tiles of the hardware ---- */

uint32_t tile_extent(const Graph *g, const Node *node, uint32_t axis,
                     uint32_t n) {
    uint32_t size = in_size(g, node, axis);
    Span span = {0, n};
    if (node->op == OP_CONV_POOL)
        span = conv_window(
            &node->attr.conv, axis,
            pool_window(&node->attr.pool, axis, span, mid_size(g, node, axis)));
    else if (node->op == OP_CONV)
        span = conv_window(&node->attr.conv, axis, span);
    else if (node->op == OP_POOL)
        span = pool_window(&node->attr.pool, axis, span, size);
    else if (node->op == OP_UPSAMPLE)
        span.n =
            (n + node->attr.up.factor[axis] - 1) / node->attr.up.factor[axis];
    else if (!node_goes_by_pixel(node))
        span.n = size;
    return span.n < size ? (uint32_t)span.n : size;
}

/* The part of an axis of the input behind a span of the output. */
static Span span_needed(const Graph *g, const Node *node, uint32_t axis,
                        Span span) {
    uint32_t size = in_size(g, node, axis), unused;
    if (node->op == OP_CONV_POOL) {
        uint32_t mid = mid_size(g, node, axis);
        span = pool_window(&node->attr.pool, axis, span, mid);
        span = conv_window(&node->attr.conv, axis, clip(span, mid, &unused));
    } else if (node->op == OP_CONV) {
        span = conv_window(&node->attr.conv, axis, span);
    } else if (node->op == OP_POOL) {
        span = pool_window(&node->attr.pool, axis, span, size);
    } else {
        return (Span){0, tile_extent(g, node, axis, (uint32_t)span.n)};
    }
    return clip(span, size, &unused);
}

void tile_needs(const Graph *g, NodeId id, uint32_t axis, uint32_t at,
                uint32_t n, uint32_t *in, uint32_t *made) {
    const Node *node = graph_node(g, id);
    uint32_t unused;
    *made = n;
    if (node->op == OP_CONV_POOL) {
        uint32_t mid = mid_size(g, node, axis);
        Span span = pool_window(&node->attr.pool, axis, (Span){at, n}, mid);
        *made = (uint32_t)clip(span, mid, &unused).n;
    }
    *in = (uint32_t)span_needed(g, node, axis, (Span){at, n}).n;
}

/* Input pixels along an axis, summed over its tiles. */
static uint64_t axis_pixels(const Graph *g, const Node *node, uint32_t axis,
                            uint32_t size, uint32_t tile) {
    uint64_t sum = 0;
    for (uint32_t at = 0; at < size; at += tile) {
        uint32_t n = tile < size - at ? tile : size - at;
        sum += (uint64_t)span_needed(g, node, axis, (Span){at, n}).n;
    }
    return sum;
}

uint64_t tiles_read(const Graph *g, const Node *node, uint32_t tile_w,
                    uint32_t tile_h) {
    Volume out = plan_volume(g, node->out[0]);
    return axis_pixels(g, node, 0, out.h, tile_h) *
           axis_pixels(g, node, 1, out.w, tile_w);
}
