/* test_host.c - layers of the host against plain loops, and listings with
 * several of them. */
#include "sim/host.h"
#include "tests/sim/harness.h"

#include <math.h>
#include <stdlib.h>

static AttrPair word(const char *name, const char *value) {
    return (AttrPair){.name = name, .word = value};
}

static AttrPair numbers(Bench *b, const char *name, uint32_t n,
                        const double *value) {
    return (AttrPair){
        .name = name, .n = n, .value = ARENA_COPY(b->arena, double, value, n)};
}

static AttrPair one(Bench *b, const char *name, double value) {
    return numbers(b, name, 1, &value);
}

static AttrPair two(Bench *b, const char *name, double h, double w) {
    return numbers(b, name, 2, (double[]){h, w});
}

enum { MAX_IN = 3, MAX_ATTRS = 12 };

/* A layer "x" of the host whose operands are the network's inputs. */
typedef struct Layer {
    const char *kind;
    uint32_t n_in, n_attrs;
    Shape in[MAX_IN], out;
    AttrPair attr[MAX_ATTRS];
} Layer;

static void attr(Layer *l, AttrPair pair) {
    assert_true(l->n_attrs < MAX_ATTRS);
    l->attr[l->n_attrs++] = pair;
}

static const float **run_layer(Bench *b, const Layer *l) {
    const float **in = ARENA_ARRAY(b->arena, const float *, MAX_IN);
    Region *region = ARENA_ARRAY(b->arena, Region, l->n_in);
    for (uint32_t i = 0; i < l->n_in; i++) {
        region[i] = bench_region(b, arena_printf(b->arena, "in%u", i), l->in[i],
                                 "inputs", 65536 * i);
        bench_input(b, region[i]);
        in[i] = bench_values(b, 20 + i, shape_count(&l->in[i]));
    }
    Region out = bench_region(b, "result", l->out, "outputs", 0);
    bench_output(b, out);
    HostLayer host = {.name = "x",
                      .kind = l->kind,
                      .reason = "test",
                      .n_in = l->n_in,
                      .in = region,
                      .n_out = 1,
                      .n_attrs = l->n_attrs,
                      .attr =
                          ARENA_COPY(b->arena, AttrPair, l->attr, l->n_attrs)};
    host.out[0] = out;
    bench_host(b, host);
    if (b->insn.n == 0)
        bench_text(b, arena_printf(b->arena, "# 1 HOST x %s", l->kind));
    bench_run(b, l->n_in, in);
    return in;
}

static void expect(Bench *b, const float *want, size_t n) {
    bench_clean(b);
    assert_int_equal(b->result->n_outputs, 1);
    assert_int_equal(shape_count(&b->result->output[0].shape), n);
    bench_near(b->result->value[0], want, n);
    bench_near(bench_seen(b, "x")->value, want, n);
    assert_int_equal(b->result->engine[b->result->n_engines - 1].instructions,
                     1);
    assert_int_equal(b->result->instructions, 0);
    bench_close(b);
}

static void softmax_along_an_axis(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Layer l = {
        "softmax", 1, 0, {shape_nchw(1, 4, 2, 3)}, shape_nchw(1, 4, 2, 3),
        {{0}}};
    attr(&l, one(b, "axis", 1));
    const float *in = run_layer(b, &l)[0];
    float want[24];
    for (int i = 0; i < 24; i++) {
        float sum = 0;
        for (int c = 0; c < 4; c++)
            sum += expf(in[c * 6 + i % 6]);
        want[i] = expf(in[i]) / sum;
    }
    expect(b, want, 24);
}

static void norm_across_and_within(void **state) {
    (void)state;
    for (int within = 0; within < 2; within++) {
        Bench *b = bench_open("null");
        Layer l = {
            "lrn", 1, 0, {shape_nchw(1, 6, 4, 5)}, shape_nchw(1, 6, 4, 5),
            {{0}}};
        attr(&l, one(b, "within_channel", within));
        attr(&l, one(b, "size", 3));
        attr(&l, one(b, "alpha", 2));
        attr(&l, one(b, "beta", 0.75));
        attr(&l, one(b, "k", 1.5));
        const float *in = run_layer(b, &l)[0];
        float want[120];
        for (int i = 0; i < 120; i++) {
            int c = i / 20, y = i / 5 % 4, x = i % 5;
            double sum = 0;
            for (int j = 0; j < 120; j++) {
                int dc = abs(j / 20 - c), dy = abs(j / 5 % 4 - y);
                int dx = abs(j % 5 - x);
                bool near = within ? dc == 0 && dy <= 1 && dx <= 1
                                   : dc <= 1 && dy == 0 && dx == 0;
                sum += near ? (double)in[j] * (double)in[j] : 0;
            }
            want[i] = (float)((double)in[i] /
                              pow(1.5 + 2 * sum / (within ? 9 : 3), 0.75));
        }
        expect(b, want, 120);
    }
}

