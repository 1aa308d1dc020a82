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
    /* 2 groups of outputs; weights of a row: 96 x 32 bytes */
    double weights = 96 * 32 / 17.28e9 * 700e6;
    assert_true(weights * 6 * 2 > 64 * 2 * 6 / 0.77);
    assert_int_equal(plain, up(weights * 2 * 9));
    assert_int_equal(copied, up(weights * 2 * 6));
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_and_output_channels),
        cmocka_unit_test(copies_save_cycles),
        cmocka_unit_test(transfers_take_bytes_over_bandwidth),
        cmocka_unit_test(one_step_is_its_longest),
        cmocka_unit_test(flags_let_engines_overlap),
        cmocka_unit_test(a_missing_wait_is_a_violation),
        cmocka_unit_test(ports_bound_a_sum),
        cmocka_unit_test(sums_by_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
