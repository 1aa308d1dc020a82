/* Keras: both dialects of JSON, nested and shared layers, the three layouts of
 * HDF5, bad and hostile files. Values: tests/truth_keras.py. */
#include "net.h"

#include "base/json.h"

#ifdef HAVE_HDF5
#define H5_USE_110_API
#include <hdf5.h>
#endif
#ifdef HAVE_ZIP
#include <zip.h>
#endif

static Graph *read_text(const char *text) {
    return read_bytes(".json", text, strlen(text));
}

#define LAYER(kind, name, config, in)                                          \
    "{\"class_name\": \"" kind "\", \"name\": \"" name "\", \"config\": "      \
    "{\"name\": \"" name "\"" config "}, \"inbound_nodes\": [" in "]}"
#define FROM(name) "[[\"" name "\", 0, 0, {}]]"
#define FROM3(name)                                                            \
    "{\"args\": [{\"class_name\": \"__keras_tensor__\", \"config\": "          \
    "{\"keras_history\": [\"" name "\", 0, 0]}}], \"kwargs\": {}}"
#define INPUT                                                                  \
    LAYER("InputLayer", "x", ", \"batch_input_shape\": [null, 2, 2, 2]", "")
#define MODEL(layers, out)                                                     \
    "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", "          \
    "\"layers\": [" layers "], \"input_layers\": [[\"x\", 0, 0]], "            \
    "\"output_layers\": [[\"" out "\", 0, 0]]}}"
#define CONV                                                                   \
    ", \"filters\": 1, \"kernel_size\": [1, 1], \"activation\": \"relu\""

static void test_dialects(void **state) {
    static const char *const texts[] = {
        MODEL(INPUT "," LAYER("Conv2D", "c", CONV, FROM("x")), "c"),
        MODEL(INPUT "," LAYER("Conv2D", "c", CONV, FROM3("x")), "c"),
        MODEL(LAYER("Conv2D", "c", CONV, "[\"x\", 0, 0, {}]") "," INPUT, "c"),
        "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": "
        "\"Conv2D\", \"config\": {\"name\": \"c\", \"batch_input_shape\": "
        "[null, 2, 2, 2]" CONV "}}]}",
    };
    (void)state;
    for (int i = 0; i < 4; i++) {
        Graph *g = read_text(texts[i]);
        assert_string_equal(messages(), "");
        const char *x = i < 3 ? "x" : "c_input";
        assert_string_equal(
            nodes(g, " act "),
            arena_printf(arena,
                         "input() %s 1x2x2x2\nconv(%s) c 1x1x2x2\n"
                         "act(c) c/activation 1x1x2x2 act=relu\n",
                         x, x));
    }
}

static void test_nested(void **state) {
    (void)state;
    Graph *g = read_text(MODEL(
        INPUT "," LAYER(
            "Sequential", "inner",
            ", \"layers\": [{\"class_name\": \"ReLU\", \"config\": "
            "{\"name\": \"r\", \"max_value\": 6}}]",
            FROM("x") ", " FROM(
                "inner")) "," LAYER("Add", "a", "",
                                    "[[\"inner\", 0, 0, {}], [\"inner\", 1, 0, "
                                    "{}]]") "," LAYER("GlobalAveragePooling2D",
                                                      "g", "",
                                                      FROM(
                                                          "a")) "," LAYER("Dens"
                                                                          "e",
                                                                          "d",
                                                                          ", "
                                                                          "\"un"
                                                                          "its"
                                                                          "\": "
                                                                          "3, "
                                                                          "\"ac"
                                                                          "tiva"
                                                                          "tion"
                                                                          "\": "
                                                                          "\"so"
                                                                          "ftma"
                                                                          "x\"",
                                                                          FROM(
                                                                              "g")),
        "d"));
    assert_string_equal(messages(), "");
    assert_string_equal(nodes(g, " act "), "input() x 1x2x2x2\n"
                                           "act(x) r 1x2x2x2 act=relu6\n"
                                           "act(r) r_2 1x2x2x2 act=relu6\n"
                                           "eltwise(r r_2) a 1x2x2x2\n"
                                           "pool(a) g/reduce 1x2x1x1\n"
                                           "fc(g/reduce) d 1x3\n"
                                           "softmax(d) d/activation 1x3\n");
}

