/* test_rules.c - each rule on the smallest network that needs it: the nodes
 * that remain, and the values. */
#include "net.h"

static void expect(Net *net, const HwSpec *spec, const char *names) {
    net_run(net, spec);
    assert_string_equal(net_names(net), names);
    assert_true(net_compare(net) > 0);
    net_free(net);
}

static void bn_conv_bn_scale_relu_is_conv(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_bn(&net, "bn0", net_input(&net, 4, 6, 6));
    t = net_conv(&net, "conv", t, 8, 3, 1, 0, 1);
    t = net_bn(&net, "bn1", t);
    t = net_one(&net, OP_SCALE, "scale", t);
    t = net_act(&net, "relu", t, ACT_RELU);
    net_output(&net, t);
    net_run(&net, NULL);
    assert_string_equal(net_names(&net), "input data; conv conv");
    const Node *conv = net_node(&net, "conv");
    assert_int_equal(conv->act.kind, ACT_RELU);
    assert_string_equal(graph_tensor(net.g, conv->out[0])->name, "relu");
    assert_int_equal(conv->n_merged, 5);
    assert_int_equal(net_compare(&net), 2);
    net_free(&net);
}

static void bn_scale_relu_is_one_scale(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_bn(&net, "bn", net_input(&net, 4, 6, 6));
    t = net_act(&net, "relu", net_one(&net, OP_SCALE, "scale", t), ACT_RELU);
    net_output(&net, t);
    expect(&net, NULL, "input data; scale bn");
}

static void shift_before_padding_stays(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_bn(&net, "bn", net_input(&net, 4, 6, 6));
    net_output(&net, net_conv(&net, "conv", t, 8, 3, 1, 1, 1));
    expect(&net, NULL, "input data; scale bn; conv conv");
}

static void fold_into(OpKind op, uint32_t groups, bool before, uint32_t pad,
                      const char *names) {
    Net net = net_new();
    TensorId t = net_input(&net, 4, 5, 7);
    Attrs attr = conv_attr(8, 2, 2, pad, groups);
    if (op == OP_FC)
        attr = (Attrs){.fc = {8}};
    if (groups == 4 && op == OP_DECONV)
        attr.conv.out_c = 4;
    if (before)
        t = net_one(&net, OP_SCALE, "scale", t);
    t = net_add(&net, op, "layer", 1, &t, &attr);
    if (!before)
        t = net_bn(&net, "bn", t);
    net_output(&net, t);
    expect(&net, NULL, names);
}

static void scales_fold_into_each_kind_of_weights(void **state) {
    (void)state;
    fold_into(OP_CONV, 1, false, 1, "input data; conv layer");
    fold_into(OP_CONV, 2, false, 1, "input data; conv layer");
    fold_into(OP_CONV, 1, true, 0, "input data; conv layer");
    fold_into(OP_CONV, 4, true, 0, "input data; conv layer");
    fold_into(OP_CONV, 2, true, 0, "input data; scale scale; conv layer");
    fold_into(OP_DECONV, 1, false, 1, "input data; deconv layer");
    fold_into(OP_DECONV, 4, false, 1, "input data; deconv layer");
    fold_into(OP_DECONV, 2, false, 0, "input data; deconv layer; scale bn");
    fold_into(OP_DECONV, 1, true, 0, "input data; scale scale; deconv layer");
    fold_into(OP_FC, 1, false, 0, "input data; fc layer");
    fold_into(OP_FC, 1, true, 0, "input data; fc layer");
}

/* Without a shift even padding and transposed convolutions take factors. */
static void pure_factors_fold_anywhere(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        Net net = net_new();
        TensorId t = net_one(&net, OP_SCALE, "scale", net_input(&net, 4, 5, 5));
        NodeId scale = graph_tensor(net.g, t)->producer;
        ConstId zero = graph_add_const(
            net.g, (Const){.shape = {1, {4}}, .kind = CONST_SEEDED});
        graph_node(net.g, scale)->constant[CONST_BIAS] = zero;
        Attrs attr = conv_attr(6, 3, 2, 1, 2);
        attr.conv.groups = i ? 2 : 1;
        t = net_add(&net, i ? OP_DECONV : OP_CONV, "layer", 1, &t, &attr);
        net_output(&net, t);
        expect(&net, NULL,
               i ? "input data; deconv layer" : "input data; conv layer");
    }
}

