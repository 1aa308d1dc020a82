/* Stages of requantisation: each rounding by its table of docs/hwspec.md, and
 * what stages do in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/requant.h"
#include "base/rng.h"
#include "base/text.h"

#include <string.h>

enum { LEAST = -6, VALUES = 13 };

/* -6/4 .. 6/4. `double`: halved by 31 bits, halved again by the rest. */
static const int64_t table[ROUND_COUNT][VALUES] = {
    [ROUND_FLOOR] = {-2, -2, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1},
    [ROUND_TRUNC] = {-1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1},
    [ROUND_HALF_UP] = {-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2},
    [ROUND_HALF_AWAY] = {-2, -1, -1, -1, -1, 0, 0, 0, 1, 1, 1, 1, 2},
    [ROUND_HALF_EVEN] = {-2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2},
    [ROUND_DOUBLE] = {-2, -1, -1, -1, -1, 0, 0, 1, 1, 1, 1, 2, 2},
    [ROUND_FLOAT_EVEN] = {-2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2},
    [ROUND_FLOAT_EVEN_CARRY] = {-2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2},
    [ROUND_HALF_EVEN_OUTWARD] = {-2, -3, -1, -1, -2, -2, 0, 0, 0, 1, 1, 1, 2},
};

static int64_t quarter(Rounding round, int64_t x) {
    const int64_t half = 1 << 30, mul[] = {round == ROUND_DOUBLE ? half : 1};
    const int64_t shift[] = {round == ROUND_DOUBLE ? 32 : 2};
    RequantStage stage = {.round = round};
    const int64_t bits[] = {0x3e800000}; /* 0.25 */
    if (round == ROUND_FLOAT_EVEN || round == ROUND_FLOAT_EVEN_CARRY) {
        stage.of[STAGE_FACTOR] = (StageValues){1, bits};
    } else {
        stage.of[STAGE_MUL] = (StageValues){1, mul};
        stage.of[STAGE_SHIFT] = (StageValues){1, shift};
    }
    int64_t out = 99;
    uint32_t at;
    assert_int_equal(requant(1, &stage, 0, x, &out, &at), REQUANT_FINE);
    return out;
}

static void roundings_have_their_tables(void **state) {
    (void)state;
    for (int r = 0; r < ROUND_COUNT; r++)
        for (int i = 0; i < VALUES; i++)
            if (quarter((Rounding)r, LEAST + i) != table[r][i])
                fail_msg("%s of %d/4 is %d", rounding_name[r], LEAST + i,
                         (int)quarter((Rounding)r, LEAST + i));
}

static void manual_has_the_tables(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Bytes file = {0};
    assert_true(file_read(arena, diag_new(arena), "docs/hwspec.md", &file));
    const char *manual = arena_strndup(arena, (const char *)file.at, file.len);
    static const char *const doc[] = {
#define ROUNDING(NAME, text, doc) (doc),
        ROUNDINGS
#undef ROUNDING
    };
    for (int r = 0; r < ROUND_COUNT; r++) {
        Text row = text_new(arena);
        text_addf(&row, "\n| `%s` |", rounding_name[r]);
        for (int i = 0; i < VALUES; i++)
            text_addf(&row, " %d |", (int)table[r][i]);
        if (!strstr(manual, text_str(&row)))
            fail_msg("docs/hwspec.md lacks: %s", text_str(&row));
        const char *means =
            arena_printf(arena, "\n| `%s` | %s |\n", rounding_name[r], doc[r]);
        if (!strstr(manual, means))
            fail_msg("docs/hwspec.md lacks: %s", means);
    }
#define PARAM(NAME, text, doc)                                                 \
    if (!strstr(manual, "| `" text "` | " doc " |"))                           \
        fail_msg("docs/hwspec.md lacks: %s", text " | " doc);
    STAGE_PARAMS
#undef PARAM
    arena_free(arena);
}

/* By the real quotient: exact for numbers of so few bits. */
static void shifts_are_nearest(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        int64_t x = (int64_t)(rng_bits(1, i) % 200001) - 100000, q;
        uint32_t shift = (uint32_t)(rng_bits(2, i) % 12);
        int64_t unit = INT64_C(1) << shift;
        for (int r = 0; r < ROUND_COUNT; r++) {
            if (r == ROUND_DOUBLE)
                continue;
            assert_true(round_shift((Rounding)r, x, shift, &q));
            int64_t off = q * unit - x;
            if (r == ROUND_FLOOR)
                assert_true(off <= 0 && off > -unit);
            else if (r == ROUND_TRUNC)
                assert_true(
                    q * unit <= (x < 0 ? -x : x) &&
                    (x < 0 ? off >= 0 && off < unit : off <= 0 && off > -unit));
            else if (r != ROUND_HALF_EVEN_OUTWARD || x >= 0)
                assert_true(2 * off <= unit && 2 * off >= -unit);
        }
        int64_t away, up, even;
        round_shift(ROUND_HALF_AWAY, x, shift, &away);
        round_shift(ROUND_HALF_UP, x, shift, &up);
        round_shift(ROUND_HALF_EVEN, x, shift, &even);
        bool half = shift && (x & (unit - 1)) == unit / 2;
        assert_true(half ? !(even & 1) && up * unit > x : up == away);
        assert_true(!half || (x < 0 ? away < up : away == up));
    }
    int64_t q;
    assert_true(round_shift(ROUND_HALF_UP, INT64_MAX, 62, &q) && q == 2);
    assert_true(round_shift(ROUND_FLOOR, INT64_MIN, 62, &q) && q == -2);
}

