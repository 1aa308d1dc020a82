/* Weights from .caffemodel files, which these tests write byte by byte. */
#include "frontends/frontend.h"

#include "base/text.h"
#include "tests/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static Arena *arena;
static Diag *diag;
static ImportInfo info;
static char net_path[512], weights_path[512];

static int setup(void **state) {
    (void)state;
    arena = arena_new("test");
    diag = diag_new(arena);
    long id = (long)getpid();
    snprintf(net_path, sizeof net_path, "%s/amphora-net-%ld.prototxt",
             scratch(), id);
    snprintf(weights_path, sizeof weights_path,
             "%s/amphora-weights-%ld.caffemodel", scratch(), id);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    remove(net_path);
    remove(weights_path);
    arena_free(arena);
    return 0;
}

/* ---- writing protobuf ---- */

static void put_varint(Text *out, uint64_t value) {
    for (; value > 0x7f; value >>= 7)
        text_add_n(out, (const char[]){(char)(value | 0x80)}, 1);
    text_add_n(out, (const char[]){(char)value}, 1);
}

static void put_number(Text *out, uint32_t field, uint64_t value) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(Text *out, uint32_t field, const void *bytes,
                      size_t len) {
    put_varint(out, field << 3 | 2);
    put_varint(out, len);
    text_add_n(out, bytes, len);
}

static void put_text(Text *out, uint32_t field, const char *text) {
    put_bytes(out, field, text, strlen(text));
}

static void put_message(Text *out, uint32_t field, const Text *message) {
    put_bytes(out, field, message->at, message->len);
}

typedef enum Form { PACKED, UNPACKED, DOUBLES, TWO_PIECES, LEGACY } Form;

static void put_shape(Text *blob, Form form, const char *shape) {
    Shape dims;
    assert_true(shape_parse(shape, &dims));
    Text message = text_new(arena);
    for (uint32_t i = 0; i < dims.rank; i++)
        put_number(form == LEGACY ? blob : &message,
                   form == LEGACY ? i + 1 + (4 - dims.rank) : 1, dims.dim[i]);
    for (uint32_t i = dims.rank; form == LEGACY && i < 4; i++)
        put_number(blob, i - dims.rank + 1, 1);
    if (form != LEGACY)
        put_message(blob, 7, &message);
}

/* A BlobProto with the values first, first + 1... */
static Text blob_of(Form form, const char *shape, uint32_t n, float first) {
    Text blob = text_new(arena);
    float *values = ARENA_ARRAY(arena, float, n);
    double *doubles = ARENA_ARRAY(arena, double, n);
    for (uint32_t i = 0; i < n; i++)
        doubles[i] = (double)(values[i] = first + (float)i);
    put_shape(&blob, form, shape);
    if (form == DOUBLES) {
        put_bytes(&blob, 8, doubles, 8 * n);
    } else if (form == TWO_PIECES) {
        put_bytes(&blob, 5, values, 4);
        put_bytes(&blob, 5, values + 1, 4 * (n - 1));
    } else if (form != UNPACKED) {
        put_bytes(&blob, 5, values, 4 * n);
    } else {
        for (uint32_t i = 0; i < n; i++) {
            put_varint(&blob, 5 << 3 | 5);
            text_add_n(&blob, (const char *)&values[i], 4);
        }
    }
    return blob;
}

/* A NetParameter with one layer that holds these blobs. */
static Text net_of(bool v1, const char *name, uint32_t n, const Text *blobs) {
    Text layer = text_new(arena), net = text_new(arena);
    put_text(&layer, v1 ? 4 : 1, name);
    for (uint32_t i = 0; i < n; i++)
        put_message(&layer, v1 ? 6 : 7, &blobs[i]);
    put_message(&net, v1 ? 2 : 100, &layer);
    return net;
}

/* ---- reading ---- */

static void write_file(const char *path, const void *bytes, size_t len) {
    remove(path);
    assert_true(file_write(arena, diag, path, bytes, len));
}

static Graph *read_with(const char *net, const Text *weights) {
    ImportOptions options = {.weights = weights_path};
    diag = diag_new(arena);
    write_file(net_path, net, strlen(net));
    write_file(weights_path, weights->at, weights->len);
    return frontend_read(arena, diag, net_path, &options, &info);
}

static const char *messages(void) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++)
        text_addf(&text, "%u: %s\n", diag_at(diag, i)->loc.col,
                  diag_at(diag, i)->text);
    return text_str(&text);
}

static void check_values(const Graph *g, ConstRole role, uint32_t n,
                         float first) {
    const Node *node = &g->node.at[1];
    assert_int_not_equal(node->constant[role].i, NONE);
    const Const *c = graph_const(g, node->constant[role]);
    assert_int_equal(shape_count(&c->shape), n);
    float *values = ARENA_ARRAY(arena, float, n);
    const_read(c, values);
    for (uint32_t i = 0; i < n; i++)
        assert_true(values[i] == first + (float)i);
}

static const char conv_net[] =
    "input: 'x' input_shape { dim: 1 dim: 2 dim: 4 dim: 4 }\n"
    "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' "
    "convolution_param { num_output: 3 kernel_h: 2 kernel_w: 1 } }\n";

