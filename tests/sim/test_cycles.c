/* test_cycles.c - time by hand: products of ceilings, transfers, steps. */
#include "tests/sim/harness.h"

#include <math.h>

/* Cycles of one instruction behind what it needs, by a run with and without. */
static uint64_t cycles_of(const char *target, const char *before,
                          const char *text) {
    uint64_t cycles[2];
    for (int i = 0; i < 2; i++) {
        Bench *b = bench_open(target);
        b->options.memory_only = true;
        bench_text(b, before);
        if (i)
            bench_text(b, text);
        cycles[i] = bench_run(b, 0, NULL)->cycles;
        bench_clean(b);
        bench_close(b);
    }
    return cycles[1] - cycles[0];
}

static uint64_t up(double cycles) {
    return (uint64_t)ceil(cycles);
}

static void width_and_output_channels(void **state) {
    (void)state;
    /* 28 columns x 32 channels at once, 0.7 of the time */
    const char *load = "1 XNGather 0x0 0x0 57 10 5 0 1 1 0 9 0 1\n";
    uint64_t conv = cycles_of(
        "xdnn-v2-28", load,
        "2 XNConv a 3 3 1 1 1 1 1 1 16 26 2 1 1 0x0 57 10 5 0x10000 57 10 33 "
        "0\n");
    assert_int_equal(conv, up(3 * 2 * 10 * 5 * 9 / 0.7));
    uint64_t pool =
        cycles_of("xdnn-v2-28", load,
                  "2 XNMaxPool a 2 2 2 2 0 0 0x0 57 10 5 0x10000 29 5 0\n");
    assert_int_equal(pool, up(2 * 5 * 5 * 4 / 0.7));
}

#define TAIL " 0 0 0 0 0 0 0 1 1 1 1 1 1 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0\n"

static void copies_save_cycles(void **state) {
    (void)state;
    /* facts/xdnn.md 2.4: 64 channels, 3x3: 9 plain, ceil(2 * 9 / 3) copied */
    uint64_t plain = cycles_of(
        "xdnn-v3-96", "1 XNGather 0x0 0x0 8 8 64 0 1 1 0 7 1 1 0 0 0 1\n",
        "2 XNConv a 3 3 1 1 1 1 1 1 16 26 2 1 0 1 0x0 8 8 64 0x100 8 "
        "8 64 1 1 1 0 0 0 1 0 0 0" TAIL);
    uint64_t copied = cycles_of(
        "xdnn-v3-96", "1 XNGather 0x0 0x0 8 8 64 0 1 1 0 7 1 0 2 3 32 1\n",
        "2 XNConv a 3 3 1 1 1 1 1 1 16 26 2 1 0 1 0x0 8 8 64 0x100 8 "
        "8 64 1 1 0 2 3 32 1 0 0 0" TAIL);
    /* 2 groups of outputs; 9 x 64 x 64 weights, copies or not */
    double weights = 9 * 64 * 64 / 17.28e9 * 700e6;
    assert_true(weights > 64 * 2 * 6 / 0.77);
    assert_int_equal(plain, up(64 * 2 * 9 / 0.77));
    assert_int_equal(copied, up(weights));
}

/* More rows of weights than are read at full rate: each product takes twice as
 * long. */
static void half_rate_takes_twice_as_long(void **state) {
    (void)state;
    static const struct {
        uint32_t channels, full, half, factor;
    } cases[] = {{672, 7, 0, 1}, {768, 8, 1, 2}};
    for (int i = 0; i < 2; i++) {
        uint32_t c = cases[i].channels, full = cases[i].full;
        Bench *b = bench_open("xdnn-v3-96");
        b->options.memory_only = true;
        bench_text(b, arena_printf(b->arena,
                                   "1 XNGather 0x0 0x0 8 8 %u 0 1 1 0 7 1 %u 0 "
                                   "0 0 1\n"
                                   "2 XNConv a 3 3 1 1 1 1 1 1 16 26 2 1 0 1 "
                                   "0x0 8 8 %u 0x1000 8 8 32 1 1 %u 0 0 0 1 0 "
                                   "0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 0 0 0 %u 0 0 "
                                   "0 0 0 0 0 0 0 0 0\n",
                                   c, full, c, full, cases[i].half));
        bench_run(b, 0, NULL);
        bench_clean(b);
        assert_int_equal(b->result->event[1].cost[SIM_COMPUTE],
                         up(64 * full * 9 * cases[i].factor / 0.77));
        bench_close(b);
    }
}

