/* Files on a machine of their own, data/pairs.yaml: the values against loops as
 * the definition has them, and each mistake that a file can make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/rng.h"
#include "base/text.h"
#include "sim/program.h"

#include <string.h>

static const char machine[] = "tests/sim/data/pairs.yaml";

enum { IN_C = 3, H = 5, W = 3, MID_C = 4, WIDE = 6, TAPS = 9 };

/* A convolution's numbers, and the file that has two of them. */
typedef struct Layer {
    uint32_t in_c, out_c, w;
    bool depthwise;
    int64_t zero_in, zero_weights, zero_out;
    int64_t bias[MID_C], mul[MID_C], shift[MID_C];
    int64_t weight[MID_C * IN_C * TAPS];
} Layer;

static int64_t dice(uint64_t stream, uint64_t i, int64_t lo, int64_t hi) {
    return lo + (int64_t)(rng_bits(stream, i) % (uint64_t)(hi - lo + 1));
}

static uint32_t n_weights(const Layer *l) {
    return l->out_c * (l->depthwise ? 1 : l->in_c) * TAPS;
}

static Layer random_layer(uint64_t seed, uint32_t in_c, uint32_t w,
                          bool depthwise) {
    Layer l = {.in_c = in_c, .out_c = MID_C, .w = w, .depthwise = depthwise};
    l.zero_in = dice(seed, 0, -20, 20);
    l.zero_weights = dice(seed, 1, -3, 3);
    l.zero_out = dice(seed, 2, -20, 20);
    for (uint32_t o = 0; o < MID_C; o++) {
        l.bias[o] = dice(seed, 10 + o, -900, 900);
        l.mul[o] = dice(seed, 20 + o, 1 << 28, INT32_MAX);
        l.shift[o] = dice(seed, 30 + o, 36, 39);
    }
    for (uint32_t i = 0; i < n_weights(&l); i++)
        l.weight[i] = dice(seed + 1, i, -128, 127);
    return l;
}

/* ---- by the definition ---- */

static int64_t floor_shift(int64_t x, int64_t by) {
    int64_t unit = INT64_C(1) << by;
    return x >= 0 ? x / unit : -((-x + unit - 1) / unit);
}

/* By 31 bits, halves up, then by the rest, halves away from 0. */
static int64_t twice(int64_t x, int64_t mul, int64_t shift) {
    int64_t near = floor_shift(x * mul + (INT64_C(1) << 30), 31);
    int64_t unit = INT64_C(1) << (shift - 31);
    int64_t size = near < 0 ? -near : near, half = (size + unit / 2) / unit;
    return near < 0 ? -half : half;
}

static int64_t tap(const Layer *l, const int8_t *in, uint32_t c, int64_t y,
                   int64_t x) {
    if (y < 0 || y >= H || x < 0 || x >= l->w)
        return 0;
    return in[(c * H + (uint32_t)y) * l->w + (uint32_t)x] - l->zero_in;
}

static int64_t sum_at(const Layer *l, const int8_t *in, uint32_t o, uint32_t y,
                      uint32_t x) {
    uint32_t n = l->depthwise ? 1 : l->in_c;
    int64_t sum = 4 * l->bias[o];
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < TAPS; t++)
            sum += tap(l, in, l->depthwise ? o : i, (int64_t)y + t / 3 - 1,
                       (int64_t)x + t % 3 - 1) *
                   (l->weight[(o * n + i) * TAPS + t] - l->zero_weights);
    return sum;
}

static void convolve(const Layer *l, const int8_t *in, int8_t *out) {
    for (uint32_t o = 0; o < l->out_c; o++)
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < l->w; x++) {
                int64_t code =
                    twice(sum_at(l, in, o, y, x), l->mul[o], l->shift[o]) +
                    l->zero_out;
                *out++ = (int8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
            }
}

/* Of 2 x 2 at stride 1, without what sticks out. */
static void pool_max(uint32_t w, const int8_t *in, int8_t *out) {
    for (uint32_t c = 0; c < MID_C; c++)
        for (uint32_t y = 0; y < H; y++)
            for (uint32_t x = 0; x < w; x++) {
                int8_t most = -128;
                for (uint32_t t = 0; t < 4; t++) {
                    uint32_t row = y + t / 2, col = x + t % 2;
                    int8_t code =
                        row < H && col < w ? in[(c * H + row) * w + col] : -128;
                    most = code > most ? code : most;
                }
                *out++ = most;
            }
}

/* ---- the file ---- */

