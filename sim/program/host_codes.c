/* host_codes.c - nodes on codes that a processor runs; see run.h.
 *
 * Codes are bytes without sign. Sums are of 32 bits and wrap; products with a
 * multiplier have 64.
 */
#include "sim/program/host.h"

#include <math.h>
#include <string.h>

enum { CODE_MOST = 255, SHIFT_MOST = 62 };

static uint8_t clamp_code(int64_t x) {
    return (uint8_t)(x < 0 ? 0 : x > CODE_MOST ? CODE_MOST : x);
}

static int64_t wrapped(int64_t x) {
    uint32_t low = (uint32_t)(uint64_t)x;
    return low > INT32_MAX ? (int64_t)low - (INT64_C(1) << 32) : (int64_t)low;
}

static bool type_is(ProgramRun *run, const Operand *o, bool reals) {
    return o->reals == reals || prog_fault(run, "%s: these are %s", o->what,
                                           o->reals ? "reals" : "codes");
}

/* ---- between reals and codes ---- */

static bool both(ProgramRun *run, bool reals_in, Operand *in, Operand *out,
                 int64_t *zero) {
    if (!operand_of(run, node_scope(run), "in", in) ||
        !operand_of(run, node_scope(run), "out", out) ||
        !type_is(run, in, reals_in) || !type_is(run, out, !reals_in) ||
        !node_num(run, "code.zero", INT32_MIN, INT32_MAX, zero))
        return false;
    if (operand_count(in) != operand_count(out))
        return prog_fault(run, "%llu elements become %llu",
                          (unsigned long long)operand_count(in),
                          (unsigned long long)operand_count(out));
    return true;
}

static bool dequantise(ProgramRun *run) {
    Operand in, out;
    int64_t zero;
    if (!both(run, false, &in, &out, &zero))
        return false;
    const float unit = 1.0F / node_real(run, "code.scale");
    const uint8_t *code = operand_bytes(run, &in);
    float *made = ARENA_ARRAY(run->work, float, in.size);
    for (uint64_t i = 0; i < in.size; i++)
        made[i] = (float)(code[i] - zero) * unit;
    return result_write(run, &out, made);
}

static bool quantise(ProgramRun *run) {
    Operand in, out;
    int64_t zero;
    if (!both(run, true, &in, &out, &zero))
        return false;
    const float scale = node_real(run, "code.scale");
    const float *from = operand_reals(run, &in);
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, out.size);
    for (uint64_t i = 0; i < out.size; i++) {
        float code = roundf(from[i] * scale + (float)zero);
        made[i] = code >= CODE_MOST ? CODE_MOST : code > 0 ? (uint8_t)code : 0;
    }
    return result_write(run, &out, made);
}

static bool lookup(ProgramRun *run) {
    Operand in, table, out;
    if (!operand_of(run, node_scope(run), "in", &in) ||
        !operand_of(run, node_scope(run), "in2", &table) ||
        !operand_of(run, node_scope(run), "out", &out))
        return false;
    if (table.size != CODE_MOST + 1 || in.size != out.size || in.reals ||
        out.reals)
        return prog_fault(run, "%llu codes become %llu by a table of %llu",
                          (unsigned long long)in.size,
                          (unsigned long long)out.size,
                          (unsigned long long)table.size);
    const uint8_t *code = operand_bytes(run, &in);
    const uint8_t *to = code ? operand_bytes(run, &table) : NULL;
    if (!to)
        return false;
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, out.size);
    for (uint64_t i = 0; i < out.size; i++)
        made[i] = to[code[i]];
    return result_write(run, &out, made);
}

/* ---- scaled by a multiplier and a shift ---- */

typedef struct Scaled {
    int64_t add, mul, shift;
} Scaled;

static bool scaled_of(ProgramRun *run, const char *name, Scaled *out) {
    return node_num(run, arena_printf(run->work, "%s.add", name), INT32_MIN,
                    INT32_MAX, &out->add) &&
           node_num(run, arena_printf(run->work, "%s.mul", name), INT32_MIN,
                    INT32_MAX, &out->mul) &&
           node_num(run, arena_printf(run->work, "%s.shift", name), 0,
                    SHIFT_MOST, &out->shift);
}

/* x * mul / 2^shift, to the nearest, halves up, as a number of 32 bits. */
static int64_t scaled(const Scaled *s, int64_t x) {
    int64_t out;
    round_shift(ROUND_HALF_UP, x * s->mul, (uint32_t)s->shift, &out);
    return wrapped(out);
}

static int64_t nearest_quotient(int64_t a, int64_t b) {
    return b ? (a + b / 2) / b : 0;
}

