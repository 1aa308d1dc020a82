/* test_legal.c - the engine of a layer, or the one line that says why not. */
#include "machine.h"

/* ---- limits ---- */

static void limits_name_quantity_range_and_engine(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 64, 20, 20);
    net_conv(&net, "fits", in, 8, 3, 1, 1, 1);
    net_conv(&net, "wide", in, 8, 15, 1, 7, 1);
    net_conv(&net, "deep", in, 8, 9, 1, 4, 1);
    Attrs fc = {.fc = {10}};
    net_add(&net, OP_FC, "fc", 1, &in, &fc);
    Legal legal = check(&net, &m, "fits");
    assert_int_equal(legal.engine, 0);
    assert_int_equal(legal.op, HW_OP_CONV);
    expect(&net, &m, "wide", "kernel.w 15 is outside 1..14 of engine conv");
    expect(&net, &m, "deep", "taps 5184 is outside 0..4608 of engine conv");
    expect(&net, &m, "fc", "taps 25600 is outside 0..4608 of engine conv");
    net_free(&net);
}

static uint64_t largest_legal(Machine *m, Net *net, const char *name,
                              HwLimitKind kind) {
    uint64_t least = 0;
    for (uint64_t hi = 0; hi < 200; hi++) {
        m->engine[0].limit[kind] = range(0, hi);
        if (check(net, m, name).engine >= 0)
            return hi;
        least = hi;
    }
    return least;
}

/* The bound at which a layer becomes legal is its quantity. */
static void every_quantity_is_the_layers(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 6, 21, 23);
    Attrs attr = {0};
    attr.conv = (ConvAttr){
        .out_c = 10,
        .groups = 1,
        .kernel = {5, 3},
        .stride = {2, 4},
        .dilation = {2, 1},
        .pad = {4, 1},
        .pad_end = {3, 0},
    };
    net_add(&net, OP_CONV, "conv", 1, &in, &attr);
    static const struct {
        HwLimitKind kind;
        uint64_t value;
    } rows[] = {
        {HW_LIMIT_KERNEL_W, 3},   {HW_LIMIT_KERNEL_H, 5},
        {HW_LIMIT_STRIDE_W, 4},   {HW_LIMIT_STRIDE_H, 2},
        {HW_LIMIT_PAD_W, 1},      {HW_LIMIT_PAD_H, 4},
        {HW_LIMIT_PAD_UNEVEN, 1}, {HW_LIMIT_PAD_NOT_SAME, 2},
        {HW_LIMIT_DILATION_W, 1}, {HW_LIMIT_DILATION_H, 2},
        {HW_LIMIT_IN_C, 6},       {HW_LIMIT_IN_W, 23},
        {HW_LIMIT_IN_H, 21},      {HW_LIMIT_OUT_C, 10},
        {HW_LIMIT_OUT_W, 6},      {HW_LIMIT_OUT_H, 10},
        {HW_LIMIT_TAPS, 90},      {HW_LIMIT_WEIGHT_ROWS, 15},
    };
    m.spec.replication.section = 96;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t found = largest_legal(&m, &net, "conv", rows[i].kind);
        if (found != rows[i].value)
            fail_msg("%s is %llu, not %llu", hw_limit_name[rows[i].kind],
                     (unsigned long long)found,
                     (unsigned long long)rows[i].value);
        m.engine[0].limit[rows[i].kind].set = false;
    }
    net_free(&net);
}

/* Pads are compared with each other, and with those that keep the size, either
 * of which may be the larger. */
static void pads_differ_both_ways(void **state) {
    (void)state;
    static const struct {
        uint32_t pad, pad_end, uneven, not_same;
    } rows[] = {{2, 2, 0, 0}, {0, 2, 2, 2}, {2, 0, 2, 2},
                {3, 2, 1, 1}, {1, 1, 0, 1}, {4, 4, 0, 2}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        uint32_t axis = i % 2, row = (uint32_t)i / 2;
        Machine m;
        machine_make(&m);
        Net net = net_new();
        TensorId in = net_input(&net, 6, 21, 23);
        Attrs attr = conv_attr(10, 5, 1, 2, 1);
        attr.conv.pad[axis] = rows[row].pad;
        attr.conv.pad_end[axis] = rows[row].pad_end;
        net_add(&net, OP_CONV, "conv", 1, &in, &attr);
        assert_int_equal(largest_legal(&m, &net, "conv", HW_LIMIT_PAD_UNEVEN),
                         rows[row].uneven);
        m.engine[0].limit[HW_LIMIT_PAD_UNEVEN].set = false;
        assert_int_equal(largest_legal(&m, &net, "conv", HW_LIMIT_PAD_NOT_SAME),
                         rows[row].not_same);
        net_free(&net);
    }
}

