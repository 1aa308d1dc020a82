/* ops.c - TFLite's operators as nodes, one row an operator.
 *
 * In: an operator whose inputs are built, and its table of options, the numbers
 * of whose fields stand where they are read. Out: its tensor. Kernels are out x
 * height x width x in; of depthwise convolutions 1 x height x width x out.
 */
#include "frontends/tflite/tflite.h"

static bool is_valid(Tfl *t) {
    return flat_u8(&t->flat, t->options, 0, 0) == 1;
}

/* ---- windows ---- */

/* The kernel's constant, of rank 4, without its scales. */
static bool kernel(Tfl *t, Const *w) {
    if (!tfl_codes(t, 1, w))
        return false;
    return w->shape.rank == 4 || net_fail(&t->net, "its kernel has shape %s",
                                          shape_text(t->net.arena, &w->shape));
}

/* With axes in another order, and its scales by output channel. */
static Const turn_kernel(Tfl *t, const Const *w, const uint32_t *perm,
                         uint32_t axis) {
    Const turned = net_permute(&t->net, w, w->shape, perm);
    tfl_put_scales(t, tfl_tensor(t, 1), axis, &turned);
    return turned;
}

typedef struct Bias {
    bool given;
    Const value;
} Bias;

static bool take_bias(Tfl *t, uint32_t i, Bias *bias) {
    bias->given = tfl_tensor(t, i) != NULL;
    if (!bias->given)
        return true;
    if (!tfl_codes(t, i, &bias->value))
        return false;
    tfl_put_scales(t, tfl_tensor(t, i), 0, &bias->value);
    return true;
}

static void strides(Tfl *t, ConvAttr *a, uint32_t dilation_field) {
    for (uint32_t i = 0; i < 2; i++) {
        a->stride[i] = (uint32_t)tfl_option(t, 2 - i, 1);
        a->dilation[i] =
            dilation_field ? (uint32_t)tfl_option(t, dilation_field + 1 - i, 1)
                           : 1;
    }
}

static TensorId conv(Tfl *t, int depthwise) {
    TensorId in = tfl_in(t, 0);
    Const w;
    Bias bias;
    if (in.i == NONE || !kernel(t, &w) || !take_bias(t, 2, &bias))
        return NO_TENSOR;
    Shape in_shape = net_shape(&t->net, in);
    uint32_t in_c = shape_dim(&in_shape, 3), out_c = w.shape.dim[0];
    uint32_t k_in = w.shape.dim[3];
    const uint32_t *perm = depthwise ? (const uint32_t[]){3, 0, 1, 2}
                                     : (const uint32_t[]){0, 3, 1, 2};
    if (!k_in || (!depthwise && in_c % k_in))
        return net_none(&t->net, "kernel of %s does not fit %u channels",
                        shape_text(t->net.arena, &w.shape), in_c);
    ConvAttr a = {.out_c = depthwise ? k_in : out_c,
                  .groups = depthwise ? in_c : in_c / k_in,
                  .kernel = {w.shape.dim[1], w.shape.dim[2]}};
    strides(t, &a, depthwise ? 5 : 4);
    if (!is_valid(t))
        net_same_conv(&t->net, in, &a);
    Const turned = turn_kernel(t, &w, perm, 0);
    TensorId out = net_conv(&t->net, OP_CONV, in, &a, &turned, bias.given,
                            bias.given ? &bias.value : NULL);
    return tfl_fused(t, depthwise ? 4 : 3, out);
}

/* The shape that input 0 says; where it is computed, that of the output. */
static bool asked_size(Tfl *t, int64_t size[4]) {
    int32_t id = flat_at_i32(&t->flat, t->out, 0);
    const Shape *out = &t->tensor[id].shape;
    if (tfl_tensor(t, 0) && tfl_known(tfl_tensor(t, 0)))
        return tfl_ints(t, 0, 4, size) == 4;
    for (uint32_t i = 0; i < 4; i++)
        size[i] = shape_dim(out, i);
    return (out->rank == 4 && out->dim[1] && out->dim[2]) ||
           net_fail(&t->net, "the shape of its output is not known");
}

