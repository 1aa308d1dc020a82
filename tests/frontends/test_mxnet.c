/* MXNet: symbols of three ages, weights of four, defaults that differ from
 * other formats', bad and hostile files. */
#include "net.h"

static Graph *read_text(const char *text) {
    return read_bytes(".json", text, strlen(text));
}

#define VAR(name) "{\"op\": \"null\", \"name\": \"" name "\", \"inputs\": []}"
#define NODE(op, name, attrs, inputs)                                          \
    "{\"op\": \"" op "\", \"name\": \"" name "\", \"attrs\": {" attrs          \
    "}, \"inputs\": [" inputs "]}"
#define NET(nodes, head)                                                       \
    "{\"nodes\": [" nodes "], \"arg_nodes\": [], \"heads\": [[" head "]]}"

static void shape_of_data(uint32_t c, uint32_t h, uint32_t w) {
    static ShapeSetting setting;
    setting = (ShapeSetting){"data", shape_nchw(1, c, h, w)};
    options.shapes = &setting;
    options.n_shapes = 1;
}

static void test_three_ages(void **state) {
    (void)state;
    static const char *const ages[] = {
        NET(VAR("data") "," VAR("c_weight") "," VAR("c_bias") "," NODE(
                "Convolution", "c",
                "\"kernel\": \"(3, 1)\", \"num_filter\": "
                "\"8\", \"pad\": \"(1,0)\"",
                "[0,0,0],[1,0,0],[2,0,0]"),
            "3, 0, 0"),
        NET(VAR("data") "," VAR("c_weight") "," VAR(
                "c_bias") ","
                          "{\"op\": \"Convolution\", \"name\": \"c\", "
                          "\"param\": "
                          "{\"kernel\": \"(3,1)\", \"num_filter\": \"8\", "
                          "\"pad\": "
                          "\"(1,0)\"}, \"attr\": {\"ctx\": \"x\"}, \"inputs\": "
                          "[[0,0],[1,0],"
                          "[2,0]], \"backward_source_id\": -1}",
            "3, 0"),
        NET(VAR("data") "," VAR("c_weight") "," VAR(
                "c_bias") ","
                          "{\"op\": \"Convolution\", \"name\": \"c\", "
                          "\"attr\": "
                          "{\"kernel\": \"[3,1]\", \"num_filter\": \"8\", "
                          "\"pad\": "
                          "\"(1,0)\"}, \"inputs\": [[0,0],[1,0],[2,0]]}",
            "3, 0"),
    };
    shape_of_data(4, 6, 6);
    for (int i = 0; i < 3; i++) {
        Graph *g = read_text(ages[i]);
        assert_string_equal(messages(), "");
        assert_string_equal(nodes(g, " kernel pad "),
                            "input() data 1x4x6x6\n"
                            "conv(data) c 1x8x6x6 kernel=3,1 pad=1,0\n");
        assert_true(g->node.at[1].constant[CONST_BIAS].i != NONE);
    }
}

static void test_pooling(void **state) {
    (void)state;
    shape_of_data(1, 6, 6);
    static const struct {
        const char *attrs, *want;
    } rows[] = {
        {"\"kernel\": \"(3,3)\", \"stride\": \"(2,2)\"",
         "1x1x2x2 kind=max global=0 ceil=0 count_pad=0"},
        {"\"kernel\": \"(3,3)\", \"stride\": \"(2,2)\", "
         "\"pooling_convention\": \"full\"",
         "1x1x3x3 kind=max global=0 ceil=1 count_pad=0"},
        {"\"kernel\": \"(3,3)\", \"pool_type\": \"avg\", "
         "\"count_include_pad\": \"False\", \"pad\": \"(1,1)\"",
         "1x1x6x6 kind=avg global=0 ceil=0 count_pad=0"},
        {"\"global_pool\": \"True\", \"kernel\": \"(7,7)\", \"pool_type\": "
         "\"avg\"",
         "1x1x1x1 kind=avg global=1 ceil=0 count_pad=0"},
    };
    for (int i = 0; i < 4; i++) {
        Graph *g = read_text(arena_printf(
            arena,
            "{\"nodes\": [" VAR("data") ", {\"op\": \"Pooling\", \"name\": "
                                        "\"p\", \"attrs\": {%s}, \"inputs\": "
                                        "[[0, 0, 0]]}], \"heads\": "
                                        "[[1, 0, 0]]}",
            rows[i].attrs));
        assert_string_equal(messages(), "");
        assert_string_equal(nodes(g, " kind global ceil count_pad "),
                            arena_printf(arena,
                                         "input() data 1x1x6x6\n"
                                         "pool(data) p %s\n",
                                         rows[i].want));
    }
}

/* ---- weights ---- */

static void add_u32(Text *text, uint32_t value) {
    text_add_n(text, (const char *)&value, 4);
}

static void add_u64(Text *text, uint64_t value) {
    text_add_n(text, (const char *)&value, 8);
}

/* An array of one dimension; age: 0 to 3. */
static void add_array(Text *text, int age, const float *value, uint32_t n) {
    if (age)
        add_u32(text, 0xF993FAC7u + (uint32_t)age);
    if (age >= 2)
        add_u32(text, 0);
    add_u32(text, 1);
    if (age)
        add_u64(text, n);
    else
        add_u32(text, n);
    add_u32(text, 1), add_u32(text, 0), add_u32(text, 0);
    text_add_n(text, (const char *)value, 4 * n);
}

