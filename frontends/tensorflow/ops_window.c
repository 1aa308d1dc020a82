/* ops_window.c - TensorFlow's layers with windows or weights.
 *
 * Kernels are height x width x in x out; of depthwise convolutions height x
 * width x in x multiplier. strides, dilations and ksize have a number for each
 * axis of the file.
 */
#include "frontends/tensorflow/tf.h"

#include <string.h>

/* Height and width of a list of four numbers. */
static bool window(const Tf *tf, const char *key, uint32_t out[2]) {
    int64_t value[4];
    int n = tf_list(tf, key, 4, value);
    if (n == 0)
        return true;
    uint32_t first = tf->net.nhwc ? 1 : 2;
    for (uint32_t i = 0; n == 4 && i < 2; i++) {
        if (value[first + i] < 1 || value[first + i] > INT32_MAX)
            n = -1;
        out[i] = (uint32_t)(value[first + i] & INT32_MAX);
    }
    return n == 4 || net_fail(&tf->net, "%s must be four numbers from 1", key);
}

/* EXPLICIT: a pair for each axis of the file. */
static bool explicit_pads(const Tf *tf, uint32_t pad[2], uint32_t pad_end[2]) {
    int64_t value[8];
    int n = tf_list(tf, "explicit_paddings", 8, value);
    uint32_t first = tf->net.nhwc ? 2 : 4;
    for (uint32_t i = 0; n == 8 && i < 2; i++) {
        int64_t before = value[first + 2 * i],
                behind = value[first + 2 * i + 1];
        if (before < 0 || behind < 0 || before > 1 << 14 || behind > 1 << 14)
            n = -1;
        pad[i] = (uint32_t)(before & INT32_MAX);
        pad_end[i] = (uint32_t)(behind & INT32_MAX);
    }
    return n == 8 || net_fail(&tf->net, "explicit_paddings must be eight "
                                        "numbers from 0");
}

static bool conv_padding(const Tf *tf, TensorId in, ConvAttr *a) {
    const char *word = tf_str(tf, "padding", "VALID");
    if (!strcmp(word, "SAME"))
        net_same_conv(&tf->net, in, a);
    else if (!strcmp(word, "EXPLICIT"))
        return explicit_pads(tf, a->pad, a->pad_end);
    else if (strcmp(word, "VALID"))
        return net_fail(&tf->net, "padding %s is not known", word);
    return true;
}

/* ---- what grappler fuses ---- */

/* max(x, 0) + slope * min(x, 0), slopes by channel or by element. */
static TensorId with_slope(Tf *tf, TensorId in, const Const *slope) {
    NodeId node = net_node(&tf->net, OP_ACT, NULL, 1, &in);
    if (node.i == NONE || !slope)
        return NO_TENSOR;
    graph_node(tf->net.g, node)->act.kind = ACT_PRELU;
    net_const(&tf->net, node, CONST_SLOPE, slope);
    return net_out(&tf->net, node);
}

TensorId tf_prelu(Tf *tf, int kind) {
    (void)kind;
    return with_slope(tf, tf_in(tf, 0), tf_const(tf, 1));
}

static TensorId fused_act(Tf *tf, const char *name, TensorId in) {
    static const struct {
        const char *name;
        Act act;
    } acts[] = {
        {"Relu", {.kind = ACT_RELU}},
        {"Relu6", {.kind = ACT_RELU6}},
        {"Elu", {.kind = ACT_ELU, .alpha = 1}},
        {"Sigmoid", {.kind = ACT_SIGMOID}},
        {"Tanh", {.kind = ACT_TANH}},
    };
    if (!strcmp(name, "Prelu"))
        return with_slope(tf, in, tf_const(tf, tf->at->n_in - 1));
    if (!strcmp(name, "LeakyRelu"))
        return net_act(&tf->net, name, in,
                       (Act){.kind = ACT_LEAKY,
                             .alpha = tf_num(tf, "leakyrelu_alpha", 0.2)});
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (!strcmp(acts[i].name, name))
            return net_act(&tf->net, name, in, acts[i].act);
    return net_none(&tf->net, "fused operator %s is not supported", name);
}

