/* legal_ops.c - the abstract operation that a node stands for; HW_OP_HOST where
 * engines know no such.
 */
#include "passes/legal_int.h"

#include "graph/quant.h"

static HwOp conv_op(const Graph *g, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    uint32_t in_c = shape_dim(&graph_tensor(g, node->in[0])->shape, 1);
    if (conv->groups < 2)
        return HW_OP_CONV;
    bool depthwise = conv->groups == in_c && conv->groups == conv->out_c;
    return depthwise ? HW_OP_CONV_DEPTHWISE : HW_OP_CONV_GROUPED;
}

static HwOp conv_pool_op(const Graph *g, const Node *node) {
    (void)g;
    if (node->attr.conv.groups > 1)
        return HW_OP_HOST;
    return node->attr.pool.kind == POOL_MAX ? HW_OP_CONV_POOL_MAX
                                            : HW_OP_CONV_POOL_AVG;
}

/* One number by channel, of one image. */
static bool is_by_channel(const Shape *shape, const Shape *out) {
    return out->rank == 4 && shape->rank == 4 && shape->dim[0] == 1 &&
           shape->dim[1] == out->dim[1] &&
           shape_count(shape) == shape->dim[1] && !shape_equal(shape, out);
}

static HwOp elt_op(const Graph *g, const Node *node) {
    bool by_channel =
        node->n_in == 2 && is_by_channel(&graph_tensor(g, node->in[1])->shape,
                                         &graph_tensor(g, node->in[0])->shape);
    switch (node->attr.elt.kind) {
    case ELT_ADD:
        return by_channel ? HW_OP_ADD_CHANNELS : HW_OP_ADD;
    case ELT_MUL:
        return by_channel ? HW_OP_MUL_CHANNELS : HW_OP_MUL;
    case ELT_MAX:
        return HW_OP_MAX;
    default:
        return HW_OP_HOST;
    }
}

static HwOp gather_op(const Graph *g, const Node *node) {
    return node->attr.gather.axis == 1 && quant_picks(g, node) ? HW_OP_GATHER
                                                               : HW_OP_HOST;
}

/* Over the channels of each pixel, or over planes of some channels. */
static HwOp norm_op(const Graph *g, const Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    uint32_t axis = node->attr.norm.axis, axes = node->attr.norm.axes;
    axes = axes ? axes : in->rank - axis;
    if (axis == 1 && axes == 1)
        return node->attr.norm.rms ? HW_OP_RMSNORM : HW_OP_LAYERNORM;
    bool planes = axis == 1 ? axes == 3 : axis == 2 && axes == 2;
    return in->rank == 4 && planes && !node->attr.norm.rms ? HW_OP_GROUP_NORM
                                                           : HW_OP_HOST;
}

/* Of one image; the host's own forms are of any rank. */
static HwOp reduce_op(const Graph *g, const Node *node) {
    (void)g;
    static const HwOp op[REDUCE_COUNT] = {[REDUCE_MEAN] = HW_OP_REDUCE_MEAN,
                                          [REDUCE_SUM] = HW_OP_REDUCE_SUM,
                                          [REDUCE_MAX] = HW_OP_REDUCE_MAX};
    bool known = op[node->attr.reduce.kind] && node->act.kind == ACT_NONE &&
                 node->attr.reduce.axes == 1u << 1;
    return known ? op[node->attr.reduce.kind] : HW_OP_HOST;
}

static HwOp pool_op(const Graph *g, const Node *node) {
    (void)g;
    return node->attr.pool.kind == POOL_MAX ? HW_OP_POOL_MAX : HW_OP_POOL_AVG;
}

static HwOp softmax_op(const Graph *g, const Node *node) {
    (void)g;
    return node->attr.axis.axis == 1 ? HW_OP_SOFTMAX : HW_OP_HOST;
}

static HwOp mix_op(const Graph *g, const Node *node) {
    (void)g;
    return node->attr.mix.attends       ? HW_OP_ATTENTION
           : node->attr.mix.over_pixels ? HW_OP_MATMUL_PIXELS
                                        : HW_OP_MATMUL_CHANNELS;
}

static HwOp offset_op(const Graph *g, const Node *node) {
    (void)g;
    return node->attr.offset.times ? HW_OP_MUL_CONSTANTS : HW_OP_ADD_CONSTANTS;
}

static HwOp transpose_op(const Graph *g, const Node *node) {
    const Shape *perm = &node->attr.perm;
    (void)g;
    return perm->dim[0] == 0 && perm->rank <= 4 && perm->rank >= 3
               ? HW_OP_TRANSPOSE
               : HW_OP_HOST;
}

/* What an operator stands for: always, or as its attributes say. */
typedef struct OpRow {
    HwOp op;
    HwOp (*chosen)(const Graph *g, const Node *node);
} OpRow;

#define ALWAYS(NAME)                                                           \
    { HW_OP_##NAME, NULL }
#define CHOSEN(by)                                                             \
    { HW_OP_HOST, by }
#define as_act ALWAYS(ACT)
#define as_concat ALWAYS(CONCAT)
#define as_conv CHOSEN(conv_op)
#define as_conv_pool CHOSEN(conv_pool_op)
#define as_deconv ALWAYS(DECONV)
#define as_eltwise CHOSEN(elt_op)
#define as_fc ALWAYS(FC)
#define as_gather CHOSEN(gather_op)
#define as_mix CHOSEN(mix_op)
#define as_norm CHOSEN(norm_op)
#define as_offset CHOSEN(offset_op)
#define as_pixels ALWAYS(GATHER_PIXELS)
#define as_pool CHOSEN(pool_op)
#define as_reduce CHOSEN(reduce_op)
#define as_reshape ALWAYS(RESHAPE)
#define as_scale ALWAYS(SCALE)
#define as_softmax CHOSEN(softmax_op)
#define as_transpose CHOSEN(transpose_op)
#define as_upsample ALWAYS(UPSAMPLE)
/* The host's: */
#define as_bn ALWAYS(HOST)
#define as_call ALWAYS(HOST)
#define as_constant ALWAYS(HOST)
#define as_identity ALWAYS(HOST)
#define as_input ALWAYS(HOST)
#define as_lrn ALWAYS(HOST)
#define as_matmul ALWAYS(HOST)
#define as_pad ALWAYS(HOST)
#define as_routine ALWAYS(HOST)
#define as_slice ALWAYS(HOST)

static const OpRow op_row[OP_COUNT] = {
#define OP(NAME, name, min, max, doc) [OP_##NAME] = as_##name,
#include "graph/ops.def"
#undef OP
};

HwOp legal_node_op(const Graph *g, const Node *node) {
    const OpRow *row = &op_row[node->op];
    return row->chosen ? row->chosen(g, node) : row->op;
}

HwOp legal_op(const Graph *g, NodeId node) {
    return legal_node_op(g, graph_node(g, node));
}
