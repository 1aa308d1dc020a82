/* ops.c - MXNet's operators as nodes, one row an operator.
 *
 * In: a node of the file whose inputs are built. Out: its tensor. Defaults are
 * MXNet's, which differ from others': a normalisation ignores gamma unless told
 * otherwise, and its epsilon is 0.001; averages count the padding; pooling
 * rounds down ("valid") or up ("full").
 */
#include "frontends/mxnet/mxnet.h"

#include <string.h>

/* Two numbers of an attribute; `out` as it was where there is none. */
static bool pair(const Mx *mx, const char *key, uint32_t out[2]) {
    int64_t value[2];
    int n = mx_tuple(mx, key, 2, value);
    if (n <= 0)
        return n == 0;
    if (n != 2)
        return net_fail(&mx->net,
                        "%s has one dimension; only two are supported", key);
    for (int i = 0; i < 2; i++) {
        if (value[i] < 0 || value[i] > INT32_MAX)
            return net_fail(&mx->net, "%s is out of range", key);
        out[i] = (uint32_t)value[i];
    }
    return true;
}

static bool right_layout(const Mx *mx) {
    const char *layout = mx_str(mx, "layout", "None");
    return !strcmp(layout, "None") || !strcmp(layout, "NCHW") ||
           net_fail(&mx->net, "layout %s is not supported, only NCHW", layout);
}

/* ---- layers with weights ---- */

static const Const *weight_of(Mx *mx) {
    return mx->at->weight ? mx->at->weight : mx_value(mx, 1, "weight");
}

static bool has_bias(const Mx *mx, bool none) {
    return mx->at->bias || !mx_bool(mx, "no_bias", none);
}

static const Const *bias_of(Mx *mx) {
    return mx->at->bias ? mx->at->bias : mx_value(mx, 2, "bias");
}

static bool enlarge(const Mx *mx, OpKind op, ConvAttr *a) {
    uint32_t adj[2] = {0, 0};
    if (op != OP_DECONV || !pair(mx, "adj", adj))
        return op != OP_DECONV;
    for (int i = 0; i < 2; i++) {
        if (adj[i] > a->pad_end[i])
            return net_fail(&mx->net, "adj is larger than pad");
        a->pad_end[i] -= adj[i];
    }
    return true;
}

static TensorId convolution(Mx *mx, int op) {
    ConvAttr a = {.stride = {1, 1}, .dilation = {1, 1}};
    a.out_c = mx_whole(mx, "num_filter", 0);
    a.groups = mx_whole(mx, "num_group", 1);
    bool bias = has_bias(mx, op == OP_DECONV);
    if (!right_layout(mx) || !pair(mx, "kernel", a.kernel) ||
        !pair(mx, "stride", a.stride) || !pair(mx, "dilate", a.dilation) ||
        !pair(mx, "pad", a.pad))
        return NO_TENSOR;
    memcpy(a.pad_end, a.pad, sizeof a.pad);
    if (!enlarge(mx, (OpKind)op, &a))
        return NO_TENSOR;
    return net_conv(&mx->net, (OpKind)op, mx_in(mx, 0), &a, weight_of(mx), bias,
                    bias ? bias_of(mx) : NULL);
}

/* Without "flatten" the last axis alone. */
static TensorId fully_connected(Mx *mx, int kind) {
    bool bias = has_bias(mx, false);
    (void)kind;
    Dense dense = {.out = mx_whole(mx, "num_hidden", 0),
                   .weight = weight_of(mx),
                   .has_bias = bias,
                   .bias = bias ? bias_of(mx) : NULL};
    return mx_bool(mx, "flatten", true)
               ? net_fc(&mx->net, mx_in(mx, 0), dense.out, dense.weight, bias,
                        dense.bias)
               : net_dense(&mx->net, mx_in(mx, 0), &dense);
}

static TensorId batch_norm(Mx *mx, int kind) {
    bool gamma = !mx_bool(mx, "fix_gamma", true);
    Norm norm = {.eps = mx_num(mx, "eps", 1e-3),
                 .has_gamma = gamma,
                 .has_beta = true,
                 .gamma = gamma ? mx_value(mx, 1, "gamma") : NULL,
                 .beta = mx_value(mx, 2, "beta"),
                 .mean = mx_value(mx, 3, "moving_mean"),
                 .var = mx_value(mx, 4, "moving_var")};
    (void)kind;
    return net_norm_along(&mx->net, mx_in(mx, 0),
                          (int64_t)mx_num(mx, "axis", 1), &norm);
}

/* ---- functions of elements ---- */

typedef struct Word {
    const char *name;
    Act act;
} Word;

