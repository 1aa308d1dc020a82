/* TFLite: a model made by hand with quantised weights, real models whose
 * answers are known, damaged files. */
#include "net.h"

#include "graph/quant.h"

/* ---- a FlatBuffer from the front: parents before children ---- */

static Text file;

static uint32_t here(void) {
    while (file.len % 8)
        text_add_n(&file, "", 1);
    return (uint32_t)file.len;
}

static void set(uint32_t at, uint32_t value) {
    memcpy(file.at + at, &value, 4);
}

/* A table of `n` fields, each in four bytes. */
static uint32_t table(uint32_t n) {
    static const char zeros[80] = {0};
    uint32_t vtable = here(), at;
    uint16_t head[20] = {(uint16_t)(4 + 2 * n), (uint16_t)(4 + 4 * n)};
    for (uint32_t i = 0; i < n; i++)
        head[2 + i] = (uint16_t)(4 + 4 * i);
    text_add_n(&file, (const char *)head, 4 + 2 * n);
    at = here();
    text_add_n(&file, zeros, 4 + 4 * n);
    set(at, at - vtable);
    return at;
}

static void field(uint32_t at, uint32_t i, uint32_t value) {
    set(at + 4 + 4 * i, value);
}

static void point(uint32_t from, uint32_t to) {
    set(from, to - from);
}

/* A vector under a field; the place of its first element. */
static uint32_t vector(uint32_t at, uint32_t i, uint32_t n, uint32_t size,
                       const void *values) {
    static const char zeros[256] = {0};
    here();
    text_add_n(&file, zeros, 4);
    uint32_t start = (uint32_t)file.len;
    text_add_n(&file, (const char *)&n, 4);
    text_add_n(&file, values ? values : zeros, (size_t)n * size);
    point(at + 4 + 4 * i, start);
    return start + 4;
}

static uint32_t child(uint32_t from, uint32_t fields) {
    uint32_t at = table(fields);
    point(from, at);
    return at;
}

static void tensor(uint32_t slot, const char *name, uint32_t rank,
                   const int32_t *shape, uint32_t type, uint32_t buffer,
                   uint32_t scales, const float *scale) {
    uint32_t at = child(slot, 5);
    field(at, 1, type);
    field(at, 2, buffer);
    vector(at, 0, rank, 4, shape);
    vector(at, 3, (uint32_t)strlen(name), 1, name);
    if (scales)
        vector(child(at + 4 + 4 * 4, 7), 2, scales, 4, scale);
}

/* x [1, 1, 2, 2], convolved 1 x 1 by int8 weights with a scale a channel, and
 * a fused activation: relu. `code`: of the operator. */
static Bytes model(uint32_t code) {
    static const int32_t image[] = {1, 1, 2, 2}, kernel[] = {2, 1, 1, 2};
    static const int32_t two[] = {2};
    static const float scale[] = {0.5f, 0.25f}, bias[] = {0.5f, -1};
    static const int8_t weight[] = {2, -4, 8, 12};
    static const int32_t inputs[] = {0}, reads[] = {0, 1, 2}, writes[] = {3};
    file = text_new(arena);
    text_add_n(&file, "\0\0\0\0TFL3\0\0\0\0\0\0\0\0", 16);
    uint32_t root = table(5);
    point(0, root);
    uint32_t codes = vector(root, 1, 1, 4, NULL);
    field(child(codes, 4), 3, code);
    uint32_t graph = child(vector(root, 2, 1, 4, NULL), 4);
    uint32_t buffers = vector(root, 4, 3, 4, NULL);
    child(buffers, 1);
    vector(child(buffers + 4, 1), 0, sizeof weight, 1, weight);
    vector(child(buffers + 8, 1), 0, sizeof bias, 1, bias);
    uint32_t tensors = vector(graph, 0, 4, 4, NULL);
    tensor(tensors, "x", 4, image, 0, 0, 0, NULL);
    tensor(tensors + 4, "w", 4, kernel, 9, 1, 2, scale);
    tensor(tensors + 8, "b", 1, two, 0, 2, 0, NULL);
    tensor(tensors + 12, "y", 4, image, 0, 0, 0, NULL);
    vector(graph, 1, 1, 4, inputs);
    vector(graph, 2, 1, 4, writes);
    uint32_t op = child(vector(graph, 3, 1, 4, NULL), 5);
    vector(op, 1, 3, 4, reads);
    vector(op, 2, 1, 4, writes);
    uint32_t convolution = child(op + 4 + 4 * 4, 6);
    field(convolution, 0, 1);
    field(convolution, 1, 1), field(convolution, 2, 1);
    field(convolution, 3, 1);
    field(convolution, 4, 1), field(convolution, 5, 1);
    return (Bytes){(const uint8_t *)file.at, file.len};
}