static void a_layer_read_twice_or_seen_stays(void **state) {
    (void)state;
    Net net = net_new();
    TensorId conv =
        net_conv(&net, "conv", net_input(&net, 3, 5, 5), 4, 1, 1, 0, 1);
    TensorId relu = net_act(&net, "relu", conv, ACT_RELU);
    TensorId both[] = {conv, relu};
    net_output(&net, net_eltwise(&net, "sum", ELT_ADD, 2, both));
    expect(&net, NULL, "input data; conv conv; act relu; eltwise sum");

    net = net_new();
    conv = net_conv(&net, "conv", net_input(&net, 3, 5, 5), 4, 1, 1, 0, 1);
    net_output(&net, conv);
    net_output(&net, net_act(&net, "relu", conv, ACT_RELU));
    expect(&net, NULL, "input data; conv conv; act relu");
}

static void dropout_hands_its_name_to_an_output(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t =
        net_conv(&net, "conv", net_input(&net, 3, 5, 5), 4, 1, 1, 0, 1);
    net_output(&net, net_one(&net, OP_IDENTITY, "drop", t));
    expect(&net, NULL, "input data; conv conv");
    net = net_new(); /* an input is no output, and two outputs are not one */
    net_output(&net,
               net_one(&net, OP_IDENTITY, "drop", net_input(&net, 3, 5, 5)));
    expect(&net, NULL, "input data; identity drop");
    net = net_new();
    t = net_conv(&net, "conv", net_input(&net, 3, 5, 5), 4, 1, 1, 0, 1);
    net_output(&net, t);
    net_output(&net, net_one(&net, OP_IDENTITY, "drop", t));
    expect(&net, NULL, "input data; conv conv; identity drop");
}

static void reshapes_that_move_nothing_go(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_input(&net, 3, 4, 4);
    Attrs flat = {.reshape = {2, {1, 48}}},
          cube = {.reshape = {4, {1, 3, 4, 4}}};
    t = net_add(&net, OP_RESHAPE, "flat", 1, &t, &flat);
    t = net_add(&net, OP_RESHAPE, "cube", 1, &t, &cube);
    t = net_conv(&net, "conv", t, 4, 3, 1, 1, 1);
    Attrs row = {.reshape = {2, {1, 64}}};
    t = net_add(&net, OP_RESHAPE, "row", 1, &t, &row);
    net_output(&net, net_fc(&net, "fc", t, 5));
    expect(&net, NULL, "input data; conv conv; fc fc");
}

static TensorId net_pad(Net *net, const char *name, TensorId in, double value) {
    Attrs attr = {.pad = {{1, 0}, {1, 1}, value}};
    return net_add(net, OP_PAD, name, 1, &in, &attr);
}

static void padding_goes_into_windows_of_zeros(void **state) {
    (void)state;
    Net net = net_new();
    TensorId in = net_input(&net, 3, 6, 6);
    TensorId t =
        net_conv(&net, "conv", net_pad(&net, "pad", in, 0), 4, 3, 1, 0, 1);
    net_output(&net, net_pool(&net, "avg", net_pad(&net, "pad2", t, 0),
                              POOL_AVG, 2, 2, 0, false));
    expect(&net, NULL, "input data; conv conv; pool avg");
    net = net_new();
    in = net_input(&net, 3, 6, 6);
    t = net_conv(&net, "conv", net_pad(&net, "pad", in, 1), 4, 3, 1, 0, 1);
    t = net_pool(&net, "max", net_pad(&net, "pad2", t, 0), POOL_MAX, 2, 2, 0,
                 false);
    t = net_pool(&net, "avg", net_pad(&net, "pad3", t, 0), POOL_AVG, 2, 2, 0,
                 true);
    net_output(&net, t);
    expect(&net, NULL,
           "input data; pad pad; conv conv; pad pad2; pool max; pad pad3; "
           "pool avg");
}

/* One padding after the other goes into the window, though others read them. */
static void shared_paddings_go_one_by_one(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_input(&net, 3, 6, 6);
    t = net_pad(&net, "pad", t, 0);
    t = net_pad(&net, "pad2", t, 0);
    net_output(&net, net_conv(&net, "conv", t, 4, 3, 1, 0, 1));
    net_output(&net, t);
    expect(&net, NULL, "input data; pad pad; pad pad2; conv conv");
}

static void an_activation_passes_a_maximum(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t =
        net_conv(&net, "conv", net_input(&net, 3, 7, 7), 4, 3, 1, 1, 1);
    t = net_pool(&net, "pool", t, POOL_MAX, 3, 2, 0, true);
    net_output(&net, net_act(&net, "relu", t, ACT_LEAKY));
    expect(&net, NULL, "input data; conv conv; pool pool");
    net = net_new();
    t = net_conv(&net, "conv", net_input(&net, 3, 7, 7), 4, 3, 1, 1, 1);
    t = net_pool(&net, "pool", t, POOL_AVG, 3, 2, 0, true);
    net_output(&net, net_act(&net, "relu", t, ACT_RELU));
    expect(&net, NULL, "input data; conv conv; pool pool; act relu");
}