static bool combine(const char *op, int64_t a, int64_t b, int64_t *out) {
    if (!strcmp(op, "add"))
        *out = wrapped(a + b);
    else if (!strcmp(op, "sub"))
        *out = wrapped(a - b);
    else if (!strcmp(op, "mul"))
        *out = wrapped(a * b);
    else if (!strcmp(op, "div"))
        *out = nearest_quotient(a, b);
    else if (!strcmp(op, "min"))
        *out = a < b ? a : b;
    else if (!strcmp(op, "max"))
        *out = a > b ? a : b;
    else
        return false;
    return true;
}

static bool binary_codes(ProgramRun *run) {
    TwoShapes s;
    Scaled a, b, r;
    const char *op = node_word(run, "operation");
    if (!host_two_shapes(run, &s) || !scaled_of(run, "in", &a) ||
        !scaled_of(run, "in2", &b) || !scaled_of(run, "out", &r))
        return false;
    for (int k = 0; k < 3; k++)
        if (!type_is(run, &s.of[k], false))
            return false;
    const uint8_t *x = operand_bytes(run, &s.of[0]);
    const uint8_t *y = x ? operand_bytes(run, &s.of[1]) : NULL;
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, s.of[2].size);
    for (uint64_t i = 0; y && i < s.of[2].size; i++) {
        int64_t p = x[host_spread(&s.dims[0], &s.dims[2], i)] + a.add;
        int64_t q = y[host_spread(&s.dims[1], &s.dims[2], i)] + b.add, sum;
        if (!combine(op, scaled(&a, wrapped(p)), scaled(&b, wrapped(q)), &sum))
            return prog_fault(run, "nobody knows the operation `%s`", op);
        made[i] = clamp_code(scaled(&r, sum) + r.add);
    }
    return y && result_write(run, &s.of[2], made);
}

/* ---- sums of products ---- */

static bool conv_codes(ProgramRun *run) {
    HostConv v;
    int64_t add_in, add_weight;
    Scaled out;
    if (!host_conv_of(run, &v) || !type_is(run, &v.of_in, false) ||
        !type_is(run, &v.of_out, false) || !scaled_of(run, "out", &out) ||
        !node_num(run, "in.add", INT32_MIN, INT32_MAX, &add_in) ||
        !node_num(run, "weights.add", INT32_MIN, INT32_MAX, &add_weight))
        return false;
    const int64_t *w = node_nums(run, "code.weights", v.n_weights);
    const int64_t *bias = w ? node_nums(run, "code.bias", v.out.at[1]) : NULL;
    const uint8_t *x = bias ? operand_bytes(run, &v.of_in) : NULL;
    if (!x)
        return false;
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, v.of_out.size);
    for (uint64_t i = 0; i < v.of_out.size; i++) {
        HostTap t = host_first_tap(&v, i);
        int64_t sum = bias[t.out_c];
        for (; host_next_tap(&v, &t);)
            sum = wrapped(sum + wrapped(x[t.in] + add_in) *
                                    wrapped(w[t.weight] + add_weight));
        made[i] = clamp_code(scaled(&out, sum) + out.add);
    }
    return result_write(run, &v.of_out, made);
}

static bool matmul_codes(ProgramRun *run) {
    HostProduct p;
    Scaled out;
    int64_t add_in, add_in2;
    if (!host_product_of(run, &p) || !type_is(run, &p.of[0], false) ||
        !type_is(run, &p.of[1], false) || !type_is(run, &p.of[2], false) ||
        !scaled_of(run, "out", &out) ||
        !node_num(run, "in.add", INT32_MIN, INT32_MAX, &add_in) ||
        !node_num(run, "in2.add", INT32_MIN, INT32_MAX, &add_in2))
        return false;
    const int64_t *bias = node_nums(run, "product.code_bias", p.columns2);
    const uint8_t *a = bias ? operand_bytes(run, &p.of[0]) : NULL;
    const uint8_t *b = a ? operand_bytes(run, &p.of[1]) : NULL;
    if (!b)
        return false;
    uint8_t *made = ARENA_ARRAY(run->work, uint8_t, p.of[2].size);
    for (uint64_t y = 0; y < p.rows; y++)
        for (uint64_t x = 0; x < p.columns2; x++) {
            int64_t sum = bias[x];
            for (uint64_t k = 0; k < p.columns; k++)
                sum =
                    wrapped(sum + wrapped(a[y * p.columns + k] + add_in) *
                                      wrapped(b[k * p.columns2 + x] + add_in2));
            made[y * p.columns2 + x] = clamp_code(scaled(&out, sum) + out.add);
        }
    return result_write(run, &p.of[2], made);
}

const ProgramHostRow prog_codes[] = {
    {"quantise", quantise},
    {"dequantise", dequantise},
    {"lookup", lookup},
    {"binary_codes", binary_codes},
    {"conv_codes", conv_codes},
    {"matmul_codes", matmul_codes},
    {NULL, NULL},
};
