/* tf_axes.c - TensorFlow's layers that take axes apart, and the shapes that
 * graphs compute for themselves. Axes, sizes and bounds must be constants. */
#include "frontends/tf.h"

#include <string.h>

static bool is_const(Tf *tf, uint32_t i) {
    return tf_maybe(tf, i) != NULL;
}

/* Whole numbers as a constant of one dimension, or of none. */
static TensorId be_ints(Tf *tf, uint32_t n, const int64_t *value, bool scalar) {
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
    return be_ints(tf, shape.rank, dim, false);
}

TensorId tf_pack(Tf *tf, int kind) {
    int64_t value[SHAPE_MAX_RANK];
    uint32_t n = tf->at->n_in;
    (void)kind;
    if (n > SHAPE_MAX_RANK || !tf_all_known(tf))
        return net_none(&tf->net, "only a few constants can be packed");
    for (uint32_t i = 0; i < n; i++)
        if (tf_ints(tf, i, 1, &value[i]) != 1)
            return NO_TENSOR;
    return be_ints(tf, n, value, false);
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

/* Of constants: the product of a shape. */
static TensorId reduce_const(Tf *tf, int kind) {
    int64_t value[SHAPE_MAX_RANK], result = 1;
    int n = tf_ints(tf, 0, SHAPE_MAX_RANK, value);
    if (kind != REDUCE_PROD || n < 0)
        return net_none(&tf->net, "is not supported of a constant");
    for (int i = 0; i < n && result < INT32_MAX; i++)
        result *= value[i];
    return be_ints(tf, 1, &result, true);
}

TensorId tf_reduce(Tf *tf, int kind) {
    int64_t axis[SHAPE_MAX_RANK];
    if (is_const(tf, 0))
        return reduce_const(tf, kind);
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, axis);
    bool keep =
        tf_bool(tf, "keep_dims", false) || tf_bool(tf, "keepdims", false);
    return n < 0 ? NO_TENSOR
                 : net_reduce_axes(&tf->net, tf_in(tf, 0), (ReduceKind)kind,
                                   (uint32_t)n, axis, keep);
}

/* Pairs, before and behind, by axis of the file. */
static bool pad_amounts(Tf *tf, const Shape *shape, int64_t *amount) {
    int n = tf_ints(tf, 1, 2 * SHAPE_MAX_RANK, amount);
    if (n < 0)
        return false;
    bool good = (uint32_t)n == 2 * shape->rank;
    for (int i = 0; i < n; i++)
        good &= amount[i] >= 0 && amount[i] <= 1 << 15;
    return good || net_fail(&tf->net, "its paddings do not go with %s",
                            shape_text(tf->net.arena, shape));
}

/* Around height and width, with any value. */
static TensorId pad_image(Tf *tf, TensorId in, const int64_t *amount,
                          double value) {
    uint32_t first = tf->net.nhwc ? 2 : 4, before[2], behind[2];
    for (uint32_t i = 0; i < 2; i++) {
        before[i] = (uint32_t)amount[first + 2 * i];
        behind[i] = (uint32_t)amount[first + 2 * i + 1];
    }
    return net_pad(&tf->net, in, before, behind, value);
}

/* Axis by axis; a node whose amounts are all 0 copies. */
static TensorId pad_axes(Tf *tf, TensorId in, const int64_t *amount,
                         PadWay way) {
    uint32_t rank = net_shape(&tf->net, in).rank, at;
    TensorId out = in;
    for (uint32_t i = 0; i < rank && out.i != NONE; i++) {
        const char *part = arena_printf(tf->net.arena, "axis%u", i);
        if (!net_axis(&tf->net, out, i, &at))
            return NO_TENSOR;
        out =
            net_pad_axis(&tf->net, part, out, at, way, (uint32_t)amount[2 * i],
                         (uint32_t)amount[2 * i + 1]);
    }
    return out.i == in.i ? net_identity(&tf->net, in) : out;
}

TensorId tf_pad(Tf *tf, int has_value) {
    int64_t amount[2 * SHAPE_MAX_RANK];
    double value = 0;
    TensorId in = tf_in(tf, 0);
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(&tf->net, in);
    const Const *c = has_value ? tf_const(tf, 2) : NULL;
    if (!pad_amounts(tf, &shape, amount) || (has_value && !c))
        return NO_TENSOR;
    if (c && shape_count(&c->shape) != 1)
        return net_none(&tf->net, "its value must be one number");
    if (c)
        const_read_f64(c, &value);
    uint32_t channel = tf->net.nhwc ? 6 : 2;
    if (shape.rank == 4 && !amount[0] && !amount[1] && !amount[channel] &&
        !amount[channel + 1])
        return pad_image(tf, in, amount, value);
    if (value < 0 || value > 0)
        return net_none(&tf->net, "pads other axes than height and width, "
                                  "and not with 0");
    return pad_axes(tf, in, amount, PAD_ZERO);
}

