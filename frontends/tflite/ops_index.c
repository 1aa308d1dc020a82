/* ops_index.c - TensorFlow Lite's operators that pick by index, compare, or go
 * step by step; see ops.c for the rest. */
#include "frontends/tflite/tflite.h"

#include <string.h>

/* ---- by index ---- */

static TensorId routine(Tfl *t, RoutineKind kind, uint32_t n,
                        const TensorId *in) {
    return net_routine_out(&t->net, net_routine(&t->net, kind, NULL, n, in));
}

static uint32_t rank_of(const Tfl *t, TensorId in) {
    return in.i == NONE ? 0 : net_shape(&t->net, in).rank;
}

TensorId tfl_take(Tfl *t, int kind) {
    TensorId in[] = {tfl_in(t, 0), tfl_in(t, 1)};
    int32_t axis = tfl_option(t, 0, 0), batch = tfl_option(t, 1, 0);
    (void)kind;
    axis += axis < 0 ? (int32_t)rank_of(t, in[0]) : 0;
    batch += batch < 0 ? (int32_t)rank_of(t, in[1]) : 0;
    NodeId node = net_routine(&t->net, ROUTINE_TAKE, NULL, 2, in);
    net_number_is(&t->net, node, "axis", axis);
    net_number_is(&t->net, node, "batch", batch);
    TensorId out = net_routine_out(&t->net, node);
    const TflTensor *by = tfl_tensor(t, 1);
    return by->shape.rank || out.i == NONE
               ? out
               : net_squeeze(&t->net, out, 1u << axis);
}

TensorId tfl_gather_nd(Tfl *t, int kind) {
    TensorId in[] = {tfl_in(t, 0), tfl_in(t, 1)};
    (void)kind;
    return routine(t, ROUTINE_GATHER_ND, 2, in);
}

TensorId tfl_top_k(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0), out[2];
    int64_t k;
    (void)kind;
    if (in.i == NONE || tfl_ints(t, 1, 1, &k) != 1)
        return NO_TENSOR;
    for (uint32_t i = 0; i < 2; i++) {
        NodeId node =
            net_routine(&t->net, ROUTINE_TOP_K, i ? "indices" : NULL, 1, &in);
        net_number_is(&t->net, node, "axis", rank_of(t, in) - 1);
        net_number_is(&t->net, node, "k", (double)k);
        net_number_is(&t->net, node, "result", i);
        out[i] = net_routine_out(&t->net, node);
    }
    return tfl_put_outputs(t, out);
}

TensorId tfl_cumulate(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0);
    int64_t axis;
    (void)kind;
    if (in.i == NONE || tfl_ints(t, 1, 1, &axis) != 1)
        return NO_TENSOR;
    NodeId node = net_routine(&t->net, ROUTINE_CUMULATE, NULL, 1, &in);
    net_number_is(&t->net, node, "axis",
                  (double)(axis < 0 ? axis + rank_of(t, in) : axis));
    net_number_is(&t->net, node, "exclusive",
                  flat_u8(&t->flat, t->options, 0, 0));
    net_number_is(&t->net, node, "reverse",
                  flat_u8(&t->flat, t->options, 1, 0));
    return net_routine_out(&t->net, node);
}

/* The first of the greatest or smallest. */
TensorId tfl_arg(Tfl *t, int kind) {
    int64_t axis;
    return tfl_ints(t, 1, 1, &axis) != 1
               ? NO_TENSOR
               : net_reduce_axes(&t->net, tfl_in(t, 0), (ReduceKind)kind, 1,
                                 &axis, false);
}