static void refuse(const char *text, const char *want) {
    assert_null(read_text(text));
    assert_string_equal(messages(), want);
}

static void test_bad(void **state) {
    (void)state;
    refuse(MODEL(INPUT "," LAYER("Warp", "w", "", FROM("x")) "," LAYER(
                     "Bend", "b", "", FROM("x")),
                 "b"),
           "error: layer \"w\" (Warp): this kind of layer is not supported; "
           "--shape w=1x... makes it a call of a function of yours\n"
           "error: layer \"b\" (Bend): this kind of layer is not supported; "
           "--shape b=1x... makes it a call of a function of yours\n");
    refuse(MODEL(INPUT "," LAYER("ReLU", "r", "", FROM("z")), "r"),
           "error: layer \"r\" reads a layer that does not exist, or waits for "
           "itself\n");
    refuse("{\"class_name\": \"Functional\", \"config\": {}}",
           "error: a model has no layers\n");
    const char *good =
        MODEL(INPUT "," LAYER("Conv2D", "c", CONV, FROM("x")), "c");
    mutate(".json", good, strlen(good), 5);
}

/* ---- HDF5 ---- */

#ifdef HAVE_HDF5

static void write_set(hid_t file, const char *name, int rank,
                      const hsize_t *dim, const float *value) {
    hid_t link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    hid_t space = H5Screate_simple(rank, dim, NULL);
    hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, link, H5P_DEFAULT,
                           H5P_DEFAULT);
    assert_true(set >= 0);
    if (value)
        H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(link);
}

static void write_text(hid_t file, const char *name, const char *text,
                       bool fixed) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, fixed ? strlen(text) + 1 : H5T_VARIABLE);
    hid_t at = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(at, type, fixed ? (const void *)text : (const void *)&text);
    H5Aclose(at);
    H5Sclose(space);
    H5Tclose(type);
}

static const char *const conv_json =
    MODEL(INPUT "," LAYER("Conv2D", "c", CONV, FROM("x")), "c");

/* out = 2 a - b + 0.5, of at least 0. */
static const char *make_file(const char *kernel, const char *bias,
                             const char *config, bool fixed) {
    static const hsize_t dims[] = {1, 1, 2, 1}, one[] = {1};
    static const float w[] = {2, -1}, b[] = {0.5f};
    const char *path = arena_printf(arena, "%s/amphora-test-%ld.h5", scratch(),
                                    (long)getpid());
    remove(path);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    write_set(file, kernel, 4, dims, w);
    write_set(file, bias, 1, one, b);
    if (config)
        write_text(file, "model_config", config, fixed);
    H5Fclose(file);
    return path;
}

static void check_values(const Graph *g) {
    static const float in[] = {1, 0, 2, 3, 1, 1, 5, 0};
    static const float want[] = {1.5f, 0, 0, 6.5f};
    assert_string_equal(messages(), "");
    const float *out = run(g, (const float *const[]){in}, 1);
    for (int i = 0; i < 4; i++)
        assert_true(fabsf(out[i] - want[i]) < 1e-6f);
}

