/* test_tiles.c - what the machine tiles by itself: the same bits as without
 * tiles, bytes with halo, buffers that destroy what lies under them. */
#include "tests/sim/harness.h"

/* A convolution, alone or with a pool, of 5 channels on xdnn-v3-96. */
typedef struct Layer {
    HwOp op;
    uint32_t in_h, in_w, mid_h, mid_w, out_h, out_w, out_c;
    uint32_t kernel, stride, pad, pool_kernel, pool_stride, pool_pad;
} Layer;

static const Layer conv = {HW_OP_CONV, 37, 45, 0, 0, 19, 23,
                           9,          5,  2,  2, 0, 0,  0};
static const Layer fused = {
    HW_OP_CONV_POOL_MAX, 40, 50, 40, 50, 20, 25, 12, 3, 1, 1, 3, 2, 1};
static const Layer pool = {
    HW_OP_POOL_AVG, 30, 33, 0, 0, 15, 17, 5, 3, 2, 1, 0, 0, 0};

typedef struct Tile {
    uint32_t w, h;
    uint64_t buffer[2]; /* rows of 96 cells */
} Tile;

static void set(HwFields *f, HwField field, int64_t value) {
    f->set[field] = true;
    f->num[field] = value;
}

static void set_window(HwFields *f, HwField first, uint32_t kernel,
                       uint32_t stride, uint32_t pad) {
    const uint32_t value[] = {kernel, kernel, stride, stride, pad, pad};
    for (uint32_t i = 0; i < 6; i++)
        set(f, (HwField)((uint32_t)first + i), value[i]);
}

static void set_size(HwFields *f, HwOperand operand, uint32_t c, uint32_t h,
                     uint32_t w) {
    set(f, HW_FIELD_OF(operand, C), c);
    set(f, HW_FIELD_OF(operand, H), h);
    set(f, HW_FIELD_OF(operand, W), w);
}

static void add_insn(Bench *b, HwOp op, const HwFields *f) {
    int32_t row = insn_row(b->spec, op);
    assert_true(row >= 0);
    HwInsn insn = insn_build(b->arena, b->spec, (uint32_t)row, f, NULL);
    vec_push(b->arena, &b->insn, insn);
}

static HwFields layer_fields(const Bench *b, const Layer *l) {
    HwFields f = {0};
    set(&f, HW_F_STEP, 5);
    f.set[HW_F_NAME] = f.set[HW_F_CONV_NAME] = true;
    f.str[HW_F_NAME] = f.str[HW_F_CONV_NAME] = "x";
    set_window(&f, HW_F_KERNEL_W, l->kernel, l->stride, l->pad);
    set(&f, HW_F_DILATION_W, 1);
    set(&f, HW_F_DILATION_H, 1);
    set_window(&f, HW_F_POOL_KERNEL_W, l->pool_kernel, l->pool_stride,
               l->pool_pad);
    set(&f, HW_F_MID_C, l->out_c);
    set(&f, HW_F_MID_H, l->mid_h);
    set(&f, HW_F_MID_W, l->mid_w);
    set(&f, HW_F_RELU, 1);
    set(&f, HW_F_BIAS, 1);
    insn_set_waits(b->spec, &f, UINT64_MAX);
    set_size(&f, HW_IN, 5, l->in_h, l->in_w);
    set_size(&f, HW_OUT, l->out_c, l->out_h, l->out_w);
    return f;
}

static void add_move(Bench *b, HwOp op, uint32_t step, uint64_t from,
                     uint64_t to, const Layer *l, bool result) {
    HwFields f = {0};
    set(&f, HW_F_STEP, step);
    set(&f, HW_F_IN_ADDR, (int64_t)from);
    set(&f, HW_F_OUT_ADDR, (int64_t)to);
    uint32_t h = result ? l->out_h : l->in_h, w = result ? l->out_w : l->in_w;
    set_size(&f, HW_IN, result ? l->out_c : 5, h, w);
    set_size(&f, HW_OUT, result ? l->out_c : 5, h, w);
    set(&f, HW_F_ROW_LAST, h - 1);
    set(&f, op == HW_OP_LOAD ? HW_F_IN_IO : HW_F_OUT_IO, 1);
    add_insn(b, op, &f);
}

