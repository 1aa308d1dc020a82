/* absent.c - which operations have which field; see insn.h.
 *
 * Input: an operation and a field that is no operand's. Output: what its token
 * says where the operation has no such thing: a pool is not dilated, a sum has
 * no stride. The table is for who writes instructions and for who judges them.
 */
#include "hwspec/insn.h"

enum { UNSET = -1 }; /* no neutral value is so */

bool insn_is_binary(HwOp op) {
    return hw_op_traits[op] & HW_TWO;
}

bool insn_by_channel(HwOp op) {
    return hw_op_traits[op] & HW_BY_CHANNEL;
}

bool insn_own_plane(HwOp op) {
    return hw_op_traits[op] & (HW_BY_CHANNEL | HW_MATRIX);
}

#define BIT HW_BIT
#define FUSED (BIT(CONV_POOL_MAX) | BIT(CONV_POOL_AVG))
#define CONVS                                                                  \
    (BIT(CONV) | BIT(CONV_GROUPED) | BIT(CONV_DEPTHWISE) | BIT(DECONV) | FUSED)
#define POOLS (BIT(POOL_MAX) | BIT(POOL_AVG))
#define WEIGHTED (CONVS | BIT(FC))

/* Of engines' own work. */
enum { RUNS = 1 << 30 };

typedef struct Has {
    HwField field;
    HwOps ops;       /* that have it... */
    uint32_t traits; /* ... as have those with one of these traits */
    int64_t value;   /* neutral: what the token of others says; or UNSET */
} Has;

static const Has has[] = {
    {HW_F_KERNEL_W, WEIGHTED | POOLS, 0, 1},
    {HW_F_KERNEL_H, WEIGHTED | POOLS, 0, 1},
    {HW_F_STRIDE_W, CONVS | POOLS, 0, 1},
    {HW_F_STRIDE_H, CONVS | POOLS, 0, 1},
    {HW_F_PAD_W, CONVS | POOLS, 0, 0},
    {HW_F_PAD_H, CONVS | POOLS, 0, 0},
    {HW_F_DILATION_W, CONVS, 0, 1},
    {HW_F_DILATION_H, CONVS, 0, 1},
    {HW_F_GROUPS, CONVS, HW_GROUPED, 1},
    {HW_F_POOL_KERNEL_W, FUSED, 0, 1},
    {HW_F_POOL_KERNEL_H, FUSED, 0, 1},
    {HW_F_POOL_STRIDE_W, FUSED, 0, 1},
    {HW_F_POOL_STRIDE_H, FUSED, 0, 1},
    {HW_F_POOL_PAD_W, FUSED, 0, 0},
    {HW_F_POOL_PAD_H, FUSED, 0, 0},
    {HW_F_POOL_GLOBAL, POOLS | FUSED, 0, 0},
    {HW_F_FACTOR_W, BIT(UPSAMPLE), 0, 1},
    {HW_F_FACTOR_H, BIT(UPSAMPLE), 0, 1},
    {HW_F_PATCH_W, 0, HW_MATRIX, 1},
    {HW_F_PATCH_H, 0, HW_MATRIX, 1},
    {HW_F_SHIFT_W, 0, HW_MATRIX, 0},
    {HW_F_SHIFT_H, 0, HW_MATRIX, 0},
    {HW_F_ORDER, BIT(TRANSPOSE), 0, 12},
    {HW_F_BIAS, WEIGHTED | BIT(SCALE), 0, 0},
    {HW_F_ACT, 0, HW_ACTS, 0},
    {HW_F_RELU, 0, HW_ACTS, 0},
    {HW_F_PRELU, 0, HW_ACTS, 0},
    {HW_F_CONV_NAME, FUSED, 0, UNSET},
    {HW_F_MID_W, FUSED, 0, UNSET},
    {HW_F_MID_H, FUSED, 0, UNSET},
    {HW_F_MID_C, FUSED, 0, UNSET},
    {HW_F_ADD, BIT(SCALE), HW_TWO, UNSET},
    {HW_F_SCALE, BIT(SCALE), HW_TWO, UNSET},
    {HW_F_PARALLEL_READ, 0, HW_TWO, UNSET},
    {HW_F_METHOD, BIT(UPSAMPLE), 0, UNSET},
    {HW_F_ROW_FIRST, 0, HW_MOVE, UNSET},
    {HW_F_ROW_LAST, 0, HW_MOVE, UNSET},
    {HW_F_COL_FIRST, 0, HW_MOVE, UNSET},
    {HW_F_COL_LAST, 0, HW_MOVE, UNSET},
    {HW_F_TILE_ON, 0, RUNS, UNSET},
    {HW_F_PINGPONG, 0, RUNS, UNSET},
    {HW_F_HALFRATE, WEIGHTED, 0, UNSET},
    {HW_F_WEIGHTS_LAST, BIT(LOAD_WEIGHTS) | BIT(LOAD_BIAS), 0, UNSET},
    {HW_F_WEIGHTS_MEMORY, BIT(LOAD_WEIGHTS) | BIT(LOAD_BIAS), 0, UNSET},
    {HW_F_WEIGHTS_TAPS, WEIGHTED | BIT(LOAD_WEIGHTS), 0, UNSET},
    {HW_F_WEIGHTS_ADDR, WEIGHTED | BIT(LOAD_WEIGHTS), 0, UNSET},
    {HW_F_WEIGHTS_FIRST, WEIGHTED | BIT(LOAD_WEIGHTS) | BIT(LOAD_BIAS), 0,
     UNSET},
    {HW_F_WEIGHTS_IN, WEIGHTED | BIT(LOAD_WEIGHTS), 0, UNSET},
    {HW_F_BIAS_ADDR, WEIGHTED | BIT(LOAD_BIAS), 0, UNSET},
    {HW_F_SUMS_FIRST, BIT(CONV) | BIT(FC), 0, 1},
    {HW_F_SUMS_LAST, BIT(CONV) | BIT(FC), 0, 1},
    {HW_F_BLOCK, 0, RUNS | HW_MOVE, UNSET},
    {HW_F_WAIT_LOAD, 0, RUNS, UNSET},
    {HW_F_WAIT_STORE, 0, RUNS, UNSET},
    {HW_F_WAIT_CONV, 0, RUNS, UNSET},
    {HW_F_WAIT_POOL, 0, RUNS, UNSET},
    {HW_F_WAIT_ELTWISE, 0, RUNS, UNSET},
    {HW_F_WAIT_UPSAMPLE, 0, RUNS, UNSET},
    {HW_F_BYTES, BIT(CONCAT), 0, UNSET},
    {HW_F_END, BIT(CONCAT), 0, UNSET},
    {HW_F_END_BUFFER, BIT(CONCAT), 0, UNSET},
    {HW_F_END_OFFSET, BIT(CONCAT), 0, UNSET},
    {HW_F_HOST_KIND, BIT(HOST) | BIT(LAYER), 0, UNSET},
};