static void test_hdf5(void **state) {
    static const char *const sets[][2] = {
        {"model_weights/c/c/kernel:0", "model_weights/c/c/bias:0"},
        {"model_weights/c/m/c/kernel", "model_weights/c/m/c/bias"},
        {"layers/conv2d/vars/0", "layers/conv2d/vars/1"},
    };
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *path =
            make_file(sets[i][0], sets[i][1], i < 2 ? conv_json : NULL, i == 0);
        diag = diag_new(arena);
        if (i < 2) {
            check_values(frontend_read(arena, diag, path, &options, &info));
        } else {
            assert_null(frontend_read(arena, diag, path, &options, &info));
            assert_string_equal(messages(),
                                "error: it holds weights but no model: read "
                                "the model's JSON with --weights\n");
        }
        options.weights = path;
        check_values(read_text(conv_json));
        options.weights = NULL;
        remove(path);
    }
}

static void test_hdf5_bombs(void **state) {
    static const hsize_t huge[] = {1 << 20, 1000};
    Bytes bytes;
    (void)state;
    const char *path = make_file("model_weights/c/c/kernel:0",
                                 "model_weights/c/c/bias:0", conv_json, true);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    write_set(file, "model_weights/z/z/kernel:0", 2, huge, NULL);
    H5Fclose(file);
    diag = diag_new(arena);
    assert_null(frontend_read(arena, diag, path, &options, &info));
    assert_string_equal(messages(),
                        "error: \"model_weights/z/z/kernel:0\" claims more "
                        "values than its bytes can hold\n");
    assert_true(file_read(arena, diag, path, &bytes));
    assert_null(read_bytes(".h5", bytes.at, bytes.len / 2));
    assert_string_equal(messages(), "error: the HDF5 in it is damaged\n");
    remove(path);
}

/* A file of version 2 with something strange in it. */
static hid_t open_strange(const char **path) {
    *path = make_file("model_weights/c/c/kernel:0", "model_weights/c/c/bias:0",
                      conv_json, true);
    diag = diag_new(arena);
    return H5Fopen(*path, H5F_ACC_RDWR, H5P_DEFAULT);
}

static void test_hdf5_groups(void **state) {
    const char *path;
    hid_t file = open_strange(&path), at = file;
    (void)state;
    H5Lcreate_hard(file, "/", file, "model_weights/cycle", 0, 0);
    H5Lcreate_soft("/model_weights/loop", file, "model_weights/loop", 0, 0);
    H5Lcreate_external("/etc/passwd", "/", file, "model_weights/other", 0, 0);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    check_values(frontend_read(arena, diag, path, &options, &info));
    for (int i = 0; i < 200; i++) {
        hid_t inner = H5Gcreate2(at, "deep", 0, 0, 0);
        if (at != file)
            H5Gclose(at);
        at = inner;
    }
    H5Gclose(at);
    H5Fclose(file);
    assert_null(frontend_read(arena, diag, path, &options, &info));
    assert_string_equal(messages(),
                        "error: \"deep/deep/deep/deep/deep/deep/deep/deep/\" "
                        "is nested too deep\n");
    remove(path);
}

static void test_hdf5_elsewhere(void **state) {
    const char *path;
    const hsize_t six = 6;
    hid_t file = open_strange(&path), space = H5Screate_simple(1, &six, NULL);
    hid_t made = H5Pcreate(H5P_DATASET_CREATE);
    (void)state;
    H5Pset_external(made, "/etc/passwd", 0, 24);
    H5Dclose(H5Dcreate2(file, "model_weights/x:0", H5T_IEEE_F32LE, space, 0,
                        made, 0));
    H5Pclose(made);
    H5Sclose(space);
    H5Fclose(file);
    assert_null(frontend_read(arena, diag, path, &options, &info));
    assert_string_equal(messages(), "error: \"model_weights/x:0\" has its "
                                    "values in another file\n");
    remove(path);
}

#ifdef HAVE_ZIP

