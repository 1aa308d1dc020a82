/* test_cost.c - cycles of engines, weights and transfers, by figures worked out
 * by hand; parts of volumes against the offsets of their elements. */
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hwspec/cost.h"
#include "tests/hwspec/layouts.h"

/* ---- cycles ---- */

static void seconds(void **state) {
    (void)state;
    HwSpec spec = {.clock = 500e6};
    assert_int_equal(hwspec_cycles(&spec, 0), 0);
    assert_int_equal(hwspec_cycles(&spec, 2e-6), 1000);
    assert_int_equal(hwspec_cycles(&spec, 2.1e-9), 2);
}

static void host(void **state) {
    (void)state;
    HwSpec spec = {.clock = 500e6, .host = {4e9, 2e9, 10e-6}};
    assert_int_equal(hwspec_host_cycles(&spec, 0, 0), 5000);
    assert_int_equal(hwspec_host_cycles(&spec, 4000000, 0), 505000);
    assert_int_equal(hwspec_host_cycles(&spec, 4000000, 4000000), 1005000);
}

static void inner_steps(void **state) {
    (void)state;
    HwSpec spec = {.replication.section = 96};
    HwEngine engine = {.unroll = {.in_c = 32, .kernel = 4}};
    Repl none = {2, 0, 0, 0}, copies = {2, 3, 2, 48};
    assert_int_equal(hwspec_inner_steps(&spec, &engine, NULL, 96, 9), 3 * 3);
    assert_int_equal(hwspec_inner_steps(&spec, &engine, NULL, 97, 8), 4 * 2);
    assert_int_equal(hwspec_inner_steps(&spec, &engine, NULL, 1, 1), 1);
    /* sections without copies, then three of two copies each */
    assert_int_equal(hwspec_inner_steps(&spec, &engine, &none, 64, 9), 2 * 3);
    assert_int_equal(hwspec_inner_steps(&spec, &engine, &copies, 64, 9),
                     2 * 9 + 14);
    spec.replication.section = 0;
    assert_int_equal(hwspec_inner_steps(&spec, &engine, &copies, 64, 9), 2 * 3);
    engine.unroll = (HwUnroll){0};
    assert_int_equal(hwspec_inner_steps(&spec, &engine, NULL, 5, 9), 45);
}

/* Where channels are few, taps of a row take the lanes that they leave. */
static void row_taps(void **state) {
    (void)state;
    HwSpec spec = {.clock = 1e9};
    HwEngine engine = {.unroll = {.in_c = 16}};
    assert_int_equal(hwspec_conv_steps(&spec, &engine, NULL, 3, 7, 5), 35);
    engine.unroll.row_taps = 8;
    assert_int_equal(hwspec_conv_steps(&spec, &engine, NULL, 3, 7, 5), 7);
    assert_int_equal(hwspec_conv_steps(&spec, &engine, NULL, 3, 7, 6), 14);
    assert_int_equal(hwspec_conv_steps(&spec, &engine, NULL, 8, 3, 1), 3);
    assert_int_equal(hwspec_conv_steps(&spec, &engine, NULL, 9, 3, 3), 9);
}

static void engine_cycles(void **state) {
    (void)state;
    HwSpec spec = {.clock = 1e9};
    HwEngine engine = {.unroll = {.out_c = 16, .out_h = 2, .out_w = 4}};
    assert_int_equal(hwspec_engine_cycles(&spec, &engine, 32, 6, 12, 5),
                     2 * 3 * 3 * 5);
    assert_int_equal(hwspec_engine_cycles(&spec, &engine, 33, 7, 13, 5),
                     3 * 4 * 4 * 5);
    engine.setup = 7;
    assert_int_equal(hwspec_engine_cycles(&spec, &engine, 32, 6, 12, 5), 97);
    engine.efficiency = 0.5;
    assert_int_equal(hwspec_engine_cycles(&spec, &engine, 32, 6, 12, 5), 187);
    engine.clock = 250e6; /* a quarter of the machine's */
    assert_int_equal(hwspec_engine_cycles(&spec, &engine, 32, 6, 12, 5), 748);
    spec.clock = 0;
    assert_int_equal(hwspec_engine_cycles(&spec, &engine, 32, 6, 12, 5), 187);
}

