/* axes.c - layers that work along axes, and functions of a tensor and
 * constants; see net.h. */
#include "frontends/net/net.h"

#include <math.h>

static const Shape *shape_of(const Net *net, TensorId tensor) {
    return &graph_tensor(net->g, tensor)->shape;
}

/* ---- a tensor and constants ---- */

/* The one number that a constant is; false if it is more. */
static bool is_number(const Const *value, double *out) {
    if (shape_count(&value->shape) != 1)
        return false;
    const_read_f64(value, out);
    return true;
}

static TensorId with_number(Net *net, EltKind kind, TensorId in, double v,
                            bool first) {
    switch (kind) {
    case ELT_ADD:
        return net_affine(net, NULL, in, 1, v);
    case ELT_SUB:
        return net_affine(net, NULL, in, first ? -1 : 1, first ? v : -v);
    case ELT_MUL:
        return net_affine(net, NULL, in, v, 0);
    default:
        return net_affine(net, NULL, in, 1 / v, 0);
    }
}

/* Whether the values lie along the channels alone. */
static bool by_channel(const Net *net, TensorId in, const Const *value) {
    Shape shape = net_shape(net, in), c = value->shape;
    uint32_t channel = net->nhwc ? shape.rank - 1 : 1;
    if (shape.rank < 2 || c.rank > shape.rank || shape.rank == 3)
        return false;
    for (uint32_t i = 0; i < c.rank; i++) {
        uint32_t axis = i + shape.rank - c.rank;
        if (c.dim[i] != (axis == channel ? shape.dim[axis] : 1))
            return false;
    }
    return c.rank > 0 && shape_count(&c) == shape.dim[channel];
}

/* -c or 1 / c, where the operation asks for it. */
static Const inverse(Net *net, EltKind kind, const Const *value) {
    uint64_t n = shape_count(&value->shape);
    if (kind == ELT_ADD || kind == ELT_MUL || value->kind == CONST_SEEDED)
        return *value;
    double *v = ARENA_ARRAY(net->arena, double, n);
    const_read_f64(value, v);
    for (uint64_t i = 0; i < n; i++)
        v[i] = kind == ELT_SUB ? -v[i] : 1 / v[i];
    return (Const){.shape = value->shape, .kind = CONST_F64, .data = v};
}

static TensorId with_channels(Net *net, EltKind kind, TensorId in,
                              const Const *value) {
    NodeId id = net_node(net, OP_SCALE, NULL, 1, &in);
    bool sum = kind == ELT_ADD || kind == ELT_SUB;
    Const c = inverse(net, kind, value);
    graph_node(net->g, id)->no_bias = !sum;
    if (sum)
        net_fill(net, id, CONST_SCALE, 1);
    net_const(net, id, sum ? CONST_BIAS : CONST_SCALE, &c);
    return net_out(net, id);
}

/* Powers that are simpler functions, and bounds. NO_TENSOR: others. */
static TensorId simpler(Net *net, EltKind kind, TensorId in, double v) {
    TensorId twice[] = {in, in};
    const double powers[] = {1, 2, 0.5, -1, -0.5};
    uint32_t at = 0;
    if (kind == ELT_MAX)
        return net_act(net, NULL, in,
                       (Act){.kind = ACT_CLIP, .lo = v, .hi = INFINITY});
    if (kind == ELT_MIN)
        return net_act(net, NULL, in,
                       (Act){.kind = ACT_CLIP, .lo = -INFINITY, .hi = v});
    while (at < 5 && (v < powers[at] || v > powers[at]))
        at++;
    if (kind != ELT_POW || at == 5)
        return NO_TENSOR;
    if (at < 2)
        return at ? net_elt(net, NULL, ELT_MUL, 2, twice)
                  : net_identity(net, in);
    if (at != 3)
        in = net_act(net, at == 2 ? NULL : "root", in, (Act){.kind = ACT_SQRT});
    return at == 2 ? in : net_act(net, NULL, in, (Act){.kind = ACT_RECIPROCAL});
}

