/* ops_point.c - element by element: activations, scales, functions of two
 * numbers; see ops.h. */
#include "native/llvm/codes.h"

#include <math.h>

static uint64_t in_count(const Kernel *k) {
    return shape_count(&k->in[0].shape);
}

static bool same_size(const Kernel *k) {
    return in_count(k) == shape_count(&k->out[0].shape);
}

/* ---- activations, scales, normalisations by constants ---- */

/* x in a channel of the input's constants -> value */
typedef Val PointValue(const Emit *e, Val x, Val channel);

/* The same element of both, where they lie in blocks of channels. */
static void emit_block_points(const Emit *e, PointValue *value) {
    Code *c = e->c;
    Extent size = operand_extent(&e->k->out[0]);
    Loop channels, rows, columns;
    Val channel = loop_lanes(e, &channels, size.c);
    Val row = loop_count(c, &rows, size.h);
    Val column = loop_count(c, &columns, size.w);
    Val x = emit_get(e, 0, operand_at(c, &e->k->in[0], channel, row, column));
    emit_put(e, operand_at(c, &e->k->out[0], channel, row, column),
             value(e, x, channel), channel);
    loop_close(c, &columns);
    loop_close(c, &rows);
    loop_close(c, &channels);
}

static void emit_all_points(const Emit *e, PointValue *value) {
    Code *c = e->c;
    Channels size = operand_channels(&e->k->in[0]);
    Channels out = operand_channels(&e->k->out[0]);
    bool same = size.n == out.n && size.plane == out.plane;
    Walk walk;
    walk_open(c, &walk, &size);
    Val x = emit_get(e, 0, operand_linear(c, &e->k->in[0], walk.i));
    Val channel = walk.channel;
    if (!same)
        channel = index_rem(c, index_div(c, walk.i, out.plane), out.n);
    emit_put(e, operand_linear(c, &e->k->out[0], walk.i),
             value(e, x, walk.channel), channel);
    walk_close(c, &walk);
}

static void emit_points(const Emit *e, PointValue *value) {
    Emit by_block = emit_lanes(e);
    if (by_block.lanes > 1 &&
        shape_equal(&e->k->in[0].shape, &e->k->out[0].shape))
        emit_block_points(&by_block, value);
    else
        emit_all_points(e, value);
}

static Val value_same(const Emit *e, Val x, Val channel) {
    (void)e, (void)channel;
    return x;
}

static void emit_plain(const Emit *e) {
    emit_points(e, value_same);
}

static bool check_scale(const Kernel *k) {
    uint64_t n = operand_channels(&k->in[0]).n;
    return same_size(k) && fits_constant(k, "scale", n) &&
           fits_constant(k, "bias", n);
}

static Val value_scaled(const Emit *e, Val x, Val channel) {
    Code *c = e->c;
    Val scale = emit_constant(e, "scale"), bias = emit_constant(e, "bias");
    Val by = scale ? emit_channel(e, scale, channel) : code_float(x, 1);
    Val more = bias ? emit_channel(e, bias, channel) : code_float(x, 0);
    return float_fma(c, by, x, more);
}

static void emit_scale(const Emit *e) {
    emit_points(e, value_scaled);
}

static bool check_bn(const Kernel *k) {
    uint64_t n = operand_channels(&k->in[0]).n;
    return same_size(k) && has_constant(k, "mean", n) &&
           has_constant(k, "var", n);
}

static Val value_normal(const Emit *e, Val x, Val channel) {
    Code *c = e->c;
    Val mean = emit_channel(e, emit_constant(e, "mean"), channel);
    Val var = emit_channel(e, emit_constant(e, "var"), channel);
    Val eps = code_float(x, kernel_number(e->k, "eps", 0, 0));
    Val deviation = float_sqrt(c, float_add(c, var, eps));
    return float_div(c, float_sub(c, x, mean), deviation);
}

static void emit_bn(const Emit *e) {
    emit_points(e, value_normal);
}

/* The same elements in the same order, for each result; the activation is the
 * first one's. */
