/* The text form: a graph with every operator, attribute and kind of constant
 * goes round; wrong texts get exact messages; damaged ones never crash. */
#include "net.h"

#include "base/rng.h"

#include <string.h>

#define SOME_CONV                                                              \
    {                                                                          \
        4, 2, {3, 2}, {2, 1}, {1, 2}, {1, 2}, {                                \
            0, 1                                                               \
        }                                                                      \
    }
static const Attrs attrs[OP_COUNT] = {
    [OP_CONV] = {.conv = SOME_CONV},
    [OP_DECONV] = {.conv = SOME_CONV},
    [OP_CONV_POOL] =
        {.conv = SOME_CONV,
         .pool = {POOL_AVG, false, true, true, {2, 3}, {2, 1}, {1, 0}, {0, 1}}},
    [OP_POOL] = {.pool = {.global = true, .kernel = {1, 1}, .stride = {1, 1}}},
    [OP_BN] = {.bn.eps = 1e-5},
    [OP_SLICE] = {.slice = {.axis = 1, .end = 1}},
    [OP_LRN] = {.lrn = {true, 5, 1e-4, 0.75, 2}},
    [OP_SOFTMAX] = {.axis.axis = 1},
    [OP_UPSAMPLE] = {.up.factor = {1, 3}},
    [OP_PAD] = {.pad = {.before = {2, 0}, .value = -1.5}},
    [OP_RESHAPE] = {.reshape = {1, {4 * 9 * 9}}},
    [OP_FC] = {.fc.out = 7},
    [OP_TRANSPOSE] = {.perm = {4, {0, 2, 3, 1}}},
    [OP_REDUCE] = {.reduce = {.kind = REDUCE_L2, .axes = 5}},
    [OP_GATHER] = {.gather = {.axis = 2, .n = 5, .taps = 3}},
    [OP_ROUTINE] = {.routine.kind = ROUTINE_TOP_K},
    [OP_NORM] =
        {.norm = {.axis = 1, .eps = 0.25, .axes = 1, .groups = 2, .rms = 1}},
    [OP_OFFSET] = {.reshape = {3, {2, 1, 3}}},
    [OP_PIXELS] = {.plane = {2, 5}},
};

static TensorId volume_layer(Net *net, OpKind op, const char *name,
                             TensorId in) {
    NodeId id = net_node1(net, op, name, in);
    Node *node = graph_node(net->g, id);
    static const Attrs none;
    if (memcmp(&attrs[op], &none, sizeof none))
        node->attr = attrs[op];
    node->no_bias = op == OP_FC;
    if (op == OP_CONV_POOL) {
        node->conv_name = "inner \"conv\"\n";
        node->act = (Act){ACT_CLIP, 0, -0.1, 1.0 / 3};
    } else if (op == OP_ACT) {
        node->act = (Act){ACT_LEAKY, 0.1, 0, 0};
    } else if (op == OP_ROUTINE) {
        routine_defaults(ROUTINE_TOP_K, node->attr.routine.number);
        node->attr.routine.number[0] = 1;
    }
    return net_out(net, id);
}

static void mix_by_windows(Node *mix) {
    mix->attr.mix.groups = 2;
    mix->attr.mix.windows[0] = 3;
    mix->attr.mix.windows[1] = 1;
    mix->attr.mix.shift[1] = 4;
}

/* A layer of each kind, all reading the input. */
static Net everything(void) {
    static const double coeff[] = {1, -0.25};
    Net net = net_new();
    TensorId x = net_input(&net, "x", shape_nchw(1, 4, 9, 9));
    graph_tensor(net.g, x)->quant = (Quant){QUANT_U8, 3, 0.1, QUANT_EVEN};
    for (OpKind op = OP_INPUT + 1; op < OP_COUNT; op++) {
        TensorId out = {0};
        if (op == OP_CONSTANT) {
            NodeId id = net_node(&net, op, "constant", 0, NULL);
            graph_node(net.g, id)->attr.reshape = (Shape){3, {2, 1, 5}};
            out = net_out(&net, id);
        } else if (op == OP_CALL) {
            NodeId id = net_node(&net, op, "call", 1, &x);
            graph_node(net.g, id)->attr.call.shape = (Shape){2, {2, 3}};
            graph_node(net.g, id)->attr.call.what = "com.example.Op";
            graph_node(net.g, id)->attr.call.result = 1;
            out = net_out(&net, id);
        } else if (op == OP_ELTWISE || op == OP_CONCAT || op == OP_MATMUL ||
                   op == OP_MIX) {
            NodeId id =
                net_node(&net, op, op_info[op].name, 2, (TensorId[]){x, x});
            if (op == OP_ELTWISE)
                graph_node(net.g, id)->attr.elt.coeff = coeff;
            else if (op == OP_CONCAT)
                graph_node(net.g, id)->attr.axis.axis = 2;
            else if (op == OP_MIX)
                mix_by_windows(graph_node(net.g, id));
            out = net_out(&net, id);
        } else {
            out = volume_layer(&net, op, op_info[op].name, x);
        }
        graph_mark_output(net.g, out);
    }
    NodeId split = net_node1(&net, OP_IDENTITY, "split", x);
    net_out(&net, split);
    net_out(&net, split);
    graph_seed_constants(net.g, 42);
    graph_mark_original(net.g);
    graph_merge_names(net.g, (NodeId){1}, (NodeId){2});
    return net;
}

