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

/* Fields that operations have together; others go by traits (vocabulary.h). */
enum {
    KERNEL = 1,     /* a window, or all of a volume, for each result */
    STEPS = 1 << 1, /* windows move, and reach into padding */
    CONVOLVES = 1 << 2,
    POOLS = 1 << 3,
    POOLS_TOO = 1 << 4, /* behind a convolution */
    FACTORS = 1 << 5,
    METHOD = 1 << 6,
    ORDER = 1 << 7,
    BIAS = 1 << 8,
    BLENDS = 1 << 9,
    WEIGHTS = 1 << 10, /* reads them from where they lie, */
    LOADS_WEIGHTS = 1 << 11,
    LOADS_BIAS = 1 << 12,
    SUMS = 1 << 13, /* goes on with sums of input channels */
    ENDS = 1 << 14, /* says where its result ends */
    KIND = 1 << 15  /* says which layer it is */
};
/* A trait beside those of HwTrait: engines' own work. */
enum { RUNS = 1 << 30 };

/* By operation. */
#define WINDOW (KERNEL | STEPS)
#define CONV (WINDOW | CONVOLVES | BIAS | WEIGHTS)
#define fields_conv (CONV | SUMS)
#define fields_conv_grouped CONV
#define fields_conv_depthwise CONV
#define fields_deconv CONV
#define fields_conv_pool_max (CONV | POOLS_TOO)
#define fields_conv_pool_avg (CONV | POOLS_TOO)
#define fields_pool_max (WINDOW | POOLS)
#define fields_pool_avg (WINDOW | POOLS)
#define fields_fc (KERNEL | BIAS | WEIGHTS | SUMS)
#define fields_scale (BIAS | BLENDS)
#define fields_upsample (FACTORS | METHOD)
#define fields_transpose ORDER
#define fields_concat ENDS
#define fields_layer KIND
#define fields_host KIND
#define fields_load_weights LOADS_WEIGHTS
#define fields_load_bias LOADS_BIAS
/* Those of their traits alone: */
#define fields_act 0
#define fields_add 0
#define fields_add_channels 0
#define fields_add_constants 0
#define fields_attention 0
#define fields_gather 0
#define fields_gather_pixels 0
#define fields_group_norm 0
#define fields_layernorm 0
#define fields_load 0
#define fields_matmul_channels 0
#define fields_matmul_pixels 0
#define fields_max 0
#define fields_mul 0
#define fields_mul_channels 0
#define fields_mul_constants 0
#define fields_reduce_max 0
#define fields_reduce_mean 0
#define fields_reduce_sum 0
#define fields_reshape 0
#define fields_rmsnorm 0
#define fields_softmax 0
#define fields_store 0

static const uint32_t fields_of[HW_OP_COUNT] = {
#define HW_OP(NAME, name, traits, doc) [HW_OP_##NAME] = fields_##name,
#include "hwspec/ops.def"
#undef HW_OP
};

typedef struct Has {
    HwField field;
    uint32_t fields; /* operations with one of these have it... */
    uint32_t traits; /* ... as have those with one of these traits */
    int64_t value;   /* neutral: what the token of others says; or UNSET */
} Has;

