/* test_tensor.c - operators on tensors of any rank, and the tables of
 * functions: values by hand, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net.h"

#include <math.h>
#include <string.h>

static const float six[] = {1, 2, 3, 4, 5, 6};
static const Shape two_by_three = {2, {2, 3}};

static ConstId values(Net *net, Shape shape, const float *value) {
    Const c = {.shape = shape, .kind = CONST_F32, .data = value};
    return graph_add_const(net->g, c);
}

/* The node's output, given the inputs in order. */
static const float *run(Net *net, NodeId id, uint32_t n,
                        const float *const *in) {
    TensorId out = net_out(net, id);
    graph_mark_output(net->g, out);
    return graph_eval(net->arena, net->g, n, in).at[out.i];
}

static void expect(const float *got, const float *want, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        assert_float_equal(got[i], want[i], 1e-5);
}

static NodeId over_six(Net *net, OpKind op) {
    return net_node1(net, op, "y", net_input(net, "x", two_by_three));
}

static void transposes(void **state) {
    (void)state;
    Net net = net_new();
    NodeId id = over_six(&net, OP_TRANSPOSE);
    graph_node(net.g, id)->attr.perm = (Shape){2, {1, 0}};
    expect(run(&net, id, 1, (const float *[]){six}),
           (const float[]){1, 4, 2, 5, 3, 6}, 6);
    net_free(&net);
}