TensorId net_elt_const(Net *net, EltKind kind, TensorId in, const Const *value,
                       bool first) {
    bool linear = kind == ELT_ADD || kind == ELT_MUL || kind == ELT_SUB ||
                  (kind == ELT_DIV && !first);
    double number;
    if (in.i == NONE)
        return in;
    if (is_number(value, &number)) {
        TensorId simple = linear  ? with_number(net, kind, in, number, first)
                          : first ? NO_TENSOR
                                  : simpler(net, kind, in, number);
        if (linear || simple.i != NONE)
            return simple;
    }
    if (linear && by_channel(net, in, value) && !(kind == ELT_SUB && first))
        return with_channels(net, kind, in, value);
    TensorId constant = net_constant(net, "constant", value);
    TensorId both[2] = {first ? constant : in, first ? in : constant};
    return net_elt(net, NULL, kind, 2, both);
}

/* ---- parts and shapes ---- */

TensorId net_reduce_axes(Net *net, TensorId in, ReduceKind kind, uint32_t n,
                         const int64_t *axis, bool keep) {
    uint32_t bits = 0, of_file = 0, at;
    if (in.i == NONE)
        return in;
    int64_t rank = shape_of(net, in)->rank;
    for (uint32_t i = 0; i < n; i++) {
        if (!net_axis(net, in, axis[i], &at))
            return NO_TENSOR;
        bits |= 1u << at;
        of_file |= 1u << (axis[i] < 0 ? axis[i] + rank : axis[i]);
    }
    TensorId out = net_reduce(net, keep ? NULL : "reduce", in, kind, bits);
    return keep || !n ? out : net_squeeze(net, out, of_file);
}

TensorId net_permute_axes(Net *net, TensorId in, uint32_t n,
                          const int64_t *perm) {
    Shape order = {.rank = n};
    uint32_t rank = in.i == NONE ? n : shape_of(net, in)->rank;
    static const uint32_t of_graph[4] = {0, 2, 3, 1}, of_file[4] = {0, 3, 1, 2};
    if (n != rank)
        return net_none(net, "its order of axes does not fit its input");
    for (uint32_t i = 0; i < n; i++) {
        bool image = net->nhwc && n == 4;
        int64_t from = perm[image ? of_file[i] : i];
        if (from < 0 || from >= n)
            return net_none(net, "its order of axes does not fit its input");
        order.dim[i] = image ? of_graph[from] : (uint32_t)from;
    }
    return net_transpose(net, NULL, in, order);
}

/* ---- products ---- */

/* Matrices as the product reads them: images of the file have their last two
 * axes apart in the graph, so they become one axis less. */
static TensorId factor_of(Net *net, TensorId in, bool turned,
                          const char *part) {
    if (in.i == NONE)
        return in;
    Shape s = net_shape(net, in);
    if (s.rank < 2)
        return net_none(net, "needs factors of two dimensions");
    if (net->nhwc && s.rank == 4)
        in = net_reshape(net, arena_printf(net->arena, "%s/matrices", part), in,
                         (Shape){3, {s.dim[0] * s.dim[1], s.dim[2], s.dim[3]}});
    if (!turned || in.i == NONE)
        return in;
    Shape perm = {.rank = shape_of(net, in)->rank};
    for (uint32_t i = 0; i < perm.rank; i++)
        perm.dim[i] = i;
    perm.dim[perm.rank - 1] = perm.rank - 2;
    perm.dim[perm.rank - 2] = perm.rank - 1;
    return net_transpose(net, part, in, perm);
}

TensorId net_matmul(Net *net, const TensorId in[2], const bool turned[2]) {
    TensorId factor[2] = {factor_of(net, in[0], turned[0], "first"),
                          factor_of(net, in[1], turned[1], "second")};
    if (factor[0].i == NONE || factor[1].i == NONE)
        return NO_TENSOR;
    Shape first = net_shape(net, in[0]);
    bool image = net->nhwc && first.rank == 4;
    if (image && net_shape(net, in[1]).rank != 4)
        return net_none(net, "factors of other dimensions are not supported");
    TensorId out = net_out(
        net, net_node(net, OP_MATMUL, image ? "products" : NULL, 2, factor));
    if (!image || out.i == NONE)
        return out;
    const Shape *made = shape_of(net, out);
    return net_reshape(
        net, NULL, out,
        shape_nchw(first.dim[0], first.dim[1], made->dim[1], made->dim[2]));
}

/* ---- sizes of images ---- */

/* Where output `i` of `out` looks in an axis of `in`. */
static double source(const Resize *r, uint32_t i, uint32_t in, uint32_t out) {
    if (r->align_corners && out > 1)
        return i * ((double)in - 1) / ((double)out - 1);
    double scale = (double)in / out;
    return r->half_pixel ? (i + 0.5) * scale - (r->bilinear ? 0.5 : 0)
                         : i * scale;
}

