/* ops.c - Keras' layers as nodes, one row a class.
 *
 * In: a layer's config and the tensors that it reads. Out: its tensor. Kernels
 * are height x width x in x out, of transposed ones height x width x out x in.
 * Most layers can have an activation of their own, which is a node behind.
 */
#include "frontends/keras/keras.h"

#include <string.h>

/* ---- config ---- */

static const cJSON *get(const Keras *k, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(k->config, key);
}

static uint32_t whole(const cJSON *item, uint32_t fallback) {
    double value = cJSON_IsNumber(item) ? item->valuedouble : fallback;
    return value >= 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

/* 3, or [3, 2]. */
static void pair(const Keras *k, const char *key, uint32_t out[2]) {
    const cJSON *item = get(k, key);
    for (int i = 0; i < 2; i++) {
        if (cJSON_IsArray(item))
            out[i] = whole(cJSON_GetArrayItem(item, i), out[i]);
        else
            out[i] = whole(item, out[i]);
    }
}

static bool is_same(const Keras *k) {
    return !strcmp(json_str(k->config, "padding", "valid"), "same");
}

/* ---- weights ---- */

/* A kernel of four axes, in another order; NULL where there is none. */
static const Const *kernel(Keras *k, const char *name, const uint32_t *perm) {
    const Const *w = keras_variable(k, name);
    if (!w || w->shape.rank != 4)
        return w;
    Const *turned = ARENA_NEW(k->net.arena, Const);
    *turned = net_permute(&k->net, w, w->shape, perm);
    return turned;
}

/* ---- activations ---- */

static TensorId activation(Keras *k, int kind) {
    (void)kind;
    return keras_activate(k, NULL, k->in[0]);
}

/* max_value, negative_slope, threshold */
static TensorId relu(Keras *k, int kind) {
    double most = json_num(k->config, "max_value", -1);
    double slope = json_num(k->config, "negative_slope", 0);
    Act act = {.kind = ACT_RELU};
    (void)kind;
    if (json_num(k->config, "threshold", 0) > 0)
        return net_none(&k->net, "a threshold is not supported");
    if (slope > 0)
        act = (Act){.kind = ACT_LEAKY, .alpha = slope};
    if (most >= 0 && slope > 0)
        return net_none(&k->net, "max_value with a slope is not supported");
    if (most >= 6 && most <= 6)
        act = (Act){.kind = ACT_RELU6};
    else if (most >= 0)
        act = (Act){.kind = ACT_CLIP, .lo = 0, .hi = most};
    return net_act(&k->net, NULL, k->in[0], act);
}

/* The slope is called alpha, in version 3 negative_slope. */
static TensorId leaky(Keras *k, int kind) {
    double fallback = kind == ACT_ELU ? 1 : 0.3;
    double alpha = json_num(k->config, "negative_slope",
                            json_num(k->config, "alpha", fallback));
    return net_act(&k->net, NULL, k->in[0],
                   (Act){.kind = (ActKind)kind, .alpha = alpha});
}

/* A slope by channel: those of height and width must be shared. */
static TensorId prelu(Keras *k, int kind) {
    const Const *alpha = keras_variable(k, "alpha");
    NodeId id = net_node(&k->net, OP_ACT, NULL, 1, k->in);
    (void)kind;
    graph_node(k->net.g, id)->act.kind = ACT_PRELU;
    net_const(&k->net, id, CONST_SLOPE, alpha);
    return net_out(&k->net, id);
}

static TensorId softmax(Keras *k, int kind) {
    const cJSON *axis = get(k, "axis");
    (void)kind;
    return net_softmax(&k->net, k->in[0],
                       cJSON_IsNumber(axis) ? axis->valueint : -1);
}

/* ---- layers with weights ---- */

static uint32_t channels(const Keras *k) {
    return shape_dim(&graph_tensor(k->net.g, k->in[0])->shape, 1);
}

static ConvAttr window(const Keras *k, OpKind op) {
    ConvAttr a = {.groups = whole(get(k, "groups"), 1),
                  .kernel = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
    pair(k, "kernel_size", a.kernel);
    pair(k, "strides", a.stride);
    pair(k, "dilation_rate", a.dilation);
    a.out_c = whole(get(k, "filters"), 0);
    if (is_same(k) && op == OP_CONV)
        net_same_conv(&k->net, k->in[0], &a);
    return a;
}

static TensorId conv(Keras *k, int depthwise) {
    ConvAttr a = window(k, OP_CONV);
    bool bias = keras_flag(k->config, "use_bias", true);
    const Const *w;
    if (depthwise) {
        a.groups = channels(k);
        a.out_c = a.groups * whole(get(k, "depth_multiplier"), 1);
        w = kernel(k, "depthwise_kernel", (uint32_t[]){2, 3, 0, 1});
    } else {
        w = kernel(k, "kernel", (uint32_t[]){3, 2, 0, 1});
    }
    TensorId out = net_conv(&k->net, OP_CONV, k->in[0], &a, w, bias,
                            bias ? keras_variable(k, "bias") : NULL);
    return keras_activate(k, "activation", out);
}

static TensorId separable(Keras *k, int kind) {
    ConvAttr a = window(k, OP_CONV), point = {.groups = 1,
                                              .kernel = {1, 1},
                                              .stride = {1, 1},
                                              .dilation = {1, 1}};
    bool bias = keras_flag(k->config, "use_bias", true);
    (void)kind;
    point.out_c = a.out_c;
    a.groups = channels(k);
    a.out_c = a.groups * whole(get(k, "depth_multiplier"), 1);
    const Const *w = kernel(k, "depthwise_kernel", (uint32_t[]){2, 3, 0, 1});
    k->net.layer = arena_printf(k->net.arena, "%s/depthwise", k->name);
    TensorId out = net_conv(&k->net, OP_CONV, k->in[0], &a, w, false, NULL);
    k->net.layer = k->name;
    w = kernel(k, "pointwise_kernel", (uint32_t[]){3, 2, 0, 1});
    out = net_conv(&k->net, OP_CONV, out, &point, w, bias,
                   bias ? keras_variable(k, "bias") : NULL);
    return keras_activate(k, "activation", out);
}

/* "same": stride times as large; "valid": every window whole. */
static TensorId transposed(Keras *k, int kind) {
    ConvAttr a = window(k, OP_DECONV);
    bool bias = keras_flag(k->config, "use_bias", true);
    const Shape *in = &graph_tensor(k->net.g, k->in[0])->shape;
    (void)kind;
    for (uint32_t i = 0; i < 2; i++) {
        if (a.kernel[i] < a.stride[i])
            return net_none(&k->net, "a stride above the kernel is not "
                                     "supported");
        if (is_same(k))
            same_padding(shape_dim(in, 2 + i) * a.stride[i], a.kernel[i],
                         a.stride[i], 1, &a.pad[i], &a.pad_end[i]);
    }
    const cJSON *more = get(k, "output_padding");
    if (more && !cJSON_IsNull(more))
        return net_none(&k->net, "output_padding is not supported");
    const Const *w = kernel(k, "kernel", (uint32_t[]){3, 2, 0, 1});
    TensorId out = net_conv(&k->net, OP_DECONV, k->in[0], &a, w, bias,
                            bias ? keras_variable(k, "bias") : NULL);
    return keras_activate(k, "activation", out);
}

static TensorId inner_product(Keras *k, int kind) {
    bool bias = keras_flag(k->config, "use_bias", true);
    const Const *w = keras_variable(k, "kernel");
    Const turned;
    (void)kind;
    if (w && w->shape.rank == 2) {
        turned = net_permute(&k->net, w, w->shape, (uint32_t[]){1, 0});
        w = &turned;
    }
    Dense dense = {.out = whole(get(k, "units"), 0),
                   .weight = w,
                   .has_bias = bias,
                   .bias = bias ? keras_variable(k, "bias") : NULL};
    TensorId out = net_dense(&k->net, k->in[0], &dense);
    return keras_activate(k, "activation", out);
}

static TensorId batch_norm(Keras *k, int kind) {
    Norm norm = {.eps = json_num(k->config, "epsilon", 1e-3),
                 .has_gamma = keras_flag(k->config, "scale", true),
                 .has_beta = keras_flag(k->config, "center", true)};
    const cJSON *axis = get(k, "axis");
    (void)kind;
    if (cJSON_IsArray(axis))
        axis = axis->child;
    norm.gamma = norm.has_gamma ? keras_variable(k, "gamma") : NULL;
    norm.beta = norm.has_beta ? keras_variable(k, "beta") : NULL;
    norm.mean = keras_variable(k, "moving_mean");
    norm.var = keras_variable(k, "moving_variance");
    return net_norm_along(&k->net, k->in[0],
                          cJSON_IsNumber(axis) ? axis->valueint : -1, &norm);
}

/* ---- windows ---- */

static TensorId pool(Keras *k, int kind) {
    PoolAttr a = {.kind = (PoolKind)kind, .kernel = {2, 2}};
    pair(k, "pool_size", a.kernel);
    memcpy(a.stride, a.kernel, sizeof a.stride);
    pair(k, "strides", a.stride);
    if (is_same(k))
        net_same_pool(&k->net, k->in[0], &a);
    return net_pool(&k->net, k->in[0], &a);
}

static TensorId global_pool(Keras *k, int kind) {
    bool keep = keras_flag(k->config, "keepdims", false), nhwc = k->net.nhwc;
    int64_t axes[2] = {nhwc ? 1 : 2, nhwc ? 2 : 3};
    return net_reduce_axes(&k->net, k->in[0], (ReduceKind)kind, 2, axes, keep);
}

/* 1, [1, 2] or [[0, 1], [0, 1]]. */
static void edges(const Keras *k, const char *key, uint32_t before[2],
                  uint32_t behind[2]) {
    const cJSON *item = get(k, key);
    pair(k, key, before);
    memcpy(behind, before, 2 * sizeof *behind);
    for (int i = 0; i < 2; i++) {
        const cJSON *axis = cJSON_GetArrayItem(item, i);
        if (!cJSON_IsArray(axis))
            continue;
        before[i] = whole(cJSON_GetArrayItem(axis, 0), 0);
        behind[i] = whole(cJSON_GetArrayItem(axis, 1), 0);
    }
}

static TensorId zero_padding(Keras *k, int kind) {
    uint32_t before[2] = {1, 1}, behind[2];
    (void)kind;
    edges(k, "padding", before, behind);
    return net_pad(&k->net, k->in[0], before, behind, 0);
}

static TensorId cropping(Keras *k, int kind) {
    uint32_t before[2] = {0, 0}, behind[2];
    int64_t begin[4] = {0}, end[4];
    Shape shape = net_shape(&k->net, k->in[0]);
    (void)kind;
    edges(k, "cropping", before, behind);
    if (shape.rank != 4)
        return net_none(&k->net, "needs an image");
    for (int i = 0; i < 4; i++)
        end[i] = shape.dim[i];
    for (int i = 0; i < 2; i++) {
        int axis = (k->net.nhwc ? 1 : 2) + i;
        begin[axis] = before[i];
        end[axis] -= behind[i];
    }
    return net_window(&k->net, k->in[0], begin, end);
}

static TensorId up_sampling(Keras *k, int kind) {
    uint32_t factor[2] = {2, 2};
    const char *way = json_str(k->config, "interpolation", "nearest");
    const Shape *in = &graph_tensor(k->net.g, k->in[0])->shape;
    Resize r = {.bilinear = !strcmp(way, "bilinear"), .half_pixel = true};
    (void)kind;
    pair(k, "size", factor);
    if (!r.bilinear && strcmp(way, "nearest"))
        return net_none(&k->net, "interpolation %s is not supported", way);
    for (uint32_t i = 0; i < 2; i++)
        r.out[i] = factor[i] < 1 << 14 ? shape_dim(in, 2 + i) * factor[i] : 0;
    return net_resize(&k->net, k->in[0], &r);
}

/* ---- shapes ---- */

static TensorId flatten(Keras *k, int kind) {
    (void)kind;
    return net_flatten(&k->net, k->in[0]);
}

/* target_shape is without the batch; -1 takes what is left. */
static TensorId reshape(Keras *k, int kind) {
    const cJSON *item;
    Shape from = net_shape(&k->net, k->in[0]), to = {1, {from.dim[0]}};
    uint32_t open = 0;
    (void)kind;
    cJSON_ArrayForEach(item, get(k, "target_shape")) {
        if (to.rank == SHAPE_MAX_RANK)
            return net_none(&k->net, "has too many dimensions");
        bool rest = cJSON_IsNumber(item) && item->valuedouble < 0;
        open = rest ? to.rank : open;
        to.dim[to.rank++] = rest ? 1 : whole(item, 0);
    }
    uint64_t known = shape_count(&to);
    if (open && known)
        to.dim[open] = (uint32_t)(shape_count(&from) / known);
    return net_reshape(&k->net, NULL, k->in[0], to);
}

/* dims count from 1: the batch stays. */
static TensorId permute(Keras *k, int kind) {
    int64_t perm[SHAPE_MAX_RANK] = {0};
    const cJSON *item;
    uint32_t n = 1;
    (void)kind;
    cJSON_ArrayForEach(item, get(k, "dims")) {
        if (n < SHAPE_MAX_RANK)
            perm[n++] = whole(item, 0);
    }
    return net_permute_axes(&k->net, k->in[0], n, perm);
}

static TensorId identity(Keras *k, int kind) {
    (void)kind;
    return net_identity(&k->net, k->in[0]);
}

/* ---- several inputs ---- */

static TensorId concatenate(Keras *k, int kind) {
    const cJSON *axis = get(k, "axis");
    (void)kind;
    return net_concat(&k->net, k->n_in, k->in,
                      cJSON_IsNumber(axis) ? axis->valueint : -1);
}

static TensorId merge(Keras *k, int kind) {
    return net_elt(&k->net, NULL, (EltKind)kind, k->n_in, k->in);
}

static TensorId average(Keras *k, int kind) {
    TensorId sum = net_elt(&k->net, "sum", (EltKind)kind, k->n_in, k->in);
    return net_affine(&k->net, NULL, sum, 1.0 / k->n_in, 0);
}

static TensorId rescaling(Keras *k, int kind) {
    (void)kind;
    return net_affine(&k->net, NULL, k->in[0], json_num(k->config, "scale", 1),
                      json_num(k->config, "offset", 0));
}

/* ---- the table ---- */

static const KerasLayer layers[] = {
    {"Conv2D", conv, 0},
    {"Convolution2D", conv, 0},
    {"DepthwiseConv2D", conv, 1},
    {"SeparableConv2D", separable, 0},
    {"Conv2DTranspose", transposed, 0},
    {"Dense", inner_product, 0},
    {"BatchNormalization", batch_norm, 0},
    {"BatchNormalizationV1", batch_norm, 0},
    {"Activation", activation, 0},
    {"ReLU", relu, 0},
    {"LeakyReLU", leaky, ACT_LEAKY},
    {"ELU", leaky, ACT_ELU},
    {"PReLU", prelu, 0},
    {"Softmax", softmax, 0},
    {"MaxPooling2D", pool, POOL_MAX},
    {"AveragePooling2D", pool, POOL_AVG},
    {"GlobalAveragePooling2D", global_pool, REDUCE_MEAN},
    {"GlobalMaxPooling2D", global_pool, REDUCE_MAX},
    {"ZeroPadding2D", zero_padding, 0},
    {"Cropping2D", cropping, 0},
    {"UpSampling2D", up_sampling, 0},
    {"Flatten", flatten, 0},
    {"Reshape", reshape, 0},
    {"Permute", permute, 0},
    {"Dropout", identity, 0},
    {"SpatialDropout2D", identity, 0},
    {"AlphaDropout", identity, 0},
    {"GaussianDropout", identity, 0},
    {"GaussianNoise", identity, 0},
    {"ActivityRegularization", identity, 0},
    {"Identity", identity, 0},
    {"Concatenate", concatenate, 0},
    {"Add", merge, ELT_ADD},
    {"Subtract", merge, ELT_SUB},
    {"Multiply", merge, ELT_MUL},
    {"Maximum", merge, ELT_MAX},
    {"Minimum", merge, ELT_MIN},
    {"Average", average, ELT_ADD},
    {"Rescaling", rescaling, 0},
    {"Conv1D", keras_conv_row, 0},
    {"MaxPooling1D", keras_pool_row, POOL_MAX},
    {"AveragePooling1D", keras_pool_row, POOL_AVG},
    {"GlobalAveragePooling1D", keras_pool_all, REDUCE_MEAN},
    {"GlobalMaxPooling1D", keras_pool_all, REDUCE_MAX},
    {"SpatialDropout1D", identity, 0},
    {"RepeatVector", keras_repeat, 0},
    {"Embedding", keras_embedding, 0},
    {"SimpleRNN", keras_recurrent, 0},
    {"GRU", keras_recurrent, 1},
    {"LSTM", keras_recurrent, 2},
    {"Bidirectional", keras_both_ways, 0},
    {"LayerNormalization", keras_layer_norm, 0},
    {"RMSNormalization", keras_layer_norm, 1},
    {"MultiHeadAttention", keras_attention, 0},
    {"TimeDistributed", keras_each_step, 0},
};

const KerasLayer *keras_find_layer(const char *name) {
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (!strcmp(layers[i].name, name))
            return &layers[i];
    return NULL;
}
