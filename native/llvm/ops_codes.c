/* ops_codes.c - sums and means of codes, one result at a time; see ops.h.
 *
 * The rules are graph/quant.h's. Sums of codes of 8 bits have 32 bits, which
 * hold them exactly in any order; those of 16 have 64.
 */
#include "native/llvm/codes.h"
#include "native/llvm/ops_window.h"

/* ---- what can be made ---- */

/* Sums of 64 bits are only scaled by factors of less than a half. */
static bool scales_fit(const Kernel *k, uint64_t channels) {
    bool below = k->quant->below, even = codes_even(k);
    return has_constant(k, "factor", channels) &&
           (even || has_constant(k, "shift", channels)) &&
           (!below || has_constant(k, "factor_below", channels)) &&
           (!below || even || has_constant(k, "shift_below", channels)) &&
           (!kernel_is_wide(k) || quant_shifts_high(k->quant));
}

static bool check_conv_sums(const Kernel *k) {
    Conv v;
    return k->n_in == 1 && conv_read(k, &v, false) && scales_fit(k, v.out.c);
}

static bool check_deconv_sums(const Kernel *k) {
    Conv v;
    return conv_read(k, &v, true) && v.groups == 1 && scales_fit(k, v.out.c);
}

static bool check_conv_pool_sums(const Kernel *k) {
    ConvPool both;
    return conv_pool_read(k, &both) && !both.p.average &&
           scales_fit(k, both.v.out.c);
}

static bool check_fc_sums(const Kernel *k) {
    Product p;
    return product_read(k, &p) && scales_fit(k, p.m);
}

/* ---- a sum of products ---- */

static Val sum_open_at(const Emit *e, Val channel) {
    Val zero = codes_sum(e, LLVMConstInt(e->c->i32, 0, false));
    bool has_bias = kernel_constant(e->k, "bias") >= 0;
    return code_variable(
        e->c,
        has_bias ? codes_sum(e, codes_constant(e, "bias", channel)) : zero);
}

static Val sum_get(const Emit *e, Val sum) {
    Val like = codes_sum(e, LLVMConstInt(e->c->i32, 0, false));
    return code_get(e->c, LLVMTypeOf(like), sum);
}

static void sum_product(const Emit *e, Val sum, Val in_at, Val weight_at) {
    Code *c = e->c;
    Val x = codes_sum(e, codes_get(e, 0, in_at));
    Val by = codes_sum(e, codes_constant(e, "weight", weight_at));
    code_set(c, sum, int_add(c, sum_get(e, sum), int_mul(c, x, by)));
}

/* The sum as a code. */
static Val sum_close(const Emit *e, Val sum, Val channel) {
    return codes_finish(e,
                        codes_channel_scaled(e, channel, 1, sum_get(e, sum)));
}

/* ---- convolutions ---- */

/* Result (row, column) of the channel. */
static Val conv_code(const Emit *e, const void *context, Val row, Val column) {
    const ConvPool *at = context;
    const Conv *v = &at->v;
    Code *c = e->c;
    uint32_t fan = v->in.c / v->groups;
    uint64_t width = v->w[COLS].kernel, taps = v->w[ROWS].kernel * width;
    Range ys = window_taps(c, &v->w[ROWS], row, v->in.h);
    Range xs = window_taps(c, &v->w[COLS], column, v->in.w);
    Loop channels, rows, columns;
    Val sum = sum_open_at(e, at->at.out);
    Val i = loop_count(c, &channels, fan);
    Val first = index_mul(c, index_step(c, at->at.out, fan, i), taps);
    Val ky = loop_open(c, &rows, ys.from, ys.to, 1);
    Val kx = loop_open(c, &columns, xs.from, xs.to, 1);
    Val in_at = operand_at(c, &e->k->in[0], index_add(c, at->at.in_first, i),
                           window_place(c, &v->w[ROWS], row, ky),
                           window_place(c, &v->w[COLS], column, kx));
    sum_product(e, sum, in_at,
                index_add(c, first, index_step(c, ky, width, kx)));
    loop_close(c, &columns);
    loop_close(c, &rows);
    loop_close(c, &channels);
    return sum_close(e, sum, at->at.out);
}

/* Transposed: the input's elements that reach this result. */
static Val deconv_code(const Emit *e, const void *context, Val row,
                       Val column) {
    const ConvPool *at = context;
    const Conv *v = &at->v;
    Code *c = e->c;
    uint64_t width = v->w[COLS].kernel, taps = v->w[ROWS].kernel * width;
    Loop channels, rows, columns;
    Branch in_rows, in_columns;
    Val sum = sum_open_at(e, at->at.out);
    Val i = loop_count(c, &channels, v->in.c);
    Val first = index_mul(c, index_step(c, i, v->out.c, at->at.out), taps);
    Val ky = loop_count(c, &rows, v->w[ROWS].kernel);
    Source y = window_source(c, &v->w[ROWS], row, ky, v->in.h);
    branch_open(c, &in_rows, y.is);
    Val kx = loop_count(c, &columns, width);
    Source x = window_source(c, &v->w[COLS], column, kx, v->in.w);
    branch_open(c, &in_columns, x.is);
    Val in_at = operand_at(c, &e->k->in[0], index_add(c, at->at.in_first, i),
                           y.at, x.at);
    sum_product(e, sum, in_at,
                index_add(c, first, index_step(c, ky, width, kx)));
    branch_close(c, &in_columns);
    loop_close(c, &columns);
    branch_close(c, &in_rows);
    loop_close(c, &rows);
    loop_close(c, &channels);
    return sum_close(e, sum, at->at.out);
}

