/* ops.c - TensorFlow's operators as nodes, one row an operator; those with
 * windows are in ops_window.c, those that take axes apart in ops_axes.c. */
#include "frontends/tensorflow/tf.h"

#include <string.h>

static TensorId placeholder(Tf *tf, int kind) {
    Shape shape = tf_shape(tf, proto_message(tf->net.arena, tf->net.diag,
                                             tf_attr(tf, "shape"), "shape"));
    (void)kind;
    return net_input(&tf->net, &shape);
}

/* A constant, or a tensor under another name. */
static TensorId identity(Tf *tf, int kind) {
    const Const *value = tf_maybe(tf, 0);
    (void)kind;
    if (value)
        return tf_be_const(tf, *value, tf->node[tf->at->in[0].node].known);
    return net_identity(&tf->net, tf_in(tf, 0));
}

/* Which output lives is known where the condition is; frozen dropout. */
static TensorId switch_node(Tf *tf, int kind) {
    int64_t condition;
    (void)kind;
    if (!tf_maybe(tf, 1) || !tf->node[tf->at->in[1].node].known)
        return net_none(&tf->net, "control flow is not supported, unless its "
                                  "condition is a constant");
    if (tf_ints(tf, 1, 1, &condition) != 1)
        return NO_TENSOR;
    tf->at->live = condition != 0;
    return identity(tf, 0);
}

static TensorId merge(Tf *tf, int kind) {
    for (uint32_t i = 0; i < tf->at->n_in; i++) {
        const TfNode *from = &tf->node[tf->at->in[i].node];
        if (from->state != TF_DEAD &&
            (from->live == NONE || from->live == tf->at->in[i].output)) {
            tf->at->in = &tf->at->in[i];
            tf->at->n_in = 1;
            return identity(tf, kind);
        }
    }
    return NO_TENSOR;
}

static TensorId control_flow(Tf *tf, int kind) {
    (void)kind;
    return net_none(&tf->net, "control flow is not supported");
}

/* Nodes that compute nothing that anyone reads. */
static TensorId nothing(Tf *tf, int kind) {
    (void)kind;
    tf->at->state = TF_DEAD;
    return NO_TENSOR;
}

static TensorId unary(Tf *tf, int act) {
    return net_act(&tf->net, NULL, tf_in(tf, 0), (Act){.kind = (ActKind)act});
}

static TensorId with_alpha(Tf *tf, int kind) {
    Act act = {.kind = (ActKind)kind,
               .alpha = tf_num(tf, "alpha", kind == ACT_LEAKY ? 0.2 : 1)};
    if (kind == ACT_SELU) {
        act.alpha = 1.6732632423543772;
        act.hi = 1.0507009873554805;
    }
    return net_act(&tf->net, NULL, tf_in(tf, 0), act);
}

/* log(x + 1), exp(x) - 1. */
static TensorId shifted(Tf *tf, int is_exp) {
    TensorId in = tf_in(tf, 0);
    if (!is_exp)
        in = net_affine(&tf->net, "one", in, 1, 1);
    in = net_act(&tf->net, is_exp ? "exp" : NULL, in,
                 (Act){.kind = is_exp ? ACT_EXP : ACT_LOG});
    return is_exp ? net_affine(&tf->net, NULL, in, 1, -1) : in;
}

/* x^-1/2, x^2: of constants, and of tensors as powers. */
static TensorId power(Tf *tf, int tenths) {
    Const exponent = net_number(&tf->net, tenths / 10.0);
    if (!tf_all_known(tf))
        return net_elt_const(&tf->net, ELT_POW, tf_in(tf, 0), &exponent, false);
    return tf_fold_two(tf, ELT_POW, tf_const(tf, 0), &exponent);
}

static TensorId elements(Tf *tf, int kind) {
    const Const *a = tf_maybe(tf, 0), *b = tf_maybe(tf, 1);
    if (tf_all_known(tf) && a && b)
        return tf_fold(tf, kind);
    if (a && !b)
        return net_elt_const(&tf->net, (EltKind)kind, tf_in(tf, 1), a, true);
    if (b && !a)
        return net_elt_const(&tf->net, (EltKind)kind, tf_in(tf, 0), b, false);
    TensorId in[2] = {tf_in(tf, 0), tf_in(tf, 1)};
    return net_elt(&tf->net, NULL, (EltKind)kind, 2, in);
}

static TensorId squared_difference(Tf *tf, int kind) {
    TensorId in[2] = {tf_in(tf, 0), tf_in(tf, 1)};
    (void)kind;
    return net_squared_difference(&tf->net, in);
}

