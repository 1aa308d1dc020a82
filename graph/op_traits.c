/* op_traits.c - traits of each operator; see op_traits.h. */
#include "graph/op_traits.h"

#define traits_act (OP_MOVES | OP_BY_CHANNEL | OP_BY_PIXEL)
#define traits_bn OP_BY_CHANNEL
#define traits_concat OP_MOVES
#define traits_eltwise (OP_BY_CHANNEL | OP_BY_PIXEL)
#define traits_identity OP_MOVES
#define traits_offset OP_BY_PIXEL
#define traits_pad OP_MOVES
#define traits_pixels OP_MOVES
#define traits_pool OP_BY_CHANNEL
#define traits_reshape OP_MOVES
#define traits_scale (OP_BY_CHANNEL | OP_BY_PIXEL)
#define traits_slice OP_MOVES
#define traits_transpose OP_MOVES
#define traits_upsample (OP_MOVES | OP_BY_CHANNEL)
/* None, or only by their attributes: */
#define traits_call 0
#define traits_constant 0
#define traits_conv 0
#define traits_conv_pool 0
#define traits_deconv 0
#define traits_fc 0
#define traits_gather 0
#define traits_input 0
#define traits_lrn 0
#define traits_matmul 0
#define traits_mix 0
#define traits_norm 0
#define traits_reduce 0
#define traits_routine 0
#define traits_softmax 0

static const uint32_t traits[OP_COUNT] = {
#define OP(NAME, name, min, max, doc) [OP_##NAME] = traits_##name,
#include "graph/ops.def"
#undef OP
};

bool op_has(OpKind op, OpTrait trait) {
    return traits[op] & trait;
}