static Val pooled_code(const Emit *e, const void *context, Val row,
                       Val column) {
    const ConvPool *both = context;
    return pool_value(e, &both->p, row, column, conv_code, both);
}

static void emit_conv_sums(const Emit *e) {
    ConvPool conv;
    conv_read(e->k, &conv.v, false);
    switch (kernel_packing(e->k)) {
    case PACKED_QUADS:
        emit_conv_quads(e, &conv.v);
        break;
    case PACKED_DEPTHWISE:
        emit_depthwise_codes(e, &conv.v);
        break;
    default:
        emit_results(e, &conv, conv_code);
    }
}

static void emit_deconv_sums(const Emit *e) {
    ConvPool conv;
    conv_read(e->k, &conv.v, true);
    emit_results(e, &conv, deconv_code);
}

static void emit_conv_pool_sums(const Emit *e) {
    ConvPool both;
    conv_pool_read(e->k, &both);
    emit_results(e, &both, pooled_code);
}

/* ---- inner products ---- */

static void emit_fc_sums(const Emit *e) {
    Code *c = e->c;
    Product p;
    Loop batches, results, terms;
    product_read(e->k, &p);
    Val batch = loop_count(c, &batches, p.batch);
    Val o = loop_count(c, &results, p.m);
    Val sum = sum_open_at(e, o);
    Val i = loop_count(c, &terms, p.n);
    Val in_at = operand_linear(c, &e->k->in[0], index_step(c, batch, p.n, i));
    sum_product(e, sum, in_at, index_step(c, o, p.n, i));
    loop_close(c, &terms);
    Val at = operand_linear(c, &e->k->out[0], index_step(c, batch, p.m, o));
    emit_set(e, at, sum_close(e, sum, o));
    loop_close(c, &results);
    loop_close(c, &batches);
}

/* ---- means ---- */

/* More codes than these have sums of more than 31 bits. */
static const uint64_t most_codes = UINT64_C(1) << 14;

/* What is left of x >= 0, and how often n went into it, nearly. */
typedef struct Part {
    Val rest, times;
} Part;

static Part part_by(const Emit *e, Val x, Val n) {
    Code *c = e->c;
    Val like = code_splat(c, code_scalar(c, 0), e->lanes);
    Val ratio =
        float_div(c, float_of_int(c, x, like), float_of_int(c, n, like));
    Val times =
        LLVMBuildFPToSI(c->builder, ratio, int_type(c, 32, e->lanes), "");
    return (Part){int_sub(c, x, int_mul(c, times, n)), times};
}

/* x / n, cut, for x >= 0 and n up to most_codes. Small processors have no such
 * instruction; by a known n LLVM multiplies. Of floats, the first ratio is off
 * by no more than 2^8, so that the second's operands are exact. */
static Val quotient(const Emit *e, Val x, Val n) {
    Code *c = e->c;
    if (LLVMIsConstant(n))
        return LLVMBuildUDiv(c->builder, x, n, "");
    Part first = part_by(e, x, n), second = part_by(e, first.rest, n);
    Val times = int_add(c, first.times, second.times);
    Val over = int_less(c, second.rest, code_int(x, 0));
    return code_select(c, over, int_sub(c, times, code_int(x, 1)), times);
}

/* To the nearest, halves away from 0. */
static Val divided(const Emit *e, Val x, Val n) {
    Code *c = e->c;
    Val zero = code_int(x, 0), one = code_int(x, 1);
    Val half = LLVMBuildLShr(c->builder, n, one, "");
    Val negative = int_less(c, x, zero);
    Val size = code_select(c, negative, int_sub(c, zero, x), x);
    Val times = quotient(e, int_add(c, size, half), n);
    return code_select(c, negative, int_sub(c, zero, times), times);
}

/* The mean of n codes; both of 32 bits. */
static Val mean_of(const Emit *e, Val sum, Val n) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    if (q->n) {
        Factor factor = codes_factor(e, &q->scale[0], sum);
        sum = codes_scaled(c, &factor, sum);
        if (factor.even) /* which has divided already */
            return codes_finish(e, sum);
        sum = int_max(c, sum, code_int(sum, INT32_MIN));
        sum = int_min(c, sum, code_int(sum, INT32_MAX));
        sum = int_cast(c, sum, 32);
    }
    return codes_finish(e, divided(e, sum, n));
}