static const Has has[] = {
    {HW_F_KERNEL_W, KERNEL, 0, 1},
    {HW_F_KERNEL_H, KERNEL, 0, 1},
    {HW_F_STRIDE_W, STEPS, 0, 1},
    {HW_F_STRIDE_H, STEPS, 0, 1},
    {HW_F_PAD_W, STEPS, 0, 0},
    {HW_F_PAD_H, STEPS, 0, 0},
    {HW_F_DILATION_W, CONVOLVES, 0, 1},
    {HW_F_DILATION_H, CONVOLVES, 0, 1},
    {HW_F_GROUPS, CONVOLVES, HW_GROUPED, 1},
    {HW_F_POOL_KERNEL_W, POOLS_TOO, 0, 1},
    {HW_F_POOL_KERNEL_H, POOLS_TOO, 0, 1},
    {HW_F_POOL_STRIDE_W, POOLS_TOO, 0, 1},
    {HW_F_POOL_STRIDE_H, POOLS_TOO, 0, 1},
    {HW_F_POOL_PAD_W, POOLS_TOO, 0, 0},
    {HW_F_POOL_PAD_H, POOLS_TOO, 0, 0},
    {HW_F_POOL_GLOBAL, POOLS | POOLS_TOO, 0, 0},
    {HW_F_FACTOR_W, FACTORS, 0, 1},
    {HW_F_FACTOR_H, FACTORS, 0, 1},
    {HW_F_PATCH_W, 0, HW_MATRIX, 1},
    {HW_F_PATCH_H, 0, HW_MATRIX, 1},
    {HW_F_SHIFT_W, 0, HW_MATRIX, 0},
    {HW_F_SHIFT_H, 0, HW_MATRIX, 0},
    {HW_F_ORDER, ORDER, 0, 12},
    {HW_F_BIAS, BIAS, 0, 0},
    {HW_F_ACT, 0, HW_ACTS, 0},
    {HW_F_RELU, 0, HW_ACTS, 0},
    {HW_F_PRELU, 0, HW_ACTS, 0},
    {HW_F_CONV_NAME, POOLS_TOO, 0, UNSET},
    {HW_F_MID_W, POOLS_TOO, 0, UNSET},
    {HW_F_MID_H, POOLS_TOO, 0, UNSET},
    {HW_F_MID_C, POOLS_TOO, 0, UNSET},
    {HW_F_ADD, BLENDS, HW_TWO, UNSET},
    {HW_F_SCALE, BLENDS, HW_TWO, UNSET},
    {HW_F_PARALLEL_READ, 0, HW_TWO, UNSET},
    {HW_F_METHOD, METHOD, 0, UNSET},
    {HW_F_ROW_FIRST, 0, HW_MOVE, UNSET},
    {HW_F_ROW_LAST, 0, HW_MOVE, UNSET},
    {HW_F_COL_FIRST, 0, HW_MOVE, UNSET},
    {HW_F_COL_LAST, 0, HW_MOVE, UNSET},
    {HW_F_TILE_ON, 0, RUNS, UNSET},
    {HW_F_PINGPONG, 0, RUNS, UNSET},
    {HW_F_HALFRATE, WEIGHTS, 0, UNSET},
    {HW_F_WEIGHTS_LAST, LOADS_WEIGHTS | LOADS_BIAS, 0, UNSET},
    {HW_F_WEIGHTS_MEMORY, LOADS_WEIGHTS | LOADS_BIAS, 0, UNSET},
    {HW_F_WEIGHTS_TAPS, WEIGHTS | LOADS_WEIGHTS, 0, UNSET},
    {HW_F_WEIGHTS_ADDR, WEIGHTS | LOADS_WEIGHTS, 0, UNSET},
    {HW_F_WEIGHTS_FIRST, WEIGHTS | LOADS_WEIGHTS | LOADS_BIAS, 0, UNSET},
    {HW_F_WEIGHTS_IN, WEIGHTS | LOADS_WEIGHTS, 0, UNSET},
    {HW_F_WEIGHTS_TAP_FIRST, WEIGHTS | LOADS_WEIGHTS, 0, UNSET},
    {HW_F_WEIGHTS_TAP_LAST, WEIGHTS | LOADS_WEIGHTS, 0, UNSET},
    {HW_F_BIAS_ADDR, WEIGHTS | LOADS_BIAS, 0, UNSET},
    {HW_F_SUMS_FIRST, SUMS, 0, 1},
    {HW_F_SUMS_LAST, SUMS, 0, 1},
    {HW_F_SUMS_ADDR, WEIGHTS, 0, UNSET},
    {HW_F_BLOCK, 0, RUNS | HW_MOVE, UNSET},
    {HW_F_WAIT_LOAD, 0, RUNS, UNSET},
    {HW_F_WAIT_STORE, 0, RUNS, UNSET},
    {HW_F_WAIT_CONV, 0, RUNS, UNSET},
    {HW_F_WAIT_POOL, 0, RUNS, UNSET},
    {HW_F_WAIT_ELTWISE, 0, RUNS, UNSET},
    {HW_F_WAIT_UPSAMPLE, 0, RUNS, UNSET},
    {HW_F_BYTES, ENDS, 0, UNSET},
    {HW_F_END, ENDS, 0, UNSET},
    {HW_F_END_BUFFER, ENDS, 0, UNSET},
    {HW_F_END_OFFSET, ENDS, 0, UNSET},
    {HW_F_HOST_KIND, KIND, 0, UNSET},
};

static bool has_it(const Has *row, HwOp op) {
    uint32_t traits = hw_op_traits[op];
    bool runs = !(traits & (HW_MOVE | HW_NOTE));
    return row->fields & fields_of[op] || (row->traits & traits) ||
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
    return insn_absent(op, field, value) != HW_PRESENT || field == HW_F_ADD ||
           field == HW_F_SCALE;
}