static void add_list(Text *text, const char *name, uint32_t n,
                     const int64_t *value) {
    text_addf(text, "  %s[]=", name);
    for (uint32_t i = 0; i < n; i++)
        text_addf(text, " %lld", (long long)value[i]);
    text_add(text, "\n");
}

static void add_layer(Text *text, const Layer *l, const char *places,
                      const char *pool) {
    text_addf(text,
              "CONV batch=1 %s in.c=%u in.h=%u in.w=%u out.c=%u kernel.w=3 "
              "depthwise=%d %s out.h=%u out.w=%u\n",
              places, l->in_c, H, l->w, l->out_c, l->depthwise, pool, H, l->w);
    text_addf(text, "    in.zero=%d weights.zero=%d out.zero=%d\n",
              (int)l->zero_in, (int)l->zero_weights, (int)l->zero_out);
    add_list(text, "b.bias", l->out_c, l->bias);
    add_list(text, "scale.mul", l->out_c, l->mul);
    add_list(text, "scale.shift", l->out_c, l->shift);
    add_list(text, "weights", n_weights(l), l->weight);
}

/* Convolution of a narrow volume; its copy in main memory is padded to a wider
 * one, uploaded, and convolved by channel. */
static const char *file_of(Arena *arena, const Layer *a, const Layer *b) {
    Text text = text_new(arena);
    text_add(&text, "pairs main.bytes=400 inputs=1 outputs=2\n"
                    "  input.memory[]= 1\n  input.type[]= u8\n"
                    "  input.start[]= 0\n  input.size[]= 80\n"
                    "  input.n[]= 1\n  input.c[]= 3\n  input.h[]= 5\n"
                    "  input.w[]= 3\n"
                    "  output.memory[]= 2 2\n  output.type[]= u8 u8\n"
                    "  output.start[]= 200 64\n  output.size[]= 120 120\n");
    add_layer(&text, a,
              "in.addr=0 out.addr=10 out2.memory=2 out2.type=u8 out2.start=0 "
              "out2.size=60",
              "pool=none pool.kernel.w=1 pool.stride.w=1 pool.edge=inside");
    text_add(&text,
             "PAD in.memory=2 in.type=u8 in.start=0 in.size=60 out.memory=2 "
             "out.type=u8 out.start=64 out.size=120 in.n=1 in.c=4 in.h=5 "
             "in.w=3 before.n=0 after.n=0 before.c=0 after.c=0 before.h=0 "
             "after.h=0 before.w=0 after.w=3 value=7\n"
             "UPLOAD in.memory=2 in.type=u8 in.start=64 in.size=120 "
             "out.memory=1 out.type=u8 out.start=160 out.size=160 in.n=1 "
             "in.c=4 in.h=5 in.w=6\n");
    add_layer(&text, b,
              "in.addr=20 out.addr=40 out2.memory=2 out2.type=u8 "
              "out2.start=200 out2.size=120",
              "pool=max pool.kernel.w=2 pool.stride.w=1 pool.edge=ignore");
    return text_str(&text);
}

static const ProgramResult *run(Arena *arena, const char *text,
                                const uint8_t *input) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, machine, 0, NULL);
    const uint8_t *data = NULL;
    size_t len = 0;
    assert_non_null(spec);
    const Program *program =
        program_parse(arena, diag, spec, "text", text, strlen(text));
    if (!program || !program_encode(arena, diag, program, &data, &len))
        fail_msg("%s", diag_at(diag, 0)->text);
    program = program_decode(arena, diag, spec, "file", data, len);
    if (!program)
        fail_msg("%s", diag_at(diag, 0)->text);
    assert_int_equal(program_inputs(program), 1);
    assert_int_equal(program_input(program, 0).c, IN_C);
    ProgramBytes bytes = {input, IN_C * H * W};
    const ProgramResult *result = program_run(arena, diag, program, 1, &bytes);
    if (!result)
        fail_msg("%s", diag_at(diag, 0)->text);
    return result;
}

static void random_input(uint64_t seed, int8_t in[IN_C * H * W]) {
    for (uint64_t i = 0; i < IN_C * H * W; i++)
        in[i] = (int8_t)dice(seed, i, -128, 127);
}

static void widen(const int8_t *in, int8_t *out) {
    for (uint32_t i = 0; i < MID_C * H * WIDE; i++)
        out[i] = i % WIDE < W ? in[i / WIDE * W + i % WIDE] : 7;
}

