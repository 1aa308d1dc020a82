/* codes.c - elements of operands as kernels see them, and the arithmetic of
 * graph/quant.h; see codes.h. */
#include "native/llvm/codes.h"

#include <llvm-c/Target.h>
#include <math.h>

static const QuantTypeInfo *type_of(const Operand *operand) {
    return &quant_type[operand->quant.type];
}

static Val bytes_to(Code *c, const Operand *operand, Val at) {
    return index_mul(c, at, operand->cell);
}

/* ---- numbers and codes in memory ---- */

static Val read_float(const Emit *e, const Operand *operand, Val base, Val at) {
    Code *c = e->c;
    if (operand->cell == sizeof(float))
        return code_load_vector(c, base, at, e->lanes);
    return code_load_type(c, base, bytes_to(c, operand, at), c->f32);
}

static void write_float(Code *c, const Operand *operand, Val base, Val at,
                        Val x) {
    if (operand->cell == sizeof(float))
        code_store(c, base, at, x);
    else
        code_store_type(c, base, bytes_to(c, operand, at), x);
}

/* How far above a cell's lowest bits its code is, which is its first byte. */
static Val above(Code *c, const Operand *operand, Val cells) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(c->module);
    uint32_t bits = 8 * (operand->cell - type_of(operand)->size);
    return code_int(cells, LLVMByteOrder(layout) == LLVMBigEndian ? bits : 0);
}

Val codes_load(Code *c, const Operand *operand, Val base, Val at, uint32_t n) {
    uint32_t size = type_of(operand)->size;
    Type type = int_type(c, 8 * (n > 1 ? operand->cell : size), n);
    Val codes = code_load_type(c, base, bytes_to(c, operand, at), type);
    if (n > 1 && operand->cell > size)
        codes = int_shift(c, codes, above(c, operand, codes));
    return int_cast(c, codes, 8 * size);
}

void codes_store(Code *c, const Operand *operand, Val base, Val at, Val codes,
                 uint32_t n) {
    uint32_t size = type_of(operand)->size;
    codes = int_cast(c, codes, 8 * (n > 1 ? operand->cell : size));
    if (n > 1 && operand->cell > size)
        codes = LLVMBuildShl(c->builder, codes, above(c, operand, codes), "");
    code_store_type(c, base, bytes_to(c, operand, at), codes);
}

static Val read_code(const Emit *e, const Operand *operand, Val base, Val at) {
    Code *c = e->c;
    const QuantTypeInfo *type = type_of(operand);
    Val code = codes_load(c, operand, base, at, e->lanes);
    return type->lo < 0
               ? int_cast(c, code, 32)
               : LLVMBuildZExt(c->builder, code, int_type(c, 32, e->lanes), "");
}

static void write_code(const Emit *e, Val at, Val code) {
    codes_store(e->c, &e->k->out[0], e->out[0], at, code, e->lanes);
}

Val codes_constant(const Emit *e, const char *role, Val at) {
    Code *c = e->c;
    int32_t i = kernel_constant(e->k, role);
    ConstKind kind = e->k->constant[i].kind;
    uint32_t size = kind == CONST_I8 ? 1 : kind == CONST_I16 ? 2 : 4;
    Val value = code_load_type(c, e->constant[i], index_mul(c, at, size),
                               int_type(c, 8 * size, 1));
    return int_cast(c, value, 32);
}

/* ---- blocks ---- */

/* Are its elements taken as they lie: floats by a layer of floats? */
static bool is_plain(const Kernel *k, const Operand *o) {
    return operand_in_blocks(o) &&
           (o->quant.type == QUANT_NONE || kernel_on_codes(k));
}

Emit emit_lanes(const Emit *e) {
    const Kernel *k = e->k;
    Emit out = *e;
    uint32_t block = k->out[0].block;
    bool all = is_plain(k, &k->out[0]) && e->c->lanes > 1 &&
               (k->n_constants == 0 || kernel_packing(k) == PACKED_CHANNELS) &&
               (!k->quant || kernel_on_codes(k));
    for (uint32_t i = 0; i < k->n_in; i++)
        all = all && is_plain(k, &k->in[i]) && k->in[i].block == block;
    out.lanes = all ? block : 1;
    return out;
}

