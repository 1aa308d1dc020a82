/* test_concats.c - which members of a concat can be written in place. */
#include "machine.h"

/* A concat of a convolution of `first` channels and one of 16. */
static Net two_members(uint32_t first, TensorId part[2]) {
    Net net = net_new();
    TensorId in = net_input(&net, 16, 6, 6);
    part[0] = net_conv(&net, "a", in, first, 1, 1, 0, 1);
    part[1] = net_conv(&net, "b", in, 16, 1, 1, 0, 1);
    return net;
}

static void members_start_where_their_engines_can(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    TensorId part[3];
    Net net = two_members(8, part);
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_run(&net, &m.spec);
    assert_int_equal(check(&net, &m, "cat").op, HW_OP_CONCAT);
    net_free(&net);

    net = two_members(12, part);
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_run(&net, &m.spec); /* a copy would start at 12 as well */
    expect(&net, &m, "cat",
           "member b starts at channel 12 or in a part that does, engine conv "
           "writes at multiples of 8");
    assert_string_equal(net_names(&net), "input data; conv a; conv b; concat "
                                         "cat");
    net_free(&net);
}

static void copies_make_members_writable(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    TensorId part[4];
    Net net = two_members(8, part);
    part[2] = net_pool(&net, "pool", part[1], POOL_MAX, 3, 1, 1, false);
    part[3] = graph_node(net.g, (NodeId){0})->out[0];
    net_output(&net, net_concat(&net, "cat", 4, part));
    net_run(&net, &m.spec);
    /* b is read by pool too and is not at the start of a section of 96; a pool
     * cannot write at 24; an input must be copied. */
    assert_string_equal(net_names(&net),
                        "input data; conv a; conv b; pool pool; conv b__bridge;"
                        " conv pool__bridge; conv data__bridge; concat cat");
    assert_int_equal(check(&net, &m, "cat").op, HW_OP_CONCAT);
    assert_int_equal(net_compare(&net), 8);
    net_free(&net);
}

static void a_tensor_lies_in_one_concat(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    TensorId part[2];
    Net net = two_members(96, part);
    TensorId twice[] = {part[0], part[0]};
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_output(&net, net_concat(&net, "dog", 2, twice));
    net_seal(&net);
    expect(&net, &m, "dog", "member a lies in concat cat already");
    net_passes(&net, &m.spec);
    assert_string_equal(net_names(&net),
                        "input data; conv a; conv b; concat cat; conv "
                        "a__bridge; conv a__bridge_2; concat dog");
    expect(&net, &m, "dog", NULL);
    net_compare(&net);
    net_free(&net);
}

static void outputs_and_host_layers_are_copied(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    TensorId part[2];
    Net net = two_members(96, part);
    Attrs lrn = {.lrn = {false, 3, 1, 1, 1}};
    part[1] = net_add(&net, OP_LRN, "lrn", 1, &part[1], &lrn);
    net_output(&net, part[0]);
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_seal(&net);
    expect(&net, &m, "cat", "member lrn comes from the host");
    net_passes(&net, &m.spec);
    assert_string_equal(net_names(&net),
                        "input data; conv a; conv b; lrn lrn; conv a__bridge; "
                        "conv lrn__bridge; concat cat");
    expect(&net, &m, "cat", NULL);
    net_compare(&net);
    net_free(&net);
}

static void the_host_keeps_what_is_all_its_own(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 16, 6, 6), part[2];
    Attrs lrn = {.lrn = {false, 3, 1, 1, 1}}, rows = {.axis = {.axis = 2}};
    part[0] = net_add(&net, OP_LRN, "a", 1, &in, &lrn);
    part[1] = net_add(&net, OP_LRN, "b", 1, &in, &lrn);
    net_output(&net, net_concat(&net, "cat", 2, part));
    TensorId pair[] = {in, in};
    net_output(&net, net_add(&net, OP_CONCAT, "rows", 2, pair, &rows));
    net_run(&net, &m.spec);
    expect(&net, &m, "cat", "member b comes from the host");
    expect(&net, &m, "rows", "only channels lie side by side: axis is 2");
    net_free(&net);
}