static void weights(void **state) {
    (void)state;
    HwSpec spec = {.clock = 1e9, .element = 2};
    assert_int_equal(hwspec_weight_bytes(&spec, 3, 5, 7), 210);
    assert_int_equal(hwspec_weight_cycles(&spec, 210), 0);
    spec.weight_cache.bandwidth = 4e9;
    assert_int_equal(hwspec_weight_cycles(&spec, 210), 53);
}

static const Layout rows = {.n = 3,
                            .axis = {{.dim = LAYOUT_C, .round = 1},
                                     {.dim = LAYOUT_H, .round = 1},
                                     {.dim = LAYOUT_W, .round = 1}},
                            .element = 2};

static void transfers(void **state) {
    (void)state;
    HwSpec spec = {.clock = 1};
    HwMemory m = {.role = HW_BACKING, .burst = 32, .layout = &rows};
    /* 3 channels x 4 rows of 10 bytes: one burst each */
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ROWS_APART), 0);
    m.bandwidth = 2;
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ROWS_APART),
                     12 * 16);
    m.latency = 100;
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ROWS_APART),
                     100 + 192);
    m.row_setup = 2;
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ROWS_APART),
                     100 + 24 + 192);
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 17, ROWS_APART),
                     100 + 24 + 2 * 192);
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 0, 5, ROWS_APART), 0);
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 0, ROWS_APART), 0);
    /* rows of a channel together: 40 bytes each; all: 120 */
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ROWS_TOGETHER),
                     100 + 3 * 2 + 3 * 32);
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ALL_TOGETHER),
                     100 + 2 + 64);
    /* tiles: some columns, some rows, some channels */
    Volume whole = {6, 8, 6, {0}};
    assert_int_equal(hwspec_tile_cycles(&spec, &m, &whole, 3, 4, 5),
                     100 + 24 + 192);
    whole.w = 5;
    assert_int_equal(hwspec_tile_cycles(&spec, &m, &whole, 3, 4, 5),
                     100 + 3 * 2 + 3 * 32);
    whole.h = 4;
    assert_int_equal(hwspec_tile_cycles(&spec, &m, &whole, 3, 4, 5),
                     100 + 2 + 64);
    m.role = HW_ACTIVE;
    assert_int_equal(hwspec_transfer_cycles(&spec, &m, 3, 4, 5, ROWS_APART), 0);
}

static void staged(void **state) {
    (void)state;
    HwMemory m[] = {{.burst = 1}, {.burst = 64}};
    HwSpec spec = {.clock = 1e9, .element = 2, .memory = m};
    assert_int_equal(hwspec_staged_cycles(&spec, &m[1], 100), 0);
    m[1].latency = 50e-9;
    m[1].row_setup = 3e-9;
    assert_int_equal(hwspec_staged_cycles(&spec, &m[1], 100), 53);
    m[1].bandwidth = 1e9;
    assert_int_equal(hwspec_staged_cycles(&spec, &m[1], 100), 53 + 256);
    assert_int_equal(hwspec_staged_cycles(&spec, &m[1], 128), 53 + 256);
    assert_int_equal(hwspec_staged_cycles(&spec, &m[1], 129), 53 + 320);
}

/* ---- parts of volumes ---- */

/* Whether each element of channels [c, c + n) lies behind layout_part_offset
 * where it does in a volume of n channels, and has no copies. */
static bool lies_alone(const Layout *l, const Volume *whole, uint32_t c,
                       uint32_t n) {
    Volume part = {n, whole->h, whole->w, {0}};
    uint64_t at = layout_part_offset(l, whole, c);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t h = 0; h < whole->h; h++)
            for (uint32_t w = 0; w < whole->w; w++)
                if (layout_copies(l, whole, c + i) != 1 ||
                    layout_offset(l, whole, c + i, h, w, 0) !=
                        at + layout_offset(l, &part, i, h, w, 0))
                    return false;
    return true;
}

