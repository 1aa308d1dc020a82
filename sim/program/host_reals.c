/* host_reals.c - nodes on reals that a processor runs; see run.h.
 *
 * Floats of 32 bits, one operation after the other in the order of the elements
 * and taps; sums begin with the first value or the bias. The functions are the
 * C library's.
 */
#include "sim/program/host.h"

#include <math.h>
#include <string.h>

static float bounded(float x, float least, float most) {
    return fminf(fmaxf(x, least), most);
}

/* ---- element by element ---- */

typedef float Unary(float);

static float negative(float x) {
    return -x;
}

static float inverse_root(float x) {
    return 1.0F / sqrtf(x);
}

static float squared(float x) {
    return x * x;
}

static bool unary(ProgramRun *run) {
    static const struct {
        const char *name;
        Unary *run;
    } known[] = {{"abs", fabsf},     {"ceil", ceilf},         {"cos", cosf},
                 {"exp", expf},      {"floor", floorf},       {"log", logf},
                 {"neg", negative},  {"rsqrt", inverse_root}, {"sin", sinf},
                 {"square", squared}};
    Operand in, out;
    const char *name = node_word(run, "function");
    if (!operand_of(run, node_scope(run), "in", &in) ||
        !operand_of(run, node_scope(run), "out", &out))
        return false;
    if (in.size != out.size || !out.reals)
        return prog_fault(run, "in and out differ");
    float *x = operand_reals(run, &in);
    for (size_t k = 0; x && k < sizeof known / sizeof *known; k++) {
        if (strcmp(name, known[k].name))
            continue;
        for (uint64_t i = 0; i < operand_count(&in); i++)
            x[i] = known[k].run(x[i]);
        return result_write(run, &out, x);
    }
    return x && prog_fault(run, "nobody knows the function `%s`", name);
}

static bool combine(const char *op, float a, float b, float *out) {
    if (!strcmp(op, "add"))
        *out = a + b;
    else if (!strcmp(op, "sub"))
        *out = a - b;
    else if (!strcmp(op, "mul"))
        *out = a * b;
    else if (!strcmp(op, "div"))
        *out = a / b;
    else if (!strcmp(op, "min"))
        *out = fminf(a, b);
    else if (!strcmp(op, "max"))
        *out = fmaxf(a, b);
    else
        return false;
    return true;
}

static bool binary(ProgramRun *run) {
    TwoShapes s;
    const char *op = node_word(run, "operation");
    if (!host_two_shapes(run, &s))
        return false;
    const float *a = operand_reals(run, &s.of[0]);
    const float *b = a ? operand_reals(run, &s.of[1]) : NULL;
    if (!b || !s.of[2].reals)
        return b && prog_fault(run, "out: these are codes");
    float least = node_real(run, "least"), most = node_real(run, "most");
    uint64_t n = operand_count(&s.of[2]);
    float *made = ARENA_ARRAY(run->work, float, n);
    for (uint64_t i = 0; i < n; i++) {
        float x = a[host_spread(&s.dims[0], &s.dims[2], i)];
        if (!combine(op, x, b[host_spread(&s.dims[1], &s.dims[2], i)],
                     &made[i]))
            return prog_fault(run, "nobody knows the operation `%s`", op);
        made[i] = bounded(made[i], least, most);
    }
    return result_write(run, &s.of[2], made);
}

static void soften(float *x, uint64_t n, uint64_t step, float beta) {
    float most = x[0], sum = 0;
    for (uint64_t i = 0; i < n; i++)
        most = fmaxf(most, x[i * step]);
    for (uint64_t i = 0; i < n; i++) {
        x[i * step] = expf((x[i * step] - most) * beta);
        sum += x[i * step];
    }
    for (uint64_t i = 0; i < n; i++)
        x[i * step] /= sum;
}

static bool softmax(ProgramRun *run) {
    Operand in, out;
    int64_t inner, outer;
    const int64_t most = INT64_C(1) << 31;
    if (!operand_of(run, node_scope(run), "in", &in) ||
        !operand_of(run, node_scope(run), "out", &out) ||
        !node_num(run, "inner", 1, most, &inner) ||
        !node_num(run, "outer", 1, most, &outer))
        return false;
    if ((uint64_t)(inner * outer) != operand_count(&in) ||
        in.size != out.size || !out.reals)
        return prog_fault(run, "%lld rows of %lld are not in and out",
                          (long long)outer, (long long)inner);
    float *x = operand_reals(run, &in);
    for (int64_t i = 0; x && i < outer; i++)
        soften(x + i * inner, (uint64_t)inner, 1, node_real(run, "beta"));
    return x && result_write(run, &out, x);
}

/* ---- over axes and windows ---- */

/* The sum's next value: of the mean, the sum. */
static bool reduced(const char *kind, float a, float b, float *out) {
    if (!strcmp(kind, "mean") || !strcmp(kind, "sum"))
        *out = a + b;
    else if (!strcmp(kind, "min"))
        *out = fminf(a, b);
    else if (!strcmp(kind, "max"))
        *out = fmaxf(a, b);
    else
        return false;
    return true;
}