static void one_activation_does_for_all_readers(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_pool(&net, "pool", net_input(&net, 4, 6, 6), POOL_AVG, 2,
                          2, 0, false);
    for (int i = 0; i < 2; i++) {
        TensorId same = net_act(&net, i ? "b" : "a", t, ACT_RELU);
        net_output(&net, net_conv(&net, i ? "d" : "c", same, 4, 1, 1, 0, 1));
    }
    expect(&net, NULL, "input data; pool pool; act a; conv c; conv d");
    net = net_new();
    t = net_input(&net, 4, 6, 6);
    TensorId a = net_act(&net, "a", t, ACT_RELU);
    TensorId b = net_act(&net, "b", t, ACT_TANH);
    net_output(&net, net_conv(&net, "c", a, 4, 1, 1, 0, 1));
    net_output(&net, net_conv(&net, "d", b, 4, 1, 1, 0, 1));
    expect(&net, NULL, "input data; act a; act b; conv c; conv d");
}

/* Two of three members are convolutions, which apply it. */
static void activations_go_before_a_concat(void **state) {
    (void)state;
    Net net = net_new();
    TensorId part[3] = {net_input(&net, 4, 6, 6)};
    part[1] = net_conv(&net, "b", part[0], 4, 1, 1, 0, 1);
    part[2] = net_conv(&net, "c", part[0], 4, 3, 1, 1, 1);
    TensorId t = net_concat(&net, "cat", 3, part);
    t = net_act(&net, "relu", t, ACT_RELU);
    net_output(&net, net_conv(&net, "d", t, 4, 1, 1, 0, 1));
    net_run(&net, NULL);
    assert_string_equal(net_names(&net),
                        "input data; conv b; conv c; act relu_data; "
                        "concat cat; conv d");
    assert_int_equal(net_node(&net, "b")->act.kind, ACT_RELU);
    assert_int_equal(net_node(&net, "c")->act.kind, ACT_RELU);
    assert_true(net_compare(&net) > 0);
    net_free(&net);
    net = net_new();
    part[0] = net_input(&net, 9, 6, 6);
    part[1] = net_conv(&net, "b", part[0], 4, 1, 1, 0, 1);
    part[2] = net_conv(&net, "c", part[0], 4, 3, 1, 1, 1);
    t = net_concat(&net, "cat", 3, part);
    net_output(&net, net_act(&net, "relu", t, ACT_RELU));
    expect(&net, NULL, "input data; conv b; conv c; concat cat; act relu");
}

static void a_lone_activation_is_a_scale_where_that_runs(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v3-96", NULL, NULL);
    TensorId t = net_pool(&net, "pool", net_input(&net, 8, 6, 6), POOL_AVG, 2,
                          2, 0, false);
    net_output(&net, net_act(&net, "relu", t, ACT_RELU));
    expect(&net, spec, "input data; pool pool; scale relu");
    net = net_new();
    spec = net_spec(&net, "xdnn-v3-96", NULL, NULL);
    t = net_pool(&net, "pool", net_input(&net, 8, 6, 6), POOL_AVG, 2, 2, 0,
                 false);
    net_output(&net, net_act(&net, "tanh", t, ACT_TANH));
    expect(&net, spec, "input data; pool pool; act tanh");
}

static void engines_without_the_activation_leave_it(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v3-96", NULL, NULL);
    TensorId t =
        net_conv(&net, "conv", net_input(&net, 8, 6, 6), 8, 3, 1, 1, 1);
    net_output(&net, net_act(&net, "sigmoid", t, ACT_SIGMOID));
    expect(&net, spec, "input data; conv conv; act sigmoid");
}

static void missing_activations_are_made_of_others(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v2-28", NULL, NULL);
    TensorId t =
        net_conv(&net, "conv", net_input(&net, 8, 6, 6), 8, 3, 1, 1, 1);
    t = net_act(&net, "leaky", net_bn(&net, "bn", t), ACT_LEAKY);
    net_output(&net, net_pool(&net, "pool", t, POOL_MAX, 2, 2, 0, true));
    expect(&net, spec,
           "input data; conv conv; pool pool; scale leaky__rest; eltwise "
           "leaky");
    net = net_new();
    spec = net_spec(&net, "xdnn-v2-28", NULL, NULL);
    t = net_conv(&net, "conv", net_input(&net, 8, 6, 6), 8, 3, 1, 1, 1);
    net_output(&net, net_act(&net, "relu6", t, ACT_RELU6));
    expect(&net, spec,
           "input data; conv conv; scale relu6__above; scale relu6__minus; "
           "eltwise relu6");
    net = net_new();
    spec = net_spec(&net, "xdnn-v2-28", NULL, NULL);
    t = net_conv(&net, "conv", net_input(&net, 8, 6, 6), 8, 3, 1, 1, 1);
    net_output(&net, net_act(&net, "leaky", t, ACT_LEAKY));
    expect(&net, spec,
           "input data; conv conv; scale leaky__rest; eltwise leaky");
}

