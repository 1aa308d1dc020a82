/* ops_axes.c - TensorFlow Lite's operators that take axes apart or join
 * them; see ops.c for the rest. */
#include "frontends/tflite/tflite.h"

TensorId tfl_concat(Tfl *t, int kind) {
    TensorId *in = ARENA_ARRAY(t->net.arena, TensorId, t->in.n);
    (void)kind;
    for (uint32_t i = 0; i < t->in.n; i++)
        in[i] = tfl_in(t, i);
    if (!t->in.n)
        return net_none(&t->net, "has no inputs");
    return tfl_fused(t, 1,
                     net_concat(&t->net, t->in.n, in, tfl_option(t, 0, 0)));
}

/* What the output tensor says, whose batch follows the input's. */
TensorId tfl_reshape(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0);
    int32_t id = flat_at_i32(&t->flat, t->out, 0);
    (void)kind;
    if (in.i == NONE)
        return in;
    Shape from = net_shape(&t->net, in), to = t->tensor[id].shape;
    uint64_t have = shape_count(&from), rest = 1;
    for (uint32_t i = 1; i < to.rank; i++)
        rest *= to.dim[i] ? to.dim[i] : 1;
    if (to.rank > 1 && rest && have % rest == 0)
        to.dim[0] = (uint32_t)(have / rest);
    return net_reshape(&t->net, NULL, in, to);
}

TensorId tfl_transpose(Tfl *t, int kind) {
    int64_t perm[SHAPE_MAX_RANK];
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, perm);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_permute_axes(&t->net, tfl_in(t, 0), (uint32_t)n, perm);
}

TensorId tfl_reduce(Tfl *t, int kind) {
    int64_t axis[SHAPE_MAX_RANK];
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, axis);
    bool keep = flat_u8(&t->flat, t->options, 0, 0);
    return n < 0 ? NO_TENSOR
                 : net_reduce_axes(&t->net, tfl_in(t, 0), (ReduceKind)kind,
                                   (uint32_t)n, axis, keep);
}

TensorId tfl_pad(Tfl *t, int has_value) {
    int64_t amount[2 * SHAPE_MAX_RANK];
    int n = tfl_ints(t, 1, 2 * SHAPE_MAX_RANK, amount);
    const Const *c = has_value ? tfl_const(t, 2) : NULL;
    double value = 0;
    if (n < 0 || (has_value && !c))
        return NO_TENSOR;
    if (c && shape_count(&c->shape) != 1)
        return net_none(&t->net, "its value must be one number");
    if (c)
        const_read_f64(c, &value);
    return net_pads(&t->net, tfl_in(t, 0), (uint32_t)n, amount, PAD_ZERO,
                    value);
}

TensorId tfl_mirror_pad(Tfl *t, int kind) {
    int64_t amount[2 * SHAPE_MAX_RANK];
    int n = tfl_ints(t, 1, 2 * SHAPE_MAX_RANK, amount);
    bool symmetric = flat_u8(&t->flat, t->options, 0, 0);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_pads(&t->net, tfl_in(t, 0), (uint32_t)n, amount,
                            symmetric ? PAD_SYMMETRIC : PAD_REFLECT, 0);
}

/* Of height and width; the block comes second, pads or crops third. */
TensorId tfl_batches(Tfl *t, int to_batch) {
    int64_t block[2], edge[4];
    if (tfl_ints(t, 1, 2, block) != 2 || tfl_ints(t, 2, 4, edge) != 4)
        return net_none(&t->net, "needs blocks of height and width");
    return to_batch ? net_space_to_batch(&t->net, tfl_in(t, 0), block, edge)
                    : net_batch_to_space(&t->net, tfl_in(t, 0), block, edge);
}

TensorId tfl_resize(Tfl *t, int bilinear) {
    int64_t size[2];
    if (tfl_ints(t, 1, 2, size) != 2)
        return NO_TENSOR;
    uint32_t first = bilinear ? 2 : 0;
    Resize r = {.out = {(uint32_t)(size[0] & INT32_MAX),
                        (uint32_t)(size[1] & INT32_MAX)},
                .bilinear = bilinear,
                .align_corners = flat_u8(&t->flat, t->options, first, 0),
                .half_pixel = flat_u8(&t->flat, t->options, first + 1, 0)};
    return net_resize(&t->net, tfl_in(t, 0), &r);
}

TensorId tfl_blocks(Tfl *t, int to_depth) {
    uint32_t block = (uint32_t)tfl_option(t, 0, 0);
    TensorId in = tfl_in(t, 0);
    return to_depth ? net_space_to_depth(&t->net, in, block)
                    : net_depth_to_space(&t->net, in, block);
}