static void reduces(void **state) {
    (void)state;
    static const struct {
        ReduceKind kind;
        uint32_t axes;
        float want[3];
    } row[] = {
        {REDUCE_MEAN, 1, {2.5F, 3.5F, 4.5F}},
        {REDUCE_SUM, 2, {6, 15}},
        {REDUCE_PROD, 3, {720}},
        {REDUCE_MAX, 2, {3, 6}},
        {REDUCE_MIN, 1, {1, 2, 3}},
        {REDUCE_L1, 3, {21}},
        {REDUCE_L2, 1, {4.1231056F, 5.3851648F, 6.7082039F}},
        {REDUCE_SQUARES, 2, {14, 77}},
        {REDUCE_LOG_SUM, 2, {1.7917595F, 2.7080502F}},
        {REDUCE_LOG_SUM_EXP, 2, {3.4076059F, 6.4076059F}},
        {REDUCE_ARGMAX, 2, {2, 2}},
        {REDUCE_ARGMIN_LAST, 1, {0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Net net = net_new();
        NodeId id = over_six(&net, OP_REDUCE);
        graph_node(net.g, id)->attr.reduce.kind = row[i].kind;
        graph_node(net.g, id)->attr.reduce.axes = row[i].axes;
        const float *got = run(&net, id, 1, (const float *[]){six});
        const Shape *shape =
            &graph_tensor(net.g, graph_node(net.g, id)->out[0])->shape;
        expect(got, row[i].want, (uint32_t)shape_count(shape));
        net_free(&net);
    }
}

static void gathers_with_factors(void **state) {
    (void)state;
    static const float index[] = {2, 0, 1, 1}, factor[] = {1, 0.5F, 2, -1};
    Net net = net_new();
    NodeId id = over_six(&net, OP_GATHER);
    Node *node = graph_node(net.g, id);
    node->attr.gather.axis = 1;
    node->attr.gather.n = node->attr.gather.taps = 2;
    node->constant[CONST_INDEX] = values(&net, (Shape){2, {2, 2}}, index);
    node->constant[CONST_VALUE] = values(&net, (Shape){2, {2, 2}}, factor);
    expect(run(&net, id, 1, (const float *[]){six}),
           (const float[]){3.5F, 2, 8, 5}, 4);
    net_free(&net);
}

static void norms(void **state) {
    (void)state;
    Net net = net_new();
    NodeId id = over_six(&net, OP_NORM);
    graph_node(net.g, id)->attr.norm.axis = 1;
    expect(
        run(&net, id, 1, (const float *[]){six}),
        (const float[]){-1.2247449F, 0, 1.2247449F, -1.2247449F, 0, 1.2247449F},
        6);
    net_free(&net);
}

/* One matrix by two, from a constant. */
static void multiplies_stacks(void **state) {
    (void)state;
    static const float two[] = {1, 0, 0, 1, 2, 0, 0, 2, 1, 1, 1, 1};
    Net net = net_new();
    TensorId x = net_input(&net, "x", (Shape){3, {1, 2, 3}});
    NodeId stack = net_node(&net, OP_CONSTANT, "c", 0, NULL);
    graph_node(net.g, stack)->attr.reshape = (Shape){3, {2, 3, 2}};
    graph_node(net.g, stack)->constant[CONST_VALUE] =
        values(&net, (Shape){3, {2, 3, 2}}, two);
    TensorId c = net_out(&net, stack);
    NodeId id = net_node(&net, OP_MATMUL, "y", 2, (TensorId[]){x, c});
    expect(run(&net, id, 1, (const float *[]){six}),
           (const float[]){7, 2, 16, 5, 5, 7, 11, 19}, 8);
    net_free(&net);
}

static void functions_of_one_number(void **state) {
    (void)state;
    static const float in[] = {-3.5F, -0.5F, 0.5F, 2.5F, 4, 0};
    static const struct {
        Act act;
        float want[6];
    } row[] = {
        {{ACT_SILU, 0, 0, 0},
         {-0.1025867F, -0.1887703F, 0.3112297F, 2.3103548F, 3.9280552F, 0}},
        {{ACT_HARD_SWISH, 0, 0, 0},
         {0, -0.2083333F, 0.2916667F, 2.2916667F, 4, 0}},
        {{ACT_HARD_SIGMOID, 0.5, 0.25, 0}, {0, 0, 0.5F, 1, 1, 0.25F}},
        {{ACT_ELU, 2, 0, 0}, {-1.9396052F, -0.7869387F, 0.5F, 2.5F, 4, 0}},
        {{ACT_ROUND, 0, 0, 0}, {-4, 0, 0, 2, 4, 0}},
        {{ACT_SHRINK, 1, 0.25, 0}, {-3.25F, 0, 0, 2.25F, 3.75F, 0}},
        {{ACT_NOT, 0, 0, 0}, {0, 0, 0, 0, 0, 1}},
        {{ACT_SIGN, 0, 0, 0}, {-1, -1, 1, 1, 1, 0}},
        {{ACT_TRUNC, 0, 0, 0}, {-3, 0, 0, 2, 4, 0}},
        {{ACT_TO_F16, 0, 0, 0}, {-3.5F, -0.5F, 0.5F, 2.5F, 4, 0}},
        {{ACT_SOFTPLUS, 0, 0, 0},
         {0.0297500F, 0.4740770F, 0.9740770F, 2.5788868F, 4.0181499F,
          0.6931472F}},
        {{ACT_GELU, 0, 0, 0},
         {-0.0008142F, -0.1542688F, 0.3457312F, 2.4844758F, 3.9998733F, 0}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Net net = net_new();
        NodeId id = over_six(&net, OP_ACT);
        graph_node(net.g, id)->act = row[i].act;
        expect(run(&net, id, 1, (const float *[]){in}), row[i].want, 6);
        net_free(&net);
    }
}

static void functions_of_two_numbers(void **state) {
    (void)state;
    static const float other[] = {2, 2, 2, -1, 0, 6};
    static const struct {
        EltKind kind;
        float want[6];
    } row[] = {
        {ELT_SUB, {-1, 0, 1, 5, 5, 0}},
        {ELT_DIV, {0.5F, 1, 1.5F, -4, INFINITY, 1}},
        {ELT_MIN, {1, 2, 2, -1, 0, 6}},
        {ELT_POW, {1, 4, 9, 0.25F, 1, 46656}},
        {ELT_LESS, {1, 0, 0, 0, 0, 0}},
        {ELT_GREATER_EQUAL, {0, 1, 1, 1, 1, 1}},
        {ELT_EQUAL, {0, 1, 0, 0, 0, 1}},
        {ELT_AND, {1, 1, 1, 1, 0, 1}},
        {ELT_XOR, {0, 0, 0, 0, 1, 0}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Net net = net_new();
        TensorId in[] = {net_input(&net, "a", two_by_three),
                         net_input(&net, "b", two_by_three)};
        NodeId id = net_node(&net, OP_ELTWISE, "y", 2, in);
        graph_node(net.g, id)->attr.elt.kind = row[i].kind;
        const float *got = run(&net, id, 2, (const float *[]){six, other});
        for (int k = 0; k < 6; k++)
            assert_true(got[k] == row[i].want[k]);
        net_free(&net);
    }
}

static void refuse(Net *net, NodeId id, const char *want) {
    graph_add_output(net->g, id, "y");
    assert_false(graph_infer(net->g, id, net->diag));
    assert_string_equal(diag_at(net->diag, 0)->text, want);
    net_free(net);
}

static void wrong_attributes(void **state) {
    (void)state;
    static const float index[] = {0, 3};
    Net net = net_new();
    NodeId id = over_six(&net, OP_TRANSPOSE);
    graph_node(net.g, id)->attr.perm = (Shape){2, {1, 1}};
    refuse(&net, id,
           "layer \"y\": its order of axes does not fit its input 2x3");
    net = net_new();
    id = over_six(&net, OP_REDUCE);
    graph_node(net.g, id)->attr.reduce.axes = 4;
    refuse(&net, id, "layer \"y\": reduces axes outside its input 2x3");
    net = net_new();
    id = over_six(&net, OP_GATHER);
    Node *node = graph_node(net.g, id);
    node->attr.gather.axis = 1;
    node->attr.gather.n = 2;
    node->attr.gather.taps = 1;
    node->constant[CONST_INDEX] = values(&net, (Shape){2, {2, 1}}, index);
    refuse(&net, id, "layer \"y\": an index is outside 0..2");
    net = net_new();
    TensorId x = net_input(&net, "x", two_by_three);
    id = net_node(&net, OP_MATMUL, "y", 2, (TensorId[]){x, x});
    refuse(&net, id, "layer \"y\": cannot multiply 2x3 by 2x3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes),
        cmocka_unit_test(reduces),
        cmocka_unit_test(gathers_with_factors),
        cmocka_unit_test(norms),
        cmocka_unit_test(multiplies_stacks),
        cmocka_unit_test(functions_of_one_number),
        cmocka_unit_test(functions_of_two_numbers),
        cmocka_unit_test(wrong_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
