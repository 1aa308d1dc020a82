/* TensorFlow: text, binary and JSON forms, values by hand, orders, layouts,
 * what is pruned, what is refused. */
#include "net.h"

static Graph *read_text(const char *text) {
    return read_bytes(".pbtxt", text, strlen(text));
}

#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest " }\n"
#define IN(name) " input: '" name "'"
#define S(key, value) " attr { key: '" key "' value { s: '" value "' } }"
#define LIST(key, values)                                                      \
    " attr { key: '" key "' value { list { i: [" values "] } } }"
#define X(dims)                                                                \
    NODE("x", "Placeholder",                                                   \
         "attr { key: 'shape' value { shape { " dims " } } }")
#define IMAGE                                                                  \
    X("dim { size: -1 } dim { size: 3 } dim { size: 3 } "                      \
      "dim { size: 2 }")
#define CONST(name, dims, values)                                              \
    NODE(name, "Const",                                                        \
         "attr { key: 'value' value { tensor { dtype: "                        \
         "DT_FLOAT tensor_shape { " dims " } " values " } } }")
#define INTS(name, dims, values)                                               \
    NODE(name, "Const",                                                        \
         "attr { key: 'value' value { tensor { dtype: "                        \
         "DT_INT32 tensor_shape { " dims " } int_val: [" values "] } } }")

/* A kernel of 2 x 2 x 2 x 1 that adds channel 0 of all pixels and ten times
 * channel 1 of the first. */
#define KERNEL                                                                 \
    CONST("w",                                                                 \
          "dim { size: 2 } dim { size: 2 } dim { size: 2 } dim { size: "       \
          "1 }",                                                               \
          "float_val: [1, 10, 1, 0, 1, 0, 1, 0]")
#define CONV(padding)                                                          \
    NODE("c", "Conv2D",                                                        \
         IN("x") IN("w") S("padding", padding) LIST("strides", "1, 1, 1, 1"))

/* Channels one behind the other. */
static const float image[18] = {1, 2, 3, 4, 5, 6, 7, 8, 9,
                                1, 0, 0, 0, 2, 0, 0, 0, 3};

static void check_values(const char *text, const float *want, uint32_t n) {
    Graph *g = read_text(text);
    assert_string_equal(messages(), "");
    const float *out = run(g, (const float *const[]){image}, 1);
    for (uint32_t i = 0; i < n; i++)
        assert_true(fabsf(out[i] - want[i]) < 1e-5f);
}

static void test_conv(void **state) {
    static const float valid[] = {22, 16, 24, 48};
    static const float same[] = {22, 16, 9, 24, 48, 15, 15, 17, 39};
    (void)state;
    check_values(IMAGE KERNEL CONV("VALID"), valid, 4);
    check_values(IMAGE KERNEL CONV("SAME"), same, 9);
    /* Any order of nodes. */
    check_values(CONV("VALID") KERNEL IMAGE, valid, 4);
}

/* Flattening reads pixels with their channels, as the file has them. */
static void test_flatten(void **state) {
    Text text = text_new(arena);
    (void)state;
    text_add(&text, IMAGE INTS("s", "dim { size: 2 }", "-1, 18")
                        NODE("r", "Reshape", IN("x") IN("s"))
                            NODE("m", "MatMul", IN("r") IN("w")));
    text_add(&text, "node { name: 'w' op: 'Const' attr { key: 'value' value { "
                    "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 18 } "
                    "dim { size: 1 } } float_val: [");
    for (int i = 0; i < 18; i++)
        text_addf(&text, "%s%d", i ? ", " : "", i);
    text_add(&text, "] } } } }");
    float want = 0;
    for (int p = 0; p < 9; p++)
        for (int c = 0; c < 2; c++)
            want += (float)(2 * p + c) * image[9 * c + p];
    check_values(text_str(&text), &want, 1);
    Graph *g = read_text(text_str(&text));
    assert_string_equal(nodes(g, ""), "input() x 1x2x3x3\nfc(x) m 1x1\n");
}

