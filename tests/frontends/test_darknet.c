/* Darknet: each kind of layer with its shape, values by hand, bad files. */
#include "net.h"

static Graph *read_text(const char *text) {
    return read_bytes(".cfg", text, strlen(text));
}

#define HEAD "# a comment\n[net]\nwidth=4\nheight=4\nchannels=4\n"

static void test_layers(void **state) {
    (void)state;
    Graph *g = read_text(HEAD "[convolutional]\nfilters = 8\nsize=3\nstride=1\n"
                              "pad=1\nbatch_normalize=1\nactivation=leaky\n"
                              "[maxpool]\nsize=2\nstride=2\n"
                              "[convolutional]\nfilters=8\nsize=1\n"
                              "activation=linear\n"
                              "[shortcut]\nfrom=-2\nactivation=linear\n"
                              "[upsample]\nstride=2\n"
                              "[route]\nlayers=-1, 0\n"
                              "[reorg]\nstride=2\n"
                              "[maxpool]\nsize=2\nstride=1\n"
                              "[yolo]\nclasses=3\n");
    assert_string_equal(messages(),
                        "note: what [yolo] makes of boxes is left out; what "
                        "goes into it is an output\n");
    assert_string_equal(
        nodes(g, " kernel pad pad_end "),
        "input() input 1x4x4x4\n"
        "conv(input) convolutional_0 1x8x4x4 kernel=3,3 pad=1,1 pad_end=1,1\n"
        "bn(convolutional_0) convolutional_0/bn 1x8x4x4\n"
        "scale(convolutional_0/bn) convolutional_0/bn/scale 1x8x4x4\n"
        "act(convolutional_0/bn/scale) convolutional_0/bn/leaky 1x8x4x4\n"
        "pool(convolutional_0/bn/leaky) maxpool_1 1x8x2x2 kernel=2,2 pad=0,0 "
        "pad_end=1,1\n"
        "conv(maxpool_1) convolutional_2 1x8x2x2 kernel=1,1 pad=0,0 "
        "pad_end=0,0\n"
        "eltwise(convolutional_2 maxpool_1) shortcut_3 1x8x2x2\n"
        "upsample(shortcut_3) upsample_4 1x8x4x4\n"
        "concat(upsample_4 convolutional_0/bn/leaky) route_5 1x16x4x4\n"
        "reshape(route_5) reorg_6/apart 4x4x2x4x2\n"
        "transpose(reorg_6/apart) reorg_6/turn 2x2x4x4x4\n"
        "reshape(reorg_6/turn) reorg_6 1x64x2x2\n"
        "pool(reorg_6) maxpool_7 1x64x2x2 kernel=2,2 pad=0,0 pad_end=1,1\n");
}

static void test_fork_layers(void **state) {
    (void)state;
    Graph *g = read_text(HEAD "[conv]\nfilters=4\nsize=3\npad=1\ndilation=2\n"
                              "stride_x=2\nactivation=linear\n"
                              "[shortcut]\nfrom=-1\n"
                              "[avg]\n"
                              "[scale_channels]\nfrom=0\n"
                              "[sam]\nfrom=-3\nactivation=relu\n"
                              "[batchnorm]\n"
                              "[shortcut]\nfrom=-2, 0\n"
                              "[max]\nsize=2\nstride=2\nstride_y=1\n"
                              "[logistic]\n");
    assert_string_equal(messages(), "");
    assert_string_equal(
        nodes(g, " stride dilation pad "),
        "input() input 1x4x4x4\n"
        "conv(input) conv_0 1x4x4x2 stride=1,2 dilation=2,2 pad=2,2\n"
        "eltwise(conv_0 conv_0) shortcut_1 1x4x4x2\n"
        "pool(shortcut_1) avg_2 1x4x1x1 stride=1,1 pad=0,0\n"
        "eltwise(avg_2 conv_0) scale_channels_3 1x4x4x2\n"
        "eltwise(scale_channels_3 shortcut_1) sam_4 1x4x4x2\n"
        "act(sam_4) sam_4/relu 1x4x4x2\n"
        "bn(sam_4/relu) batchnorm_5 1x4x4x2\n"
        "scale(batchnorm_5) batchnorm_5/scale 1x4x4x2\n"
        "eltwise(batchnorm_5/scale sam_4/relu conv_0) shortcut_6 1x4x4x2\n"
        "pool(shortcut_6) max_7 1x4x4x1 stride=1,2 pad=0,0\n"
        "act(max_7) logistic_8/logistic 1x4x4x1\n");
}