static bool reduce(ProgramRun *run) {
    Operand in, out;
    Dims from, to;
    const char *kind = node_word(run, "reduce");
    float ignored;
    if (!operand_of(run, node_scope(run), "in", &in) ||
        !operand_of(run, node_scope(run), "out", &out) ||
        !dims_of(run, "in", &from) || !dims_of(run, "out", &to) ||
        !dims_fill(run, &from, &in) || !dims_fill(run, &to, &out))
        return false;
    for (int i = 0; i < 4; i++)
        if (to.at[i] != 1 && to.at[i] != from.at[i])
            return prog_fault(run, "out has other axes than in");
    if (!out.reals || !reduced(kind, 0, 0, &ignored))
        return prog_fault(run, "nobody knows the reduction `%s`", kind);
    const float *x = operand_reals(run, &in);
    if (!x)
        return false;
    uint64_t n = operand_count(&out), all = operand_count(&in);
    float *made = ARENA_ARRAY(run->work, float, n);
    for (uint64_t i = 0; i < n; i++)
        made[i] = node_real(run, "first");
    for (uint64_t i = 0; i < all; i++) {
        float *at = &made[host_spread(&to, &from, i)];
        reduced(kind, *at, x[i], at);
    }
    for (uint64_t i = 0; i < n && !strcmp(kind, "mean"); i++)
        made[i] *= (float)n / (float)all;
    return result_write(run, &out, made);
}

static bool reduce_window(ProgramRun *run) {
    HostConv v;
    const char *kind = node_word(run, "reduce");
    float ignored;
    if (!host_pool_of(run, &v))
        return false;
    if (!v.of_out.reals || !reduced(kind, 0, 0, &ignored))
        return prog_fault(run, "nobody knows the reduction `%s`", kind);
    const float *x = operand_reals(run, &v.of_in);
    if (!x)
        return false;
    float least = node_real(run, "least"), most = node_real(run, "most");
    uint64_t n = operand_count(&v.of_out);
    float *made = ARENA_ARRAY(run->work, float, n);
    for (uint64_t i = 0; i < n; i++) {
        HostTap t = host_first_tap(&v, i);
        uint32_t taps = 0;
        made[i] = node_real(run, "first");
        for (; host_next_tap(&v, &t); taps++)
            reduced(kind, made[i], x[t.in], &made[i]);
        if (!strcmp(kind, "mean"))
            made[i] /= (float)taps;
        made[i] = bounded(made[i], least, most);
    }
    return result_write(run, &v.of_out, made);
}

/* ---- sums of products ---- */

static bool conv_real(ProgramRun *run) {
    HostConv v;
    if (!host_conv_of(run, &v))
        return false;
    const float *w = node_reals(run, "real.weights", v.n_weights);
    const float *bias = w ? node_reals(run, "real.bias", v.out.at[1]) : NULL;
    const float *x = bias ? operand_reals(run, &v.of_in) : NULL;
    if (!x || !v.of_out.reals)
        return x && prog_fault(run, "out: these are codes");
    float least = node_real(run, "least"), most = node_real(run, "most");
    uint64_t n = operand_count(&v.of_out);
    float *made = ARENA_ARRAY(run->work, float, n);
    for (uint64_t i = 0; i < n; i++) {
        HostTap t = host_first_tap(&v, i);
        float sum = bias[t.out_c];
        for (; host_next_tap(&v, &t);)
            sum += x[t.in] * w[t.weight];
        made[i] = bounded(sum, least, most);
    }
    return result_write(run, &v.of_out, made);
}

static bool matmul_real(ProgramRun *run) {
    HostProduct p;
    if (!host_product_of(run, &p))
        return false;
    const float *bias = node_reals(run, "product.bias", p.columns2);
    const float *a = bias ? operand_reals(run, &p.of[0]) : NULL;
    const float *b = a ? operand_reals(run, &p.of[1]) : NULL;
    if (!b || !p.of[2].reals)
        return b && prog_fault(run, "out: these are codes");
    float least = node_real(run, "least"), most = node_real(run, "most");
    float *made = ARENA_ARRAY(run->work, float, operand_count(&p.of[2]));
    for (uint64_t y = 0; y < p.rows; y++)
        for (uint64_t x = 0; x < p.columns2; x++) {
            float sum = bias[x];
            for (uint64_t k = 0; k < p.columns; k++)
                sum += a[y * p.columns + k] * b[k * p.columns2 + x];
            made[y * p.columns2 + x] = bounded(sum, least, most);
        }
    return result_write(run, &p.of[2], made);
}

const ProgramHostRow prog_reals[] = {
    {"unary", unary},
    {"binary", binary},
    {"softmax", softmax},
    {"reduce", reduce},
    {"reduce_window", reduce_window},
    {"conv_real", conv_real},
    {"matmul_real", matmul_real},
    {NULL, NULL},
};