static void values_are_those_of_loops(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        Arena *arena = arena_new("test");
        int8_t in[IN_C * H * W], mid[MID_C * H * W], wide[MID_C * H * WIDE];
        int8_t made[MID_C * H * WIDE], out[MID_C * H * WIDE];
        Layer a = random_layer(seed, IN_C, W, false);
        Layer b = random_layer(seed + 1000, MID_C, WIDE, true);
        random_input(seed + 2000, in);
        convolve(&a, in, mid);
        widen(mid, wide);
        convolve(&b, wide, made);
        pool_max(WIDE, made, out);
        const ProgramResult *r =
            run(arena, file_of(arena, &a, &b), (const uint8_t *)in);
        assert_int_equal(r->n_faults, 0);
        assert_int_equal(r->n_steps, 4);
        assert_int_equal(r->step[0].crc,
                         crc32_of((const uint8_t *)mid, sizeof mid));
        assert_int_equal(r->step[1].crc,
                         crc32_of((const uint8_t *)wide, sizeof wide));
        assert_int_equal(r->step[3].crc,
                         crc32_of((const uint8_t *)out, sizeof out));
        assert_int_equal(r->n_outputs, 2);
        assert_int_equal(r->output[0].bytes.n, sizeof out);
        assert_memory_equal(r->output[0].bytes.at, out, sizeof out);
        assert_memory_equal(r->output[1].bytes.at, wide, sizeof wide);
        arena_free(arena);
    }
}

/* 10 units by 4 channels at 10 ns, and 1 us: below the floor; 20 units: not
 * above it; 120 bytes at 5 ns; the pad has no price. */
static void nodes_have_prices(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    int8_t in[IN_C * H * W] = {0};
    Layer a = random_layer(1, IN_C, W, false);
    Layer b = random_layer(2, MID_C, WIDE, true);
    const ProgramResult *r =
        run(arena, file_of(arena, &a, &b), (const uint8_t *)in);
    assert_true(r->step[0].priced && r->step[0].seconds == 2e-6);
    assert_false(r->step[1].priced);
    assert_true(r->step[2].seconds > 5.9e-7 && r->step[2].seconds < 6.1e-7);
    assert_true(r->step[3].seconds == 2e-6);
    assert_int_equal(r->n_priced, 3);
    assert_true(r->seconds > 4.5e-6 && r->seconds < 4.7e-6);
    assert_int_equal(r->touched[0], 480);
    arena_free(arena);
}

static const char *replaced(Arena *arena, const char *text, const char *from,
                            const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from));
}

static void mistakes_are_told(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *said;
    } rows[] = {
        {"in.addr=0 ", "in.addr=120 ",
         "node 0 (CONV): in: bytes 960 to 1040 of am, which has 1024"},
        {"in.addr=0 ", "in.addr=60 ",
         "node 0 (CONV): in: nobody wrote 45 of its bytes; the first is 480 of "
         "am"},
        {"out.addr=10 ", "out.addr=5 ", "node 0 (CONV): out lies over in"},
        {"in.addr=20 ", "in.addr=10 ",
         "node 3 (CONV): in: 50 bytes were written as other rows or columns"},
        {"in.addr=20 ", "in.addr=21 ",
         "node 3 (CONV): in: 114 bytes were written as other rows or columns"},
        {"main.bytes=400", "main.bytes=300",
         "node 3 (CONV): out2: bytes 200 to 320 of main, which has 300"},
        {"out2.start=200 ", "out2.start=150 ",
         "node 4 (file): output[0]: nobody wrote 50 of its bytes; the first is "
         "270 of main"},
        {"output.start[]= 200 64", "output.start[]= 200 100",
         "node 4 (file): output[1]: nobody wrote 16 of its bytes; the first is "
         "184 of main"},
        {"out.start=64 ", "out.start=30 ", "node 1 (PAD): out lies over in"},
        {"out.start=64 out.size=120", "out.start=64 out.size=100",
         "node 1 (PAD): out: 1x4x5x6 are 120 elements, its range has 100"},
        {"after.w=3", "after.w=-3", "node 1 (PAD): axis w: nothing is left"},
        {"out.start=160 out.size=160", "out.start=160 out.size=120",
         "node 2 (UPLOAD): in and out take 120 and 160 bytes, it says 120 and "
         "120"},
        {"in.memory=2 in.type=u8 in.start=0",
         "in.memory=9 in.type=u8 "
         "in.start=0",
         "node 1 (PAD): in: no memory has the number 9"},
        {"out.h=5 out.w=6", "out.h=4 out.w=6",
         "node 3 (CONV): out.h is 4, the result has 5"},
    };
    Arena *arena = arena_new("test");
    int8_t in[IN_C * H * W];
    Layer a = random_layer(1, IN_C, W, false);
    Layer b = random_layer(2, MID_C, WIDE, true);
    const char *good = file_of(arena, &a, &b);
    random_input(3, in);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ProgramResult *r =
            run(arena, replaced(arena, good, rows[i].from, rows[i].to),
                (const uint8_t *)in);
        assert_true(r->n_faults > 0);
        bool told = false;
        for (uint32_t k = 0; k < r->n_faults && k < PROGRAM_FAULTS; k++)
            told |= !strcmp(r->fault[k], rows[i].said);
        if (!told)
            fail_msg("%s: said is %s", rows[i].to, r->fault[0]);
    }
    arena_free(arena);
}

