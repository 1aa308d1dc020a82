/* ops_recurrent.c - TensorFlow Lite's operators that go step by step; see ops.c
 * for the rest. */
#include "frontends/tflite/tflite.h"

static uint32_t rank_of(const Tfl *t, TensorId in) {
    return in.i == NONE ? 0 : net_shape(&t->net, in).rank;
}

/* ---- recurrent ---- */

static bool has(Tfl *t, uint32_t i) {
    return tfl_tensor(t, i) != NULL;
}

/* ---- LSTM ---- */

/* Its inputs, gate by gate: i, f, c, o. */
enum {
    X,
    TO_GATES,
    OF_STATE = 5,
    PEEPHOLES = 9,
    BIAS = 12,
    PROJECTION = 16,
    NORM = 20
};

/* What gates i, o, f (and c) have, one behind the other. A gate i that is not
 * there is 1 - f: f with its numbers negative. */
static bool gather_gates(Tfl *t, uint32_t first, uint32_t n, uint64_t each,
                         float *all) {
    static const uint32_t at[] = {0, 3, 1, 2}, of_peepholes[] = {0, 2, 1};
    for (uint32_t g = 0; g < n; g++) {
        uint32_t gate = n == 3 ? of_peepholes[g] : at[g];
        bool other = !gate && !has(t, TO_GATES);
        const Const *part = tfl_const(t, first + (other ? 1 : gate));
        if (!part)
            return false;
        if (shape_count(&part->shape) != each)
            return net_fail(&t->net, "its weights do not fit");
        float *to = all + g * each;
        const_read(part, to);
        for (uint64_t i = 0; other && i < each; i++)
            to[i] = -to[i];
    }
    return true;
}

static TensorId weights(Tfl *t, const char *part, Shape shape,
                        const float *all) {
    Const value = net_floats(&t->net, shape, all);
    return net_constant(&t->net, part, &value);
}

static TensorId matrix(Tfl *t, uint32_t first, uint32_t rows,
                       uint32_t columns) {
    uint64_t each = (uint64_t)rows * columns;
    float *all = ARENA_ARRAY(t->net.arena, float, 4 * each);
    return gather_gates(t, first, 4, each, all)
               ? weights(t, "weights", (Shape){2, {4 * rows, columns}}, all)
               : NO_TENSOR;
}

/* Numbers a unit, `n` a unit of them told; others are 0. */
static TensorId numbers(Tfl *t, uint32_t first, uint32_t n, uint32_t units,
                        uint32_t all) {
    float *value = ARENA_ARRAY(t->net.arena, float, (uint64_t)all *units);
    return gather_gates(t, first, n, units, value)
               ? weights(t, "numbers", (Shape){1, {all * units}}, value)
               : NO_TENSOR;
}

static bool is_plain(Tfl *t, TensorId in) {
    const TflTensor *w = tfl_tensor(t, TO_GATES + 1),
                    *r = tfl_tensor(t, OF_STATE + 1);
    if (!w || !r || has(t, PROJECTION) || has(t, NORM) || has(t, NORM + 1) ||
        w->shape.rank != 2 || rank_of(t, in) != 3)
        return net_fail(&t->net, "projections and norms in it are not "
                                 "supported");
    return flat_u8(&t->flat, t->options, 0, 0) == 4 ||
           net_fail(&t->net, "only tanh is supported in it");
}

/* All steps of an LSTM, whose states begin at 0. */
TensorId tfl_lstm(Tfl *t, int kind) {
    Net *net = &t->net;
    TensorId in = tfl_in(t, X), all[5];
    bool by_time = flat_u8(&t->flat, t->options, 3, 0) != 0;
    bool peeps = has(t, PEEPHOLES + 1);
    (void)kind;
    if (!is_plain(t, in))
        return NO_TENSOR;
    const Shape *w = &tfl_tensor(t, TO_GATES + 1)->shape;
    uint32_t units = w->dim[0];
    if (!by_time)
        in = net_transpose(net, "steps", in, (Shape){3, {1, 0, 2}});
    all[0] = in;
    all[1] = matrix(t, TO_GATES, units, w->dim[1]);
    all[2] = matrix(t, OF_STATE, units, units);
    all[3] = numbers(t, BIAS, 4, units, 8);
    if (peeps)
        all[4] = numbers(t, PEEPHOLES, 3, units, 3);
    NodeId node =
        net_routine(net, ROUTINE_RECURRENT, "lstm", peeps ? 5 : 4, all);
    net_word_is(net, node, "cell", "lstm");
    net_number_is(net, node, "given", peeps ? 15 | 128 : 15);
    net_number_is(net, node, "cell_clip",
                  (double)flat_f32(&t->flat, t->options, 1, 0));
    TensorId out = net_routine_out(net, node);
    return by_time ? net_identity(net, out)
                   : net_transpose(net, NULL, out, (Shape){3, {1, 0, 2}});
}

/* ---- SVDF ---- */

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
