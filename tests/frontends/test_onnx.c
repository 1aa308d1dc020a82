/* test_onnx.c - ONNX models: what they become, hostile ones, large ones.
 *
 * Values against ONNX's own are tests/onnx_testdata.py's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontends/formats.h"
#include "onnx_write.h"
#include "tests/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static Arena *arena;
static Diag *diag;
static char path[512];

static int setup(void **state) {
    (void)state;
    arena = arena_new("test_onnx");
    diag = diag_new(arena);
    snprintf(path, sizeof path, "%s/amphora-onnx-%ld", scratch(),
             (long)getpid());
    return 0;
}

static int teardown(void **state) {
    (void)state;
    remove(path);
    arena_free(arena);
    return 0;
}

static Graph *read_bytes(const char *bytes, size_t len) {
    ImportOptions options = {.seed = 1};
    ImportInfo info;
    assert_true(file_replace(arena, diag, path, bytes, len));
    return frontend_read(arena, diag, path, &options, &info);
}

static Graph *read_model(Text *graph) {
    Text m = model(arena, graph);
    return read_bytes(text_str(&m), m.len);
}

static void refuse(Text *graph, const char *const *errors) {
    assert_null(read_model(graph));
    uint32_t n = 0;
    for (; errors[n]; n++) {
        assert_true(n < diag_count(diag));
        assert_string_equal(diag_at(diag, n)->text, errors[n]);
    }
    assert_int_equal(diag_count(diag), n);
}

static void put_input(Text *graph, const char *name, uint32_t rank,
                      const int64_t *dim) {
    Text info = value_info(arena, name, rank, dim);
    put_message(graph, 11, &info);
}

static void put_output(Text *graph, const char *name) {
    Text info = value_info(arena, name, 0, NULL);
    put_message(graph, 12, &info);
}

static void put_node(Text *graph, const char *type, const char *a,
                     const char *b, const char *out) {
    Text n = node(arena, type, a, b, NULL, out);
    put_message(graph, 1, &n);
}

static Text tensor(const char *name, uint32_t rank, const int64_t *dim,
                   int type) {
    Text t = text_new(arena);
    for (uint32_t i = 0; i < rank; i++)
        put_int(&t, 1, (uint64_t)dim[i]);
    put_int(&t, 2, (uint64_t)type);
    put_text(&t, 8, name);
    return t;
}

static const int64_t image[] = {0, 2, 3, 3};

/* ---- what models become ---- */

static const char *ops_of(const Graph *g) {
    Text text = text_new(arena);
    for (uint32_t i = 0; i < g->node.n; i++)
        text_addf(&text, "%s%s %s", i ? "; " : "",
                  op_info[g->node.at[i].op].name, g->node.at[i].name);
    return text_str(&text);
}

/* Shape -> Gather -> Unsqueeze -> Concat -> Reshape leaves a reshape. */
static void shape_arithmetic_is_folded(void **state) {
    (void)state;
    static const int64_t zero = 0, minus = -1;
    Text g = text_new(arena), i = tensor("i", 0, NULL, 7),
         m = tensor("m", 1, (const int64_t[]){1}, 7);
    put_bytes(&i, 9, (const char *)&zero, 8);
    put_bytes(&m, 9, (const char *)&minus, 8);
    put_message(&g, 5, &i);
    put_message(&g, 5, &m);
    put_input(&g, "x", 4, image);
    put_output(&g, "y");
    put_node(&g, "Shape", "x", NULL, "s");
    put_node(&g, "Gather", "s", "i", "n");
    Text axis = tensor("a", 1, (const int64_t[]){1}, 7);
    put_bytes(&axis, 9, (const char *)&zero, 8);
    put_message(&g, 5, &axis);
    put_node(&g, "Unsqueeze", "n", "a", "u");
    Text concat = node(arena, "Concat", "u", "m", NULL, "t");
    Text attr = text_new(arena);
    put_text(&attr, 1, "axis");
    put_int(&attr, 3, 0);
    put_message(&concat, 5, &attr);
    put_message(&g, 1, &concat);
    put_node(&g, "Reshape", "x", "t", "y");
    Graph *graph = read_model(&g);
    assert_non_null(graph);
    assert_string_equal(ops_of(graph), "input x; reshape y");
    const Tensor *y = graph_tensor(graph, graph->output.at[0]);
    assert_string_equal(y->name, "y");
    assert_string_equal(shape_text(arena, &y->shape), "1x18");
}