TensorId tfl_tile(Tfl *t, int kind) {
    int64_t times[SHAPE_MAX_RANK];
    TensorId out = tfl_in(t, 0);
    int n = tfl_ints(t, 1, SHAPE_MAX_RANK, times);
    (void)kind;
    if (out.i == NONE || (uint32_t)n != rank_of(t, out))
        return net_none(&t->net, "needs a number for each axis");
    for (int i = 0; i < n && out.i != NONE; i++) {
        if (times[i] < 1 || times[i] > 1 << 16)
            return net_none(&t->net, "repeats none, or too many");
        TensorId *same = ARENA_ARRAY(t->net.arena, TensorId, (size_t)times[i]);
        for (int64_t k = 0; k < times[i]; k++)
            same[k] = out;
        if (times[i] > 1)
            out = net_concat(&t->net, (uint32_t)times[i], same, i);
    }
    return net_identity(&t->net, out);
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
        return net_act(&t->net, NULL,
                       net_act(&t->net, "zero", in, (Act){.kind = ACT_NOT}),
                       (Act){.kind = ACT_NOT});
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
    return net_act(&t->net, NULL,
                   net_elt(&t->net, "equal", (EltKind)kind, 2, in),
                   (Act){.kind = ACT_NOT});
}

TensorId tfl_floor_div(Tfl *t, int kind) {
    TensorId in[2] = {tfl_in(t, 0), tfl_in(t, 1)};
    return net_act(&t->net, NULL, net_elt(&t->net, "div", (EltKind)kind, 2, in),
                   (Act){.kind = ACT_FLOOR});
}

/* c * a + (1 - c) * b. */
TensorId tfl_select(Tfl *t, int kind) {
    Net *net = &t->net;
    TensorId c = tfl_in(t, 0);
    TensorId no = net_act(net, "no", c, (Act){.kind = ACT_NOT});
    TensorId a[] = {c, tfl_in(t, 1)}, b[] = {no, tfl_in(t, 2)};
    TensorId both[] = {net_elt(net, "then", ELT_MUL, 2, a),
                       net_elt(net, "else", ELT_MUL, 2, b)};
    (void)kind;
    return net_elt(net, NULL, ELT_ADD, 2, both);
}

TensorId tfl_log_softmax(Tfl *t, int kind) {
    Net *net = &t->net;
    TensorId in = tfl_in(t, 0);
    const int64_t last = -1;
    (void)kind;
    TensorId sum = net_reduce_axes(net, in, REDUCE_LOG_SUM_EXP, 1, &last, true);
    TensorId both[] = {in, sum};
    return net_elt(net, NULL, ELT_SUB, 2, both);
}

TensorId tfl_batch_matmul(Tfl *t, int kind) {
    TensorId in[] = {tfl_in(t, 0), tfl_in(t, 1)};
    bool turned[] = {flat_u8(&t->flat, t->options, 0, 0) != 0,
                     flat_u8(&t->flat, t->options, 1, 0) != 0};
    (void)kind;
    return net_matmul(&t->net, in, turned);
}

/* ---- recurrent ---- */

/* Weights of the gates i, o, f, c one behind the other; the file has i, f, c,
 * o from input `first` on. */
static TensorId gates(Tfl *t, uint32_t first, uint32_t rows, uint32_t columns,
                      float *bias) {
    static const uint32_t at[] = {0, 3, 1, 2};
    uint64_t each = (uint64_t)rows * columns;
    float *all = bias ? bias : ARENA_ARRAY(t->net.arena, float, 4 * each);
    for (uint32_t g = 0; g < 4; g++) {
        const Const *part = tfl_const(t, first + at[g]);
        if (!part)
            return NO_TENSOR;
        if (shape_count(&part->shape) != each)
            return net_none(&t->net, "its weights do not fit");
        const_read(part, all + g * each);
    }
    Const value = net_floats(&t->net, (Shape){2, {4 * rows, columns}}, all);
    if (bias)
        value.shape = (Shape){1, {8 * rows}};
    return net_constant(&t->net, "weights", &value);
}

static bool has(Tfl *t, uint32_t i) {
    return tfl_tensor(t, i) != NULL;
}

