/* Shape inference: sizes, and the exact message for each thing that a file can
 * get wrong. */
#include "net.h"

#include <string.h>

static const Shape image = {4, {1, 3, 8, 8}};

/* What graph_infer says of the node, or "". Its last output is made here. */
static const char *verdict(Net *net, NodeId node) {
    graph_add_output(net->g, node, "y");
    if (graph_infer(net->g, node, net->diag))
        return "";
    const DiagMessage *message = diag_at(net->diag, 0);
    assert_string_equal(message->loc.file, "net.prototxt");
    assert_int_equal(message->loc.line, node.i + 1);
    return message->text;
}

typedef void Edit(Node *node);

typedef struct Case {
    OpKind op;
    Edit *edit;
    const char *message;
} Case;

static void good_conv(Node *node) {
    node->attr.conv = (ConvAttr){6, 3, {3, 3}, {1, 1}, {1, 1}, {0}, {0}};
}

static void conv_large(Node *node) {
    good_conv(node);
    node->attr.conv.kernel[0] = 11;
    node->attr.conv.pad[0] = node->attr.conv.pad_end[0] = 1;
}

static void conv_dilated(Node *node) {
    good_conv(node);
    node->attr.conv.dilation[1] = 4;
}

static void conv_no_kernel(Node *node) {
    good_conv(node);
    node->attr.conv.kernel[1] = 0;
}

static void conv_no_stride(Node *node) {
    good_conv(node);
    node->attr.conv.stride[0] = 0;
}

static void conv_no_dilation(Node *node) {
    good_conv(node);
    node->attr.conv.dilation[0] = 0;
}

static void conv_pad(Node *node) {
    good_conv(node);
    node->attr.conv.pad_end[0] = UINT32_MAX;
}

static void conv_no_outputs(Node *node) {
    good_conv(node);
    node->attr.conv.out_c = 0;
}

static void conv_groups(Node *node) {
    good_conv(node);
    node->attr.conv.groups = 2;
}

static void conv_no_groups(Node *node) {
    good_conv(node);
    node->attr.conv.groups = 0;
}

static void conv_huge(Node *node) {
    good_conv(node);
    node->attr.conv.out_c = 3000000000;
}

static void conv_weights(Node *node) {
    good_conv(node);
    node->attr.conv.out_c = 3 << 20;
    node->attr.conv.groups = 1;
    for (int i = 0; i < 2; i++) {
        node->attr.conv.kernel[i] = 16;
        node->attr.conv.pad[i] = 8;
        node->attr.conv.stride[i] = 16;
    }
}

static void deconv_empty(Node *node) {
    good_conv(node);
    node->attr.conv.pad[0] = node->attr.conv.pad_end[0] = 5;
}

static void deconv_huge(Node *node) {
    good_conv(node);
    node->attr.conv.stride[0] = node->attr.conv.stride[1] = 65536;
}

static void pool_large(Node *node) {
    node->attr.pool = (PoolAttr){.kernel = {9, 9}, .stride = {1, 1}};
}

static void pool_no_kernel(Node *node) {
    node->attr.pool = (PoolAttr){.stride = {1, 1}};
}

static void pool_pad(Node *node) {
    node->attr.pool =
        (PoolAttr){.kernel = {2, 2}, .stride = {1, 1}, .pad = {1, 2}};
}

static void fc_empty(Node *node) {
    node->attr.fc.out = 0;
}

static void bn_epsilon(Node *node) {
    node->attr.bn.eps = -1;
}

static void lrn_size(Node *node) {
    node->attr.lrn.size = 0;
}

static void lrn_even(Node *node) {
    node->attr.lrn.size = 4;
    node->attr.lrn.within_channel = true;
}

static void axis(Node *node) {
    node->attr.axis.axis = 4;
}

static void uneven_groups(Node *node) {
    node->attr.axis.axis = 1;
    node->attr.axis.groups = 2;
}

static void norm_axes(Node *node) {
    node->attr.norm.axis = 3;
    node->attr.norm.axes = 2;
}

