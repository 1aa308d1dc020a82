/* ops_axes.c - TensorFlow's layers that take axes apart, and the shapes that
 * graphs compute for themselves. Axes, sizes and bounds must be constants. */
#include "frontends/tensorflow/tf.h"

#include <string.h>

TensorId tf_be_ints(Tf *tf, uint32_t n, const int64_t *value, bool scalar) {
    double *data = ARENA_ARRAY(tf->net.arena, double, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        data[i] = (double)value[i];
    Shape shape = {scalar ? 0 : 1, {n}};
    return tf_be_const(
        tf, (Const){.shape = shape, .kind = CONST_F64, .data = data}, true);
}

/* A shape that the graph asks for, in the order of the file. */
TensorId tf_shape_of(Tf *tf, int kind) {
    TensorId in = tf_in(tf, 0);
    int64_t dim[SHAPE_MAX_RANK];
    (void)kind;
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(&tf->net, in);
    for (uint32_t i = 0; i < shape.rank; i++)
        dim[i] = shape.dim[i];
    return tf_be_ints(tf, shape.rank, dim, false);
}

/* How many axes a tensor has, or elements. */
TensorId tf_rank_of(Tf *tf, int elements) {
    const Const *value = tf_maybe(tf, 0);
    TensorId in = value ? NO_TENSOR : tf_in(tf, 0);
    if (!value && in.i == NONE)
        return in;
    Shape shape = value ? value->shape : net_shape(&tf->net, in);
    int64_t n = elements ? (int64_t)shape_count(&shape) : shape.rank;
    return tf_be_ints(tf, 1, &n, true);
}

/* A shape full of one number. */
static TensorId be_full(Tf *tf, Shape shape, double value) {
    return tf_be_const(
        tf, (Const){.shape = shape, .kind = CONST_SEEDED, .mean = value}, true);
}

TensorId tf_like(Tf *tf, int number) {
    const Const *value = tf_maybe(tf, 0);
    TensorId in = value ? NO_TENSOR : tf_in(tf, 0);
    if (!value && in.i == NONE)
        return in;
    return be_full(tf, value ? value->shape : net_shape(&tf->net, in), number);
}

TensorId tf_fill(Tf *tf, int kind) {
    Shape to;
    double value;
    (void)kind;
    if (!tf_shape_in(tf, 0, &to))
        return NO_TENSOR;
    if (!tf_maybe(tf, 1))
        return net_broadcast(&tf->net, tf_in(tf, 1), to);
    return tf_number_in(tf, 1, &value) ? be_full(tf, to, value) : NO_TENSOR;
}

TensorId tf_range(Tf *tf, int kind) {
    double at[3];
    Const value;
    (void)kind;
    for (uint32_t i = 0; i < 3; i++)
        if (!tf_number_in(tf, i, &at[i]))
            return NO_TENSOR;
    return net_range(&tf->net, at, 1 << 20, &value)
               ? tf_be_const(tf, value, true)
               : NO_TENSOR;
}

static TensorId pack_ints(Tf *tf) {
    int64_t value[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < tf->at->n_in; i++)
        if (tf_ints(tf, i, 1, &value[i]) != 1)
            return NO_TENSOR;
    return tf_be_ints(tf, tf->at->n_in, value, false);
}

/* Numbers as a shape, or tensors side by side along a new axis. */
TensorId tf_pack(Tf *tf, int kind) {
    uint32_t n = tf->at->n_in;
    (void)kind;
    if (n <= SHAPE_MAX_RANK && tf_all_known(tf))
        return pack_ints(tf);
    TensorId *in = ARENA_ARRAY(tf->net.arena, TensorId, n);
    for (uint32_t i = 0; i < n; i++)
        in[i] = tf_in(tf, i);
    return net_stack(&tf->net, n, in, (int64_t)tf_num(tf, "axis", 0));
}

/* Parts of an axis that is gone, one an output. */
TensorId tf_unpack(Tf *tf, int kind) {
    TensorId in = tf_in(tf, 0);
    double n = tf_num(tf, "num", 0);
    (void)kind;
    if (in.i == NONE || !(n >= 1 && n <= 4096))
        return net_none(&tf->net, "num is out of range");
    tf->at->n_out = (uint32_t)n;
    tf->at->out = ARENA_ARRAY(tf->net.arena, TensorId, tf->at->n_out);
    net_unstack(&tf->net, in, (int64_t)tf_num(tf, "axis", 0), tf->at->n_out,
                tf->at->out);
    return tf->at->out[0];
}

TensorId tf_concat(Tf *tf, int axis_last) {
    uint32_t n = tf->at->n_in, from = axis_last ? 0 : 1;
    int64_t axis;
    if (n < 2 || tf_ints(tf, axis_last ? n - 1 : 0, 1, &axis) != 1)
        return NO_TENSOR;
    TensorId *in = ARENA_ARRAY(tf->net.arena, TensorId, n - 1);
    for (uint32_t i = 0; i + 1 < n; i++)
        in[i] = tf_in(tf, i + from);
    return net_concat(&tf->net, n - 1, in, axis);
}

TensorId tf_reshape(Tf *tf, int kind) {
    int64_t want[SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, want), open = -1;
    const Const *value = tf_maybe(tf, 0);
    TensorId in = n < 0 || value ? NO_TENSOR : tf_in(tf, 0);
    (void)kind;
    if (n < 0 || (in.i == NONE && !value))
        return NO_TENSOR;
    Shape from = value ? value->shape : net_shape(&tf->net, in);
    Shape to = {.rank = (uint32_t)n};
    for (int i = 0; i < n; i++) {
        if (want[i] < -1 || want[i] > INT32_MAX || (want[i] < 0 && open >= 0))
            return net_none(&tf->net, "its shape is out of range");
        open = want[i] < 0 ? i : open;
        to.dim[i] = want[i] < 0 ? 1 : (uint32_t)want[i];
    }
    uint64_t rest = shape_count(&to);
    if (open >= 0 && rest && rest != UINT64_MAX)
        to.dim[open] = (uint32_t)(shape_count(&from) / rest);
    /* A batch that was written into the file follows the input's. */
    if (open < 0 && rest && n > 1 && shape_count(&from) != rest)
        to.dim[0] = (uint32_t)(shape_count(&from) / (rest / to.dim[0]));
    if (!value)
        return net_reshape(&tf->net, NULL, in, to);
    Const c = *value;
    c.shape = to;
    if (shape_count(&to) != shape_count(&from))
        return net_none(&tf->net, "its shape does not fit");
    return tf_be_const(tf, c, tf->node[tf->at->in[0].node].known);
}

TensorId tf_squeeze(Tf *tf, int kind) {
    int64_t axis[SHAPE_MAX_RANK];
    int n = tf_list(tf, "squeeze_dims", SHAPE_MAX_RANK, axis);
    TensorId in = tf_in(tf, 0);
    uint32_t bits = 0;
    (void)kind;
    if (n == 0)
        n = tf_list(tf, "axis", SHAPE_MAX_RANK, axis);
    if (n < 0 || in.i == NONE)
        return NO_TENSOR;
    int64_t rank = net_shape(&tf->net, in).rank;
    for (int i = 0; i < n; i++) {
        if (axis[i] < -rank || axis[i] >= rank)
            return net_none(&tf->net, "axis %lld is outside its input",
                            (long long)axis[i]);
        bits |= 1u << (axis[i] < 0 ? axis[i] + rank : axis[i]);
    }
    return net_squeeze(&tf->net, in, bits);
}

TensorId tf_expand(Tf *tf, int kind) {
    int64_t axis;
    TensorId in = tf_in(tf, 0);
    (void)kind;
    if (in.i == NONE || tf_ints(tf, 1, 1, &axis) != 1)
        return NO_TENSOR;
    Shape from = net_shape(&tf->net, in), to = {.rank = from.rank + 1};
    axis += axis < 0 ? to.rank : 0;
    if (axis < 0 || axis >= to.rank || to.rank > SHAPE_MAX_RANK)
        return net_none(&tf->net, "its axis is outside its input");
    for (uint32_t i = 0, k = 0; i < to.rank; i++)
        to.dim[i] = i == axis ? 1 : from.dim[k++];
    return net_reshape(&tf->net, NULL, in, to);
}

TensorId tf_transpose(Tf *tf, int kind) {
    int64_t perm[SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, perm);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_permute_axes(&tf->net, tf_in(tf, 0), (uint32_t)n, perm);
}

TensorId tf_reduce(Tf *tf, int kind) {
    int64_t axis[SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, axis);
    bool keep =
        tf_bool(tf, "keep_dims", false) || tf_bool(tf, "keepdims", false);
    return n < 0 ? NO_TENSOR
                 : net_reduce_axes(&tf->net, tf_in(tf, 0), (ReduceKind)kind,
                                   (uint32_t)n, axis, keep);
}

TensorId tf_pad(Tf *tf, int has_value) {
    int64_t amount[2 * SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, 2 * SHAPE_MAX_RANK, amount);
    const Const *c = has_value ? tf_const(tf, 2) : NULL;
    double value = 0;
    if (n < 0 || (has_value && !c))
        return NO_TENSOR;
    if (c && shape_count(&c->shape) != 1)
        return net_none(&tf->net, "its value must be one number");
    if (c)
        const_read_f64(c, &value);
    return net_pads(&tf->net, tf_in(tf, 0), (uint32_t)n, amount, PAD_ZERO,
                    value);
}

TensorId tf_mirror_pad(Tf *tf, int kind) {
    int64_t amount[2 * SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, 2 * SHAPE_MAX_RANK, amount);
    bool reflect = !strcmp(tf_str(tf, "mode", "REFLECT"), "REFLECT");
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_pads(&tf->net, tf_in(tf, 0), (uint32_t)n, amount,
                            reflect ? PAD_REFLECT : PAD_SYMMETRIC, 0);
}

/* Of height and width; the block comes second, pads or crops third. */
TensorId tf_batches(Tf *tf, int to_batch) {
    int64_t block[2], edge[4];
    if (tf_ints(tf, 1, 2, block) != 2 || tf_ints(tf, 2, 4, edge) != 4)
        return net_none(&tf->net, "needs blocks of height and width");
    return to_batch ? net_space_to_batch(&tf->net, tf_in(tf, 0), block, edge)
                    : net_batch_to_space(&tf->net, tf_in(tf, 0), block, edge);
}

TensorId tf_resize(Tf *tf, int bilinear) {
    int64_t size[2];
    if (tf_ints(tf, 1, 2, size) != 2)
        return NO_TENSOR;
    Resize r = {.out = {(uint32_t)(size[0] & INT32_MAX),
                        (uint32_t)(size[1] & INT32_MAX)},
                .bilinear = bilinear,
                .align_corners = tf_bool(tf, "align_corners", false),
                .half_pixel = tf_bool(tf, "half_pixel_centers", false)};
    return net_resize(&tf->net, tf_in(tf, 0), &r);
}

TensorId tf_blocks(Tf *tf, int to_depth) {
    double size = tf_num(tf, "block_size", 0);
    uint32_t block = size >= 1 && size < 1024 ? (uint32_t)size : 0;
    TensorId in = tf_in(tf, 0);
    return to_depth ? net_space_to_depth(&tf->net, in, block)
                    : net_depth_to_space(&tf->net, in, block);
}

TensorId tf_slice(Tf *tf, int kind) {
    int64_t begin[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK];
    TensorId in = tf_in(tf, 0);
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, begin);
    (void)kind;
    if (in.i == NONE || n < 0 || tf_ints(tf, 2, SHAPE_MAX_RANK, end) != n)
        return NO_TENSOR;
    Shape shape = net_shape(&tf->net, in);
    if ((uint32_t)n != shape.rank)
        return net_none(&tf->net, "has %d bounds for %u axes", n, shape.rank);
    for (int i = 0; i < n; i++)
        end[i] = end[i] < 0 ? shape.dim[i] : begin[i] + end[i];
    return net_window(&tf->net, in, begin, end);
}

