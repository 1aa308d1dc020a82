/* test_nest.c - instructions that run by tiles of channels, too: values as
 * without tiles, bytes as counted by walking the loops, places that collide. */
#include "tests/sim/harness.h"

/* A convolution and its tiles on tile-npu. */
typedef struct Layer {
    uint32_t in_c, in_h, in_w, out_c, out_h, out_w;
    uint32_t kernel, stride, pad;
    bool by_channel;
} Layer;
typedef struct Tile {
    uint32_t w, h, c, in_c, stay;
} Tile;

static const Layer dense = {10, 13, 11, 7, 7, 6, 3, 2, 1, false};
static const Layer skips = {5, 9, 9, 6, 5, 5, 1, 2, 0, false};
static const Layer single = {9, 12, 8, 9, 12, 8, 3, 1, 1, true};

enum { SPACE = 0x1000 }; /* bytes between two places: more than any tile */

static Bench *open_layer(const Layer *l) {
    Bench *b = bench_open("tile-npu");
    b->options.lax = true; /* tiles of any size */
    bench_input(b, bench_region(b, "data",
                                shape_nchw(1, l->in_c, l->in_h, l->in_w),
                                "inputs", 0));
    uint32_t depth = l->by_channel ? 1 : l->in_c;
    bench_blob(b, "x", "weight",
               shape_nchw(l->out_c, depth, l->kernel, l->kernel));
    bench_blob(b, "x", "bias", (Shape){1, {l->out_c}});
    bench_act(b, (LayerAct){.layer = "x", .kind = "relu"});
    return b;
}

static void add_line(Bench *b, const Layer *l, const Tile *t,
                     const uint32_t at[5]) {
    bench_text(
        b, arena_printf(
               b->arena,
               "%s 1 x 0x0 1 1 %u %u %u 0x0 1 1 %u %u %u %u %u %u %u %u %u 1 1 "
               "1 1 1 %u %u 0x%x 0x%x %u %u %u 0x%x 0x%x 0x%x\n",
               l->by_channel ? "CONVD" : "CONV", l->out_c, l->out_h, l->out_w,
               l->in_c, l->in_h, l->in_w, l->kernel, l->kernel, l->stride,
               l->stride, l->pad, l->pad, t->w, t->h, at[0], at[1], t->c,
               t->in_c, t->stay, at[2], at[3], at[4]));
}

static const uint32_t apart[5] = {0, SPACE, 2 * SPACE, 3 * SPACE, 4 * SPACE};

static const SimResult *run(Bench *b, const Layer *l, const Tile *t,
                            const uint32_t at[5]) {
    add_line(b, l, t, at);
    const float *in =
        bench_values(b, 11, (uint64_t)l->in_c * l->in_h * l->in_w);
    return bench_run(b, 1, &in);
}

/* ---- what it should be ---- */

static double product(const Bench *b, const Layer *l, const float *in,
                      uint32_t o, uint32_t i, uint32_t y, uint32_t x) {
    const float *weight = b->listing.image.blob[0].value.data;
    uint32_t depth = l->by_channel ? 1 : l->in_c;
    double sum = 0;
    for (uint32_t ky = 0; ky < l->kernel; ky++)
        for (uint32_t kx = 0; kx < l->kernel; kx++) {
            uint32_t r = y * l->stride + ky - l->pad;
            uint32_t c = x * l->stride + kx - l->pad;
            if (r < l->in_h && c < l->in_w)
                sum += (double)in[(i * l->in_h + r) * l->in_w + c] *
                       (double)weight[((o * depth + (l->by_channel ? 0 : i)) *
                                           l->kernel +
                                       ky) *
                                          l->kernel +
                                      kx];
        }
    return sum;
}

static const float *expected(Bench *b, const Layer *l) {
    uint64_t n = (uint64_t)l->out_c * l->out_h * l->out_w;
    const float *in =
        bench_values(b, 11, (uint64_t)l->in_c * l->in_h * l->in_w);
    const float *bias = b->listing.image.blob[1].value.data;
    float *want = ARENA_ARRAY(b->arena, float, n), *to = want;
    for (uint32_t o = 0; o < l->out_c; o++)
        for (uint32_t y = 0; y < l->out_h; y++)
            for (uint32_t x = 0; x < l->out_w; x++) {
                double sum = (double)bias[o];
                for (uint32_t i = 0; i < l->in_c; i++)
                    if (!l->by_channel || i == o)
                        sum += product(b, l, in, o, i, y, x);
                *to++ = sum > 0 ? (float)sum : 0;
            }
    return want;
}

/* Pixels of an axis that windows [at, at + n) read. */
static uint64_t along(const Layer *l, uint32_t size, uint32_t at, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t p = 0; p < size; p++) {
        bool read = false;
        for (uint32_t i = at; i < at + n; i++)
            for (uint32_t k = 0; k < l->kernel; k++)
                read |= i * l->stride + k == p + l->pad;
        sum += read;
    }
    return sum;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

typedef struct Bytes {
    uint64_t input, weights;
    uint32_t held[5]; /* numbers of the tiles in use */
} Bytes;

