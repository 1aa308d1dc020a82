/* Every operator in native code against the reference evaluation, on odd
 * shapes, in the order of the shape and in channel blocks. */
#include "native_test.h"
#include "tests/effort.h"

/* A line of the text form of graphs (graph/text.c) whose node reads "0", "1",
 * "2", of these shapes, with seeded constants. */
typedef struct Case {
    const char *in[3], *out, *line;
} Case;

#define CONV "groups=1 kernel=3,3 stride=1,1 dilation=1,1 pad=1,1 pad_end=1,1"
#define POOL "global=0 ceil=0 count_pad=0 kernel=3,2 stride=2,1"

static const Case cases[] = {
    {{"1x5x9x7"}, "1x6x9x7", "conv out_c=6 " CONV},
    {{"1x5x9x7"},
     "1x33x9x7",
     "conv out_c=33 " CONV " act=leaky alpha=0.1 lo=0 hi=0"},
    {{"2x6x9x7"},
     "2x4x4x3",
     "conv out_c=4 groups=2 kernel=3,2 stride=2,3 dilation=1,2 pad=0,2 "
     "pad_end=1,0"},
    {{"1x32x9x7"},
     "1x32x9x7",
     "conv out_c=32 groups=8 kernel=3,3 stride=1,1 dilation=1,1 pad=1,1 "
     "pad_end=1,1 act=relu alpha=0 lo=0 hi=0"},
    {{"1x24x6x7"},
     "1x24x3x4",
     "conv out_c=24 groups=12 kernel=3,3 stride=2,2 dilation=1,1 pad=1,1 "
     "pad_end=1,1"},
    {{"1x64x6x7"},
     "1x32x6x7",
     "conv out_c=32 groups=2 kernel=1,1 stride=1,1 dilation=1,1 pad=0,0 "
     "pad_end=0,0"},
    {{"1x96x5x7"},
     "1x96x5x7",
     "conv out_c=96 groups=3 kernel=3,3 stride=1,1 dilation=1,1 pad=1,1 "
     "pad_end=1,1"},
    {{"1x7x5x30"},
     "1x7x5x15",
     "conv out_c=7 groups=7 kernel=5,3 stride=1,2 dilation=1,1 pad=2,1 "
     "pad_end=2,1 act=prelu alpha=0 lo=0 hi=0"},
    {{"1x4x1x13"},
     "1x3x1x7",
     "conv out_c=3 groups=1 kernel=1,5 stride=1,2 dilation=1,3 pad=0,6 "
     "pad_end=0,6"},
    {{"3x20x6x6"},
     "3x17x3x3",
     "conv out_c=17 groups=1 kernel=1,1 stride=2,2 dilation=1,1 pad=0,0 "
     "pad_end=0,0"},
    {{"1x4x5x6"},
     "1x6x10x13",
     "deconv out_c=6 groups=2 kernel=4,3 stride=2,2 dilation=1,1 pad=1,0 "
     "pad_end=1,0 act=relu alpha=0 lo=0 hi=0"},
    {{"2x3x4x3"},
     "2x5x11x5",
     "deconv out_c=5 groups=1 kernel=3,3 stride=3,2 dilation=2,1 pad=2,1 "
     "pad_end=1,1"},
    {{"1x5x9x7"}, "1x5x5x7", "pool kind=max " POOL " pad=1,0 pad_end=1,1"},
    {{"2x5x9x7"}, "2x5x4x8", "pool kind=avg " POOL " pad=1,1 pad_end=0,1"},
    {{"1x5x9x7"},
     "1x5x5x4",
     "pool kind=avg global=0 ceil=1 count_pad=1 kernel=2,3 stride=2,2 "
     "pad=1,1 pad_end=1,1"},
    {{"1x35x9x7"},
     "1x35x1x1",
     "pool kind=avg global=1 ceil=0 count_pad=0 kernel=9,7 stride=1,1 "
     "pad=0,0 pad_end=0,0"},
    {{"1x5x12x9"},
     "1x6x6x4",
     "conv_pool conv_name=\"c\" out_c=6 " CONV
     " pool_kind=max pool_global=0 pool_ceil=1 pool_count_pad=0 "
     "pool_kernel=3,3 pool_stride=2,2 pool_pad=0,0 pool_pad_end=0,0 act=relu "
     "alpha=0 lo=0 hi=0"},
    {{"2x3x5x7"}, "2x19", "fc out=19"},
    {{"1x1000"}, "1x7", "fc out=7 act=sigmoid alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "bn eps=0.001"},
    {{"2x5x3x7"}, "2x5x3x7", "scale act=relu6 alpha=0 lo=0 hi=6"},
    {{"1x21x3x7"}, "1x21x3x7", "bn eps=0.001 act=prelu alpha=0 lo=0 hi=0"},
    {{"1x37x3x7"}, "1x37x3x7", "scale act=prelu alpha=0 lo=0 hi=0"},
    {{"1x19x5x3"}, "1x19x5x3", "act act=prelu alpha=0 lo=0 hi=0"},
    {{"1x9"}, "1x9", "scale"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=prelu alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=gelu alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=elu alpha=1.5 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=selu alpha=1.67 lo=0 hi=1.05"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=celu alpha=0.7 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=softsign alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=hard_sigmoid alpha=0.2 lo=0.5 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=hard_swish alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=silu alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=gelu_tanh alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=mish alpha=0 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=threshold alpha=0.3 lo=0 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=shrink alpha=0.3 lo=0.1 hi=0"},
    {{"2x5x3x7"}, "2x5x3x7", "act act=clip alpha=0 lo=-0.5 hi=0.4"},
    {{"2x5x3x7", "2x5x3x7"}, "2x5x3x7", "eltwise kind=add coeff=1,-2"},
    {{"2x5x3x7", "2x5x3x7", "2x5x3x7"},
     "2x5x3x7",
     "eltwise kind=max act=tanh alpha=0 lo=0 hi=0"},
    {{"2x5x3x7", "1x5x1x1"}, "2x5x3x7", "eltwise kind=mul"},
    {{"2x1x3x7", "1x5x3x1"}, "2x5x3x7", "eltwise kind=div"},
    {{"5x7", "5x7"}, "5x7", "eltwise kind=less"},
    {{"5x7", "5x7"}, "5x7", "eltwise kind=prelu"},
    {{"5x7", "5x7"}, "5x7", "eltwise kind=mod"},
    {{"5x7", "5x7"}, "5x7", "eltwise kind=fmod"},
    {{"2x3x4x5", "2x1x4x5"}, "2x4x4x5", "concat axis=1"},
    {{"2x3x4x5", "2x3x4x2", "2x3x4x1"}, "2x3x4x8", "concat axis=3"},
    {{"2x6x4x5"}, "2x3x4x5", "slice axis=1 begin=2 end=5"},
    {{"2x6x4x5"}, "2x6x3x5", "slice axis=2 begin=1 end=4"},
    {{"2x9x4x5"},
     "2x9x4x5",
     "lrn within_channel=0 size=5 alpha=0.5 beta=0.75 k=1"},
    {{"1x9x4x5"},
     "1x9x4x5",
     "lrn within_channel=1 size=3 alpha=0.9 beta=0.6 k=2"},
    {{"1x9x4x5"},
     "1x9x4x5",
     "lrn within_channel=0 size=3 alpha=0.9 beta=0.5 k=2"},
    {{"2x33"}, "2x33", "softmax axis=1"},
    {{"2x7x3x4"}, "2x7x3x4", "softmax axis=1"},
    {{"2x7x3x4"}, "2x7x3x4", "softmax axis=3"},
    {{"2x6x3x4"}, "2x6x3x4", "softmax axis=1 groups=3"},
    {{"2x6x3x4"}, "2x6x3x4", "norm axis=1 axes=1 eps=1e-5"},
    {{"2x6x3x4"}, "2x6x3x4", "norm axis=1 axes=1 groups=2 rms=1 eps=1e-5"},
    {{"2x6x3x4"}, "2x6x3x4", "norm axis=1 groups=3 eps=1e-5"},
    {{"2x3x4x5"}, "2x3x12x10", "upsample factor=3,2"},
    {{"1x3x4x5"}, "1x3x5x10", "pad before=1,2 behind=0,3 value=-1.5"},
    {{"2x3x4x5"}, "6x20", "reshape shape=6,20"},
    {{"2x3x4x5"}, "2x3x4x5", "identity"},
    {{"3x4x5", "3x5x7"}, "3x4x7", "matmul"},
    {{"1x2x4x5", "3x1x5x2"}, "3x2x4x2", "matmul"},
    {{"1x6x4x5", "1x6x2x3"}, "1x12x4x5", "mix groups=2 windows=1,1 shift=0,0"},
    {{"1x6x4x6", "1x6x4x6"}, "1x12x4x6", "mix groups=2 windows=2,2 shift=1,2"},
    {{"1x12x4x5", "1x8x2x3"},
     "1x8x4x5",
     "mix over_pixels=1 groups=2 windows=1,1 shift=0,0"},
    {{"1x12x4x6", "1x8x4x6"},
     "1x8x4x6",
     "mix over_pixels=1 groups=2 windows=2,2 shift=1,2"},
    {{"1x6x4x5"}, "1x6x4x5", "offset period=3,4,1"},
    {{"1x6x4x5"}, "1x6x4x5", "offset period=1,2,5 times=1"},
    {{"1x6x4x5"}, "1x6x2x7", "pixels plane=2,7"},
    {{"2x3x4x5"}, "2x4x5x3", "transpose perm=0,2,3,1"},
    {{"3x5x7"}, "7x3x5", "transpose perm=2,0,1"},
    {{"2x3x4x5"}, "2x3x1x1", "reduce kind=mean axes=12"},
    {{"2x3x4x5"}, "2x1x4x5", "reduce kind=sum axes=2"},
    {{"2x3x4x5"}, "1x3x4x1", "reduce kind=max axes=9"},
    {{"2x3x4x5"}, "2x3x1x5", "reduce kind=min axes=4"},
    {{"2x3x4x5"}, "2x3x1x5", "reduce kind=prod axes=4"},
    {{"2x3x4x5"}, "2x1x1x5", "reduce kind=l1 axes=6"},
    {{"2x3x4x5"}, "1x1x1x1", "reduce kind=l2 axes=15"},
    {{"2x3x4x5"}, "2x3x4x1", "reduce kind=squares axes=8"},
    {{"2x3x4x5"}, "2x3x4x1", "reduce kind=log_sum_exp axes=8"},
    {{"2x3x4x5"}, "2x3x4x1", "reduce kind=argmax axes=8"},
    {{"2x3x4x5"}, "2x1x4x5", "reduce kind=argmin_last axes=2"},
    {{"2x3x4x5"}, "2x3x4x5", "norm axis=2 eps=0.00001"},
    {{"2x3x50"}, "2x3x50", "norm axis=1 eps=0.001"},
};

typedef struct Net {
    Graph *g;
    NodeId node;
    uint32_t n_in;
    const float *const *in;
    const float *want;
} Net;

static Net net_read(Bench *b, const Case *row) {
    const char *text = "graph \"test\"\n", *reads = "";
    const char *space = strchr(row->line, ' ');
    size_t word = space ? (size_t)(space - row->line) : strlen(row->line);
    Net net = {0};
    for (; net.n_in < 3 && row->in[net.n_in]; net.n_in++) {
        text = arena_printf(b->arena, "%sinput \"%u\" writes=\"%u\":%s\n", text,
                            net.n_in, net.n_in, row->in[net.n_in]);
        reads = arena_printf(b->arena, "%s%s\"%u\"", reads, net.n_in ? "," : "",
                             net.n_in);
    }
    text = arena_printf(b->arena,
                        "%s%.*s \"x\" reads=%s writes=\"x\":%s%s\n"
                        "output \"x\"\n",
                        text, (int)word, row->line, reads, row->out,
                        row->line + word);
    net.g = graph_read(b->arena, b->diag, "test", text, strlen(text));
    diag_print(b->diag, stderr);
    assert_non_null(net.g);
    graph_seed_constants(net.g, 1);
    net.node = (NodeId){net.g->node.n - 1};
    net.in = graph_seed_inputs(b->arena, net.g, 7, &net.n_in);
    TensorId out = graph_node(net.g, net.node)->out[0];
    net.want = graph_eval(b->arena, net.g, net.n_in, net.in).at[out.i];
    return net;
}

/* ---- other places than the order of the shape ---- */

static Operand operand_blocked(const Shape *shape, uint32_t block) {
    Operand o = operand_dense(shape, &real_numbers);
    uint32_t c, h, w;
    shape_chw(shape, &c, &h, &w);
    if (block > 1)
        o = (Operand){*shape,
                      block,
                      (uint64_t)h * w * block,
                      (uint64_t)w * block,
                      block,
                      sizeof(float),
                      real_numbers};
    return o;
}

static uint64_t operand_floats(const Operand *o) {
    uint32_t c, h, w;
    shape_chw(&o->shape, &c, &h, &w);
    return o->c_step * ((c + o->block - 1) / o->block);
}

/* Copies between the order of the shape and the operand's places. */
static void move(const Operand *o, const float *from, float *to, bool in) {
    uint32_t c, h, w;
    shape_chw(&o->shape, &c, &h, &w);
    for (uint64_t i = 0, n = shape_count(&o->shape); i < n; i++) {
        uint64_t channel = i / w / h, row = i / w % h, column = i % w;
        uint64_t at = channel / o->block * o->c_step + row * o->h_step +
                      column * o->w_step + channel % o->block;
        to[in ? at : i] = from[in ? i : at];
    }
}

static void check_values(const Case *row, const float *got, const float *want,
                         uint64_t n) {
    double scale = 0;
    for (uint64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)want[i]));
    for (uint64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-5 * scale))
            fail_msg("%s: value %u is %.9g instead of %.9g", row->line,
                     (unsigned)i, (double)got[i], (double)want[i]);
}