/* Inputs: output's shape, kernel, image, perhaps a bias. */
static TensorId transpose_conv(Tfl *t, int kind) {
    int64_t size[4];
    TensorId in = tfl_in(t, 2);
    Const w;
    Bias bias;
    (void)kind;
    if (in.i == NONE || !kernel(t, &w) || !take_bias(t, 3, &bias) ||
        !asked_size(t, size))
        return NO_TENSOR;
    ConvAttr a = {.out_c = w.shape.dim[0],
                  .groups = 1,
                  .kernel = {w.shape.dim[1], w.shape.dim[2]}};
    strides(t, &a, 0);
    for (uint32_t i = 0; i < 2 && !is_valid(t); i++)
        same_padding((uint32_t)(size[1 + i] & INT32_MAX), a.kernel[i],
                     a.stride[i], 1, &a.pad[i], &a.pad_end[i]);
    Const turned = turn_kernel(t, &w, (uint32_t[]){3, 0, 1, 2}, 1);
    TensorId out = net_conv(&t->net, OP_DECONV, in, &a, &turned, bias.given,
                            bias.given ? &bias.value : NULL);
    return tfl_fused(t, 3, out);
}

static PoolAttr window_of(Tfl *t, TensorId in, PoolKind kind) {
    PoolAttr a = {.kind = kind};
    for (uint32_t i = 0; i < 2; i++) {
        a.stride[i] = (uint32_t)tfl_option(t, 2 - i, 1);
        a.kernel[i] = (uint32_t)tfl_option(t, 4 - i, 1);
    }
    if (!is_valid(t))
        net_same_pool(&t->net, in, &a);
    return a;
}

static TensorId pool(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0);
    PoolAttr a = window_of(t, in, (PoolKind)kind);
    return tfl_fused(t, 5, net_pool(&t->net, in, &a));
}

/* The root of the mean of squares. */
static TensorId l2_pool(Tfl *t, int kind) {
    const Const two = net_number(&t->net, 2);
    TensorId in = tfl_in(t, 0);
    PoolAttr a = window_of(t, in, POOL_AVG);
    (void)kind;
    in = net_elt_const(&t->net, ELT_POW, in, &two, false);
    return tfl_fused(t, 5,
                     net_act(&t->net, NULL, net_pool(&t->net, in, &a),
                             (Act){.kind = ACT_SQRT}));
}

static TensorId fully_connected(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0);
    Const w;
    Bias bias;
    (void)kind;
    if (in.i == NONE || !tfl_codes(t, 1, &w) || w.shape.rank != 2 ||
        !take_bias(t, 2, &bias))
        return NO_TENSOR;
    tfl_put_scales(t, tfl_tensor(t, 1), 0, &w);
    Shape shape = net_shape(&t->net, in);
    if (shape.rank != 2 && w.shape.dim[1]) {
        uint64_t rows = shape_count(&shape) / w.shape.dim[1];
        in = net_reshape(&t->net, "flatten", in,
                         (Shape){2, {(uint32_t)rows, w.shape.dim[1]}});
    }
    return tfl_fused(t, 0,
                     net_fc(&t->net, in, w.shape.dim[0], &w, bias.given,
                            bias.given ? &bias.value : NULL));
}

/* ---- functions of elements ---- */

static bool is_constant(Tfl *t, uint32_t i) {
    const TflTensor *tensor = tfl_tensor(t, i);
    return tensor && tfl_known(tensor) && tensor->made.i == NONE;
}

