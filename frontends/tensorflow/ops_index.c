/* ops_index.c - TensorFlow's operators that pick by index, repeat or compare;
 * see ops.c for the rest. */
#include "frontends/tensorflow/tf.h"

/* ---- by index ---- */

/* Rows by number, as embeddings are: of an axis told by a constant, or of the
 * first. A number without axes takes the axis away. */
TensorId tf_take(Tf *tf, int has_axis) {
    const TensorId in[] = {tf_in(tf, 0), tf_in(tf, 1)};
    const Const *by = tf_maybe(tf, 1);
    int64_t axis = 0;
    if ((has_axis && tf_ints(tf, 2, 1, &axis) != 1) || in[0].i == NONE)
        return NO_TENSOR;
    return net_take(&tf->net, in, axis, (int64_t)tf_num(tf, "batch_dims", 0),
                    by && !by->shape.rank);
}

TensorId tf_gather_nd(Tf *tf, int kind) {
    const TensorId in[] = {tf_in(tf, 0), tf_in(tf, 1)};
    (void)kind;
    return net_gather_nd(&tf->net, in, (int64_t)tf_num(tf, "batch_dims", 0));
}

/* Inputs: indices, updates, the shape. */
TensorId tf_scatter_nd(Tf *tf, int kind) {
    Shape to;
    (void)kind;
    return tf_shape_in(tf, 2, &to)
               ? net_scatter_nd(&tf->net, tf_in(tf, 0), tf_in(tf, 1), to)
               : NO_TENSOR;
}

/* Inputs: indices, the shape, values, what is elsewhere: 0. */
TensorId tf_sparse(Tf *tf, int kind) {
    Shape to, rows;
    double rest;
    (void)kind;
    TensorId index = tf_in(tf, 0), value = tf_in(tf, 2);
    if (!tf_shape_in(tf, 1, &to) || !tf_number_in(tf, 3, &rest) ||
        index.i == NONE || value.i == NONE)
        return NO_TENSOR;
    if (rest < 0 || rest > 0)
        return net_none(&tf->net, "is not 0 where no value is");
    rows = net_shape(&tf->net, index);
    if (rows.rank < 2)
        index =
            net_reshape(&tf->net, "rows", index,
                        (Shape){2, {shape_dim(&rows, 0) ? rows.dim[0] : 1, 1}});
    return net_scatter_nd(&tf->net, index, value, to);
}

/* The greatest in order, and where they are: two outputs. */
TensorId tf_top_k(Tf *tf, int has_input) {
    int64_t k = (int64_t)tf_num(tf, "k", 1);
    TensorId in = tf_in(tf, 0);
    if ((has_input && tf_ints(tf, 1, 1, &k) != 1) || in.i == NONE)
        return NO_TENSOR;
    tf->at->n_out = 2;
    tf->at->out = ARENA_ARRAY(tf->net.arena, TensorId, 2);
    net_top_k(&tf->net, in, k, tf->at->out);
    return tf->at->out[0];
}

/* The first of the greatest or smallest. */
TensorId tf_arg(Tf *tf, int kind) {
    int64_t axis;
    return tf_ints(tf, 1, 1, &axis) == 1
               ? net_reduce_axes(&tf->net, tf_in(tf, 0), (ReduceKind)kind, 1,
                                 &axis, false)
               : NO_TENSOR;
}

TensorId tf_one_hot(Tf *tf, int kind) {
    int64_t depth;
    double on, off, axis = tf_num(tf, "axis", -1);
    TensorId in = tf_in(tf, 0);
    (void)kind;
    if (tf_ints(tf, 1, 1, &depth) != 1 || !tf_number_in(tf, 2, &on) ||
        !tf_number_in(tf, 3, &off) || in.i == NONE)
        return NO_TENSOR;
    if (axis >= 0 && axis < net_shape(&tf->net, in).rank)
        return net_none(&tf->net, "puts its new axis before others");
    return net_one_hot(&tf->net, in, depth, on, off);
}

TensorId tf_cumulate(Tf *tf, int kind) {
    int64_t axis;
    (void)kind;
    return tf_ints(tf, 1, 1, &axis) == 1
               ? net_cumulate(&tf->net, tf_in(tf, 0), axis,
                              tf_bool(tf, "exclusive", false),
                              tf_bool(tf, "reverse", false))
               : NO_TENSOR;
}

/* ---- elements again, or backwards ---- */

TensorId tf_tile(Tf *tf, int kind) {
    int64_t times[SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, times);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_tile(&tf->net, tf_in(tf, 0), (uint32_t)n, times);
}

TensorId tf_broadcast(Tf *tf, int kind) {
    Shape to;
    (void)kind;
    return tf_shape_in(tf, 1, &to) ? net_broadcast(&tf->net, tf_in(tf, 0), to)
                                   : NO_TENSOR;
}

TensorId tf_reverse(Tf *tf, int kind) {
    int64_t axis[SHAPE_MAX_RANK];
    int n = tf_ints(tf, 1, SHAPE_MAX_RANK, axis);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_reverse(&tf->net, tf_in(tf, 0), (uint32_t)n, axis);
}

/* ---- numbers ---- */

TensorId tf_compare(Tf *tf, int kind) {
    TensorId in[] = {tf_in(tf, 0), tf_in(tf, 1)};
    return net_elt(&tf->net, NULL, (EltKind)kind, 2, in);
}

TensorId tf_unequal(Tf *tf, int kind) {
    const TensorId in[] = {tf_in(tf, 0), tf_in(tf, 1)};
    (void)kind;
    return net_unequal(&tf->net, in);
}

TensorId tf_floor_div(Tf *tf, int kind) {
    const TensorId in[] = {tf_in(tf, 0), tf_in(tf, 1)};
    (void)kind;
    return net_floor_div(&tf->net, in);
}

TensorId tf_select(Tf *tf, int kind) {
    const TensorId in[] = {tf_in(tf, 0), tf_in(tf, 1), tf_in(tf, 2)};
    const Const *const known[] = {NULL, tf_maybe(tf, 1), tf_maybe(tf, 2)};
    (void)kind;
    return net_select(&tf->net, in, known);
}

enum { FLOAT32 = 1, INT32 = 3, INT64 = 9, BOOL = 10 };

static uint32_t type_of(const Tf *tf, const char *key) {
    uint32_t number = 0;
    proto_enum(tf->net.diag, tf_attr(tf, key), "type", tf_type_names, &number);
    return number;
}

/* To whole numbers: towards 0; to truth values: whether it is one. */
TensorId tf_cast(Tf *tf, int kind) {
    const Const *value = tf_maybe(tf, 0);
    bool real = type_of(tf, "SrcT") == FLOAT32;
    uint32_t to = type_of(tf, "DstT");
    (void)kind;
    if (value && (!real || !tf->node[tf->at->in[0].node].known))
        return tf_be_const(tf, *value, tf->node[tf->at->in[0].node].known);
    TensorId in = tf_in(tf, 0);
    if (to == BOOL)
        return net_truth(&tf->net, in);
    return real && (to == INT32 || to == INT64)
               ? net_act(&tf->net, NULL, in, (Act){.kind = ACT_TRUNC})
               : net_identity(&tf->net, in);
}

TensorId tf_log_softmax(Tf *tf, int kind) {
    (void)kind;
    return net_log_softmax(&tf->net, tf_in(tf, 0));
}
