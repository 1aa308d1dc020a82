/* Functions of numbers in native code against the C library's in double, in
 * units in the last place of the rounded value. */
#include "native_test.h"

typedef struct Case {
    const char *act;
    double (*truth)(double x);
    double from, to; /* on a line of even steps */
    double ulps, absolute;
} Case;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double gelu(double x) {
    return 0.5 * x * erfc(-x * sqrt(0.5));
}
static double mish(double x) {
    return x * tanh(softplus(x));
}

/* The bounds are twice what was measured when this was written, or 1. Next to
 * zeros of sin, cos and tan only the absolute error is small. */
static const Case cases[] = {
    {"exp", exp, -87, 88.7, 4, 0},
    {"exp", exp, -103, -87, 4, 3e-45},
    {"log", log, 1e-30, 3e38, 4, 0},
    {"log", log, 0.5, 2, 4, 0},
    {"log", log, 1e-45, 1e-37, 4, 0},
    {"tanh", tanh, -12, 12, 4, 0},
    {"tanh", tanh, -0.7, 0.7, 4, 0},
    {"sigmoid", sigmoid, -80, 80, 4, 0},
    {"softplus", softplus, -80, 80, 4, 0},
    {"erf", erf, -5, 5, 4, 0},
    {"erf", erf, -1, 1, 4, 0},
    /* x is rounded times the root of 1/2 before it is squared */
    {"gelu", gelu, -8, 8, 64, 0},
    {"mish", mish, -40, 40, 8, 0},
    {"sin", sin, -100, 100, 4, 1e-7},
    {"cos", cos, -100, 100, 4, 1e-7},
    {"sin", sin, -10000, 10000, 4, 2e-6},
    {"tan", tan, -1.5, 1.5, 8, 0},
    {"asin", asin, -1, 1, 4, 0},
    {"acos", acos, -1, 0.99, 4, 0},
    {"atan", atan, -100, 100, 4, 0},
    {"atan", atan, -1, 1, 4, 0},
    {"sinh", sinh, -89, 89, 8, 0},
    {"sinh", sinh, -2, 2, 8, 0},
    {"cosh", cosh, -89, 89, 8, 0},
    {"asinh", asinh, -1e6, 1e6, 8, 0},
    {"asinh", asinh, -3, 3, 8, 0},
    {"acosh", acosh, 1, 1e6, 8, 0},
    {"acosh", acosh, 1, 3, 8, 0},
    {"atanh", atanh, -0.9999, 0.9999, 8, 0},
    {"sqrt", sqrt, 0, 1e10, 1, 0},
    {"floor", floor, -100, 100, 0, 0},
    {"ceil", ceil, -100, 100, 0, 0},
    {"trunc", trunc, -100, 100, 0, 0},
    {"round", rint, -100, 100, 0, 0},
};

enum { POINTS = 100003 };

static double ulps_between(float got, double want) {
    float near = (float)want;
    if (got == near || (isnan(got) && isnan(near)))
        return 0;
    double unit = fabs((double)nextafterf(near, INFINITY) - (double)near);
    return fabs((double)got - want) / unit;
}

static void run_act(Bench *b, const char *act, uint32_t n, const float *in,
                    float *out) {
    Operand operand = operand_dense(&(Shape){2, {1, n}}, &real_numbers);
    AttrPair attr = {.name = "act", .word = act};
    Kernel kernel = {.kind = "act",
                     .n_in = 1,
                     .n_out = 1,
                     .n_attrs = 1,
                     .in = &operand,
                     .out = &operand,
                     .attr = &attr,
                     .over = -1};
    bench_run(b, &kernel, NULL, &in, &out);
}

static void check_case(Bench *b, const Case *row) {
    float *in = ARENA_ARRAY(b->arena, float, POINTS);
    float *out = ARENA_ARRAY(b->arena, float, POINTS);
    for (int i = 0; i < POINTS; i++)
        in[i] = (float)(row->from + (row->to - row->from) * i / (POINTS - 1));
    run_act(b, row->act, POINTS, in, out);
    double worst = 0;
    int at = 0;
    for (int i = 0; i < POINTS; i++) {
        double want = row->truth((double)in[i]);
        if (fabs((double)out[i] - want) <= row->absolute)
            continue;
        double ulps = ulps_between(out[i], want);
        if (ulps > worst) {
            worst = ulps;
            at = i;
        }
    }
    if (worst > row->ulps)
        fail_msg("%s(%.9g) is %.9g, %.1f units off %.9g", row->act,
                 (double)in[at], (double)out[at], worst,
                 row->truth((double)in[at]));
}

static void test_accuracy(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bench b = bench_open();
        check_case(&b, &cases[i]);
        bench_close(&b);
    }
}

static void test_corners(void **state) {
    (void)state;
    static const struct {
        const char *act;
        float x, want;
    } row[] = {
        {"exp", INFINITY, INFINITY},
        {"exp", -INFINITY, 0},
        {"exp", 200, INFINITY},
        {"exp", NAN, NAN},
        {"log", 0, -INFINITY},
        {"log", -1, NAN},
        {"log", INFINITY, INFINITY},
        {"tanh", 100, 1},
        {"tanh", -INFINITY, -1},
        {"sigmoid", -INFINITY, 0},
        {"sigmoid", 1000, 1},
        {"softplus", 1000, 1000},
        {"softplus", -1000, 0},
        {"erf", INFINITY, 1},
        {"erf", -30, -1},
        {"atan", INFINITY, 1.57079633F},
        {"acos", -1, 3.14159265F},
        {"acos", 1, 0},
        {"asin", 1, 1.57079633F},
        {"asin", 2, NAN},
        {"atanh", 1, INFINITY},
        {"sinh", -100, -INFINITY},
        {"cosh", 100, INFINITY},
        {"acosh", 0.5F, NAN},
        {"round", 2.5F, 2},
        {"round", -3.5F, -4},
        {"round", 1e9F, 1e9F},
        {"floor", -0.25F, -1},
        {"ceil", -0.25F, -0.0F},
        {"trunc", -7.9F, -7},
        {"sign", -3, -1},
        {"not", 0, 1},
        {"to_f16", 0.1F, 0.0999755859375F},
        {"to_f16", 65519, 65504},
        {"to_f16", -65520, -INFINITY},
        {"to_f16", 3e-8F, 5.9604645e-8F},
        {"to_f16", 2e-8F, 0},
        {"to_f16", NAN, NAN},
        {"to_bf16", NAN, NAN},
        {"to_bf16", 1.00390625F, 1},
        {"to_bf16", 1.01F, 1.0078125F},
        {"sqrt", -1, NAN},
        {"reciprocal", 0, INFINITY},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Bench b = bench_open();
        float got;
        run_act(&b, row[i].act, 1, &row[i].x, &got);
        if (ulps_between(got, (double)row[i].want) > 1)
            fail_msg("%s(%g) is %.9g instead of %.9g", row[i].act,
                     (double)row[i].x, (double)got, (double)row[i].want);
        bench_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