/* 1552 / 97 in floats is 15.999999; plus 1 it is 17. */
static void carry_is_the_flaw(void **state) {
    (void)state;
    float factor = 1.0F / 97;
    int64_t exact, flaw;
    assert_true(round_float(ROUND_FLOAT_EVEN, 1552, factor, &exact));
    assert_true(round_float(ROUND_FLOAT_EVEN_CARRY, 1552, factor, &flaw));
    assert_int_equal(exact, 16);
    assert_int_equal(flaw, 17);
    assert_false(round_float(ROUND_FLOAT_EVEN, 1 << 30, 1e30F, &exact));
    assert_false(round_float(ROUND_FLOAT_EVEN, 0, 1.0F / 0.0F, &exact));
}

static int64_t run(uint32_t n, const RequantStage *stage, uint32_t c,
                   int64_t x) {
    int64_t out = 0;
    uint32_t at;
    assert_int_equal(requant(n, stage, c, x, &out, &at), REQUANT_FINE);
    return out;
}

static void stages_keep_their_order(void **state) {
    (void)state;
    const int64_t bias[] = {1, 2}, mul[] = {3, 5}, shift[] = {1, -2};
    const int64_t add[] = {-10, 100}, min[] = {40}, max[] = {-5};
    RequantStage s[] = {{.round = ROUND_FLOOR, .bias_at = 2},
                        {.round = ROUND_FLOOR}};
    s[0].of[STAGE_BIAS] = (StageValues){2, bias};
    s[0].of[STAGE_MUL] = (StageValues){2, mul};
    s[0].of[STAGE_SHIFT] = (StageValues){2, shift};
    s[0].of[STAGE_ADD] = (StageValues){2, add};
    s[1].of[STAGE_MIN] = (StageValues){1, min};
    s[1].of[STAGE_MAX] = (StageValues){1, max};
    assert_int_equal(run(1, s, 0, 7), (7 + 4) * 3 / 2 - 10);
    assert_int_equal(run(1, s, 1, 7), (7 + 8) * 5 * 4 + 100);
    assert_int_equal(run(2, s, 1, 7), 40);
    assert_int_equal(run(2, s, 0, -100), -5);
    assert_int_equal(run(2, s, 0, 7), 6);
}

static void tables_take_the_last_segment(void **state) {
    (void)state;
    const int64_t start[] = {-100, 0, 10, 5}, mul[] = {0, 1, 2, 3};
    const int64_t shift[] = {0, 0, 1, 0}, add[] = {7, 0, 50, 90};
    RequantStage s = {
        .round = ROUND_HALF_UP, .segments = 4, .select = SELECT_ABOVE};
    s.of[STAGE_START] = (StageValues){4, start};
    s.of[STAGE_MUL] = (StageValues){4, mul};
    s.of[STAGE_SHIFT] = (StageValues){4, shift};
    s.of[STAGE_ADD] = (StageValues){4, add};
    assert_int_equal(run(1, &s, 9, -99), 7);
    assert_int_equal(run(1, &s, 9, 0), 7);
    assert_int_equal(run(1, &s, 9, 5), 5);
    assert_int_equal(run(1, &s, 9, 6), 93);
    s.select = SELECT_FROM;
    assert_int_equal(run(1, &s, 9, 0), 0);
    assert_int_equal(run(1, &s, 9, 5), 90);
    int64_t out;
    uint32_t at;
    RequantStage two[] = {s, s};
    assert_int_equal(requant(1, &s, 0, -101, &out, &at), REQUANT_NO_SEGMENT);
    assert_int_equal(requant(2, two, 0, -50, &out, &at), REQUANT_FINE);
}

static void overflow_is_told(void **state) {
    (void)state;
    const int64_t mul[] = {INT64_MAX}, shift[] = {-40}, many[] = {1 << 30};
    int64_t out;
    uint32_t at;
    RequantStage s[] = {{.round = ROUND_FLOOR}, {.round = ROUND_FLOOR}};
    s[1].of[STAGE_MUL] = (StageValues){1, mul};
    assert_int_equal(requant(2, s, 0, 2, &out, &at), REQUANT_OVERFLOW);
    assert_int_equal(at, 1);
    s[1].of[STAGE_MUL] = (StageValues){0, NULL};
    s[1].of[STAGE_SHIFT] = (StageValues){1, shift};
    assert_int_equal(requant(2, s, 0, 1 << 24, &out, &at), REQUANT_OVERFLOW);
    assert_int_equal(requant(2, s, 0, 1 << 20, &out, &at), REQUANT_FINE);
    RequantStage twice = {.round = ROUND_DOUBLE};
    const int64_t few[] = {10};
    twice.of[STAGE_MUL] = (StageValues){1, many};
    twice.of[STAGE_SHIFT] = (StageValues){1, few};
    assert_int_equal(requant(1, &twice, 0, 1 << 9, &out, &at), REQUANT_FINE);
    assert_int_equal(requant(1, &twice, 0, 1 << 10, &out, &at),
                     REQUANT_OVERFLOW);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roundings_have_their_tables),
        cmocka_unit_test(manual_has_the_tables),
        cmocka_unit_test(shifts_are_nearest),
        cmocka_unit_test(carry_is_the_flaw),
        cmocka_unit_test(stages_keep_their_order),
        cmocka_unit_test(tables_take_the_last_segment),
        cmocka_unit_test(overflow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
