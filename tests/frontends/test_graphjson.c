/* Graphs as JSON: every network that is written and read back is the same
 * graph; trained weights come from the file beside it; bad files are refused
 * with a place. */
#include "net.h"

#include "base/json.h"

#include <dirent.h>

static Graph *read_path(const char *path) {
    diag = diag_new(arena);
    return frontend_read(arena, diag, path, &options, &info);
}

/* Writes and reads back; the graph that came back. */
static Graph *around(const Graph *g) {
    Text bytes = text_new(arena);
    const char *weights =
        arena_printf(arena, "amphora-test-%ld.weights", (long)getpid());
    const char *json = graph_to_json(arena, g, weights, &bytes);
    const char *beside = put(".weights", bytes.at ? bytes.at : "", bytes.len);
    ImportOptions saved = options;
    options = (ImportOptions){0};
    Graph *back = read_bytes(".json", json, strlen(json));
    options = saved;
    remove(beside);
    if (back)
        back->name = g->name; /* a network goes by its file's name */
    return back;
}

static void check_file(const char *path) {
    Graph *g = read_path(path);
    if (!g)
        return;
    Graph *back = around(g);
    assert_string_equal(messages(), "");
    assert_non_null(back);
    assert_string_equal(graph_print(arena, back), graph_print(arena, g));
}

static void check_folder(const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".prototxt"))
            check_file(arena_printf(arena, "%s/%s", folder, entry->d_name));
    closedir(dir);
}

static void test_examples(void **state) {
    (void)state;
    check_folder("examples");
}

static void test_real(void **state) {
    (void)state;
    if (!file_exists("../shared/data/caffe"))
        skip();
    check_folder("../shared/data/caffe");
}

/* Every kind of constant, and attributes that JSON has no numbers for. */
static void test_constants(void **state) {
    static const float f32[] = {0.1f, 0.2f, 0.3f};
    static const double f64[] = {0.1, 1e-300}, mul[] = {1.0 / 3, 2, 5e-324};
    Loc loc = {"x", 1, 2};
    (void)state;
    Graph *g = graph_new(arena, "two words \"quoted\"");
    NodeId id = graph_add(g, OP_INPUT, "in", loc, 0, NULL);
    TensorId t = graph_add_output(g, id, "in");
    graph_tensor(g, t)->shape = shape_nchw(1, 3, 2, 2);
    id = graph_add(g, OP_SCALE, "s", loc, 1, &t);
    graph_node(g, id)->constant[CONST_SCALE] = graph_add_const(
        g, (Const){
               .shape = {1, {3}}, .kind = CONST_F32, .data = f32, .mul0 = mul});
    t = graph_add_output(g, id, "s");
    id = graph_add(g, OP_CONV, "c", loc, 1, &t);
    graph_node(g, id)->attr.conv.out_c = 2;
    graph_node(g, id)->attr.conv.kernel[0] =
        graph_node(g, id)->attr.conv.kernel[1] = 1;
    graph_node(g, id)->act =
        (Act){.kind = ACT_CLIP, .lo = -INFINITY, .hi = 0.1};
    graph_node(g, id)->constant[CONST_BIAS] = graph_add_const(
        g, (Const){.shape = {1, {2}}, .kind = CONST_F64, .data = f64});
    graph_mark_output(g, graph_add_output(g, id, "c"));
    assert_true(graph_infer_all(g, diag));
    graph_seed_constants(g, 1);
    Const *weight = &g->constant.at[graph_node(g, id)->constant[0].i];
    const_set_order(weight, (const uint32_t[]){1, 0, 2, 3});
    graph_mark_original(g);
    Graph *back = around(g);
    assert_string_equal(messages(), "");
    assert_string_equal(graph_print(arena, back), graph_print(arena, g));
    float value[2];
    const_read(graph_const(back, back->node.at[2].constant[CONST_BIAS]), value);
    assert_true(value[0] == 0.1f);
}

/* Whether a list of the schema is exactly these words. */
static void check_words(const cJSON *list, const char *const *want,
                        uint32_t n) {
    assert_int_equal(cJSON_GetArraySize(list), n);
    for (uint32_t i = 0; i < n; i++)
        assert_string_equal(cJSON_GetArrayItem(list, (int)i)->valuestring,
                            want[i]);
}

static const cJSON *at_path(const cJSON *json, const char *const *path) {
    for (; *path; path++)
        json = cJSON_GetObjectItemCaseSensitive(json, *path);
    return json;
}