static uint32_t mask(const Tf *tf, const char *key) {
    double bits = tf_num(tf, key, 0);
    return bits >= 0 && bits < 65536 ? (uint32_t)bits : 0;
}

/* Slices of `rank` axes; those that are not told, or stand for an ellipsis,
 * are whole. */
static bool read_cuts(Tf *tf, uint32_t rank, Cut *cut) {
    int64_t begin[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK], step[SHAPE_MAX_RANK];
    uint32_t rest = mask(tf, "ellipsis_mask"), at = 0;
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, begin);
    if (n < 0 || tf_ints(tf, 2, SHAPE_MAX_RANK, end) != n ||
        tf_ints(tf, 3, SHAPE_MAX_RANK, step) != n)
        return false;
    uint32_t told = (uint32_t)n - (rest != 0);
    if (told > rank || mask(tf, "new_axis_mask") || rest & (rest - 1))
        return net_fail(&tf->net, "its masks do not go with %u axes", rank);
    for (uint32_t i = 0; i < rank; i++)
        cut[i] = (Cut){.step = 1, .from_edge = true, .to_edge = true};
    for (int i = 0; i < n; i++) {
        if (rest >> i & 1) {
            at += rank - told;
            continue;
        }
        cut[at++] = (Cut){.begin = begin[i],
                          .end = end[i],
                          .step = step[i],
                          .from_edge = mask(tf, "begin_mask") >> i & 1,
                          .to_edge = mask(tf, "end_mask") >> i & 1,
                          .one = mask(tf, "shrink_axis_mask") >> i & 1};
    }
    return true;
}