/* Weights behind a DequantizeLinear by output channel are constants. */
static void quantised_weights_are_folded(void **state) {
    (void)state;
    static const int8_t code[] = {1, -2, 100, -128}, zero[] = {0, 4};
    static const float scale[] = {0.5F, 0.25F};
    static const double want[] = {0.5, -1, 24, -33};
    const int64_t shape[] = {2, 2, 1, 1}, two[] = {2};
    Text g = text_new(arena), w = tensor("w", 4, shape, 3),
         s = tensor("s", 1, two, 1), z = tensor("z", 1, two, 3);
    put_bytes(&w, 9, (const char *)code, sizeof code);
    put_bytes(&s, 9, (const char *)scale, sizeof scale);
    put_bytes(&z, 9, (const char *)zero, sizeof zero);
    put_message(&g, 5, &w);
    put_message(&g, 5, &s);
    put_message(&g, 5, &z);
    put_input(&g, "x", 4, image);
    put_output(&g, "y");
    Text dequantize = node(arena, "DequantizeLinear", "w", "s", "z", "d");
    Text attr = text_new(arena);
    put_text(&attr, 1, "axis");
    put_int(&attr, 3, 0);
    put_message(&dequantize, 5, &attr);
    put_message(&g, 1, &dequantize);
    put_node(&g, "Conv", "x", "d", "y");
    Graph *graph = read_model(&g);
    assert_non_null(graph);
    assert_string_equal(ops_of(graph), "input x; conv y");
    ConstId weight = graph->node.at[1].constant[CONST_WEIGHT];
    double value[4];
    const_read_f64(graph_const(graph, weight), value);
    assert_memory_equal(value, want, sizeof want);
}

/* A scalar is a factor by channel; a full tensor is not. */
static void constants_become_scales(void **state) {
    (void)state;
    static const float two = 2;
    float many[18] = {0};
    Text g = text_new(arena), c = tensor("c", 0, NULL, 1),
         t = tensor("t", 3, image + 1, 1);
    put_bytes(&c, 9, (const char *)&two, 4);
    put_bytes(&t, 9, (const char *)many, sizeof many);
    put_message(&g, 5, &c);
    put_message(&g, 5, &t);
    put_input(&g, "x", 4, image);
    put_output(&g, "z");
    put_node(&g, "Mul", "x", "c", "y");
    put_node(&g, "Add", "y", "t", "z");
    Graph *graph = read_model(&g);
    assert_non_null(graph);
    assert_string_equal(ops_of(graph), "input x; scale y; constant t; "
                                       "reshape z/shape; eltwise z");
}

/* ---- refusals ---- */

static void all_unknown_operators_are_named(void **state) {
    (void)state;
    Text g = text_new(arena);
    put_input(&g, "x", 4, image);
    put_output(&g, "z");
    put_node(&g, "Foo", "x", NULL, "a");
    put_node(&g, "Relu", "a", NULL, "b");
    put_node(&g, "Bar", "b", NULL, "c");
    put_node(&g, "Relu", "c", NULL, "z");
    refuse(&g, (const char *[]){
                   "layer \"a\" (Foo): operator Foo is not supported; --shape "
                   "a=1x... makes it a call of a function of yours",
                   "layer \"c\" (Bar): operator Bar is not supported; --shape "
                   "c=1x... makes it a call of a function of yours",
                   NULL});
}

static void cycles_are_errors(void **state) {
    (void)state;
    Text g = text_new(arena);
    put_input(&g, "x", 4, image);
    put_output(&g, "a");
    put_node(&g, "Add", "x", "b", "a");
    put_node(&g, "Relu", "a", NULL, "b");
    refuse(&g, (const char *[]){
                   "layer \"a\" (Add): nothing before it makes its input "
                   "\"b\" (nodes must stand in order, without cycles)",
                   NULL});
}

static void dimensions_have_limits(void **state) {
    (void)state;
    Text g = text_new(arena);
    put_input(&g, "x", 2, (const int64_t[]){1, INT64_C(1) << 31});
    put_input(&g, "w", 3, (const int64_t[]){1, 0, 4});
    put_input(&g, "v", 4, (const int64_t[]){1, 65536, 65536, 65536});
    put_output(&g, "y");
    put_node(&g, "Relu", "x", NULL, "y");
    refuse(&g,
           (const char *[]){
               "input \"x\": dimension 1 of 2147483648 is too large",
               "input \"w\": dimension 1 is not known: give --shape "
               "w=1x...",
               "layer \"v\": input of 1x65536x65536x65536 is too large", NULL});
}