static bool check_copy(const Kernel *k) {
    for (uint32_t i = 0; i < k->n_out; i++)
        if (shape_count(&k->out[i].shape) != in_count(k))
            return false;
    return k->n_out == 1 || !k->quant;
}

static void emit_copy(const Emit *e) {
    Code *c = e->c;
    emit_points(e, value_same);
    for (uint32_t i = 1; i < e->k->n_out; i++) {
        Loop loop;
        Val at = loop_count(c, &loop, in_count(e->k));
        Val x = code_load(c, e->in[0], operand_linear(c, &e->k->in[0], at));
        code_store(c, e->out[i], operand_linear(c, &e->k->out[i], at), x);
        loop_close(c, &loop);
    }
}

/* ---- functions of two numbers, with broadcast ---- */

/* Axes of size 1 repeat; shapes of lower rank stand at the right. */
static bool broadcasts(const Shape *in, const Shape *out) {
    if (in->rank > out->rank)
        return false;
    for (uint32_t i = 0; i < in->rank; i++) {
        uint32_t to = out->dim[out->rank - in->rank + i];
        if (in->dim[i] != to && in->dim[i] != 1)
            return false;
    }
    return true;
}

static bool check_eltwise(const Kernel *k) {
    const AttrPair *kind = kernel_attr(k, "kind");
    for (uint32_t i = 0; i < k->n_in; i++)
        if (!broadcasts(&k->in[i].shape, &k->out[0].shape))
            return false;
    return kind && kind->word && binary_named(kind->word);
}

/* What zeros of a sum make of it, as floats. */
static float zeros_of_sum(const QuantLayer *q, float by_a, float by_b) {
    float zeros = fmaf(by_a, (float)q->zero_in[0], by_b * (float)q->zero_in[1]);
    return (float)q->zero_out - zeros;
}

/* The term of a sum whose halves go to even, of a code with its zero; the first
 * one has what zeros make of the sum. */
static Val sum_term(const Emit *e, uint32_t i, Val code) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    float by[2];
    for (int k = 0; k < 2; k++)
        by[k] = quant_float(q->scale[k]) / quant_float(q->scale[2]);
    Val x = codes_to_float(c, int_add(c, code, code_int(code, q->zero_in[i])));
    x = float_mul(c, x, code_float(x, (double)by[i]));
    if (i > 0)
        return x;
    Val zeros = code_float(x, (double)zeros_of_sum(q, by[0], by[1]));
    return float_add(c, zeros, x);
}

static Val even_term(const Emit *e, uint32_t i, Val at) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    Val code = codes_get(e, i, at);
    bool sums = q->rule == QUANT_ADDS && !q->minus;
    if (sums && q->round != QUANT_TERMS)
        return sum_term(e, i, code);
    Val x = float_mul(c, codes_to_float(c, code),
                      codes_float(c, &q->scale[i], code));
    return sums ? codes_to_float(c, codes_nearest(c, x)) : x;
}

/* A code as the rules "adds" and "product" take it. */
static Val blend_code(const Emit *e, uint32_t i, Val at) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    if (codes_even(e->k))
        return even_term(e, i, at);
    Val x = codes_sum(e, codes_get(e, i, at));
    if (q->rule == QUANT_PRODUCT)
        return x;
    Factor factor = codes_factor(e, &q->scale[i], x);
    x = LLVMBuildShl(c->builder, x, code_int(x, q->left), "");
    return codes_sum(e, codes_scaled(c, &factor, x));
}

/* The value of operand i, times its coefficient, at these places. */
static Val blend_operand(const Emit *e, uint32_t i, Val at) {
    Code *c = e->c;
    if (kernel_on_codes(e->k) && e->k->quant->rule != QUANT_MOVES)
        return blend_code(e, i, at);
    Val x = emit_get(e, i, at);
    double coefficient = kernel_number(e->k, "coeff", i, 1);
    if (coefficient == 1)
        return x;
    return float_mul(c, code_float(x, coefficient), x);
}

