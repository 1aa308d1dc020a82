/* absent.c - which operations have which field; see insn.h.
 *
 * Input: an operation and a field that is no operand's. Output: what its token
 * says where the operation has no such thing: a pool is not dilated, a sum has
 * no stride. The table is for who writes instructions and for who judges them.
 */
#include "hwspec/insn.h"

#define BIT(op) (UINT64_C(1) << HW_OP_##op)
enum { UNSET = -1 }; /* no neutral value is so */

bool insn_is_binary(HwOp op) {
    return op == HW_OP_ADD || op == HW_OP_MUL || op == HW_OP_MAX ||
           insn_by_channel(op);
}

bool insn_by_channel(HwOp op) {
    return op == HW_OP_ADD_CHANNELS || op == HW_OP_MUL_CHANNELS;
}

#define FUSED (BIT(CONV_POOL_MAX) | BIT(CONV_POOL_AVG))
#define CONVS                                                                  \
    (BIT(CONV) | BIT(CONV_GROUPED) | BIT(CONV_DEPTHWISE) | BIT(DECONV) | FUSED)
#define POOLS (BIT(POOL_MAX) | BIT(POOL_AVG))
#define PAIRS                                                                  \
    (BIT(ADD) | BIT(MUL) | BIT(MAX) | BIT(ADD_CHANNELS) | BIT(MUL_CHANNELS))
#define MOVES (BIT(LOAD) | BIT(STORE))
#define NOTES (BIT(HOST) | BIT(LAYER) | BIT(CONCAT) | BIT(LOAD_WEIGHTS))
#define RUNS (~(MOVES | NOTES))
#define WEIGHTED (CONVS | BIT(FC))
#define ACTS (WEIGHTED | PAIRS | BIT(SCALE) | BIT(ACT))

typedef struct Has {
    HwField field;
    uint64_t ops;  /* that have it */
    int64_t value; /* neutral: what the token of others says; or UNSET */
} Has;

static const Has has[] = {
    {HW_F_KERNEL_W, WEIGHTED | POOLS, 1},
    {HW_F_KERNEL_H, WEIGHTED | POOLS, 1},
    {HW_F_STRIDE_W, CONVS | POOLS, 1},
    {HW_F_STRIDE_H, CONVS | POOLS, 1},
    {HW_F_PAD_W, CONVS | POOLS, 0},
    {HW_F_PAD_H, CONVS | POOLS, 0},
    {HW_F_DILATION_W, CONVS, 1},
    {HW_F_DILATION_H, CONVS, 1},
    {HW_F_GROUPS, CONVS, 1},
    {HW_F_POOL_KERNEL_W, FUSED, 1},
    {HW_F_POOL_KERNEL_H, FUSED, 1},
    {HW_F_POOL_STRIDE_W, FUSED, 1},
    {HW_F_POOL_STRIDE_H, FUSED, 1},
    {HW_F_POOL_PAD_W, FUSED, 0},
    {HW_F_POOL_PAD_H, FUSED, 0},
    {HW_F_POOL_GLOBAL, POOLS | FUSED, 0},
    {HW_F_FACTOR_W, BIT(UPSAMPLE), 1},
    {HW_F_FACTOR_H, BIT(UPSAMPLE), 1},
    {HW_F_BIAS, WEIGHTED | BIT(SCALE), 0},
    {HW_F_ACT, ACTS, 0},
    {HW_F_RELU, ACTS, 0},
    {HW_F_PRELU, ACTS, 0},
    {HW_F_CONV_NAME, FUSED, UNSET},
    {HW_F_MID_W, FUSED, UNSET},
    {HW_F_MID_H, FUSED, UNSET},
    {HW_F_MID_C, FUSED, UNSET},
    {HW_F_ADD, PAIRS | BIT(SCALE), UNSET},
    {HW_F_SCALE, PAIRS | BIT(SCALE), UNSET},
    {HW_F_PARALLEL_READ, PAIRS, UNSET},
    {HW_F_METHOD, BIT(UPSAMPLE), UNSET},
    {HW_F_ROW_FIRST, MOVES, UNSET},
    {HW_F_ROW_LAST, MOVES, UNSET},
    {HW_F_COL_FIRST, MOVES, UNSET},
    {HW_F_COL_LAST, MOVES, UNSET},
    {HW_F_TILE_ON, RUNS, UNSET},
    {HW_F_PINGPONG, RUNS, UNSET},
    {HW_F_HALFRATE, WEIGHTED, UNSET},
    {HW_F_WEIGHTS_LAST, BIT(LOAD_WEIGHTS), UNSET},
    {HW_F_WEIGHTS_TAPS, WEIGHTED | BIT(LOAD_WEIGHTS), UNSET},
    {HW_F_WEIGHTS_ADDR, WEIGHTED | BIT(LOAD_WEIGHTS), UNSET},
    {HW_F_WEIGHTS_FIRST, WEIGHTED | BIT(LOAD_WEIGHTS), UNSET},
    {HW_F_BLOCK, RUNS | MOVES, UNSET},
    {HW_F_WAIT_LOAD, RUNS, UNSET},
    {HW_F_WAIT_STORE, RUNS, UNSET},
    {HW_F_WAIT_CONV, RUNS, UNSET},
    {HW_F_WAIT_POOL, RUNS, UNSET},
    {HW_F_WAIT_ELTWISE, RUNS, UNSET},
    {HW_F_WAIT_UPSAMPLE, RUNS, UNSET},
    {HW_F_BYTES, BIT(CONCAT), UNSET},
    {HW_F_END, BIT(CONCAT), UNSET},
    {HW_F_END_BUFFER, BIT(CONCAT), UNSET},
    {HW_F_END_OFFSET, BIT(CONCAT), UNSET},
    {HW_F_HOST_KIND, BIT(HOST) | BIT(LAYER), UNSET},
};

HwAbsent insn_absent(HwOp op, HwField field, int64_t *value) {
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        if (has[i].field == field && !(has[i].ops >> op & 1)) {
            *value = has[i].value;
            return has[i].value == UNSET ? HW_UNSET : HW_NEUTRAL;
        }
    return HW_PRESENT;
}
