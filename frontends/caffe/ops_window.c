/* ops_window.c - Caffe layers that slide a window: convolutions, pooling,
 * LRN; and the inner product, a window as large as its input. */
#include "frontends/caffe/caffe.h"

/* ---- convolutions ---- */

static bool conv_attributes(Caffe *c, CaffeLayer *layer,
                            const ProtoMessage *param, ConvAttr *conv) {
    bool ok = proto_u32(c->diag, param, "num_output", &conv->out_c);
    if (!ok)
        return caffe_error(c, layer, "has no num_output");
    proto_u32(c->diag, param, "group", &conv->groups);
    if (!caffe_pair(c, layer, param, "kernel_size", "kernel_h", "kernel_w",
                    conv->kernel) ||
        !caffe_pair(c, layer, param, "stride", "stride_h", "stride_w",
                    conv->stride) ||
        !caffe_pair(c, layer, param, "dilation", "dilation_h", "dilation_w",
                    conv->dilation) ||
        !caffe_pair(c, layer, param, "pad", "pad_h", "pad_w", conv->pad))
        return false;
    if (!conv->kernel[0] || !conv->kernel[1])
        return caffe_error(c, layer, "has no kernel_size");
    for (int i = 0; i < 2; i++)
        conv->pad_end[i] = conv->pad[i];
    return true;
}

static bool build_conv(Caffe *c, CaffeLayer *layer, OpKind op, bool depthwise) {
    const ProtoMessage *param = caffe_param(c, layer, "convolution_param");
    const Shape *in = caffe_in_shape(c, layer, 0);
    uint32_t axis = 1;
    bool bias = true;
    if (!caffe_axis(c, layer, param, "axis", in->rank, &axis))
        return false;
    if (axis != 1)
        return caffe_error(c, layer, "only axis 1 can hold its channels");
    proto_bool(c->diag, param, "bias_term", &bias);
    NodeId node = caffe_node(c, layer, op);
    ConvAttr conv = graph_node(c->graph, node)->attr.conv;
    if (!conv_attributes(c, layer, param, &conv))
        return false;
    if (depthwise)
        conv.groups = in->dim[1];
    graph_node(c->graph, node)->attr.conv = conv;
    graph_node(c->graph, node)->no_bias = !bias;
    return caffe_finish(c, layer, node, 0) &&
           caffe_use_blob(c, layer, node, CONST_WEIGHT, 0) &&
           (!bias || caffe_use_blob(c, layer, node, CONST_BIAS, 1));
}

bool caffe_conv(Caffe *c, CaffeLayer *layer) {
    return build_conv(c, layer, OP_CONV, false);
}

bool caffe_depthwise(Caffe *c, CaffeLayer *layer) {
    return build_conv(c, layer, OP_CONV, true);
}

bool caffe_deconv(Caffe *c, CaffeLayer *layer) {
    return build_conv(c, layer, OP_DECONV, false);
}

bool caffe_inner_product(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "inner_product_param");
    uint32_t axis = 1, out = 0;
    bool bias = true, transpose = false;
    if (!proto_u32(c->diag, param, "num_output", &out))
        return caffe_error(c, layer, "has no num_output");
    if (!caffe_axis(c, layer, param, "axis", caffe_in_shape(c, layer, 0)->rank,
                    &axis))
        return false;
    proto_bool(c->diag, param, "bias_term", &bias);
    proto_bool(c->diag, param, "transpose", &transpose);
    if (axis != 1)
        return caffe_error(c, layer, "only axis 1 is supported, not %u", axis);
    if (transpose)
        return caffe_error(c, layer, "transposed weights are not supported");
    NodeId node = caffe_node(c, layer, OP_FC);
    graph_node(c->graph, node)->attr.fc.out = out;
    graph_node(c->graph, node)->no_bias = !bias;
    return caffe_finish(c, layer, node, 0) &&
           caffe_use_blob(c, layer, node, CONST_WEIGHT, 0) &&
           (!bias || caffe_use_blob(c, layer, node, CONST_BIAS, 1));
}

/* ---- pooling ---- */