static bool has_fused(const Tf *tf, const char *name) {
    const ProtoMessage *list = proto_message(tf->net.arena, tf->net.diag,
                                             tf_attr(tf, "fused_ops"), "list");
    const ProtoField *f = NULL;
    while ((f = proto_next(list, "s", f)))
        if (f->text && !strcmp(f->text, name))
            return true;
    return false;
}

static TensorId fused(Tf *tf, TensorId out) {
    const ProtoMessage *list = proto_message(tf->net.arena, tf->net.diag,
                                             tf_attr(tf, "fused_ops"), "list");
    const ProtoField *f = NULL;
    while ((f = proto_next(list, "s", f))) {
        const char *name = "";
        if (!proto_get_str(tf->net.diag, f, &name))
            return NO_TENSOR;
        if (!strcmp(name, "FusedBatchNorm")) {
            Norm norm = {.eps = tf_num(tf, "epsilon", 1e-4),
                         .has_gamma = true,
                         .has_beta = true,
                         .gamma = tf_const(tf, 2),
                         .beta = tf_const(tf, 3),
                         .mean = tf_const(tf, 4),
                         .var = tf_const(tf, 5)};
            out = net_norm(&tf->net, out, &norm);
        } else if (strcmp(name, "BiasAdd")) {
            out = fused_act(tf, name, out);
        }
    }
    return out;
}

/* ---- convolutions ---- */

static const Const *kernel(Tf *tf) {
    const Const *w = tf_const(tf, 1);
    if (w && w->shape.rank != 4) {
        net_fail(&tf->net, "its kernel has shape %s",
                 shape_text(tf->net.arena, &w->shape));
        return NULL;
    }
    return w;
}

/* Recipes are for the graph to make, which knows how large they should be. */
static const Const *known(const Const *c) {
    return c && c->kind == CONST_SEEDED ? NULL : c;
}

static bool conv_attr(Tf *tf, TensorId in, const Const *w, bool depthwise,
                      ConvAttr *a) {
    const uint32_t *dim = w->shape.dim;
    Shape shape = graph_tensor(tf->net.g, in)->shape;
    uint32_t in_c = shape_dim(&shape, 1);
    *a = (ConvAttr){.out_c = depthwise ? dim[2] * dim[3] : dim[3],
                    .kernel = {dim[0], dim[1]},
                    .stride = {1, 1},
                    .dilation = {1, 1}};
    if (!dim[2] || in_c % dim[2] || (depthwise && dim[2] != in_c))
        return net_fail(&tf->net, "kernel of %s does not fit %u channels",
                        shape_text(tf->net.arena, &w->shape), in_c);
    a->groups = depthwise ? in_c : in_c / dim[2];
    return window(tf, "strides", a->stride) &&
           window(tf, "dilations", a->dilation) && conv_padding(tf, in, a);
}

TensorId tf_conv(Tf *tf, int depthwise) {
    TensorId in = tf_in(tf, 0);
    const Const *w = kernel(tf), *bias = NULL;
    ConvAttr a;
    if (!w || in.i == NONE || !conv_attr(tf, in, w, depthwise, &a))
        return NO_TENSOR;
    bool has_bias = has_fused(tf, "BiasAdd");
    if (has_bias && !(bias = tf_const(tf, 2)))
        return NO_TENSOR;
    const uint32_t *perm = depthwise ? (const uint32_t[]){2, 3, 0, 1}
                                     : (const uint32_t[]){3, 2, 0, 1};
    Const turned = net_permute(&tf->net, w, w->shape, perm);
    return fused(tf, net_conv(&tf->net, OP_CONV, in, &a, known(&turned),
                              has_bias, known(bias)));
}

