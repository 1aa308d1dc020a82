/* Caffe networks: every dialect and every layer, as the nodes they become; and
 * what is said of bad ones. */
#include "frontends/frontend.h"

#include "base/text.h"
#include "tests/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Arena *arena;
static Diag *diag;
static ImportOptions options;
static ImportInfo info;
static char path[64];

static int setup(void **state) {
    (void)state;
    arena = arena_new("test");
    diag = diag_new(arena);
    options = (ImportOptions){0};
    snprintf(path, sizeof path, "%s/amphora-test-%ld.prototxt", scratch(),
             (long)getpid());
    return 0;
}

static int teardown(void **state) {
    (void)state;
    remove(path);
    arena_free(arena);
    return 0;
}

static Graph *read_bytes(const void *bytes, size_t len) {
    /* A new file each time: the one before may still be mapped. */
    remove(path);
    assert_true(file_write(arena, diag, path, bytes, len));
    return frontend_read(arena, diag, path, &options, &info);
}

static Graph *read_text(const char *text) {
    return read_bytes(text, strlen(text));
}

static const char *messages(void) {
    static const char *const kinds[] = {"error", "warning", "note"};
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&text, "%u:%u: %s: %s\n", m->loc.line, m->loc.col,
                  kinds[m->kind], m->text);
    }
    return text_str(&text);
}

static void add_attribute(Text *out, const AttrPair *pair) {
    text_addf(out, " %s=", pair->name);
    if (pair->word)
        text_add(out, pair->word);
    for (uint32_t i = 0; i < pair->n; i++)
        text_addf(out, "%s%g", i ? "," : "", pair->value[i]);
}

/* One node a line: operator, name, inputs, output with its shape, and of the
 * attributes those that `which` lists between spaces (NULL: none). */
static const char *nodes(const Graph *g, const char *which) {
    Text out = text_new(arena);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        text_addf(&out, "%s %s(", op_info[node->op].name, node->name);
        for (uint32_t k = 0; k < node->n_in; k++)
            text_addf(&out, "%s%s", k ? " " : "",
                      graph_tensor(g, node->in[k])->name);
        const Tensor *tensor = graph_tensor(g, node->out[0]);
        text_addf(&out, ") %s %s", tensor->name,
                  shape_text(arena, &tensor->shape));
        const AttrPair *pairs;
        uint32_t n = graph_attr_pairs(arena, g, (NodeId){i}, &pairs);
        for (uint32_t k = 0; which && k < n; k++)
            if (strstr(which, arena_printf(arena, " %s ", pairs[k].name)))
                add_attribute(&out, &pairs[k]);
        text_add(&out, "\n");
    }
    return text_str(&out);
}

static void check(const char *text, const char *which, const char *want) {
    diag = diag_new(arena);
    Graph *g = read_text(text);
    assert_string_equal(messages(), "");
    assert_non_null(g);
    assert_string_equal(nodes(g, which), want);
}

static void refuse(const char *text, const char *want) {
    diag = diag_new(arena);
    assert_null(read_text(text));
    assert_string_equal(messages(), want);
}

/* An input x of 1 x 4 x 6 x 6 on line 1, and `rest` from line 2 on. */
static const char *with_x(const char *rest) {
    return arena_printf(arena,
                        "input: 'x' input_shape { dim: 1 dim: 4 dim: 6 dim: 6 "
                        "}\n%s",
                        rest);
}

#define X "input x() x 1x4x6x6\n"
#define L(name, type, rest)                                                    \
    "layer { name: '" name "' type: '" type "' bottom: 'x' top: '" name        \
    "' " rest " }\n"

/* ---- the forms of files ---- */

