/* test_quant_rules.c - which rule a layer on codes follows, and its factors. */
#include "net.h"

#include "graph/eval.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

static const Quant a_quant = {QUANT_I8, 2, 0.5, QUANT_UP},
                   b_quant = {QUANT_I8, 1, 0.125, QUANT_UP},
                   y_quant = {QUANT_I8, -3, 0.25, QUANT_UP};

/* Reads a and, of two, b: [1, 2, 4, 4]. Its output is quantised, shape aside.
 */
static Node *layer(Net *net, OpKind op, uint32_t n_in) {
    TensorId in[2];
    in[0] = net_input(net, "a", shape_nchw(1, 2, 4, 4));
    in[1] = net_input(net, "b", shape_nchw(1, 2, 4, 4));
    graph_tensor(net->g, in[0])->quant = a_quant;
    graph_tensor(net->g, in[1])->quant = b_quant;
    NodeId id = net_node(net, op, "y", n_in, in);
    TensorId out = graph_add_output(net->g, id, "y");
    graph_tensor(net->g, out)->quant = y_quant;
    return graph_node(net->g, id);
}

static Quant *quant_of(const Net *net, TensorId t) {
    return &graph_tensor(net->g, t)->quant;
}

/* ---- biases ---- */

static QuantRule rule_with_bias(double in, double weight, double bias) {
    Net net = net_new();
    static const int8_t codes[4] = {1, 2, 3, 4};
    static const int32_t biases[2] = {5, 6};
    double weights[] = {weight, weight}, units[] = {in * weight, bias};
    Node *node = layer(&net, OP_CONV, 1);
    quant_of(&net, node->in[0])->scale = in;
    node->attr.conv.out_c = 2;
    node->attr.conv.kernel[0] = node->attr.conv.kernel[1] = 1;
    Const w = {.shape = {4, {2, 2, 1, 1}},
               .kind = CONST_I8,
               .data = codes,
               .mul0 = weights};
    Const b = {
        .shape = {1, {2}}, .kind = CONST_I32, .data = biases, .mul0 = units};
    node->constant[CONST_WEIGHT] = graph_add_const(net.g, w);
    node->constant[CONST_BIAS] = graph_add_const(net.g, b);
    QuantRule rule = quant_rule(net.g, node);
    net_free(&net);
    return rule;
}

/* To a thousandth. */
static void test_biases(void **state) {
    (void)state;
    static const double scales[][2] = {
        {0.5, 0.25}, {1e-3, 1e-3}, {8, 4}, {1, 1}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        double in = scales[i][0], weight = scales[i][1], unit = in * weight;
        assert_int_equal(rule_with_bias(in, weight, unit), QUANT_SUMS);
        assert_int_equal(rule_with_bias(in, weight, unit * 1.0009), QUANT_SUMS);
        assert_int_equal(rule_with_bias(in, weight, unit * 0.9991), QUANT_SUMS);
        assert_int_equal(rule_with_bias(in, weight, unit * 1.0011),
                         QUANT_REALS);
        assert_int_equal(rule_with_bias(in, weight, unit * 0.9989),
                         QUANT_REALS);
        assert_int_equal(rule_with_bias(in, weight, unit * 2), QUANT_REALS);
    }
}

/* ---- sums, products ---- */

static void same_scale(QuantScale a, double real) {
    QuantScale b = quant_scale(real);
    assert_int_equal(a.factor, b.factor);
    assert_int_equal(a.shift, b.shift);
}