TensorId tf_strided_slice(Tf *tf, int kind) {
    Cut cut[SHAPE_MAX_RANK];
    (void)kind;
    TensorId in = tf_in(tf, 0);
    if (in.i == NONE || !read_cuts(tf, net_shape(&tf->net, in).rank, cut))
        return NO_TENSOR;
    return net_cut(&tf->net, in, cut);
}

static TensorId split_at(Tf *tf, TensorId in, int64_t axis, uint32_t n,
                         int64_t *size) {
    tf->at->n_out = n;
    tf->at->out = ARENA_ARRAY(tf->net.arena, TensorId, n);
    net_split(&tf->net, in, axis, n, size, tf->at->out);
    return tf->at->out[0];
}

/* Into equal parts: the axis comes first. */
TensorId tf_split(Tf *tf, int kind) {
    int64_t axis;
    double n = tf_num(tf, "num_split", 1);
    (void)kind;
    if (tf_ints(tf, 0, 1, &axis) != 1)
        return NO_TENSOR;
    if (!(n >= 1 && n <= 4096))
        return net_none(&tf->net, "num_split is out of range");
    return split_at(tf, tf_in(tf, 1), axis, (uint32_t)n, NULL);
}

/* Into parts of those sizes: they and the axis come behind. */
TensorId tf_split_v(Tf *tf, int kind) {
    int64_t size[2 * SHAPE_MAX_RANK], axis;
    int n = tf_ints(tf, 1, 2 * SHAPE_MAX_RANK, size);
    (void)kind;
    if (n < 1 || tf_ints(tf, 2, 1, &axis) != 1)
        return NO_TENSOR;
    return split_at(tf, tf_in(tf, 0), axis, (uint32_t)n, size);
}