static bool has_it(const Has *row, HwOp op) {
    uint32_t traits = hw_op_traits[op];
    bool runs = !(traits & (HW_MOVE | HW_NOTE));
    return row->ops >> op & 1 || (row->traits & traits) ||
           (runs && row->traits & RUNS);
}

HwAbsent insn_absent(HwOp op, HwField field, int64_t *value) {
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        if (has[i].field == field && !has_it(&has[i], op)) {
            bool unset = has[i].value == UNSET;
            *value = unset ? 0 : has[i].value;
            return unset ? HW_UNSET : HW_NEUTRAL;
        }
    return HW_PRESENT;
}

/* Where the operation decides, beside what it lacks; of the others that have
 * the field, 0. */
static const struct {
    HwField field;
    HwOp op;
    int64_t value;
} decided[] = {
    {HW_F_ADD, HW_OP_ADD, 1},    {HW_F_ADD, HW_OP_ADD_CHANNELS, 1},
    {HW_F_ADD, HW_OP_SCALE, -1}, {HW_F_SCALE, HW_OP_SCALE, 1},
    {HW_F_BIAS, HW_OP_SCALE, 1}, {HW_F_GROUPS, HW_OP_CONV, 1},
};

bool insn_decided(HwOp op, HwField field, int64_t *value) {
    *value = 0;
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        if (decided[i].field == field && decided[i].op == op) {
            *value = decided[i].value;
            return true;
        }
    return insn_absent(op, field, value) != HW_PRESENT ||
           field == HW_F_ADD || field == HW_F_SCALE;
}