/* What "act_type" says; `words` ends in a NULL name. */
static TensorId act_of(Mx *mx, const char *type, const Word *words) {
    for (; words->name; words++)
        if (!strcmp(words->name, type))
            return net_act(&mx->net, NULL, mx_in(mx, 0), words->act);
    return net_none(&mx->net, "act_type %s is not supported", type);
}

static TensorId activation(Mx *mx, int kind) {
    static const Word words[] = {
        {"relu", {.kind = ACT_RELU}},
        {"sigmoid", {.kind = ACT_SIGMOID}},
        {"tanh", {.kind = ACT_TANH}},
        {"softrelu", {.kind = ACT_SOFTPLUS}},
        {"softsign", {.kind = ACT_SOFTSIGN}},
        {"mish", {.kind = ACT_MISH}},
        {NULL, {0}},
    };
    (void)kind;
    return act_of(mx, mx_str(mx, "act_type", ""), words);
}

static TensorId prelu(Mx *mx) {
    TensorId in = mx_in(mx, 0);
    NodeId node = net_node(&mx->net, OP_ACT, NULL, 1, &in);
    if (node.i == NONE)
        return NO_TENSOR;
    graph_node(mx->net.g, node)->act.kind = ACT_PRELU;
    net_const(&mx->net, node, CONST_SLOPE, mx_value(mx, 1, "gamma"));
    return net_out(&mx->net, node);
}

static TensorId leaky_relu(Mx *mx, int kind) {
    double slope = mx_num(mx, "slope", 0.25);
    const Word words[] = {
        {"leaky", {.kind = ACT_LEAKY, .alpha = slope}},
        {"elu", {.kind = ACT_ELU, .alpha = slope}},
        {"selu",
         {.kind = ACT_SELU,
          .alpha = 1.6732632423543772,
          .hi = 1.0507009873554805}},
        {"gelu", {.kind = ACT_GELU}},
        {NULL, {0}},
    };
    const char *type = mx_str(mx, "act_type", "leaky");
    (void)kind;
    return strcmp(type, "prelu") ? act_of(mx, type, words) : prelu(mx);
}

static TensorId unary(Mx *mx, int act) {
    return net_act(&mx->net, NULL, mx_in(mx, 0), (Act){.kind = (ActKind)act});
}

static TensorId clip(Mx *mx, int kind) {
    Act act = {.kind = ACT_CLIP,
               .lo = mx_num(mx, "a_min", 0),
               .hi = mx_num(mx, "a_max", 0)};
    (void)kind;
    if (act.lo >= 0 && act.lo <= 0 && act.hi >= 6 && act.hi <= 6)
        act = (Act){.kind = ACT_RELU6};
    return net_act(&mx->net, NULL, mx_in(mx, 0), act);
}

enum { TIMES, PLUS, MINUS, FROM, OVER };

static TensorId scalar(Mx *mx, int kind) {
    double s = mx_num(mx, "scalar", 0), a = 1, b = 0;
    switch (kind) {
    case TIMES:
        a = s;
        break;
    case OVER:
        a = 1 / s;
        break;
    case FROM:
        a = -1;
        b = s;
        break;
    default:
        b = kind == PLUS ? s : -s;
    }
    return net_affine(&mx->net, NULL, mx_in(mx, 0), a, b);
}

/* Powers and bounds: an element and a number. */
static TensorId with_number(Mx *mx, int kind) {
    Const number = net_number(&mx->net, mx_num(mx, "scalar", 2));
    return net_elt_const(&mx->net, (EltKind)kind, mx_in(mx, 0), &number, false);
}

static TensorId elements(Mx *mx, int kind) {
    uint32_t n = mx->at->n_in;
    TensorId *in = ARENA_ARRAY(mx->net.arena, TensorId, n);
    for (uint32_t i = 0; i < n; i++)
        in[i] = mx_in(mx, i);
    return net_elt(&mx->net, NULL, (EltKind)kind, n, in);
}

static TensorId copy(Mx *mx, int kind) {
    (void)kind;
    return net_identity(&mx->net, mx_in(mx, 0));
}

/* ---- windows ---- */

static bool pool_convention(Mx *mx, TensorId in, PoolAttr *a) {
    const char *word = mx_str(mx, "pooling_convention", "valid");
    a->ceil = !strcmp(word, "full");
    if (!strcmp(word, "same")) {
        net_same_pool(&mx->net, in, a);
        return true;
    }
    return a->ceil || !strcmp(word, "valid") ||
           net_fail(&mx->net, "pooling_convention %s is not supported", word);
}