static void concat_and_slice(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Layer cat = {"concat",
                 2,
                 0,
                 {shape_nchw(1, 2, 3, 4), shape_nchw(1, 2, 2, 4)},
                 shape_nchw(1, 2, 5, 4),
                 {{0}}};
    attr(&cat, one(b, "axis", 2));
    const float **in = run_layer(b, &cat);
    float want[40];
    for (int i = 0; i < 40; i++) {
        int c = i / 20, y = i / 4 % 5, x = i % 4;
        want[i] =
            y < 3 ? in[0][c * 12 + y * 4 + x] : in[1][c * 8 + (y - 3) * 4 + x];
    }
    expect(b, want, 40);
    b = bench_open("null");
    Layer cut = {
        "slice", 1, 0, {shape_nchw(1, 5, 2, 2)}, shape_nchw(1, 2, 2, 2), {{0}}};
    attr(&cut, one(b, "axis", 1));
    attr(&cut, one(b, "begin", 2));
    attr(&cut, one(b, "end", 4));
    const float *from = run_layer(b, &cut)[0];
    expect(b, ARENA_COPY(b->arena, float, from + 8, 8), 8);
    b = bench_open("null");
    Layer rows = {
        "slice", 1, 0, {shape_nchw(1, 3, 4, 2)}, shape_nchw(1, 3, 2, 2), {{0}}};
    attr(&rows, one(b, "axis", 2));
    attr(&rows, one(b, "begin", 1));
    attr(&rows, one(b, "end", 3));
    from = run_layer(b, &rows)[0];
    float cut_out[12];
    for (int i = 0; i < 12; i++)
        cut_out[i] = from[i / 4 * 8 + 2 + i % 4];
    expect(b, cut_out, 12);
}

static void eltwise_broadcasts(void **state) {
    (void)state;
    static const char *const kinds[] = {"add", "mul", "max"};
    for (int k = 0; k < 3; k++) {
        Bench *b = bench_open("null");
        Layer l = {"eltwise",
                   3,
                   0,
                   {shape_nchw(1, 3, 2, 2), shape_nchw(1, 3, 1, 1),
                    shape_nchw(1, 1, 2, 2)},
                   shape_nchw(1, 3, 2, 2),
                   {{0}}};
        attr(&l, word("kind", kinds[k]));
        if (k == 0)
            attr(&l, numbers(b, "coeff", 3, (double[]){1, -2, 0.5}));
        attr(&l, word("act", "relu"));
        const float **in = run_layer(b, &l);
        float want[12];
        for (int i = 0; i < 12; i++) {
            float x = in[0][i], y = in[1][i / 4], z = in[2][i % 4];
            float v = k == 0   ? x - 2 * y + 0.5f * z
                      : k == 1 ? x * y * z
                               : fmaxf(x, fmaxf(y, z));
            want[i] = v > 0 ? v : 0;
        }
        expect(b, want, 12);
    }
}

static void norms_and_scales(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Shape shape = shape_nchw(1, 3, 2, 2), channels = {1, {3}};
    Layer bn = {"bn", 1, 0, {shape}, shape, {{0}}};
    attr(&bn, one(b, "eps", 0.5));
    const float *mean = bench_blob(b, "x", "mean", channels);
    float *var = bench_blob(b, "x", "var", channels);
    float want[12];
    for (int c = 0; c < 3; c++)
        var[c] = var[c] * var[c];
    const float *in = run_layer(b, &bn)[0];
    for (int i = 0; i < 12; i++)
        want[i] = (in[i] - mean[i / 4]) / sqrtf(var[i / 4] + 0.5f);
    expect(b, want, 12);
    b = bench_open("null");
    Layer scale = {"scale", 1, 0, {shape}, shape, {{0}}};
    attr(&scale, word("act", "prelu"));
    const float *a = bench_blob(b, "x", "scale", channels);
    const float *c = bench_blob(b, "x", "bias", channels);
    const float *slope = bench_blob(b, "x", "slope", channels);
    in = run_layer(b, &scale)[0];
    for (int i = 0; i < 12; i++) {
        float v = a[i / 4] * in[i] + c[i / 4];
        want[i] = v > 0 ? v : v * slope[i / 4];
    }
    expect(b, want, 12);
}

static void fully_connected(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Layer l = {"fc", 1, 0, {shape_nchw(1, 3, 4, 5)}, {2, {1, 7}}, {{0}}};
    attr(&l, one(b, "out", 7));
    const float *weight = bench_blob(b, "x", "weight", (Shape){2, {7, 60}});
    const float *bias = bench_blob(b, "x", "bias", (Shape){1, {7}});
    const float *in = run_layer(b, &l)[0];
    float want[7];
    for (int o = 0; o < 7; o++) {
        want[o] = bias[o];
        for (int i = 0; i < 60; i++)
            want[o] += weight[o * 60 + i] * in[i];
    }
    expect(b, want, 7);
}

