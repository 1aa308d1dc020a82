/* Reference evaluation of windows (convolution, its transpose, pools) against
 * plain loops, on shapes and attributes drawn at random. */
#include "net.h"
#include "plain.h"

#include "base/rng.h"

#include <string.h>

typedef struct Dice {
    uint64_t seed, i;
} Dice;

static uint32_t roll(Dice *dice, uint32_t min, uint32_t max) {
    return min + (uint32_t)(rng_bits(dice->seed, dice->i++) % (max - min + 1));
}

static void assert_near(double is, double want) {
    if (!(fabs(is - want) <= 1e-4 * (1 + fabs(want))))
        fail_msg("%.9g instead of %.9g", is, want);
}

static const float *values(Net *net, NodeId node, ConstRole role) {
    ConstId id = graph_node(net->g, node)->constant[role];
    if (id.i == NONE)
        return NULL;
    const Const *c = graph_const(net->g, id);
    float *value = ARENA_ARRAY(net->arena, float, shape_count(&c->shape));
    const_read(c, value);
    return value;
}

static Values evaluate(Net *net) {
    uint32_t n;
    const float *const *inputs = graph_seed_inputs(net->arena, net->g, 5, &n);
    graph_verify(net->g, "test");
    return graph_eval(net->arena, net->g, n, inputs);
}

static Vol volume(const Net *net, Values v, TensorId t) {
    const uint32_t *dim = graph_tensor(net->g, t)->shape.dim;
    return (Vol){(int)dim[0], (int)dim[1], (int)dim[2], (int)dim[3], v.at[t.i]};
}

static void random_conv(Dice *dice, ConvAttr *a, uint32_t in_c) {
    do
        a->groups = roll(dice, 1, in_c);
    while (in_c % a->groups);
    if (roll(dice, 0, 2) == 0)
        a->groups = in_c;
    a->out_c = a->groups * roll(dice, 1, 3);
    for (int i = 0; i < 2; i++) {
        a->kernel[i] = roll(dice, 1, 4);
        a->stride[i] = roll(dice, 1, 3);
        a->dilation[i] = roll(dice, 1, 2);
        a->pad[i] = roll(dice, 0, 3);
        a->pad_end[i] = roll(dice, 0, 3);
    }
}

static void random_act(Dice *dice, Act *act) {
    *act = (Act){roll(dice, 0, ACT_CLIP), 0.1, -0.4, 0.3};
}

static void random_pool(Dice *dice, PoolAttr *a) {
    a->kind = roll(dice, 0, 1);
    a->global = roll(dice, 0, 4) == 0;
    a->ceil = roll(dice, 0, 1);
    a->count_pad = roll(dice, 0, 1);
    for (int i = 0; i < 2; i++) {
        a->kernel[i] = roll(dice, 1, 4);
        a->stride[i] = roll(dice, 1, 4);
        a->pad[i] = roll(dice, 0, a->kernel[i] - 1);
        a->pad_end[i] = roll(dice, 0, a->kernel[i] - 1);
    }
}

static TensorId random_input(Net *net, Dice *dice) {
    return net_input(net, "x",
                     shape_nchw(roll(dice, 1, 2), roll(dice, 1, 6),
                                roll(dice, 1, 9), roll(dice, 1, 9)));
}

/* False if no window fits, so that the draw is of no use. */
static bool finish(Net *net, NodeId node, TensorId *out) {
    *out = graph_add_output(net->g, node, "y");
    if (!graph_infer(net->g, node, net->diag))
        return false;
    graph_seed_constants(net->g, 7);
    return true;
}

/* Windows at 0, stride, 2 * stride... that lie inside, by counting. */
static int count_windows(int in, const ConvAttr *a, int i) {
    int reach = (int)(a->dilation[i] * (a->kernel[i] - 1)), n = 0;
    int padded = in + (int)(a->pad[i] + a->pad_end[i]);
    for (int at = 0; at + reach < padded; at += (int)a->stride[i])
        n++;
    return n;
}

/* Windows until all is covered (ceil), or while they lie inside; then those
 * are dropped that start behind the input. */
static int count_pool(int in, const PoolAttr *a, int i) {
    int padded = in + (int)(a->pad[i] + a->pad_end[i]), n = 0, at = 0;
    int kernel = (int)a->kernel[i], stride = (int)a->stride[i];
    for (; at + kernel <= padded; at += stride)
        n++;
    if (a->ceil && at - stride + kernel < padded && at < in + (int)a->pad[i] &&
        at < padded)
        n++;
    return a->global ? 1 : n;
}

