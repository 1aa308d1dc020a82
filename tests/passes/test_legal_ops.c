/* test_legal_ops.c - the operation that a node stands for, by its attributes.
 */
#include "net.h"

#include "passes/legal.h"

#include <string.h>

static const struct {
    const char *inputs, *line;
    HwOp op;
} row[] = {
#define X48 "input \"x\" writes=\"x\":1x4x6x8\n"
#define WINDOW "kernel=1,1 stride=1,1 dilation=1,1 pad=0,0 pad_end=0,0"
    {X48,
     "conv \"o\" reads=\"x\" writes=\"o\":1x4x6x8 out_c=4 groups=1 " WINDOW,
     HW_OP_CONV},
    {X48,
     "conv \"o\" reads=\"x\" writes=\"o\":1x4x6x8 out_c=4 groups=4 " WINDOW,
     HW_OP_CONV_DEPTHWISE},
    {X48,
     "conv \"o\" reads=\"x\" writes=\"o\":1x4x6x8 out_c=4 groups=2 " WINDOW,
     HW_OP_CONV_GROUPED},
    {X48,
     "conv \"o\" reads=\"x\" writes=\"o\":1x8x6x8 out_c=8 groups=4 " WINDOW,
     HW_OP_CONV_GROUPED},
    {X48 "input \"y\" writes=\"y\":1x4x6x8\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x6x8 kind=add",
     HW_OP_ADD},
    {X48 "input \"y\" writes=\"y\":1x4x1x1\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x6x8 kind=add",
     HW_OP_ADD_CHANNELS},
    {X48 "input \"y\" writes=\"y\":1x4x1x1\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x6x8 kind=mul",
     HW_OP_MUL_CHANNELS},
    {X48 "input \"y\" writes=\"y\":1x4x1x8\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x6x8 kind=mul",
     HW_OP_MUL},
    {X48 "input \"y\" writes=\"y\":1x1x1x1\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x6x8 kind=mul",
     HW_OP_MUL},
    {"input \"x\" writes=\"x\":1x4x1x1\ninput \"y\" writes=\"y\":1x4x1x1\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x1x1 kind=mul",
     HW_OP_MUL},
    {X48 "input \"y\" writes=\"y\":1x4x1x1\n",
     "eltwise \"o\" reads=\"x\",\"y\" writes=\"o\":1x4x6x8 kind=max",
     HW_OP_MAX},
    {X48, "reduce \"o\" reads=\"x\" writes=\"o\":1x1x6x8 kind=mean axes=2",
     HW_OP_REDUCE_MEAN},
    {X48, "reduce \"o\" reads=\"x\" writes=\"o\":1x1x6x8 kind=sum axes=2",
     HW_OP_REDUCE_SUM},
    {X48, "reduce \"o\" reads=\"x\" writes=\"o\":1x1x6x8 kind=max axes=2",
     HW_OP_REDUCE_MAX},
    {X48, "reduce \"o\" reads=\"x\" writes=\"o\":1x1x6x8 kind=min axes=2",
     HW_OP_HOST},
    {X48, "reduce \"o\" reads=\"x\" writes=\"o\":1x4x1x8 kind=mean axes=4",
     HW_OP_HOST},
    {X48, "reduce \"o\" reads=\"x\" writes=\"o\":1x1x1x8 kind=mean axes=6",
     HW_OP_HOST},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1 axes=1 eps=0.001",
     HW_OP_LAYERNORM},
    {X48,
     "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1 axes=1 rms=1 "
     "eps=0.001",
     HW_OP_RMSNORM},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1 axes=3 eps=0.001",
     HW_OP_GROUP_NORM},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1 eps=0.001",
     HW_OP_GROUP_NORM},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=2 axes=2 eps=0.001",
     HW_OP_GROUP_NORM},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=2 eps=0.001",
     HW_OP_GROUP_NORM},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1 axes=2 eps=0.001",
     HW_OP_HOST},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=2 axes=1 eps=0.001",
     HW_OP_HOST},
    {X48, "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=3 eps=0.001",
     HW_OP_HOST},
    {X48,
     "norm \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1 axes=3 rms=1 "
     "eps=0.001",
     HW_OP_HOST},
    {"input \"x\" writes=\"x\":1x4x6\n",
     "norm \"o\" reads=\"x\" writes=\"o\":1x4x6 axis=1 eps=0.001", HW_OP_HOST},
    {X48, "softmax \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=1",
     HW_OP_SOFTMAX},
    {X48, "softmax \"o\" reads=\"x\" writes=\"o\":1x4x6x8 axis=2", HW_OP_HOST},
    {X48, "transpose \"o\" reads=\"x\" writes=\"o\":1x8x4x6 perm=0,3,1,2",
     HW_OP_TRANSPOSE},
    {"input \"x\" writes=\"x\":1x4x6\n",
     "transpose \"o\" reads=\"x\" writes=\"o\":1x6x4 perm=0,2,1",
     HW_OP_TRANSPOSE},
    {X48, "transpose \"o\" reads=\"x\" writes=\"o\":4x1x6x8 perm=1,0,2,3",
     HW_OP_HOST},
    {"input \"x\" writes=\"x\":1x4\n",
     "transpose \"o\" reads=\"x\" writes=\"o\":1x4 perm=0,1", HW_OP_HOST},
    {X48, "offset \"o\" reads=\"x\" writes=\"o\":1x4x6x8 period=4,1,1",
     HW_OP_ADD_CONSTANTS},
    {X48, "offset \"o\" reads=\"x\" writes=\"o\":1x4x6x8 period=4,1,1 times=1",
     HW_OP_MUL_CONSTANTS},
#undef WINDOW
#undef X48
};

/* Attributes decide, each of them by itself. */
static void nodes_stand_for_operations(void **state) {
    (void)state;
    for (uint32_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *arena = arena_new("test");
        Diag *diag = diag_new(arena);
        const char *text =
            arena_printf(arena, "graph \"net\"\n%s%s\noutput \"o\"\n",
                         row[i].inputs, row[i].line);
        Graph *g = graph_read(arena, diag, "test", text, strlen(text));
        if (!g)
            fail_msg("%s: not read", row[i].line);
        HwOp op = legal_op(g, (NodeId){g->node.n - 1});
        if (op != row[i].op)
            fail_msg("%s: %s", row[i].line, hw_op_name[op]);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_stand_for_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