TensorId tf_mirror_pad(Tf *tf, int kind) {
    int64_t amount[2 * SHAPE_MAX_RANK];
    TensorId in = tf_in(tf, 0);
    bool reflect = !strcmp(tf_str(tf, "mode", "REFLECT"), "REFLECT");
    (void)kind;
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(&tf->net, in);
    return pad_amounts(tf, &shape, amount)
               ? pad_axes(tf, in, amount, reflect ? PAD_REFLECT : PAD_SYMMETRIC)
               : NO_TENSOR;
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

/* Bounds of the axes that are told, by Python's rules for steps of 1. */
static int bounds(Tf *tf, const Shape *shape, int64_t *begin, int64_t *end) {
    int64_t step[SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, begin);
    if (n < 0 || tf_ints(tf, 2, SHAPE_MAX_RANK, end) != n ||
        tf_ints(tf, 3, SHAPE_MAX_RANK, step) != n)
        return -1;
    if ((uint32_t)n > shape->rank || mask(tf, "ellipsis_mask") ||
        mask(tf, "new_axis_mask")) {
        net_fail(&tf->net, "masks of axes are not supported");
        return -1;
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t size = shape->dim[i];
        if (i < (uint32_t)n && step[i] != 1) {
            net_fail(&tf->net, "steps other than 1 are not supported");
            return -1;
        }
        bool open = i >= (uint32_t)n;
        if (open || mask(tf, "begin_mask") >> i & 1)
            begin[i] = 0;
        if (open || mask(tf, "end_mask") >> i & 1 || end[i] > size)
            end[i] = size;
        begin[i] += begin[i] < 0 ? size : 0;
        end[i] += end[i] < 0 ? size : 0;
        if (!open && mask(tf, "shrink_axis_mask") >> i & 1)
            end[i] = begin[i] + 1;
    }
    return n;
}

TensorId tf_strided_slice(Tf *tf, int kind) {
    int64_t begin[SHAPE_MAX_RANK], end[SHAPE_MAX_RANK], value[SHAPE_MAX_RANK];
    bool constant = is_const(tf, 0);
    uint32_t shrink = mask(tf, "shrink_axis_mask");
    TensorId in = constant ? NO_TENSOR : tf_in(tf, 0);
    int n = constant ? tf_ints(tf, 0, SHAPE_MAX_RANK, value) : 0;
    (void)kind;
    if (n < 0 || (!constant && in.i == NONE))
        return NO_TENSOR;
    Shape shape =
        constant ? (Shape){1, {(uint32_t)n}} : net_shape(&tf->net, in);
    if (bounds(tf, &shape, begin, end) < 0)
        return NO_TENSOR;
    if (!constant) {
        TensorId out = net_window(&tf->net, in, begin, end);
        return shrink ? net_squeeze(&tf->net, out, shrink) : out;
    }
    if (begin[0] < 0 || begin[0] >= end[0] || end[0] > n)
        return net_none(&tf->net, "its bounds are outside its input");
    return be_ints(tf, (uint32_t)(end[0] - begin[0]), value + begin[0],
                   shrink & 1);
}

/* The axis comes first. */
TensorId tf_split(Tf *tf, int kind) {
    int64_t axis;
    uint32_t at;
    TensorId in = tf_in(tf, 1);
    double parts = tf_num(tf, "num_split", 1);
    (void)kind;
    if (in.i == NONE || tf_ints(tf, 0, 1, &axis) != 1 ||
        !net_axis(&tf->net, in, axis, &at))
        return NO_TENSOR;
    uint32_t size = graph_tensor(tf->net.g, in)->shape.dim[at];
    uint32_t n = parts >= 1 && parts <= size ? (uint32_t)parts : 0;
    if (!n || size % n)
        return net_none(&tf->net, "cannot split %u into %g", size, parts);
    tf->at->out = ARENA_ARRAY(tf->net.arena, TensorId, n);
    for (uint32_t i = 0; i < n; i++)
        tf->at->out[i] =
            net_slice(&tf->net, arena_printf(tf->net.arena, "%u", i), in, at,
                      i * (size / n), (i + 1) * (size / n));
    tf->at->n_out = n;
    return tf->at->out[0];
}