static double biased(const float *bias, int c, double x) {
    return bias ? x + (double)bias[c] : x;
}

static bool check_conv(Dice *dice, bool transposed) {
    Net net = net_new();
    TensorId x = random_input(&net, dice), y;
    NodeId id = net_node1(&net, transposed ? OP_DECONV : OP_CONV, "conv", x);
    Node *node = graph_node(net.g, id);
    random_conv(dice, &node->attr.conv, graph_tensor(net.g, x)->shape.dim[1]);
    random_act(dice, &node->act);
    node->no_bias = roll(dice, 0, 1);
    bool fits = finish(&net, id, &y);
    if (fits) {
        Values v = evaluate(&net);
        Vol in = volume(&net, v, x), out = volume(&net, v, y);
        const ConvAttr *a = &node->attr.conv;
        const float *weight = values(&net, id, CONST_WEIGHT);
        const float *bias = values(&net, id, CONST_BIAS);
        const float *slope = values(&net, id, CONST_SLOPE);
        if (!transposed)
            assert_int_equal(out.h, count_windows(in.h, a, 0));
        for (int n = 0, i = 0; n < out.n; n++)
            for (int c = 0; c < out.c; c++)
                for (int p = 0; p < out.h; p++)
                    for (int q = 0; q < out.w; q++, i++) {
                        double sum =
                            transposed
                                ? plain_deconv(&in, a, weight, n, c, p, q)
                                : plain_conv(&in, a, weight, n, c, p, q);
                        double s = slope ? (double)slope[c] : 0;
                        assert_near(
                            (double)out.v[i],
                            plain_act(&node->act, s, biased(bias, c, sum)));
                    }
    }
    net_free(&net);
    return fits;
}

static void test_conv(void **state) {
    (void)state;
    Dice dice = {1, 0};
    int useful = 0;
    for (int i = 0; i < 400; i++)
        useful += check_conv(&dice, false);
    assert_true(useful > 200);
}

static void test_deconv(void **state) {
    (void)state;
    Dice dice = {2, 0};
    int useful = 0;
    for (int i = 0; i < 200; i++)
        useful += check_conv(&dice, true);
    assert_true(useful > 100);
}

/* More pixels than fit in one block of columns. */
static void check_blocks(OpKind op) {
    Net net = net_new();
    TensorId x = net_input(&net, "x", shape_nchw(1, 8, 121, 130)), y;
    NodeId id = net_node1(&net, op, "conv", x);
    graph_node(net.g, id)->attr.conv =
        (ConvAttr){8, 1, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 1}};
    assert_true(finish(&net, id, &y));
    Values v = evaluate(&net);
    Vol in = volume(&net, v, x), out = volume(&net, v, y);
    const ConvAttr *a = &graph_node(net.g, id)->attr.conv;
    const float *weight = values(&net, id, CONST_WEIGHT);
    const float *bias = values(&net, id, CONST_BIAS);
    /* A border of a block can be anywhere: look at every row and column. */
    for (int p = 0; p < out.h; p++) {
        int q = p % out.w, c = p % out.c;
        double want = op == OP_CONV ? plain_conv(&in, a, weight, 0, c, p, q)
                                    : plain_deconv(&in, a, weight, 0, c, p, q);
        assert_near(vol_at(&out, 0, c, p, q, 0), biased(bias, c, want));
    }
    for (int q = 0; op == OP_CONV && q < out.w * out.h; q++) {
        int p = q / out.w;
        assert_near(
            vol_at(&out, 0, 1, p, q % out.w, 0),
            biased(bias, 1, plain_conv(&in, a, weight, 0, 1, p, q % out.w)));
    }
    net_free(&net);
}

static void test_blocks(void **state) {
    (void)state;
    check_blocks(OP_CONV);
    check_blocks(OP_DECONV);
}

