/* build.c - nodes, constants, shapes and inputs; see net.h. */
#include "frontends/net/net.h"

#include <math.h>
#include <string.h>

Net net_open(Arena *arena, Diag *diag, const char *path,
             const ImportOptions *options, bool nhwc) {
    return (Net){
        .arena = arena,
        .diag = diag,
        .path = path,
        .options = options,
        .nhwc = nhwc,
        .g = graph_new(arena, file_stem(arena, path)),
        .loc = {path, 0, 0},
    };
}

void net_at(Net *net, const char *layer, const char *kind, Loc loc) {
    net->layer = layer;
    net->kind = kind;
    net->loc = loc;
}

bool net_fail(const Net *net, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(net->arena, format, args);
    va_end(args);
    diag_error(net->diag, net->loc, "layer \"%s\" (%s): %s", net->layer,
               net->kind, what);
    return false;
}

/* ---- nodes ---- */

NodeId net_node(Net *net, OpKind op, const char *part, uint32_t n,
                const TensorId *in) {
    const char *name = net->layer;
    for (uint32_t i = 0; i < n; i++)
        if (in[i].i == NONE)
            return NO_NODE;
    if (part)
        name = arena_printf(net->arena, "%s/%s", net->layer, part);
    return graph_add(net->g, op, name, net->loc, n, in);
}

TensorId net_out(Net *net, NodeId node) {
    if (node.i == NONE)
        return NO_TENSOR;
    TensorId out =
        graph_add_output(net->g, node, graph_node(net->g, node)->name);
    return graph_infer(net->g, node, net->diag) ? out : NO_TENSOR;
}

/* ---- constants ---- */

/* All values as floats, in the order of `shape`. */
static Const as_floats(Net *net, const Const *value, Shape shape) {
    float *all = ARENA_ARRAY(net->arena, float, shape_count(&shape));
    const_read(value, all);
    return net_floats(net, shape, all);
}

void net_const(Net *net, NodeId node, ConstRole role, const Const *value) {
    Shape want;
    if (node.i == NONE || !value)
        return;
    if (!graph_const_shape(net->g, node, role, &want))
        bug("a constant that its operator does not have");
    if (shape_count(&want) != shape_count(&value->shape)) {
        net_fail(net, "its %s has shape %s, not %s", const_role_name[role],
                 shape_text(net->arena, &value->shape),
                 shape_text(net->arena, &want));
        return;
    }
    Const c = *value;
    if (const_has_order(&c) && !shape_equal(&c.shape, &want))
        c = as_floats(net, value, want);
    c.shape = want;
    graph_node(net->g, node)->constant[role] = graph_add_const(net->g, c);
}

void net_fill(Net *net, NodeId node, ConstRole role, double value) {
    Const fill = {.kind = CONST_SEEDED, .mean = value};
    if (node.i == NONE)
        return;
    if (!graph_const_shape(net->g, node, role, &fill.shape))
        bug("a constant that its operator does not have");
    graph_node(net->g, node)->constant[role] = graph_add_const(net->g, fill);
}

Const net_floats(Net *net, Shape shape, const float *values) {
    (void)net;
    return (Const){.shape = shape, .kind = CONST_F32, .data = values};
}

Const net_number(Net *net, double value) {
    return (Const){.shape = {1, {1}},
                   .kind = CONST_F64,
                   .data = ARENA_COPY(net->arena, double, &value, 1)};
}

int net_whole_numbers(const Const *value, int64_t *out) {
    double number[2 * SHAPE_MAX_RANK];
    uint64_t n = shape_count(&value->shape);
    const_read_f64(value, number);
    for (uint64_t i = 0; i < n; i++)
        out[i] = number[i] > -0x1p40 && number[i] < 0x1p40 ? (int64_t)number[i]
                                                           : INT32_MAX;
    return (int)n;
}

bool net_shape_of(const Net *net, int n, const int64_t *dim, Shape *out) {
    *out = (Shape){.rank = n < 0 ? 0 : (uint32_t)n};
    for (int i = 0; i < n; i++) {
        if (dim[i] < 1 || dim[i] > INT32_MAX)
            return net_fail(net, "its shape is out of range");
        out->dim[i] = (uint32_t)dim[i];
    }
    return n >= 0 && (shape_count(out) < SHAPE_MAX_COUNT ||
                      net_fail(net, "its shape is out of range"));
}

/* Factors of the first axis stay, if it does. */
static bool keeps_factors(const Const *value, const Shape *view,
                          const uint32_t *perm) {
    bool first = perm[0] == 0 && view->dim[0] == shape_dim(&value->shape, 0);
    return (!value->mul0 || first) && !value->mul1;
}