/* Against Darknet's rule written out: out[k][j][i] of c x h x w is x[c2][j * s
 * + o / s][i * s + o % s] of c/s/s x hs x ws. */
static void test_reorg(void **state) {
    enum { C = 4, H = 4, W = 4, S = 2 };
    float in[C * H * W];
    (void)state;
    for (int i = 0; i < C * H * W; i++)
        in[i] = (float)i;
    Graph *g = read_text(HEAD "[reorg]\nstride=2\n");
    assert_string_equal(messages(), "");
    const float *out = run(g, (const float *const[]){in}, 1);
    for (int k = 0; k < C; k++)
        for (int j = 0; j < H; j++)
            for (int i = 0; i < W; i++) {
                int thin = C / S / S, c2 = k % thin, o = k / thin;
                int y = j * S + o / S, x = i * S + o % S;
                float want = in[x + W * S * (y + H * S * c2)];
                assert_true(out[i + W * (j + H * k)] == want);
            }
}

static const char *const one_conv =
    "[net]\nwidth=1\nheight=1\nchannels=2\n"
    "[convolutional]\nfilters=1\nsize=1\nactivation=leaky\n";

static void test_weights(void **state) {
    static const int32_t head[] = {0, 2, 0, 0, 0};
    static const float value[] = {0.5f, 2, -3};
    Text text = text_new(arena);
    (void)state;
    text_add_n(&text, (const char *)head, sizeof head);
    text_add_n(&text, (const char *)value, sizeof value);
    options.weights = put(".weights", text.at, text.len);
    Graph *g = read_text(one_conv);
    assert_string_equal(messages(), "");
    const float in[] = {1, 2};
    const float *out = run(g, (const float *const[]){in}, 1);
    assert_true(fabsf(out[0] - -0.35f) < 1e-6f);
    options.weights = put(".weights", text.at, text.len - 4);
    assert_null(read_text(one_conv));
    assert_string_equal(messages(),
                        "error: layer \"convolutional_0\" (convolutional): the "
                        "weights end before those of this layer\n");
    remove(options.weights);
}

static void refuse(const char *text, const char *want) {
    assert_null(read_text(text));
    assert_string_equal(messages(), want);
}

static void test_bad(void **state) {
    (void)state;
    refuse(HEAD, "error: it has no layers\n");
    refuse(HEAD "[warp]\n[bend]\n",
           "error: layer \"warp_0\" (warp): this kind of layer is not "
           "supported\n"
           "error: layer \"bend_1\" (bend): this kind of layer is not "
           "supported\n");
    refuse(HEAD "[route]\nlayers=7\n",
           "error: layer \"route_0\" (route): there is no layer 7 before this "
           "one\n");
    refuse(HEAD "[convolutional]\nsize=x\n",
           "error: layer \"convolutional_0\" (convolutional): size must be a "
           "whole number, not \"x\"\n");
    refuse(HEAD "[conv]\nxnor=1\n[maxpool]\nmaxpool_depth=1\n",
           "error: layer \"conv_0\" (conv): xnor=1 is not supported\n"
           "error: layer \"maxpool_1\" (maxpool): maxpool_depth=1 is not "
           "supported\n");
    refuse(HEAD "[shortcut]\nfrom=x\n[sam]\nfrom=0,0\n",
           "error: layer \"shortcut_0\" (shortcut): from must be numbers\n");
    refuse("[net]\nnonsense\n", "error: expected [section] or key=value\n");
    mutate(".cfg", one_conv, strlen(one_conv), 3);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_layers), T(test_fork_layers),
                                       T(test_reorg), T(test_weights),
                                       T(test_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
