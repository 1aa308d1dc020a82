/* Reference evaluation of operators without windows: small cases worked out by
 * hand, and broadcasting, concatenation and slices against plain loops. */
#include "net.h"
#include "plain.h"

#include "base/rng.h"

static ConstId constant(Net *net, Shape shape, const float *value) {
    Const c = {.shape = shape, .kind = CONST_F32, .data = value};
    return graph_add_const(net->g, c);
}

static void expect(Net *net, TensorId out, uint32_t n_inputs,
                   const float *const *inputs, const float *want) {
    graph_verify(net->g, "test");
    Values v = graph_eval(net->arena, net->g, n_inputs, inputs);
    uint64_t n = shape_count(&graph_tensor(net->g, out)->shape);
    for (uint64_t i = 0; i < n; i++)
        if (fabs((double)v.at[out.i][i] - (double)want[i]) > 1e-6)
            fail_msg("value %u is %.9g instead of %.9g", (unsigned)i,
                     (double)v.at[out.i][i], (double)want[i]);
    net_free(net);
}

/* Expects `want` of the node, which reads the network's only input. */
static void expect1(Net *net, NodeId node, const float *in, const float *want) {
    expect(net, net_out(net, node), 1, &in, want);
}

static void test_pool_by_hand(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const struct {
        PoolAttr attr;
        float want[9];
    } row[] = {
        /* Caffe's ceil: windows at 0 and 2, the second clipped */
        {{POOL_MAX, .ceil = true, .kernel = {2, 2}, .stride = {2, 2}},
         {5, 6, 8, 9}},
        {{POOL_MAX, .kernel = {2, 2}, .stride = {2, 2}}, {5}},
        /* clipped to the padded input: divisors 4, 4, 4, 4 */
        {{POOL_AVG, .count_pad = true, .kernel = {2, 2}, .stride = {2, 2},
          .pad = {1, 1}, .pad_end = {1, 1}},
         {0.25F, 1.25F, 2.75F, 7}},
        /* the same without padding in the divisor: 1, 2, 2, 4 */
        {{POOL_AVG, .kernel = {2, 2}, .stride = {2, 2}, .pad = {1, 1},
          .pad_end = {1, 1}},
         {1, 2.5F, 5.5F, 7}},
        /* ceil, count_pad, no padding: the last window counts what is there */
        {{POOL_AVG, .ceil = true, .count_pad = true, .kernel = {2, 2},
          .stride = {2, 2}},
         {3, 4.5F, 7.5F, 9}},
        {{POOL_AVG, .global = true}, {5}},
        {{POOL_MAX, .global = true}, {9}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Net net = net_new();
        NodeId id = net_node1(&net, OP_POOL, "pool",
                              net_input(&net, "x", shape_nchw(1, 1, 3, 3)));
        graph_node(net.g, id)->attr.pool = row[i].attr;
        expect1(&net, id, in, row[i].want);
    }
}

static void test_conv_by_hand(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const float weight[] = {1, 10, 100, 1000}, bias[] = {0.5F};
    static const float want[] = {5421.5F, 6532.5F, 8754.5F, 9865.5F};
    Net net = net_new();
    NodeId id = net_node1(&net, OP_CONV, "conv",
                          net_input(&net, "x", shape_nchw(1, 1, 3, 3)));
    Node *node = graph_node(net.g, id);
    node->attr.conv.out_c = 1;
    node->attr.conv.kernel[0] = node->attr.conv.kernel[1] = 2;
    node->constant[CONST_WEIGHT] =
        constant(&net, shape_nchw(1, 1, 2, 2), weight);
    node->constant[CONST_BIAS] = constant(&net, (Shape){1, {1}}, bias);
    expect1(&net, id, in, want);
}

static void test_deconv_by_hand(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4}, weight[] = {1, 2, 3, 4};
    /* stride 2: four copies of the kernel side by side */
    static const float want[] = {1, 2, 2, 4, 3, 4,  6,  8,
                                 3, 6, 4, 8, 9, 12, 12, 16};
    Net net = net_new();
    NodeId id = net_node1(&net, OP_DECONV, "deconv",
                          net_input(&net, "x", shape_nchw(1, 1, 2, 2)));
    Node *node = graph_node(net.g, id);
    node->attr.conv.out_c = 1;
    for (int i = 0; i < 2; i++)
        node->attr.conv.kernel[i] = node->attr.conv.stride[i] = 2;
    node->constant[CONST_WEIGHT] =
        constant(&net, shape_nchw(1, 1, 2, 2), weight);
    expect1(&net, id, in, want);
}