static TensorId pooling(Mx *mx, int kind) {
    PoolAttr a = {.stride = {1, 1}};
    const char *type = mx_str(mx, "pool_type", "max");
    TensorId in = mx_in(mx, 0);
    (void)kind;
    a.kind = strcmp(type, "avg") ? POOL_MAX : POOL_AVG;
    a.global = mx_bool(mx, "global_pool", false);
    a.count_pad = mx_bool(mx, "count_include_pad", true);
    if (a.kind == POOL_MAX && strcmp(type, "max"))
        return net_none(&mx->net, "pool_type %s is not supported", type);
    if (in.i == NONE || !right_layout(mx) || !pair(mx, "kernel", a.kernel) ||
        !pair(mx, "stride", a.stride) || !pair(mx, "pad", a.pad))
        return NO_TENSOR;
    memcpy(a.pad_end, a.pad, sizeof a.pad);
    if (a.global)
        a = (PoolAttr){.kind = a.kind, .global = true, .stride = {1, 1}};
    else if (!pool_convention(mx, in, &a))
        return NO_TENSOR;
    return net_pool(&mx->net, in, &a);
}

static TensorId lrn(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    NodeId node = net_node(&mx->net, OP_LRN, NULL, 1, &in);
    (void)kind;
    if (node.i != NONE)
        graph_node(mx->net.g, node)->attr.lrn =
            (LrnAttr){.size = mx_whole(mx, "nsize", 5),
                      .alpha = mx_num(mx, "alpha", 1e-4),
                      .beta = mx_num(mx, "beta", 0.75),
                      .k = mx_num(mx, "knorm", 2)};
    return net_out(&mx->net, node);
}

static TensorId upsampling(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    uint32_t scale = mx_whole(mx, "scale", 1);
    (void)kind;
    if (strcmp(mx_str(mx, "sample_type", "nearest"), "nearest") ||
        mx->at->n_in != 1)
        return net_none(&mx->net, "only the nearest neighbour of one input is "
                                  "supported");
    NodeId node = net_node(&mx->net, OP_UPSAMPLE, NULL, 1, &in);
    if (node.i != NONE)
        for (int i = 0; i < 2; i++)
            graph_node(mx->net.g, node)->attr.up.factor[i] = scale;
    return net_out(&mx->net, node);
}

static TensorId pad(Mx *mx, int kind) {
    int64_t width[8] = {0};
    uint32_t before[2], behind[2];
    int n = mx_tuple(mx, "pad_width", 8, width);
    (void)kind;
    if (strcmp(mx_str(mx, "mode", "constant"), "constant") || n != 8 ||
        width[0] || width[1] || width[2] || width[3])
        return net_none(&mx->net, "only a constant around height and width is "
                                  "supported");
    for (int i = 0; i < 2; i++) {
        if (width[4 + 2 * i] < 0 || width[5 + 2 * i] < 0 ||
            width[4 + 2 * i] > INT32_MAX || width[5 + 2 * i] > INT32_MAX)
            return net_none(&mx->net, "pad_width is out of range");
        before[i] = (uint32_t)width[4 + 2 * i];
        behind[i] = (uint32_t)width[5 + 2 * i];
    }
    return net_pad(&mx->net, mx_in(mx, 0), before, behind,
                   mx_num(mx, "constant_value", 0));
}

/* ---- the table ---- */