/* Of a convolution with its pool both kernels count. */
static void both_halves_of_conv_pool_are_checked(void **state) {
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        Machine m;
        machine_make(&m);
        m.engine[0].limit[HW_LIMIT_KERNEL_W] = range(1, wide ? 3 : 2);
        Net net = net_new();
        TensorId t =
            net_conv(&net, "conv", net_input(&net, 4, 9, 9), 8, 2, 1, 0, 1);
        net_output(&net, net_pool(&net, "pool", t, POOL_MAX, 3, 2, 0, true));
        net_run(&net, &m.spec);
        assert_string_equal(net_names(&net),
                            wide ? "input data; conv_pool pool"
                                 : "input data; conv conv; pool pool");
        net_free(&net);
    }
}

/* What lies between both is as high as the convolution makes it. */
static void the_middle_of_conv_pool_is_limited(void **state) {
    (void)state;
    static const struct {
        uint32_t most_h, most_w;
        bool merged;
    } row[] = {{8, 11, true}, {7, 11, false}, {8, 10, false}};
    for (uint32_t i = 0; i < 3; i++) {
        Machine m;
        machine_make(&m);
        m.engine[0].limit[HW_LIMIT_OUT_H] = range(1, row[i].most_h);
        m.engine[0].limit[HW_LIMIT_OUT_W] = range(1, row[i].most_w);
        Net net = net_new();
        TensorId t =
            net_conv(&net, "conv", net_input(&net, 4, 9, 12), 8, 2, 1, 0, 1);
        net_output(&net, net_pool(&net, "pool", t, POOL_MAX, 3, 2, 0, true));
        net_run(&net, &m.spec);
        assert_int_equal(!strcmp(net_names(&net), "input data; conv_pool pool"),
                         row[i].merged);
        net_free(&net);
    }
}

/* A window wholly in the padding behind is not in the instruction's terms. */
static void windows_start_in_time(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 4, 14, 14);
    Attrs attr = conv_attr(8, 3, 2, 0, 1);
    attr.conv.pad_end[1] = 2;
    net_add(&net, OP_CONV, "seven", 1, &in, &attr);
    attr.conv.pad_end[1] = 3;
    net_add(&net, OP_CONV, "eight", 1, &in, &attr);
    expect(&net, &m, "seven", NULL);
    expect(&net, &m, "eight",
           "windows start before or in the input: padding is 0 before, 3 "
           "behind");
    net_free(&net);
}

/* One padding an axis is all that an instruction says. */
static void transposed_ones_are_cut_alike(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 4, 9, 9);
    Attrs attr = conv_attr(8, 3, 2, 1, 1);
    attr.conv.pad_end[1] = 0;
    net_add(&net, OP_DECONV, "uneven", 1, &in, &attr);
    expect(&net, &m, "uneven",
           "transposed convolutions are cut alike on both sides: padding is 1 "
           "before, 0 behind");
    net_free(&net);
}

