/* Order, uses, rewriting, copies, and what the verifier finds. */
#include "net.h"

#include "graph/op_traits.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const Shape image = {4, {1, 4, 8, 8}};

/* x -> a -> b, x -> c, b + c -> sum. */
typedef struct Diamond {
    Net net;
    TensorId x, a, b, c, sum;
} Diamond;

static Diamond diamond(void) {
    Diamond d = {.net = net_new()};
    d.x = net_input(&d.net, "x", image);
    d.a = net_conv(&d.net, "a", d.x, 4, ACT_NONE);
    d.b = net_act(&d.net, "b", d.a, ACT_RELU);
    d.c = net_conv(&d.net, "c", d.x, 4, ACT_NONE);
    d.sum = net_add(&d.net, "sum", d.b, d.c);
    graph_mark_output(d.net.g, d.sum);
    graph_mark_original(d.net.g);
    graph_verify(d.net.g, "test");
    return d;
}

static Node *node_of(const Diamond *d, TensorId tensor) {
    return graph_node(d->net.g, graph_tensor(d->net.g, tensor)->producer);
}

/* ---- names ---- */

static void test_names(void **state) {
    (void)state;
    Net net = net_new();
    static const char *const given[] = {"conv", "conv", "conv_2",
                                        "conv", "",     "conv"};
    static const char *const got[] = {"conv",   "conv_2", "conv_2_2",
                                      "conv_3", "input",  "conv_4"};
    for (int i = 0; i < 6; i++) {
        TensorId t = net_input(&net, given[i], image);
        assert_string_equal(net.g->node.at[i].name, got[i]);
        if (*given[i])
            assert_string_equal(graph_tensor(net.g, t)->name, got[i]);
    }
    net_free(&net);
}

/* ---- order ---- */

static void test_sort_keeps_order(void **state) {
    (void)state;
    Diamond d = diamond();
    assert_true(graph_sort(d.net.g, d.net.diag));
    assert_string_equal(net_order(&d.net), "x a b c sum");
    net_free(&d.net);
}

static void test_sort_late_nodes(void **state) {
    (void)state;
    Diamond d = diamond();
    /* A pass puts a node between a and b, at the end of the list. */
    TensorId between = net_act(&d.net, "new", d.a, ACT_TANH);
    node_of(&d, d.b)->in[0] = between;
    assert_non_null(graph_broken(d.net.arena, d.net.g));
    assert_true(graph_sort(d.net.g, d.net.diag));
    assert_string_equal(net_order(&d.net), "x a c new b sum");
    graph_verify(d.net.g, "test");
    net_free(&d.net);
}

static void test_cycle(void **state) {
    (void)state;
    Diamond d = diamond();
    node_of(&d, d.a)->in[0] = d.sum;
    assert_false(graph_sort(d.net.g, d.net.diag));
    assert_string_equal(
        diag_at(d.net.diag, 0)->text,
        "layers form a cycle: \"a\" -> \"b\" -> \"sum\" -> \"a\"");
    assert_int_equal(diag_at(d.net.diag, 0)->loc.line, 2);
    net_free(&d.net);
}

static void test_self_cycle(void **state) {
    (void)state;
    Diamond d = diamond();
    node_of(&d, d.c)->in[0] = d.c;
    assert_false(graph_sort(d.net.g, d.net.diag));
    assert_string_equal(diag_at(d.net.diag, 0)->text,
                        "layers form a cycle: \"c\" -> \"c\"");
    net_free(&d.net);
}

static void test_long_cycle(void **state) {
    (void)state;
    Net net = net_new();
    TensorId first = net_input(&net, "x", image), last = first;
    for (int i = 0; i < 20; i++)
        last = net_act(&net, arena_printf(net.arena, "n%d", i), last, ACT_RELU);
    net.g->node.at[1].in[0] = last;
    assert_false(graph_sort(net.g, net.diag));
    const char *text = diag_at(net.diag, 0)->text;
    assert_string_equal(text, "layers form a cycle: \"n0\" -> \"n1\" -> "
                              "\"n2\" -> \"n3\" -> \"n4\" -> \"n5\" -> "
                              "\"n6\" -> \"n7\" -> \"n8\" -> \"n9\" -> "
                              "\"n10\" -> 8 more -> \"n19\" -> \"n0\"");
    net_free(&net);
}

/* ---- uses and rewriting ---- */