static void norm_groups(Node *node) {
    node->attr.norm.axis = 1;
    node->attr.norm.groups = 2;
}

static void slice_empty(Node *node) {
    node->attr.slice.axis = 1;
    node->attr.slice.begin = node->attr.slice.end = 2;
}

static void slice_long(Node *node) {
    node->attr.slice.axis = 1;
    node->attr.slice.begin = 1;
    node->attr.slice.end = 4;
}

static void factor(Node *node) {
    node->attr.up.factor[1] = 0;
}

static void pad_large(Node *node) {
    node->attr.pad.before[0] = 1 << 20;
}

static void reshape(Node *node) {
    node->attr.reshape = (Shape){2, {1, 191}};
}

static void reshape_rank(Node *node) {
    node->attr.reshape = (Shape){.rank = 0};
}

static void act_none(Node *node) {
    node->act.kind = ACT_NONE;
}

static void act_clip(Node *node) {
    node->act = (Act){ACT_CLIP, 0, 1, -1};
}

static void act_on_lrn(Node *node) {
    node->attr.lrn.size = 3;
    node->act.kind = ACT_RELU;
}

static const Case cases[] = {
    {OP_CONV, good_conv, ""},
    {OP_DECONV, good_conv, ""},
    {OP_CONV, conv_large, "kernel 11x3 is larger than its padded input 10x8"},
    {OP_CONV, conv_dilated,
     "dilated kernel 3x9 is larger than its padded input 8x8"},
    {OP_CONV, conv_no_kernel, "kernel 0 is outside 1..65536"},
    {OP_CONV, conv_no_stride, "stride 0 is outside 1..65536"},
    {OP_DECONV, conv_no_stride, "stride 0 is outside 1..65536"},
    {OP_CONV, conv_no_dilation, "dilation 0 is outside 1..65536"},
    {OP_CONV, conv_pad, "pad 4294967295 is outside 0..65536"},
    {OP_CONV, conv_no_outputs, "convolution has no output channels"},
    {OP_CONV, conv_groups,
     "2 groups do not divide 3 input and 6 output channels"},
    {OP_CONV, conv_no_groups,
     "0 groups do not divide 3 input and 6 output channels"},
    {OP_CONV, conv_huge, "output of 1x3000000000x6x6 is too large"},
    {OP_CONV, conv_weights, "weight of 3145728x3x16x16 is too large"},
    {OP_DECONV, deconv_empty, "pads of 10 leave nothing of 10 rows or columns"},
    {OP_DECONV, deconv_huge, "output of 1x6x458755x458755 is too large"},
    {OP_POOL, pool_large,
     "pooling kernel 9x9 is larger than its padded input 8x8"},
    {OP_POOL, pool_no_kernel, "kernel 0 is outside 1..65536"},
    {OP_POOL, pool_pad, "pad 2 is not smaller than the pooling kernel 2"},
    {OP_FC, fc_empty, "inner product has no outputs"},
    {OP_BN, bn_epsilon, "epsilon -1 is not a number from 0 up"},
    {OP_LRN, lrn_size, "size 0 is outside 1..65536"},
    {OP_LRN, lrn_even, "size 4 within a channel must be odd"},
    {OP_SOFTMAX, axis, "axis 4 is outside its input 1x3x8x8"},
    {OP_SOFTMAX, uneven_groups, "axis 1 of its input 1x3x8x8 is not 2 groups"},
    {OP_NORM, norm_axes, "axis 4 is outside its input 1x3x8x8"},
    {OP_NORM, norm_groups, "axis 1 of its input 1x3x8x8 is not 2 groups"},
    {OP_CONCAT, axis, "axis 4 is outside its input 1x3x8x8"},
    {OP_SLICE, slice_empty,
     "slice [2, 2) is outside axis 1 of its input 1x3x8x8"},
    {OP_SLICE, slice_long,
     "slice [1, 4) is outside axis 1 of its input 1x3x8x8"},
    {OP_UPSAMPLE, factor, "factor 0 is outside 1..65536"},
    {OP_PAD, pad_large, "pad 1048576 is outside 0..65536"},
    {OP_RESHAPE, reshape,
     "1x191 does not have the elements of its input 1x3x8x8"},
    {OP_RESHAPE, reshape_rank, "a shape needs 1 to 8 dimensions"},
    {OP_ACT, act_none, "activation of kind 0 is not known"},
    {OP_ACT, act_clip, "clips to [1, -1], which is empty"},
    {OP_LRN, act_on_lrn, "no activation can be fused into an operator \"lrn\""},
};