static TensorId elements(Tfl *t, int kind) {
    TensorId out;
    if ((is_constant(t, 0) || is_constant(t, 1)) && !tfl_is_quantised(t)) {
        bool first = is_constant(t, 0);
        const Const *value = tfl_const(t, first ? 0 : 1);
        if (!value)
            return NO_TENSOR;
        out = net_elt_const(&t->net, (EltKind)kind, tfl_in(t, first ? 1 : 0),
                            value, first);
    } else {
        TensorId in[2] = {tfl_in(t, 0), tfl_in(t, 1)};
        out = net_elt(&t->net, NULL, (EltKind)kind, 2, in);
    }
    bool has_option = kind == ELT_ADD || kind == ELT_SUB || kind == ELT_MUL ||
                      kind == ELT_DIV;
    return has_option ? tfl_fused(t, 0, out) : out;
}

static TensorId unary(Tfl *t, int act) {
    return net_act(&t->net, NULL, tfl_in(t, 0), (Act){.kind = (ActKind)act});
}

static TensorId add_n(Tfl *t, int kind) {
    TensorId *in = ARENA_ARRAY(t->net.arena, TensorId, t->in.n);
    for (uint32_t i = 0; i < t->in.n; i++)
        in[i] = tfl_in(t, i);
    return t->in.n == 1 ? net_identity(&t->net, in[0])
                        : net_elt(&t->net, NULL, (EltKind)kind, t->in.n, in);
}

static TensorId leaky(Tfl *t, int kind) {
    Act act = {.kind = (ActKind)kind,
               .alpha = (double)flat_f32(&t->flat, t->options, 0, 0)};
    if (kind == ACT_ELU)
        act.alpha = 1;
    return net_act(&t->net, NULL, tfl_in(t, 0), act);
}

static TensorId clip(Tfl *t, int lo) {
    return net_act(&t->net, NULL, tfl_in(t, 0),
                   (Act){.kind = ACT_CLIP, .lo = lo, .hi = 1});
}

static TensorId gelu(Tfl *t, int kind) {
    bool near = flat_u8(&t->flat, t->options, 0, 0) != 0;
    (void)kind;
    return net_act(&t->net, NULL, tfl_in(t, 0),
                   (Act){.kind = near ? ACT_GELU_TANH : ACT_GELU});
}

/* x^-1/2, x^2. */
static TensorId power(Tfl *t, int tenths) {
    Const exponent = net_number(&t->net, tenths / 10.0);
    if (!tfl_is_quantised(t))
        return net_elt_const(&t->net, ELT_POW, tfl_in(t, 0), &exponent, false);
    TensorId both[] = {tfl_in(t, 0),
                       net_constant(&t->net, "constant", &exponent)};
    return net_elt(&t->net, NULL, ELT_POW, 2, both);
}

static TensorId squared_difference(Tfl *t, int kind) {
    Const two = net_number(&t->net, 2);
    TensorId in[2] = {tfl_in(t, 0), tfl_in(t, 1)};
    (void)kind;
    return net_elt_const(&t->net, ELT_POW,
                         net_elt(&t->net, "difference", ELT_SUB, 2, in), &two,
                         false);
}

static TensorId prelu(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0);
    const Const *slope = tfl_const(t, 1);
    NodeId node = net_node(&t->net, OP_ACT, NULL, 1, &in);
    (void)kind;
    if (node.i == NONE)
        return NO_TENSOR;
    graph_node(t->net.g, node)->act.kind = ACT_PRELU;
    net_const(&t->net, node, CONST_SLOPE, slope);
    return net_out(&t->net, node);
}

static TensorId identity(Tfl *t, int kind) {
    (void)kind;
    return net_identity(&t->net, tfl_in(t, 0));
}

static TensorId softmax(Tfl *t, int kind) {
    double beta = (double)flat_f32(&t->flat, t->options, 0, 1);
    TensorId in = tfl_in(t, 0);
    (void)kind;
    if (beta < 1 || beta > 1)
        in = net_affine(&t->net, "beta", in, beta, 0);
    return net_softmax(&t->net, in, -1);
}