static void check_case(Bench *b, const Case *row, uint32_t block) {
    Net net = net_read(b, row);
    const Node *node = graph_node(net.g, net.node);
    const Shape *shape = &graph_tensor(net.g, node->out[0])->shape;
    Operand in[3], out = operand_blocked(shape, block);
    const float *from[3];
    for (uint32_t i = 0; i < net.n_in; i++) {
        in[i] =
            operand_blocked(&graph_tensor(net.g, node->in[i])->shape, block);
        float *place = ARENA_ARRAY(b->arena, float, operand_floats(&in[i]));
        move(&in[i], net.in[i], place, true);
        from[i] = place;
    }
    const Const *constant;
    Kernel kernel =
        native_kernel(b->arena, net.g, net.node, in, &out, &constant);
    float *to = ARENA_ARRAY(b->arena, float, operand_floats(&out));
    float *got = ARENA_ARRAY(b->arena, float, shape_count(shape));
    bench_run(b, &kernel, constant, from, &to);
    move(&out, to, got, false);
    check_values(row, got, net.want, shape_count(shape));
}

static void check_all(uint32_t block) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += cases_of(1, 3)) {
        Bench b = bench_open();
        check_case(&b, &cases[i], block);
        bench_close(&b);
    }
}

static void test_dense(void **state) {
    (void)state;
    check_all(1);
}