Const net_permute(Net *net, const Const *value, Shape view,
                  const uint32_t *perm) {
    Const c = *value;
    bool fits = shape_count(&view) == shape_count(&value->shape);
    if (!fits || c.kind == CONST_SEEDED) {
        c.shape = view;
        for (uint32_t i = 0; i < view.rank; i++)
            c.shape.dim[i] = view.dim[perm[i]];
        return c;
    }
    if (!keeps_factors(value, &view, perm) || c.groups > 1 ||
        const_has_order(&c))
        c = as_floats(net, value, view);
    const double *mul0 = c.mul0;
    c.mul0 = NULL;
    c.shape = view;
    c = const_permuted(&c, perm);
    c.mul0 = mul0;
    return c;
}

/* ---- shapes ---- */

static const Shape *shape_of(const Net *net, TensorId tensor) {
    return &graph_tensor(net->g, tensor)->shape;
}

Shape net_shape(const Net *net, TensorId tensor) {
    Shape s = *shape_of(net, tensor);
    if (!net->nhwc || s.rank != 4)
        return s;
    return shape_nchw(s.dim[0], s.dim[2], s.dim[3], s.dim[1]);
}

bool net_axis(const Net *net, TensorId tensor, int64_t axis, uint32_t *out) {
    static const uint32_t of_graph[4] = {0, 2, 3, 1};
    uint32_t rank = shape_of(net, tensor)->rank;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return net_fail(net, "axis %lld is outside its input of %u dimensions",
                        (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    if (net->nhwc && rank == 4)
        *out = of_graph[*out];
    return true;
}

void same_padding(uint32_t in, uint32_t kernel, uint32_t stride,
                  uint32_t dilation, uint32_t *pad, uint32_t *pad_end) {
    if (!stride || !kernel)
        return;
    uint64_t windows = ((uint64_t)in + stride - 1) / stride;
    uint64_t extent = (uint64_t)dilation * (kernel - 1) + 1;
    uint64_t need = (windows - 1) * stride + extent;
    uint32_t total = need > in ? (uint32_t)(need - in) : 0;
    *pad = total / 2;
    *pad_end = total - total / 2;
}

void net_same_conv(const Net *net, TensorId in, ConvAttr *conv) {
    for (uint32_t i = 0; in.i != NONE && i < 2; i++)
        same_padding(shape_dim(shape_of(net, in), 2 + i), conv->kernel[i],
                     conv->stride[i], conv->dilation[i], &conv->pad[i],
                     &conv->pad_end[i]);
}

void net_same_pool(const Net *net, TensorId in, PoolAttr *pool) {
    for (uint32_t i = 0; in.i != NONE && i < 2; i++)
        same_padding(shape_dim(shape_of(net, in), 2 + i), pool->kernel[i],
                     pool->stride[i], 1, &pool->pad[i], &pool->pad_end[i]);
}

/* ---- inputs ---- */

static bool user_shape(const Net *net, Shape *out) {
    for (uint32_t i = 0; i < net->options->n_shapes; i++) {
        const ShapeSetting *setting = &net->options->shapes[i];
        if (!*setting->name || !strcmp(setting->name, net->layer)) {
            *out = setting->shape;
            return true;
        }
    }
    return false;
}

/* The file's, in the order of the graph; the batch is the user's, or 1. */
static bool file_shape(const Net *net, const Shape *shape, Shape *out) {
    *out = *shape;
    if (net->nhwc && shape->rank == 4)
        *out = shape_nchw(shape->dim[0], shape->dim[3], shape->dim[1],
                          shape->dim[2]);
    if (out->rank > 1 || !shape_dim(out, 0))
        out->dim[0] = 1;
    for (uint32_t i = 0; i < out->rank; i++)
        if (!out->dim[i])
            return false;
    return out->rank > 0;
}

TensorId net_input(Net *net, const Shape *shape) {
    Shape given;
    if (!user_shape(net, &given) && !file_shape(net, shape, &given))
        return net_none(net,
                        "the file does not say the shape of this input; give "
                        "it, for example --shape %s=1x3x224x224",
                        net->layer);
    if (net->options->batch && given.rank > 1)
        given.dim[0] = net->options->batch;
    NodeId node = graph_add(net->g, OP_INPUT, net->layer, net->loc, 0, NULL);
    TensorId out = graph_add_output(net->g, node, net->layer);
    graph_tensor(net->g, out)->shape = given;
    return graph_infer(net->g, node, net->diag) ? out : NO_TENSOR;
}