static void test_uses(void **state) {
    (void)state;
    Diamond d = diamond();
    TensorId twice = net_add(&d.net, "twice", d.sum, d.sum);
    Uses uses = graph_uses(d.net.arena, d.net.g);
    static const uint32_t readers[] = {2, 1, 1, 1, 2, 0};
    for (uint32_t t = 0; t <= twice.i; t++)
        assert_int_equal(uses.start[t + 1] - uses.start[t], readers[t]);
    assert_int_equal(uses.node[uses.start[d.x.i]].i, 1);
    assert_int_equal(uses.node[uses.start[d.x.i] + 1].i, 3);
    graph_node(d.net.g, (NodeId){3})->dead = true;
    uses = graph_uses(d.net.arena, d.net.g);
    assert_int_equal(uses.start[d.x.i + 1] - uses.start[d.x.i], 1);
    net_free(&d.net);
}

static void test_replace(void **state) {
    (void)state;
    Diamond d = diamond();
    graph_mark_output(d.net.g, d.c);
    graph_replace(d.net.g, d.sum, d.c);
    assert_int_equal(d.net.g->output.n, 1);
    assert_true(same_tensor(d.net.g->output.at[0], d.c));
    graph_replace(d.net.g, d.x, d.a);
    assert_true(same_tensor(node_of(&d, d.c)->in[0], d.a));
    net_free(&d.net);
}

static void test_fuse_and_compact(void **state) {
    (void)state;
    Diamond d = diamond();
    Graph *g = d.net.g;
    Const unused = {.shape = {1, {1}}, .kind = CONST_SEEDED};
    graph_add_const(g, unused);
    graph_seed_constants(g, 1);
    assert_int_equal(g->constant.n, 5);
    /* b's activation goes into a, as a pass would do it. */
    NodeId a = graph_tensor(g, d.a)->producer;
    NodeId b = graph_tensor(g, d.b)->producer;
    graph_node(g, a)->act = graph_node(g, b)->act;
    graph_merge_names(g, a, b);
    graph_take_over(g, d.a, d.b);
    graph_node(g, b)->dead = true;
    graph_verify(g, "test");
    assert_string_equal(graph_tensor(g, d.a)->name, "b");
    assert_int_equal(graph_tensor(g, d.a)->origin.i, d.b.i);
    assert_int_equal(graph_tensor(g, d.b)->origin.i, NONE);
    graph_compact(g);
    graph_verify(g, "test");
    assert_string_equal(net_order(&d.net), "x a c sum");
    assert_int_equal(g->tensor.n, 4);
    assert_int_equal(g->constant.n, 4);
    assert_int_equal(g->node.at[1].n_merged, 2);
    assert_string_equal(g->node.at[1].merged[1], "b");
    assert_int_equal(g->output.at[0].i, 3);
    assert_string_equal(g->tensor.at[3].name, "sum");
    assert_int_equal(g->tensor.at[3].origin.i, d.sum.i);
    net_free(&d.net);
}

static void test_compact_unread(void **state) {
    (void)state;
    Diamond d = diamond();
    TensorId side = net_act(&d.net, "side", d.a, ACT_TANH);
    net_act(&d.net, "end", side, ACT_TANH);
    net_input(&d.net, "unused", image);
    graph_compact(d.net.g);
    graph_verify(d.net.g, "test");
    assert_string_equal(net_order(&d.net), "x a b c sum unused");
    net_free(&d.net);
}

static void test_clone(void **state) {
    (void)state;
    Diamond d = diamond();
    graph_seed_constants(d.net.g, 1);
    Const *weight = &d.net.g->constant.at[0];
    weight->mul0 = (double[]){1, 2, 3, 4};
    node_of(&d, d.sum)->attr.elt.coeff = (double[]){0.5, 1};
    const char *before = graph_print(d.net.arena, d.net.g);
    Arena *arena = arena_new("clone");
    Graph *copy = graph_clone(arena, d.net.g);
    before = arena_strdup(arena, before);
    net_free(&d.net); /* the copy must not lean on it */
    graph_verify(copy, "clone");
    assert_string_equal(graph_print(arena, copy), before);
    NodeId again = graph_add(copy, OP_ACT, "a", (Loc){0}, 0, NULL);
    assert_string_equal(graph_node(copy, again)->name, "a_2");
    arena_free(arena);
}

/* ---- the verifier ---- */

typedef void Damage(Diamond *d);