static const char *make_archive(const char *weights, const char *config,
                                zip_int32_t method) {
    const char *path = arena_printf(arena, "%s/amphora-test-%ld.keras",
                                    scratch(), (long)getpid());
    Bytes bytes;
    int error;
    assert_true(file_read(arena, diag, weights, &bytes));
    remove(path);
    zip_t *zip = zip_open(path, ZIP_CREATE, &error);
    zip_file_add(zip, "config.json",
                 zip_source_buffer(zip, config, strlen(config), 0), 0);
    zip_file_add(zip, "model.weights.h5",
                 zip_source_buffer(zip, bytes.at, bytes.len, 0), 0);
    zip_set_file_compression(zip, 0, method, 0);
    zip_set_file_compression(zip, 1, method, 0);
    assert_int_equal(zip_close(zip), 0);
    return path;
}

/* As Keras writes it. */
static void test_stored(void **state) {
    (void)state;
    const char *weights =
        make_file("layers/conv2d/vars/0", "layers/conv2d/vars/1", NULL, false);
    const char *path = make_archive(weights, conv_json, ZIP_CM_STORE);
    Bytes bytes;
    diag = diag_new(arena);
    check_values(frontend_read(arena, diag, path, &options, &info));
    assert_true(file_read(arena, diag, path, &bytes));
    uint8_t *end = arena_alloc(arena, bytes.len, 1);
    uint8_t *at = end + bytes.len - 3;
    memcpy(end, bytes.at, bytes.len);
    while (memcmp(at -= 1, "PK\1\2", 4)) /* the second file's entry */
        assert_true(at > end);
    memset(at + 42, 0xff, 3); /* far behind the archive's end */
    assert_null(read_bytes(".keras", end, bytes.len));
    mutate(".keras", bytes.at, bytes.len, bytes.len / 60);
    remove(path);
    remove(weights);
}

static void test_archive(void **state) {
    (void)state;
    const char *weights =
        make_file("layers/conv2d/vars/0", "layers/conv2d/vars/1", NULL, false);
    const char *path = make_archive(weights, conv_json, ZIP_CM_DEFLATE);
    Bytes bytes;
    diag = diag_new(arena);
    check_values(frontend_read(arena, diag, path, &options, &info));
    assert_true(file_read(arena, diag, path, &bytes));
    assert_null(read_bytes(".keras", bytes.at, bytes.len - 30));
    mutate(".keras", bytes.at, bytes.len, bytes.len / 60);
    char *zeros = arena_alloc(arena, 80 << 20, 1);
    memset(zeros, ' ', 80 << 20);
    zeros[(80 << 20) - 1] = '\0';
    const char *bomb = make_archive(weights, zeros, ZIP_CM_DEFLATE);
    diag = diag_new(arena);
    assert_null(frontend_read(arena, diag, bomb, &options, &info));
    assert_string_equal(messages(), "error: \"config.json\" claims more bytes "
                                    "than its packed ones can hold\n");
    remove(path);
    remove(weights);
}
#endif
#endif

/* ---- real models ---- */

#define DATA "../shared/data/keras/"

static void test_real(void **state) {
    static const struct {
        const char *file;
        uint32_t nodes;
        uint64_t parameters;
    } rows[] = {
        {"mlcommons_pretrainedResnet_keras2.4.json", 37, 78186},
        {"keras310_mobilenet_v2_96.json", 209, 0},
        {"keras310_vgg16_64.json", 38, 39929674},
    };
    (void)state;
    if (!file_exists(DATA))
        skip();
    for (int i = 0; i < 3; i++) {
        diag = diag_new(arena);
        Graph *g = frontend_read(arena, diag,
                                 arena_printf(arena, DATA "%s", rows[i].file),
                                 &options, &info);
        assert_string_equal(messages(), "");
        assert_int_equal(g->node.n, rows[i].nodes);
        if (rows[i].parameters)
            assert_int_equal(parameters(g), rows[i].parameters);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_dialects),    T(test_nested),
        T(test_bad),         T(test_real),
#ifdef HAVE_HDF5
        T(test_hdf5),        T(test_hdf5_bombs),
        T(test_hdf5_groups), T(test_hdf5_elsewhere),
#ifdef HAVE_ZIP
        T(test_stored),      T(test_archive),
#endif
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
