/* Layouts: recorded byte counts, and brute force over random volumes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/hwspec/layouts.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE(d, r)                                                            \
    { .dim = LAYOUT_##d, .round = (r) }
#define OUTER(d, s)                                                            \
    { .dim = LAYOUT_##d, .split = (s), .round = 1 }
#define INNER(d, s, r)                                                         \
    { .dim = LAYOUT_##d, .split = (s), .inner = true, .round = (r) }
#define CLIPPED(d, s, r)                                                       \
    {                                                                          \
        .dim = LAYOUT_##d, .split = (s), .inner = true, .clip = true,          \
        .round = (r)                                                           \
    }

#define WIDE_AM(dsp, r)                                                        \
    {                                                                          \
        .n = 4, .element = 2, .axis = {                                        \
            WHOLE(C, 2),                                                       \
            WHOLE(H, 1),                                                       \
            OUTER(W, dsp),                                                     \
            INNER(W, dsp, r)                                                   \
        }                                                                      \
    }
#define WIDE_DDR(dsp)                                                          \
    {                                                                          \
        .n = 4, .element = 2, .axis = {                                        \
            WHOLE(C, 1),                                                       \
            WHOLE(H, 1),                                                       \
            OUTER(W, dsp),                                                     \
            CLIPPED(W, dsp, 32)                                                \
        }                                                                      \
    }
#define DEEP_AM(dsp, bytes)                                                    \
    {                                                                          \
        .n = 4, .element = (bytes), .axis = {                                  \
            OUTER(C, dsp),                                                     \
            WHOLE(H, 1),                                                       \
            WHOLE(W, 1),                                                       \
            INNER(C, dsp, 1)                                                   \
        }                                                                      \
    }
#define DEEP_DDR(pixels, bytes)                                                \
    {                                                                          \
        .n = 5, .element = (bytes), .axis = {                                  \
            OUTER(C, 8),                                                       \
            WHOLE(H, 1),                                                       \
            OUTER(W, pixels),                                                  \
            INNER(W, pixels, 1),                                               \
            INNER(C, 8, 1)                                                     \
        }                                                                      \
    }

static const Layout v2_28_am = WIDE_AM(28, 32);
static const Layout v2_56_am = WIDE_AM(56, 64);
static const Layout v2_28_ddr = WIDE_DDR(28);
static const Layout v2_56_ddr = WIDE_DDR(56);
static const Layout v3_8_am = DEEP_AM(96, 1);
static const Layout v3_16_am = DEEP_AM(96, 2);
static const Layout v3_8_ddr = DEEP_DDR(8, 1);
static const Layout v3_16_ddr = DEEP_DDR(4, 2);
static const Layout darius_64_am = DEEP_AM(64, 2);
static const Layout packed = {
    .n = 3, .element = 2, .axis = {WHOLE(C, 1), WHOLE(H, 1), WHOLE(W, 1)}};
static const Layout io = {.n = 5,
                          .element = 4,
                          .axis = {WHOLE(H, 1), OUTER(W, 4), OUTER(C, 8),
                                   INNER(W, 4, 1), INNER(C, 8, 1)}};

/* Byte counts of facts/xdnn.md 2.3 and of recorded listings. */
static const struct {
    const char *name;
    const Layout *layout;
    Volume volume;
    uint64_t bytes;
} golden[] = {
    {"V2-28 pool1", &v2_28_am, {64, 112, 112, {0}}, 1835008},
    {"V2-28 concat 3a", &v2_28_am, {256, 28, 28, {0}}, 458752},
    {"V2-28 odd channels", &v2_28_am, {3, 224, 224, {0}}, 1835008 / 4},
    {"V2-56 concat 3b", &v2_56_am, {480, 28, 28, {0}}, 1720320},
    {"V2 DDR yolo", &v2_56_ddr, {32, 608, 608, {0}}, 27394048},
    {"V2 DDR 19x19", &v2_56_ddr, {1024, 19, 19, {0}}, 1024 * 19 * 64},
    {"V2 DDR 76x76", &v2_56_ddr, {1, 76, 76, {0}}, 76 * 2 * 128},
    {"V2 DDR, 28 wide", &v2_28_ddr, {1, 1, 56, {0}}, 128},
    {"V2 DDR, one pixel", &v2_56_ddr, {1, 1, 1, {0}}, 64},
    {"V3 8 bit", &v3_8_am, {256, 28, 28, {0}}, 225792},
    {"V3 8 bit 7x7", &v3_8_am, {1024, 7, 7, {1024 / 96 + 1, 0, 0, 0}}, 51744},
    {"V3 16 bit", &v3_16_am, {64, 112, 112, {0}}, 2408448},
    {"V3 replicated", &v3_8_am, {64, 56, 56, {0, 2, 3, 32}}, 602112},
    {"V3 0 copies", &v3_8_am, {64, 56, 56, {1, 0, 3, 32}}, 301056},
    {"V3 DDR 8 bit", &v3_8_ddr, {32, 304, 304, {0}}, 2957312},
    {"V3 DDR 8 bit 4x4", &v3_8_ddr, {3, 4, 4, {0}}, 4 * 64},
    {"V3 DDR 16 bit", &v3_16_ddr, {32, 304, 304, {0}}, 2 * 2957312},
    {"V3 DDR, copies of AM", &v3_8_ddr, {32, 304, 304, {0, 1, 3, 32}}, 2957312},
    {"Darius", &darius_64_am, {480, 28, 28, {0}}, 802816},
    {"Math", &packed, {256, 28, 28, {0}}, 401408},
    {"input 224x224x3", &io, {3, 224, 224, {0}}, 1605632},
    {"output 1x1x1024", &io, {1024, 1, 1, {0}}, 16384},
    {"output 19x19x1024", &io, {1024, 19, 19, {0}}, 1556480},
    {"input 608x608x3", &io, {3, 608, 608, {0}}, 11829248},
};