static const char fc_net[] =
    "input: 'x' input_shape { dim: 1 dim: 2 dim: 2 dim: 2 }\n"
    "layer { name: 'c' type: 'InnerProduct' bottom: 'x' top: 'c' "
    "inner_product_param { num_output: 3 } }\n";

static void test_forms(void **state) {
    (void)state;
    for (Form form = PACKED; form <= LEGACY; form++) {
        Text blobs[2] = {blob_of(form, "3x2x2x1", 12, 1),
                         blob_of(form, "3", 3, -1)};
        Text weights = net_of(form == LEGACY, "c", 2, blobs);
        Graph *g = read_with(conv_net, &weights);
        assert_string_equal(messages(), "");
        assert_int_equal(info.seeded, 0);
        check_values(g, CONST_WEIGHT, 12, 1);
        check_values(g, CONST_BIAS, 3, -1);
        bool slice = form == PACKED || form == LEGACY;
        assert_int_equal(g->constant.at[0].kind, slice ? CONST_F32 : CONST_F64);
    }
}

/* Old files hold the weights of an inner product as 1 x 1 x out x in. */
static void test_old_inner_product(void **state) {
    (void)state;
    Text blobs[2] = {blob_of(LEGACY, "1x1x3x8", 24, 0),
                     blob_of(LEGACY, "1x1x1x3", 3, 5)};
    Text weights = net_of(true, "c", 2, blobs);
    Graph *g = read_with(fc_net, &weights);
    assert_string_equal(messages(), "");
    check_values(g, CONST_WEIGHT, 24, 0);
    check_values(g, CONST_BIAS, 3, 5);
}

static void test_batch_norm_factor(void **state) {
    (void)state;
    const char *net = "input: 'x' input_shape { dim: 1 dim: 2 }\n"
                      "layer { name: 'c' type: 'BatchNorm' bottom: 'x' top: "
                      "'c' }\n";
    const float factor[] = {1, 4, 0};
    for (int i = 0; i < 3; i++) {
        Text blobs[3] = {blob_of(PACKED, "2", 2, 8), blob_of(PACKED, "2", 2, 2),
                         blob_of(PACKED, "1", 1, factor[i])};
        Text weights = net_of(false, "c", 3, blobs);
        Graph *g = read_with(net, &weights);
        assert_string_equal(messages(), "");
        const Node *node = &g->node.at[1];
        float mean[2], var[2];
        float by = factor[i] > 0 ? 1 / factor[i] : 0;
        const_read(graph_const(g, node->constant[CONST_MEAN]), mean);
        const_read(graph_const(g, node->constant[CONST_VAR]), var);
        assert_true(mean[0] == 8 * by && mean[1] == 9 * by);
        assert_true(var[0] == 2 * by && var[1] == 3 * by);
    }
}

static void test_prelu(void **state) {
    (void)state;
    const char *net =
        "input: 'x' input_shape { dim: 1 dim: 3 dim: 1 dim: 1 }\n"
        "layer { name: 'c' type: 'PReLU' bottom: 'x' top: 'c' prelu_param { "
        "channel_shared: %s } }\n";
    Text each = blob_of(PACKED, "3", 3, 1), one = blob_of(PACKED, "1", 1, 7);
    Text weights = net_of(false, "c", 1, &each);
    Graph *g = read_with(arena_printf(arena, net, "false"), &weights);
    assert_string_equal(messages(), "");
    check_values(g, CONST_SLOPE, 3, 1);
    weights = net_of(false, "c", 1, &one);
    g = read_with(arena_printf(arena, net, "true"), &weights);
    assert_string_equal(messages(), "");
    float slope[3];
    const_read(graph_const(g, g->node.at[1].constant[CONST_SLOPE]), slope);
    assert_true(slope[0] == 7 && slope[1] == 7 && slope[2] == 7);
}

static void test_missing_layer(void **state) {
    (void)state;
    Text blob = blob_of(PACKED, "1", 1, 0);
    Text weights = net_of(false, "other", 1, &blob);
    Graph *g = read_with(conv_net, &weights);
    assert_non_null(g);
    assert_int_equal(info.seeded, 1);
    assert_string_equal(messages(),
                        arena_printf(arena,
                                     "1: layer \"c\": no weights in %s; seeded "
                                     "ones are used\n",
                                     weights_path));
}

static void refuse(const char *net, const Text *weights, const char *want) {
    assert_null(read_with(net, weights));
    assert_string_equal(messages(), want);
}