/* Offsets add up: c lies at 8 of a concat that lies at 96 of another. */
static void concats_nest(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    for (uint32_t first = 96; first <= 112; first += 8) {
        TensorId part[2];
        Net net = two_members(8, part);
        TensorId in = graph_node(net.g, (NodeId){0})->out[0];
        TensorId outer[] = {net_conv(&net, "c", in, first, 1, 1, 0, 1),
                            net_concat(&net, "inner", 2, part)};
        net_output(&net, net_concat(&net, "outer", 2, outer));
        net_run(&net, &m.spec);
        assert_null(strstr(net_names(&net), "__bridge"));
        expect(&net, &m, "outer", NULL);
        net_free(&net);
    }
}

/* A chain as deep as the graph must not cost a stack or minutes. */
static void concats_nest_deeply(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 8, 1, 1);
    TensorId whole = net_conv(&net, "first", in, 8, 1, 1, 0, 1);
    for (int i = 0; i < 400; i++) {
        TensorId part[] = {whole, net_conv(&net, "c", in, 8, 1, 1, 0, 1)};
        whole = net_concat(&net, "cat", 2, part);
    }
    net_output(&net, whole);
    net_run(&net, &m.spec);
    expect(&net, &m, "cat_400", NULL);
    net_free(&net);
}

static void parts_need_a_layout_that_has_them(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Layout mixed = layout96;
    mixed.n = 3;
    mixed.axis[0] = layout96.axis[1];
    mixed.axis[1] = layout96.axis[2];
    mixed.axis[2] = (LayoutAxis){LAYOUT_C, 0, false, false, 1};
    m.memory.layout = &mixed;
    TensorId part[2];
    Net net = two_members(96, part);
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_run(&net, &m.spec);
    expect(&net, &m, "cat", "no part of the channels is a volume in memory am");
    net_free(&net);
}

/* Channels of 36 bytes outermost, without fields for parts. */
static void parts_start_where_volumes_may(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Layout plain = {.n = 3, .element = 1};
    plain.axis[0] = (LayoutAxis){LAYOUT_C, 0, false, false, 1};
    plain.axis[1] = (LayoutAxis){LAYOUT_H, 0, false, false, 1};
    plain.axis[2] = (LayoutAxis){LAYOUT_W, 0, false, false, 1};
    m.memory.layout = &plain;
    m.memory.align = 64;
    TensorId part[2];
    Net net = two_members(8, part);
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_run(&net, &m.spec); /* a copy would start there, too */
    expect(&net, &m, "cat",
           "member b starts at channel 8 or in a part that does, which is not "
           "aligned");
    assert_string_equal(net_names(&net), "input data; conv a; conv b; concat "
                                         "cat");
    m.memory.align = 32;
    assert_int_equal(check(&net, &m, "cat").op, HW_OP_CONCAT);
    net_free(&net);
}

/* Channel 8 lies inside a section of 96. */
/* A convolution's row, of tokens that a test chooses. */
typedef struct Said {
    HwForm form;
    HwServe serve;
    HwRow row;
} Said;