static TensorId add_n(Tf *tf, int kind) {
    TensorId *in = ARENA_ARRAY(tf->net.arena, TensorId, tf->at->n_in);
    for (uint32_t i = 0; i < tf->at->n_in; i++)
        in[i] = tf_in(tf, i);
    return tf->at->n_in == 1
               ? net_identity(&tf->net, in[0])
               : net_elt(&tf->net, NULL, (EltKind)kind, tf->at->n_in, in);
}

static TensorId softmax(Tf *tf, int kind) {
    (void)kind;
    return net_softmax(&tf->net, tf_in(tf, 0), -1);
}

static TensorId lrn(Tf *tf, int kind) {
    TensorId in = tf_in(tf, 0);
    NodeId node = net_node(&tf->net, OP_LRN, NULL, 1, &in);
    double radius = tf_num(tf, "depth_radius", 5);
    (void)kind;
    if (node.i == NONE || !(radius >= 0 && radius < 1 << 14))
        return NO_TENSOR;
    uint32_t size = 2 * (uint32_t)radius + 1;
    graph_node(tf->net.g, node)->attr.lrn =
        (LrnAttr){.size = size,
                  .k = tf_num(tf, "bias", 1),
                  .alpha = tf_num(tf, "alpha", 1) * size,
                  .beta = tf_num(tf, "beta", 0.5)};
    return net_out(&tf->net, node);
}