static void transfers_take_bytes_over_bandwidth(void **state) {
    (void)state;
    uint64_t load =
        cycles_of("xdnn-v2-28", "1 XNGather 0x0 0x0 4 4 4 0 1 1 0 3 0 1\n",
                  "2 XNGather 0x0 0x40000 57 10 5 0 1 1 2 8 0 1\n");
    /* inputs lie in words of 4 pixels x 8 channels x 4 bytes */
    assert_int_equal(load, up(7 * 15 * 128 / 17.28e9 * 500e6));
}

/* Instructions of one step take as long as the longest. */
static void one_step_is_its_longest(void **state) {
    (void)state;
    const char *load = "1 XNGather 0x0 0x0 56 10 5 0 1 1 0 9 0 1\n";
    const char *conv = "XNConv a 1 1 1 1 0 0 1 1 16 26 2 1 1 0x0 56 10 5 "
                       "0x10000 56 10 33 0\n";
    const char *pool = "XNMaxPool p 2 2 2 2 0 0 0x0 56 10 5 0x30000 28 5 0\n";
    char text[512];
    snprintf(text, sizeof text, "2 %s2 %s", conv, pool);
    uint64_t together = cycles_of("xdnn-v2-28", load, text);
    snprintf(text, sizeof text, "2 %s3 %s", conv, pool);
    uint64_t apart = cycles_of("xdnn-v2-28", load, text);
    assert_int_equal(together, up(2 * 2 * 10 * 5 / 0.7));
    assert_int_equal(apart, together + up(5 * 5 * 4 / 0.7));
}

/* A conv reads and writes other rows than a pool that follows it: 14 x 14 x 96,
 * a row a pixel. waits: download, upload, conv, pool, eltwise, upsample. */
static const SimResult *conv_then_pool(Bench *b, const char *waits,
                                       const char *pool_in) {
    bench_text(b, "1 XNGather 0x0 0x0 14 14 96 0 1 1 0 13 1 1 0 0 0 1\n"
                  "2 XNGather 0x200 0x0 14 14 96 0 1 1 0 13 1 1 0 0 0 1\n"
                  "3 XNConv a 3 3 1 1 1 1 1 1 16 26 2 1 0 1 0x0 14 14 96 "
                  "0x100 14 14 64 1 1 1 0 0 0 1 0 0 0" TAIL);
    char text[512];
    snprintf(text, sizeof text,
             "4 XNMaxPool p 3 3 1 1 1 1 %s 14 14 %s 0x300 14 14 1 1 1 0 0 0 1 "
             "0 0 0 0 0 0 0 0 0 0 %s 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0\n",
             pool_in, strcmp(pool_in, "0x100") ? "96" : "64", waits);
    bench_text(b, text);
    return bench_run(b, 0, NULL);
}

static void flags_let_engines_overlap(void **state) {
    (void)state;
    Bench *b = bench_open("xdnn-v3-96");
    const SimResult *r = conv_then_pool(b, "1 1 0 1 1 1", "0x200");
    bench_clean(b);
    const SimEvent *e = &r->event[2];
    assert_int_equal(r->n_events, 4);
    assert_int_equal(e[0].start, e[1].start);
    assert_true(e[1].cycles < e[0].cycles);
    assert_int_equal(r->cycles, e[0].start + e[0].cycles);
    bench_close(b);

    b = bench_open("xdnn-v3-96");
    r = conv_then_pool(b, "1 1 1 1 1 1", "0x200");
    bench_clean(b);
    e = &r->event[2];
    assert_int_equal(e[1].start, e[0].start + e[0].cycles);
    assert_int_equal(r->cycles, e[1].start + e[1].cycles);
    bench_close(b);
}

/* Not to wait for what one reads is wrong, whatever the cycles say. */
static void a_missing_wait_is_a_violation(void **state) {
    (void)state;
    Bench *b = bench_open("xdnn-v3-96");
    const SimResult *r = conv_then_pool(b, "1 1 0 1 1 1", "0x100");
    assert_int_equal(r->n_violations, 1);
    assert_non_null(strstr(r->violation[0].text, "while a, in the same step"));
    bench_close(b);
}

/* A sum reads both operands through one port, or through two at once. */
static void ports_bound_a_sum(void **state) {
    (void)state;
    const char *load =
        "1 XNGather 0x0 0x0 14 14 96 0 1 1 0 13 1 1 0 0 0 1\n"
        "1 XNGather 0x8000 0x0 14 14 96 0 1 1 0 13 1 1 0 0 0 1\n";
    uint64_t cycles[2];
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "2 XNEltwise s 1 0 1 0 0x0 0x8000 14 14 96 0x0 1 1 1 0 0 0 1 "
                 "0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 %d 0 1 0 0 0 0 0 0 0 0 0 0 "
                 "0 0 0\n",
                 i);
        cycles[i] = cycles_of("xdnn-v3-96", load, text);
    }
    assert_int_equal(cycles[0], up(2 * 196 * 96 / 28.8e9 * 700e6));
    assert_int_equal(cycles[1], up(196 * 96 / 28.8e9 * 700e6));
}