static void double_name(Diamond *d) {
    node_of(d, d->b)->name = "a";
}
static void no_name(Diamond *d) {
    node_of(d, d->b)->name = "";
}
static void conv_name(Diamond *d) {
    node_of(d, d->a)->conv_name = "a";
}
static void no_conv_name(Diamond *d) {
    Node *node = node_of(d, d->a);
    node->op = OP_CONV_POOL;
    node->attr.pool.global = true;
}
static void not_merged(Diamond *d) {
    node_of(d, d->b)->merged[0] = "other";
}
static void bad_input(Diamond *d) {
    node_of(d, d->b)->in[0] = NO_TENSOR;
}
static void dead_producer(Diamond *d) {
    node_of(d, d->a)->dead = true;
}
static void too_early(Diamond *d) {
    node_of(d, d->a)->in[0] = d->c;
}
static void no_outputs(Diamond *d) {
    node_of(d, d->b)->n_out = 0;
}
static void bad_output(Diamond *d) {
    node_of(d, d->b)->out[0].i = 99;
}
static void stolen_output(Diamond *d) {
    node_of(d, d->b)->out[0] = d->a;
}
static void bad_constant(Diamond *d) {
    node_of(d, d->a)->constant[CONST_BIAS].i = 7;
}
static void wrong_constant(Diamond *d) {
    Const c = {.shape = {1, {5}}, .kind = CONST_SEEDED};
    node_of(d, d->a)->constant[CONST_BIAS] = graph_add_const(d->net.g, c);
}
static void wrong_attribute(Diamond *d) {
    node_of(d, d->a)->attr.conv.stride[0] = 0;
}
static void old_shape(Diamond *d) {
    node_of(d, d->a)->attr.conv.stride[0] = 2;
}
static void too_few_inputs(Diamond *d) {
    node_of(d, d->sum)->n_in = 1;
}
static void double_tensor_name(Diamond *d) {
    graph_tensor(d->net.g, d->b)->name = "a";
}
static void lost_tensor(Diamond *d) {
    graph_add_output(d->net.g, (NodeId){2}, "more");
    node_of(d, d->b)->n_out = 1;
}
static void bad_network_output(Diamond *d) {
    d->net.g->output.at[0].i = 50;
}
static void double_network_output(Diamond *d) {
    vec_push(d->net.arena, &d->net.g->output, d->sum);
}

static const struct {
    Damage *damage;
    const char *sentence;
} damages[] = {
    {double_name, "node 2 \"a\" shares its name with another"},
    {no_name, "node 2 has no name"},
    {conv_name, "node 1 \"a\" must not have the name of a convolution"},
    {no_conv_name, "node 1 \"a\" lacks the name of a convolution"},
    {not_merged, "node 2 \"b\" is not among its 1 merged layers"},
    {bad_input, "node 2 \"b\" reads tensor 4294967295, which does not exist"},
    {dead_producer, "node 2 \"b\" reads \"a\" of a dead node"},
    {too_early, "node 1 \"a\" reads \"c\" before it is produced"},
    {no_outputs, "node 2 \"b\" has 0 outputs"},
    {bad_output, "node 2 \"b\" writes tensor 99, which does not exist"},
    {stolen_output, "node 2 \"b\" writes \"a\", which another node produces"},
    {bad_constant, "node 1 \"a\" has constant 7 as bias, which does not exist"},
    {wrong_constant, "node 1 \"a\" is not sound: layer \"a\": its bias has "
                     "shape 5, not 4"},
    {wrong_attribute, "node 1 \"a\" is not sound: layer \"a\": stride 0 is "
                      "outside 1..65536"},
    {old_shape, "node 1 \"a\" writes \"a\" of shape 1x4x8x8, but infers "
                "1x4x4x8"},
    {too_few_inputs, "node 4 \"sum\" is not sound: layer \"sum\": has 1 "
                     "inputs, not 2 to 16"},
    {double_tensor_name, "tensors share the name \"a\""},
    {lost_tensor, "tensor \"more\" is not among the outputs of its producer"},
    {bad_network_output, "network output 0 is written by no living node"},
    {double_network_output, "network output 1 is there twice"},
};

static void test_broken(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        Diamond d = diamond();
        assert_null(graph_broken(d.net.arena, d.net.g));
        damages[i].damage(&d);
        const char *sentence = graph_broken(d.net.arena, d.net.g);
        if (!sentence || strcmp(sentence, damages[i].sentence))
            fail_msg("\"%s\" instead of \"%s\"", sentence ? sentence : "fine",
                     damages[i].sentence);
        net_free(&d.net);
    }
}

static void test_verify_exit(void **state) {
    (void)state;
    Diamond d = diamond();
    bad_network_output(&d);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        graph_verify(d.net.g, "test");
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 70);
    net_free(&d.net);
}

/* ---- what a layer needs of its operand ---- */

static Node bare(OpKind op) {
    return (Node){.op = op};
}

