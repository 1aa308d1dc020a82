/* Seeded constants: reproducible, of the shapes and ranges promised, and deep
 * networks neither explode nor vanish with them. */
#include "net.h"

#include <math.h>

static const Shape image = {4, {1, 8, 8, 8}};

static TensorId bn_scale(Net *net, TensorId in) {
    NodeId bn = net_node1(net, OP_BN, "bn", in);
    graph_node(net->g, bn)->attr.bn.eps = 1e-5;
    TensorId out = net_out(net, bn);
    return net_out(net, net_node1(net, OP_SCALE, "scale", out));
}

/* Mean of absolute values of the last tensor, after checking that all tensors
 * are finite. */
static double mean_abs(Net *net, TensorId last) {
    uint32_t n;
    const float *const *in = graph_seed_inputs(net->arena, net->g, 1, &n);
    graph_verify(net->g, "test");
    Values v = graph_eval(net->arena, net->g, n, in);
    double sum = 0;
    for (uint32_t t = 0; t < net->g->tensor.n; t++) {
        uint64_t count = shape_count(&net->g->tensor.at[t].shape);
        sum = 0;
        for (uint64_t i = 0; i < count; i++) {
            assert_true(isfinite(v.at[t][i]));
            sum += fabs((double)v.at[t][i]);
        }
        sum /= (double)count;
        if (t == last.i)
            break;
    }
    return sum;
}

/* Residual blocks of two convolutions, as in ResNet-18, 34...; or of three,
 * with or without BN and a ReLU behind the sum. */
static double residual_chain(uint64_t seed, int blocks, int convs, bool bn,
                             bool relu) {
    Net net = net_new();
    TensorId x = net_input(&net, "x", image);
    for (int b = 0; b < blocks; b++) {
        TensorId y = x;
        for (int c = 0; c < convs; c++) {
            y = net_conv(&net, "conv", y, 8, ACT_NONE);
            if (bn)
                y = bn_scale(&net, y);
            if (c + 1 < convs)
                y = net_act(&net, "relu", y, ACT_RELU);
        }
        x = net_add(&net, "sum", x, y);
        if (relu)
            x = net_act(&net, "relu", x, ACT_RELU);
    }
    graph_seed_constants(net.g, seed);
    double mean = mean_abs(&net, x);
    net_free(&net);
    return mean;
}

static void test_residual_chains(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int kind = 0; kind < 8; kind++) {
            int convs = kind & 1 ? 3 : 2;
            double mean =
                residual_chain(seed, 150 / convs, convs, kind & 2, kind & 4);
            if (!(mean > 1e-3 && mean < 1e6))
                fail_msg("chain %d of seed %u: %g", kind, (unsigned)seed, mean);
        }
}

static void test_plain_chain(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int bn = 0; bn < 2; bn++) {
            Net net = net_new();
            TensorId x = net_input(&net, "x", shape_nchw(1, 32, 6, 6));
            for (int i = 0; i < 50; i++) {
                x = net_conv(&net, "conv", x, 32, ACT_NONE);
                if (bn)
                    x = bn_scale(&net, x);
                x = net_act(&net, "relu", x, ACT_RELU);
            }
            graph_seed_constants(net.g, seed);
            double mean = mean_abs(&net, x);
            if (!(mean > 1e-3 && mean < 1e6))
                fail_msg("chain of seed %u: %g", (unsigned)seed, mean);
            net_free(&net);
        }
}

static const Const *constant(const Net *net, uint32_t node, ConstRole role) {
    ConstId id = net->g->node.at[node].constant[role];
    return id.i == NONE ? NULL : graph_const(net->g, id);
}

static void test_recipes(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = net_input(&net, "x", image);
    x = net_conv(&net, "conv", x, 16, ACT_PRELU);
    bn_scale(&net, x);
    NodeId fc = net_node1(&net, OP_FC, "fc", x);
    graph_node(net.g, fc)->attr.fc.out = 5;
    net_out(&net, fc);
    graph_node(net.g, fc)->no_bias = true;
    assert_int_equal(graph_seed_constants(net.g, 9), 4);
    assert_int_equal(graph_seed_constants(net.g, 9), 0);
    const Const *weight = constant(&net, 1, CONST_WEIGHT);
    assert_true(fabs(weight->spread - sqrt(6.0 / (8 * 9))) < 1e-12);
    const Const *var = constant(&net, 2, CONST_VAR);
    assert_true(var->mean - var->spread >= 0.5);
    assert_true(var->mean + var->spread <= 1.5);
    assert_non_null(constant(&net, 1, CONST_BIAS));
    assert_non_null(constant(&net, 1, CONST_SLOPE));
    assert_non_null(constant(&net, 3, CONST_SCALE));
    assert_int_equal(constant(&net, 4, CONST_WEIGHT)->shape.dim[1], 16 * 64);
    assert_null(constant(&net, 4, CONST_BIAS));
    net_free(&net);
}

/* The values depend on seed, layer and role, not on what else is there. */
static void test_seeds(void **state) {
    (void)state;
    uint64_t seed[3];
    for (int i = 0; i < 3; i++) {
        Net net = net_new();
        TensorId x = net_input(&net, "x", image);
        if (i == 1)
            x = net_conv(&net, "other", x, 8, ACT_RELU);
        net_conv(&net, "conv", x, 8, ACT_RELU);
        graph_seed_constants(net.g, i == 2 ? 8 : 7);
        uint32_t node = i == 1 ? 2 : 1;
        seed[i] = constant(&net, node, CONST_WEIGHT)->seed;
        assert_true(constant(&net, node, CONST_BIAS)->seed != seed[i]);
        net_free(&net);
    }
    assert_true(seed[0] == seed[1]);
    assert_true(seed[0] != seed[2]);
}

/* A file's weights without a bias: the layer has none. */
static void test_weights_are_there(void **state) {
    (void)state;
    Net net = net_new();
    net_conv(&net, "conv", net_input(&net, "x", image), 8, ACT_RELU);
    Const c = {.shape = shape_nchw(8, 8, 3, 3), .kind = CONST_SEEDED};
    net.g->node.at[1].constant[CONST_WEIGHT] = graph_add_const(net.g, c);
    assert_int_equal(graph_seed_constants(net.g, 1), 0);
    net_free(&net);
}

static void test_inputs(void **state) {
    (void)state;
    Net net = net_new();
    net_input(&net, "a", image);
    net_input(&net, "b", image);
    uint32_t n;
    const float *const *v = graph_seed_inputs(net.arena, net.g, 1, &n);
    assert_int_equal(n, 2);
    bool differ = false;
    for (int i = 0; i < 512; i++) {
        assert_true(v[0][i] >= -1 && v[0][i] < 1);
        differ |= v[0][i] < v[1][i];
    }
    assert_true(differ);
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residual_chains),
        cmocka_unit_test(test_plain_chain),
        cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_weights_are_there),
        cmocka_unit_test(test_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