static void window_attrs(Bench *b, Layer *l, double k, double s, double p) {
    attr(l, two(b, "kernel", k, k));
    attr(l, two(b, "stride", s, s));
    attr(l, two(b, "pad", p, p));
    attr(l, two(b, "pad_end", p, p));
}

static void pool_of_the_host(void **state) {
    (void)state;
    /* 6x6 by 3, stride 2, padding 1: 3.5 windows, rounded up to 4 */
    for (int padded = 0; padded < 2; padded++) {
        Bench *b = bench_open("null");
        Layer l = {
            "pool", 1, 0, {shape_nchw(1, 2, 6, 6)}, shape_nchw(1, 2, 4, 4),
            {{0}}};
        attr(&l, word("kind", "avg"));
        attr(&l, one(b, "count_pad", padded));
        window_attrs(b, &l, 3, 2, 1);
        const float *in = run_layer(b, &l)[0];
        float want[32];
        for (int i = 0; i < 32; i++) {
            int c = i / 16, oy = i / 4 % 4, ox = i % 4, n = 0;
            want[i] = 0;
            for (int y = oy * 2 - 1; y < oy * 2 + 2; y++)
                for (int x = ox * 2 - 1; x < ox * 2 + 2; x++) {
                    bool in_pad = y >= -1 && x >= -1 && y < 7 && x < 7;
                    bool inside = y >= 0 && x >= 0 && y < 6 && x < 6;
                    n += padded ? in_pad : inside;
                    want[i] += inside ? in[c * 36 + y * 6 + x] : 0;
                }
            want[i] /= (float)n;
        }
        expect(b, want, 32);
    }
}

static void conv_pool_of_the_host(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Layer l = {
        "conv_pool", 1, 0, {shape_nchw(1, 2, 5, 5)}, shape_nchw(1, 3, 2, 2),
        {{0}}};
    window_attrs(b, &l, 2, 1, 0);
    attr(&l, one(b, "groups", 1));
    attr(&l, word("act", "relu"));
    attr(&l, word("pool_kind", "max"));
    attr(&l, two(b, "pool_kernel", 2, 2));
    attr(&l, two(b, "pool_stride", 2, 2));
    const float *weight = bench_blob(b, "x", "weight", shape_nchw(3, 2, 2, 2));
    const float *in = run_layer(b, &l)[0];
    float want[12];
    for (int i = 0; i < 12; i++) {
        int o = i / 4, y0 = i / 2 % 2 * 2, x0 = i % 2 * 2;
        want[i] = 0;
        for (int p = 0; p < 4; p++) {
            float sum = 0;
            for (int k = 0; k < 8; k++) {
                int c = k / 4, y = y0 + p / 2 + k / 2 % 2;
                sum +=
                    weight[o * 8 + k] * in[c * 25 + y * 5 + x0 + p % 2 + k % 2];
            }
            want[i] = sum > want[i] ? sum : want[i];
        }
    }
    expect(b, want, 12);
}

static void deconv_and_conv_are_adjoint(void **state) {
    (void)state;
    /* <conv(x), y> = <x, deconv(y)> for one weight of one channel each way */
    Shape small = shape_nchw(1, 1, 3, 3), large = shape_nchw(1, 1, 6, 6);
    Bench *b = bench_open("null"), *d = bench_open("null");
    Layer conv = {"conv", 1, 0, {large}, small, {{0}}};
    Layer deconv = {"deconv", 1, 0, {small}, large, {{0}}};
    window_attrs(b, &conv, 4, 2, 1);
    window_attrs(d, &deconv, 4, 2, 1);
    bench_blob(b, "x", "weight", shape_nchw(1, 1, 4, 4));
    bench_blob(d, "x", "weight", shape_nchw(1, 1, 4, 4));
    const float *x = run_layer(b, &conv)[0], *y = run_layer(d, &deconv)[0];
    bench_clean(b);
    bench_clean(d);
    float left = 0, right = 0;
    for (int i = 0; i < 9; i++)
        left += b->result->value[0][i] * y[i];
    for (int i = 0; i < 36; i++)
        right += d->result->value[0][i] * x[i];
    bench_near(&left, &right, 1);
    bench_close(b);
    bench_close(d);
}