static const char *const bn_net = NET(
    VAR("data") "," VAR("b_gamma") "," VAR("b_beta") "," VAR("b_mean") "," VAR(
        "b_var") "," NODE("BatchNorm", "b", "",
                          "[0,0,0],[1,0,0],[2,0,0],[3,0,1],[4,0,1]"),
    "5, 0, 0");

static Text params(int age) {
    static const float value[4][1] = {{9}, {0.5f}, {1}, {4 - 1e-3f}};
    static const char *const names[] = {"arg:b_gamma", "arg:b_beta",
                                        "aux:b_mean", "aux:b_var"};
    Text text = text_new(arena);
    add_u64(&text, 0x112), add_u64(&text, 0), add_u64(&text, 4);
    for (int i = 0; i < 4; i++)
        add_array(&text, age, value[i], 1);
    add_u64(&text, 4);
    for (int i = 0; i < 4; i++) {
        add_u64(&text, strlen(names[i]));
        text_add(&text, names[i]);
    }
    return text;
}

/* gamma counts as 1, epsilon is 0.001: (x - 1) / 2 + 0.5. */
static void test_weights(void **state) {
    (void)state;
    shape_of_data(1, 1, 2);
    for (int age = 0; age < 4; age++) {
        Text text = params(age);
        options.weights = put(".params", text.at, text.len);
        Graph *g = read_text(bn_net);
        assert_string_equal(messages(), "");
        const float in[] = {1, 4};
        const float *out = run(g, (const float *const[]){in}, 1);
        assert_true(fabsf(out[0] - 0.5f) < 1e-6f);
        assert_true(fabsf(out[1] - 2) < 1e-6f);
        remove(options.weights);
    }
}

static void refuse_params(Text text, const char *want) {
    options.weights = put(".params", text.at, text.len);
    assert_null(read_text(bn_net));
    assert_string_equal(messages(), want);
    remove(options.weights);
}

static void test_bad_params(void **state) {
    (void)state;
    shape_of_data(1, 1, 2);
    Text text = params(2);
    text.len -= 3;
    refuse_params(text, "error: the file ends too early\n");
    text = params(2);
    text.at[0] = 0;
    refuse_params(text, "error: this is not a .params file of MXNet\n");
    text = params(2);
    text.at[24 + 12 + 5] = 1; /* a dimension of 2^40 */
    refuse_params(text, "error: an array is too large\n");
    text = params(2);
    text.at[24 + 8] = 99;
    refuse_params(text, "error: an array has too many dimensions\n");
    text = params(2);
    options.weights = "/tmp/amphora-none.params";
    assert_null(read_text(bn_net));
    for (size_t i = 0; i < text.len; i++) {
        text.at[i] ^= (char)0x81;
        options.weights = put(".params", text.at, text.len);
        Graph *g = read_text(bn_net);
        assert_true(g || diag_errors(diag));
        text.at[i] ^= (char)0x81;
        remove(options.weights);
    }
}

static void test_bad(void **state) {
    (void)state;
    shape_of_data(1, 4, 4);
    assert_null(read_text(
        NET(VAR("data") "," NODE("Warp", "w", "", "[0,0,0]") "," NODE(
                "Bend", "b", "", "[0,0,0]") "," NODE("elemwise_add", "s", "",
                                                     "[1,0,0],[2,0,0]"),
            "3,0,0")));
    assert_string_equal(messages(),
                        "error: layer \"w\" (Warp): this operator is not "
                        "supported\n"
                        "error: layer \"b\" (Bend): this operator is not "
                        "supported\n");
    assert_null(read_text(NET(NODE("Flatten", "f", "", "[5,0,0]"), "0,0,0")));
    assert_string_equal(messages(), "error: nodes[0]: reads a node that does "
                                    "not stand before it\n");
    options.n_shapes = 0;
    assert_null(read_text(
        NET(VAR("data") "," NODE("Flatten", "f", "", "[0,0,0]"), "1,0,0")));
    assert_string_equal(
        messages(), "error: layer \"data\" (variable): the file does not say "
                    "the shape of this input; give it, for example --shape "
                    "data=1x3x224x224\n");
    mutate(".json", bn_net, strlen(bn_net), 7);
}

static void test_real(void **state) {
    (void)state;
    static const struct {
        const char *file;
        Shape in;
        uint32_t nodes;
        uint64_t parameters;
    } rows[] = {
        {"cifar_resnet20_v1", {4, {1, 3, 32, 32}}, 93, 272474},
        {"resnet-152", {4, {1, 3, 224, 224}}, 668, 0},
        {"save_000800", {2, {1, 784}}, 9, 109406},
    };
    if (!file_exists("../shared/data/mxnet"))
        skip();
    for (int i = 0; i < 3; i++) {
        ShapeSetting setting = {"data", rows[i].in};
        options.shapes = &setting;
        options.n_shapes = 1;
        diag = diag_new(arena);
        Graph *g = frontend_read(
            arena, diag,
            arena_printf(arena, "../shared/data/mxnet/%s-symbol.json",
                         rows[i].file),
            &options, &info);
        assert_string_equal(messages(), "");
        assert_int_equal(g->node.n, rows[i].nodes);
        if (rows[i].parameters)
            assert_int_equal(parameters(g), rows[i].parameters);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_three_ages), T(test_pooling),
                                       T(test_weights),    T(test_bad_params),
                                       T(test_bad),        T(test_real)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