static void parts(void **state) {
    (void)state;
    uint32_t alone = 0, not_alone = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        Dice dice = {seed, 0};
        Layout l = random_layout(&dice);
        Volume v = {
            1 + roll(&dice, 20), 2 + roll(&dice, 4), 2 + roll(&dice, 4), {0}};
        v.repl = random_repl(&dice, &l, v.c);
        uint32_t c = roll(&dice, v.c), n = 1 + roll(&dice, v.c - c);
        if (c == 0 && n == v.c)
            continue;
        bool said = layout_part_alone(&l, &v, c, n);
        if (said)
            assert_true(lies_alone(&l, &v, c, n));
        alone += said;
        not_alone += !said && !lies_alone(&l, &v, c, n);
        uint32_t granule = layout_granule(&l);
        bool padded = false;
        for (uint32_t i = 0; i < l.n; i++)
            padded |= l.axis[i].clip || l.axis[i].round > 1;
        if (!said && granule && c % granule == 0 && !v.repl.units && !padded)
            assert_false(lies_alone(&l, &v, c, n));
    }
    assert_true(alone > 200 && not_alone > 200);
}

static int rising(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whether the box, rows first, covers a stretch of bytes without a gap. */
static bool is_dense(const Layout *l, const Volume *whole, const Volume *box,
                     uint32_t channels) {
    uint64_t at[512];
    size_t n = 0;
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t h = 0; h < box->h; h++)
            for (uint32_t w = 0; w < box->w; w++)
                at[n++] = layout_offset(l, whole, c, h, w, 0);
    qsort(at, n, sizeof *at, rising);
    return at[n - 1] - at[0] == (n - 1) * l->element;
}

/* What lies together has no gaps, and what has none is one run. */
static void together(void **state) {
    (void)state;
    uint32_t seen[3] = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        Dice dice = {seed, 0};
        Layout l = random_layout(&dice);
        Volume whole = {
            1 + roll(&dice, 7), 1 + roll(&dice, 7), 1 + roll(&dice, 7), {0}};
        Volume box = {1 + roll(&dice, whole.c),
                      1 + roll(&dice, whole.h),
                      roll(&dice, 3) ? whole.w : 1,
                      {0}};
        for (uint32_t i = 0; i < l.n; i++)
            l.axis[i].round = 1;
        if (l.n > 3)
            continue; /* split axes are padded */
        Contiguous said = layout_contiguous(&l, &whole, &box);
        seen[said]++;
        uint64_t all, run = layout_run_bytes(&l, &box, said, &all);
        bool whole_rows = box.c == whole.c || l.axis[0].dim == LAYOUT_C;
        if (box.w == whole.w && whole_rows)
            assert_int_equal(run == all, is_dense(&l, &whole, &box, box.c));
        if (said == ROWS_TOGETHER && l.axis[0].dim == LAYOUT_C &&
            l.axis[1].dim == LAYOUT_H)
            assert_true(is_dense(&l, &whole, &box, 1));
    }
    assert_true(seen[0] > 20 && seen[1] > 20 && seen[2] > 20);
}

/* Bytes of a row over all that lies within rows. */
static void row_bytes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        Dice dice = {seed, 0};
        Layout l = random_layout(&dice);
        Volume v = {
            1 + roll(&dice, 9), 1 + roll(&dice, 9), 1 + roll(&dice, 9), {0}};
        uint64_t all, row = layout_run_bytes(&l, &v, ROWS_APART, &all),
                      step = UINT64_MAX;
        for (uint32_t h = 1; h < v.h; h++) {
            uint64_t at = layout_offset(&l, &v, 0, h, 0, 0);
            step = at < step ? at : step;
        }
        assert_int_equal(all, layout_bytes(&l, &v));
        if (step != UINT64_MAX)
            assert_true(row <= step && step % row == 0);
    }
    Layout flat = {
        .n = 1, .axis = {{.dim = LAYOUT_C, .round = 1}}, .element = 4};
    Volume v = {6, 1, 1, {0}};
    uint64_t all;
    assert_int_equal(layout_run_bytes(&flat, &v, ROWS_APART, &all), 24);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds),       cmocka_unit_test(host),
        cmocka_unit_test(inner_steps),   cmocka_unit_test(row_taps),
        cmocka_unit_test(engine_cycles), cmocka_unit_test(weights),
        cmocka_unit_test(transfers),     cmocka_unit_test(staged),
        cmocka_unit_test(parts),         cmocka_unit_test(together),
        cmocka_unit_test(row_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
