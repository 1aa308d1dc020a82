/* functions.c - functions that formats with TensorFlow's operators share; see
 * net.h. */
#include "frontends/net/net.h"

#include <math.h>

static uint32_t rank_of(const Net *net, TensorId in) {
    return in.i == NONE ? 0 : net_shape(net, in).rank;
}

/* An axis from the front. */
static int64_t from_front(const Net *net, TensorId in, int64_t axis) {
    return axis < 0 ? axis + rank_of(net, in) : axis;
}

/* ---- by index ---- */

TensorId net_take(Net *net, const TensorId in[2], int64_t axis, int64_t batch,
                  bool one) {
    if (in[0].i == NONE || in[1].i == NONE)
        return NO_TENSOR;
    axis = from_front(net, in[0], axis);
    NodeId node = net_routine(net, ROUTINE_TAKE, NULL, 2, in);
    net_number_is(net, node, "axis", (double)axis);
    net_number_is(net, node, "batch", (double)from_front(net, in[1], batch));
    TensorId out = net_routine_out(net, node);
    return one && out.i != NONE ? net_squeeze(net, out, 1u << axis) : out;
}

TensorId net_gather_nd(Net *net, const TensorId in[2], int64_t batch) {
    NodeId node = net_routine(net, ROUTINE_GATHER_ND, NULL, 2, in);
    net_number_is(net, node, "batch", (double)batch);
    return net_routine_out(net, node);
}

TensorId net_scatter_nd(Net *net, TensorId index, TensorId update, Shape to) {
    Const zero = {.shape = to, .kind = CONST_SEEDED};
    TensorId in[] = {net_constant(net, "zeros", &zero), index, update};
    NodeId node = net_routine(net, ROUTINE_SCATTER_ND, NULL, 3, in);
    net_word_is(net, node, "reduction", "add");
    return net_routine_out(net, node);
}

void net_top_k(Net *net, TensorId in, int64_t k, TensorId out[2]) {
    for (uint32_t i = 0; i < 2; i++) {
        NodeId node =
            net_routine(net, ROUTINE_TOP_K, i ? "indices" : NULL, 1, &in);
        net_number_is(net, node, "axis", (double)rank_of(net, in) - 1);
        net_number_is(net, node, "k", (double)k);
        net_number_is(net, node, "result", i);
        out[i] = net_routine_out(net, node);
    }
}

TensorId net_cumulate(Net *net, TensorId in, int64_t axis, bool exclusive,
                      bool reverse) {
    NodeId node = net_routine(net, ROUTINE_CUMULATE, NULL, 1, &in);
    net_number_is(net, node, "axis", (double)from_front(net, in, axis));
    net_number_is(net, node, "exclusive", exclusive);
    net_number_is(net, node, "reverse", reverse);
    return net_routine_out(net, node);
}

/* ---- elements again, or backwards ---- */

TensorId net_tile(Net *net, TensorId in, uint32_t n, const int64_t *times) {
    TensorId out = in;
    if (in.i == NONE || n != rank_of(net, in))
        return net_none(net, "needs a number for each axis");
    for (uint32_t i = 0; i < n && out.i != NONE; i++) {
        if (times[i] < 1 || times[i] > 1 << 12)
            return net_none(net, "repeats none, or too many");
        TensorId *same = ARENA_ARRAY(net->arena, TensorId, (size_t)times[i]);
        for (int64_t k = 0; k < times[i]; k++)
            same[k] = out;
        if (times[i] > 1)
            out = net_concat(net, (uint32_t)times[i], same, i);
    }
    return net_identity(net, out);
}

TensorId net_broadcast(Net *net, TensorId in, Shape to) {
    int64_t times[SHAPE_MAX_RANK];
    if (in.i == NONE)
        return in;
    Shape from = net_shape(net, in), wide = to;
    if (from.rank > to.rank)
        return net_none(net, "has more axes than it is to have");
    for (uint32_t i = 0; i < to.rank; i++) {
        uint32_t k = i + from.rank - to.rank;
        wide.dim[i] = i + from.rank < to.rank ? 1 : from.dim[k];
        times[i] = wide.dim[i] ? to.dim[i] / wide.dim[i] : 0;
    }
    if (from.rank < to.rank)
        in = net_reshape(net, "axes", in, wide);
    return net_tile(net, in, to.rank, times);
}

TensorId net_reverse(Net *net, TensorId in, uint32_t n, const int64_t *axis) {
    Cut cut[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < SHAPE_MAX_RANK; i++)
        cut[i] = (Cut){.step = 1, .from_edge = true, .to_edge = true};
    for (uint32_t i = 0; i < n; i++)
        cut[from_front(net, in, axis[i]) & (SHAPE_MAX_RANK - 1)].step = -1;
    return net_cut(net, in, cut);
}