/* The second result lies over the end of what output 1 reads. */
static void overwriting_is_told(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    int8_t in[IN_C * H * W];
    Layer a = random_layer(1, IN_C, W, false);
    Layer b = random_layer(2, MID_C, WIDE, true);
    random_input(3, in);
    const char *text = replaced(arena, file_of(arena, &a, &b),
                                "out2.start=200 ", "out2.start=150 ");
    const ProgramResult *r = run(arena, text, (const uint8_t *)in);
    bool told = false;
    for (uint32_t k = 0; k < r->n_faults; k++)
        told |= !strcmp(r->fault[k],
                        "node 4 (file): output[1]: 34 bytes of node 1 (PAD) "
                        "were overwritten by node 3 (CONV)");
    assert_true(told);
    arena_free(arena);
}

/* ---- nodes of a processor, by the rows of a shipped machine ---- */

typedef struct Span {
    const char *type;
    uint32_t start, size; /* of main memory */
} Span;

/* Input: 32 codes, 0 to 31, as 1 x 2 x 4 x 4; each node reads it, or the reals
 * that DEQUANTISE makes of it. */
static const struct {
    const char *row;
    Span in, in2, out;
    const char *shapes; /* i, 2, o: of which operands it says them */
    const char *rest;
} processor[] = {
    {"SLICE",
     {"u8", 0, 32},
     {0},
     {"u8", 32, 8},
     "i",
     "\n  begin[]= 0 0 1 0\n  end[]= 1 2 4 4\n  step[]= 1 1 2 3\n"
     "  mask[]= 0 0 0 0 0"},
    {"RESIZE",
     {"u8", 0, 32},
     {0},
     {"u8", 64, 128},
     "i",
     "out.h=8 out.w=8 resize=nearest corners=0"},
    {"RESIZE",
     {"u8", 0, 32},
     {0},
     {"u8", 192, 98},
     "i",
     "out.h=7 out.w=7 resize=bilinear corners=1"},
    {"DEQUANTISE",
     {"u8", 0, 32},
     {0},
     {"f32", 320, 128},
     "",
     "code.zero=3 code.scale=2"},
    {"REDUCE_WINDOW",
     {"f32", 320, 128},
     {0},
     {"f32", 448, 128},
     "i",
     "reduce=mean before.h=1 after.h=1 before.w=1 after.w=1 kernel.h=3\n"
     "    kernel.w=3 stride.h=1 stride.w=1 dilation.h=1 dilation.w=1 first=0\n"
     "    least=-1000 most=9.5"},
    {"BINARY",
     {"f32", 320, 128},
     {"f32", 320, 128},
     {"f32", 576, 128},
     "i2o",
     "operation=mul least=0.5 most=1000"},
    {"MATMUL_CODES",
     {"u8", 0, 32},
     {"u8", 0, 32},
     {"u8", 704, 16},
     "",
     "rows=4 columns=8 columns2=4 in.add=-3 in2.add=2 out.mul=3\n"
     "    out.shift=7 out.add=1\n  product.code_bias[]= 0 5 -10 600"},
    {"LOOKUP",
     {"u8", 0, 32},
     {0},
     {"u8", 720, 32},
     "",
     "in2.memory=constants in2.type=u8 in2.start=0 in2.size=256"},
};

static void add_span(Text *text, const char *name, const Span *span,
                     bool shaped) {
    if (span->type)
        text_addf(text,
                  "    %s.memory=main %s.type=%s %s.start=%u %s.size=%u\n",
                  name, name, span->type, name, span->start, name, span->size);
    if (shaped)
        text_addf(text, "    %s.n=1 %s.c=2 %s.h=4 %s.w=4\n", name, name, name,
                  name);
}

static void add_processor(Text *text) {
    for (size_t i = 0; i < sizeof processor / sizeof *processor; i++) {
        const char *shapes = processor[i].shapes;
        text_addf(text, "%s\n", processor[i].row);
        add_span(text, "in", &processor[i].in, strchr(shapes, 'i'));
        add_span(text, "in2", &processor[i].in2, strchr(shapes, '2'));
        add_span(text, "out", &processor[i].out, strchr(shapes, 'o'));
        text_addf(text, "    %s\n", processor[i].rest);
    }
}