static void tensors_must_fit_their_data(void **state) {
    (void)state;
    Text g = text_new(arena),
         t = tensor("t", 2, (const int64_t[]){1 << 16, 1 << 16}, 1),
         s = tensor("s", 1, (const int64_t[]){3}, 1),
         e = tensor("e", 1, (const int64_t[]){3}, 1), entry = g;
    put_bytes(&s, 9, "12345678", 8);
    put_text(&entry, 1, "location");
    put_text(&entry, 2, "a/../../etc/passwd");
    put_message(&e, 13, &entry);
    put_int(&e, 14, 1);
    put_message(&g, 5, &t);
    put_message(&g, 5, &s);
    put_message(&g, 5, &e);
    put_output(&g, "t");
    refuse(&g, (const char *[]){
                   "tensor \"t\": is too large, or has more than 8 dimensions",
                   "tensor \"s\": 8 bytes for 3 elements of float",
                   "tensor \"e\": its data lies outside the model's folder: "
                   "a/../../etc/passwd",
                   NULL});
}

/* Graphs within attributes are not even entered. */
static void nested_graphs_cost_nothing(void **state) {
    (void)state;
    enum { DEPTH = 60000 };
    /* Built from the inside out: node { attribute { g { node ... */
    size_t room = (size_t)DEPTH * 32, at = room;
    char *bytes = arena_alloc(arena, room, 1);
    static const uint32_t wraps[] = {1, 6, 5}; /* node, g, attribute */
    for (uint32_t i = 0; i < 3 * DEPTH; i++) {
        Text head = text_new(arena);
        put_varint(&head, wraps[i % 3] << 3 | 2);
        put_varint(&head, room - at);
        at -= head.len;
        memcpy(bytes + at, text_str(&head), head.len);
    }
    Text g = text_new(arena), n = node(arena, "If", "x", NULL, NULL, "y");
    text_add_n(&n, bytes + at, room - at);
    put_input(&g, "x", 4, image);
    put_output(&g, "y");
    put_message(&g, 1, &n);
    refuse(&g, (const char *[]){
                   "layer \"y\" (If): input 0, \"x\", must be a constant: "
                   "--fix x=FILE.npy makes it one",
                   NULL});
}

/* A length of a field that the file does not have, at each depth. */
static void lengths_past_the_end(void **state) {
    (void)state;
    static const uint64_t length[] = {7, 1 << 20, UINT64_MAX >> 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof length / sizeof *length; i++)
        for (uint32_t depth = 0; depth < 3; depth++) {
            Text g = text_new(arena), whole = g;
            put_varint(&g, (depth == 2 ? 5u : 7u) << 3 | 2);
            put_varint(&g, length[i]);
            put_text(&g, 2, "g");
            if (depth)
                put_message(&whole, 7, &g);
            assert_null(depth ? read_bytes(text_str(&whole), whole.len)
                              : read_bytes(text_str(&g), g.len));
            assert_true(diag_count(diag) > 0);
        }
}

static Text list_attribute(const char *name, uint32_t n, uint64_t value) {
    Text attr = text_new(arena);
    put_text(&attr, 1, name);
    for (uint32_t i = 0; i < n; i++)
        put_int(&attr, 8, value);
    return attr;
}

/* Attributes of a million values; sizes that overflow when multiplied. */
static void huge_attributes_and_sizes(void **state) {
    (void)state;
    static const char *const type[] = {"MaxPool", "MaxPool", "Transpose",
                                       "Unsqueeze"};
    static const uint64_t big = UINT64_C(1) << 62;
    const Text attr[] = {list_attribute("strides", 1 << 20, 1),
                         list_attribute("kernel_shape", 2, big),
                         list_attribute("perm", 1 << 20, 1),
                         list_attribute("axes", 1 << 20, 0)};
    static const int64_t wide[] = {1, 3, 8, 8};
    Text g = text_new(arena), t = tensor("t", 1, (const int64_t[]){3}, 7);
    for (int i = 0; i < 3; i++)
        put_int(&t, 7, big);
    put_message(&g, 5, &t);
    put_input(&g, "x", 4, wide);
    put_output(&g, "a");
    for (uint32_t i = 0; i < 4; i++) {
        Text n = node(arena, type[i], "x", NULL, NULL,
                      (const char[]){'a' + (char)i, 0});
        Text one = attr[i];
        put_message(&n, 5, &one);
        put_message(&g, 1, &n);
    }
    put_node(&g, "Reshape", "x", "t", "r");
    put_node(&g, "Expand", "x", "t", "e");
    put_node(&g, "ConstantOfShape", "t", NULL, "o");
    refuse(&g,
           (const char *[]){
               "layer \"a\" (MaxPool): strides has 1048576 values, not 2",
               "layer \"b\" (MaxPool): kernel_shape 4611686018427387904 is "
               "outside 1..65536",
               "layer \"c\" (Transpose): 1048576 axes of 4 in its order",
               "layer \"d\" (Unsqueeze): makes more than 8 dimensions",
               "layer \"r\" (Reshape): 1x3x8x8 cannot be reshaped as it asks",
               "layer \"e\" (Expand): 1x3x8x8 does not expand as it asks",
               "layer \"o\" (ConstantOfShape): no such shape is possible",
               NULL});
}