static void test_messages(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Net net = net_new();
        NodeId id = net_node1(&net, cases[i].op, "layer",
                              net_input(&net, "data", image));
        cases[i].edit(graph_node(net.g, id));
        const char *want = *cases[i].message
                               ? arena_printf(net.arena, "layer \"layer\": %s",
                                              cases[i].message)
                               : "";
        assert_string_equal(verdict(&net, id), want);
        net_free(&net);
    }
}

/* Two inputs of different shapes, under layers "a" and "b". */
static const char *pair(Net *net, OpKind op, Shape a, Shape b) {
    TensorId in[] = {net_input(net, "a", a), net_input(net, "b", b)};
    NodeId id = net_node(net, op, "both", 2, in);
    if (op == OP_CONCAT)
        graph_node(net->g, id)->attr.axis.axis = 1;
    return verdict(net, id);
}

static void test_pairs(void **state) {
    (void)state;
    static const struct {
        OpKind op;
        Shape b;
        const char *message;
    } row[] = {
        {OP_ELTWISE, {4, {1, 3, 8, 8}}, ""},
        {OP_ELTWISE, {4, {1, 3, 1, 1}}, ""},
        {OP_ELTWISE, {4, {1, 3, 8, 7}}, "(1x3x8x7) have different shapes"},
        {OP_ELTWISE, {2, {1, 3}}, "(1x3) have different ranks"},
        {OP_CONCAT, {4, {1, 5, 8, 8}}, ""},
        {OP_CONCAT,
         {4, {1, 5, 8, 7}},
         "(1x5x8x7) differ beside the axis of concatenation"},
        {OP_CONCAT, {1, {1}}, "(1) differ beside the axis of concatenation"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Net net = net_new();
        const char *want = "";
        if (*row[i].message)
            want = arena_printf(net.arena,
                                "layer \"both\": inputs from layer \"a\" "
                                "(1x3x8x8) and layer \"b\" %s",
                                row[i].message);
        assert_string_equal(pair(&net, row[i].op, image, row[i].b), want);
        net_free(&net);
    }
}

static void test_constants(void **state) {
    (void)state;
    Net net = net_new();
    NodeId id = net_node1(&net, OP_CONV, "conv", net_input(&net, "a", image));
    Node *node = graph_node(net.g, id);
    good_conv(node);
    Const c = {.shape = shape_nchw(6, 3, 3, 3), .kind = CONST_SEEDED};
    node->constant[CONST_WEIGHT] = graph_add_const(net.g, c);
    assert_string_equal(
        verdict(&net, id),
        "layer \"conv\": its weight has shape 6x3x3x3, not 6x1x3x3");
    node->constant[CONST_MEAN] = node->constant[CONST_WEIGHT];
    graph_const(net.g, node->constant[CONST_WEIGHT])->shape.dim[1] = 1;
    assert_false(graph_infer(net.g, id, net.diag));
    assert_string_equal(
        diag_at(net.diag, 1)->text,
        "layer \"conv\": an operator \"conv\" has no constant \"mean\"");
    net_free(&net);
}

static void test_inputs(void **state) {
    (void)state;
    Net net = net_new();
    TensorId empty = net_input(&net, "empty", shape_nchw(1, 0, 2, 2));
    TensorId huge = net_input(&net, "huge", shape_nchw(65536, 65536, 1, 1));
    TensorId flat = net_input(&net, "flat", (Shape){2, {1, 10}});
    assert_false(
        graph_infer(net.g, graph_tensor(net.g, empty)->producer, net.diag));
    assert_false(
        graph_infer(net.g, graph_tensor(net.g, huge)->producer, net.diag));
    NodeId conv = net_node1(&net, OP_CONV, "conv", flat);
    graph_add_output(net.g, conv, "conv");
    assert_false(graph_infer(net.g, conv, net.diag));
    assert_string_equal(diag_at(net.diag, 0)->text,
                        "layer \"empty\": input of 1x0x2x2 is empty");
    assert_string_equal(
        diag_at(net.diag, 1)->text,
        "layer \"huge\": input of 65536x65536x1x1 is too large");
    assert_string_equal(
        diag_at(net.diag, 2)->text,
        "layer \"conv\": needs an input N x C x H x W, not 1x10");
    net_free(&net);
}

static void test_arity(void **state) {
    (void)state;
    Net net = net_new();
    TensorId in = net_input(&net, "x", image), two[] = {in, in};
    NodeId act = net_node(&net, OP_ACT, "act", 2, two);
    assert_string_equal(verdict(&net, act),
                        "layer \"act\": has 2 inputs, not 1");
    NodeId sum = net_node1(&net, OP_ELTWISE, "sum", in);
    graph_add_output(net.g, sum, "sum");
    assert_false(graph_infer(net.g, sum, net.diag));
    assert_string_equal(diag_at(net.diag, 1)->text,
                        "layer \"sum\": has 1 inputs, not 2 to 16");
    net_free(&net);
}

/* Layers behind a wrong one are silent; others still speak. */
static void test_infer_all(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = net_input(&net, "x", image);
    TensorId y = net_conv(&net, "first", x, 4, ACT_RELU);
    net_conv(&net, "behind", y, 4, ACT_RELU);
    net_conv(&net, "other", x, 4, ACT_RELU);
    assert_true(graph_infer_all(net.g, net.diag));
    graph_node(net.g, (NodeId){1})->attr.conv.groups = 5;
    graph_node(net.g, (NodeId){3})->attr.conv.groups = 7;
    assert_false(graph_infer_all(net.g, net.diag));
    assert_int_equal(diag_errors(net.diag), 2);
    assert_string_equal(diag_at(net.diag, 1)->text,
                        "layer \"other\": 7 groups do not divide 3 input and "
                        "4 output channels");
    net_free(&net);
}

static void test_caffe_pools(void **state) {
    (void)state;
    /* in, kernel, stride, pad, then Caffe's and the floor's size; from
     * ceil((in + 2 pad - kernel) / stride) + 1, less a last window that starts
     * at or behind in + pad. */
    static const uint32_t row[][6] = {
        {112, 3, 2, 0, 56, 55}, {56, 3, 2, 0, 28, 27}, {7, 7, 1, 0, 1, 1},
        {32, 3, 2, 0, 16, 15},  {6, 2, 2, 1, 4, 4},    {5, 2, 2, 1, 3, 3},
        {4, 2, 3, 1, 2, 2},     {5, 2, 4, 1, 2, 2},    {3, 2, 4, 1, 1, 1},
        {2, 3, 2, 0, 1, 0},     {5, 1, 3, 0, 2, 2},    {224, 2, 2, 0, 112, 112},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        PoolAttr pool = {.ceil = true};
        pool.kernel[1] = row[i][1];
        pool.stride[1] = row[i][2];
        pool.pad[1] = pool.pad_end[1] = row[i][3];
        assert_int_equal(pool_out_size(&pool, 1, row[i][0]), row[i][4]);
        pool.ceil = false;
        assert_int_equal(pool_out_size(&pool, 1, row[i][0]), row[i][5]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),    cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_constants),   cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_arity),       cmocka_unit_test(test_infer_all),
        cmocka_unit_test(test_caffe_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