/* ---- numbers ---- */

TensorId net_not(Net *net, const char *part, TensorId in) {
    return net_act(net, part, in, (Act){.kind = ACT_NOT});
}

TensorId net_truth(Net *net, TensorId in) {
    return net_not(net, NULL, net_not(net, "zero", in));
}

TensorId net_unequal(Net *net, const TensorId in[2]) {
    return net_not(net, NULL, net_elt(net, "equal", ELT_EQUAL, 2, in));
}

TensorId net_floor_div(Net *net, const TensorId in[2]) {
    return net_act(net, NULL, net_elt(net, "div", ELT_DIV, 2, in),
                   (Act){.kind = ACT_FLOOR});
}

/* Constants that are all one infinity: 1 or -1; else 0. */
static int infinite(Net *net, const Const *c) {
    uint64_t n = c && c->kind != CONST_SEEDED ? shape_count(&c->shape) : 0;
    double *v = ARENA_ARRAY(net->arena, double, n + 1);
    if (n)
        const_read_f64(c, v);
    for (uint64_t i = 0; i < n; i++)
        if (!isinf(v[i]) || (v[i] < 0) != (v[0] < 0))
            return 0;
    return !n ? 0 : v[0] > 0 ? 1 : -1;
}

/* of + log(0) or of + log(1); with infinity above, of - that. */
static TensorId or_infinite(Net *net, TensorId keep, TensorId of, int sign) {
    TensorId in[] = {of, net_act(net, "log", keep, (Act){.kind = ACT_LOG})};
    return net_elt(net, NULL, sign > 0 ? ELT_SUB : ELT_ADD, 2, in);
}

TensorId net_select(Net *net, const TensorId in[3],
                    const Const *const known[3]) {
    TensorId no = net_not(net, "no", in[0]);
    int yes_far = infinite(net, known[1]), no_far = infinite(net, known[2]);
    if (no_far)
        return or_infinite(net, in[0], in[1], no_far);
    if (yes_far)
        return or_infinite(net, no, in[2], yes_far);
    TensorId a[] = {in[0], in[1]}, b[] = {no, in[2]};
    TensorId both[] = {net_elt(net, "then", ELT_MUL, 2, a),
                       net_elt(net, "else", ELT_MUL, 2, b)};
    return net_elt(net, NULL, ELT_ADD, 2, both);
}

TensorId net_log_softmax(Net *net, TensorId in) {
    const int64_t last = -1;
    TensorId sum = net_reduce_axes(net, in, REDUCE_LOG_SUM_EXP, 1, &last, true);
    TensorId both[] = {in, sum};
    return net_elt(net, NULL, ELT_SUB, 2, both);
}

TensorId net_squared_difference(Net *net, const TensorId in[2]) {
    const Const two = net_number(net, 2);
    return net_elt_const(
        net, ELT_POW, net_elt(net, "difference", ELT_SUB, 2, in), &two, false);
}

bool net_range(Net *net, const double at[3], uint32_t most, Const *out) {
    double many = at[2] < 0 || at[2] > 0 ? (at[1] - at[0]) / at[2] : -1;
    if (!(many > 0 && many < most))
        return net_fail(net, "has none, or too many numbers");
    uint32_t n = (uint32_t)many + ((uint32_t)many < many);
    float *value = ARENA_ARRAY(net->arena, float, n);
    for (uint32_t i = 0; i < n; i++)
        value[i] = (float)(at[0] + i * at[2]);
    *out = net_floats(net, (Shape){1, {n}}, value);
    return true;
}

/* 1 where an index is that of the element along a new last axis. */
TensorId net_one_hot(Net *net, TensorId index, int64_t depth, double on,
                     double off) {
    if (index.i == NONE)
        return index;
    Shape s = net_shape(net, index);
    if (depth < 1 || depth > 1 << 20 || s.rank >= SHAPE_MAX_RANK)
        return net_none(net, "its depth is out of range");
    s.dim[s.rank++] = 1;
    float *number = ARENA_ARRAY(net->arena, float, (size_t)depth);
    for (int64_t i = 0; i < depth; i++)
        number[i] = (float)i;
    Const numbers = net_floats(net, (Shape){1, {(uint32_t)depth}}, number);
    TensorId in[] = {net_reshape(net, "axis", index, s),
                     net_constant(net, "numbers", &numbers)};
    return net_affine(net, NULL, net_elt(net, "equal", ELT_EQUAL, 2, in),
                      on - off, off);
}