static void test_values(void **state) {
    (void)state;
    Bytes bytes = model(3);
    Graph *g = read_bytes(".tflite", bytes.at, bytes.len);
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " kernel act "),
                        "input() x 1x2x1x2\nconv(x) y 1x2x1x2 kernel=1,1\n"
                        "act(y) y/act 1x2x1x2 act=relu\n");
    /* pixels (1, 3) and (2, 4), as channels: [1, 2], [3, 4] */
    const float in[] = {1, 2, 3, 4};
    static const float want[] = {0, 0, 10, 15};
    const float *out = run(g, (const float *const[]){in}, 1);
    for (int i = 0; i < 4; i++)
        assert_true(fabsf(out[i] - want[i]) < 1e-6f);
}

static void test_unknown(void **state) {
    (void)state;
    Bytes bytes = model(200);
    Graph *g = read_bytes(".tflite", bytes.at, bytes.len);
    assert_non_null(g);
    assert_string_equal(
        messages(),
        "warning: layer \"y\": operator_200 is a call of a function of yours; "
        "its values are made up: --fix y=FILE.npy gives them\n");
    const Node *call =
        graph_node(g, graph_tensor(g, g->output.at[0])->producer);
    assert_int_equal(call->op, OP_CALL);
    assert_int_equal(call->n_in, 3);
    assert_string_equal(call->attr.call.what, "operator_200");
}

static void test_hostile(void **state) {
    (void)state;
    Bytes bytes = model(3);
    mutate(".tflite", bytes.at, bytes.len, 1);
    /* The first offset leads past the end. */
    uint8_t *copy = arena_copy(arena, bytes.at, bytes.len, 1, 1);
    memset(copy, 0xff, 4);
    assert_null(read_bytes(".tflite", copy, bytes.len));
    assert_string_equal(messages(), "error: the file is damaged: an offset "
                                    "leads outside\n");
}

#define DATA "../shared/data/tflite/"

static Graph *read_data(const char *name) {
    diag = diag_new(arena);
    return frontend_read(arena, diag, arena_printf(arena, DATA "%s", name),
                         &options, &info);
}

/* The hello world of TFLite Micro is trained to compute a sine. */
static void test_sine(void **state) {
    static const char *const files[] = {"hello_world_float.tflite",
                                        "hello_world_int8.tflite"};
    (void)state;
    if (!file_exists(DATA))
        skip();
    for (int f = 0; f < 2; f++) {
        Graph *g = read_data(files[f]);
        assert_string_equal(messages(), "");
        const Quant *in = &graph_tensor(g, g->node.at[0].out[0])->quant;
        const Quant *out = &graph_tensor(g, g->output.at[0])->quant;
        assert_int_equal(out->type, f ? QUANT_I8 : QUANT_NONE);
        for (float x = 0.2f; x < 6; x += 0.3f) {
            float at = f ? (float)quant_code(in, (double)x) : x;
            float y = run(g, (const float *const[]){&at}, 1)[0];
            y = f ? (float)quant_real(out, (double)y) : y;
            assert_true(fabsf(y - sinf(x)) < 0.15f);
        }
    }
}

static void test_real(void **state) {
    static const struct {
        const char *file;
        uint32_t nodes;
        uint64_t parameters;
        const char *output;
    } rows[] = {
        {"kws_ref_model.tflite", 13, 22604, "1x12"},
        {"person_detect.tflite", 32, 210706, "1x2"},
        {"pretrainedResnet_quant.tflite", 16, 77706, "1x10"},
        {"pad0.tflite", 2, 0, "1x2x2x166"},
    };
    (void)state;
    if (!file_exists(DATA))
        skip();
    for (int i = 0; i < 4; i++) {
        Graph *g = read_data(rows[i].file);
        assert_string_equal(messages(), "");
        assert_int_equal(g->node.n, rows[i].nodes);
        assert_int_equal(parameters(g), rows[i].parameters);
        const Tensor *out = graph_tensor(g, g->output.at[0]);
        assert_string_equal(shape_text(arena, &out->shape), rows[i].output);
    }
    Bytes bytes;
    assert_true(file_read(arena, diag, DATA "hello_world_int8.tflite", &bytes));
    mutate(".tflite", bytes.at, bytes.len, 3);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_values), T(test_unknown),
                                       T(test_hostile), T(test_sine),
                                       T(test_real)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