/* A tensor times its gate, and once times another tensor's. */
static void a_gated_tensor_is_an_activation(void **state) {
    (void)state;
    Net net = net_new();
    Attrs mul = {.elt = {ELT_MUL, NULL}};
    TensorId x = net_input(&net, 4, 5, 5);
    TensorId s = net_act(&net, "s", x, ACT_SIGMOID);
    TensorId y = net_add(&net, OP_ELTWISE, "y", 2, (TensorId[]){x, s}, &mul);
    TensorId h = net_add_act(&net, OP_ACT, "h", 1, &y, NULL,
                             (Act){ACT_HARD_SIGMOID, 1.0 / 6, 0.5, 0});
    TensorId z = net_add(&net, OP_ELTWISE, "z", 2, (TensorId[]){h, y}, &mul);
    TensorId r = net_act(&net, "r", z, ACT_SIGMOID);
    net_output(&net,
               net_add(&net, OP_ELTWISE, "no", 2, (TensorId[]){r, x}, &mul));
    net_run(&net, NULL);
    assert_string_equal(net_names(&net),
                        "input data; act y; act z; act r; eltwise no");
    assert_int_equal(net_node(&net, "y")->act.kind, ACT_SILU);
    assert_int_equal(net_node(&net, "z")->act.kind, ACT_HARD_SWISH);
    assert_true(net_compare(&net) > 0);
    net_free(&net);
}

static void sums_of_many_are_sums_of_two(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v2-28", NULL, NULL);
    TensorId in = net_input(&net, 4, 6, 6), part[4];
    for (int i = 0; i < 4; i++)
        part[i] = net_conv(&net, "c", in, 4, 3, 1, 1, 1);
    TensorId t = net_eltwise(&net, "sum", ELT_ADD, 4, part);
    net_output(&net, net_act(&net, "relu", t, ACT_RELU));
    expect(&net, spec,
           "input data; conv c; conv c_2; conv c_3; conv c_4; eltwise "
           "sum__part; eltwise sum__part_2; eltwise sum");
}

static void groups_become_dense_where_asked(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v3-96", NULL, NULL);
    TensorId t = net_one(&net, OP_SCALE, "scale", net_input(&net, 8, 6, 6));
    t = net_conv(&net, "dw", t, 8, 3, 1, 0, 8);
    net_output(&net, net_conv(&net, "group", t, 12, 3, 1, 0, 4));
    net_run(&net, spec);
    assert_string_equal(net_names(&net), "input data; conv dw; conv group");
    assert_int_equal(net_node(&net, "group")->attr.conv.groups, 1);
    assert_int_equal(net_compare(&net), 3);
    net_free(&net);
}

static void strided_1x1_becomes_pool_and_conv(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec =
        net_spec(&net, "xdnn-v2-28", "rewrites.conv_1x1_stride2", "true");
    TensorId t = net_conv(&net, "res3a_branch1", net_input(&net, 8, 7, 7), 8, 1,
                          2, 0, 1);
    net_output(&net, net_act(&net, "relu", t, ACT_RELU));
    expect(&net, spec,
           "input data; pool maxpool_res3a_branch1; conv res3a_branch1");
}

static void conv_and_pool_pipeline(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v3-96", NULL, NULL);
    TensorId t =
        net_conv(&net, "conv1", net_input(&net, 3, 14, 14), 8, 7, 2, 3, 1);
    t = net_act(&net, "relu1", t, ACT_RELU);
    net_output(&net, net_pool(&net, "pool1", t, POOL_MAX, 3, 2, 0, true));
    net_run(&net, spec);
    assert_string_equal(net_names(&net), "input data; conv_pool pool1");
    const Node *node = net_node(&net, "pool1");
    assert_string_equal(node->conv_name, "conv1");
    assert_int_equal(node->n_merged, 3);
    net_compare(&net);
    net_free(&net);
}