/* Every prefix, and every byte changed: an error or a graph, no crash. */
static void damaged_models_end_in_errors(void **state) {
    (void)state;
    float many[18] = {0};
    Text g = text_new(arena), t = tensor("t", 3, image + 1, 1);
    put_bytes(&t, 9, (const char *)many, sizeof many);
    put_message(&g, 5, &t);
    put_input(&g, "x", 4, image);
    put_output(&g, "z");
    put_node(&g, "Relu", "x", NULL, "y");
    put_node(&g, "Add", "y", "t", "z");
    Text m = model(arena, &g);
    char *bytes = arena_strndup(arena, text_str(&m), m.len);
    for (size_t len = 1; len < m.len; len++)
        (void)read_bytes(bytes, len);
    for (size_t i = 0; i < m.len; i++)
        for (int flip = 1; flip < 256; flip *= 4) {
            bytes[i] ^= (char)flip;
            (void)read_bytes(bytes, m.len);
            bytes[i] ^= (char)flip;
        }
}

/* ---- a large model ---- */

static long resident_kb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* 240 MB of weights, as a hole in the file: reading must not touch them, also
 * where they lie as [inputs, outputs]. */
static void read_large(bool turned) {
    enum { SIDE = 7746 };
    const int64_t dim[] = {SIDE, SIDE}, in[] = {1, SIDE};
    size_t weights = (size_t)SIDE * SIDE * sizeof(float);
    Text w = tensor("w", 2, dim, 1), g = text_new(arena), tail = g;
    put_input(&tail, "x", 2, in);
    put_output(&tail, "y");
    Text gemm = node(arena, "Gemm", "x", "w", NULL, "y"), attr = g;
    put_text(&attr, 1, "transB");
    put_int(&attr, 3, turned);
    put_message(&gemm, 5, &attr);
    put_message(&tail, 1, &gemm);
    put_varint(&w, 9 << 3 | 2);
    put_varint(&w, weights);
    put_varint(&g, 5 << 3 | 2);
    put_varint(&g, w.len + weights);
    text_add_n(&g, text_str(&w), w.len);
    Text head = text_new(arena), opset = head;
    put_int(&opset, 2, 13);
    put_int(&head, 1, 7);
    put_message(&head, 8, &opset);
    put_varint(&head, 7 << 3 | 2);
    put_varint(&head, g.len + weights + tail.len);
    text_add_n(&head, text_str(&g), g.len);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(text_str(&head), 1, head.len, file);
    fseek(file, (long)weights, SEEK_CUR);
    fwrite(text_str(&tail), 1, tail.len, file);
    assert_int_equal(fclose(file), 0);
    ImportOptions options = {.seed = 1};
    ImportInfo info;
    long before = resident_kb();
    Graph *graph = frontend_read(arena, diag, path, &options, &info);
    long more = resident_kb() - before;
    assert_non_null(graph);
    assert_string_equal(ops_of(graph), "input x; fc y");
    print_message("%zu MB of weights: %ld kB more resident\n",
                  weights / 1000000, more);
    assert_true(more < 20000);
}

static void weights_stay_in_the_file(void **state) {
    (void)state;
    read_large(true);
    read_large(false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(shape_arithmetic_is_folded),
        TEST(quantised_weights_are_folded),
        TEST(constants_become_scales),
        TEST(all_unknown_operators_are_named),
        TEST(cycles_are_errors),
        TEST(dimensions_have_limits),
        TEST(tensors_must_fit_their_data),
        TEST(nested_graphs_cost_nothing),
        TEST(lengths_past_the_end),
        TEST(huge_attributes_and_sizes),
        TEST(damaged_models_end_in_errors),
        TEST(weights_stay_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
