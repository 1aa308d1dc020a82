/* test_ops.c - every operation of an engine against plain loops written here,
 * on the machine without limits. */
#include "tests/sim/harness.h"

#include <math.h>

typedef struct Case {
    uint32_t c, h, w, out_c;
    uint32_t kh, kw, sh, sw, ph, pw, dh, dw;
    uint32_t groups;
} Case;

static uint32_t out_size(uint32_t in, uint32_t k, uint32_t s, uint32_t p,
                         uint32_t d) {
    return (in + 2 * p - ((k - 1) * d + 1)) / s + 1;
}

/* in: c x h x w at 4096 of the input memory and at 0 of active memory. */
static const float *open_case(Bench **b, const Case *k) {
    *b = bench_open("null");
    bench_input(*b, bench_region(*b, "data", shape_nchw(1, k->c, k->h, k->w),
                                 "inputs", 4096));
    bench_text(*b, arena_printf((*b)->arena, "1 LOAD 4096 0 %u %u %u 0 %u 1",
                                k->w, k->h, k->c, k->h - 1));
    return bench_values(*b, 7, (uint64_t)k->c * k->h * k->w);
}

/* Operands of an instruction: from 0 to 1 MiB. */
static const char *operands(Bench *b, const Case *k, uint32_t out_c,
                            uint32_t oh, uint32_t ow) {
    return arena_printf(b->arena, "0 %u %u %u 1048576 %u %u %u", k->w, k->h,
                        k->c, ow, oh, out_c);
}

static float at(const float *in, const Case *k, uint32_t c, int64_t y,
                int64_t x) {
    if (y < 0 || x < 0 || y >= k->h || x >= k->w)
        return 0;
    return in[((size_t)c * k->h + (size_t)y) * k->w + (size_t)x];
}

static float conv_at(const Case *k, const float *in, const float *weight,
                     uint32_t o, uint32_t y, uint32_t x) {
    uint32_t in_group = k->c / k->groups, out_group = k->out_c / k->groups;
    double sum = 0;
    for (uint32_t i = 0; i < in_group; i++)
        for (uint32_t a = 0; a < k->kh; a++)
            for (uint32_t e = 0; e < k->kw; e++) {
                uint32_t c = o / out_group * in_group + i;
                int64_t iy = (int64_t)y * k->sh - k->ph + (int64_t)a * k->dh;
                int64_t ix = (int64_t)x * k->sw - k->pw + (int64_t)e * k->dw;
                sum += (double)at(in, k, c, iy, ix) *
                       (double)
                           weight[((o * in_group + i) * k->kh + a) * k->kw + e];
            }
    return (float)sum;
}

static const char *filter(Bench *b, const Case *k, int relu, int bias) {
    return arena_printf(b->arena, "%u %u %u %u %u %u %u %u %u %d %d", k->kw,
                        k->kh, k->sw, k->sh, k->pw, k->ph, k->dw, k->dh,
                        k->groups, relu, bias);
}

static void conv_case(const char *mnemonic, const Case *k) {
    Bench *b;
    const float *in = open_case(&b, k);
    uint32_t oh = out_size(k->h, k->kh, k->sh, k->ph, k->dh);
    uint32_t ow = out_size(k->w, k->kw, k->sw, k->pw, k->dw);
    const float *weight = bench_blob(
        b, "x", "weight", shape_nchw(k->out_c, k->c / k->groups, k->kh, k->kw));
    const float *bias = bench_blob(b, "x", "bias", (Shape){1, {k->out_c}});
    bench_text(b, arena_printf(b->arena, "2 %s x %s %s", mnemonic,
                               operands(b, k, k->out_c, oh, ow),
                               filter(b, k, 1, 1)));
    bench_run(b, 1, &in);
    bench_clean(b);
    const Seen *seen = bench_seen(b, "x");
    assert_int_equal(seen->c, k->out_c);
    assert_int_equal(seen->h, oh);
    assert_int_equal(seen->w, ow);
    for (uint32_t o = 0, i = 0; o < k->out_c; o++)
        for (uint32_t y = 0; y < oh; y++)
            for (uint32_t x = 0; x < ow; x++, i++) {
                float want = conv_at(k, in, weight, o, y, x) + bias[o];
                want = want > 0 ? want : 0;
                bench_near(&seen->value[i], &want, 1);
            }
    bench_close(b);
}