static void pools_move_before_a_concat_of_convolutions(void **state) {
    (void)state;
    Net net = net_new();
    const HwSpec *spec = net_spec(&net, "xdnn-v3-96", NULL, NULL);
    TensorId in = net_input(&net, 8, 9, 9), part[3];
    part[0] = net_conv(&net, "a", in, 8, 1, 1, 0, 1);
    part[1] = net_conv(&net, "b", in, 16, 3, 1, 1, 1);
    part[2] = net_conv(&net, "c", in, 8, 5, 1, 2, 1);
    for (int i = 0; i < 3; i++)
        part[i] = net_act(&net, "relu", part[i], ACT_RELU);
    TensorId t = net_concat(&net, "out", 3, part);
    net_output(&net, net_pool(&net, "pool", t, POOL_MAX, 3, 2, 0, true));
    expect(&net, spec,
           "input data; conv_pool a_pool; conv_pool b_pool; conv_pool c_pool; "
           "concat out");
}

/* A hundred thousand firings must not take a hundred thousand sweeps. */
static void long_chains_are_quick(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t = net_input(&net, 1, 1, 1);
    for (int i = 0; i < 2000; i++)
        t = net_one(&net, i % 2 ? OP_SCALE : OP_IDENTITY, "s", t);
    net_output(&net, t);
    expect(&net, NULL, "input data; scale s_2");
}

static void firings_are_logged(void **state) {
    (void)state;
    Net net = net_new();
    TensorId t =
        net_conv(&net, "conv", net_input(&net, 3, 5, 5), 4, 1, 1, 0, 1);
    net_output(&net, net_act(&net, "relu", t, ACT_RELU));
    net_seal(&net);
    FILE *log = tmpfile(), *dump = tmpfile();
    PassTime *times = ARENA_ARRAY(net.arena, PassTime, n_passes);
    PassContext context = {
        .diag = net.diag, .scratch = net.scratch, .log = log};
    assert_true(passes_run(net.g, &context, "fuse", dump, times));
    char text[256] = "";
    rewind(log);
    assert_non_null(fgets(text, sizeof text, log));
    assert_string_equal(text, "act: conv relu\n");
    assert_null(fgets(text, sizeof text, log));
    rewind(dump);
    assert_non_null(fgets(text, sizeof text, dump));
    assert_string_equal(text, "# after fuse\n");
    assert_string_equal(times[0].name, "bias");
    assert_int_equal(times[0].nodes, 3);
    assert_int_equal(times[n_passes - 1].nodes, 2);
    fclose(log);
    fclose(dump);
    net_free(&net);
}

static void the_table_prints(void **state) {
    (void)state;
    FILE *to = tmpfile();
    passes_print(to);
    rewind(to);
    char text[16384] = "";
    text[fread(text, 1, sizeof text - 1, to)] = '\0';
    fclose(to);
    for (uint32_t i = 0; i < n_passes; i++)
        assert_non_null(strstr(text, passes[i].doc));
    assert_non_null(strstr(
        text, "  fold       scale-before       scale -> conv|deconv|fc\n"));
    assert_non_null(strstr(text, "  engines compute one image at a time\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bn_conv_bn_scale_relu_is_conv),
        cmocka_unit_test(bn_scale_relu_is_one_scale),
        cmocka_unit_test(shift_before_padding_stays),
        cmocka_unit_test(scales_fold_into_each_kind_of_weights),
        cmocka_unit_test(pure_factors_fold_anywhere),
        cmocka_unit_test(a_layer_read_twice_or_seen_stays),
        cmocka_unit_test(dropout_hands_its_name_to_an_output),
        cmocka_unit_test(reshapes_that_move_nothing_go),
        cmocka_unit_test(padding_goes_into_windows_of_zeros),
        cmocka_unit_test(shared_paddings_go_one_by_one),
        cmocka_unit_test(an_activation_passes_a_maximum),
        cmocka_unit_test(one_activation_does_for_all_readers),
        cmocka_unit_test(activations_go_before_a_concat),
        cmocka_unit_test(a_lone_activation_is_a_scale_where_that_runs),
        cmocka_unit_test(engines_without_the_activation_leave_it),
        cmocka_unit_test(missing_activations_are_made_of_others),
        cmocka_unit_test(a_gated_tensor_is_an_activation),
        cmocka_unit_test(sums_of_many_are_sums_of_two),
        cmocka_unit_test(groups_become_dense_where_asked),
        cmocka_unit_test(strided_1x1_becomes_pool_and_conv),
        cmocka_unit_test(conv_and_pool_pipeline),
        cmocka_unit_test(pools_move_before_a_concat_of_convolutions),
        cmocka_unit_test(long_chains_are_quick),
        cmocka_unit_test(firings_are_logged),
        cmocka_unit_test(the_table_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