static void say(Machine *m, Said *said, uint32_t n, HwToken *token) {
    said->form = (HwForm){.n = n, .token = token};
    said->serve = (HwServe){.op = HW_OP_CONV};
    said->row = (HwRow){.mnemonic = "RUN",
                        .op = HW_OP_CONV,
                        .n_serves = 1,
                        .serve = &said->serve,
                        .n_forms = 1,
                        .form = &said->form};
    m->insns = (HwInsnSet){.n = 1, .row = &said->row};
}
#define TOKEN(name, field)                                                     \
    { name, HW_F_##field, .also = HW_F_CONST }

/* Each number lacks its token once. */
static void numbers_are_told_or_usual(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    HwToken token[] = {
        TOKEN("c", IN_C),      TOKEN("h", IN_H),      TOKEN("w", IN_W),
        TOKEN("out", OUT_C),   TOKEN("oh", OUT_H),    TOKEN("ow", OUT_W),
        TOKEN("kh", KERNEL_H), TOKEN("kw", KERNEL_W), TOKEN("sh", STRIDE_H),
        TOKEN("sw", STRIDE_W), TOKEN("ph", PAD_H),    TOKEN("pw", PAD_W),
        TOKEN("name", NAME)};
    enum { N = sizeof token / sizeof *token };
    static const char *const reason[N] = {
        "no token of RUN tells in.c, which is 3",
        "no token of RUN tells in.h, which is 9",
        "no token of RUN tells in.w, which is 12",
        "no token of RUN tells out.c, which is 8",
        "no token of RUN tells out.h, which is 5",
        NULL, /* 12, which follows */
        "no token of RUN tells kernel.h, which is 3",
        "no token of RUN tells kernel.w, which is 5",
        "no token of RUN tells stride.h, which is 2",
        NULL, /* 1, as usual */
        "no token of RUN tells pad.h, which is 1",
        "no token of RUN tells pad.w, which is 2",
        "no token of RUN tells name"};
    Said said;
    Net net = net_new();
    TensorId in = net_input(&net, 3, 9, 12);
    Attrs attr = {.conv = {8, 1, {3, 5}, {2, 1}, {1, 1}, {1, 2}, {1, 2}}};
    net_output(&net, net_add(&net, OP_CONV, "a", 1, &in, &attr));
    for (uint32_t i = 0; i < N; i++) {
        HwField field = token[i].from;
        say(&m, &said, N, token);
        expect(&net, &m, "a", NULL);
        token[i].from = HW_F_CONST;
        expect(&net, &m, "a", reason[i]);
        token[i].from = field;
    }
    net_free(&net);
}

static void parts_inside_sections_are_told(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    HwToken token[] = {TOKEN("to", OUT_ADDR),   TOKEN("c", IN_C),
                       TOKEN("h", IN_H),        TOKEN("w", IN_W),
                       TOKEN("out", OUT_C),     TOKEN("rows", KERNEL_H),
                       TOKEN("cols", KERNEL_W), TOKEN("top", PAD_H),
                       TOKEN("left", PAD_W),    TOKEN("name", NAME)};
    Said said;
    say(&m, &said, sizeof token / sizeof *token, token);
    TensorId part[2];
    Net net = two_members(8, part);
    net_output(&net, net_concat(&net, "cat", 2, part));
    net_run(&net, &m.spec); /* a copy could not tell, either */
    expect(&net, &m, "cat",
           "member b starts at channel 8 or in a part that does, inside a "
           "section of 96 channels: no token of conv tells it");
    assert_string_equal(net_names(&net), "input data; conv a; conv b; concat "
                                         "cat");
    token[0].from = HW_F_OUT_PART_START;
    expect(&net, &m, "cat",
           "member b starts at channel 8 or in a part that does, inside a "
           "section of 96 channels: no token of conv tells it");
    token[0].also = HW_F_OUT_PART;
    assert_int_equal(check(&net, &m, "cat").op, HW_OP_CONCAT);
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_start_where_their_engines_can),
        cmocka_unit_test(copies_make_members_writable),
        cmocka_unit_test(a_tensor_lies_in_one_concat),
        cmocka_unit_test(outputs_and_host_layers_are_copied),
        cmocka_unit_test(the_host_keeps_what_is_all_its_own),
        cmocka_unit_test(concats_nest),
        cmocka_unit_test(concats_nest_deeply),
        cmocka_unit_test(parts_need_a_layout_that_has_them),
        cmocka_unit_test(parts_start_where_volumes_may),
        cmocka_unit_test(parts_inside_sections_are_told),
        cmocka_unit_test(numbers_are_told_or_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