static void conv_like_plain_loops(void **state) {
    (void)state;
    static const Case cases[] = {
        {3, 9, 11, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1},
        {4, 8, 8, 8, 1, 1, 1, 1, 0, 0, 1, 1, 1},
        {3, 17, 19, 6, 7, 7, 2, 2, 3, 3, 1, 1, 1},
        {2, 12, 14, 3, 3, 5, 3, 2, 0, 2, 2, 1, 1},
        {5, 10, 30, 4, 2, 3, 1, 4, 1, 0, 1, 3, 1},
        {40, 5, 6, 7, 5, 5, 1, 1, 2, 2, 1, 1, 1},
        {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1},
        {3, 4, 4, 4, 1, 1, 2, 2, 0, 0, 1, 1, 1},
        {2, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        conv_case("CONV", &cases[i]);
}

static void grouped_and_depthwise(void **state) {
    (void)state;
    conv_case("GROUPED", &(Case){6, 7, 9, 10, 3, 3, 1, 1, 1, 1, 1, 1, 2});
    conv_case("GROUPED", &(Case){8, 7, 9, 8, 1, 1, 1, 1, 0, 0, 1, 1, 4});
    conv_case("DEPTH", &(Case){9, 8, 8, 9, 3, 3, 2, 2, 1, 1, 1, 1, 9});
    conv_case("DEPTH", &(Case){4, 8, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 4});
}

static void inner_product(void **state) {
    (void)state;
    Case k = {5, 3, 4, 6, 3, 4, 1, 1, 0, 0, 1, 1, 1};
    conv_case("FC", &k);
}

static void deconv_like_plain_loops(void **state) {
    (void)state;
    Case k = {4, 5, 6, 6, 4, 3, 2, 2, 1, 1, 1, 1, 2};
    Bench *b;
    const float *in = open_case(&b, &k);
    uint32_t oh = (k.h - 1) * k.sh + k.kh - 2 * k.ph;
    uint32_t ow = (k.w - 1) * k.sw + k.kw - 2 * k.pw;
    uint32_t og = k.out_c / k.groups, ig = k.c / k.groups;
    const float *weight =
        bench_blob(b, "x", "weight", shape_nchw(k.c, og, k.kh, k.kw));
    bench_text(b, arena_printf(b->arena, "2 DECONV x %s %s",
                               operands(b, &k, k.out_c, oh, ow),
                               filter(b, &k, 0, 0)));
    bench_run(b, 1, &in);
    bench_clean(b);
    float *want = ARENA_ARRAY(b->arena, float, (size_t)k.out_c *oh *ow);
    for (uint32_t c = 0; c < k.c; c++)
        for (uint32_t o = 0; o < og; o++)
            for (uint32_t i = 0; i < k.h * k.w * k.kh * k.kw; i++) {
                uint32_t a = i / k.kw % k.kh, e = i % k.kw;
                uint32_t p = i / k.kw / k.kh, y = p / k.w, x = p % k.w;
                int64_t oy = (int64_t)y * k.sh + a - k.ph;
                int64_t ox = (int64_t)x * k.sw + e - k.pw;
                if (oy >= 0 && ox >= 0 && oy < oh && ox < ow)
                    want[((c / ig * og + o) * oh + (size_t)oy) * ow +
                         (size_t)ox] +=
                        in[(c * k.h + y) * k.w + x] *
                        weight[((c * og + o) * k.kh + a) * k.kw + e];
            }
    bench_near(bench_seen(b, "x")->value, want, (size_t)k.out_c * oh * ow);
    bench_close(b);
}

/* Windows clipped to the input; an average divides by the whole kernel. */
static float pool_at(const Case *k, const float *in, bool average, uint32_t c,
                     uint32_t y, uint32_t x) {
    float value = average ? 0 : -INFINITY;
    for (uint32_t a = 0; a < k->kh; a++)
        for (uint32_t e = 0; e < k->kw; e++) {
            int64_t iy = (int64_t)y * k->sh - k->ph + a;
            int64_t ix = (int64_t)x * k->sw - k->pw + e;
            if (iy < 0 || ix < 0 || iy >= k->h || ix >= k->w)
                continue;
            float v = at(in, k, c, iy, ix);
            value = average ? value + v : v > value ? v : value;
        }
    return average ? value / (float)(k->kh * k->kw) : value;
}

static void pool_case(const Case *k, uint32_t oh, uint32_t ow, bool average) {
    Bench *b;
    const float *in = open_case(&b, k);
    bench_text(b, arena_printf(b->arena, "2 %s x %s %u %u %u %u %u %u 0",
                               average ? "AVGPOOL" : "MAXPOOL",
                               operands(b, k, k->c, oh, ow), k->kw, k->kh,
                               k->sw, k->sh, k->pw, k->ph));
    bench_run(b, 1, &in);
    bench_clean(b);
    for (uint32_t c = 0, i = 0; c < k->c; c++)
        for (uint32_t y = 0; y < oh; y++)
            for (uint32_t x = 0; x < ow; x++, i++) {
                float want = pool_at(k, in, average, c, y, x);
                bench_near(&bench_seen(b, "x")->value[i], &want, 1);
            }
    bench_close(b);
}

static void pools_like_plain_loops(void **state) {
    (void)state;
    Case ceiled = {3, 12, 14, 3, 3, 3, 2, 2, 0, 0, 1, 1, 1};
    Case padded = {2, 7, 7, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    for (int average = 0; average < 2; average++) {
        pool_case(&ceiled, 6, 7, average); /* the last windows are cut off */
        pool_case(&padded, 7, 7, average);
    }
}

static void global_pool_is_printed_as_1x1(void **state) {
    (void)state;
    Case k = {4, 7, 5, 4, 7, 5, 1, 1, 0, 0, 1, 1, 1};
    Bench *b;
    const float *in = open_case(&b, &k);
    bench_text(b, arena_printf(b->arena, "2 AVGPOOL x %s 1 1 1 1 0 0 1",
                               operands(b, &k, 4, 1, 1)));
    bench_run(b, 1, &in);
    bench_clean(b);
    for (uint32_t c = 0; c < 4; c++) {
        float want = pool_at(&k, in, true, c, 0, 0);
        bench_near(&bench_seen(b, "x")->value[c], &want, 1);
    }
    bench_close(b);
}

/* ---- element by element ---- */

static const Case square = {3, 4, 5, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1};
enum { SQUARE = 3 * 4 * 5 };

static void blend_case(const char *mnemonic, float (*f)(float, float)) {
    Bench *b;
    const float *one = open_case(&b, &square);
    const float *two = bench_values(b, 8, SQUARE);
    bench_input(
        b, bench_region(b, "more", shape_nchw(1, 3, 4, 5), "inputs", 8192));
    bench_text(b, "1 LOAD 8192 4096 5 4 3 0 3 1");
    bench_text(b, arena_printf(b->arena, "2 %s x %s 4096 1", mnemonic,
                               operands(b, &square, 3, 4, 5)));
    const float *in[] = {one, two};
    bench_run(b, 2, in);
    bench_clean(b);
    float want[SQUARE];
    for (int i = 0; i < SQUARE; i++) {
        want[i] = f(one[i], two[i]);
        want[i] = want[i] > 0 ? want[i] : 0;
    }
    bench_near(bench_seen(b, "x")->value, want, SQUARE);
    bench_close(b);
}

static float add(float a, float b) {
    return a + b;
}
static float mul(float a, float b) {
    return a * b;
}

static void blends(void **state) {
    (void)state;
    blend_case("ADD", add);
    blend_case("MUL", mul);
    blend_case("MAX", fmaxf);
}

static void scales_by_channel(void **state) {
    (void)state;
    Bench *b;
    const float *in = open_case(&b, &square);
    const float *scale = bench_blob(b, "x", "scale", (Shape){1, {3}});
    const float *bias = bench_blob(b, "x", "bias", (Shape){1, {3}});
    bench_text(b, arena_printf(b->arena, "2 SCALE x %s 0",
                               operands(b, &square, 3, 4, 5)));
    bench_run(b, 1, &in);
    bench_clean(b);
    float want[SQUARE];
    for (int i = 0; i < SQUARE; i++)
        want[i] = scale[i / 20] * in[i] + bias[i / 20];
    bench_near(bench_seen(b, "x")->value, want, SQUARE);
    bench_close(b);
}

static void upsamples(void **state) {
    (void)state;
    Bench *b;
    const float *in = open_case(&b, &square);
    bench_text(b, arena_printf(b->arena, "2 UP x %s 2 3",
                               operands(b, &square, 3, 12, 10)));
    bench_run(b, 1, &in);
    bench_clean(b);
    const Seen *seen = bench_seen(b, "x");
    for (uint32_t i = 0; i < 3 * 12 * 10; i++) {
        uint32_t c = i / 120, y = i / 10 % 12, x = i % 10;
        assert_true(seen->value[i] == at(in, &square, c, y / 3, x / 2));
    }
    bench_close(b);
}

static float act_want(const char *kind, float slope, float x) {
    if (strcmp(kind, "relu") == 0)
        return x > 0 ? x : 0;
    if (strcmp(kind, "relu6") == 0)
        return x > 6 ? 6 : x > 0 ? x : 0;
    if (strcmp(kind, "clip") == 0)
        return x > 0.5f ? 0.5f : x < -0.25f ? -0.25f : x;
    if (strcmp(kind, "sigmoid") == 0)
        return 1 / (1 + expf(-x));
    if (strcmp(kind, "tanh") == 0)
        return tanhf(x);
    return x > 0 ? x : slope * x;
}

static void activations(void **state) {
    (void)state;
    static const char *const kinds[] = {"relu",  "relu6",   "clip", "leaky",
                                        "prelu", "sigmoid", "tanh"};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        Bench *b;
        const float *in = open_case(&b, &square);
        const float *slope = bench_blob(b, "x", "slope", (Shape){1, {3}});
        bench_act(b, (LayerAct){"x", kinds[k], 0.1, -0.25, 0.5});
        bench_text(b, arena_printf(b->arena, "2 ACT x %s %u",
                                   operands(b, &square, 3, 4, 5),
                                   hw_act_number(kinds[k])));
        bench_run(b, 1, &in);
        bench_clean(b);
        float want[SQUARE];
        bool prelu = strcmp(kinds[k], "prelu") == 0;
        for (int i = 0; i < SQUARE; i++)
            want[i] = act_want(kinds[k], prelu ? slope[i / 20] : 0.1f, in[i]);
        bench_near(bench_seen(b, "x")->value, want, SQUARE);
        bench_close(b);
    }
}

/* The image's kind must be the instruction's, which is what runs. */
static void activations_disagree(void **state) {
    (void)state;
    Bench *b;
    const float *in = open_case(&b, &square);
    bench_act(b, (LayerAct){"x", "sigmoid", 0, 0, 0});
    bench_text(b, arena_printf(b->arena, "2 ACT x %s 1",
                               operands(b, &square, 3, 4, 5)));
    const SimResult *r = bench_run(b, 1, &in);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text,
                        "x: its activation is sigmoid in the image, but the "
                        "instruction says relu");
    float want[SQUARE];
    for (int i = 0; i < SQUARE; i++)
        want[i] = act_want("relu", 0, in[i]);
    bench_near(bench_seen(b, "x")->value, want, SQUARE);
    bench_close(b);
}

static void activations_without_numbers(void **state) {
    (void)state;
    Bench *b;
    const float *in = open_case(&b, &square);
    bench_text(b, arena_printf(b->arena, "2 ACT x %s 7",
                               operands(b, &square, 3, 4, 5)));
    const SimResult *r = bench_run(b, 1, &in);
    assert_int_equal(r->n_violations, 1);
    assert_string_equal(r->violation[0].text,
                        "x: the image has no numbers for its clip");
    bench_close(b);
}

static void add_insn(Bench *b, HwOp op, uint32_t from, uint32_t to) {
    static const HwField ones[] = {HW_F_IN_W,  HW_F_IN_H, HW_F_OUT_W,
                                   HW_F_OUT_H, HW_F_RELU, HW_F_PRELU};
    HwFields f = {.has_op = true, .op = op};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        f.set[ones[i]] = true;
        f.num[ones[i]] = 1;
    }
    f.set[HW_F_NAME] = f.set[HW_F_IN_C] = f.set[HW_F_OUT_C] = true;
    f.str[HW_F_NAME] = "a";
    f.num[HW_F_IN_C] = f.num[HW_F_OUT_C] = 96;
    insn_set_waits(b->spec, &f, UINT64_MAX);
    insn_set_operand(b->spec, &f, HW_IN, from, 0);
    insn_set_operand(b->spec, &f, HW_OUT, to, 0);
    uint32_t row = (uint32_t)insn_row(b->spec, op);
    HwInsn insn = insn_build(b->arena, b->spec, row, &f, NULL);
    vec_push(b->arena, &b->insn, insn);
}