static const ProgramResult *run_processor(Arena *arena, const uint8_t *input) {
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, "k210", 0, NULL);
    Text text = text_new(arena);
    const uint8_t *data = NULL;
    size_t len = 0;
    text_add(&text, "kmodel main.bytes=752 inputs=1 outputs=1 "
                    "constants.bytes=256\n  constants[]=");
    for (int i = 0; i < 256; i++)
        text_addf(&text, " %d", 255 - i);
    text_add(&text, "\n  input.memory[]= main\n  input.type[]= u8\n"
                    "  input.start[]= 0\n  input.size[]= 32\n  input.n[]= 1\n"
                    "  input.c[]= 2\n  input.h[]= 4\n  input.w[]= 4\n"
                    "  output.memory[]= main\n  output.type[]= u8\n"
                    "  output.start[]= 0\n  output.size[]= 752\n");
    add_processor(&text);
    const Program *program = program_parse(
        arena, diag, spec, "text", text_str(&text), strlen(text_str(&text)));
    if (!program || !program_encode(arena, diag, program, &data, &len))
        fail_msg("%s", diag_at(diag, 0)->text);
    program = program_decode(arena, diag, spec, "file", data, len);
    ProgramBytes bytes = {input, 32};
    return program_run(arena, diag, program, 1, &bytes);
}

static float real_at(const uint8_t *at, uint32_t i) {
    float value;
    memcpy(&value, at + 4 * i, sizeof value);
    return value;
}

/* Between 4 x 4 codes that rise by 1 and by 4, at seven places each way. */
static void check_resized(const uint8_t *near, const uint8_t *between) {
    for (uint32_t c = 0; c < 2; c++) {
        for (uint32_t i = 0; i < 64; i++)
            assert_int_equal(near[64 * c + i], 16 * c + i / 16 * 4 + i % 8 / 2);
        for (uint32_t i = 0; i < 49; i++)
            assert_int_equal(between[49 * c + i],
                             16 * c + (i / 7 * 4 + i % 7) / 2);
    }
}

static void check_reals(const uint8_t *at) {
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t y = i % 16 / 4, x = i % 4, n = 0;
        float sum = 0, value = ((float)i - 3) / 2, square = value * value;
        for (uint32_t k = 0; k < 9; k++) {
            uint32_t row = y + k / 3, col = x + k % 3; /* less 1 */
            if (row < 1 || row > 4 || col < 1 || col > 4)
                continue;
            sum += ((float)(i / 16 * 16 + (row - 1) * 4 + col - 1) - 3) / 2;
            n++;
        }
        float mean = sum / (float)n;
        assert_true(real_at(at + 320, i) == value);
        assert_true(real_at(at + 448, i) == (mean > 9.5F ? 9.5F : mean));
        assert_true(real_at(at + 576, i) == (square < 0.5F ? 0.5F : square));
    }
}

static void check_product(const uint8_t *at) {
    static const int32_t bias[] = {0, 5, -10, 600};
    for (int32_t i = 0; i < 16; i++) {
        int32_t sum = bias[i % 4];
        for (int32_t k = 0; k < 8; k++)
            sum += (i / 4 * 8 + k - 3) * (k * 4 + i % 4 + 2);
        int64_t code = floor_shift((int64_t)sum * 3 + 64, 7) + 1;
        assert_int_equal(at[i], code < 0 ? 0 : code > 255 ? 255 : code);
    }
}

static void processors_compute(void **state) {
    (void)state;
    static const uint8_t sliced[] = {4, 7, 12, 15, 20, 23, 28, 31};
    Arena *arena = arena_new("test");
    uint8_t in[32];
    for (uint8_t i = 0; i < 32; i++)
        in[i] = i;
    const ProgramResult *r = run_processor(arena, in);
    for (uint32_t i = 0; i < r->n_steps; i++)
        assert_true(r->step[i].ran);
    /* The output is all of the memory, of which 24 + 30 bytes are nobody's. */
    assert_int_equal(r->n_faults, 1);
    const uint8_t *at = r->output[0].bytes.at;
    assert_memory_equal(at + 32, sliced, sizeof sliced);
    check_resized(at + 64, at + 192);
    check_reals(at);
    check_product(at + 704);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(at[720 + i], 255 - i);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_loops),
        cmocka_unit_test(nodes_have_prices),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(overwriting_is_told),
        cmocka_unit_test(processors_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