static double within(double at, uint32_t size) {
    return at < 0 ? 0 : at > size - 1.0 ? size - 1.0 : at;
}

static void set_taps(const Resize *r, uint32_t i, uint32_t in, uint32_t out,
                     float *index, float *factor) {
    double at = source(r, i, in, out);
    if (!r->bilinear) {
        at = within(r->align_corners ? round(at) : floor(at), in);
        index[i] = (float)at;
        factor[i] = 1;
        return;
    }
    double low = floor(within(at, in)), rest = within(at, in) - low;
    index[2 * i] = (float)low;
    index[2 * i + 1] = (float)within(low + 1, in);
    factor[2 * i] = (float)(1 - rest);
    factor[2 * i + 1] = (float)rest;
}

static TensorId resize_axis(Net *net, TensorId in, const Resize *r, uint32_t i,
                            const char *part) {
    uint32_t n = r->out[i], taps = r->bilinear ? 2 : 1;
    if (in.i == NONE)
        return in;
    uint32_t size = shape_of(net, in)->dim[2 + i];
    if (!n || n > 1 << 20)
        return net_none(net, "cannot resize to %u", n);
    float *index = ARENA_ARRAY(net->arena, float, (size_t)n *taps);
    float *factor = ARENA_ARRAY(net->arena, float, (size_t)n *taps);
    for (uint32_t k = 0; k < n; k++)
        set_taps(r, k, size, n, index, factor);
    return net_gather(net, part, in, 2 + i, (Shape){2, {n, taps}}, index,
                      factor);
}

TensorId net_resize(Net *net, TensorId in, const Resize *r) {
    if (in.i == NONE)
        return in;
    Shape s = *shape_of(net, in);
    if (s.rank != 4)
        return net_none(net, "needs an image");
    bool whole = !(r->out[0] % s.dim[2]) && !(r->out[1] % s.dim[3]);
    if (r->bilinear || r->align_corners || !whole || !r->out[0] || !r->out[1]) {
        in = resize_axis(net, in, r, 0, "rows");
        return resize_axis(net, in, r, 1, NULL);
    }
    NodeId id = net_node(net, OP_UPSAMPLE, NULL, 1, &in);
    for (int i = 0; i < 2; i++)
        graph_node(net->g, id)->attr.up.factor[i] = r->out[i] / s.dim[2 + i];
    return net_out(net, id);
}

/* ---- blocks ---- */

static TensorId blocks(Net *net, TensorId in, Shape apart, Shape perm,
                       Shape out) {
    bool nhwc = net->nhwc;
    net->nhwc = false; /* shapes below are the graph's */
    TensorId t = net_reshape(net, "apart", in, apart);
    t = net_transpose(net, "turn", t, perm);
    t = net_reshape(net, NULL, t, out);
    net->nhwc = nhwc;
    return t;
}

TensorId net_space_to_depth(Net *net, TensorId in, uint32_t b) {
    if (in.i == NONE)
        return in;
    Shape s = *shape_of(net, in);
    if (s.rank != 4 || !b || s.dim[2] % b || s.dim[3] % b || b > 1024)
        return net_none(net, "blocks of %u do not fit its input", b);
    uint32_t n = s.dim[0], c = s.dim[1], h = s.dim[2] / b, w = s.dim[3] / b;
    return blocks(net, in, (Shape){6, {n, c, h, b, w, b}},
                  (Shape){6, {0, 3, 5, 1, 2, 4}},
                  shape_nchw(n, c * b * b, h, w));
}

TensorId net_depth_to_space(Net *net, TensorId in, uint32_t b) {
    if (in.i == NONE)
        return in;
    Shape s = *shape_of(net, in);
    if (s.rank != 4 || !b || b > 1024 || s.dim[1] % (b * b))
        return net_none(net, "blocks of %u do not fit its input", b);
    uint32_t n = s.dim[0], c = s.dim[1] / b / b, h = s.dim[2], w = s.dim[3];
    return blocks(net, in, (Shape){6, {n, b, b, c, h, w}},
                  (Shape){6, {0, 3, 4, 1, 5, 2}},
                  shape_nchw(n, c, h * b, w * b));
}