static void recorded_sizes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        uint64_t bytes = layout_bytes(golden[i].layout, &golden[i].volume);
        if (bytes != golden[i].bytes)
            fail_msg("%s: %llu, not %llu", golden[i].name,
                     (unsigned long long)bytes,
                     (unsigned long long)golden[i].bytes);
    }
}

static void granules(void **state) {
    (void)state;
    assert_int_equal(layout_granule(&v2_28_am), 1);
    assert_int_equal(layout_granule(&v3_8_am), 96);
    assert_int_equal(layout_granule(&v3_8_ddr), 8);
    assert_int_equal(layout_granule(&packed), 1);
    assert_int_equal(layout_granule(&io), 0);
    assert_int_equal(layout_part_step(&v2_28_am), 2);
    assert_int_equal(layout_part_step(&v3_8_am), 96);
    assert_int_equal(layout_part_step(&packed), 1);
    assert_int_equal(layout_part_step(&io), 0);
}

static void parts_of_volumes(void **state) {
    (void)state;
    /* GoogLeNet 3a on V2-28: branches of 64, 128, 32, 32 channels. */
    Volume whole = {256, 28, 28, {0}};
    assert_int_equal(layout_part_offset(&v2_28_am, &whole, 64), 64 * 28 * 64);
    /* Concat 5b on V3: a member that starts at channel 384 = 4 sections. */
    Volume deep = {1024, 7, 7, {11, 0, 0, 0}};
    assert_int_equal(layout_part_offset(&v3_8_am, &deep, 384), 4 * 49 * 96);
    assert_int_equal(layout_part_offset(&v3_8_am, &deep, 400), 4 * 49 * 96);
    /* 160 channels as 1 section and 2 of 32 channels: 128 opens the last. */
    Volume copied = {160, 2, 2, {1, 2, 3, 32}};
    assert_int_equal(layout_part_offset(&v3_8_am, &copied, 128), 2 * 4 * 96);
    assert_int_equal(layout_part_offset(&io, &whole, 64), 0);
}