Val loop_lanes(const Emit *e, Loop *loop, uint64_t channels) {
    return loop_open(e->c, loop, code_index(e->c, 0),
                     code_index(e->c, (int64_t)channels), e->lanes);
}

/* ---- between numbers and codes ---- */

static const char *const real_role[] = {"real0", "real1"};

bool codes_have_tables(const Kernel *k) {
    if (kernel_on_codes(k))
        return k->quant->rule != QUANT_TABLE ||
               has_constant(k, "table", QUANT_TABLE_SIZE);
    for (uint32_t i = 0; i < k->n_in; i++)
        if (k->in[i].quant.type != QUANT_NONE &&
            (i > 1 || !has_constant(k, real_role[i], 256)))
            return false;
    return k->out[0].quant.type == QUANT_NONE || has_constant(k, "code", 256);
}

static Val number_of(const Emit *e, uint32_t operand, Val code) {
    Code *c = e->c;
    Val least = code_int(code, type_of(&e->k->in[operand])->lo);
    Val place = LLVMBuildIntCast2(c->builder, int_sub(c, code, least), c->index,
                                  true, "");
    return code_load(c, emit_constant(e, real_role[operand]), place);
}

/* The last code whose least number is not above x: by halves. */
static Val code_of(const Emit *e, Val x) {
    Code *c = e->c;
    const Quant *q = &e->k->out[0].quant;
    Val bound = emit_constant(e, "code"), place = code_index(c, 0);
    for (int64_t step = 128; step; step /= 2) {
        Val next = index_add(c, place, code_index(c, step));
        Val reached = float_less_equal(c, code_load(c, bound, next), x);
        place = code_select(c, reached, next, place);
    }
    Val code = LLVMBuildIntCast2(c->builder, place, c->i32, true, "");
    code = int_add(c, code, code_int(code, quant_type[q->type].lo));
    return code_select(c, float_equal(c, x, x), code, code_int(code, q->zero));
}

/* ---- elements ---- */

Val emit_get(const Emit *e, uint32_t i, Val at) {
    const Operand *in = &e->k->in[i];
    if (in->quant.type == QUANT_NONE)
        return read_float(e, in, e->in[i], at);
    Val code = read_code(e, in, e->in[i], at);
    return kernel_on_codes(e->k) ? code : number_of(e, i, code);
}

/* Does what moves keep its code? */
static bool keeps(const Emit *e) {
    const QuantLayer *q = e->k->quant;
    const QuantTypeInfo *type = type_of(&e->k->out[0]);
    return q->n == 0 && q->zero_in[0] == q->zero_out && q->lo <= type->lo &&
           q->hi >= type->hi;
}

static const QuantScale *last_scale(const QuantLayer *q) {
    if (q->rule == QUANT_ADDS)
        return &q->scale[2];
    return q->n ? &q->scale[0] : NULL;
}

/* What is last in a rule where halves go to even; x: a float, of "moves" a code
 * less its zero. */
static Val even_by_rule(const Emit *e, Val x) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    if (q->rule == QUANT_MOVES && q->n == 0)
        return codes_finish(e, x);
    if (q->rule == QUANT_MOVES) {
        x = codes_to_float(c, x);
        x = float_mul(c, x, codes_float(c, &q->scale[0], x));
        x = float_div(c, x, codes_float(c, &q->scale[1], x));
    } else if (q->rule == QUANT_PRODUCT || q->minus) {
        x = float_div(c, x, codes_float(c, &q->scale[2], x));
    } else if (q->rule == QUANT_ADDS && q->round == QUANT_TERMS) {
        x = float_mul(c, x, codes_float(c, &q->scale[2], x));
    } else { /* a sum has its zero already */
        x = codes_nearest(c, x);
        return codes_finish(e, int_sub(c, x, code_int(x, q->zero_out)));
    }
    return codes_finish(e, codes_nearest(c, x));
}

