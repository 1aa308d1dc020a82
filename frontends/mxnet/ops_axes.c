/* ops_axes.c - MXNet's layers that take axes apart or join them; see
 * ops.c for the rest. */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

TensorId mx_concat(Mx *mx, int kind) {
    uint32_t n = mx->at->n_in;
    TensorId *in = ARENA_ARRAY(mx->net.arena, TensorId, n);
    (void)kind;
    for (uint32_t i = 0; i < n; i++)
        in[i] = mx_in(mx, i);
    if (!n)
        return net_none(&mx->net, "has no inputs");
    return net_concat(&mx->net, n, in, (int64_t)mx_num(mx, "dim", 1));
}

TensorId mx_flatten(Mx *mx, int kind) {
    (void)kind;
    return net_flatten(&mx->net, mx_in(mx, 0));
}

/* What a loss computes when no one trains. */
TensorId mx_softmax_output(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    (void)kind;
    if (mx_bool(mx, "multi_output", false) ||
        !strcmp(mx_str(mx, "mode", "instance"), "channel"))
        return net_softmax(&mx->net, in, 1);
    if (in.i != NONE && net_shape(&mx->net, in).rank > 2 &&
        !mx_bool(mx, "preserve_shape", false)) {
        Net *net = &mx->net;
        Shape shape = net_shape(net, in);
        uint64_t rest = shape_count(&shape) / shape.dim[0];
        in = net_reshape(net, "flatten", in,
                         (Shape){2, {shape.dim[0], (uint32_t)rest}});
    }
    return net_softmax(&mx->net, in, -1);
}

TensorId mx_softmax(Mx *mx, int kind) {
    (void)kind;
    return net_softmax(&mx->net, mx_in(mx, 0), (int64_t)mx_num(mx, "axis", -1));
}

/* One number of a shape: how many of the input's dimensions it takes, from
 * `at` on. 0 keeps one, -1 takes what is left of all, -2 keeps the rest, -3
 * joins two. */
static bool take_dims(const Shape *from, uint32_t *at, int64_t want,
                      Shape *to) {
    uint32_t left = *at < from->rank ? from->rank - *at : 0;
    uint32_t takes = want == -2 ? left : want == -3 ? 2 : 1;
    if (want < -3 || want > INT32_MAX || (want == -3 && left < 2) ||
        (want == 0 && !left) || to->rank + takes > SHAPE_MAX_RANK)
        return false;
    const uint32_t *dim = from->dim + *at;
    for (uint32_t i = 0; want == -2 && i < takes; i++)
        to->dim[to->rank++] = dim[i];
    if (want == -3)
        to->dim[to->rank++] = dim[0] * dim[1];
    else if (want != -2)
        to->dim[to->rank++] = want > 0 ? (uint32_t)want : want < 0 ? 1 : dim[0];
    *at += takes;
    return true;
}

TensorId mx_reshape(Mx *mx, int kind) {
    int64_t want[SHAPE_MAX_RANK];
    int n = mx_tuple(mx, "shape", SHAPE_MAX_RANK, want), open = -1;
    TensorId in = mx_in(mx, 0);
    uint32_t at = 0;
    (void)kind;
    if (n < 0 || in.i == NONE)
        return NO_TENSOR;
    Shape from = net_shape(&mx->net, in), to = {0};
    bool good = n > 0 && !mx_bool(mx, "reverse", false);
    for (int i = 0; good && i < n; i++) {
        good = want[i] != -1 || open < 0;
        open = want[i] == -1 ? (int)to.rank : open;
        good = good && take_dims(&from, &at, want[i], &to);
    }
    if (!good)
        return net_none(&mx->net, "shape %s is not supported",
                        mx_str(mx, "shape", ""));
    uint64_t known = shape_count(&to);
    if (open >= 0 && known && known != UINT64_MAX)
        to.dim[open] = (uint32_t)(shape_count(&from) / known);
    return net_reshape(&mx->net, NULL, in, to);
}