static const TfOp ops[] = {
    {"Placeholder", placeholder, 0},
    {"PlaceholderWithDefault", identity, 0},
    {"Const", tf_constant, 0},
    {"VarHandleOp", tf_variable, 0},
    {"VariableV2", tf_variable, 0},
    {"Variable", tf_variable, 0},
    {"ReadVariableOp", identity, 0},
    {"Identity", identity, 0},
    {"IdentityN", identity, 0},
    {"CheckNumerics", identity, 0},
    {"StopGradient", identity, 0},
    {"PreventGradient", identity, 0},
    {"Snapshot", identity, 0},
    {"Cast", tf_cast, 0},
    {"OnesLike", tf_like, 1},
    {"ZerosLike", tf_like, 0},
    {"Rank", tf_rank_of, 0},
    {"Size", tf_rank_of, 1},
    {"Range", tf_range, 0},
    {"Fill", tf_fill, 0},
    {"Prelu", tf_prelu, 0},
    {"Dropout", identity, 0},
    {"FakeQuantWithMinMaxVars", identity, 0},
    {"FakeQuantWithMinMaxArgs", identity, 0},
    {"Switch", switch_node, 0},
    {"Merge", merge, 0},
    {"Enter", control_flow, 0},
    {"Exit", control_flow, 0},
    {"NextIteration", control_flow, 0},
    {"LoopCond", control_flow, 0},
    {"If", control_flow, 0},
    {"StatelessIf", control_flow, 0},
    {"While", control_flow, 0},
    {"StatelessWhile", control_flow, 0},
    {"NoOp", nothing, 0},
    {"Assert", nothing, 0},
    {"SaveV2", nothing, 0},
    {"RestoreV2", nothing, 0},
    {"Conv2D", tf_conv, 0},
    {"_FusedConv2D", tf_conv, 0},
    {"DepthwiseConv2dNative", tf_conv, 1},
    {"FusedDepthwiseConv2dNative", tf_conv, 1},
    {"Conv2DBackpropInput", tf_deconv, 0},
    {"MatMul", tf_matmul, 0},
    {"_FusedMatMul", tf_matmul, 0},
    {"BatchMatMul", tf_matmul, 0},
    {"BatchMatMulV2", tf_matmul, 0},
    {"BiasAdd", tf_bias_add, 0},
    {"BiasAddV1", tf_bias_add, 0},
    {"FusedBatchNorm", tf_batch_norm, 0},
    {"FusedBatchNormV2", tf_batch_norm, 0},
    {"FusedBatchNormV3", tf_batch_norm, 0},
    {"AvgPool", tf_pool, POOL_AVG},
    {"MaxPool", tf_pool, POOL_MAX},
    {"Relu", unary, ACT_RELU},
    {"Relu6", unary, ACT_RELU6},
    {"Elu", with_alpha, ACT_ELU},
    {"Selu", with_alpha, ACT_SELU},
    {"LeakyRelu", with_alpha, ACT_LEAKY},
    {"Sigmoid", unary, ACT_SIGMOID},
    {"Tanh", unary, ACT_TANH},
    {"Softplus", unary, ACT_SOFTPLUS},
    {"Softsign", unary, ACT_SOFTSIGN},
    {"Exp", unary, ACT_EXP},
    {"Log", unary, ACT_LOG},
    {"Sqrt", unary, ACT_SQRT},
    {"Neg", unary, ACT_NEG},
    {"Abs", unary, ACT_ABS},
    {"Erf", unary, ACT_ERF},
    {"Floor", unary, ACT_FLOOR},
    {"Ceil", unary, ACT_CEIL},
    {"Round", unary, ACT_ROUND},
    {"Rint", unary, ACT_ROUND},
    {"Sign", unary, ACT_SIGN},
    {"Sin", unary, ACT_SIN},
    {"Cos", unary, ACT_COS},
    {"Tan", unary, ACT_TAN},
    {"Atan", unary, ACT_ATAN},
    {"Sinh", unary, ACT_SINH},
    {"Cosh", unary, ACT_COSH},
    {"Reciprocal", unary, ACT_RECIPROCAL},
    {"Inv", unary, ACT_RECIPROCAL},
    {"Log1p", shifted, 0},
    {"Expm1", shifted, 1},
    {"Rsqrt", power, -5},
    {"Square", power, 20},
    {"Add", elements, ELT_ADD},
    {"AddV2", elements, ELT_ADD},
    {"Sub", elements, ELT_SUB},
    {"Mul", elements, ELT_MUL},
    {"RealDiv", elements, ELT_DIV},
    {"Div", elements, ELT_DIV},
    {"Maximum", elements, ELT_MAX},
    {"Minimum", elements, ELT_MIN},
    {"Pow", elements, ELT_POW},
    {"AddN", add_n, ELT_ADD},
    {"SquaredDifference", squared_difference, 0},
    {"Softmax", softmax, 0},
    {"LRN", lrn, 0},
    {"LogSoftmax", tf_log_softmax, 0},
    {"Gather", tf_take, 0},
    {"GatherV2", tf_take, 1},
    {"ResourceGather", tf_take, 0},
    {"GatherNd", tf_gather_nd, 0},
    {"ScatterNd", tf_scatter_nd, 0},
    {"SparseToDense", tf_sparse, 0},
    {"TopK", tf_top_k, 0},
    {"TopKV2", tf_top_k, 1},
    {"ArgMax", tf_arg, REDUCE_ARGMAX},
    {"ArgMin", tf_arg, REDUCE_ARGMIN},
    {"OneHot", tf_one_hot, 0},
    {"Cumsum", tf_cumulate, 0},
    {"Tile", tf_tile, 0},
    {"BroadcastTo", tf_broadcast, 0},
    {"ReverseV2", tf_reverse, 0},
    {"Equal", tf_compare, ELT_EQUAL},
    {"NotEqual", tf_unequal, 0},
    {"Less", tf_compare, ELT_LESS},
    {"LessEqual", tf_compare, ELT_LESS_EQUAL},
    {"Greater", tf_compare, ELT_GREATER},
    {"GreaterEqual", tf_compare, ELT_GREATER_EQUAL},
    {"LogicalAnd", tf_compare, ELT_AND},
    {"LogicalOr", tf_compare, ELT_OR},
    {"LogicalNot", unary, ACT_NOT},
    {"FloorDiv", tf_floor_div, 0},
    {"FloorMod", tf_compare, ELT_MOD},
    {"Mod", tf_compare, ELT_FMOD},
    {"Select", tf_select, 0},
    {"SelectV2", tf_select, 0},
    {"All", tf_reduce, REDUCE_MIN},
    {"Any", tf_reduce, REDUCE_MAX},
    {"Concat", tf_concat, 0},
    {"ConcatV2", tf_concat, 1},
    {"Reshape", tf_reshape, 0},
    {"Squeeze", tf_squeeze, 0},
    {"ExpandDims", tf_expand, 0},
    {"Transpose", tf_transpose, 0},
    {"Mean", tf_reduce, REDUCE_MEAN},
    {"Sum", tf_reduce, REDUCE_SUM},
    {"Max", tf_reduce, REDUCE_MAX},
    {"Min", tf_reduce, REDUCE_MIN},
    {"Prod", tf_reduce, REDUCE_PROD},
    {"Pad", tf_pad, 0},
    {"PadV2", tf_pad, 1},
    {"MirrorPad", tf_mirror_pad, 0},
    {"ResizeNearestNeighbor", tf_resize, 0},
    {"ResizeBilinear", tf_resize, 1},
    {"SpaceToDepth", tf_blocks, 1},
    {"DepthToSpace", tf_blocks, 0},
    {"Slice", tf_slice, 0},
    {"StridedSlice", tf_strided_slice, 0},
    {"Split", tf_split, 0},
    {"Shape", tf_shape_of, 0},
    {"Pack", tf_pack, 0},
    {"Unpack", tf_unpack, 0},
    {"SplitV", tf_split_v, 0},
    {"SpaceToBatchND", tf_batches, 1},
    {"BatchToSpaceND", tf_batches, 0},
};

const TfOp *tf_find_op(const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    return NULL;
}