/* The table's result of a code. */
static Val looked_up(const Emit *e, Val code) {
    Code *c = e->c;
    Val least = code_int(code, e->k->quant->zero_in[0]);
    Val place = LLVMBuildIntCast2(c->builder, int_sub(c, code, least), c->index,
                                  true, "");
    return codes_constant(e, "table", place);
}

static Val by_rule(const Emit *e, Val x) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    const QuantScale *scale = last_scale(q);
    if (q->rule == QUANT_TABLE)
        return looked_up(e, x);
    if (q->rule == QUANT_MOVES && keeps(e))
        return x;
    if (q->rule == QUANT_MOVES)
        x = int_sub(c, x, code_int(x, q->zero_in[0]));
    if (codes_even(e->k))
        return even_by_rule(e, x);
    if (scale) {
        Factor factor = codes_factor(e, scale, x);
        x = codes_scaled(c, &factor, x);
    }
    return codes_finish(e, x);
}

void emit_put(const Emit *e, Val at, Val x, Val channel) {
    bool codes = kernel_on_codes(e->k);
    emit_set(e, at, codes ? by_rule(e, x) : emit_act(e, x, channel));
}

void emit_set(const Emit *e, Val at, Val x) {
    const Operand *out = &e->k->out[0];
    if (kernel_on_codes(e->k))
        write_code(e, at, x);
    else if (out->quant.type == QUANT_NONE)
        write_float(e->c, out, e->out[0], at, x);
    else
        write_code(e, at, code_of(e, x));
}

Val emit_number(const Emit *e, double value) {
    Val number = code_scalar(e->c, value);
    if (kernel_on_codes(e->k)) {
        int64_t code = (int64_t)fmin(fmax(value, INT32_MIN), INT32_MAX);
        number = LLVMConstInt(e->c->i32, (unsigned long long)code, true);
    }
    return code_splat(e->c, number, e->lanes);
}

Val emit_max(const Emit *e, Val a, Val b) {
    return kernel_on_codes(e->k) ? int_max(e->c, a, b)
                                 : float_largest(e->c, a, b);
}

Val emit_min(const Emit *e, Val a, Val b) {
    return kernel_on_codes(e->k) ? int_min(e->c, a, b)
                                 : float_least(e->c, a, b);
}

/* ---- arithmetic ---- */

bool codes_even(const Kernel *k) {
    return kernel_on_codes(k) && quant_by_floats(k->quant->round);
}

static Type float_like(Code *c, Val like) {
    Type type = LLVMTypeOf(like);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind
               ? LLVMVectorType(c->f32, LLVMGetVectorSize(type))
               : c->f32;
}

Val codes_to_float(Code *c, Val x) {
    return LLVMBuildSIToFP(c->builder, x, float_like(c, x), "");
}

Val codes_float(Code *c, const QuantScale *scale, Val like) {
    double value = (double)quant_float(*scale);
    return code_float(LLVMConstNull(float_like(c, like)), value);
}

/* Adding 3 * 2^22 leaves no bits behind the point, rounds as floats do, and the
 * lowest bits are the whole number. No processor lacks that. */
Val codes_nearest(Code *c, Val x) {
    const double most = 0x1p20;
    x = float_max(c, float_min(c, x, code_float(x, most)),
                  code_float(x, -most));
    Val bits = float_bits(c, float_add(c, x, code_float(x, 0x1.8p23)));
    return int_sub(c, bits, code_int(bits, 0x4b400000));
}

Factor codes_factor(const Emit *e, const QuantScale *scale, Val like) {
    Code *c = e->c;
    Val zero = LLVMConstNull(int_like(c, like, 32));
    if (codes_even(e->k))
        return (Factor){.factor = codes_float(c, scale, like), .even = true};
    return (Factor){code_int(zero, scale->factor), code_int(zero, scale->shift),
                    scale->shift > 32, false};
}

/* Of `lanes` channels from `channel` on; those of sums below 0 where the
 * constants of that name are. */
