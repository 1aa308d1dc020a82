/* test_staged.c - weights as operands in active memory: values as where engines
 * have them, cells that hold something else, bytes, and what runs beside what.
 */
#include "tests/sim/harness.h"

/* A convolution of 8 x 6 x 6 by 3 x 3 to 128 channels, its input at 0. */
enum { IN = 8, OUT = 128, SIDE = 6, PIXELS = SIDE * SIDE, TAPS = IN * 9 };
enum { RESULT = 0x1000, WEIGHTS = 0x4000 };

static Bench *open_on(const char *machine) {
    Bench *b = bench_open(machine);
    bench_input(
        b, bench_region(b, "data", shape_nchw(1, IN, SIDE, SIDE), "inputs", 0));
    bench_blob(b, "x", "weight", shape_nchw(OUT, IN, 3, 3));
    bench_blob(b, "x", "bias", (Shape){1, {OUT}});
    bench_blob(b, "y", "weight", shape_nchw(OUT, IN, 3, 3));
    bench_blob(b, "y", "bias", (Shape){1, {OUT}});
    bench_act(b, (LayerAct){.layer = "x", .kind = "relu"});
    bench_text(b, "LD 1 2 0x0 0 0x0 8 6 6 0 5\n");
    return b;
}

static void add_load(Bench *b, const char *layer, uint32_t at, uint32_t first,
                     uint32_t last) {
    bench_text(b, arena_printf(b->arena, "LDW 2 %s 0x%x %u %u %u\n", layer, at,
                               first, last, (uint32_t)TAPS));
}

/* Channels [first, first + n). */
static void add_conv(Bench *b, const char *name, uint32_t first, uint32_t n,
                     const char *weights) {
    bench_text(b, arena_printf(b->arena,
                               "CONV 2 %s 0x%x %u 6 6 0 0 0x0 8 6 6 0 0 "
                               "3 3 1 1 1 1 1 1 %s\n",
                               name, RESULT + first * PIXELS, n, weights));
}

static const SimResult *run(Bench *b) {
    const float *in = bench_values(b, 11, IN * PIXELS);
    return bench_run(b, 1, &in);
}

/* The same layer where its engine has the weights. */
static const float *expected(Arena *arena) {
    Bench *b = open_on("ring-npu");
    add_conv(b, "x", 0, OUT, "");
    assert_int_equal(run(b)->n_violations, 0);
    const float *value =
        ARENA_COPY(arena, float, b->seen.at[0].value, OUT *PIXELS);
    bench_close(b);
    return value;
}

static void whole_and_by_slices(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", WEIGHTS, 0, OUT - 1);
    add_conv(b, "x", 0, OUT, "0x4000 0");
    add_load(b, "x", 0x8000, 64, 127);
    add_conv(b, "x#0", 0, 64, "0x4000 0");
    add_conv(b, "x#1", 64, 64, "0x8000 64");
    const SimResult *r = run(b);
    const float *want = expected(b->arena);
    assert_int_equal(r->n_violations, 0);
    assert_memory_equal(b->seen.at[0].value, want, OUT * PIXELS * sizeof *want);
    assert_memory_equal(b->seen.at[1].value, want, 64 * PIXELS * sizeof *want);
    assert_memory_equal(b->seen.at[2].value, want + 64 * PIXELS,
                        64 * PIXELS * sizeof *want);
    assert_int_equal(r->weights_read, (OUT + 64) * TAPS);
    assert_int_equal(r->backing_read, IN * PIXELS + (OUT + 64) * TAPS);
    assert_int_equal(r->compulsory, IN * PIXELS + OUT * TAPS);
    bench_close(b);
}

static void refuse(Bench *b, const char *text) {
    const SimResult *r = run(b);
    assert_true(r->n_violations > 0);
    if (!strstr(r->violation[0].text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, r->violation[0].text);
    bench_close(b);
}

static void never_loaded(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", WEIGHTS, 0, 126);
    add_conv(b, "x", 0, OUT, "0x4000 0");
    refuse(b, "weights 128x1x72 at 0x4000 in am: 72 of its cells were never "
              "written, first channel 127");
}

static void another_layers(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "y", WEIGHTS, 0, OUT - 1);
    add_conv(b, "x", 0, OUT, "0x4000 0");
    refuse(b, "9216 of its cells hold something else");
}

static void other_channels(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", WEIGHTS, 0, 63);
    add_conv(b, "x#1", 64, 64, "0x4000 64");
    refuse(b, "4608 of its cells hold something else");
}

static void overwritten(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", WEIGHTS, 0, OUT - 1);
    bench_text(b, "LD 2 2 0x4000 0 0x0 8 6 6 0 5\n");
    add_conv(b, "x", 0, OUT, "0x4000 0");
    refuse(b, "288 of its cells hold something else");
}

static void read_as_a_volume(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", 0, 0, OUT - 1);
    add_load(b, "x", WEIGHTS, 0, OUT - 1);
    add_conv(b, "x", 0, OUT, "0x4000 0");
    refuse(b, "input 8x6x6 at 0x0 in am: 288 of its cells hold something else");
}

static void beyond_the_end(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", (8 << 20) - 16, 0, OUT - 1);
    refuse(b, "weights at 0x7ffff0 in am take 9216 bytes, more than there are");
}

static void beyond_the_layer(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", WEIGHTS, 1, OUT);
    refuse(b, "loads weights of channels 1 to 128; x has 128");
}

