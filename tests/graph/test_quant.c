/* The arithmetic on codes: the one rule of rounding on its edges, which rule a
 * layer follows, its numbers, and what a layer then computes. */
#include "net.h"

#include "base/requant.h"
#include "base/rng.h"
#include "graph/quant.h"

#include <math.h>

/* ---- numbers ---- */

static int64_t times(double real, int64_t x) {
    return quant_apply(quant_scale(real), x);
}

static void test_halves_up(void **state) {
    (void)state;
    static const struct {
        double real;
        int64_t x, want;
    } rows[] = {
        {0.5, 3, 2},
        {0.5, -3, -1},
        {0.5, 1, 1},
        {0.5, -1, 0},
        {0.25, 2, 1},
        {0.25, -2, 0},
        {0.25, 1, 0},
        {1, -7, -7},
        {1, INT32_MAX, INT32_MAX},
        {0.75, 2, 2},
        {0.75, -2, -1},
        {3, 5, 15},
        {0, 1000, 0},
        {0x1p-33, 5, 0},
        {0x1p-31, INT32_MAX, 1},
        {1, 1LL << 40, INT32_MAX}, /* more than any type has */
        {1, -(1LL << 40), INT32_MIN},
        {0x1p-20, (1LL << 40) + (1LL << 19), (1LL << 20) + 1}, /* of 16 bits */
        {0x1p-20, -(1LL << 40) - (1LL << 19), -(1LL << 20)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(times(rows[i].real, rows[i].x), rows[i].want);
}

/* The factor has 31 bits; real factors beyond shifts have the nearest. */
static void test_scales(void **state) {
    (void)state;
    QuantScale s = quant_scale(0.3);
    assert_int_equal(s.factor, 1288490189); /* 0.3 * 2^32, rounded */
    assert_int_equal(s.shift, 32);
    s = quant_scale(1 - 0x1p-40); /* rounds up to 1 */
    assert_int_equal(s.factor, 1 << 30);
    assert_int_equal(s.shift, 30);
    s = quant_scale(1e300);
    assert_int_equal(s.factor, INT32_MAX);
    assert_int_equal(s.shift, 1);
    assert_int_equal(quant_scale(1e-300).factor, 0);
}

static void test_codes_even(void **state) {
    (void)state;
    const Quant q = {QUANT_I8, 0, 1, QUANT_EVEN};
    static const struct {
        double real;
        int32_t code;
    } given[] = {{-2.5, -2}, {-1.5, -2},   {-0.5, 0}, {0.5, 0},
                 {1.5, 2},   {2.5, 2},     {3.5, 4},  {126.5, 126},
                 {1e9, 127}, {-1e9, -128}, {NAN, 0},  {INFINITY, 127}};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        assert_int_equal(quant_code(&q, given[i].real), given[i].code);
}

/* Each rule on codes whose exact result lies between two codes. */
static void test_layers_even(void **state) {
    (void)state;
    const QuantScale half = quant_scale(0.5), one = quant_scale(1);
    const QuantScale three[] = {half, one, quant_scale(2)};
    QuantLayer q = {
        .rule = QUANT_SUMS, .round = QUANT_EVEN, .n = 1, .scale = &half};
    assert_int_equal(quant_summed(&q, 0, 5), 2);
    assert_int_equal(quant_summed(&q, 0, 7), 4);
    assert_int_equal(quant_summed(&q, 0, -5), -2);
    /* 2^24 + 1 is no float: it goes to the even one below. */
    assert_int_equal(quant_summed(&q, 0, (1 << 24) + 1), 1 << 23);
    q = (QuantLayer){.round = QUANT_EVEN, .n = 3, .scale = three};
    q.rule = QUANT_ADDS;
    assert_int_equal(quant_blend(&q, 4, 3), 2); /* (2 + 3) / 2 */
    assert_int_equal(quant_blend(&q, 8, 3), 4); /* (4 + 3) / 2 */
    q.minus = true;
    assert_int_equal(quant_blend(&q, 8, 3), 0); /* (4 - 3) / 2 */
    q.rule = QUANT_PRODUCT;
    assert_int_equal(quant_blend(&q, 2, 7), 4); /* 1 * 7 / 2 */
    q = (QuantLayer){
        .rule = QUANT_MOVES, .round = QUANT_EVEN, .n = 2, .scale = three};
    assert_int_equal(quant_moved(&q, 5), 2);
    assert_int_equal(quant_moved(&q, -3), -2);
}

static void test_codes(void **state) {
    (void)state;
    const Quant q = {QUANT_I8, -10, 0.5, QUANT_UP};
    assert_int_equal(quant_code(&q, 1.25), -7); /* 2.5 goes up */
    assert_int_equal(quant_code(&q, -1.25), -12);
    assert_int_equal(quant_code(&q, 1e9), 127);
    assert_int_equal(quant_code(&q, -INFINITY), -128);
    assert_int_equal(quant_code(&q, (double)NAN), -10);
    assert_true(quant_real(&q, 127) >= 68.5 && quant_real(&q, 127) <= 68.5);
}

/* ---- layers ---- */

static const Quant x_quant = {QUANT_I8, 2, 0.5, QUANT_UP},
                   y_quant = {QUANT_I8, -3, 0.25, QUANT_UP};

/* x [1, 2, 1, 2] of codes, convolved 1 x 1 to two channels. */
static NodeId add_conv(Net *net, TensorId x, bool factors_of_inputs) {
    static const int8_t weight[] = {1, -2, 3, 4};
    static const int32_t bias[] = {10, -20};
    static const double scale[] = {0.5, 0.125}, unit[] = {0.25, 0.0625};
    Const w = {.shape = {4, {2, 2, 1, 1}}, .kind = CONST_I8, .data = weight};
    Const b = {
        .shape = {1, {2}}, .kind = CONST_I32, .data = bias, .mul0 = unit};
    *(factors_of_inputs ? &w.mul1 : &w.mul0) = scale;
    NodeId id = net_node1(net, OP_CONV, "conv", x);
    Node *node = graph_node(net->g, id);
    node->attr.conv.out_c = 2;
    node->attr.conv.kernel[0] = node->attr.conv.kernel[1] = 1;
    node->act.kind = ACT_RELU;
    node->constant[CONST_WEIGHT] = graph_add_const(net->g, w);
    graph_node(net->g, id)->constant[CONST_BIAS] = graph_add_const(net->g, b);
    graph_tensor(net->g, net_out(net, id))->quant = y_quant;
    return id;
}

static TensorId add_input(Net *net) {
    TensorId x = net_input(net, "x", shape_nchw(1, 2, 1, 2));
    graph_tensor(net->g, x)->quant = x_quant;
    return x;
}

static void test_sums(void **state) {
    (void)state;
    Net net = net_new();
    NodeId conv = add_conv(&net, add_input(&net), false);
    const Node *node = graph_node(net.g, conv);
    graph_mark_output(net.g, node->out[0]);
    QuantLayer layer = quant_layer(net.arena, net.g, node);
    assert_int_equal(layer.rule, QUANT_SUMS);
    assert_int_equal(layer.n, 2);
    assert_int_equal(layer.zero_in[0], 2);
    assert_int_equal(layer.zero_out, -3);
    assert_int_equal(layer.lo, -3); /* relu: codes from 0 up */
    assert_int_equal(layer.hi, 127);
    /* less its zero: channels (5, -7) and (3, 1); sums (9, 1) and (7, -37),
     * times 1 and 0.25 */
    static const float in[] = {7, -5, 5, 3};
    static const float want[] = {6, -2, -1, -3};
    Values v = graph_eval(net.arena, net.g, 1, (const float *const[]){in});
    const float *out = v.at[node->out[0].i];
    for (int i = 0; i < 4; i++)
        if (out[i] < want[i] || out[i] > want[i])
            fail_msg("%d: %g instead of %g", i, (double)out[i],
                     (double)want[i]);
    net_free(&net);
}

/* What integers cannot say is left to real numbers. */
static void test_rules(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = add_input(&net);
    NodeId odd = add_conv(&net, x, true);
    assert_int_equal(quant_rule(net.g, graph_node(net.g, odd)), QUANT_REALS);
    NodeId act = net_node1(&net, OP_ACT, "tanh", x);
    graph_node(net.g, act)->act.kind = ACT_TANH;
    graph_tensor(net.g, net_out(&net, act))->quant = y_quant;
    const Node *node = graph_node(net.g, act);
    assert_int_equal(quant_rule(net.g, node), QUANT_TABLE);
    QuantLayer layer = quant_layer(net.arena, net.g, node);
    const Quant *in = &graph_tensor(net.g, x)->quant;
    for (int32_t i = 0; i < QUANT_TABLE_SIZE; i++) {
        double real = tanh(quant_real(in, layer.zero_in[0] + i));
        assert_int_equal(layer.table[i], quant_code(&y_quant, real));
    }
    graph_node(net.g, act)->act.kind = ACT_RELU6;
    assert_int_equal(quant_rule(net.g, node), QUANT_MOVES);
    assert_true(quant_act_cuts(net.g, node));
    layer = quant_layer(net.arena, net.g, node);
    assert_int_equal(layer.n, 1); /* from one scale to another */
    assert_int_equal(layer.lo, -3);
    assert_int_equal(layer.hi, 21);
    graph_tensor(net.g, node->out[0])->quant =
        (Quant){QUANT_I8, -128, 6e-3, QUANT_UP};
    assert_false(quant_act_cuts(net.g, node));
    graph_tensor(net.g, node->out[0])->quant = (Quant){0};
    assert_int_equal(quant_rule(net.g, node), QUANT_REALS);
    net_free(&net);
}

/* A gather hands values on as they are where its factors are all 1. */
static void test_gathers_that_move(void **state) {
    (void)state;
    static const float factor[][3] = {
        {1, 1, 1}, {1, 1, 0.5F}, {1, 2, 1}, {0, 1, 1}, {-1, 1, 1}};
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++) {
        Net net = net_new();
        NodeId id = net_node1(&net, OP_GATHER, "y", add_input(&net));
        Node *node = graph_node(net.g, id);
        node->attr.gather.n = 3;
        node->attr.gather.taps = 1;
        assert_false(quant_moves(net.g, node));
        Const c = {.shape = {2, {3, 1}}, .kind = CONST_F32, .data = factor[i]};
        node->constant[CONST_VALUE] = graph_add_const(net.g, c);
        assert_int_equal(quant_moves(net.g, node), i == 0);
        node->attr.gather.taps = 3;
        assert_false(quant_moves(net.g, node));
        net_free(&net);
    }
}

static void test_unsound(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = add_input(&net);
    graph_mark_output(net.g, x);
    static const Quant wrong[] = {
        {QUANT_I8, 128, 0.5, QUANT_UP}, {QUANT_U8, -1, 0.5, QUANT_UP},
        {QUANT_I8, 0, 0, QUANT_UP},     {QUANT_I16, 0, -1, QUANT_UP},
        {QUANT_NONE, 1, 0, QUANT_UP},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        graph_tensor(net.g, x)->quant = wrong[i];
        assert_string_equal(graph_broken(net.arena, net.g),
                            "node 0 \"x\" writes \"x\", whose quantisation is "
                            "not sound");
    }
    net_free(&net);
}

/* ---- as a list of stages ---- */

/* The rule of sums is [mul, shift, half_up], [add zero], [saturate]; with
 * `double` it is what rounds twice. */
static void test_stages(void **state) {
    (void)state;
    uint32_t differ = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        double real =
            ldexp(1 + rng_unit(1, i) * 0.999, -(int)(rng_bits(2, i) % 14) - 2);
        QuantScale scale = quant_scale(real);
        QuantLayer layer = {.rule = QUANT_SUMS,
                            .zero_out = (int32_t)(rng_bits(3, i) % 256) - 128,
                            .lo = -128,
                            .hi = 127};
        const int64_t mul = scale.factor, shift = scale.shift;
        const int64_t zero = layer.zero_out, lo = layer.lo, hi = layer.hi;
        RequantStage stage[] = {{.round = ROUND_HALF_UP},
                                {.round = ROUND_FLOOR},
                                {.round = ROUND_FLOOR}};
        stage[0].of[STAGE_MUL] = (StageValues){1, &mul};
        stage[0].of[STAGE_SHIFT] = (StageValues){1, &shift};
        stage[1].of[STAGE_ADD] = (StageValues){1, &zero};
        stage[2].of[STAGE_MIN] = (StageValues){1, &hi};
        stage[2].of[STAGE_MAX] = (StageValues){1, &lo};
        int64_t x = (int64_t)(rng_bits(4, i) % 4000001) - 2000000;
        int64_t want = quant_finish(&layer, quant_apply(scale, x)), once, twice;
        uint32_t at;
        assert_int_equal(requant(3, stage, 0, x, &once, &at), REQUANT_FINE);
        assert_true(once == want);
        stage[0].round = ROUND_DOUBLE;
        assert_int_equal(requant(3, stage, 0, x, &twice, &at), REQUANT_FINE);
        assert_true(twice - once <= 1 && once - twice <= 1);
        differ += once != twice;
    }
    assert_true(differ > 0 && differ < 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_halves_up),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_codes_even),
        cmocka_unit_test(test_layers_even),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_unsound),
        cmocka_unit_test(test_gathers_that_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