static void rows(void **state) {
    (void)state;
    Volume v = {100, 30, 30, {0}};
    uint64_t all;
    assert_int_equal(layout_run_bytes(&v2_28_am, &v, ROWS_APART, &all), 2 * 64);
    assert_int_equal(layout_run_bytes(&packed, &v, ROWS_APART, &all), 60);
    assert_int_equal(layout_run_bytes(&v3_8_am, &v, ROWS_APART, &all), 30 * 96);
    assert_int_equal(layout_run_bytes(&v3_8_ddr, &v, ROWS_APART, &all), 4 * 64);
    assert_int_equal(layout_run_bytes(&io, &v, ROWS_APART, &all),
                     8 * 13 * 4 * 8 * 4);
    assert_int_equal(all, layout_bytes(&io, &v));
}

static void too_large(void **state) {
    (void)state;
    Volume v = {UINT32_MAX, UINT32_MAX, UINT32_MAX, {0}};
    assert_true(layout_bytes(&v2_28_am, &v) == UINT64_MAX);
    assert_true(layout_bytes(&io, &v) == UINT64_MAX);
    Volume none = {0, 4, 4, {0}};
    assert_true(layout_bytes(&v3_8_am, &none) == 0);
}

/* No two elements (or copies) share a byte, and all lie inside. */
static void check_distinct(const Layout *layout, const Volume *v) {
    uint64_t bytes = layout_bytes(layout, v);
    uint8_t *taken = calloc(bytes ? bytes : 1, 1);
    assert_non_null(taken);
    for (uint32_t c = 0; c < v->c; c++)
        for (uint32_t h = 0; h < v->h; h++)
            for (uint32_t w = 0; w < v->w; w++)
                for (uint32_t k = 0; k < layout_copies(layout, v, c); k++) {
                    uint64_t at = layout_offset(layout, v, c, h, w, k);
                    assert_true(at + layout->element <= bytes);
                    assert_int_equal(at % layout->element, 0);
                    assert_int_equal(taken[at], 0);
                    memset(taken + at, 1, layout->element);
                }
    free(taken);
}

static void check_tables(Arena *arena, const Layout *layout, const Volume *v) {
    LayoutTables t = layout_tables(arena, layout, v);
    for (uint32_t c = 0; c < v->c; c++) {
        assert_int_equal(t.copies[c], layout_copies(layout, v, c));
        for (uint32_t h = 0; h < v->h; h++)
            for (uint32_t w = 0; w < v->w; w++)
                for (uint32_t k = 0; k < t.copies[c]; k++)
                    assert_true(t.c_at[c] + t.h_at[h] + t.w_at[w] +
                                    k * t.copy_step ==
                                layout_offset(layout, v, c, h, w, k));
    }
}

/* Digits of the indices, times their strides, are the offset. */
static void check_digits(const Layout *layout, const Volume *v) {
    LayoutDigit digit[LAYOUT_MAX_AXES];
    uint32_t n = v->repl.sections ? 0 : layout_digits(layout, v, digit);
    assert_int_equal(n, v->repl.sections ? 0 : layout->n);
    for (uint32_t c = 0; n && c < v->c; c++)
        for (uint32_t h = 0; h < v->h; h++)
            for (uint32_t w = 0; w < v->w; w++) {
                const uint32_t index[] = {
                    [LAYOUT_C] = c, [LAYOUT_H] = h, [LAYOUT_W] = w};
                uint64_t at = 0;
                for (uint32_t i = 0; i < n; i++) {
                    uint32_t part = index[digit[i].dim] / digit[i].divide;
                    at += digit[i].stride *
                          (digit[i].modulo ? part % digit[i].modulo : part);
                }
                assert_true(at == layout_offset(layout, v, c, h, w, 0));
            }
}

/* A part that says so is a volume of its own at part_offset. */
static void check_part(const Layout *layout, const Volume *v, uint32_t c,
                       uint32_t n) {
    Volume part = {n, v->h, v->w, {0}};
    uint64_t start = layout_part_offset(layout, v, c);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(layout_copies(layout, v, c + i), 1);
        for (uint32_t h = 0; h < v->h; h++)
            for (uint32_t w = 0; w < v->w; w++)
                assert_true(start + layout_offset(layout, &part, i, h, w, 0) ==
                            layout_offset(layout, v, c + i, h, w, 0));
    }
}