static TensorId lrn(Tfl *t, int kind) {
    TensorId in = tfl_in(t, 0);
    NodeId node = net_node(&t->net, OP_LRN, NULL, 1, &in);
    (void)kind;
    if (node.i == NONE)
        return NO_TENSOR;
    uint32_t size = 2 * (uint32_t)tfl_option(t, 0, 0) + 1;
    graph_node(t->net.g, node)->attr.lrn =
        (LrnAttr){.size = size,
                  .k = (double)flat_f32(&t->flat, t->options, 1, 0),
                  .alpha = (double)flat_f32(&t->flat, t->options, 2, 0) * size,
                  .beta = (double)flat_f32(&t->flat, t->options, 3, 0)};
    return net_out(&t->net, node);
}

/* ---- the table ---- */

static const TflOp ops[] = {
    {0, "ADD", elements, ELT_ADD},
    {1, "AVERAGE_POOL_2D", pool, POOL_AVG},
    {2, "CONCATENATION", tfl_concat, 0},
    {3, "CONV_2D", conv, 0},
    {4, "DEPTHWISE_CONV_2D", conv, 1},
    {5, "DEPTH_TO_SPACE", tfl_blocks, 0},
    {6, "DEQUANTIZE", identity, 0},
    {7, "EMBEDDING_LOOKUP", tfl_lookup, 0},
    {8, "FLOOR", unary, ACT_FLOOR},
    {9, "FULLY_CONNECTED", fully_connected, 0},
    {11, "L2_NORMALIZATION", tfl_l2_norm, 0},
    {12, "L2_POOL_2D", l2_pool, 0},
    {13, "LOCAL_RESPONSE_NORMALIZATION", lrn, 0},
    {14, "LOGISTIC", unary, ACT_SIGMOID},
    {17, "MAX_POOL_2D", pool, POOL_MAX},
    {18, "MUL", elements, ELT_MUL},
    {19, "RELU", unary, ACT_RELU},
    {20, "RELU_N1_TO_1", clip, -1},
    {21, "RELU6", unary, ACT_RELU6},
    {22, "RESHAPE", tfl_reshape, 0},
    {23, "RESIZE_BILINEAR", tfl_resize, 1},
    {25, "SOFTMAX", softmax, 0},
    {26, "SPACE_TO_DEPTH", tfl_blocks, 1},
    {27, "SVDF", tfl_svdf, 0},
    {28, "TANH", unary, ACT_TANH},
    {34, "PAD", tfl_pad, 0},
    {36, "GATHER", tfl_take, 0},
    {37, "BATCH_TO_SPACE_ND", tfl_batches, 0},
    {38, "SPACE_TO_BATCH_ND", tfl_batches, 1},
    {39, "TRANSPOSE", tfl_transpose, 0},
    {40, "MEAN", tfl_reduce, REDUCE_MEAN},
    {41, "SUB", elements, ELT_SUB},
    {42, "DIV", elements, ELT_DIV},
    {43, "SQUEEZE", tfl_reshape, 0},
    {44, "UNIDIRECTIONAL_SEQUENCE_LSTM", tfl_lstm, 0},
    {45, "STRIDED_SLICE", tfl_strided_slice, 0},
    {47, "EXP", unary, ACT_EXP},
    {48, "TOPK_V2", tfl_top_k, 0},
    {49, "SPLIT", tfl_split, 0},
    {50, "LOG_SOFTMAX", tfl_log_softmax, 0},
    {53, "CAST", tfl_cast, 0},
    {54, "PRELU", prelu, 0},
    {55, "MAXIMUM", elements, ELT_MAX},
    {56, "ARG_MAX", tfl_arg, REDUCE_ARGMAX},
    {57, "MINIMUM", elements, ELT_MIN},
    {58, "LESS", tfl_compare, ELT_LESS},
    {59, "NEG", unary, ACT_NEG},
    {60, "PADV2", tfl_pad, 1},
    {61, "GREATER", tfl_compare, ELT_GREATER},
    {62, "GREATER_EQUAL", tfl_compare, ELT_GREATER_EQUAL},
    {63, "LESS_EQUAL", tfl_compare, ELT_LESS_EQUAL},
    {64, "SELECT", tfl_select, 0},
    {65, "SLICE", tfl_slice, 0},
    {66, "SIN", unary, ACT_SIN},
    {67, "TRANSPOSE_CONV", transpose_conv, 0},
    {69, "TILE", tfl_tile, 0},
    {70, "EXPAND_DIMS", tfl_reshape, 0},
    {71, "EQUAL", tfl_compare, ELT_EQUAL},
    {72, "NOT_EQUAL", tfl_unequal, ELT_EQUAL},
    {73, "LOG", unary, ACT_LOG},
    {74, "SUM", tfl_reduce, REDUCE_SUM},
    {75, "SQRT", unary, ACT_SQRT},
    {76, "RSQRT", power, -5},
    {77, "SHAPE", tfl_shape_of, 0},
    {78, "POW", elements, ELT_POW},
    {79, "ARG_MIN", tfl_arg, REDUCE_ARGMIN},
    {81, "REDUCE_PROD", tfl_reduce, REDUCE_PROD},
    {82, "REDUCE_MAX", tfl_reduce, REDUCE_MAX},
    {83, "PACK", tfl_pack, 0},
    {84, "LOGICAL_OR", tfl_compare, ELT_OR},
    {85, "ONE_HOT", tfl_one_hot, 0},
    {86, "LOGICAL_AND", tfl_compare, ELT_AND},
    {87, "LOGICAL_NOT", unary, ACT_NOT},
    {88, "UNPACK", tfl_unpack, 0},
    {89, "REDUCE_MIN", tfl_reduce, REDUCE_MIN},
    {90, "FLOOR_DIV", tfl_floor_div, ELT_DIV},
    {91, "REDUCE_ANY", tfl_reduce, REDUCE_MAX},
    {92, "SQUARE", power, 20},
    {93, "ZEROS_LIKE", tfl_zeros, 0},
    {94, "FILL", tfl_fill, 0},
    {95, "FLOOR_MOD", tfl_compare, ELT_MOD},
    {96, "RANGE", tfl_range, 0},
    {97, "RESIZE_NEAREST_NEIGHBOR", tfl_resize, 0},
    {98, "LEAKY_RELU", leaky, ACT_LEAKY},
    {99, "SQUARED_DIFFERENCE", squared_difference, 0},
    {100, "MIRROR_PAD", tfl_mirror_pad, 0},
    {101, "ABS", unary, ACT_ABS},
    {102, "SPLIT_V", tfl_split_v, 0},
    {104, "CEIL", unary, ACT_CEIL},
    {105, "REVERSE_V2", tfl_reverse, 0},
    {106, "ADD_N", add_n, ELT_ADD},
    {107, "GATHER_ND", tfl_gather_nd, 0},
    {108, "COS", unary, ACT_COS},
    {110, "RANK", tfl_rank_of, 0},
    {111, "ELU", leaky, ACT_ELU},
    {114, "QUANTIZE", identity, 0},
    {116, "ROUND", unary, ACT_ROUND},
    {117, "HARD_SWISH", unary, ACT_HARD_SWISH},
    {122, "SCATTER_ND", tfl_scatter_nd, 0},
    {123, "SELECT_V2", tfl_select, 0},
    {124, "DENSIFY", tfl_densify, 0},
    {126, "BATCH_MATMUL", tfl_batch_matmul, 0},
    {128, "CUMSUM", tfl_cumulate, 0},
    {130, "BROADCAST_TO", tfl_broadcast, 0},
    {150, "GELU", gelu, 0},
    {152, "RELU_0_TO_1", clip, 0},
    {158, "SIGN", unary, ACT_SIGN},
};

const TflOp *tfl_find_op(uint32_t code) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i].code == code)
            return &ops[i];
    return NULL;
}