static void sums_by_engine(void **state) {
    (void)state;
    Bench *b = bench_open("xdnn-v2-28");
    bench_text(b, "1 XNGather 0x0 0x0 56 10 5 0 1 1 0 9 0 1\n"
                  "2 XNMaxPool p 2 2 2 2 0 0 0x0 56 10 5 0x30000 28 5 0\n"
                  "3 XNMaxPool q 2 2 2 2 0 0 0x0 56 10 5 0x40000 28 5 0\n");
    const SimResult *r = bench_run(b, 0, NULL);
    bench_clean(b);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->n_engines; i++) {
        sum += r->engine[i].cycles;
        if (strcmp(r->engine[i].name, "pool") == 0) {
            assert_int_equal(r->engine[i].instructions, 2);
            assert_int_equal(r->engine[i].cycles, 2 * up(5 * 5 * 4 / 0.7));
        }
    }
    assert_int_equal(sum, r->cycles);
    bench_close(b);
}

/* ---- transfers ---- */

/* Cycles of the last instruction on a machine with these settings. */
static uint64_t last_cycles(uint32_t n, const HwSetting *settings,
                            const char *text) {
    Bench *b = bench_open_with("xdnn-v3-96", n, settings);
    b->options.memory_only = true;
    bench_text(b, text);
    const SimResult *r = bench_run(b, 0, NULL);
    bench_clean(b);
    uint64_t cycles = r->event[r->n_events - 1].cycles;
    bench_close(b);
    return cycles;
}

/* 4 rows of 14 x 14 x 96 lie in DDR as 12 groups of 8 channels, 4 rows of each
 * together: 8 words of 64 bytes. */