static void test_blocked(void **state) {
    (void)state;
    check_all(4);
    check_all(16);
}

/* A kernel on two tensors of 2x3 with one word. */
static const char *refuse_word(Bench *b, const char *kind, const char *name,
                               const char *word) {
    Operand in[2] = {operand_dense(&(Shape){2, {2, 3}}, &real_numbers),
                     operand_dense(&(Shape){2, {2, 3}}, &real_numbers)};
    AttrPair attr = {.name = name, .word = word};
    KernelConst slope = {"slope", {1, {3}}, CONST_F32};
    Kernel kernel = {.kind = kind,
                     .n_in = 2,
                     .n_out = 1,
                     .n_constants = 1,
                     .n_attrs = 1,
                     .in = in,
                     .out = in,
                     .constant = &slope,
                     .attr = &attr,
                     .over = -1};
    return b->backend->refuse(&kernel);
}

/* No row of the tables of graph/ is missing. */
static void test_words(void **state) {
    (void)state;
    Bench b = bench_open();
    for (int i = 0; i < ACT_COUNT; i++)
        if (refuse_word(&b, "act", "act", act_name[i]))
            fail_msg("no activation %s", act_name[i]);
    for (int i = 0; i < ELT_COUNT; i++)
        if (refuse_word(&b, "eltwise", "kind", elt_name[i]))
            fail_msg("no function %s", elt_name[i]);
    for (int i = 0; i < REDUCE_COUNT; i++)
        if (refuse_word(&b, "reduce", "kind", reduce_name[i]))
            fail_msg("no reduction %s", reduce_name[i]);
    bench_close(&b);
}

static void test_refused(void **state) {
    (void)state;
    Bench b = bench_open();
    Net net = net_read(&b, &cases[0]);
    Operand in = operand_dense(&(Shape){4, {1, 5, 9, 7}}, &real_numbers);
    Operand out = operand_dense(&(Shape){4, {1, 6, 9, 7}}, &real_numbers);
    const Const *constant;
    Kernel kernel =
        native_kernel(b.arena, net.g, net.node, &in, &out, &constant);
    assert_null(b.backend->refuse(&kernel));
    in.shape.dim[1] = 4; /* the weights are for 5 channels */
    assert_non_null(b.backend->refuse(&kernel));
    kernel.kind = "nothing";
    assert_non_null(b.backend->refuse(&kernel));
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