static void test_layers(void **state) {
    (void)state;
    Graph *g = read_text(
        IMAGE INTS("axes", "dim { size: 2 }", "1, 2") INTS("last", "", "-1")
            INTS("pads", "dim { size: 4 } dim { size: 2 }",
                 "0, 0, 1, 0, 0, 1, 0, 0") CONST("b", "dim { size: 2 }",
                                                 "float_val: [1, 2]")
                CONST("half", "", "float_val: 0.5") NODE("bias", "BiasAdd",
                                                         IN("x") IN("b"))
                    NODE("mul", "Mul", IN("half") IN("bias"))
                        NODE("pad", "Pad", IN("mul") IN("pads"))
                            NODE("id", "Identity", IN("pad") IN("^bias"))
                                NODE("cat", "ConcatV2",
                                     IN("id") IN("pad") IN("last"))
                                    NODE("mean", "Mean", IN("cat") IN("axes"))
                                        NODE("y", "Softmax", IN("mean")));
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " axis global before behind "),
                        "input() x 1x2x3x3\n"
                        "scale(x) bias 1x2x3x3\n"
                        "scale(bias) mul 1x2x3x3\n"
                        "pad(mul) pad 1x2x4x4 before=1,0 behind=0,1\n"
                        "identity(pad) id 1x2x4x4\n"
                        "concat(id pad) cat 1x4x4x4 axis=1\n"
                        "pool(cat) mean/reduce 1x4x1x1 global=1\n"
                        "reshape(mean/reduce) mean 1x4\n"
                        "softmax(mean) y 1x4 axis=1\n");
}

static void test_nchw(void **state) {
    (void)state;
    Graph *g = read_text(
        X("dim { size: -1 } dim { size: 2 } dim { size: 3 } dim { size: 3 }")
            NODE("p", "MaxPool",
                 IN("x") S("padding", "SAME") S("data_format", "NCHW") LIST(
                     "ksize", "1, 1, 2, 2") LIST("strides", "1, 1, 2, 2")));
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " kernel stride pad pad_end "),
                        "input() x 1x2x3x3\n"
                        "pool(x) p 1x2x2x2 kernel=2,2 stride=2,2 pad=0,0 "
                        "pad_end=1,1\n");
}

/* Shape -> StridedSlice -> Pack -> Reshape, as graphs flatten for themselves;
 * and a Switch whose condition is a constant. */
static void test_folding(void **state) {
    (void)state;
    Graph *g = read_text(
        IMAGE NODE("shape", "Shape", IN("x")) INTS("zero", "dim { size: 1 }",
                                                   "0")
            INTS("one", "dim { size: 1 }", "1") INTS("rest", "", "-1") NODE(
                "n", "StridedSlice",
                IN("shape") IN("zero") IN("one") IN(
                    "one") " attr { key: 'shrink_axis_mask' value { i: 1 } }")
                NODE("to", "Pack", IN("n") IN("rest"))
                    NODE("flat", "Reshape", IN("x") IN("to"))
                        NODE("no", "Const",
                             "attr { key: 'value' value { tensor { "
                             "dtype: DT_BOOL bool_val: false "
                             "tensor_shape { } } } }")
                            NODE("sw", "Switch", IN("flat") IN("no"))
                                NODE("on", "Warp", IN("sw:1"))
                                    NODE("off", "Relu", IN("sw"))
                                        NODE("y", "Merge", IN("off") IN("on")));
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " act "), "input() x 1x2x3x3\n"
                                           "transpose(x) flat/nhwc 1x3x3x2\n"
                                           "reshape(flat/nhwc) flat 1x18\n"
                                           "identity(flat) sw 1x18\n"
                                           "act(sw) off 1x18 act=relu\n"
                                           "identity(off) y 1x18\n");
}

static void refuse(const char *text, const char *want) {
    assert_null(read_text(text));
    assert_string_equal(messages(), want);
}

