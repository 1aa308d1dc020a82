/* mxnet_ops.c - MXNet's operators as nodes, one row an operator.
 *
 * In: a node of the file whose inputs are built. Out: its tensor. Defaults are
 * MXNet's, which differ from others': a normalisation ignores gamma unless told
 * otherwise, and its epsilon is 0.001; averages count the padding; pooling
 * rounds down ("valid") or up ("full").
 */
#include "frontends/mxnet.h"

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

static uint32_t whole(const Mx *mx, const char *key, uint32_t fallback) {
    double value = mx_num(mx, key, fallback);
    if (value >= 0 && value <= INT32_MAX)
        return (uint32_t)value;
    net_fail(&mx->net, "%s is out of range", key);
    return fallback;
}

static bool right_layout(const Mx *mx) {
    const char *layout = mx_str(mx, "layout", "None");
    return !strcmp(layout, "None") || !strcmp(layout, "NCHW") ||
           net_fail(&mx->net, "layout %s is not supported, only NCHW", layout);
}

/* ---- layers with weights ---- */

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
    a.out_c = whole(mx, "num_filter", 0);
    a.groups = whole(mx, "num_group", 1);
    bool bias = !mx_bool(mx, "no_bias", op == OP_DECONV);
    if (!right_layout(mx) || !pair(mx, "kernel", a.kernel) ||
        !pair(mx, "stride", a.stride) || !pair(mx, "dilate", a.dilation) ||
        !pair(mx, "pad", a.pad))
        return NO_TENSOR;
    memcpy(a.pad_end, a.pad, sizeof a.pad);
    if (!enlarge(mx, (OpKind)op, &a))
        return NO_TENSOR;
    return net_conv(&mx->net, (OpKind)op, mx_in(mx, 0), &a,
                    mx_value(mx, 1, "weight"), bias,
                    bias ? mx_value(mx, 2, "bias") : NULL);
}

static TensorId fully_connected(Mx *mx, int kind) {
    (void)kind;
    bool bias = !mx_bool(mx, "no_bias", false);
    TensorId in = mx_in(mx, 0);
    if (in.i != NONE && !mx_bool(mx, "flatten", true) &&
        net_shape(&mx->net, in).rank != 2)
        return net_none(&mx->net, "flatten=False needs an input of two "
                                  "dimensions");
    return net_fc(&mx->net, in, whole(mx, "num_hidden", 0),
                  mx_value(mx, 1, "weight"), bias,
                  bias ? mx_value(mx, 2, "bias") : NULL);
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
    if (whole(mx, "axis", 1) != 1)
        return net_none(&mx->net, "axis must be 1");
    return net_norm(&mx->net, mx_in(mx, 0), &norm);
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
            (LrnAttr){.size = whole(mx, "nsize", 5),
                      .alpha = mx_num(mx, "alpha", 1e-4),
                      .beta = mx_num(mx, "beta", 0.75),
                      .k = mx_num(mx, "knorm", 2)};
    return net_out(&mx->net, node);
}