static Factor channel_factor(const Emit *e, bool below, Val channel,
                             uint32_t lanes) {
    Code *c = e->c;
    Val at = index_mul(c, channel, 4);
    Val factor = emit_constant(e, below ? "factor_below" : "factor");
    if (codes_even(e->k))
        return (Factor){.factor = code_load_vector(c, factor, channel, lanes),
                        .even = true};
    Type type = int_type(c, 32, lanes);
    Val shift = emit_constant(e, below ? "shift_below" : "shift");
    return (Factor){code_load_type(c, factor, at, type),
                    code_load_type(c, shift, at, type),
                    quant_shifts_high(e->k->quant), false};
}

Val codes_channel_scaled(const Emit *e, Val channel, uint32_t lanes, Val sum) {
    Code *c = e->c;
    Factor factor = channel_factor(e, false, channel, lanes);
    if (e->k->quant->below) {
        Factor below = channel_factor(e, true, channel, lanes);
        Val bent = int_less(c, sum, code_int(sum, 0));
        factor.factor = code_select(c, bent, below.factor, factor.factor);
        if (!factor.even)
            factor.shift = code_select(c, bent, below.shift, factor.shift);
    }
    return codes_scaled(c, &factor, sum);
}

/* 2^n */
static Val power(Code *c, Val n) {
    return LLVMBuildShl(c->builder, code_int(n, 1), n, "");
}

/* x of 32 bits. */
static Val scaled_short(Code *c, const Factor *f, Val x) {
    Val shift = int_cast(c, f->shift, 64);
    Val sum = int_mul(c, int_cast(c, x, 64), int_cast(c, f->factor, 64));
    sum = int_add(c, sum, power(c, int_sub(c, shift, code_int(shift, 1))));
    if (!f->high)
        return int_shift(c, sum, shift);
    Val upper = int_cast(c, int_shift(c, sum, code_int(sum, 32)), 32);
    return int_shift(c, upper, int_sub(c, f->shift, code_int(f->shift, 32)));
}

/* x of 64 bits: without the product's lowest 32 bits, which do not reach the
 * bit that is rounded; or, by a factor above 1, of what is in 32 bits. */
static Val scaled_long(Code *c, const Factor *f, Val x) {
    if (!f->high) {
        x = int_max(c, x, code_int(x, INT32_MIN));
        x = int_min(c, x, code_int(x, INT32_MAX));
        return scaled_short(c, f, int_cast(c, x, 32));
    }
    Val shift = int_cast(c, f->shift, 64), factor = int_cast(c, f->factor, 64);
    Val low = LLVMBuildAnd(c->builder, x, code_int(x, UINT32_MAX), "");
    low = int_shift(c, int_mul(c, low, factor), code_int(x, 32));
    Val sum = int_mul(c, int_shift(c, x, code_int(x, 32)), factor);
    sum = int_add(c, sum, low);
    sum = int_add(c, sum, power(c, int_sub(c, shift, code_int(shift, 33))));
    return int_shift(c, sum, int_sub(c, shift, code_int(shift, 32)));
}

static uint32_t bits_of(Val x) {
    Type type = LLVMTypeOf(x);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    return LLVMGetIntTypeWidth(type);
}

Val codes_scaled(Code *c, const Factor *factor, Val x) {
    if (factor->even)
        return codes_nearest(
            c, float_mul(c, codes_to_float(c, x), factor->factor));
    return bits_of(x) > 32 ? scaled_long(c, factor, x)
                           : scaled_short(c, factor, x);
}

Val codes_finish(const Emit *e, Val x) {
    Code *c = e->c;
    const QuantLayer *q = e->k->quant;
    x = int_add(c, x, code_int(x, q->zero_out));
    x = int_max(c, x, code_int(x, q->lo));
    x = int_min(c, x, code_int(x, q->hi));
    return int_cast(c, x, 32);
}

Val codes_sum(const Emit *e, Val x) {
    return int_cast(e->c, x, kernel_is_wide(e->k) ? 64 : 32);
}

Val codes_get(const Emit *e, uint32_t i, Val at) {
    Val code = read_code(e, &e->k->in[i], e->in[i], at);
    int32_t zero = i < 2 ? e->k->quant->zero_in[i] : 0;
    return int_sub(e->c, code, code_int(code, zero));
}