static void test_fc(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4, 5, 6};
    static const float weight[] = {1, 0, 0, 1, 1, 1}, bias[] = {10, 20};
    static const float want[] = {11, 26, 14, 35};
    Net net = net_new();
    NodeId id = net_node1(&net, OP_FC, "fc",
                          net_input(&net, "x", shape_nchw(2, 3, 1, 1)));
    Node *node = graph_node(net.g, id);
    node->attr.fc.out = 2;
    node->constant[CONST_WEIGHT] = constant(&net, (Shape){2, {2, 3}}, weight);
    node->constant[CONST_BIAS] = constant(&net, (Shape){1, {2}}, bias);
    expect1(&net, id, in, want);
}

static void test_bn_scale(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4}, mean[] = {1, 2}, var[] = {3, 0};
    static const float scale[] = {4, 5}, bias[] = {-1, 1};
    static const float bn[] = {0, 0.5F, 1, 2}, scaled[] = {3, 7, 16, 21};
    for (int i = 0; i < 2; i++) {
        Net net = net_new();
        NodeId id = net_node1(&net, i ? OP_SCALE : OP_BN, "x",
                              net_input(&net, "in", shape_nchw(1, 2, 1, 2)));
        Node *node = graph_node(net.g, id);
        Shape two = {1, {2}};
        if (i == 0)
            node->attr.bn.eps = 1;
        node->constant[i ? CONST_SCALE : CONST_MEAN] =
            constant(&net, two, i ? scale : mean);
        node->constant[i ? CONST_BIAS : CONST_VAR] =
            constant(&net, two, i ? bias : var);
        expect1(&net, id, in, i ? scaled : bn);
    }
}

static void test_activations(void **state) {
    (void)state;
    static const float in[] = {-2, -0.5F, 0.5F, 7};
    static const float slope[] = {0.5F};
    static const float want[ACT_CLIP + 1][4] = {
        [ACT_RELU] = {0, 0, 0.5F, 7},
        [ACT_RELU6] = {0, 0, 0.5F, 6},
        [ACT_LEAKY] = {-0.2F, -0.05F, 0.5F, 7},
        [ACT_PRELU] = {-1, -0.25F, 0.5F, 7},
        [ACT_SIGMOID] = {0.119202922F, 0.377540669F, 0.622459331F,
                         0.999088949F},
        [ACT_TANH] = {-0.96402758F, -0.46211716F, 0.46211716F, 0.99999834F},
        [ACT_CLIP] = {-1, -0.5F, 0.5F, 2},
    };
    for (ActKind kind = ACT_RELU; kind <= ACT_CLIP; kind++) {
        Net net = net_new();
        NodeId id = net_node1(&net, OP_ACT, "act",
                              net_input(&net, "x", shape_nchw(1, 1, 2, 2)));
        Node *node = graph_node(net.g, id);
        node->act = (Act){kind, 0.1, -1, 2};
        if (kind == ACT_PRELU)
            node->constant[CONST_SLOPE] =
                constant(&net, (Shape){1, {1}}, slope);
        expect1(&net, id, in, want[kind]);
    }
}

static void test_softmax(void **state) {
    (void)state;
    /* Without subtracting the maximum these would overflow. */
    static const float in[] = {1000, 2000, 1000, 2000 + 0.6931472F};
    static const float want[2][4] = {{0, 1, 0, 1},
                                     {0.5F, 1.F / 3, 0.5F, 2.F / 3}};
    for (int i = 0; i < 2; i++) {
        Net net = net_new();
        NodeId id = net_node1(&net, OP_SOFTMAX, "softmax",
                              net_input(&net, "x", shape_nchw(1, 2, 1, 2)));
        graph_node(net.g, id)->attr.axis.axis = i ? 1 : 3;
        TensorId out = net_out(&net, id);
        const float *inputs[] = {in};
        Values v = graph_eval(net.arena, net.g, 1, inputs);
        for (int k = 0; k < 4; k++) /* 2000.6931 is not exact in float */
            assert_true(fabs((double)v.at[out.i][k] - (double)want[i][k]) <
                        1e-4);
        net_free(&net);
    }
}

