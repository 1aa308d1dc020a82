/* From values to histograms, from these to scales and zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "graph/quant.h"
#include "quantise/scheme.h"

#include <math.h>
#include <string.h>

static const QuantiseNumbers any = {.type = QUANT_I8, .round = QUANT_EVEN};
static const QuantiseNumbers shifts = {
    .type = QUANT_I8, .symmetric = true, .pow2 = true, .round = QUANT_UP};

static void test_power(void **state) {
    (void)state;
    for (int e = -40; e < 40; e++) {
        double p = ldexp(1, e);
        assert_true(fabs(range_power(p) - p) <= 0);
        assert_true(fabs(range_power(p * 1.001) - 2 * p) <= 0);
        assert_true(fabs(range_power(p * 0.999) - p) <= 0);
    }
}

/* Zero has a code of its own, both ends are within a step of the codes. */
static void test_ranges(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 2000; i++) {
        const QuantiseNumbers *n = i % 2 ? &any : &shifts;
        double size = ldexp(1, (int)(rng_bits(7, i) % 60) - 30);
        double a = size * rng_unit(8, i), b = size * rng_unit(9, i);
        Range r = {fmin(a, b), fmax(a, b)};
        Quant q = range_quant(r, i % 3 ? QUANT_I8 : QUANT_I16, n);
        Range reach = range_of(&q);
        assert_true(q.scale > 0);
        assert_true(fabs(quant_real(&q, q.zero)) <= 0);
        assert_true(reach.lo <= fmin(r.lo, 0) + q.scale &&
                    reach.hi >= fmax(r.hi, 0) - q.scale);
        if (n->pow2)
            assert_true(fabs(range_power(q.scale) - q.scale) <= 0);
        if (n->symmetric)
            assert_int_equal(q.zero, 0);
        /* no wider than it must be */
        double widest = fmax(fmax(r.hi, -r.lo), fmax(r.hi, 0) - fmin(r.lo, 0));
        double codes = q.type == QUANT_I8 ? 255 : 65535;
        assert_true(q.scale * codes <= 4.1 * widest);
    }
}

static void test_hostile(void **state) {
    (void)state;
    const Range ranges[] = {{0, 0},         {-0.0, 0.0},     {1e-38, 2e-38},
                            {-3e38, 3e38},  {5, 5},          {-7, -7},
                            {0, 1e-300},    {-1e-45, 1e-45}, {0, 3e38}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (int k = 0; k < 2; k++) {
            Quant q = range_quant(ranges[i], QUANT_I8, k ? &any : &shifts);
            assert_true(isfinite(q.scale) && q.scale > 0);
            assert_true(isfinite((float)q.scale) && (float)q.scale > 0);
            assert_in_range(q.zero + 128, 0, 255);
        }
}

static Histogram *histogram_of(Arena *arena, const float *value, size_t n) {
    Histogram *h = histogram_new(arena);
    histogram_add(h, n, value);
    return h;
}

/* The same counts in whatever parts and order. */
static void test_parts(void **state) {
    (void)state;
    enum { N = 3000 };
    static float value[N];
    Arena *arena = arena_new("test");
    for (size_t i = 0; i < N; i++)
        value[i] = (float)ldexp(rng_unit(5, i), (int)(i / 200));
    value[10] = NAN;
    value[11] = -INFINITY;
    value[12] = 0;
    Histogram *whole = histogram_of(arena, value, N);
    assert_int_equal(whole->nans, 2);
    assert_int_equal(whole->n + whole->zeros + whole->nans, N);
    for (size_t part = 1; part < N; part += 700) {
        Histogram *a = histogram_of(arena, value + part, N - part);
        histogram_join(a, histogram_of(arena, value, part));
        assert_int_equal(a->exponent, whole->exponent);
        assert_memory_equal(a->bin, whole->bin,
                            HISTOGRAM_BINS * sizeof *a->bin);
        assert_true(fabs(a->lo - whole->lo) <= 0 &&
                    fabs(a->hi - whole->hi) <= 0);
    }
    arena_free(arena);
}

/* One value far out: methods that look at all values do not reach for it. */
static void test_methods(void **state) {
    (void)state;
    enum { N = 100000 };
    Arena *arena = arena_new("test");
    float *value = ARENA_ARRAY(arena, float, N);
    for (size_t i = 0; i < N; i++)
        value[i] = (float)(rng_unit(6, 3 * i) + rng_unit(6, 3 * i + 1) +
                           rng_unit(6, 3 * i + 2));
    value[77] = 40;
    Histogram *h = histogram_of(arena, value, N);
    QuantiseOptions o = {.numbers = any, .percentile = 99.9};
    double error[METHOD_COUNT];
    for (int m = 0; m < METHOD_COUNT; m++) {
        o.method = (QuantiseMethod)m;
        Quant q = range_choose(h, QUANT_I8, &o);
        Range r = range_of(&q);
        error[m] = range_error(h, &q);
        if (m == METHOD_MINMAX) {
            assert_true(r.hi >= 39.9);
            assert_true(range_clipped(h, &q) <= 0);
        }
        if (m == METHOD_PERCENTILE || m == METHOD_KL)
            assert_true(r.hi < 10 && range_clipped(h, &q) < 0.01);
    }
    for (int m = 0; m < METHOD_COUNT; m++)
        assert_true(error[METHOD_MSE] <= error[m] * 1.0001);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_methods)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