/* A size of -1 is all that is left. */
TensorId tfl_slice(Tfl *t, int kind) {
    int64_t begin[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK];
    TensorId in = tfl_in(t, 0);
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, begin);
    (void)kind;
    if (in.i == NONE || n < 0 || tfl_ints(t, 2, SHAPE_MAX_RANK, end) != n)
        return NO_TENSOR;
    Shape shape = net_shape(&t->net, in);
    if ((uint32_t)n != shape.rank)
        return net_none(&t->net, "has %d bounds for %u axes", n, shape.rank);
    for (int i = 0; i < n; i++)
        end[i] = end[i] < 0 ? shape.dim[i] : begin[i] + (end[i] & UINT32_MAX);
    return net_window(&t->net, in, begin, end);
}

/* Fields: begin_mask, end_mask, ellipsis, new_axis, shrink. */
TensorId tfl_strided_slice(Tfl *t, int kind) {
    int64_t begin[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK], step[SHAPE_MAX_RANK];
    Cut cut[SHAPE_MAX_RANK];
    TensorId in = tfl_in(t, 0);
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, begin);
    (void)kind;
    if (in.i == NONE || n < 0 || tfl_ints(t, 2, SHAPE_MAX_RANK, end) != n ||
        tfl_ints(t, 3, SHAPE_MAX_RANK, step) != n)
        return NO_TENSOR;
    if ((uint32_t)n != net_shape(&t->net, in).rank || tfl_option(t, 2, 0) ||
        tfl_option(t, 3, 0))
        return net_none(&t->net, "masks of axes are not supported");
    for (int i = 0; i < n; i++)
        cut[i] = (Cut){.begin = begin[i],
                       .end = end[i],
                       .step = step[i],
                       .from_edge = tfl_option(t, 0, 0) >> i & 1,
                       .to_edge = tfl_option(t, 1, 0) >> i & 1,
                       .one = tfl_option(t, 4, 0) >> i & 1};
    return net_cut(&t->net, in, cut);
}

TensorId tfl_put_outputs(Tfl *t, const TensorId *made) {
    for (uint32_t i = 1; i < t->out.n; i++) {
        int32_t id = flat_at_i32(&t->flat, t->out, i);
        if (id >= 0 && (uint32_t)id < t->n)
            t->tensor[id].made = made[i];
    }
    return t->out.n ? made[0] : NO_TENSOR;
}

/* Into equal parts: the axis comes first. */
TensorId tfl_split(Tfl *t, int kind) {
    int64_t axis;
    TensorId *out = ARENA_ARRAY(t->net.arena, TensorId, t->out.n);
    (void)kind;
    if (tfl_ints(t, 0, 1, &axis) != 1)
        return NO_TENSOR;
    net_split(&t->net, tfl_in(t, 1), axis, t->out.n, NULL, out);
    return tfl_put_outputs(t, out);
}

/* Into parts of those sizes: they and the axis come behind. */
TensorId tfl_split_v(Tfl *t, int kind) {
    int64_t size[2 * SHAPE_MAX_RANK], axis;
    TensorId *out = ARENA_ARRAY(t->net.arena, TensorId, t->out.n);
    (void)kind;
    if (tfl_ints(t, 1, 2 * SHAPE_MAX_RANK, size) != (int)t->out.n ||
        tfl_ints(t, 2, 1, &axis) != 1)
        return net_none(&t->net, "needs a size for each part");
    net_split(&t->net, tfl_in(t, 0), axis, t->out.n, size, out);
    return tfl_put_outputs(t, out);
}

TensorId tfl_pack(Tfl *t, int kind) {
    TensorId *in = ARENA_ARRAY(t->net.arena, TensorId, t->in.n);
    (void)kind;
    for (uint32_t i = 0; i < t->in.n; i++)
        in[i] = tfl_in(t, i);
    return net_stack(&t->net, t->in.n, in, tfl_option(t, 1, 0));
}

TensorId tfl_unpack(Tfl *t, int kind) {
    TensorId *out = ARENA_ARRAY(t->net.arena, TensorId, t->out.n);
    (void)kind;
    net_unstack(&t->net, tfl_in(t, 0), tfl_option(t, 1, 0), t->out.n, out);
    return tfl_put_outputs(t, out);
}

/* x / |x|, over the last axis. */
TensorId tfl_l2_norm(Tfl *t, int kind) {
    Net *net = &t->net;
    TensorId in = tfl_in(t, 0);
    const int64_t last = -1;
    (void)kind;
    TensorId square[2] = {in, in};
    TensorId sum = net_elt(net, "square", ELT_MUL, 2, square);
    sum = net_reduce_axes(net, sum, REDUCE_SUM, 1, &last, true);
    sum = net_act(net, "length", sum, (Act){.kind = ACT_SQRT});
    TensorId both[2] = {in, sum};
    return net_elt(net, "norm", ELT_DIV, 2, both);
}