/* Inputs: the output's shape, the kernel, the image. */
TensorId tf_deconv(Tf *tf, int kind) {
    int64_t size[4];
    TensorId in = tf_in(tf, 2);
    const Const *w = kernel(tf);
    (void)kind;
    if (!w || in.i == NONE || tf_ints(tf, 0, 4, size) != 4)
        return NO_TENSOR;
    ConvAttr a = {.out_c = w->shape.dim[2],
                  .groups = 1,
                  .kernel = {w->shape.dim[0], w->shape.dim[1]},
                  .stride = {1, 1},
                  .dilation = {1, 1}};
    if (!window(tf, "strides", a.stride))
        return NO_TENSOR;
    bool same = !strcmp(tf_str(tf, "padding", "VALID"), "SAME");
    for (uint32_t i = 0; same && i < 2; i++)
        same_padding((uint32_t)(size[(tf->net.nhwc ? 1 : 2) + i] & INT32_MAX),
                     a.kernel[i], a.stride[i], 1, &a.pad[i], &a.pad_end[i]);
    Const turned = net_permute(&tf->net, w, w->shape, (uint32_t[]){3, 2, 0, 1});
    return net_conv(&tf->net, OP_DECONV, in, &a, known(&turned), false, NULL);
}

TensorId tf_pool(Tf *tf, int kind) {
    TensorId in = tf_in(tf, 0);
    PoolAttr a = {.kind = (PoolKind)kind, .stride = {1, 1}};
    const char *word = tf_str(tf, "padding", "VALID");
    if (in.i == NONE || !window(tf, "ksize", a.kernel) ||
        !window(tf, "strides", a.stride))
        return NO_TENSOR;
    if (!strcmp(word, "SAME"))
        net_same_pool(&tf->net, in, &a);
    else if (!strcmp(word, "EXPLICIT") && !explicit_pads(tf, a.pad, a.pad_end))
        return NO_TENSOR;
    return net_pool(&tf->net, in, &a);
}

/* ---- products, biases, normalisation ---- */

static bool is_turned(const Tf *tf, const char *key, const char *adjoint) {
    return tf_bool(tf, key, false) || tf_bool(tf, adjoint, false);
}

/* A matrix of weights behind rows is a layer; all else are products. */
TensorId tf_matmul(Tf *tf, int kind) {
    const Const *w = tf_maybe(tf, 1), *bias = NULL;
    TensorId in = tf_in(tf, 0);
    bool turned[2] = {is_turned(tf, "transpose_a", "adj_x"),
                      is_turned(tf, "transpose_b", "adj_y")};
    bool has_bias = has_fused(tf, "BiasAdd");
    (void)kind;
    if (in.i == NONE || (has_bias && !(bias = tf_const(tf, 2))))
        return NO_TENSOR;
    bool rows = net_shape(&tf->net, in).rank == 2 && !turned[0];
    if (!rows || !w || w->shape.rank != 2) {
        TensorId both[2] = {in, tf_in(tf, 1)};
        return has_bias ? net_none(&tf->net, "fused products need a matrix of "
                                             "constants")
                        : net_matmul(&tf->net, both, turned);
    }
    Const weight =
        turned[1] ? *w : net_permute(&tf->net, w, w->shape, (uint32_t[]){1, 0});
    return fused(tf, net_fc(&tf->net, in, weight.shape.dim[0], known(&weight),
                            has_bias, known(bias)));
}

TensorId tf_bias_add(Tf *tf, int kind) {
    TensorId in = tf_in(tf, 0);
    const Const *bias = tf_const(tf, 1);
    (void)kind;
    if (!bias || in.i == NONE)
        return NO_TENSOR;
    NodeId id = net_node(&tf->net, OP_SCALE, NULL, 1, &in);
    net_fill(&tf->net, id, CONST_SCALE, 1);
    net_const(&tf->net, id, CONST_BIAS, bias);
    return net_out(&tf->net, id);
}

TensorId tf_batch_norm(Tf *tf, int kind) {
    Norm norm = {.eps = tf_num(tf, "epsilon", 1e-4),
                 .has_gamma = true,
                 .has_beta = true,
                 .gamma = known(tf_const(tf, 1)),
                 .beta = known(tf_const(tf, 2)),
                 .mean = known(tf_const(tf, 3)),
                 .var = known(tf_const(tf, 4))};
    (void)kind;
    if (tf_bool(tf, "is_training", false))
        return net_none(&tf->net, "is_training: its statistics are of the "
                                  "batch, which only trains");
    return net_norm(&tf->net, tf_in(tf, 0), &norm);
}