static void test_refused(void **state) {
    (void)state;
    refuse(IMAGE NODE("a", "Warp", IN("x")) NODE("b", "Bend", IN("x"))
               NODE("c", "Add", IN("a") IN("b")),
           "error: layer \"a\" (Warp): this operator is not supported; --shape "
           "a=1x... makes it a call of a function of yours\n"
           "error: layer \"b\" (Bend): this operator is not supported; --shape "
           "b=1x... makes it a call of a function of yours\n");
    refuse(IMAGE NODE("e", "Enter", IN("x")),
           "error: layer \"e\" (Enter): control flow is not supported\n");
    refuse(NODE("a", "Relu", IN("b")) NODE("b", "Relu", IN("a")),
           "error: node \"a\" (Relu) waits for itself: loops are not "
           "supported\n");
    refuse(NODE("a", "Relu", IN("z")),
           "error: node \"a\" reads \"z\", which does not exist\n");
    refuse(NODE("a", "Placeholder", "") NODE("b", "Relu", IN("a")),
           "error: layer \"a\" (Placeholder): the file does not say the shape "
           "of this input; give it, for example --shape a=1x3x224x224\n");
    refuse(IMAGE CONST("w", "dim { size: 99999999 }", "float_val: 0")
               NODE("c", "Add", IN("x") IN("w")),
           "error: layer \"w\" (Const): 1 values are told of 99999999\n");
}

/* ---- binary and JSON ---- */

static void add_bytes(Text *text, char tag, const char *bytes, size_t len) {
    char head[2] = {tag, (char)len};
    text_add_n(text, head, 2);
    text_add_n(text, bytes, len);
}

static Text binary(void) {
    Text node = text_new(arena), all = text_new(arena);
    static const char shape[] = "\x0a\x05shape\x12\x0a\x3a\x08\x12\x02\x08\x01"
                                "\x12\x02\x08\x02";
    add_bytes(&node, 0x0a, "x", 1);
    add_bytes(&node, 0x12, "Placeholder", 11);
    add_bytes(&node, 0x2a, shape, sizeof shape - 1);
    add_bytes(&all, 0x0a, node.at, node.len);
    node.len = 0;
    add_bytes(&node, 0x0a, "y", 1);
    add_bytes(&node, 0x12, "Relu", 4);
    add_bytes(&node, 0x1a, "x", 1);
    add_bytes(&all, 0x0a, node.at, node.len);
    return all;
}

static const char *const json =
    "{\"modelTopology\": {\"node\": [{\"name\": \"x\", \"op\": "
    "\"Placeholder\", \"attr\": {\"shape\": {\"shape\": {\"dim\": [{\"size\": "
    "\"-1\"}, {\"size\": \"2\"}]}}}}, {\"name\": \"y\", \"op\": \"Relu\", "
    "\"input\": [\"x\"]}]}, \"weightsManifest\": []}";

static void test_forms(void **state) {
    static const char want[] = "input() x 1x2\nact(x) y 1x2 act=relu\n";
    (void)state;
    Text bytes = binary();
    Graph *g = read_bytes(".pb", bytes.at, bytes.len);
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " act "), want);
    g = read_bytes(".json", json, strlen(json));
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " act "), want);
    mutate(".pb", bytes.at, bytes.len, 1);
    mutate(".json", json, strlen(json), 3);
    const char *text = IMAGE KERNEL CONV("SAME");
    mutate(".pbtxt", text, strlen(text), 5);
}

#define DATA "../shared/data/tensorflow/"

static Graph *read_data(const char *name) {
    diag = diag_new(arena);
    return frontend_read(arena, diag, arena_printf(arena, DATA "%s", name),
                         &options, &info);
}

static void test_real(void **state) {
    (void)state;
    if (!file_exists(DATA))
        skip();
    Graph *g = read_data("tfjs_mobilenet_v2_graph.json");
    assert_string_equal(messages(),
                        "warning: weights \"group1-shard1of2.bin\" are not "
                        "beside it; seeded values are used\n");
    assert_string_equal(
        shape_text(arena, &graph_tensor(g, g->output.at[0])->shape), "1x1001");
    uint32_t convs = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        convs += g->node.at[i].op == OP_CONV;
    assert_int_equal(convs, 53);
    ShapeSetting shape = {"X", {1, {1}}};
    options.shapes = &shape;
    options.n_shapes = 1;
    assert_non_null(read_data("t2o_regression_frozen.pb"));
    options.n_shapes = 0;
    assert_non_null(read_data("tfjs_tiny_graph.json"));
    assert_null(read_data("tfjs_times_three_saved_model.pb"));
    assert_non_null(strstr(messages(), "a variable without values"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_conv),    T(test_flatten), T(test_layers), T(test_nchw),
        T(test_folding), T(test_refused), T(test_forms),  T(test_real)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
