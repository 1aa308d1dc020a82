/* Whole networks: the examples, whose sizes must be the published ones, and
 * the real files of ../shared/data/caffe where they are present. */
#include "frontends/frontend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* What is known of a network: nodes, trainable parameters (statistics of
 * batch normalisation are not trained) and multiplications of convolutions
 * and inner products, and its last output. */
typedef struct Known {
    const char *path;
    uint32_t nodes;
    uint64_t parameters, macs;
    const char *output, *shape;
} Known;

/* Parameters: those of the papers, where they tell; of ResNet-50, VGG-16,
 * MobileNetV2 and SqueezeNet exactly what other implementations count. */
static const Known examples[] = {
    {"tiny", 17, 12634, 864576, "probability", "1x10"},
    {"googlenet", 143, 6998552, 1582671872, "probability", "1x1000"},
    {"resnet50", 229, 25557032, 3857973248, "probability", "1x1000"},
    {"mobilenet-v2", 205, 3504872, 300774272, "probability", "1x1000"},
    {"squeezenet", 67, 1235496, 387747520, "probability", "1x1000x1x1"},
    {"vgg16", 40, 138357544, 15470264320, "probability", "1x1000"},
    {"inception-v3", 405, 23834568, 5713216096, "probability", "1x1000"},
    {"yolov2-608", 97, 51028425, 31492785152, "boxes", "1x425x19x19"},
    {"densenet-cell", 42, 225536, 175013888, "t/pool", "1x96x14x14"},
};

static const Known real[] = {
    {"bvlc_alexnet_deploy", 24, 60965224, 724406816, "prob", "1x1000"},
    {"bvlc_googlenet_deploy", 143, 6998552, 1582671872, "prob", "1x1000"},
    {"lenet", 9, 431080, 2293000, "prob", "1x10"},
    {"cifar10_full", 14, 89578, 12298240, "prob", "1x10"},
    {"ResNet-50-deploy", 229, 25557096, 3857973248, "prob", "1x1000"},
    {"SE-ResNet-50", 325, 28088024, 3860488192, "prob", "1x1000"},
    {"squeezenet_v1.1_deploy", 67, 1235496, 387747520, "prob", "1x1000x1x1"},
    {"mobilenet_v1_deploy", 112, 4231976, 568740352, "prob", "1x1000x1x1"},
    {"mobilenet_v2_deploy", 209, 3505960, 429111936, "prob", "1x1000x1x1"},
    {"deploy_densenet121", 550, 7978856, 2834161664, "prob", "1x1000"},
    {"deploy_inception-v3", 405, 23834568, 5713216096, "prob", "1x1000"},
};

static uint64_t parameters(const Graph *g) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++)
        for (int role = 0; role < CONST_ROLES; role++)
            if (g->node.at[i].constant[role].i != NONE &&
                g->node.at[i].op != OP_BN)
                n += shape_count(
                    &graph_const(g, g->node.at[i].constant[role])->shape);
    return n;
}

static uint64_t macs(const Graph *g) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->constant[CONST_WEIGHT].i == NONE)
            continue;
        const Shape *out = &graph_tensor(g, node->out[0])->shape;
        n += shape_count(&graph_const(g, node->constant[CONST_WEIGHT])->shape) *
             shape_dim(out, 2) * shape_dim(out, 3);
    }
    return n;
}

static void check(const char *folder, const Known *known) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    ImportOptions options = {0};
    ImportInfo info;
    const char *path =
        arena_printf(arena, "%s/%s.prototxt", folder, known->path);
    Graph *g = frontend_read(arena, diag, path, &options, &info);
    diag_print(diag, stderr);
    assert_non_null(g);
    assert_int_equal(diag_count(diag), 0);
    assert_int_equal(g->node.n, known->nodes);
    assert_int_equal(parameters(g), known->parameters);
    assert_int_equal(macs(g), known->macs);
    assert_int_equal(g->output.n, 1);
    const Tensor *out = graph_tensor(g, g->output.at[0]);
    assert_string_equal(out->name, known->output);
    assert_string_equal(shape_text(arena, &out->shape), known->shape);
    arena_free(arena);
}

static void test_examples(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check("examples", &examples[i]);
}

static const char *const data = "../shared/data/caffe";

static void test_real(void **state) {
    (void)state;
    if (!file_exists(data))
        skip();
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        check(data, &real[i]);
}

static void test_template(void **state) {
    (void)state;
    if (!file_exists(data))
        skip();
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    ImportOptions options = {0};
    ImportInfo info;
    const char *path =
        "../shared/data/caffe/bad_mlsuite_goog_template.prototxt";
    assert_null(frontend_read(arena, diag, path, &options, &info));
    assert_int_equal(diag_count(diag), 2);
    assert_string_equal(diag_at(diag, 0)->text, "'224X224_1' is not a number");
    assert_int_equal(diag_at(diag, 0)->loc.line, 10);
    assert_int_equal(diag_at(diag, 0)->loc.col, 12);
    arena_free(arena);
}

static void test_train_test(void **state) {
    (void)state;
    if (!file_exists(data))
        skip();
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    ImportOptions options = {0};
    ImportInfo info;
    const char *path = "../shared/data/caffe/lenet_train_test.prototxt";
    assert_null(frontend_read(arena, diag, path, &options, &info));
    assert_string_equal(
        diag_at(diag, 0)->text,
        "layer \"mnist\": the file does not say the shape of input \"data\"; "
        "give it, for example --shape data=1x1x28x28");
    ShapeSetting shape = {"data", shape_nchw(1, 1, 28, 28)};
    options.shapes = &shape;
    options.n_shapes = 1;
    Graph *g = frontend_read(arena, diag, path, &options, &info);
    assert_non_null(g);
    assert_int_equal(g->node.n, 9);
    assert_int_equal(parameters(g), 431080);
    assert_string_equal(g->node.at[8].name, "loss");
    assert_int_equal(g->node.at[8].op, OP_SOFTMAX);
    arena_free(arena);
}

/* The same file gives the same graph, constants included. */
static void test_same_twice(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    ImportOptions options = {.seed = 7};
    ImportInfo info;
    const char *text[2];
    for (int i = 0; i < 2; i++) {
        Graph *g = frontend_read(arena, diag, "examples/mobilenet-v2.prototxt",
                                 &options, &info);
        text[i] = graph_print(arena, g);
    }
    assert_string_equal(text[0], text[1]);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),   cmocka_unit_test(test_real),
        cmocka_unit_test(test_template),   cmocka_unit_test(test_train_test),
        cmocka_unit_test(test_same_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