static void test_upsample_pad(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4};
    static const float up[] = {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2,
                               3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4};
    static const float padded[] = {9, 9, 9, 1, 2, 9, 3, 4, 9};
    Net net = net_new();
    NodeId id = net_node1(&net, OP_UPSAMPLE, "up",
                          net_input(&net, "x", shape_nchw(1, 1, 2, 2)));
    graph_node(net.g, id)->attr.up.factor[0] = 2;
    graph_node(net.g, id)->attr.up.factor[1] = 3;
    expect1(&net, id, in, up);
    net = net_new();
    id = net_node1(&net, OP_PAD, "pad",
                   net_input(&net, "x", shape_nchw(1, 1, 2, 2)));
    graph_node(net.g, id)->attr.pad.before[0] = 1;
    graph_node(net.g, id)->attr.pad.behind[1] = 1;
    graph_node(net.g, id)->attr.pad.value = 9;
    expect1(&net, id, in, padded);
}

static void test_lrn_by_hand(void **state) {
    (void)state;
    /* across, size 3: x / (k + alpha / 3 * sum of squares) */
    static const float in[] = {1, 2, 3};
    static const float want[] = {1 / 6.F, 2 / 15.F, 3 / 14.F};
    Net net = net_new();
    NodeId id = net_node1(&net, OP_LRN, "lrn",
                          net_input(&net, "x", shape_nchw(1, 3, 1, 1)));
    graph_node(net.g, id)->attr.lrn = (LrnAttr){false, 3, 3, 1, 1};
    expect1(&net, id, in, want);
    /* within: all three lie in one window, and the divisor is 9 all the same */
    static const float inside[] = {1 / 6.F, 2 / 15.F, 3 / 14.F};
    net = net_new();
    id = net_node1(&net, OP_LRN, "lrn",
                   net_input(&net, "x", shape_nchw(1, 1, 1, 3)));
    graph_node(net.g, id)->attr.lrn = (LrnAttr){true, 3, 9, 1, 1};
    expect1(&net, id, in, inside);
}

static void test_copies(void **state) {
    (void)state;
    static const float in[] = {-1, 2, -3, 4}, want[] = {0, 2, 0, 4};
    Net net = net_new();
    NodeId id = net_node1(&net, OP_IDENTITY, "split",
                          net_input(&net, "x", shape_nchw(1, 2, 1, 2)));
    graph_node(net.g, id)->act.kind = ACT_RELU;
    net_out(&net, id);
    TensorId second = net_out(&net, id);
    NodeId reshape = net_node1(&net, OP_RESHAPE, "reshape", second);
    graph_node(net.g, reshape)->attr.reshape = (Shape){2, {1, 4}};
    expect1(&net, reshape, in, want);
}

/* ---- broadcasting, concatenation, slices: plain loops ---- */

static uint32_t roll(uint64_t *i, uint32_t n) {
    return (uint32_t)(rng_bits(11, (*i)++) % n);
}

static const float *seeded_inputs(Net *net, const float *const **inputs) {
    uint32_t n;
    *inputs = graph_seed_inputs(net->arena, net->g, 3, &n);
    return (*inputs)[0];
}

static double pick(const float *value, const Shape *shape, const uint32_t *at) {
    size_t index = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        index = index * shape->dim[i] + (shape->dim[i] == 1 ? 0 : at[i]);
    return (double)value[index];
}