/* Sizes round up, unless a dialect's field says otherwise. */
static bool rounds_up(Caffe *c, const ProtoMessage *param) {
    static const char *const modes[] = {"CEIL", "FLOOR", NULL};
    bool ceil = true;
    uint32_t mode = 0;
    proto_bool(c->diag, param, "ceil_mode", &ceil);
    proto_enum(c->diag, param, "round_mode", modes, &mode);
    return ceil && mode == 0;
}

/* Without padding Caffe keeps a last window even where it starts behind the
 * input; it holds nothing, so here there is none. */
static void warn_of_empty(Caffe *c, const CaffeLayer *layer,
                          const PoolAttr *pool) {
    const Shape *in = caffe_in_shape(c, layer, 0);
    bool padded = pool->pad[0] || pool->pad[1];
    for (uint32_t i = 0; !padded && pool->ceil && i < 2; i++) {
        uint32_t size = shape_dim(in, 2 + i), stride = pool->stride[i];
        uint32_t windows = pool_out_size(pool, i, size);
        uint64_t next = (uint64_t)windows * stride;
        if (next >= size && next - stride + pool->kernel[i] < size)
            diag_warning(c->diag, layer->loc,
                         "layer \"%s\": %s %u would be of a window outside "
                         "the input, as Caffe counts; there is none",
                         layer->name, i ? "column" : "row", windows + 1);
    }
}

bool caffe_pooling(Caffe *c, CaffeLayer *layer) {
    static const char *const kinds[] = {"MAX", "AVE", "STOCHASTIC", NULL};
    const ProtoMessage *param = caffe_param(c, layer, "pooling_param");
    uint32_t kind = 0;
    PoolAttr pool = {.stride = {1, 1}};
    proto_enum(c->diag, param, "pool", kinds, &kind);
    if (kind == 2)
        return caffe_error(c, layer, "stochastic pooling is not supported");
    proto_bool(c->diag, param, "global_pooling", &pool.global);
    if (!caffe_pair(c, layer, param, "kernel_size", "kernel_h", "kernel_w",
                    pool.kernel) ||
        !caffe_pair(c, layer, param, "stride", "stride_h", "stride_w",
                    pool.stride) ||
        !caffe_pair(c, layer, param, "pad", "pad_h", "pad_w", pool.pad))
        return false;
    pool.kind = kind == 0 ? POOL_MAX : POOL_AVG;
    pool.ceil = rounds_up(c, param);
    pool.count_pad = kind == 1;
    if (!pool.global && (!pool.kernel[0] || !pool.kernel[1]))
        return caffe_error(c, layer, "has no kernel_size");
    const Shape *in = caffe_in_shape(c, layer, 0);
    for (uint32_t i = 0; i < 2; i++) {
        if (pool.global) {
            pool.kernel[i] = shape_dim(in, 2 + i);
            pool.stride[i] = 1;
            pool.pad[i] = 0;
        }
        pool.pad_end[i] = pool.pad[i];
    }
    NodeId node = caffe_node(c, layer, OP_POOL);
    graph_node(c->graph, node)->attr.pool = pool;
    if (!caffe_finish(c, layer, node, 0))
        return false;
    warn_of_empty(c, layer, &pool);
    return true;
}

bool caffe_lrn(Caffe *c, CaffeLayer *layer) {
    static const char *const regions[] = {"ACROSS_CHANNELS", "WITHIN_CHANNEL",
                                          NULL};
    const ProtoMessage *param = caffe_param(c, layer, "lrn_param");
    LrnAttr lrn = {.size = 5, .alpha = 1, .beta = 0.75, .k = 1};
    uint32_t region = 0;
    proto_u32(c->diag, param, "local_size", &lrn.size);
    proto_f64(c->diag, param, "alpha", &lrn.alpha);
    proto_f64(c->diag, param, "beta", &lrn.beta);
    proto_f64(c->diag, param, "k", &lrn.k);
    proto_enum(c->diag, param, "norm_region", regions, &region);
    lrn.within_channel = region == 1;
    if (lrn.within_channel)
        lrn.k = 1; /* Caffe reads k across channels only */
    else if (lrn.size % 2 == 0)
        return caffe_error(c, layer, "local_size %u is not odd", lrn.size);
    NodeId node = caffe_node(c, layer, OP_LRN);
    graph_node(c->graph, node)->attr.lrn = lrn;
    return caffe_finish(c, layer, node, 0);
}