static void check_sum(EltKind kind, QuantType a, QuantType b, uint32_t left) {
    Net net = net_new();
    Node *node = layer(&net, OP_ELTWISE, 2);
    node->attr.elt.kind = kind;
    quant_of(&net, node->in[0])->type = a;
    quant_of(&net, node->in[1])->type = b;
    QuantLayer l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.rule, QUANT_ADDS);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.left, left);
    assert_int_equal(l.minus, kind == ELT_SUB);
    assert_int_equal(l.zero_in[0], 2);
    assert_int_equal(l.zero_in[1], 1);
    assert_int_equal(l.zero_out, -3);
    same_scale(l.scale[0], 0.5);
    same_scale(l.scale[1], 0.125);
    same_scale(l.scale[2], 1 / (ldexp(1, (int)left) * 0.25));
    quant_of(&net, node->in[1])->scale = 4;
    l = quant_layer(net.arena, net.g, node);
    same_scale(l.scale[0], 0.0625);
    same_scale(l.scale[1], 0.5);
    same_scale(l.scale[2], 8 / (ldexp(1, (int)left) * 0.25));
    net_free(&net);
}

static void test_sums(void **state) {
    (void)state;
    check_sum(ELT_ADD, QUANT_I8, QUANT_I8, 20);
    check_sum(ELT_SUB, QUANT_I8, QUANT_U8, 20);
    check_sum(ELT_ADD, QUANT_I16, QUANT_I8, 15);
    check_sum(ELT_SUB, QUANT_I8, QUANT_I16, 15);
}

static void test_products(void **state) {
    (void)state;
    Net net = net_new();
    Node *node = layer(&net, OP_ELTWISE, 2);
    node->attr.elt.kind = ELT_MUL;
    QuantLayer l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.rule, QUANT_PRODUCT);
    assert_int_equal(l.n, 1);
    same_scale(l.scale[0], 0.5 * 0.125 / 0.25);
    static const double two[] = {1, 2};
    node->attr.elt.coeff = two;
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    node->attr.elt.coeff = NULL;
    node->attr.elt.kind = ELT_DIV;
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    node->attr.elt.kind = ELT_ADD;
    node->act.kind = ACT_SIGMOID;
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    node->act.kind = ACT_CLIP;
    node->act.lo = -0.5;
    node->act.hi = 1;
    assert_int_equal(quant_rule(net.g, node), QUANT_ADDS);
    l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.lo, -5);
    assert_int_equal(l.hi, 1);
    net_free(&net);
}

/* Greater and smaller ones move, where all inputs are quantised alike. */
static void test_moves(void **state) {
    (void)state;
    Net net = net_new();
    Node *node = layer(&net, OP_ELTWISE, 2);
    node->attr.elt.kind = ELT_MAX;
    assert_true(quant_moves(net.g, node));
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    *quant_of(&net, node->in[1]) = a_quant;
    assert_int_equal(quant_rule(net.g, node), QUANT_MOVES);
    node->attr.elt.kind = ELT_MIN;
    assert_int_equal(quant_rule(net.g, node), QUANT_MOVES);
    QuantLayer l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.n, 1);
    same_scale(l.scale[0], 2);
    assert_int_equal(l.zero_in[0], 2);
    assert_int_equal(l.zero_out, -3);
    assert_false(quant_is_one(net.g, node));
    *quant_of(&net, node->out[0]) = a_quant;
    assert_true(quant_is_one(net.g, node));
    l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.zero_in[0], 0);
    assert_int_equal(l.zero_in[1], 0);
    assert_int_equal(l.zero_out, 0);
    static const double two[] = {1, 2};
    node->attr.elt.coeff = two;
    assert_false(quant_moves(net.g, node));
    net_free(&net);
}

/* Averages; a maximum moves. */
static void test_pools(void **state) {
    (void)state;
    Net net = net_new();
    Node *node = layer(&net, OP_POOL, 1);
    node->attr.pool.kind = POOL_AVG;
    assert_int_equal(quant_rule(net.g, node), QUANT_MEANS);
    QuantLayer l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.n, 1);
    same_scale(l.scale[0], 2);
    node->act.kind = ACT_TANH;
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    node->act.kind = ACT_NONE;
    *quant_of(&net, node->out[0]) = a_quant;
    l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.zero_in[0], 0);
    assert_int_equal(l.zero_out, 0);
    node->attr.pool.count_pad = true; /* padding is 0, a code */
    l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.zero_in[0], 2);
    assert_int_equal(l.zero_out, 2);
    node->attr.pool.kind = POOL_MAX;
    assert_int_equal(quant_rule(net.g, node), QUANT_MOVES);
    net_free(&net);
    net = net_new();
    node = layer(&net, OP_REDUCE, 1);
    node->attr.reduce.kind = REDUCE_MEAN;
    assert_int_equal(quant_rule(net.g, node), QUANT_MEANS);
    *quant_of(&net, node->out[0]) = a_quant;
    l = quant_layer(net.arena, net.g, node);
    assert_int_equal(l.zero_in[0], 2);
    node->attr.reduce.kind = REDUCE_SUM;
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    net_free(&net);
}