static TensorId upsampling(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    uint32_t scale = whole(mx, "scale", 1);
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

/* ---- axes and shapes ---- */

static TensorId concat(Mx *mx, int kind) {
    uint32_t n = mx->at->n_in;
    TensorId *in = ARENA_ARRAY(mx->net.arena, TensorId, n);
    (void)kind;
    for (uint32_t i = 0; i < n; i++)
        in[i] = mx_in(mx, i);
    if (!n)
        return net_none(&mx->net, "has no inputs");
    return net_concat(&mx->net, n, in, (int64_t)mx_num(mx, "dim", 1));
}

static TensorId flatten(Mx *mx, int kind) {
    (void)kind;
    return net_flatten(&mx->net, mx_in(mx, 0));
}

/* What a loss computes when no one trains. */
static TensorId softmax_output(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    (void)kind;
    if (mx_bool(mx, "multi_output", false) ||
        !strcmp(mx_str(mx, "mode", "instance"), "channel"))
        return net_softmax(&mx->net, in, 1);
    if (in.i != NONE && net_shape(&mx->net, in).rank > 2 &&
        !mx_bool(mx, "preserve_shape", false)) {
        Net *net = &mx->net;
        Shape shape = net_shape(net, in);
        uint64_t rest = shape_count(&shape) / shape.dim[0];
        in = net_reshape(net, "flatten", in,
                         (Shape){2, {shape.dim[0], (uint32_t)rest}});
    }
    return net_softmax(&mx->net, in, -1);
}

static TensorId softmax(Mx *mx, int kind) {
    (void)kind;
    return net_softmax(&mx->net, mx_in(mx, 0), (int64_t)mx_num(mx, "axis", -1));
}

/* 0 keeps a dimension, -1 takes what is left. */
static TensorId reshape(Mx *mx, int kind) {
    int64_t want[SHAPE_MAX_RANK];
    int n = mx_tuple(mx, "shape", SHAPE_MAX_RANK, want), open = -1;
    TensorId in = mx_in(mx, 0);
    (void)kind;
    if (n <= 0 || in.i == NONE)
        return NO_TENSOR;
    Shape from = net_shape(&mx->net, in), to = {.rank = (uint32_t)n};
    uint64_t known = 1;
    for (int i = 0; i < n; i++) {
        if (want[i] < -1 || want[i] > INT32_MAX || (want[i] < 0 && open >= 0))
            return net_none(&mx->net, "shape %s is not supported",
                            mx_str(mx, "shape", ""));
        if (want[i] < 0)
            open = i;
        to.dim[i] = want[i] > 0   ? (uint32_t)want[i]
                    : want[i] < 0 ? 1
                                  : shape_dim(&from, (uint32_t)i);
        known = shape_count(&to) == UINT64_MAX ? 0 : shape_count(&to);
    }
    to.rank = (uint32_t)n;
    if (open >= 0 && known)
        to.dim[open] = (uint32_t)(shape_count(&from) / known);
    return net_reshape(&mx->net, NULL, in, to);
}

static TensorId transpose(Mx *mx, int kind) {
    int64_t axes[SHAPE_MAX_RANK];
    int n = mx_tuple(mx, "axes", SHAPE_MAX_RANK, axes);
    Shape perm = {0};
    (void)kind;
    for (int i = 0; i < n; i++)
        perm.dim[perm.rank++] = (uint32_t)(axes[i] & INT32_MAX);
    return net_transpose(&mx->net, NULL, mx_in(mx, 0), perm);
}

static TensorId slice_axis(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0);
    uint32_t axis;
    (void)kind;
    if (in.i == NONE ||
        !net_axis(&mx->net, in, (int64_t)mx_num(mx, "axis", 0), &axis))
        return NO_TENSOR;
    double size = net_shape(&mx->net, in).dim[axis];
    double begin = mx_num(mx, "begin", 0), end = mx_num(mx, "end", size);
    begin += begin < 0 ? size : 0;
    end += end < 0 ? size : 0;
    if (!(begin >= 0 && end > begin && end <= size))
        return net_none(&mx->net, "[%g, %g) is outside the axis", begin, end);
    return net_slice(&mx->net, NULL, in, axis, (uint32_t)begin, (uint32_t)end);
}

/* Several outputs, one a slice. */
static TensorId split(Mx *mx, int kind) {
    TensorId in = mx_in(mx, 0), *out;
    uint32_t n = whole(mx, "num_outputs", 1), axis, size;
    MxNode *node = &mx->node[mx->at - mx->node];
    (void)kind;
    if (in.i == NONE ||
        !net_axis(&mx->net, in, (int64_t)mx_num(mx, "axis", 1), &axis))
        return NO_TENSOR;
    size = net_shape(&mx->net, in).dim[axis];
    if (!n || size % n || mx_bool(mx, "squeeze_axis", false))
        return net_none(&mx->net, "cannot split %u into %u", size, n);
    out = ARENA_ARRAY(mx->net.arena, TensorId, n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = net_slice(&mx->net, arena_printf(mx->net.arena, "%u", i), in,
                           axis, i * (size / n), (i + 1) * (size / n));
    node->out = out;
    node->n_out = n;
    return out[0];
}

static TensorId reduce(Mx *mx, int kind) {
    int64_t axes[SHAPE_MAX_RANK];
    int n = mx_tuple(mx, "axis", SHAPE_MAX_RANK, axes);
    TensorId in = mx_in(mx, 0);
    uint32_t bits = 0, axis;
    if (in.i == NONE || n < 0)
        return NO_TENSOR;
    Shape shape = net_shape(&mx->net, in), left = {0};
    for (int i = 0; i < n; i++) {
        if (!net_axis(&mx->net, in, axes[i], &axis))
            return NO_TENSOR;
        bits |= 1u << axis;
    }
    bits = n ? bits : (1u << shape.rank) - 1;
    bool keep = mx_bool(mx, "keepdims", false);
    TensorId out = net_reduce(&mx->net, keep ? NULL : "reduce", in,
                              (ReduceKind)kind, bits);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (!(bits >> i & 1))
            left.dim[left.rank++] = shape.dim[i];
    if (!left.rank)
        left = (Shape){1, {1}};
    return keep ? out : net_reshape(&mx->net, NULL, out, left);
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
    {"Concat", concat, 0},
    {"concat", concat, 0},
    {"Flatten", flatten, 0},
    {"flatten", flatten, 0},
    {"SoftmaxOutput", softmax_output, 0},
    {"Softmax", softmax_output, 0},
    {"SoftmaxActivation", softmax_output, 0},
    {"softmax", softmax, 0},
    {"Reshape", reshape, 0},
    {"reshape", reshape, 0},
    {"transpose", transpose, 0},
    {"slice_axis", slice_axis, 0},
    {"SliceChannel", split, 0},
    {"split", split, 0},
    {"mean", reduce, REDUCE_MEAN},
    {"sum", reduce, REDUCE_SUM},
    {"max", reduce, REDUCE_MAX},
};

const MxOp *mx_find_op(const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    return NULL;
}