/* One pixel, loaded and scaled; the flags say that there are slopes. */
static const SimResult *run_sloped(Bench *b) {
    Shape pixel = shape_nchw(1, 96, 1, 1);
    bench_input(b, bench_region(b, "x", pixel, "inputs", 0));
    add_insn(b, HW_OP_LOAD, bench_memory(b, "inputs"), 0);
    add_insn(b, HW_OP_SCALE, 0, 0);
    const float *in = bench_values(b, 1, 96);
    b->options.lax = true; /* most of the fields are not set */
    return bench_run(b, 1, &in);
}

/* By flags, relu is no prelu, but leaky is one. */
static void activations_by_flags(void **state) {
    (void)state;
    static const struct {
        const char *kind, *want;
    } cases[] = {
        {"leaky", NULL},
        {"prelu", NULL},
        {"relu", "a: its activation is relu in the image, but the instruction "
                 "says prelu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bench *b = bench_open("xdnn-v3-96");
        bench_act(b, (LayerAct){"a", cases[i].kind, 0.1, 0, 0});
        static const char *const roles[] = {"scale", "bias", "slope"};
        for (int k = 0; k < 3; k++)
            bench_blob(b, "a", roles[k], (Shape){1, {96}});
        const SimResult *r = run_sloped(b);
        if (!cases[i].want)
            bench_clean(b);
        else
            assert_string_equal(r->violation[0].text, cases[i].want);
        bench_close(b);
    }
}

/* ---- moves ---- */

static void rows_go_out_and_come_back(void **state) {
    (void)state;
    Bench *b;
    const float *in = open_case(&b, &square);
    bench_output(
        b, bench_region(b, "result", shape_nchw(1, 3, 2, 5), "outputs", 64));
    /* all rows to DDR in two parts, then rows 1 and 2 as a volume */
    bench_text(b, "1 LOAD 4096 8192 5 4 3 3 3 1\n"
                  "1 LOAD 4096 16384 5 4 3 0 2 1\n"
                  "2 STORE 8192 256 5 4 3 3 3 0\n"
                  "3 STORE 16384 256 5 4 3 0 2 0\n"
                  "4 LOAD 256 32768 5 4 3 1 2 0\n"
                  "5 STORE 32768 64 5 2 3 0 1 1\n");
    const SimResult *r = bench_run(b, 1, &in);
    bench_clean(b);
    assert_int_equal(r->n_outputs, 1);
    for (uint32_t i = 0; i < 3 * 2 * 5; i++)
        assert_true(r->value[0][i] == in[i / 10 * 20 + 5 + i % 10]);
    /* bytes: 60 + 15 + 45 elements of the input, 60 out, 30 in, 30 out */
    uint32_t ddr = bench_memory(b, "ddr"), am = bench_memory(b, "am");
    assert_int_equal(r->backing_read, (60 + 15 + 45 + 30) * 4);
    assert_int_equal(r->backing_written, (60 + 30) * 4);
    assert_int_equal(r->read[ddr], 30 * 4);
    assert_int_equal(r->written[ddr], 60 * 4);
    assert_int_equal(r->written[am], (60 + 15 + 45 + 30) * 4);
    assert_int_equal(r->compulsory, (60 + 30) * 4);
    assert_int_equal(r->am_peak, 32768 + 30 * 4);
    assert_int_equal(r->instructions, 7);
    bench_close(b);
}

/* What is stored again crosses once, as far as the host can tell. */
static void rows_cross_once(void **state) {
    (void)state;
    Bench *b;
    const float *in = open_case(&b, &square);
    bench_output(
        b, bench_region(b, "result", shape_nchw(1, 3, 2, 5), "outputs", 64));
    bench_text(b, "1 LOAD 4096 8192 5 4 3 1 2 1\n"
                  "2 STORE 8192 64 5 2 3 0 1 1\n"
                  "3 STORE 8192 64 5 2 3 0 1 1\n");
    const SimResult *r = bench_run(b, 1, &in);
    bench_clean(b);
    assert_int_equal(r->backing_written, 2 * 30 * 4);
    assert_int_equal(r->compulsory, (60 + 30) * 4);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_like_plain_loops),
        cmocka_unit_test(grouped_and_depthwise),
        cmocka_unit_test(inner_product),
        cmocka_unit_test(deconv_like_plain_loops),
        cmocka_unit_test(pools_like_plain_loops),
        cmocka_unit_test(global_pool_is_printed_as_1x1),
        cmocka_unit_test(blends),
        cmocka_unit_test(scales_by_channel),
        cmocka_unit_test(upsamples),
        cmocka_unit_test(activations),
        cmocka_unit_test(activations_disagree),
        cmocka_unit_test(activations_without_numbers),
        cmocka_unit_test(activations_by_flags),
        cmocka_unit_test(rows_go_out_and_come_back),
        cmocka_unit_test(rows_cross_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