/* Average of codes (2: zero) that a window reads; what is counted besides. */
static float mean_at(const Node *node, const float *in, uint32_t row,
                     uint32_t col) {
    const PoolAttr *p = &node->attr.pool;
    int sum = 0, n = 0;
    for (uint32_t y = row * p->stride[0]; y < row * p->stride[0] + 3; y++)
        for (uint32_t x = col * p->stride[1]; x < col * p->stride[1] + 2; x++) {
            bool inside = y >= p->pad[0] && y - p->pad[0] < 4 &&
                          x >= p->pad[1] && x - p->pad[1] < 5;
            bool padded = y < 4 + 2 * p->pad[0] && x < 5 + 2 * p->pad[1];
            if (inside)
                sum += (int)in[(y - p->pad[0]) * 5 + x - p->pad[1]] -
                       (p->count_pad ? 2 : 0);
            n += p->count_pad ? padded : inside;
        }
    int half = sum > 0 ? n / 2 : -(n / 2);
    return (float)((sum + half) / n + (p->count_pad ? 2 : 0));
}

static void test_means(void **state) {
    (void)state;
    float in[20];
    for (int i = 0; i < 20; i++)
        in[i] = (float)(i * 37 % 101 - 50);
    for (int k = 0; k < 4; k++) {
        Net net = net_new();
        TensorId x = net_input(&net, "x", shape_nchw(1, 1, 4, 5));
        *quant_of(&net, x) = a_quant;
        NodeId id = net_node1(&net, OP_POOL, "y", x);
        Node *node = graph_node(net.g, id);
        node->attr.pool = (PoolAttr){.kind = POOL_AVG,
                                     .count_pad = k & 1,
                                     .kernel = {3, 2},
                                     .stride = {1, 2},
                                     .pad = {k & 2 ? 1 : 0, k & 2 ? 0 : 1}};
        memcpy(node->attr.pool.pad_end, node->attr.pool.pad,
               sizeof node->attr.pool.pad);
        TensorId y = net_out(&net, id);
        *quant_of(&net, y) = a_quant;
        graph_mark_output(net.g, y);
        const float *from = in;
        Values v = graph_eval(net.arena, net.g, 1, &from);
        const Shape *out = &graph_tensor(net.g, y)->shape;
        for (uint32_t i = 0; i < out->dim[2]; i++)
            for (uint32_t j = 0; j < out->dim[3]; j++)
                assert_int_equal((int)v.at[y.i][i * out->dim[3] + j],
                                 (int)mean_at(node, in, i, j));
        net_free(&net);
    }
}

/* A layer that has real numbers on one side is none on codes. */
static void test_sides(void **state) {
    (void)state;
    for (uint32_t side = 0; side < 3; side++) {
        Net net = net_new();
        Node *node = layer(&net, OP_ELTWISE, 2);
        assert_int_equal(quant_rule(net.g, node), QUANT_ADDS);
        TensorId t = side < 2 ? node->in[side] : node->out[0];
        *quant_of(&net, t) = (Quant){0};
        assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
        assert_true(quant_is_at(net.g, node));
        assert_int_equal(quant_layer(net.arena, net.g, node).rule, QUANT_REALS);
        net_free(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_biases),   cmocka_unit_test(test_sums),
        cmocka_unit_test(test_products), cmocka_unit_test(test_moves),
        cmocka_unit_test(test_pools),    cmocka_unit_test(test_means),
        cmocka_unit_test(test_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