static void elements_move(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Layer up = {
        "upsample", 1, 0, {shape_nchw(1, 2, 2, 2)}, shape_nchw(1, 2, 4, 6),
        {{0}}};
    attr(&up, two(b, "factor", 2, 3));
    const float *in = run_layer(b, &up)[0];
    float want[70];
    for (int i = 0; i < 48; i++)
        want[i] = in[i / 24 * 4 + i / 6 % 4 / 2 * 2 + i % 6 / 3];
    expect(b, want, 48);
    b = bench_open("null");
    Layer pad = {"pad", 1, 0, {shape_nchw(1, 2, 2, 3)}, shape_nchw(1, 2, 5, 7),
                 {{0}}};
    attr(&pad, two(b, "before", 1, 2));
    attr(&pad, two(b, "behind", 2, 2));
    attr(&pad, one(b, "value", 9));
    in = run_layer(b, &pad)[0];
    for (int i = 0; i < 70; i++) {
        int c = i / 35, y = i / 7 % 5 - 1, x = i % 7 - 2;
        bool inside = y >= 0 && y < 2 && x >= 0 && x < 3;
        want[i] = inside ? in[c * 6 + y * 3 + x] : 9;
    }
    expect(b, want, 70);
    static const char *const kinds[] = {"reshape", "identity", "act"};
    for (int k = 0; k < 3; k++) {
        b = bench_open("null");
        Layer copy = {kinds[k],     1,    0, {shape_nchw(1, 2, 3, 4)},
                      {2, {1, 24}}, {{0}}};
        attr(&copy, word("act", k == 2 ? "tanh" : "none"));
        in = run_layer(b, &copy)[0];
        for (int i = 0; i < 24; i++)
            want[i] = k == 2 ? tanhf(in[i]) : in[i];
        expect(b, want, 24);
    }
}

static void what_does_not_fit(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    Layer l = {"concat", 1, 0, {shape_nchw(1, 2, 2, 2)}, shape_nchw(1, 3, 2, 2),
               {{0}}};
    attr(&l, one(b, "axis", 1));
    run_layer(b, &l);
    assert_int_equal(b->result->n_violations, 2);
    assert_string_equal(b->result->violation[0].text,
                        "x: its operands and results do not fit together");
    assert_string_equal(
        b->result->violation[1].text,
        "result: network output 3x2x2 at 0x0 in outputs: at least 12 of its "
        "cells were never written");
    bench_close(b);
    b = bench_open("null");
    l.kind = "frobnicate";
    run_layer(b, &l);
    assert_string_equal(
        b->result->violation[0].text,
        "x: the host knows no layer of kind \"frobnicate\" with 1 operands");
    bench_close(b);
}

static void without_image_it_is_skipped(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    bench_text(b, "# 1 HOST x softmax");
    const SimResult *r = bench_run(b, 0, NULL);
    bench_clean(b);
    assert_int_equal(r->n_notes, 1);
    assert_string_equal(r->note[0],
                        "host layer x skipped: its operands are not known");
    bench_close(b);
}

static void images_are_checked(void **state) {
    (void)state;
    Bench *b = bench_open("null");
    bench_text(b, "# 1 HOST x softmax");
    Region region =
        bench_region(b, "data", shape_nchw(1, 2, 2, 2), "inputs", 0);
    region.offset = UINT64_MAX - 3;
    bench_input(b, region);
    region.memory = 99;
    bench_output(b, region);
    b->listing.n = b->insn.n;
    b->listing.insn = b->insn.at;
    assert_null(sim_run(b->arena, b->diag, &b->listing, 0, NULL, &b->options));
    assert_int_equal(diag_errors(b->diag), 2);
    assert_string_equal(diag_at(b->diag, 0)->text,
                        "image: data reaches beyond its memory");
    assert_string_equal(
        diag_at(b->diag, 1)->text,
        "image: data lies in a memory that the machine does not have");
    bench_close(b);
}

/* Whatever the graph has, the host may have to run. */
static void every_operator_is_known(void **state) {
    static const char *const op[] = {
#define OP(NAME, name, min, max, doc) #name,
#include "graph/ops.def"
#undef OP
    };
    /* the host does not run these */
    static const char *const others[] = {"input", "constant", "call"};
    (void)state;
    for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
        bool known = host_kind(op[i]) != NULL;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            known |= !strcmp(op[i], others[k]);
        if (!known)
            fail_msg("sim/host_*.c have no row for %s of graph/ops.def", op[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_is_known),
        cmocka_unit_test(softmax_along_an_axis),
        cmocka_unit_test(norm_across_and_within),
        cmocka_unit_test(concat_and_slice),
        cmocka_unit_test(eltwise_broadcasts),
        cmocka_unit_test(norms_and_scales),
        cmocka_unit_test(fully_connected),
        cmocka_unit_test(pool_of_the_host),
        cmocka_unit_test(conv_pool_of_the_host),
        cmocka_unit_test(deconv_and_conv_are_adjoint),
        cmocka_unit_test(elements_move),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(without_image_it_is_skipped),
        cmocka_unit_test(images_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