static void check_eltwise(uint64_t *dice, EltKind kind, bool with_coeff) {
    static const double coeff[] = {2, -0.5, 3};
    Net net = net_new();
    TensorId in[3];
    Shape whole = {4, {0}}, shape[3];
    for (uint32_t i = 0; i < 4; i++)
        whole.dim[i] = 1 + roll(dice, 4);
    for (int k = 0; k < 3; k++) {
        shape[k] = whole;
        for (uint32_t i = 0; k && i < 4; i++)
            if (roll(dice, 2))
                shape[k].dim[i] = 1;
        in[k] = net_input(&net, "x", shape[k]);
    }
    NodeId id = net_node(&net, OP_ELTWISE, "elt", 3, in);
    graph_node(net.g, id)->attr.elt =
        (EltAttr){kind, with_coeff ? coeff : NULL};
    TensorId out = net_out(&net, id);
    assert_true(shape_equal(&whole, &graph_tensor(net.g, out)->shape));
    const float *const *v;
    seeded_inputs(&net, &v);
    const float *is = graph_eval(net.arena, net.g, 3, v).at[out.i];
    uint32_t at[4], *d = whole.dim;
    for (at[0] = 0; at[0] < d[0]; at[0]++)
        for (at[1] = 0; at[1] < d[1]; at[1]++)
            for (at[2] = 0; at[2] < d[2]; at[2]++)
                for (at[3] = 0; at[3] < d[3]; at[3]++) {
                    double x[3], want;
                    for (int k = 0; k < 3; k++)
                        x[k] = pick(v[k], &shape[k], at) *
                               (with_coeff ? coeff[k] : 1);
                    want = kind == ELT_ADD   ? x[0] + x[1] + x[2]
                           : kind == ELT_MUL ? x[0] * x[1] * x[2]
                                             : fmax(fmax(x[0], x[1]), x[2]);
                    assert_true(fabs(pick(is, &whole, at) - want) < 1e-6);
                }
    net_free(&net);
}

static void test_eltwise(void **state) {
    (void)state;
    uint64_t dice = 0;
    for (int i = 0; i < 100; i++) {
        check_eltwise(&dice, ELT_ADD, false);
        check_eltwise(&dice, ELT_ADD, true);
        check_eltwise(&dice, ELT_MUL, false);
        check_eltwise(&dice, ELT_MAX, false);
    }
}

/* Slices of a tensor, put together again along each axis. */
static void test_slice_concat(void **state) {
    (void)state;
    uint64_t dice = 0;
    for (int round = 0; round < 100; round++) {
        Net net = net_new();
        Shape shape = {4, {0}};
        for (uint32_t i = 0; i < 4; i++)
            shape.dim[i] = 3 + roll(&dice, 3);
        uint32_t axis = roll(&dice, 4), cut = 1 + roll(&dice, 2);
        TensorId x = net_input(&net, "x", shape), part[2];
        for (uint32_t k = 0; k < 2; k++) {
            NodeId id = net_node1(&net, OP_SLICE, "slice", x);
            Attrs *attr = &graph_node(net.g, id)->attr;
            attr->slice.axis = axis;
            attr->slice.begin = k ? cut : 0;
            attr->slice.end = k ? shape.dim[axis] : cut;
            part[k] = net_out(&net, id);
        }
        NodeId id = net_node(&net, OP_CONCAT, "concat", 2, part);
        graph_node(net.g, id)->attr.axis.axis = axis;
        TensorId out = net_out(&net, id);
        const float *const *v;
        const float *in = seeded_inputs(&net, &v);
        Values is = graph_eval(net.arena, net.g, 1, v);
        assert_memory_equal(is.at[out.i], in,
                            shape_count(&shape) * sizeof(float));
        uint32_t at[4] = {1, 2, 0, 2}, inside[4] = {1, 2, 0, 2};
        at[axis] = cut;
        inside[axis] = 0;
        const Shape *half = &graph_tensor(net.g, part[1])->shape;
        assert_true(fabs(pick(is.at[part[1].i], half, inside) -
                         pick(in, &shape, at)) < 1e-9);
        net_free(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_by_hand),
        cmocka_unit_test(test_conv_by_hand),
        cmocka_unit_test(test_deconv_by_hand),
        cmocka_unit_test(test_fc),
        cmocka_unit_test(test_bn_scale),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_upsample_pad),
        cmocka_unit_test(test_lrn_by_hand),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_eltwise),
        cmocka_unit_test(test_slice_concat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