static void test_misfits(void **state) {
    (void)state;
    Text good = blob_of(PACKED, "3x2x2x1", 12, 0);
    Text bias = blob_of(PACKED, "3", 3, 0);
    Text turned = blob_of(PACKED, "2x3x2x1", 12, 0);
    Text few = blob_of(PACKED, "3x2x2x1", 11, 0);
    Text none = text_new(arena);
    put_shape(&none, PACKED, "3");
    Text weights = net_of(false, "c", 2, (Text[]){turned, bias});
    refuse(conv_net, &weights,
           "8: layer \"c\": its weight has shape 2x3x2x1 in the weights, not "
           "3x2x2x1\n");
    weights = net_of(false, "c", 2, (Text[]){few, bias});
    refuse(conv_net, &weights,
           "8: layer \"c\": blob 0 has 11 values for a shape of 3x2x2x1\n");
    weights = net_of(false, "c", 1, (Text[]){good});
    refuse(conv_net, &weights,
           "1: layer \"c\": the weights hold 1 blobs, but it needs number 2\n");
    weights = net_of(false, "c", 3, (Text[]){good, bias, bias});
    refuse(conv_net, &weights,
           "1: layer \"c\": the weights hold 3 blobs, not 2\n");
    weights = net_of(false, "c", 2, (Text[]){good, none});
    refuse(conv_net, &weights,
           "70: layer \"c\": blob 1 has 0 values for a shape of 3\n");
}

static void test_bad_files(void **state) {
    (void)state;
    Text weights = text_new(arena);
    text_add_n(&weights, "\x89HDF\r\n\x1a\n", 8);
    refuse(conv_net, &weights,
           "0: weights in HDF5 are not read: save a .caffemodel\n");
    weights.len = 0;
    refuse(conv_net, &weights, "0: not a .caffemodel: it holds no layers\n");
    text_add(&weights, "version https://git-lfs.github.com/spec/v1\n");
    refuse(conv_net, &weights, "0: not a wire type\n");
    ImportOptions options = {.weights = "absent.caffemodel"};
    diag = diag_new(arena);
    assert_null(frontend_read(arena, diag, net_path, &options, &info));
    assert_int_equal(diag_errors(diag), 1);
}

/* ---- a network and its weights in one binary file ---- */

static Text binary_net(void) {
    Text net = text_new(arena), shape = text_new(arena), layer, param;
    Text dims = text_new(arena);
    put_text(&net, 1, "both");
    put_text(&net, 3, "x");
    const uint32_t sizes[] = {9, 2, 4, 4};
    for (int i = 0; i < 4; i++)
        put_varint(&dims, sizes[i]);
    put_message(&shape, 1, &dims);
    put_message(&net, 8, &shape);
    layer = text_new(arena);
    put_text(&layer, 1, "c");
    put_text(&layer, 2, "Convolution");
    put_text(&layer, 3, "x");
    put_text(&layer, 4, "c");
    param = text_new(arena);
    put_number(&param, 1, 3);
    put_number(&param, 11, 2);
    put_number(&param, 12, 1);
    put_message(&layer, 106, &param);
    Text weight = blob_of(PACKED, "3x2x2x1", 12, 1);
    Text bias = blob_of(PACKED, "3", 3, -1);
    put_message(&layer, 7, &weight);
    put_message(&layer, 7, &bias);
    put_message(&net, 100, &layer);
    layer = text_new(arena);
    put_text(&layer, 1, "r");
    put_text(&layer, 2, "ReLU");
    put_text(&layer, 3, "c");
    put_text(&layer, 4, "c");
    param = text_new(arena);
    put_varint(&param, 1 << 3 | 5);
    text_add_n(&param, (const char *)&(const float){0.5f}, 4);
    put_message(&layer, 123, &param);
    put_message(&net, 100, &layer);
    return net;
}

static Graph *read_binary(const void *bytes, size_t len) {
    ImportOptions options = {0};
    write_file(weights_path, bytes, len);
    return frontend_read(arena, diag, weights_path, &options, &info);
}

static void test_binary_net(void **state) {
    (void)state;
    Text net = binary_net();
    Graph *g = read_binary(net.at, net.len);
    assert_string_equal(messages(), "");
    assert_string_equal(g->name, file_stem(arena, weights_path));
    assert_int_equal(g->node.n, 3);
    check_values(g, CONST_WEIGHT, 12, 1);
    check_values(g, CONST_BIAS, 3, -1);
    assert_int_equal(g->node.at[2].act.kind, ACT_LEAKY);
    assert_true(g->node.at[2].act.alpha == 0.5);
    const Tensor *out = graph_tensor(g, g->output.at[0]);
    assert_string_equal(out->name, "c");
    assert_string_equal(shape_text(arena, &out->shape), "1x3x3x4");
}

/* Every prefix and every flipped bit of it. */
static void test_damage(void **state) {
    (void)state;
    Text net = binary_net();
    Arena *test = arena;
    for (size_t i = 0; i < 9 * net.len; i++) {
        arena = arena_new("damage");
        diag = diag_new(arena);
        size_t len = i < net.len ? i : net.len;
        char *bad = arena_copy(arena, net.at, net.len, 1, 1);
        if (i >= net.len) {
            size_t bit = i - net.len;
            bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        }
        Graph *g = read_binary(bad, len);
        assert_true(g || diag_errors(diag));
        arena_free(arena);
        arena = test;
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_forms),
        TEST(test_old_inner_product),
        TEST(test_batch_norm_factor),
        TEST(test_prelu),
        TEST(test_missing_layer),
        TEST(test_misfits),
        TEST(test_bad_files),
        TEST(test_binary_net),
        TEST(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