/* Without clipping those are all that begin with a granule. */
static void check_parts(const Layout *layout, const Volume *v, Dice *dice) {
    bool clips = false;
    for (uint32_t i = 0; i < layout->n; i++)
        clips |= layout->axis[i].dim == LAYOUT_C && layout->axis[i].clip;
    uint32_t granule = layout_granule(layout);
    for (uint32_t c = 0; c < v->c; c++) {
        uint32_t n = 1 + roll(dice, v->c - c);
        bool whole = n == v->c;
        bool alone = layout_part_alone(layout, v, c, n);
        if (alone && !(whole && v->repl.sections))
            check_part(layout, v, c, n);
        if (!v->repl.sections && !clips)
            assert_true(alone == (whole || (granule && c % granule == 0)));
    }
}

static void random_volumes(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    for (uint64_t i = 0; i < 3000; i++) {
        Dice dice = {i, 0};
        Layout layout = random_layout(&dice);
        Volume v = random_volume(&dice, &layout);
        check_distinct(&layout, &v);
        check_tables(arena, &layout, &v);
        check_digits(&layout, &v);
        check_parts(&layout, &v, &dice);
        arena_reset(arena);
    }
    arena_free(arena);
}

/* Rows of 64 bytes that hold 4, 2 or 1 channels. */
static void rows_of_channels(void **state) {
    (void)state;
    LayoutCase cases[] = {
        {{{1, UINT32_MAX}, {1, UINT32_MAX}, {1, 16}},
         {.n = 4,
          .element = 1,
          .axis = {OUTER(C, 4), WHOLE(H, 1), INNER(C, 4, 1), WHOLE(W, 16)}}},
        {{{1, UINT32_MAX}, {1, UINT32_MAX}, {1, 32}},
         {.n = 4,
          .element = 1,
          .axis = {OUTER(C, 2), WHOLE(H, 1), INNER(C, 2, 1), WHOLE(W, 32)}}},
        {{{1, UINT32_MAX}, {1, UINT32_MAX}, {1, UINT32_MAX}},
         {.n = 3,
          .element = 1,
          .axis = {WHOLE(C, 1), WHOLE(H, 1), WHOLE(W, 64)}}},
    };
    Layout layout = {.element = 1, .n_cases = 3, .cases = cases};
    assert_int_equal(layout_granule(&layout), 4);
    for (uint32_t w = 1; w < 200; w++) {
        Volume v = {5, 3, w, {0}};
        uint32_t g = w <= 16 ? 4 : w <= 32 ? 2 : 1;
        uint32_t rows = (w + 63) / 64, groups = (5 + g - 1) / g;
        assert_int_equal(layout_bytes(&layout, &v), 64 * rows * 3 * groups);
        assert_int_equal(layout_split(&layout, &v, LAYOUT_C), g);
        assert_int_equal(layout_step(&layout, &v, LAYOUT_C), 64 * rows * 3);
        assert_int_equal(layout_step(&layout, &v, LAYOUT_H), 64 * rows);
        assert_int_equal(layout_granule(layout_case(&layout, &v)), g);
        for (uint32_t c = 0; c < 5; c++)
            assert_int_equal(layout_offset(&layout, &v, c, 2, w - 1, 0),
                             64 * (c / g * rows * 3 + 2 * rows) +
                                 c % g * (64 / g) + w - 1);
        assert_true(layout_part_alone(&layout, &v, g == 1 ? 3 : 4, 1));
        assert_int_equal(layout_part_alone(&layout, &v, 1, 2), g == 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_channels),
        cmocka_unit_test(recorded_sizes),
        cmocka_unit_test(granules),
        cmocka_unit_test(parts_of_volumes),
        cmocka_unit_test(rows),
        cmocka_unit_test(too_large),
        cmocka_unit_test(random_volumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