/* docs/graph.schema.json knows the operators and roles that we do. */
static void test_schema(void **state) {
    static const char *const ops[] = {"definitions", "node", "properties",
                                      "op",          "enum", NULL};
    static const char *const roles[] = {
        "definitions",   "node", "properties", "constants",
        "propertyNames", "enum", NULL};
    const char *names[OP_COUNT];
    Bytes bytes;
    (void)state;
    assert_true(file_read(arena, diag, "docs/graph.schema.json", &bytes));
    cJSON *json = json_parse(diag, "schema", (const char *)bytes.at, bytes.len);
    assert_non_null(json);
    for (int i = 0; i < OP_COUNT; i++)
        names[i] = op_info[i].name;
    check_words(at_path(json, ops), names, OP_COUNT);
    check_words(at_path(json, roles), const_role_name, CONST_ROLES);
    json_free(json);
}

static void refuse(const char *text, const char *want) {
    assert_null(read_bytes(".json", text, strlen(text)));
    assert_string_equal(messages(), want);
}

#define HEAD "{\"amphora\": 1, \"constants\": ["
#define IN                                                                     \
    "{\"op\": \"input\", \"name\": \"i\", \"writes\": [{\"name\": \"i\", "     \
    "\"shape\": [1, 2]}]}"

static void test_bad(void **state) {
    (void)state;
    refuse("{\"amphora\": 2}", "error: its version is 2; only 1 is read\n");
    refuse("{\"amphora\": 1}", "error: needs \"constants\", a list\n");
    refuse(HEAD "{\"kind\": \"f8\"}]}",
           "error: constants[0]: \"kind\" must be seeded, f32, f64, f16, bf16, "
           "i8, u8, i16 or i32\n");
    refuse(HEAD "{\"kind\": \"seeded\", \"shape\": [2, 3], "
                "\"order\": [1, 1]}]}",
           "error: constants[0]: \"order\" must have each axis once\n");
    refuse(HEAD "{\"kind\": \"f32\", \"shape\": [2], \"offset\": 0}]}",
           "error: constants[0]: has an offset, but no file of \"weights\" is "
           "named\n");
    refuse(HEAD "{\"kind\": \"seeded\", \"shape\": [65536, 65536]}]}",
           "error: constants[0]: shape 65536x65536 is too large\n");
    refuse("{\"amphora\": 1, \"weights\": \"../x\"}",
           "error: \"weights\" must name a file in the same folder\n");
    refuse(HEAD "], \"nodes\": [" IN ", {\"op\": \"warp\"}]}",
           "error: nodes[1]: \"warp\" is not an operator\n");
    refuse(HEAD "], \"nodes\": [" IN ", " IN "]}",
           "error: nodes[1]: layer \"i\" is there twice, or has no name\n");
    refuse(HEAD "], \"nodes\": [" IN
                ", {\"op\": \"act\", \"name\": \"a\", \"reads\": [\"z\"]}]}",
           "error: nodes[1]: tensor \"z\" is not written above\n");
    refuse(HEAD "], \"nodes\": [" IN
                ", {\"op\": \"act\", \"name\": \"a\", \"reads\": [\"i\"], "
                "\"writes\": [{\"name\": \"a\", \"shape\": [1, 2]}], "
                "\"attributes\": {\"act\": \"relu\", \"kernel\": 3}}]}",
           "error: nodes[1]: attribute \"kernel\" is not an attribute of this "
           "operator\n");
    refuse(HEAD "], \"nodes\": [" IN
                ", {\"op\": \"act\", \"name\": \"a\", \"reads\": [\"i\"], "
                "\"writes\": [{\"name\": \"a\", \"shape\": [1, 3]}], "
                "\"attributes\": {\"act\": \"relu\"}}], \"outputs\": [\"a\"]}",
           "error: tensor \"a\" is said to be 1x3, but its layer makes 1x2\n");
}

static void test_hostile(void **state) {
    (void)state;
    enum { DEEP = 1000000 };
    char *deep = arena_alloc(arena, DEEP + 20, 1);
    memcpy(deep, "{\"amphora\": ", 12);
    memset(deep + 12, '[', DEEP);
    assert_null(read_bytes(".json", deep, DEEP + 12));
    assert_string_equal(messages(), "error: nested too deep\n");
    Bytes tiny;
    Graph *g = read_path("examples/tiny.prototxt");
    Text bytes = text_new(arena);
    const char *json = graph_to_json(arena, g, "w", &bytes);
    tiny = (Bytes){(const uint8_t *)json, strlen(json)};
    mutate(".json", tiny.at, tiny.len, 29);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {T(test_examples),  T(test_real),
                                       T(test_constants), T(test_schema),
                                       T(test_bad),       T(test_hostile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