static const MxOp ops[] = {
    {"Convolution", convolution, OP_CONV},
    {"Convolution_v1", convolution, OP_CONV},
    {"Deconvolution", convolution, OP_DECONV},
    {"FullyConnected", fully_connected, 0},
    {"BatchNorm", batch_norm, 0},
    {"BatchNorm_v1", batch_norm, 0},
    {"CuDNNBatchNorm", batch_norm, 0},
    {"Activation", activation, 0},
    {"LeakyReLU", leaky_relu, 0},
    {"relu", unary, ACT_RELU},
    {"sigmoid", unary, ACT_SIGMOID},
    {"tanh", unary, ACT_TANH},
    {"exp", unary, ACT_EXP},
    {"log", unary, ACT_LOG},
    {"sqrt", unary, ACT_SQRT},
    {"abs", unary, ACT_ABS},
    {"negative", unary, ACT_NEG},
    {"softsign", unary, ACT_SOFTSIGN},
    {"clip", clip, 0},
    {"_mul_scalar", scalar, TIMES},
    {"_MulScalar", scalar, TIMES},
    {"_plus_scalar", scalar, PLUS},
    {"_PlusScalar", scalar, PLUS},
    {"_minus_scalar", scalar, MINUS},
    {"_MinusScalar", scalar, MINUS},
    {"_rminus_scalar", scalar, FROM},
    {"_div_scalar", scalar, OVER},
    {"_DivScalar", scalar, OVER},
    {"_power_scalar", with_number, ELT_POW},
    {"_PowerScalar", with_number, ELT_POW},
    {"square", with_number, ELT_POW},
    {"_maximum_scalar", with_number, ELT_MAX},
    {"_MaximumScalar", with_number, ELT_MAX},
    {"_minimum_scalar", with_number, ELT_MIN},
    {"_MinimumScalar", with_number, ELT_MIN},
    {"elemwise_add", elements, ELT_ADD},
    {"_Plus", elements, ELT_ADD},
    {"_plus", elements, ELT_ADD},
    {"_add", elements, ELT_ADD},
    {"broadcast_add", elements, ELT_ADD},
    {"broadcast_plus", elements, ELT_ADD},
    {"ElementWiseSum", elements, ELT_ADD},
    {"add_n", elements, ELT_ADD},
    {"elemwise_sub", elements, ELT_SUB},
    {"_Minus", elements, ELT_SUB},
    {"broadcast_sub", elements, ELT_SUB},
    {"broadcast_minus", elements, ELT_SUB},
    {"elemwise_mul", elements, ELT_MUL},
    {"_Mul", elements, ELT_MUL},
    {"_mul", elements, ELT_MUL},
    {"broadcast_mul", elements, ELT_MUL},
    {"elemwise_div", elements, ELT_DIV},
    {"broadcast_div", elements, ELT_DIV},
    {"_maximum", elements, ELT_MAX},
    {"_Maximum", elements, ELT_MAX},
    {"broadcast_maximum", elements, ELT_MAX},
    {"_minimum", elements, ELT_MIN},
    {"broadcast_minimum", elements, ELT_MIN},
    {"Dropout", copy, 0},
    {"identity", copy, 0},
    {"_copy", copy, 0},
    {"BlockGrad", copy, 0},
    {"stop_gradient", copy, 0},
    {"MakeLoss", copy, 0},
    {"Cast", copy, 0},
    {"LinearRegressionOutput", copy, 0},
    {"LogisticRegressionOutput", unary, ACT_SIGMOID},
    {"Pooling", pooling, 0},
    {"Pooling_v1", pooling, 0},
    {"LRN", lrn, 0},
    {"UpSampling", upsampling, 0},
    {"Pad", pad, 0},
    {"pad", pad, 0},
    {"Concat", mx_concat, 0},
    {"concat", mx_concat, 0},
    {"Flatten", mx_flatten, 0},
    {"flatten", mx_flatten, 0},
    {"SoftmaxOutput", mx_softmax_output, 0},
    {"Softmax", mx_softmax_output, 0},
    {"SoftmaxActivation", mx_softmax_output, 0},
    {"softmax", mx_softmax, 0},
    {"Reshape", mx_reshape, 0},
    {"reshape", mx_reshape, 0},
    {"expand_dims", mx_expand_dims, 0},
    {"transpose", mx_transpose, 0},
    {"slice_axis", mx_slice_axis, 0},
    {"SliceChannel", mx_split, 0},
    {"split", mx_split, 0},
    {"mean", mx_reduce, REDUCE_MEAN},
    {"sum", mx_reduce, REDUCE_SUM},
    {"max", mx_reduce, REDUCE_MAX},
    {"min", mx_reduce, REDUCE_MIN},
    {"_sg_onednn_conv", mx_fused, 0},
    {"_sg_mkldnn_conv", mx_fused, 0},
    {"_sg_onednn_fully_connected", mx_fused, 0},
    {"_sg_mkldnn_fully_connected", mx_fused, 0},
    {"_contrib_quantize", mx_quantize, 1},
    {"_contrib_quantize_v2", mx_quantize, 0},
    {"_contrib_dequantize", mx_dequantize, 0},
    {"_contrib_requantize", mx_requantize, 0},
    {"_contrib_quantized_conv", mx_quantized_sums, OP_CONV},
    {"_contrib_quantized_fully_connected", mx_quantized_sums, OP_FC},
    {"_contrib_quantized_elemwise_add", mx_quantized_two, ELT_ADD},
    {"_contrib_quantized_elemwise_mul", mx_quantized_two, ELT_MUL},
    {"_contrib_quantized_batch_norm", mx_quantized_norm, 0},
    {"_contrib_quantized_pooling", mx_quantized_kept, 0},
    {"_contrib_quantized_act", mx_quantized_kept, 1},
    {"_contrib_quantized_flatten", mx_quantized_kept, 2},
    {"_contrib_quantized_reshape", mx_quantized_kept, 3},
    {"_contrib_quantized_transpose", mx_quantized_kept, 4},
    {"_contrib_quantized_concat", mx_quantized_concat, 0},
};

/* _npx_quantized_conv is _contrib_quantized_conv. */
static bool is_alias(const char *name, const char *of) {
    static const char other[] = "_npx_", usual[] = "_contrib_";
    return !strncmp(name, other, sizeof other - 1) &&
           !strncmp(of, usual, sizeof usual - 1) &&
           !strcmp(name + sizeof other - 1, of + sizeof usual - 1);
}

const MxOp *mx_find_op(const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i].name, name) || is_alias(name, ops[i].name))
            return &ops[i];
    return NULL;
}