/* What is padded more on either side is uneven by as much. */
static void paddings_differ_both_ways(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    m.engine[0].limit[HW_LIMIT_PAD_UNEVEN] = range(0, 1);
    m.engine[0].limit[HW_LIMIT_PAD_NOT_SAME] = range(0, 2);
    static const struct {
        uint32_t before, behind;
        const char *reason;
    } cases[] = {
        {1, 2, NULL},
        {2, 1, NULL},
        {1, 3, "pad.uneven 2 is outside 0..1 of engine conv"},
        {3, 1, "pad.uneven 2 is outside 0..1 of engine conv"},
        {0, 0, "pad.not_same 3 is outside 0..2 of engine conv"},
        {6, 6, "pad.not_same 3 is outside 0..2 of engine conv"},
        {5, 6, "pad.not_same 3 is outside 0..2 of engine conv"},
        {1, 0, "pad.not_same 3 is outside 0..2 of engine conv"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Net net = net_new();
        TensorId in = net_input(&net, 4, 9, 9);
        Attrs attr = conv_attr(8, 7, 1, 3, 1);
        attr.conv.pad[1] = cases[i].before;
        attr.conv.pad_end[1] = cases[i].behind;
        net_add(&net, OP_CONV, "c", 1, &in, &attr);
        expect(&net, &m, "c", cases[i].reason);
        net_free(&net);
    }
}

/* ---- other constraints ---- */

static void reasons_tell_the_value(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    TensorId in = net_input(&net, 8, 6, 6);
    net_conv(&net, "group", in, 8, 3, 1, 1, 2);
    net_conv(&net, "depth", in, 8, 3, 1, 1, 8);
    Attrs attr = conv_attr(8, 3, 1, 1, 2), lrn = {.lrn = {false, 3, 1, 1, 1}};
    net_add(&net, OP_DECONV, "deconv", 1, &in, &attr);
    net_add(&net, OP_LRN, "lrn", 1, &in, &lrn);
    net_act(&net, "tanh", in, ACT_TANH);
    net_act(&net, "relu", in, ACT_RELU);
    net_act(&net, "prelu", in, ACT_PRELU);
    TensorId fc = net_fc(&net, "fc", in, 4);
    TensorId both[] = {fc, fc};
    net_act(&net, "flat", fc, ACT_RELU);
    net_eltwise(&net, "sum", ELT_ADD, 2, both);
    expect(&net, &m, "data", NULL);
    expect(&net, &m, "relu", NULL);
    expect(&net, &m, "fc", NULL);
    expect(&net, &m, "group", "no engine of toy runs conv_grouped");
    expect(&net, &m, "depth", "no engine of toy runs conv_depthwise");
    expect(&net, &m, "deconv",
           "transposed convolutions run without groups: 2 groups");
    expect(&net, &m, "lrn", "engines know no such operation: lrn");
    expect(&net, &m, "tanh", "engine pool has no tanh for act");
    expect(&net, &m, "prelu",
           "a prelu needs a slope for each channel: prelu has none");
    expect(&net, &m, "flat", NULL);
    expect(&net, &m, "sum", NULL);
    net_free(&net);
}

static void sums_need_two_operands_of_one_shape(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    static const double half[] = {1, 0.5}, ones[] = {1, 1};
    Net net = net_new();
    TensorId in = net_input(&net, 8, 6, 6);
    TensorId three[] = {in, in, in}, two[] = {in, in};
    TensorId cast[] = {in,
                       net_pool(&net, "pool", in, POOL_MAX, 6, 1, 0, false)};
    net_eltwise(&net, "two", ELT_ADD, 2, two);
    net_eltwise(&net, "three", ELT_ADD, 3, three);
    net_eltwise(&net, "cast", ELT_ADD, 2, cast);
    net_eltwise(&net, "product", ELT_MUL, 2, two);
    Attrs attr = {.elt = {ELT_ADD, half}};
    net_add(&net, OP_ELTWISE, "half", 2, two, &attr);
    attr.elt.coeff = ones;
    net_add(&net, OP_ELTWISE, "ones", 2, two, &attr);
    const char *text = "engines combine two operands of one shape";
    expect(&net, &m, "two", NULL);
    expect(&net, &m, "ones", NULL);
    expect(&net, &m, "three", arena_printf(net.arena, "%s: 3 operands", text));
    expect(&net, &m, "cast",
           arena_printf(net.arena, "%s: 1x8x6x6 and 1x8x1x1", text));
    expect(&net, &m, "product", "no engine of toy runs mul");
    expect(&net, &m, "half",
           "engines add without coefficients: a coefficient is 0.5");
    net_free(&net);
}

/* The first engine that can; the reason is the first one's. */
static int ahead(const Net *net, const Machine *m, const char *name) {
    Uses uses = graph_uses(net->arena, net->g);
    NodeId id = net_find(net, name);
    return legal_check_ahead(&m->spec, net->g, &uses, id).engine;
}

static void engines_are_tried_in_order(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    m.engine[1].ops |= BIT(CONV);
    m.engine[1].limit[HW_LIMIT_KERNEL_W] = range(1, 16);
    Net net = net_new();
    TensorId in = net_input(&net, 2, 20, 20);
    net_conv(&net, "small", in, 8, 3, 1, 1, 1);
    net_conv(&net, "wide", in, 8, 15, 1, 7, 1);
    net_conv(&net, "wider", in, 8, 17, 1, 8, 1);
    assert_int_equal(check(&net, &m, "small").engine, 0);
    assert_int_equal(check(&net, &m, "wide").engine, 1);
    expect(&net, &m, "wider", "kernel.w 17 is outside 1..14 of engine conv");
    net_free(&net);
}

/* What an engine may do ahead, with the next image: layers that alone read an
 * input, and that do not write into a concat. */
static void first_layers_may_run_ahead(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    m.engine[0].ahead = true;
    Net net = net_new();
    TensorId in = net_input(&net, 2, 20, 20);
    TensorId first = net_conv(&net, "first", in, 8, 3, 1, 1, 1);
    TensorId next = net_conv(&net, "next", first, 8, 3, 1, 1, 1);
    assert_int_equal(ahead(&net, &m, "first"), 0);
    assert_int_equal(ahead(&net, &m, "next"), -1);
    m.engine[0].ahead = false;
    assert_int_equal(ahead(&net, &m, "first"), -1);
    m.engine[0].ahead = true;
    net_concat(&net, "cat", 2, (TensorId[]){first, next});
    assert_int_equal(ahead(&net, &m, "first"), -1);
    net_free(&net);
    net = net_new();
    in = net_input(&net, 2, 20, 20);
    net_conv(&net, "first", in, 8, 3, 1, 1, 1);
    net_conv(&net, "second", in, 8, 3, 1, 1, 1);
    assert_int_equal(ahead(&net, &m, "first"), -1);
    net_free(&net);
    net = net_new();
    in = net_input(&net, 2, 20, 20); /* the engine runs no pools */
    net_output(&net, net_pool(&net, "first", in, POOL_MAX, 3, 2, 0, true));
    assert_int_equal(ahead(&net, &m, "first"), -1);
    net_free(&net);
}

/* Against brute force over windows. */
static bool divides_alike(const PoolAttr *p, uint32_t in, uint32_t out,
                          HwDivisor divisor) {
    for (uint32_t y = 0; y < out; y++) {
        uint32_t padded = 0, valid = 0;
        for (uint32_t k = 0; k < p->kernel[0]; k++) {
            int64_t at = (int64_t)y * p->stride[0] + k - p->pad[0];
            valid += at >= 0 && at < (int64_t)in;
            padded += at < (int64_t)in + p->pad_end[0];
        }
        uint32_t want = p->count_pad ? padded : valid;
        uint32_t got = divisor == HW_DIVISOR_KERNEL ? p->kernel[0] : valid;
        if (want != got)
            return false;
    }
    return true;
}

static void averages_are_legal_where_divisors_agree(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    uint32_t legal = 0, total = 0;
    for (uint32_t code = 0; code < 1024; code++) {
        Net net = net_new();
        uint32_t in = 5 + code % 4;
        PoolAttr p = {.kind = POOL_AVG,
                      .ceil = code >> 2 & 1,
                      .count_pad = code >> 3 & 1};
        for (int axis = 0; axis < 2; axis++) {
            p.kernel[axis] = 2 + (code >> 4 & 1);
            p.stride[axis] = 1 + (code >> 5 & 3) % 3;
            p.pad[axis] = code >> 7 & 1;
            p.pad_end[axis] = code >> 8 & 1;
        }
        m.engine[1].divisor =
            code >> 9 & 1 ? HW_DIVISOR_VALID : HW_DIVISOR_KERNEL;
        TensorId data = net_input(&net, 4, in, in);
        Attrs attr = {.pool = p};
        TensorId t = net_add(&net, OP_POOL, "pool", 1, &data, &attr);
        bool want = divides_alike(&p, in, graph_tensor(net.g, t)->shape.dim[2],
                                  m.engine[1].divisor);
        assert_int_equal(check(&net, &m, "pool").engine, want ? 1 : -1);
        legal += want;
        total++;
        net_free(&net);
    }
    assert_in_range(legal, total / 8, total * 7 / 8);
}

static void an_average_of_fewer_says_so(void **state) {
    (void)state;
    Machine m;
    machine_make(&m);
    Net net = net_new();
    net_pool(&net, "pool", net_input(&net, 4, 6, 6), POOL_AVG, 3, 2, 0, true);
    expect(&net, &m, "pool",
           "averages divide by different numbers: row 2 of windows counts 2, "
           "engine pool 3");
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_name_quantity_range_and_engine),
        cmocka_unit_test(every_quantity_is_the_layers),
        cmocka_unit_test(pads_differ_both_ways),
        cmocka_unit_test(both_halves_of_conv_pool_are_checked),
        cmocka_unit_test(the_middle_of_conv_pool_is_limited),
        cmocka_unit_test(windows_start_in_time),
        cmocka_unit_test(transposed_ones_are_cut_alike),
        cmocka_unit_test(paddings_differ_both_ways),
        cmocka_unit_test(reasons_tell_the_value),
        cmocka_unit_test(sums_need_two_operands_of_one_shape),
        cmocka_unit_test(engines_are_tried_in_order),
        cmocka_unit_test(first_layers_may_run_ahead),
        cmocka_unit_test(averages_are_legal_where_divisors_agree),
        cmocka_unit_test(an_average_of_fewer_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