static void test_inputs(void **state) {
    (void)state;
    const char *relu = "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }";
    const char *heads[] = {
        "input: 'x' input_dim: 10 input_dim: 3 input_dim: 8 input_dim: 9",
        "input: 'x' input_shape { dim: 10 dim: 3 dim: 8 dim: 9 }",
        "layer { name: 'x' type: 'Input' top: 'x' input_param { shape: { dim: "
        "[10, 3, 8, 9] } } }",
        "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { "
        "shape { dim: 2 dim: 3 dim: 8 dim: 9 } data_filler { type: 'x' } } }",
        "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { num: "
        "2 channels: 3 height: 8 width: 9 } }",
        "layer { name: 'x' type: 'MemoryData' top: 'x' top: 'label' "
        "memory_data_param { batch_size: 7 channels: 3 height: 8 width: 9 } }",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        check(arena_printf(arena, "%s\n%s", heads[i], relu), NULL,
              "input x() x 1x3x8x9\nact r(x) y 1x3x8x9\n");
    options.batch = 4;
    check(arena_printf(arena, "%s\n%s", heads[0], relu), NULL,
          "input x() x 4x3x8x9\nact r(x) y 4x3x8x9\n");
}

static void test_data_layers(void **state) {
    (void)state;
    const char *net =
        "layer { name: 'd' type: 'Data' top: 'x' top: 'label' include { phase: "
        "TEST } transform_param { crop_size: 5 } data_param { batch_size: 9 } "
        "}\n"
        "layer { name: 'd' type: 'Data' top: 'x' top: 'label' include { phase: "
        "TRAIN } transform_param { crop_size: 7 } }\n"
        "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' }\n"
        "layer { name: 'a' type: 'Accuracy' bottom: 'x' bottom: 'label' top: "
        "'a' include { phase: TEST } }\n"
        "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: "
        "'label' top: 'loss' }\n";
    check(net, NULL,
          "input d() d 1x3x5x5\n"
          "act r(d) x 1x3x5x5\n"
          "softmax loss(x) loss 1x3x5x5\n");
    options.phase = "TRAIN";
    check(net, NULL,
          "input d() d 1x3x7x7\n"
          "act r(d) x 1x3x7x7\n"
          "softmax loss(x) loss 1x3x7x7\n");
}

static void test_shape_settings(void **state) {
    (void)state;
    const char *net = "layer { name: 'd' type: 'Data' top: 'x' top: 'label' }\n"
                      "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }\n";
    refuse(net, "1:1: error: layer \"d\": the file does not say the shape of "
                "input \"x\"; give it, for example --shape x=1x1x28x28\n");
    ShapeSetting setting = {"x", shape_nchw(1, 2, 3, 4)};
    options.shapes = &setting;
    options.n_shapes = 1;
    const char *want = "input d() x 1x2x3x4\nact r(x) y 1x2x3x4\n";
    check(net, NULL, want);
    setting.name = "d";
    check(net, NULL, want);
    setting.name = "z";
    options.shapes = (ShapeSetting[]){{"x", shape_nchw(1, 2, 3, 4)}, setting};
    options.n_shapes = 2;
    refuse(net, "0:0: error: no input is called \"z\"; inputs: \"x\"\n");
    options.shapes = &setting;
    options.n_shapes = 1;
    setting.name = "";
    check(net, NULL, want);
}

static void test_several_inputs(void **state) {
    (void)state;
    check("input: 'a' input: 'b' input_dim: 1 input_dim: 2 input_dim: 3 "
          "input_dim: 4 input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4\n"
          "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 's' "
          "}",
          " kind ",
          "input a() a 1x2x3x4\ninput b() b 1x2x3x4\n"
          "eltwise s(a b) s 1x2x3x4 kind=add\n");
    refuse("input: 'a' input: 'b' input_dim: 1 input_dim: 2\n"
           "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 's' "
           "}",
           "1:1: error: layer \"a\": 2 inputs need 8 input_dim, not 2\n"
           "1:12: error: layer \"b\": 2 inputs need 8 input_dim, not 2\n");
}

static void test_v1_layers(void **state) {
    (void)state;
    check(with_x("layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' "
                 "blobs_lr: 1 weight_decay: 0 convolution_param { num_output: "
                 "8 kernel_size: 3 } }\n"
                 "layers { name: 'r' type: 18 bottom: 'c' top: 'c' }\n"
                 "layers { name: 'p' type: SOFTMAX_LOSS bottom: 'c' bottom: "
                 "'label' }\n"),
          NULL,
          X "conv c(x) c@1 1x8x4x4\nact r(c@1) c 1x8x4x4\n"
            "softmax p(c) p 1x8x4x4\n");
    refuse("input: 'x'\nlayers { layer { name: 'c' type: 'conv' } bottom: 'x' "
           "top: 'c' }",
           "2:1: error: layers in the form of 2013 (`layers { layer {`) are "
           "not read: upgrade the file with Caffe's upgrade_net_proto_text\n");
}

static void test_phases(void **state) {
    (void)state;
    const char *rules[] = {
        "include { phase: TEST }",
        "exclude { phase: TRAIN }",
        "include { min_level: 0 }",
        "include { stage: 'deploy' }",
        "include { not_stage: 'other' }",
        "include { phase: TRAIN } include { max_level: 5 }",
        "include { phase: TRAIN }",
        "exclude { phase: TEST }",
        "include { min_level: 1 }",
        "include { stage: 'other' }",
        "include { not_stage: 'deploy' }",
        "exclude { stage: 'deploy' }",
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *rest =
            arena_printf(arena,
                         "state { stage: 'deploy' }\n" L("a", "TanH", "")
                             L("b", "ReLU", "%s"),
                         rules[i]);
        Graph *g = read_text(with_x(rest));
        assert_string_equal(messages(), "");
        assert_int_equal(g->node.n, i < 6 ? 3 : 2);
    }
}

/* The last version of a blob has its name. */
static void test_in_place(void **state) {
    (void)state;
    check(with_x("layer { name: 'c' type: 'Power' bottom: 'x' top: 'c' "
                 "power_param { scale: 2 } }\n"
                 "layer { name: 'tap' type: 'TanH' bottom: 'c' top: 't' }\n"
                 "layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' }\n"
                 "layer { name: 's' type: 'Sigmoid' bottom: 'c' top: 'c' }\n"
                 "layer { name: 'x2' type: 'ReLU' bottom: 'x' top: 'x' }\n"),
          " act ",
          "input x() x@1 1x4x6x6\n"
          "scale c(x@1) c@1 1x4x6x6\n"
          "act tap(c@1) t 1x4x6x6 act=tanh\n"
          "act r(c@1) r 1x4x6x6 act=relu\n"
          "act s(r) c 1x4x6x6 act=sigmoid\n"
          "act x2(x@1) x 1x4x6x6 act=relu\n");
}

static void test_any_order(void **state) {
    (void)state;
    check("layer { name: 'r' type: 'ReLU' bottom: 't' top: 'y' }\n"
          "layer { name: 't' type: 'TanH' bottom: 'x' top: 't' }\n"
          "input: 'x' input_shape { dim: 1 dim: 2 }",
          NULL, "input x() x 1x2\nact t(x) t 1x2\nact r(t) y 1x2\n");
}

static void test_outputs(void **state) {
    (void)state;
    Graph *g = read_text(with_x(L("b", "ReLU", "") L("a", "TanH", "") L(
        "quiet", "Sigmoid",
        "") "layer { name: 'hush' type: 'Silence' bottom: 'quiet' }"));
    assert_string_equal(messages(), "");
    assert_int_equal(g->output.n, 2);
    assert_string_equal(graph_tensor(g, g->output.at[0])->name, "b");
    assert_string_equal(graph_tensor(g, g->output.at[1])->name, "a");
    assert_int_equal(g->node.n, 3);
    refuse("layer { name: 'l' type: 'Accuracy' bottom: 'a' }",
           "0:0: error: no layer of this phase makes an output\n");
}

/* ---- layers ---- */

static void test_convolution(void **state) {
    (void)state;
    const char *which = " out_c groups kernel stride dilation pad pad_end ";
    check(with_x(L("c", "Convolution",
                   "convolution_param { num_output: 8 kernel_h: 3 kernel_w: 1 "
                   "stride: [2, 1] pad_h: 1 dilation: 1 group: 2 engine: CUDNN "
                   "weight_filler { type: 'msra' } } param { lr_mult: 1 }")),
          which,
          X "conv c(x) c 1x8x3x6 out_c=8 groups=2 kernel=3,1 stride=2,1 "
            "dilation=1,1 pad=1,0 pad_end=1,0\n");
    check(with_x(L("c", "DepthwiseConvolution",
                   "convolution_param { num_output: 4 kernel_size: 3 dilation: "
                   "2 }")),
          which,
          X "conv c(x) c 1x4x2x2 out_c=4 groups=4 kernel=3,3 stride=1,1 "
            "dilation=2,2 pad=0,0 pad_end=0,0\n");
    check(with_x(L("d", "Deconvolution",
                   "convolution_param { num_output: 2 kernel_size: 4 stride: 2 "
                   "pad: 1 bias_term: false }")),
          which,
          X "deconv d(x) d 1x2x12x12 out_c=2 groups=1 kernel=4,4 stride=2,2 "
            "dilation=1,1 pad=1,1 pad_end=1,1\n");
    refuse(with_x(L("c", "Convolution", "convolution_param { num_output: 8 }")),
           "2:1: error: layer \"c\": has no kernel_size\n");
    refuse(with_x(L("c", "Convolution", "")),
           "2:1: error: layer \"c\": has no num_output\n");
    refuse(with_x(L("c", "Convolution",
                    "convolution_param { num_output: 8 kernel_size: 3 "
                    "kernel_h: 3 }")),
           "2:1: error: layer \"c\": has both kernel_size and kernel_h or "
           "kernel_w\n");
}

static void test_pooling(void **state) {
    (void)state;
    const char *which = " kind global ceil count_pad kernel stride pad ";
    check(with_x(L("p", "Pooling", "pooling_param { kernel_size: 3 stride: 2 }")
                     L("f", "Pooling",
                       "pooling_param { pool: AVE kernel_size: 3 stride: 2 "
                       "ceil_mode: false }") L("g", "Pooling",
                                               "pooling_param { pool: AVE "
                                               "global_pooling: true }")
                         L("r", "Pooling",
                           "pooling_param { kernel_size: 2 pad: 1 stride: 2 "
                           "round_mode: FLOOR }")),
          which,
          X "pool p(x) p 1x4x3x3 kind=max global=0 ceil=1 count_pad=0 "
            "kernel=3,3 stride=2,2 pad=0,0\n"
            "pool f(x) f 1x4x2x2 kind=avg global=0 ceil=0 count_pad=0 "
            "kernel=3,3 stride=2,2 pad=0,0\n"
            "pool g(x) g 1x4x1x1 kind=avg global=1 ceil=0 count_pad=0 "
            "kernel=0,0 stride=1,1 pad=0,0\n"
            "pool r(x) r 1x4x4x4 kind=max global=0 ceil=0 count_pad=0 "
            "kernel=2,2 stride=2,2 pad=1,1\n");
    refuse(with_x(L("p", "Pooling",
                    "pooling_param { pool: STOCHASTIC kernel_size: 2 }")),
           "2:1: error: layer \"p\": stochastic pooling is not supported\n");
}

static void test_activations(void **state) {
    (void)state;
    check(with_x(L("a", "ReLU", "") L("b", "ReLU",
                                      "relu_param { negative_slope: 0.5 }")
                     L("c", "ReLU6", "") L("d", "PReLU", "")
                         L("e", "Sigmoid", "") L("f", "TanH", "")
                             L("g", "Clip", "clip_param { min: -1 max: 2 }")),
          " act alpha lo hi ",
          X "act a(x) a 1x4x6x6 act=relu alpha=0 lo=0 hi=0\n"
            "act b(x) b 1x4x6x6 act=leaky alpha=0.5 lo=0 hi=0\n"
            "act c(x) c 1x4x6x6 act=relu6 alpha=0 lo=0 hi=0\n"
            "act d(x) d 1x4x6x6 act=prelu alpha=0 lo=0 hi=0\n"
            "act e(x) e 1x4x6x6 act=sigmoid alpha=0 lo=0 hi=0\n"
            "act f(x) f 1x4x6x6 act=tanh alpha=0 lo=0 hi=0\n"
            "act g(x) g 1x4x6x6 act=clip alpha=0 lo=-1 hi=2\n");
}

static void test_normalisation(void **state) {
    (void)state;
    check(with_x(
              L("b", "BatchNorm", "batch_norm_param { use_global_stats: true }")
                  L("s", "Scale", "scale_param { bias_term: true }")
                      L("i", "Bias", "") L("n", "BN", "")
                          L("k", "BN", "bn_param { bn_mode: INFERENCE }")
                              L("l", "LRN",
                                "lrn_param { local_size: 3 alpha: 0.5 }")
                                  L("w", "LRN",
                                    "lrn_param { local_size: 3 norm_region: "
                                    "WITHIN_CHANNEL k: 7 }")),
          " eps within_channel size alpha beta k ",
          X "bn b(x) b 1x4x6x6 eps=1e-05\n"
            "scale s(x) s 1x4x6x6\n"
            "scale i(x) i 1x4x6x6\n"
            "bn n/bn(x) n/bn 1x4x6x6 eps=1e-05\n"
            "scale n(n/bn) n 1x4x6x6\n"
            "scale k(x) k 1x4x6x6\n"
            "lrn l(x) l 1x4x6x6 within_channel=0 size=3 alpha=0.5 beta=0.75 "
            "k=1\n"
            "lrn w(x) w 1x4x6x6 within_channel=1 size=3 alpha=1 beta=0.75 "
            "k=1\n");
    assert_int_equal(info.seeded, 5);
    refuse(with_x(L("s", "Scale", "scale_param { axis: 2 }")),
           "2:1: error: layer \"s\": constants along axis 1 alone are "
           "supported, not along 1 axes from 2\n");
}

static void test_element_wise(void **state) {
    (void)state;
#define TWO(name, type, rest)                                                  \
    "layer { name: '" name "' type: '" type                                    \
    "' bottom: 'x' bottom: 'g' top: '" name "' " rest " }\n"
    check(
        with_x(L("g", "Pooling",
                 "pooling_param { pool: AVE global_pooling: true }")
                   TWO("m", "Scale", "scale_param { axis: 0 }") TWO(
                       "b", "Scale", "scale_param { axis: 0 bias_term: true }")
                       TWO("i", "Bias",
                           "bias_param { axis: 0 }") "layer { name: 'y' type: "
                                                     "'Axpy' bottom: 'g' "
                                                     "bottom: 'x' "
                                                     "bottom: 'x' top: 'y' }\n"
                                                     "layer { name: 'e' type: "
                                                     "'Eltwise' bottom: 'x' "
                                                     "bottom: 'y' "
                                                     "top: 'e' eltwise_param { "
                                                     "coeff: 1 coeff: -1 } }\n"
                                                     "layer { name: 'p' type: "
                                                     "'Eltwise' bottom: 'x' "
                                                     "bottom: 'y' "
                                                     "top: 'p' eltwise_param { "
                                                     "operation: PROD } }\n"),
        " kind coeff ",
        X "pool g(x) g 1x4x1x1 kind=avg\n"
          "eltwise m(x g) m 1x4x6x6 kind=mul\n"
          "eltwise b/mul(x g) b/mul 1x4x6x6 kind=mul\n"
          "scale b(b/mul) b 1x4x6x6\n"
          "eltwise i(x g) i 1x4x6x6 kind=add\n"
          "eltwise y/mul(x g) y/mul 1x4x6x6 kind=mul\n"
          "eltwise y(y/mul x) y 1x4x6x6 kind=add\n"
          "eltwise e(x y) e 1x4x6x6 kind=add coeff=1,-1\n"
          "eltwise p(x y) p 1x4x6x6 kind=mul\n");
    check(with_x(L(
              "f", "InnerProduct",
              "inner_product_param { num_output: 4 }") "layer { name: 'm' "
                                                       "type: 'Scale' bottom: "
                                                       "'x' bottom: 'f' top: "
                                                       "'m' scale_param { "
                                                       "axis: 0 } }\n"
                                                       "layer { name: 'y' "
                                                       "type: 'Axpy' bottom: "
                                                       "'f' bottom: 'x' "
                                                       "bottom: 'x' top: 'y' "
                                                       "}\n"),
          " shape ",
          X "fc f(x) f 1x4\n"
            "reshape m/shape(f) m/shape 1x4x1x1 shape=1,4,1,1\n"
            "eltwise m(x m/shape) m 1x4x6x6\n"
            "reshape y/shape(f) y/shape 1x4x1x1 shape=1,4,1,1\n"
            "eltwise y/mul(x y/shape) y/mul 1x4x6x6\n"
            "eltwise y(y/mul x) y 1x4x6x6\n");
}

static void test_power(void **state) {
    (void)state;
    Graph *g = read_text(with_x(L("i", "Power", "") L(
        "s", "Power", "power_param { scale: 2 shift: -3 }")));
    assert_string_equal(nodes(g, NULL), X "identity i(x) i 1x4x6x6\n"
                                          "scale s(x) s 1x4x6x6\n");
    const Node *scale = &g->node.at[2];
    float value[4];
    const_read(graph_const(g, scale->constant[CONST_SCALE]), value);
    assert_true(value[0] == 2.0f && value[3] == 2.0f);
    const_read(graph_const(g, scale->constant[CONST_BIAS]), value);
    assert_true(value[0] == -3.0f && value[3] == -3.0f);
    refuse(with_x(L("s", "Power", "power_param { power: 2 }")),
           "2:1: error: layer \"s\": power 2 is not supported, only 1\n");
}

static void test_shapes(void **state) {
    (void)state;
    check(with_x(L("f", "Flatten", "") L(
              "e", "Flatten",
              "flatten_param { axis: 2 end_axis: -1 "
              "}") L("r", "Reshape",
                     "reshape_param { shape { dim: 0 dim: -1 dim: 3 dim: 0 } "
                     "}") L("q", "Reshape",
                            "reshape_param { shape { dim: 36 } axis: 2 "
                            "num_axes: 2 }")
                     L("i", "InnerProduct",
                       "inner_product_param { num_output: 5 axis: -3 }")
                         L("p", "Padding",
                           "padding_param { pad: 1 pad_right: 2 }")
                             L("u", "Upsample", "upsample_param { scale: 2 }")),
          " shape out before behind factor ",
          X "reshape f(x) f 1x144 shape=1,144\n"
            "reshape e(x) e 1x4x36 shape=1,4,36\n"
            "reshape r(x) r 1x8x3x6 shape=1,8,3,6\n"
            "reshape q(x) q 1x4x36 shape=1,4,36\n"
            "fc i(x) i 1x5 out=5\n"
            "pad p(x) p 1x4x8x9 before=1,1 behind=1,2\n"
            "upsample u(x) u 1x4x12x12 factor=2,2\n");
    refuse(
        with_x(L("r", "Reshape", "reshape_param { shape { dim: 1 dim: 5 } }")),
        "2:1: error: layer \"r\": 1x5 does not have the elements of its "
        "input 1x4x6x6\n");
}

static void test_parts(void **state) {
    (void)state;
    check(with_x("layer { name: 's' type: 'Slice' bottom: 'x' top: 'a' top: "
                 "'b' slice_param { slice_point: 1 } }\n"
                 "layer { name: 'q' type: 'Split' bottom: 'b' top: 'c' top: "
                 "'d' }\n"
                 "layer { name: 'k' type: 'Concat' bottom: 'a' bottom: 'c' "
                 "top: 'k' concat_param { concat_dim: 1 } }\n"
                 "layer { name: 'h' type: 'Concat' bottom: 'd' bottom: 'd' "
                 "top: 'h' concat_param { axis: -2 } }\n"
                 "layer { name: 'o' type: 'Crop' bottom: 'h' bottom: 'd' top: "
                 "'o' crop_param { axis: 2 offset: 3 offset: 0 } }\n"
                 "layer { name: 'z' type: 'Softmax' bottom: 'o' top: 'z' "
                 "softmax_param { axis: -1 } }\n"
                 "layer { name: 'y' type: 'Dropout' bottom: 'k' top: 'y' }\n"),
          " axis begin end ",
          X "slice s/0(x) a 1x1x6x6 axis=1 begin=0 end=1\n"
            "slice s/1(x) b 1x3x6x6 axis=1 begin=1 end=4\n"
            "identity q/0(b) c 1x3x6x6\n"
            "identity q/1(b) d 1x3x6x6\n"
            "concat k(a c) k 1x4x6x6 axis=1\n"
            "concat h(d d) h 1x3x12x6 axis=2\n"
            "slice o/axis2(h) o/axis2 1x3x6x6 axis=2 begin=3 end=9\n"
            "identity o(o/axis2) o 1x3x6x6\n"
            "softmax z(o) z 1x3x6x6 axis=3\n"
            "identity y(k) y 1x4x6x6\n");
    refuse(with_x("layer { name: 's' type: 'Slice' bottom: 'x' top: 'a' top: "
                  "'b' top: 'c' }"),
           "2:1: error: layer \"s\": 4 does not divide into 3 equal parts\n");
}

/* ---- bad networks ---- */

static void test_unknown_layers(void **state) {
    (void)state;
    refuse(with_x(L("a", "ELU", "") "layer { name: 'b' type: 'Warp' bottom: "
                                    "'a' top: 'b' }\n"
                                    "layer { name: 'c' bottom: 'b' top: 'c' "
                                    "}\n" L("d", "ReLU", "")),
           "2:25: error: layer \"a\": type \"ELU\" is not supported\n"
           "3:25: error: layer \"b\": type \"Warp\" is not supported\n"
           "4:1: error: layer \"c\": has no type\n");
}

static void test_wiring(void **state) {
    (void)state;
    refuse(with_x("layer { name: 'a' type: 'ReLU' bottom: 'y' top: 'a' }\n"),
           "2:32: error: layer \"a\": reads blob \"y\", which no layer "
           "makes\n");
    refuse(with_x("layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'a' }\n"
                  "layer { name: 'b' type: 'ReLU' bottom: 'x' top: 'a' }\n"),
           "3:44: error: layer \"b\": blob \"a\" is made twice, and not in "
           "place\n2:44: note: layer \"a\" makes it too\n");
    refuse("layer { name: 'a' type: 'ReLU' bottom: 'c' top: 'a' }\n"
           "layer { name: 'b' type: 'ReLU' bottom: 'a' top: 'b' }\n"
           "layer { name: 'c' type: 'ReLU' bottom: 'b' top: 'c' }\n",
           "1:1: error: layers form a cycle: \"a\" reads from \"c\" reads from "
           "\"b\" reads from \"a\"\n");
    refuse("layer { name: 'a' type: 'ReLU' bottom: 'a' top: 'a' }\n",
           "1:32: error: layer \"a\": reads blob \"a\", which no layer "
           "makes\n");
    refuse(with_x("layer { name: 'a' type: 'ReLU' bottom: 'x' bottom: 'x' top: "
                  "'a' }\n"),
           "2:1: error: layer \"a\": a ReLU has 1 bottom, not 2\n");
}

static void test_bad_shapes(void **state) {
    (void)state;
    refuse(
        with_x(
            L("c", "Convolution",
              "convolution_param { num_output: 1 kernel_size: 9 }") "layer { "
                                                                    "name: 'r' "
                                                                    "type: "
                                                                    "'ReLU' "
                                                                    "bottom: "
                                                                    "'c' top: "
                                                                    "'r' }\n"),
        "2:1: error: layer \"c\": kernel 9x9 is larger than its padded input "
        "6x6\n");
    refuse(with_x(L("c", "Concat", "concat_param { axis: 4 }")),
           "2:76: error: layer \"c\": axis 4 is outside a shape of 4 "
           "dimensions\n");
    refuse("input: 'x' input_dim: 1 input_dim: 0 input_dim: 1 input_dim: 1\n" L(
               "r", "ReLU", ""),
           "1:1: error: layer \"x\": input of 1x0x1x1 is empty\n");
}

static void test_empty_windows(void **state) {
    (void)state;
    assert_non_null(read_text(
        with_x(L("p", "Pooling", "pooling_param { kernel_size: 1 stride: 2 }")
                   L("q", "Pooling",
                     "pooling_param { kernel_h: 2 kernel_w: 1 stride: 3 }"))));
    assert_string_equal(
        messages(),
        "2:1: warning: layer \"p\": row 4 would be of a window outside the "
        "input, as Caffe counts; there is none\n"
        "2:1: warning: layer \"p\": column 4 would be of a window outside the "
        "input, as Caffe counts; there is none\n"
        "3:1: warning: layer \"q\": row 3 would be of a window outside the "
        "input, as Caffe counts; there is none\n"
        "3:1: warning: layer \"q\": column 3 would be of a window outside the "
        "input, as Caffe counts; there is none\n");
}

static void test_batch_statistics(void **state) {
    (void)state;
    assert_non_null(read_text(with_x(
        L("b", "BatchNorm", "batch_norm_param { use_global_stats: false }"))));
    assert_string_equal(messages(),
                        "2:1: warning: layer \"b\": use_global_stats is false; "
                        "the stored statistics are used all the same\n");
}

static void test_warnings(void **state) {
    (void)state;
    Graph *g =
        read_text(with_x(L("a", "ReLU", "foo: 1 relu_param { bar { x: 1 } }")
                             L("b", "ReLU", "foo: 2") "engine: 1 silly: 2"));
    assert_non_null(g);
    assert_string_equal(messages(),
                        "2:53: warning: unknown field 'foo' is ignored\n"
                        "2:73: warning: unknown field 'bar' is ignored\n"
                        "4:11: warning: unknown field 'silly' is ignored\n");
}

static void test_bad_files(void **state) {
    (void)state;
    refuse("", "0:0: error: the file is empty\n");
    refuse("layer {\n", "1:7: error: this '{' is never closed\n");
    diag = diag_new(arena);
    assert_null(frontend_read(arena, diag, "tests", &options, &info));
    assert_int_equal(diag_errors(diag), 1);
    diag = diag_new(arena);
    assert_null(frontend_read(arena, diag, "absent.prototxt", &options, &info));
    assert_int_equal(diag_errors(diag), 1);
}

/* Networks are known by their content; the suffix is the second thought. */
static void test_detection(void **state) {
    (void)state;
    const char *known = "";
    for (uint32_t i = 0; i < n_formats; i++)
        known = arena_printf(arena, "%s%s%s (%s)", known, i ? ", " : "",
                             formats[i].name, formats[i].suffixes);
    const char *net = with_x(L("a", "ReLU", ""));
    snprintf(path, sizeof path, "%s/amphora-test-%ld.txt", scratch(),
             (long)getpid());
    assert_non_null(read_text(arena_printf(arena, "# a comment\n%s", net)));
    refuse("hello\n", arena_printf(arena,
                                   "0:0: error: not a network in a known "
                                   "format; known: %s\n",
                                   known));
    remove(path);
    snprintf(path, sizeof path, "%s/amphora-test-%ld.prototxt", scratch(),
             (long)getpid());
    refuse("hello\n", "2:1: error: expected ':' or '{' behind 'hello', found "
                      "the end of the file\n");
}

/* What --dump prints is a network too. */
static void test_graph_text(void **state) {
    (void)state;
    const char *net = with_x(L("c", "Convolution",
                               "convolution_param { num_output: 2 kernel_size: "
                               "3 }") L("a", "ReLU", ""));
    const char *text = graph_print(arena, read_text(net));
    remove(path);
    memcpy(strstr(path, ".prototxt"), ".graph", sizeof ".graph");
    Graph *again = read_text(text);
    assert_string_equal(messages(), "");
    assert_string_equal(graph_print(arena, again), text);
    options.batch = 2;
    refuse(text, "0:0: error: a graph in text form has its own shapes and "
                 "takes no weights\n");
}

/* Every prefix, and changed bytes, of a network: errors, never a crash. */
static void test_damage(void **state) {
    (void)state;
    const char *good = with_x(L("c", "Convolution",
                                "convolution_param { num_output: 8 group: 2 "
                                "kernel_size: 3 stride: 2 pad: 1 }")
                                  L("r", "Reshape",
                                    "reshape_param { shape { dim: 0 dim: -1 } "
                                    "}") "layer { name: 's' type: 'Slice' "
                                         "bottom: 'c' top: 'a' top: 'b' "
                                         "slice_param { slice_point: 3 } }\n");
    size_t len = strlen(good);
    for (size_t i = 0; i < 2 * len; i++) {
        Arena *test = arena;
        arena = arena_new("damage");
        diag = diag_new(arena);
        char *bad = arena_copy(arena, good, len, 1, 1);
        bad[i % len] = (char)(bad[i % len] ^ (i < len ? 1 : 18));
        Graph *g = read_bytes(bad, i < len ? i + 1 : len);
        assert_true(g || diag_errors(diag));
        arena_free(arena);
        arena = test;
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_inputs),         TEST(test_data_layers),
        TEST(test_shape_settings), TEST(test_several_inputs),
        TEST(test_v1_layers),      TEST(test_phases),
        TEST(test_in_place),       TEST(test_any_order),
        TEST(test_outputs),        TEST(test_convolution),
        TEST(test_pooling),        TEST(test_activations),
        TEST(test_normalisation),  TEST(test_element_wise),
        TEST(test_power),          TEST(test_shapes),
        TEST(test_parts),          TEST(test_unknown_layers),
        TEST(test_wiring),         TEST(test_bad_shapes),
        TEST(test_warnings),       TEST(test_batch_statistics),
        TEST(test_bad_files),      TEST(test_detection),
        TEST(test_graph_text),     TEST(test_damage),
        TEST(test_empty_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
