/* ops_index.c - TensorFlow Lite's operators that pick by index, repeat or
 * compare; see ops.c for the rest. */
#include "frontends/tflite/tflite.h"

static bool flag(Tfl *t, uint32_t field) {
    return flat_u8(&t->flat, t->options, field, 0) != 0;
}

/* ---- by index ---- */

static TensorId take(Tfl *t, uint32_t of, uint32_t by, int64_t axis) {
    TensorId in[] = {tfl_in(t, of), tfl_in(t, by)};
    return net_take(&t->net, in, axis, tfl_option(t, 1, 0),
                    in[1].i != NONE && !tfl_tensor(t, by)->shape.rank);
}

TensorId tfl_take(Tfl *t, int kind) {
    (void)kind;
    return take(t, 0, 1, tfl_option(t, 0, 0));
}

/* Rows by number: these come first. */
TensorId tfl_lookup(Tfl *t, int kind) {
    (void)kind;
    return take(t, 1, 0, 0);
}

TensorId tfl_gather_nd(Tfl *t, int kind) {
    TensorId in[] = {tfl_in(t, 0), tfl_in(t, 1)};
    (void)kind;
    return net_gather_nd(&t->net, in, 0);
}

/* Inputs: indices, updates, the shape. */
TensorId tfl_scatter_nd(Tfl *t, int kind) {
    Shape to;
    (void)kind;
    return tfl_shape_in(t, 2, &to)
               ? net_scatter_nd(&t->net, tfl_in(t, 0), tfl_in(t, 1), to)
               : NO_TENSOR;
}

TensorId tfl_top_k(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0), out[2];
    int64_t k;
    (void)kind;
    if (in.i == NONE || tfl_ints(t, 1, 1, &k) != 1)
        return NO_TENSOR;
    net_top_k(&t->net, in, k, out);
    return tfl_put_outputs(t, out);
}

TensorId tfl_cumulate(Tfl *t, int kind) {
    int64_t axis;
    (void)kind;
    return tfl_ints(t, 1, 1, &axis) == 1
               ? net_cumulate(&t->net, tfl_in(t, 0), axis, flag(t, 0),
                              flag(t, 1))
               : NO_TENSOR;
}

/* The first of the greatest or smallest. */
TensorId tfl_arg(Tfl *t, int kind) {
    int64_t axis;
    return tfl_ints(t, 1, 1, &axis) != 1
               ? NO_TENSOR
               : net_reduce_axes(&t->net, tfl_in(t, 0), (ReduceKind)kind, 1,
                                 &axis, false);
}

TensorId tfl_one_hot(Tfl *t, int kind) {
    int64_t depth;
    double value[2];
    (void)kind;
    for (uint32_t i = 0; i < 2; i++) {
        const Const *c = tfl_const(t, 2 + i);
        if (!c || shape_count(&c->shape) != 1)
            return net_none(&t->net, "needs one number for on, one for off");
        const_read_f64(c, &value[i]);
    }
    return tfl_ints(t, 1, 1, &depth) == 1
               ? net_one_hot(&t->net, tfl_in(t, 0), depth, value[0], value[1])
               : NO_TENSOR;
}

/* ---- elements again, or backwards ---- */

TensorId tfl_tile(Tfl *t, int kind) {
    int64_t times[SHAPE_MAX_RANK];
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, times);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_tile(&t->net, tfl_in(t, 0), (uint32_t)n, times);
}

TensorId tfl_broadcast(Tfl *t, int kind) {
    Shape to;
    (void)kind;
    return tfl_shape_in(t, 1, &to) ? net_broadcast(&t->net, tfl_in(t, 0), to)
                                   : NO_TENSOR;
}

TensorId tfl_reverse(Tfl *t, int kind) {
    int64_t axis[SHAPE_MAX_RANK];
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, axis);
    (void)kind;
    return n < 0 ? NO_TENSOR
                 : net_reverse(&t->net, tfl_in(t, 0), (uint32_t)n, axis);
}

/* ---- numbers ---- */

/* To whole numbers: towards 0; to truth values: whether it is one. */
TensorId tfl_cast(Tfl *t, int kind) {
    enum { FLOAT32 = 0, BOOL = 6 };
    TensorId in = tfl_in(t, 0);
    uint32_t from = tfl_tensor(t, 0)->type;
    int32_t id = flat_at_i32(&t->flat, t->out, 0);
    uint32_t to = t->tensor[id].type;
    (void)kind;
    if (to == BOOL && from != BOOL)
        return net_truth(&t->net, in);
    if (from == FLOAT32 && to != FLOAT32)
        return net_act(&t->net, NULL, in, (Act){.kind = ACT_TRUNC});
    return net_identity(&t->net, in);
}

TensorId tfl_compare(Tfl *t, int kind) {
    TensorId in[2] = {tfl_in(t, 0), tfl_in(t, 1)};
    return net_elt(&t->net, NULL, (EltKind)kind, 2, in);
}

TensorId tfl_unequal(Tfl *t, int kind) {
    TensorId in[2] = {tfl_in(t, 0), tfl_in(t, 1)};
    (void)kind;
    return net_unequal(&t->net, in);
}

TensorId tfl_floor_div(Tfl *t, int kind) {
    TensorId in[2] = {tfl_in(t, 0), tfl_in(t, 1)};
    (void)kind;
    return net_floor_div(&t->net, in);
}

TensorId tfl_select(Tfl *t, int kind) {
    const TensorId in[] = {tfl_in(t, 0), tfl_in(t, 1), tfl_in(t, 2)};
    const Const *const known[] = {NULL, tfl_maybe(t, 1), tfl_maybe(t, 2)};
    (void)kind;
    return net_select(&t->net, in, known);
}

TensorId tfl_log_softmax(Tfl *t, int kind) {
    (void)kind;
    return net_log_softmax(&t->net, tfl_in(t, 0));
}

TensorId tfl_batch_matmul(Tfl *t, int kind) {
    TensorId in[] = {tfl_in(t, 0), tfl_in(t, 1)};
    bool turned[] = {flag(t, 0), flag(t, 1)};
    (void)kind;
    return net_matmul(&t->net, in, turned);
}