static void each_constant_of_a_transfer(void **state) {
    (void)state;
    static const char text[] =
        "1 XNGather 0x0 0x0 14 14 96 0 1 1 0 13 1 1 0 0 0 1\n"
        "2 XNScatter 0x0 0x0 14 14 96 0 1 1 0 13 1 1 0 0 0 0\n"
        "3 XNGather 0x200 0x0 14 14 96 0 1 1 2 5 1 1 0 0 0 0\n";
    static const struct {
        HwSetting setting;
        double runs, run; /* rows that lie together, bytes of one */
        double seconds;   /* before the bytes */
    } row[] = {
        {{"memories.ddr.burst", "64"}, 12, 512, 0},
        {{"memories.ddr.burst", "1024"}, 12, 1024, 0},
        {{"memories.ddr.burst", "96"}, 12, 576, 0},
        {{"memories.ddr.latency", "1us"}, 12, 512, 1e-6},
        {{"memories.ddr.row_setup", "10ns"}, 12, 512, 12 * 10e-9},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        assert_int_equal(
            last_cycles(1, &row[i].setting, text),
            up((row[i].seconds + row[i].runs * row[i].run / 17.28e9) * 700e6));
    HwSetting half = {"memories.ddr.bandwidth", "8.64GB/s"};
    assert_int_equal(last_cycles(1, &half, text),
                     up(48 * 128 / 8.64e9 * 700e6));
}

#define TILED                                                                  \
    "1 XNConv c %u %u 1 1 0 0 1 1 16 26 2 1 0 1 0x0 16 %u 96 0x10000 16 16 "   \
    "64 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 0 0 1 0 0 1 0 1 0 16 8 " \
    "1 0 16384 65536\n"

/* Two tiles of 8 rows: the first comes in, then the second while the first is
 * computed, then the second is computed. */
static void double_buffers_hide_the_shorter(void **state) {
    (void)state;
    static const HwSetting settings[] = {
        {"weight_cache.bandwidth", "1000000GB/s"},
        {"engines.conv.efficiency", "1"},
        {"memories.inputs.bandwidth", "17.28GB/s"}};
    char text[512];
    snprintf(text, sizeof text, TILED, 1u, 1u, 16u);
    /* a row of 16 pixels: 4 x 12 words of 128 bytes */
    uint64_t load = up(8 * 4 * 12 * 128 / 17.28e9 * 700e6);
    uint64_t busy = up(8 * 16 * 96 / 28.8e9 * 700e6); /* the write port */
    assert_true(busy > 2 * 8 * 16 && busy < load);
    assert_int_equal(last_cycles(3, settings, text), load + load + busy);
    HwSetting fast[] = {
        settings[0], settings[1], {"memories.inputs.bandwidth", "172.8GB/s"}};
    load = up(8 * 4 * 12 * 128 / 172.8e9 * 700e6);
    assert_true(load < busy);
    assert_int_equal(last_cycles(3, fast, text), load + busy + busy);
}

/* ---- images one behind the other ---- */

#define AHEAD                                                                  \
    "1 XNConv a 7 7 2 2 3 3 1 1 16 26 2 1 0 1 0x0 32 32 3 0x0 16 16 64 1 0 1 " \
    "0 0 0 1 0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 0 0 0 0 0 1 0 1 0 0 0 0 0 0 0\n"
#define REST                                                                   \
    "2 XNConv b 3 3 1 1 1 1 1 1 16 26 2 1 0 1 0x0 16 16 64 0x100 16 16 64 1 "  \
    "1 1 0 0 0 1 0 0 0" TAIL                                                   \
    "3 XNConv c 1 1 1 1 0 0 1 1 16 26 2 1 0 1 0x100 16 16 64 %s 16 16 "        \
    "64 1 1 1 0 0 0 1 0 0 0" TAIL

static const SimResult *two_blocks(Bench *b, const char *last) {
    char text[1024];
    snprintf(text, sizeof text, AHEAD REST, last);
    b->options.memory_only = true;
    bench_text(b, text);
    return bench_run(b, 0, NULL);
}

/* The next image's a may start when b has read this one's. */
static void next_image_comes_ahead(void **state) {
    (void)state;
    Bench *b = bench_open("xdnn-v3-96");
    const SimResult *r = two_blocks(b, "0x200");
    bench_clean(b);
    assert_int_equal(r->n_events, 3);
    const SimEvent *e = r->event;
    assert_string_equal(r->engine[e[0].use].name, "first");
    assert_string_equal(r->engine[e[1].use].name, "conv");
    /* 7 taps x 3 channels at once; 2 groups of outputs */
    assert_int_equal(e[0].cost[SIM_COMPUTE], up(2 * 256 * 7 / 0.77));
    assert_int_equal(r->cycles, e[0].cycles + e[1].cycles + e[2].cycles);
    uint64_t rest = e[1].cycles + e[2].cycles;
    uint64_t next = e[1].cycles + e[0].cycles;
    assert_int_equal(r->interval, rest > next ? rest : next);
    bench_close(b);
}

static void next_image_needs_its_place(void **state) {
    (void)state;
    Bench *b = bench_open("xdnn-v3-96");
    const SimResult *r = two_blocks(b, "0x0");
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text,
                        "c: writes where a puts its result of the next image");
    bench_close(b);
}

/* 9x9 kernels take 81 rows of the cache, more than come at the full rate: each
 * step of the array takes two cycles, and weights are not hidden. */
static void large_kernels_come_at_half_rate(void **state) {
    (void)state;
    uint64_t half = cycles_of(
        "xdnn-v3-96", "1 XNGather 0x0 0x0 8 8 64 0 1 1 0 7 1 1 0 0 0 1\n",
        "2 XNConv a 9 9 1 1 4 4 1 1 16 26 2 1 0 1 0x0 8 8 64 0x100 8 "
        "8 64 1 1 1 0 0 0 1 0 0 0"
        " 0 0 0 0 0 0 0 1 1 1 1 1 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0\n");
    assert_int_equal(half, up(2 * 64 * 2 * 81 / 0.77) +
                               up(81 * 64 * 64 / 17.28e9 * 700e6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_and_output_channels),
        cmocka_unit_test(copies_save_cycles),
        cmocka_unit_test(half_rate_takes_twice_as_long),
        cmocka_unit_test(transfers_take_bytes_over_bandwidth),
        cmocka_unit_test(one_step_is_its_longest),
        cmocka_unit_test(flags_let_engines_overlap),
        cmocka_unit_test(a_missing_wait_is_a_violation),
        cmocka_unit_test(ports_bound_a_sum),
        cmocka_unit_test(sums_by_engine),
        cmocka_unit_test(each_constant_of_a_transfer),
        cmocka_unit_test(double_buffers_hide_the_shorter),
        cmocka_unit_test(next_image_comes_ahead),
        cmocka_unit_test(next_image_needs_its_place),
        cmocka_unit_test(large_kernels_come_at_half_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