static void test_round_trip(void **state) {
    (void)state;
    Net net = everything();
    Const *c = &net.g->constant.at[0];
    double mul0[] = {1, 0.1, 1e-300, 3}, mul1[] = {1.0 / 3, -2};
    assert_int_equal(c->shape.dim[0], 4);
    assert_int_equal(c->shape.dim[1], 2);
    c->mul0 = mul0;
    c->mul1 = mul1;
    c->groups = 2;
    const_set_order(c, (const uint32_t[]){3, 2, 0, 1});
    graph_verify(net.g, "test");
    const char *text = graph_print(net.arena, net.g);
    Graph *again = graph_read(net.arena, net.diag, "text", text, strlen(text));
    if (!again)
        fail_msg("%s", diag_at(net.diag, 0)->text);
    graph_verify(again, "test");
    assert_string_equal(graph_print(net.arena, again), text);
    uint32_t n;
    const float *const *in = graph_seed_inputs(net.arena, net.g, 1, &n);
    Values a = graph_eval(net.arena, net.g, n, in);
    Values b = graph_eval(net.arena, again, n, in);
    for (uint32_t t = 0; t < net.g->tensor.n; t++)
        assert_memory_equal(a.at[t], b.at[t],
                            sizeof(float) *
                                shape_count(&net.g->tensor.at[t].shape));
    net_free(&net);
}

static void test_golden(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = net_input(&net, "data", shape_nchw(1, 3, 8, 8));
    TensorId y = net_conv(&net, "conv \"1\"", x, 4, ACT_RELU);
    graph_mark_output(net.g, y);
    graph_mark_original(net.g);
    static const float bias[] = {1, 2, 3, 4};
    Const c = {.shape = {1, {4}}, .kind = CONST_F32, .data = bias};
    net.g->node.at[1].constant[CONST_BIAS] = graph_add_const(net.g, c);
    assert_string_equal(
        graph_print(net.arena, net.g),
        "graph \"net\"\n"
        "const 0 f32 4 # 8faa0a18faf0fb98\n"
        "input \"data\" writes=\"data\":1x3x8x8 origin=0 "
        "at=\"net.prototxt\":1:1\n"
        "conv \"conv \\x221\\x22\" reads=\"data\" "
        "writes=\"conv \\x221\\x22\":1x4x8x8 out_c=4 groups=1 kernel=3,3 "
        "stride=1,1 dilation=1,1 pad=1,1 pad_end=1,1 act=relu alpha=0 lo=0 "
        "hi=0 bias=0 origin=1 at=\"net.prototxt\":2:1\n"
        "output \"conv \\x221\\x22\"\n");
    net_free(&net);
}

/* Constants whose values are not told come back as missing ones. */
static void test_data_is_left_out(void **state) {
    (void)state;
    static const char text[] =
        "const 0 f32 4x3x1x1 # 0\n"
        "input \"x\" writes=\"x\":1x3x2x2\n"
        "conv \"a\" reads=\"x\" writes=\"a\":1x4x2x2 out_c=4 kernel=1,1 "
        "weight=0\n"
        "conv \"b\" reads=\"x\" writes=\"b\":1x4x2x2 out_c=4 kernel=1,1\n";
    Net net = net_new();
    Graph *g = graph_read(net.arena, net.diag, "t", text, strlen(text));
    assert_non_null(g);
    assert_int_equal(graph_seed_constants(g, 1), 2);
    assert_int_equal(g->node.at[1].constant[CONST_BIAS].i, NONE);
    assert_int_equal(g->node.at[2].constant[CONST_BIAS].i, 2);
    net_free(&net);
}

#define X "input \"x\" writes=\"x\":1x3x2x2\n"