static Val broadcast_place(const Emit *e, uint32_t operand, const Axes *axes) {
    const Operand *in = &e->k->in[operand];
    Val at[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < in->shape.rank; i++)
        at[i] = in->shape.dim[i] == 1 ? code_index(e->c, 0)
                                      : axes->i[axes->n - in->shape.rank + i];
    return operand_index(e->c, in, at);
}

static void emit_broadcast(const Emit *e, Binary *run) {
    Code *c = e->c;
    const Operand *out = &e->k->out[0];
    Axes axes;
    axes_open(c, &axes, &out->shape);
    Val value = blend_operand(e, 0, broadcast_place(e, 0, &axes));
    for (uint32_t i = 1; i < e->k->n_in; i++)
        value =
            run(c, value, blend_operand(e, i, broadcast_place(e, i, &axes)));
    Val channel = axes.n > 1 ? axes.i[1] : code_index(c, 0);
    emit_put(e, operand_index(c, out, axes.i), value, channel);
    axes_close(c, &axes);
}

static Val blended(const Emit *e, Binary *run, const Val *at) {
    Val value = blend_operand(e, 0, at[0]);
    for (uint32_t i = 1; i < e->k->n_in; i++)
        value = run(e->c, value, blend_operand(e, i, at[i]));
    return value;
}

/* All operands lie alike, in blocks of channels. */
static void emit_blocks(const Emit *e, Binary *run) {
    Code *c = e->c;
    Extent size = operand_extent(&e->k->out[0]);
    Loop channels, rows, columns;
    Val channel = loop_lanes(e, &channels, size.c);
    Val row = loop_count(c, &rows, size.h);
    Val column = loop_count(c, &columns, size.w);
    Val *at = ARENA_ARRAY(c->arena, Val, e->k->n_in);
    for (uint32_t i = 0; i < e->k->n_in; i++)
        at[i] = operand_at(c, &e->k->in[i], channel, row, column);
    emit_put(e, operand_at(c, &e->k->out[0], channel, row, column),
             blended(e, run, at), channel);
    loop_close(c, &columns);
    loop_close(c, &rows);
    loop_close(c, &channels);
}

static void emit_alike(const Emit *e, Binary *run) {
    Code *c = e->c;
    Channels size = operand_channels(&e->k->out[0]);
    Val *at = ARENA_ARRAY(c->arena, Val, e->k->n_in);
    Walk walk;
    walk_open(c, &walk, &size);
    for (uint32_t i = 0; i < e->k->n_in; i++)
        at[i] = operand_linear(c, &e->k->in[i], walk.i);
    emit_put(e, operand_linear(c, &e->k->out[0], walk.i), blended(e, run, at),
             walk.channel);
    walk_close(c, &walk);
}

static Binary *function_of(const Kernel *k) {
    if (!kernel_on_codes(k))
        return binary_named(kernel_attr(k, "kind")->word);
    bool even = codes_even(k);
    switch (k->quant->rule) {
    case QUANT_ADDS:
        if (even)
            return k->quant->minus ? float_sub : float_add;
        return k->quant->minus ? int_sub : int_add;
    case QUANT_PRODUCT:
        return even ? float_mul : int_mul;
    default:
        return kernel_is(k, "kind", "max") ? int_max : int_min;
    }
}

static void emit_eltwise(const Emit *e) {
    Binary *run = function_of(e->k);
    bool alike = true;
    for (uint32_t i = 0; i < e->k->n_in; i++)
        alike &= shape_equal(&e->k->in[i].shape, &e->k->out[0].shape);
    Emit by_block = emit_lanes(e);
    if (alike && by_block.lanes > 1)
        emit_blocks(&by_block, run);
    else if (alike)
        emit_alike(e, run);
    else
        emit_broadcast(e, run);
}

const OpRow ops_point[] = {
    {"act", 1, same_size, emit_plain},
    {"scale", 1, check_scale, emit_scale},
    {"bn", 1, check_bn, emit_bn},
    {"eltwise", 1, check_eltwise, emit_eltwise},
    {"reshape", 1, check_copy, emit_copy},
    {"identity", 1, check_copy, emit_copy},
    {NULL, 0, NULL, NULL},
};