static Bench *open_layer(const Layer *l) {
    Bench *b = bench_open("xdnn-v3-96");
    b->options.lax = true; /* tiles of any size, buffers anywhere */
    bench_input(b, bench_region(b, "data", shape_nchw(1, 5, l->in_h, l->in_w),
                                "inputs", 0));
    if (l->op != HW_OP_POOL_AVG)
        bench_blob(b, "x", "weight",
                   shape_nchw(l->out_c, 5, l->kernel, l->kernel));
    bench_blob(b, "x", "bias", (Shape){1, {l->out_c}});
    return b;
}

static const float *data_of(Bench *b, const Layer *l) {
    return bench_values(b, 11, (uint64_t)5 * l->in_h * l->in_w);
}

/* Loads all, computes at once, leaves the result in active memory. */
static Seen run_at_once(Bench *b, const Layer *l) {
    add_move(b, HW_OP_LOAD, 1, 0, 0, l, false);
    HwFields f = layer_fields(b, l);
    set(&f, HW_F_IN_ADDR, 0);
    set(&f, HW_F_OUT_ADDR, 0x4000);
    add_insn(b, l->op, &f);
    const float *in = data_of(b, l);
    bench_run(b, 1, &in);
    bench_clean(b);
    return *bench_seen(b, "x");
}

/* Reads the network's input by tiles; the result goes to DDR or stays. */
static const SimResult *run_tiled(Bench *b, const Layer *l, const Tile *tile,
                                  bool to_ddr) {
    HwFields f = layer_fields(b, l);
    set(&f, HW_F_IN_ADDR, 0);
    set(&f, HW_F_IN_IO, 1);
    set(&f, HW_F_IN_BACKING, 1);
    set(&f, HW_F_OUT_ADDR, to_ddr ? 0x1000 : 0x10000);
    set(&f, HW_F_OUT_BACKING, to_ddr);
    set(&f, HW_F_TILE_ON, 1);
    set(&f, HW_F_TILE_W, tile->w);
    set(&f, HW_F_TILE_H, tile->h);
    set(&f, HW_F_TILE_BUFFER0, (int64_t)tile->buffer[0]);
    set(&f, HW_F_TILE_BUFFER1, (int64_t)tile->buffer[1]);
    add_insn(b, l->op, &f);
    const float *in = data_of(b, l);
    return bench_run(b, 1, &in);
}

static void same_bits(const Seen *a, const Seen *b) {
    assert_int_equal(a->c, b->c);
    assert_int_equal(a->h, b->h);
    assert_int_equal(a->w, b->w);
    size_t n = (size_t)a->c * a->h * a->w;
    assert_memory_equal(a->value, b->value, n * sizeof(float));
}

static void tiles_change_no_bit(void **state) {
    (void)state;
    const Layer *layers[] = {&conv, &fused, &pool};
    const Tile tiles[] = {{8, 8, {0, 0x4000}},
                          {64, 64, {0, 0x4000}},
                          {7, 3, {0x4000, 0}},
                          {16, 1, {0, 0x4000}}};
    for (size_t l = 0; l < 3; l++) {
        Bench *whole = open_layer(layers[l]);
        Seen want = run_at_once(whole, layers[l]);
        for (size_t t = 0; t < 8; t++) {
            Bench *b = open_layer(layers[l]);
            run_tiled(b, layers[l], &tiles[t / 2], t % 2);
            bench_clean(b);
            same_bits(bench_seen(b, "x"), &want);
            bench_close(b);
        }
        bench_close(whole);
    }
}

/* Columns and rows that tiles of an axis read, halo included. */
static uint64_t read_along(uint32_t out, uint32_t tile, uint32_t in,
                           uint32_t kernel, uint32_t stride, uint32_t pad) {
    uint64_t sum = 0;
    for (uint32_t at = 0; at < out; at += tile) {
        uint32_t n = out - at < tile ? out - at : tile;
        int64_t from = (int64_t)at * stride - pad;
        int64_t to = from + (int64_t)(n - 1) * stride + kernel;
        from = from < 0 ? 0 : from;
        to = to > in ? in : to;
        sum += (uint64_t)(to - from);
    }
    return sum;
}