static const struct {
    const char *text;
    uint32_t line, col;
    const char *message;
} wrongs[] = {
    {"graph\n", 1, 1, "\"graph\" needs a name in quotes behind it"},
    {"\n= 3", 2, 1, "expected a value"},
    {"input \"x", 1, 7,
     "this string does not end, or has a backslash without xHH"},
    {"input \"\\n\"", 1, 7,
     "this string does not end, or has a backslash without xHH"},
    {"input \"x\" writes=\"x\":1x0", 1, 18,
     "expected a shape such as 1x3x224x224"},
    {"input \"x\" writes=\"x\"", 1, 18, "expected \"tensor\":shape"},
    {"input \"x\" writes=\"x\":1x2:int8:0.5:200", 1, 18,
     "expected type, scale and zero such as int8:0.25:-128"},
    {"input \"x\" writes=\"x\":1x2:int9:0.5:0", 1, 18,
     "expected type, scale and zero such as int8:0.25:-128"},
    {"input \"x\"", 1, 1, "\"input\" needs one output, not 0"},
    {X "input \"x\" writes=\"y\":1", 2, 7,
     "layer \"x\" is there twice, or has no name"},
    {X "input \"y\" writes=\"x\":1", 2, 18, "tensor \"x\" is written twice"},
    {"input \"x\" writes=\"x\":1 writes=\"y\":1", 1, 24,
     "expected 1 to 4096 outputs"},
    {"const 0 seeded 4 seed=\"1\"", 1, 18, "expected a whole number"},
    {"frob \"x\"", 1, 1, "\"frob\" is not an operator"},
    {"act \"a\" reads=\"q\"", 1, 15, "tensor \"q\" is not written above"},
    {X "act \"a\" reads=\"x\" size=3", 2, 19,
     "\"size\" is not an attribute of this operator"},
    {X "act \"a\" reads=\"x\" act=rleu", 2, 19,
     "\"act\" is not a word that is known here"},
    {X "fc \"a\" reads=\"x\" writes=\"a\":1x2 out=1,2", 2, 33,
     "\"out\" has a wrong number of values"},
    {X "pool \"a\" reads=\"x\" kernel=1", 2, 20,
     "\"kernel\" has a wrong number of values"},
    {X "pool \"a\" reads=\"x\" kernel=1,2.5", 2, 20,
     "\"kernel\" must be a whole number from 0 up"},
    {X "pool \"a\" reads=\"x\" global=2", 2, 20, "\"global\" must be 0 or 1"},
    {X "eltwise \"a\" reads=\"x\",\"x\" coeff=1", 2, 27,
     "\"coeff\" needs one value an input"},
    {X "bn \"a\" reads=\"x\" mean=0", 2, 18, "constant 0 is not defined above"},
    {"const 1 f32 4", 1, 7, "expected constant 0 here"},
    {"const 0 f8 4", 1, 9,
     "expected seeded, f32, f64, f16, bf16, i8, u8, i16 or i32"},
    {"const 0 seeded 4x4 mul0=1,2", 1, 20, "mul0 needs 4 numbers, not 2"},
    {"const 0 seeded 4x4 order=0", 1, 20, "order needs 2 numbers, not 1"},
    {"const 0 seeded 4x4 order=0,2", 1, 20, "order must have each axis once"},
    {"const 0 seeded 4x4 groups=3", 1, 20, "groups do not divide the shape"},
    {"const 0 seeded 4x4 fill=3", 1, 20, "\"fill\" is not known of a constant"},
    {"output \"x\"", 1, 8, "tensor \"x\" is not written above"},
    {X "act \"a\" reads=\"x\" writes=\"a\":1x3x2x3 act=relu", 2, 1,
     "tensor \"a\" is said to be 1x3x2x3, but its layer makes 1x3x2x2"},
    {X "act \"a\" reads=\"x\" writes=\"a\":1x3x2x2", 2, 1,
     "layer \"a\": activation of kind 0 is not known"},
    {X "pool \"a\" reads=\"x\" writes=\"a\":1x3x1x1 global=1 conv_name=\"c\"",
     0, 0, "node 1 \"a\" must not have the name of a convolution"},
};

static void test_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        Net net = net_new();
        const char *text = wrongs[i].text;
        assert_null(graph_read(net.arena, net.diag, "t", text, strlen(text)));
        const DiagMessage *message = diag_at(net.diag, 0);
        assert_string_equal(message->text, wrongs[i].message);
        assert_int_equal(message->loc.line, wrongs[i].line);
        assert_int_equal(message->loc.col, wrongs[i].col);
        net_free(&net);
    }
}

/* Whatever is read, the result is sound or there is a message. */
static void test_damaged(void **state) {
    (void)state;
    Net net = everything();
    const char *text = graph_print(net.arena, net.g);
    size_t len = strlen(text);
    for (uint64_t i = 0; i < 2000; i++) {
        Arena *arena = arena_new("damage");
        Diag *diag = diag_new(arena);
        char *copy = arena_strdup(arena, text);
        for (uint64_t k = 0; k < 1 + i % 3; k++) {
            uint64_t bits = rng_bits(i, k);
            copy[bits % len] ^= (char)(1 << (bits >> 40) % 8);
        }
        size_t cut = i % 4 ? len : rng_bits(i, 9) % len;
        Graph *g = graph_read(arena, diag, "t", copy, cut);
        assert_true(g || diag_errors(diag));
        if (g)
            graph_verify(g, "damage");
        arena_free(arena);
    }
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),       cmocka_unit_test(test_golden),
        cmocka_unit_test(test_data_is_left_out), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
