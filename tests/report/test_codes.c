/* test_codes.c - the simulator's arithmetic on codes and that of the graph.
 *
 * Both are written from docs/quantisation.md; here they are compared on random
 * layers and codes, halves up and to even, one element at a time, and with
 * results worked out by hand. This room is the first that knows both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "graph/quant.h"
#include "sim/quant.h"

typedef struct Dice {
    uint64_t seed, at;
} Dice;

/* lo..hi, both included */
static int64_t roll(Dice *d, int64_t lo, int64_t hi) {
    uint64_t n = (uint64_t)(hi - lo) + 1;
    return lo + (int64_t)(rng_bits(d->seed, d->at++) % n);
}

static QuantScale roll_scale(Dice *d, uint32_t least, uint32_t most) {
    return (QuantScale){(int32_t)roll(d, 1 << 30, INT32_MAX),
                        (uint32_t)roll(d, least, most)};
}

static void products_are_rounded_alike(void **state) {
    (void)state;
    Dice d = {rng_seed("products", 1), 0};
    for (int i = 0; i < 20000; i++) {
        QuantScale scale = roll_scale(&d, 1, 62);
        int64_t most = (INT64_C(1) << roll(&d, 1, scale.shift <= 32 ? 31 : 46));
        int64_t x = roll(&d, 1 - most, most - 1);
        assert_int_equal(quant_scaled(&scale, x), quant_apply(scale, x));
    }
    static const struct {
        int32_t factor;
        uint32_t shift;
        int64_t x, is;
    } known[] = {{1 << 30, 31, 3, 2},
                 {1 << 30, 31, -3, -1},
                 {1 << 30, 31, 1, 1},
                 {1 << 30, 31, -1, 0},
                 {1 << 30, 30, 7, 7},
                 {1 << 30, 17, 1, 1 << 13},
                 {1 << 30, 18, -1, -(1 << 12)},
                 {3 << 29, 32, 1, 0},
                 {3 << 29, 32, 2, 1},
                 {1 << 30, 62, INT64_C(1) << 32, 1},
                 {1 << 30, 62, (INT64_C(1) << 31) - 1, 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        QuantScale scale = {known[i].factor, known[i].shift};
        assert_int_equal(quant_scaled(&scale, known[i].x), known[i].is);
    }
}

static QuantLayer roll_layer(Dice *d, QuantScale *scale, QuantRule rule,
                             QuantRound round) {
    int32_t width = roll(d, 0, 3) ? 127 : 32767;
    QuantLayer q = {.rule = rule,
                    .round = round,
                    .lo = -width - 1,
                    .hi = width,
                    .n = rule == QUANT_ADDS || quant_by_floats(round) ? 3 : 1,
                    .scale = scale,
                    .minus = rule == QUANT_ADDS && roll(d, 0, 1)};
    q.zero_in[0] = (int32_t)roll(d, -128, 127);
    q.zero_in[1] = (int32_t)roll(d, -128, 127);
    q.zero_out = (int32_t)roll(d, -128, 127);
    q.left = rule == QUANT_ADDS ? (uint32_t)roll(d, 0, 20) : 0;
    for (int k = 0; k < 3; k++)
        scale[k] = roll_scale(d, 29, 34);
    if (rule == QUANT_ADDS && !quant_by_floats(round))
        scale[2] = roll_scale(d, 30 + q.left, 33 + q.left);
    return q;
}

/* What a layer of two operands says of codes less their zeros. */
static int64_t two_of(const QuantLayer *q, int64_t x, int64_t y) {
    if (quant_by_floats(q->round))
        return quant_blend(q, x, y);
    if (q->rule == QUANT_PRODUCT)
        return quant_apply(q->scale[0], x * y);
    int64_t a = quant_apply(q->scale[0], x * (INT64_C(1) << q->left));
    int64_t b = quant_apply(q->scale[1], y * (INT64_C(1) << q->left));
    return quant_apply(q->scale[2], q->minus ? a - b : a + b);
}

static const QuantRound rounds[] = {QUANT_UP, QUANT_EVEN, QUANT_TERMS};

static void two_operands_agree(void **state) {
    (void)state;
    Dice d = {rng_seed("two", 1), 0};
    uint32_t inside = 0;
    for (int i = 0; i < 30000; i++) {
        QuantScale scale[3];
        QuantLayer q =
            roll_layer(&d, scale, roll(&d, 0, 1) ? QUANT_ADDS : QUANT_PRODUCT,
                       rounds[i % 3]);
        int64_t a = roll(&d, -128, 127), b = roll(&d, -128, 127);
        int64_t want =
            quant_finish(&q, two_of(&q, a - q.zero_in[0], b - q.zero_in[1]));
        assert_int_equal((int64_t)quant_two(&q, (float)a, (float)b), want);
        inside += want > q.lo && want < q.hi;
    }
    assert_true(inside > 10000);
}

static void moves_agree(void **state) {
    (void)state;
    Dice d = {rng_seed("moves", 1), 0};
    for (int i = 0; i < 10000; i++) {
        QuantScale scale[3];
        QuantLayer q = roll_layer(&d, scale, QUANT_MOVES, rounds[i % 3]);
        q.n = (uint32_t)roll(&d, 0, quant_by_floats(q.round) ? 2 : 1);
        q.n = quant_by_floats(q.round) && q.n == 1 ? 2 : q.n;
        int64_t code = roll(&d, -128, 127), x = code - q.zero_in[0];
        float at[] = {(float)code, 0};
        quant_move(&q, at, 1);
        assert_int_equal((int64_t)at[0], quant_finish(&q, quant_moved(&q, x)));
        assert_true(at[1] == 0);
    }
}

static void means_are_rounded_away_from_zero(void **state) {
    (void)state;
    Dice d = {rng_seed("means", 1), 0};
    for (int i = 0; i < 10000; i++) {
        QuantScale scale[3];
        QuantLayer q = roll_layer(&d, scale, QUANT_MEANS, QUANT_UP);
        q.n = (uint32_t)roll(&d, 0, 1);
        int64_t n = roll(&d, 1, 70), sum = roll(&d, -128 * n, 127 * n);
        int64_t scaled = q.n ? quant_apply(scale[0], sum) : sum;
        assert_int_equal((int64_t)quant_mean(&q, sum, (uint64_t)n),
                         quant_finish(&q, quant_divide(scaled, n)));
        q.round = QUANT_EVEN;
        q.n = 1;
        assert_int_equal((int64_t)quant_mean(&q, sum, (uint64_t)n),
                         quant_finish(&q, quant_summed(&q, 0, sum)));
    }
}

static void real_numbers_become_the_same_codes(void **state) {
    (void)state;
    Dice d = {rng_seed("reals", 1), 0};
    for (int type = QUANT_NONE + 1; type < QUANT_TYPE_COUNT; type++)
        for (int i = 0; i < 3000; i++) {
            int64_t lo = (int64_t)quant_type[type].lo,
                    hi = (int64_t)quant_type[type].hi;
            Quant q = {.type = (QuantType)type,
                       .zero = (int32_t)roll(&d, lo > -300 ? lo : -300,
                                             hi < 300 ? hi : 300),
                       .scale = 1.0 / (double)roll(&d, 1, 64),
                       .round = rounds[i % 3]};
            /* halves among them */
            double real = (double)roll(&d, -900, 900) / 2 * q.scale;
            double finer = (double)roll(&d, -90000, 90000) / 77;
            assert_true(quant_from_real(&q, real) ==
                        (float)quant_code(&q, real));
            assert_true(quant_from_real(&q, finer) ==
                        (float)quant_code(&q, finer));
            int64_t code = roll(&d, lo > -999 ? lo : -999, hi < 999 ? hi : 999);
            assert_true(quant_to_real(&q, (float)code) ==
                        quant_real(&q, (double)code));
        }
    Quant q = {.type = QUANT_I8, .zero = 3, .scale = 1};
    assert_true(quant_from_real(&q, NAN) == 3);
    assert_true(quant_from_real(&q, 1e30) == 127);
    assert_true(quant_from_real(&q, -1e30) == -128);
    assert_true(quant_from_real(&q, 0.5) == 4);
    assert_true(quant_from_real(&q, -0.5) == 3);
    q.round = QUANT_EVEN;
    assert_true(quant_from_real(&q, 0.5) == 3);
    assert_true(quant_from_real(&q, 1.5) == 5);
    assert_true(quant_from_real(&q, -1.5) == 1);
}

static void tables_are_looked_up(void **state) {
    (void)state;
    int16_t table[QUANT_TABLE_SIZE];
    for (int i = 0; i < QUANT_TABLE_SIZE; i++)
        table[i] = (int16_t)(3 * i - 100);
    QuantLayer q = {.rule = QUANT_TABLE, .zero_in = {-128, 0}, .table = table};
    float at[] = {-128, -127, 127, 128, -129, 0};
    quant_look_up(&q, at, 5);
    assert_true(at[0] == -100 && at[1] == -97 && at[2] == 3 * 255 - 100);
    assert_true(at[3] == -100 && at[4] == -100 && at[5] == 0);
    assert_int_equal(quant_less_zero(&q, 5), 133);
    assert_int_equal(quant_less_zero(&q, 65535), 65535 + 128);
    assert_int_equal(quant_less_zero(&q, 65536), 128);
    assert_int_equal(quant_less_zero(&q, -32768), -32768 + 128);
    assert_int_equal(quant_less_zero(&q, -32769), 128);
}

static void scales_begin_with_a_channel(void **state) {
    (void)state;
    QuantScale scale[4], below[4];
    QuantLayer q = {.n = 4, .scale = scale, .below = below};
    quant_from_channel(&q, 3);
    assert_ptr_equal(q.scale, scale + 3);
    assert_ptr_equal(q.below, below + 3);
    QuantLayer one = {.n = 1, .scale = scale};
    quant_from_channel(&one, 3);
    assert_ptr_equal(one.scale, scale);
    QuantLayer two = {.n = 2, .scale = scale};
    quant_from_channel(&two, 1);
    assert_ptr_equal(two.scale, scale + 1);
    assert_null(two.below);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_rounded_alike),
        cmocka_unit_test(two_operands_agree),
        cmocka_unit_test(moves_agree),
        cmocka_unit_test(means_are_rounded_away_from_zero),
        cmocka_unit_test(real_numbers_become_the_same_codes),
        cmocka_unit_test(tables_are_looked_up),
        cmocka_unit_test(scales_begin_with_a_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