static void test_goes_by_pixel(void **state) {
    (void)state;
    for (uint32_t axis = 0; axis < 4; axis++) {
        Node softmax = bare(OP_SOFTMAX), norm = bare(OP_NORM);
        softmax.attr.axis.axis = axis;
        norm.attr.norm.axis = axis;
        norm.attr.norm.axes = 1;
        assert_int_equal(node_goes_by_pixel(&softmax), axis == 1);
        assert_int_equal(node_goes_by_pixel(&norm), axis == 1);
        norm.attr.norm.axes = 2;
        assert_false(node_goes_by_pixel(&norm));
    }
    for (uint32_t axes = 0; axes < 16; axes++) {
        Node reduce = bare(OP_REDUCE);
        reduce.attr.reduce.axes = axes;
        assert_int_equal(node_goes_by_pixel(&reduce), axes == 2);
    }
    for (int op = 0; op < OP_COUNT; op++)
        if (op != OP_SOFTMAX && op != OP_NORM && op != OP_REDUCE) {
            Node node = bare((OpKind)op);
            assert_int_equal(node_goes_by_pixel(&node),
                             op_has((OpKind)op, OP_BY_PIXEL));
        }
}

static void test_goes_by_row(void **state) {
    (void)state;
    Node mix = bare(OP_MIX), conv = bare(OP_CONV);
    TensorId in[] = {{3}, {5}};
    mix.n_in = 2;
    mix.in = in;
    assert_true(node_reads_whole(&mix, in[1]));
    assert_false(node_reads_whole(&mix, in[0]));
    conv.n_in = 2;
    conv.in = in;
    assert_false(node_reads_whole(&conv, in[1]));
    for (uint32_t bits = 0; bits < 16; bits++) {
        for (uint32_t k = 0; k < 2; k++) {
            mix.attr.mix.windows[k] = 1 + (bits >> k & 1);
            mix.attr.mix.shift[k] = bits >> (2 + k) & 1;
        }
        assert_int_equal(node_mixes_all(&mix), bits == 0);
        assert_int_equal(node_goes_by_row(&mix), bits == 0);
    }
    static const uint32_t order[][4] = {{0, 1, 2, 3}, {0, 3, 2, 1},
                                        {0, 2, 1, 3}, {1, 0, 2, 3},
                                        {0, 3, 1, 2}, {3, 1, 2, 0}};
    static const bool by_row[] = {true, true, false, false, false, false};
    for (size_t i = 0; i < sizeof by_row; i++) {
        Node turn = bare(OP_TRANSPOSE);
        turn.attr.perm.rank = 4;
        memcpy(turn.attr.perm.dim, order[i], sizeof order[i]);
        assert_int_equal(node_goes_by_row(&turn), by_row[i]);
        turn.attr.perm.rank = 3;
        assert_false(node_goes_by_row(&turn));
    }
    assert_false(node_goes_by_row(&conv));
}

/* ---- size ---- */

/* 20,000 layers of one name, in reverse order: what is quadratic or recursive
 * does not come to its end. */
static void test_large(void **state) {
    (void)state;
    enum { N = 20000 };
    Net net = net_new();
    TensorId t = net_input(&net, "x", (Shape){2, {1, 8}});
    for (int i = 0; i < N; i++)
        t = net_act(&net, "layer", t, ACT_RELU);
    graph_mark_output(net.g, t);
    for (uint32_t i = 0; i < (N + 1) / 2; i++) {
        Node keep = net.g->node.at[i];
        net.g->node.at[i] = net.g->node.at[N - i];
        net.g->node.at[N - i] = keep;
    }
    for (uint32_t i = 0; i <= N; i++)
        graph_tensor(net.g, net.g->node.at[i].out[0])->producer.i = i;
    assert_true(graph_sort(net.g, net.diag));
    assert_true(graph_infer_all(net.g, net.diag));
    graph_compact(net.g);
    graph_verify(net.g, "test");
    const char *text = graph_print(net.arena, net.g);
    Graph *again = graph_read(net.arena, net.diag, "text", text, strlen(text));
    assert_non_null(again);
    assert_int_equal(again->node.n, N + 1);
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sort_keeps_order),
        cmocka_unit_test(test_sort_late_nodes),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_self_cycle),
        cmocka_unit_test(test_long_cycle),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_fuse_and_compact),
        cmocka_unit_test(test_compact_unread),
        cmocka_unit_test(test_clone),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_verify_exit),
        cmocka_unit_test(test_goes_by_pixel),
        cmocka_unit_test(test_goes_by_row),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