/* A transposed convolution of 8 x 6 x 6 by 2 x 2 to `out` channels. */
static float *open_deconv(Bench **out, uint32_t channels) {
    Bench *b = *out = bench_open("stage-npu");
    bench_input(
        b, bench_region(b, "data", shape_nchw(1, IN, SIDE, SIDE), "inputs", 0));
    float *weight =
        bench_blob(b, "x", "weight", shape_nchw(IN, channels, 2, 2));
    bench_text(b, "LD 1 2 0x0 0 0x0 8 6 6 0 5\n");
    return weight;
}

static void add_deconv(Bench *b, const char *name, uint32_t at, uint32_t first,
                       uint32_t n) {
    bench_text(b, arena_printf(b->arena, "LDW 2 x 0x%x %u %u 32\n", at, first,
                               first + n - 1));
    bench_text(b,
               arena_printf(b->arena,
                            "DECONV 2 %s 0x%x %u 12 12 0 0 0x0 8 6 6 0 0 "
                            "2 2 2 2 0 0 0 0 0x%x %u\n",
                            name, RESULT + first * 4 * PIXELS, n, at, first));
}

/* Each result is of one pixel and one tap; weights are stored by input. */
static void check_deconv(Arena *arena, const float *weight, uint32_t channels,
                         const float *in, const Seen *seen, uint32_t first) {
    enum { WIDE = 2 * SIDE };
    float *want = ARENA_ARRAY(arena, float, seen->c *WIDE *WIDE);
    for (uint32_t i = 0; i < seen->c * WIDE * WIDE; i++) {
        uint32_t o = first + i / (WIDE * WIDE);
        uint32_t y = i / WIDE % WIDE, x = i % WIDE;
        for (uint32_t c = 0; c < IN; c++)
            want[i] += in[c * PIXELS + y / 2 * SIDE + x / 2] *
                       weight[(c * channels + o) * 4 + y % 2 * 2 + x % 2];
    }
    assert_memory_equal(seen->value, want,
                        seen->c * WIDE * WIDE * sizeof *want);
}

static void transposed(uint32_t channels) {
    Bench *b;
    const float *weight = open_deconv(&b, channels);
    add_deconv(b, "x", WEIGHTS, 0, channels);
    add_deconv(b, "x#1", WEIGHTS, 4, channels - 4);
    const float *in = bench_values(b, 11, IN * PIXELS);
    const SimResult *r = bench_run(b, 1, &in);
    assert_int_equal(r->n_violations, 0);
    for (uint32_t i = 0; i < 2; i++)
        check_deconv(b->arena, weight, channels, in, &b->seen.at[i], i * 4);
    assert_int_equal(r->weights_read, (2 * channels - 4) * IN * 4);
    assert_int_equal(r->compulsory, IN * PIXELS + channels * IN * 4);
    bench_close(b);
}

/* Also with as many channels as it reads. */
static void stored_by_input(void **state) {
    (void)state;
    transposed(IN);
    transposed(12);
}

static const SimEvent *event(const Bench *b, uint32_t i) {
    assert_true(i < b->result->n_events);
    return &b->result->event[i];
}

/* A load runs beside the layer before it, and behind that where it takes the
 * place of what the layer reads; a layer waits for its own weights alone. */
static void in_the_queue(void **state) {
    (void)state;
    Bench *b = open_on("stage-npu");
    add_load(b, "x", WEIGHTS, 0, OUT - 1);
    add_conv(b, "x", 0, OUT, "0x4000 0");
    add_load(b, "y", 0x8000, 0, OUT - 1);
    add_load(b, "y", WEIGHTS, 0, OUT - 1);
    add_conv(b, "y", 0, OUT, "0x8000 0");
    run(b);
    const SimEvent *image = event(b, 0), *first = event(b, 1), *x = event(b, 2),
                   *beside = event(b, 3), *behind = event(b, 4),
                   *y = event(b, 5);
    assert_int_equal(b->result->n_violations, 0);
    assert_int_equal(first->start, image->start + image->cycles);
    assert_int_equal(x->start, first->start + first->cycles);
    assert_int_equal(beside->start, x->start);
    assert_int_equal(behind->start, beside->start + beside->cycles);
    assert_true(behind->start >= x->start + x->cycles);
    assert_int_equal(y->start, beside->start + beside->cycles);
    assert_true(y->start < behind->start + behind->cycles);
    assert_int_equal(first->cycles, 100 + OUT * TAPS / 16);
    bench_close(b);
}

/* No more than `queue` instructions are on their way. */
static void queue_of_one(void **state) {
    (void)state;
    const HwSetting one = {"tiling.queue", "1"};
    Bench *b = bench_open_with("stage-npu", 1, &one);
    bench_blob(b, "x", "weight", shape_nchw(OUT, IN, 3, 3));
    for (uint32_t i = 0; i < 3; i++)
        add_load(b, "x", WEIGHTS * (i + 1), 0, OUT - 1);
    bench_run(b, 0, NULL);
    assert_int_equal(b->result->n_violations, 0);
    for (uint32_t i = 1; i < 3; i++)
        assert_int_equal(event(b, i)->start,
                         event(b, i - 1)->start + event(b, i - 1)->cycles);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_and_by_slices),
        cmocka_unit_test(never_loaded),
        cmocka_unit_test(another_layers),
        cmocka_unit_test(other_channels),
        cmocka_unit_test(overwritten),
        cmocka_unit_test(read_as_a_volume),
        cmocka_unit_test(beyond_the_end),
        cmocka_unit_test(beyond_the_layer),
        cmocka_unit_test(stored_by_input),
        cmocka_unit_test(in_the_queue),
        cmocka_unit_test(queue_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