static bool check_pool_means(const Kernel *k) {
    Pool p;
    Extent in = operand_extent(&k->in[0]);
    pool_read(k, false, &in, &p);
    return pool_fits(&p) && p.average &&
           (uint64_t)p.w[ROWS].kernel * p.w[COLS].kernel <= most_codes;
}

static Val window_sum(const Emit *e, Val channel, const Cover at[2]) {
    Code *c = e->c;
    Loop rows, columns;
    Type type = int_type(c, 32, e->lanes);
    Val sum = code_variable(c, LLVMConstNull(type));
    Val y = loop_open(c, &rows, at[ROWS].from, at[ROWS].to, 1);
    Val x = loop_open(c, &columns, at[COLS].from, at[COLS].to, 1);
    Val code = codes_get(e, 0, operand_at(c, &e->k->in[0], channel, y, x));
    code_set(c, sum, int_add(c, code_get(c, type, sum), code));
    loop_close(c, &columns);
    loop_close(c, &rows);
    return code_get(c, type, sum);
}

/* Codes under the window; a constant where all windows lie inside. */
static Val window_size(Code *c, const Pool *p, const Cover at[2]) {
    const uint32_t in[] = {p->in.h, p->in.w}, out[] = {p->out.h, p->out.w};
    bool whole = true;
    for (int axis = 0; axis < 2; axis++) {
        const Window *w = &p->w[axis];
        uint64_t end = (uint64_t)(out[axis] - 1) * w->stride + w->kernel;
        whole = whole && w->pad == 0 && end <= in[axis];
    }
    if (whole)
        return LLVMConstInt(
            c->i32, (uint64_t)p->w[ROWS].kernel * p->w[COLS].kernel, false);
    return LLVMBuildIntCast2(c->builder, pool_divisor(c, p, at), c->i32, true,
                             "");
}

static void emit_pool_means(const Emit *one) {
    Emit by_block = emit_lanes(one);
    const Emit *e = &by_block;
    Code *c = e->c;
    Pool p;
    Extent in = operand_extent(&e->k->in[0]);
    Loop channels, rows, columns;
    pool_read(e->k, false, &in, &p);
    Val channel = loop_lanes(e, &channels, p.out.c);
    Val row = loop_count(c, &rows, p.out.h);
    Val column = loop_count(c, &columns, p.out.w);
    Cover at[2] = {window_cover(c, &p.w[ROWS], row, in.h),
                   window_cover(c, &p.w[COLS], column, in.w)};
    Val n = window_size(c, &p, at);
    emit_set(
        e, operand_at(c, &e->k->out[0], channel, row, column),
        mean_of(e, window_sum(e, channel, at), code_splat(c, n, e->lanes)));
    loop_close(c, &columns);
    loop_close(c, &rows);
    loop_close(c, &channels);
}

/* Axes that are summed up; 1 in all others. */
static Shape summed(const Kernel *k) {
    Shape inner = k->in[0].shape;
    uint32_t axes = kernel_count(k, "axes", 0, 0);
    for (uint32_t i = 0; i < inner.rank; i++)
        if (!(axes >> i & 1))
            inner.dim[i] = 1;
    return inner;
}

static bool check_reduce_means(const Kernel *k) {
    const Shape *in = &k->in[0].shape, *out = &k->out[0].shape;
    Shape inner = summed(k);
    bool fits = in->rank == out->rank && shape_count(&inner) <= most_codes;
    for (uint32_t i = 0; fits && i < in->rank; i++)
        fits = (uint64_t)out->dim[i] * inner.dim[i] == in->dim[i];
    return fits;
}

static void emit_reduce_means(const Emit *e) {
    Code *c = e->c;
    Shape inner = summed(e->k);
    Axes out, in;
    Val at[SHAPE_MAX_RANK];
    axes_open(c, &out, &e->k->out[0].shape);
    Val sum = code_variable(c, LLVMConstInt(c->i32, 0, false));
    axes_open(c, &in, &inner);
    for (uint32_t i = 0; i < in.n; i++)
        at[i] = index_add(c, in.i[i], out.i[i]); /* one of them is 0 */
    Val code = codes_get(e, 0, operand_index(c, &e->k->in[0], at));
    code_set(c, sum, int_add(c, code_get(c, c->i32, sum), code));
    axes_close(c, &in);
    Val n = LLVMConstInt(c->i32, shape_count(&inner), false);
    emit_set(e, operand_index(c, &e->k->out[0], out.i),
             mean_of(e, code_get(c, c->i32, sum), n));
    axes_close(c, &out);
}

const OpRow ops_codes[] = {
    {"conv", 1, check_conv_sums, emit_conv_sums},
    {"deconv", 1, check_deconv_sums, emit_deconv_sums},
    {"conv_pool", 1, check_conv_pool_sums, emit_conv_pool_sums},
    {"fc", 1, check_fc_sums, emit_fc_sums},
    {"pool", 1, check_pool_means, emit_pool_means},
    {"reduce", 1, check_reduce_means, emit_reduce_means},
    {NULL, 0, NULL, NULL},
};