static void walk_tile(const Layer *l, const Tile *t, uint32_t row, uint32_t col,
                      uint32_t c, Bytes *sum) {
    uint32_t n_c = least(t->c, l->out_c - c);
    uint64_t pixels = along(l, l->in_h, row, least(t->h, l->out_h - row)) *
                      along(l, l->in_w, col, least(t->w, l->out_w - col));
    for (uint32_t i = 0; i < l->in_c; i += l->by_channel ? l->in_c : t->in_c) {
        uint32_t n_i = l->by_channel ? n_c : least(t->in_c, l->in_c - i);
        uint32_t held[5] = {row, col, l->by_channel ? c : i, c, i};
        if (memcmp(held, sum->held, 3 * sizeof *held) != 0)
            sum->input += pixels * n_i;
        if (memcmp(held + 3, sum->held + 3, 2 * sizeof *held) != 0)
            sum->weights += (uint64_t)l->kernel * l->kernel * n_c *
                            (l->by_channel ? 1 : n_i);
        memcpy(sum->held, held, sizeof held);
    }
}

static Bytes walk(const Layer *l, const Tile *t) {
    Bytes sum = {.held = {99, 99, 99, 99, 99}};
    uint32_t outer = t->stay ? l->out_c : 1, inner = t->stay ? 1 : l->out_c;
    for (uint32_t a = 0; a < outer; a += t->c)
        for (uint32_t row = 0; row < l->out_h; row += t->h)
            for (uint32_t col = 0; col < l->out_w; col += t->w)
                for (uint32_t b = 0; b < inner; b += t->c)
                    walk_tile(l, t, row, col, t->stay ? a : b, &sum);
    return sum;
}

static void check(const Layer *l, const Tile *t) {
    Bench *b = open_layer(l), *c = open_layer(l);
    const SimResult *r = run(b, l, t, apart);
    bench_clean(b);
    size_t n = (size_t)l->out_c * l->out_h * l->out_w;
    bench_near(bench_seen(b, "x")->value, expected(b, l), n);
    Bytes want = walk(l, t);
    assert_int_equal(r->backing_read, want.input);
    assert_int_equal(r->weights_read, want.weights);
    assert_int_equal(r->backing_written, n);
    c->options.memory_only = true;
    const SimResult *only = run(c, l, t, apart);
    assert_int_equal(only->backing_read, r->backing_read);
    assert_int_equal(only->weights_read, r->weights_read);
    assert_int_equal(only->cycles, r->cycles);
    bench_close(b);
    bench_close(c);
}

static void values_and_bytes(void **state) {
    (void)state;
    static const Tile tiles[] = {
        {6, 7, 7, 10, 0}, {3, 7, 7, 10, 0}, {6, 3, 2, 10, 0}, {6, 3, 2, 10, 1},
        {4, 2, 3, 4, 0},  {4, 2, 3, 4, 1},  {1, 1, 1, 1, 1},  {6, 7, 7, 3, 0}};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (int kind = 0; kind < 3; kind++) {
            const Layer *l = kind == 0 ? &dense : kind == 1 ? &skips : &single;
            Tile t = tiles[i];
            t.in_c = l->by_channel ? t.c : least(t.in_c, l->in_c);
            check(l, &t);
        }
}

/* ---- what goes wrong ---- */

static void refuse(const Layer *l, const Tile *t, const uint32_t at[5],
                   const char *what) {
    Bench *b = open_layer(l);
    const SimResult *r = run(b, l, t, at);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text, what);
    bench_close(b);
}

static void tiles_collide(void **state) {
    (void)state;
    const Tile t = {3, 3, 4, 5, 0};
    refuse(&dense, &t, (uint32_t[]){0, SPACE, SPACE + 16, 3 * SPACE, 4 * SPACE},
           "x: a tile of weights overlaps the second input tile");
    refuse(&dense, &t, (uint32_t[]){0, SPACE, 2 * SPACE, 3 * SPACE, 0x7fff0},
           "x: the tile of sums at 0x7fff0 in am takes 144 bytes, more than "
           "there are");
    const Tile deep = {3, 3, 4, 3, 0};
    refuse(&single, &deep, apart,
           "x: 9 channels to 9 cannot be tiled by 3 and 4");
}

/* The first input tile and its only tile of weights lie where a volume was. */
static void tiles_destroy_what_was_there(void **state) {
    (void)state;
    Bench *b = open_layer(&dense);
    bench_text(b, "LD 1 0x0 0x0 1 10 13 11 0 12\n");
    const Tile t = {3, 3, 7, 10, 0};
    run(b, &dense, &t, apart);
    bench_text(b, "ST 9 0x8000 0 0x0 10 13 11 0 12\n");
    const float *in = bench_values(b, 11, UINT64_C(10) * 13 * 11);
    const SimResult *r = bench_run(b, 1, &in);
    assert_int_equal(r->n_violations, 1);
    assert_non_null(strstr(r->violation[0].text, "hold something else"));
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_bytes),
        cmocka_unit_test(tiles_collide),
        cmocka_unit_test(tiles_destroy_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