/* All steps of an LSTM, whose states begin at 0. */
TensorId tfl_lstm(Tfl *t, int kind) {
    Net *net = &t->net;
    TensorId in = tfl_in(t, 0);
    const TflTensor *w = tfl_tensor(t, 2), *r = tfl_tensor(t, 6);
    bool by_time = flat_u8(&t->flat, t->options, 3, 0) != 0;
    (void)kind;
    if (!w || !r || !has(t, 1) || has(t, 9) || has(t, 10) || has(t, 16) ||
        has(t, 20) || w->shape.rank != 2 || rank_of(t, in) != 3)
        return net_none(net, "only its plain form is supported: four gates, no "
                             "peepholes, projection or norm");
    uint32_t units = w->shape.dim[0], inputs = w->shape.dim[1];
    float *bias = ARENA_ARRAY(net->arena, float, 8 * (uint64_t)units);
    if (!by_time)
        in = net_transpose(net, "steps", in, (Shape){3, {1, 0, 2}});
    TensorId all[] = {in, gates(t, 1, units, inputs, NULL),
                      gates(t, 5, units, units, NULL),
                      gates(t, 12, units, 1, bias)};
    NodeId node = net_routine(net, ROUTINE_RECURRENT, "lstm", 4, all);
    net_word_is(net, node, "cell", "lstm");
    net_number_is(net, node, "given", 15);
    uint8_t act = flat_u8(&t->flat, t->options, 0, 0);
    if (act != 4)
        return net_none(net, "only tanh is supported in it");
    if (flat_f32(&t->flat, t->options, 1, 0) > 0)
        return net_none(net, "clipped cells are not supported");
    TensorId out = net_routine_out(net, node);
    return by_time ? net_identity(net, out)
                   : net_transpose(net, NULL, out, (Shape){3, {1, 0, 2}});
}

/* A filter over the last calls: what it keeps of them is an input, and an
 * output behind the others. */
TensorId tfl_svdf(Tfl *t, int kind) {
    Net *net = &t->net;
    TensorId in = tfl_in(t, 0);
    TflTensor *state = tfl_tensor(t, 4);
    const Const *feature = tfl_const(t, 1), *time = tfl_const(t, 2);
    int32_t rank = tfl_option(t, 0, 1);
    (void)kind;
    if (in.i == NONE || !feature || !time || !state || rank_of(t, in) != 2)
        return NO_TENSOR;
    uint32_t n = feature->shape.dim[0], steps = time->shape.dim[1];
    uint32_t images = net_shape(net, in).dim[0];
    if (feature->shape.rank != 2 || time->shape.rank != 2 || rank < 1 ||
        n % (uint32_t)rank || time->shape.dim[0] != n || steps < 2 ||
        tfl_is_quantised(t))
        return net_none(net, "its weights do not fit, or it is quantised");
    Shape kept = {3, {images, n, steps}};
    const char *layer = net->layer;
    net->layer = state->name;
    TensorId old = state->made.i != NONE
                       ? net_reshape(net, "steps", state->made, kept)
                       : net_input(net, &kept);
    net->layer = layer;
    TensorId now = net_fc(net, in, n, feature, false, NULL);
    TensorId parts[] = {
        net_slice(net, "last", old, 2, 1, steps),
        net_reshape(net, "now", now, (Shape){3, {images, n, 1}})};
    TensorId all = net_concat(net, 2, parts, 2);
    if (all.i == NONE)
        return all;
    graph_mark_output(net->g, all);
    TensorId weighted = net_elt_const(net, ELT_MUL, all, time, false);
    weighted = net_reduce_axes(net, weighted, REDUCE_SUM, 1,
                               (const int64_t[]){2}, false);
    Shape ranks = {3, {images, n / (uint32_t)rank, (uint32_t)rank}};
    TensorId out = net_reshape(net, "ranks", weighted, ranks);
    out = net_reduce_axes(net, out, REDUCE_SUM, 1, (const int64_t[]){2}, false);
    const Const *bias = has(t, 3) ? tfl_const(t, 3) : NULL;
    if (bias)
        out = net_elt_const(net, ELT_ADD, out, bias, false);
    return tfl_fused(t, 1, out);
}