static bool check_pool(Dice *dice) {
    Net net = net_new();
    TensorId x = random_input(&net, dice), y;
    NodeId id = net_node1(&net, OP_POOL, "pool", x);
    PoolAttr *a = &graph_node(net.g, id)->attr.pool;
    random_pool(dice, a);
    bool fits = finish(&net, id, &y);
    if (fits) {
        Values v = evaluate(&net);
        Vol in = volume(&net, v, x), out = volume(&net, v, y);
        assert_int_equal(out.h, count_pool(in.h, a, 0));
        assert_int_equal(out.w, count_pool(in.w, a, 1));
        for (int n = 0, i = 0; n < out.n; n++)
            for (int c = 0; c < out.c; c++)
                for (int p = 0; p < out.h; p++)
                    for (int q = 0; q < out.w; q++, i++)
                        assert_near((double)out.v[i],
                                    plain_pool(&in, a, n, c, p, q));
    }
    net_free(&net);
    return fits;
}

static void test_pool(void **state) {
    (void)state;
    Dice dice = {3, 0};
    int useful = 0;
    for (int i = 0; i < 1000; i++)
        useful += check_pool(&dice);
    assert_true(useful > 500);
}

/* The one node against the two that it stands for. */
static bool check_conv_pool(Dice *dice) {
    Net net = net_new();
    TensorId x = random_input(&net, dice), both, middle;
    NodeId fused = net_node1(&net, OP_CONV_POOL, "fused", x);
    NodeId conv = net_node1(&net, OP_CONV, "conv", x);
    Node *node = graph_node(net.g, fused);
    node->conv_name = "conv";
    random_conv(dice, &node->attr.conv, graph_tensor(net.g, x)->shape.dim[1]);
    random_pool(dice, &node->attr.pool);
    random_act(dice, &node->act);
    graph_node(net.g, conv)->attr.conv = node->attr.conv;
    graph_node(net.g, conv)->act = node->act;
    bool fits = finish(&net, fused, &both);
    if (fits) {
        memcpy(graph_node(net.g, conv)->constant,
               graph_node(net.g, fused)->constant, sizeof node->constant);
        assert_true(finish(&net, conv, &middle));
        NodeId pool = net_node1(&net, OP_POOL, "pool", middle);
        graph_node(net.g, pool)->attr.pool =
            graph_node(net.g, fused)->attr.pool;
        TensorId last = net_out(&net, pool);
        const Shape *shape = &graph_tensor(net.g, both)->shape;
        assert_true(shape_equal(shape, &graph_tensor(net.g, last)->shape));
        Values v = evaluate(&net);
        assert_memory_equal(v.at[both.i], v.at[last.i],
                            shape_count(shape) * sizeof(float));
    }
    net_free(&net);
    return fits;
}

static void test_conv_pool(void **state) {
    (void)state;
    Dice dice = {4, 0};
    int useful = 0;
    for (int i = 0; i < 200; i++)
        useful += check_conv_pool(&dice);
    assert_true(useful > 50);
}

static void check_lrn(Dice *dice) {
    Net net = net_new();
    TensorId x = random_input(&net, dice), y;
    NodeId id = net_node1(&net, OP_LRN, "lrn", x);
    LrnAttr *a = &graph_node(net.g, id)->attr.lrn;
    *a = (LrnAttr){roll(dice, 0, 1), roll(dice, 0, 3) * 2 + 1, 0.7, 0.75, 1.5};
    assert_true(finish(&net, id, &y));
    Values v = evaluate(&net);
    Vol in = volume(&net, v, x), out = volume(&net, v, y);
    for (int n = 0, i = 0; n < out.n; n++)
        for (int c = 0; c < out.c; c++)
            for (int p = 0; p < out.h; p++)
                for (int q = 0; q < out.w; q++, i++)
                    assert_near((double)out.v[i],
                                plain_lrn(&in, a, n, c, p, q));
    net_free(&net);
}

static void test_lrn(void **state) {
    (void)state;
    Dice dice = {5, 0};
    for (int i = 0; i < 100; i++)
        check_lrn(&dice);
}

static void test_same_bits(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = net_input(&net, "x", shape_nchw(1, 16, 40, 40));
    TensorId y = net_conv(&net, "conv", x, 32, ACT_RELU);
    graph_seed_constants(net.g, 1);
    Values first = evaluate(&net), second = evaluate(&net);
    assert_memory_equal(first.at[y.i], second.at[y.i],
                        32 * 40 * 40 * sizeof(float));
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),      cmocka_unit_test(test_deconv),
        cmocka_unit_test(test_blocks),    cmocka_unit_test(test_pool),
        cmocka_unit_test(test_conv_pool), cmocka_unit_test(test_lrn),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