static void halos_are_read_again(void **state) {
    (void)state;
    const Tile tile = {8, 6, {0, 0x4000}};
    Bench *b = open_layer(&conv);
    const SimResult *r = run_tiled(b, &conv, &tile, true);
    bench_clean(b);
    uint64_t rows = read_along(conv.out_h, 6, conv.in_h, 5, 2, 2);
    uint64_t cols = read_along(conv.out_w, 8, conv.in_w, 5, 2, 2);
    assert_true(rows > conv.in_h && cols > conv.in_w);
    assert_int_equal(r->backing_read, 5 * rows * cols);
    assert_int_equal(r->backing_written, 9 * 19 * 23);
    assert_int_equal(r->compulsory, 5 * 37 * 45);
    bench_close(b);
}

static void buffers_destroy_what_was_there(void **state) {
    (void)state;
    const Tile tile = {8, 8, {0, 0x4000}};
    Bench *b = open_layer(&conv);
    add_move(b, HW_OP_LOAD, 1, 0, 0x4000, &conv, false);
    run_tiled(b, &conv, &tile, true);
    bench_clean(b);
    /* the volume that was loaded to 0x4000 is no longer whole */
    add_move(b, HW_OP_STORE, 9, 0x4000, 0,
             &(Layer){.out_c = 5, .out_h = 37, .out_w = 45}, true);
    const float *in = data_of(b, &conv);
    const SimResult *r = bench_run(b, 1, &in);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(
        r->violation[0].text,
        "store: source 5x37x45 at 0x4000 in am: 1615 of its cells hold "
        "something else, first channel 0, row 0, column 0 at 0x4000 in am, "
        "last written by x as an input tile, 5x7x19 at 0x4000 in am");
    bench_close(b);
}

static void tile_too_large_for_its_buffer(void **state) {
    (void)state;
    Bench *b = open_layer(&conv);
    const Tile tile = {8, 8, {0, 100}};
    const SimResult *r = run_tiled(b, &conv, &tile, true);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text,
                        "x: input tile 5x17x19 at 0x64 in am overlaps the tile "
                        "before it, 5x17x17 at 0x0 in am");
    bench_close(b);
    b = open_layer(&conv);
    const Tile high = {8, 8, {0, 0x17fff}};
    r = run_tiled(b, &conv, &high, true);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text,
                        "x: input tile 5x17x19 at 0x17fff in am takes 31008 "
                        "bytes, 30912 more than the memory has from there");
    bench_close(b);
    b = open_layer(&conv);
    const Tile on_output = {8, 8, {0, 0x10000}};
    r = run_tiled(b, &conv, &on_output, false);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text,
                        "x: input tile 5x17x19 at 0x10000 in am overlaps the "
                        "output, 9x19x23 at 0x10000 in am");
    bench_close(b);
}

static void memory_only_counts_the_same(void **state) {
    (void)state;
    const Tile tile = {8, 6, {0, 0x4000}};
    const Layer *layers[] = {&conv, &fused, &pool};
    for (size_t l = 0; l < 3; l++) {
        Bench *b = open_layer(layers[l]), *c = open_layer(layers[l]);
        const SimResult *full = run_tiled(b, layers[l], &tile, true);
        c->options.memory_only = true;
        const SimResult *only = run_tiled(c, layers[l], &tile, true);
        assert_int_equal(only->n_violations, 0);
        assert_int_equal(full->backing_read, only->backing_read);
        assert_int_equal(full->backing_written, only->backing_written);
        assert_int_equal(full->cycles, only->cycles);
        assert_int_equal(full->am_peak, only->am_peak);
        bench_close(b);
        bench_close(c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_change_no_bit),
        cmocka_unit_test(halos_are_read_again),
        cmocka_unit_test(buffers_destroy_what_was_there),
        cmocka_unit_test(tile_too_large_for_its_buffer),
        cmocka_unit_test(memory_only_counts_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