TensorId mx_expand_dims(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    double axis = mx_num(mx, "axis", 0);
    (void)kind;
    if (in.i == NONE)
        return in;
    Shape from = net_shape(&mx->net, in), to = {.rank = from.rank + 1};
    axis += axis < 0 ? to.rank : 0;
    if (!(axis >= 0 && axis < to.rank) || to.rank > SHAPE_MAX_RANK)
        return net_none(&mx->net, "axis is outside its input");
    for (uint32_t i = 0, k = 0; i < to.rank; i++)
        to.dim[i] = i == (uint32_t)axis ? 1 : from.dim[k++];
    return net_reshape(&mx->net, NULL, in, to);
}

TensorId mx_transpose(Mx *mx, int kind) {
    int64_t axes[SHAPE_MAX_RANK];
    int n = mx_tuple(mx, "axes", SHAPE_MAX_RANK, axes);
    Shape perm = {0};
    (void)kind;
    for (int i = 0; i < n; i++)
        perm.dim[perm.rank++] = (uint32_t)(axes[i] & INT32_MAX);
    return net_transpose(&mx->net, NULL, mx_in(mx, 0), perm);
}

TensorId mx_slice_axis(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    uint32_t axis;
    (void)kind;
    if (in.i == NONE ||
        !net_axis(&mx->net, in, (int64_t)mx_num(mx, "axis", 0), &axis))
        return NO_TENSOR;
    double size = net_shape(&mx->net, in).dim[axis];
    double begin = mx_num(mx, "begin", 0), end = mx_num(mx, "end", size);
    begin += begin < 0 ? size : 0;
    end += end < 0 ? size : 0;
    if (!(begin >= 0 && end > begin && end <= size))
        return net_none(&mx->net, "[%g, %g) is outside the axis", begin, end);
    return net_slice(&mx->net, NULL, in, axis, (uint32_t)begin, (uint32_t)end);
}

/* Several outputs, one a slice. */
TensorId mx_split(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0), *out;
    uint32_t n = mx_whole(mx, "num_outputs", 1), axis, size;
    MxNode *node = &mx->node[mx->at - mx->node];
    (void)kind;
    if (in.i == NONE ||
        !net_axis(&mx->net, in, (int64_t)mx_num(mx, "axis", 1), &axis))
        return NO_TENSOR;
    size = net_shape(&mx->net, in).dim[axis];
    bool squeeze = mx_bool(mx, "squeeze_axis", false);
    if (!n || size % n || (squeeze && size != n))
        return net_none(&mx->net, "cannot split %u into %u", size, n);
    out = ARENA_ARRAY(mx->net.arena, TensorId, n);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = net_slice(&mx->net, arena_printf(mx->net.arena, "%u", i), in,
                           axis, i * (size / n), (i + 1) * (size / n));
        if (squeeze)
            out[i] = net_squeeze(&mx->net, out[i], 1u << axis);
    }
    node->out = out;
    node->n_out = n;
    return out[0];
}

TensorId mx_reduce(Mx *mx, int kind) {
    int64_t axes[SHAPE_MAX_RANK];
    int n = mx_tuple(mx, "axis", SHAPE_MAX_RANK, axes);
    TensorId in = mx_in(mx, 0);
    uint32_t bits = 0, axis;
    if (in.i == NONE || n < 0)
        return NO_TENSOR;
    Shape shape = net_shape(&mx->net, in), left = {0};
    for (int i = 0; i < n; i++) {
        if (!net_axis(&mx->net, in, axes[i], &axis))
            return NO_TENSOR;
        bits |= 1u << axis;
    }
    uint32_t all = (1u << shape.rank) - 1;
    bits = !n ? all : mx_bool(mx, "exclude", false) ? all & ~bits : bits;
    bool keep = mx_bool(mx, "keepdims", false);
    TensorId out = net_reduce(&mx->net, keep ? NULL : "reduce", in,
                              (ReduceKind)kind, bits);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (!(bits >> i & 1))
            left.dim[left.rank++] = shape.dim[i];
    if (!left.rank)
        left = (Shape){1, {1}};
    return keep ? out : net_reshape(&mx->net, NULL, out, left);
}
