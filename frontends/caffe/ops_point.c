/* ops_point.c - Caffe layers that work element by element: activations,
 * normalisations with constants, sums and products. */
#include "frontends/caffe/caffe.h"

#include "base/rng.h"

/* ---- activations ---- */

static bool build_act(Caffe *c, CaffeLayer *layer, Act act) {
    NodeId node = caffe_node(c, layer, OP_ACT);
    graph_node(c->graph, node)->act = act;
    return caffe_finish(c, layer, node, 0);
}

bool caffe_relu(Caffe *c, CaffeLayer *layer) {
    double slope = 0;
    proto_f64(c->diag, caffe_param(c, layer, "relu_param"), "negative_slope",
              &slope);
    return build_act(
        c, layer,
        (Act){.kind = slope != 0 ? ACT_LEAKY : ACT_RELU, .alpha = slope});
}

bool caffe_relu6(Caffe *c, CaffeLayer *layer) {
    return build_act(c, layer, (Act){.kind = ACT_RELU6});
}

bool caffe_sigmoid(Caffe *c, CaffeLayer *layer) {
    return build_act(c, layer, (Act){.kind = ACT_SIGMOID});
}

bool caffe_tanh(Caffe *c, CaffeLayer *layer) {
    return build_act(c, layer, (Act){.kind = ACT_TANH});
}

bool caffe_clip(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "clip_param");
    Act act = {.kind = ACT_CLIP};
    if (!proto_f64(c->diag, param, "min", &act.lo) ||
        !proto_f64(c->diag, param, "max", &act.hi))
        return caffe_error(c, layer, "has no min and max");
    return build_act(c, layer, act);
}

/* One slope for all channels, as many times as there are channels. */
static bool repeat_slope(Caffe *c, CaffeLayer *layer, NodeId node) {
    Const slope, all = {.kind = CONST_F64};
    float value;
    if (!caffe_blob(c, layer, 0, &slope))
        return !layer->n_blobs;
    if (shape_count(&slope.shape) != 1)
        return caffe_error(c, layer, "a shared slope is one value, not %s",
                           shape_text(c->arena, &slope.shape));
    const_read(&slope, &value);
    graph_const_shape(c->graph, node, CONST_SLOPE, &all.shape);
    double *data = ARENA_ARRAY(c->arena, double, all.shape.dim[0]);
    for (uint32_t i = 0; i < all.shape.dim[0]; i++)
        data[i] = (double)value;
    all.data = data;
    graph_node(c->graph, node)->constant[CONST_SLOPE] =
        graph_add_const(c->graph, all);
    return true;
}

bool caffe_prelu(Caffe *c, CaffeLayer *layer) {
    bool shared = false;
    proto_bool(c->diag, caffe_param(c, layer, "prelu_param"), "channel_shared",
               &shared);
    NodeId node = caffe_node(c, layer, OP_ACT);
    graph_node(c->graph, node)->act.kind = ACT_PRELU;
    if (!caffe_finish(c, layer, node, 0))
        return false;
    return shared ? repeat_slope(c, layer, node)
                  : caffe_use_blob(c, layer, node, CONST_SLOPE, 0);
}

bool caffe_softmax(Caffe *c, CaffeLayer *layer) {
    uint32_t axis = 1;
    if (!caffe_axis(c, layer, caffe_param(c, layer, "softmax_param"), "axis",
                    caffe_in_shape(c, layer, 0)->rank, &axis))
        return false;
    NodeId node = caffe_node(c, layer, OP_SOFTMAX);
    graph_node(c->graph, node)->attr.axis.axis = axis;
    if (!caffe_finish(c, layer, node, 0))
        return false;
    /* A loss's second top is its softmax, and so is what becomes of it. */
    for (uint32_t t = 1; t < layer->n_top; t++)
        layer->top[t].tensor = layer->top[0].tensor;
    return true;
}

/* ---- normalisation with constants ---- */

/* Mean and variance are stored times a factor, which is blob 2. */
static bool divide_statistics(Caffe *c, CaffeLayer *layer, NodeId node) {
    Const factor;
    float value;
    if (!layer->n_blobs || layer->n_blobs == 2)
        return true;
    if (!caffe_blob(c, layer, 2, &factor))
        return false;
    if (shape_count(&factor.shape) != 1)
        return caffe_error(c, layer, "its factor (blob 2) is not one value");
    const_read(&factor, &value);
    double by = value == 0 ? 0 : 1 / (double)value;
    if (by == 1)
        return true;
    for (ConstRole role = CONST_MEAN; role <= CONST_VAR; role++) {
        ConstId id = graph_node(c->graph, node)->constant[role];
        Const *stored = graph_const(c->graph, id);
        double *mul = ARENA_ARRAY(c->arena, double, stored->shape.dim[0]);
        for (uint32_t i = 0; i < stored->shape.dim[0]; i++)
            mul[i] = by;
        stored->mul0 = mul;
    }
    return true;
}

bool caffe_batch_norm(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "batch_norm_param");
    double eps = 1e-5;
    bool stored = true;
    proto_f64(c->diag, param, "eps", &eps);
    proto_bool(c->diag, param, "use_global_stats", &stored);
    if (!stored)
        diag_warning(c->diag, layer->loc,
                     "layer \"%s\": use_global_stats is false; the stored "
                     "statistics are used all the same",
                     layer->name);
    NodeId node = caffe_node(c, layer, OP_BN);
    graph_node(c->graph, node)->attr.bn.eps = eps;
    return caffe_finish(c, layer, node, 0) &&
           caffe_use_blob(c, layer, node, CONST_MEAN, 0) &&
           caffe_use_blob(c, layer, node, CONST_VAR, 1) &&
           divide_statistics(c, layer, node);
}

/* The layer of SegNet and its kin: scale and shift, and unless the statistics
 * are folded into them already, a normalisation before. */
bool caffe_bn(Caffe *c, CaffeLayer *layer) {
    static const char *const modes[] = {"LEARN", "INFERENCE", NULL};
    const ProtoMessage *param = caffe_param(c, layer, "bn_param");
    double eps = 1e-5;
    uint32_t mode = 0;
    proto_f64(c->diag, param, "eps", &eps);
    proto_enum(c->diag, param, "bn_mode", modes, &mode);
    bool folded = mode == 1 || layer->n_blobs == 2;
    TensorId in = caffe_in(c, layer, 0);
    if (!folded) {
        NodeId bn = caffe_part(c, layer, OP_BN, "bn", 1, &in);
        graph_node(c->graph, bn)->attr.bn.eps = eps;
        in = caffe_inner(c, bn);
        if (in.i == NONE || !caffe_use_blob(c, layer, bn, CONST_MEAN, 2) ||
            !caffe_use_blob(c, layer, bn, CONST_VAR, 3))
            return false;
    }
    NodeId scale =
        graph_add(c->graph, OP_SCALE, layer->name, layer->loc, 1, &in);
    return caffe_finish(c, layer, scale, 0) &&
           caffe_use_blob(c, layer, scale, CONST_SCALE, 0) &&
           caffe_use_blob(c, layer, scale, CONST_BIAS, 1);
}

/* A bias where the scale is known: graph_seed_constants takes layers that have
 * a scale for complete. */
static void seed_bias(Caffe *c, NodeId node) {
    const double spread = 0.05;
    ConstId id = caffe_fill(c, node, CONST_BIAS, 0);
    Const *bias = graph_const(c->graph, id);
    bias->seed = rng_seed(graph_node(c->graph, node)->name, c->options->seed);
    bias->spread = spread;
}

/* A SCALE by 1 that adds the layer's first blob. */
static bool finish_bias(Caffe *c, CaffeLayer *layer, NodeId node) {
    if (!caffe_finish(c, layer, node, 0))
        return false;
    caffe_fill(c, node, CONST_SCALE, 1);
    if (!layer->n_blobs)
        seed_bias(c, node);
    return caffe_use_blob(c, layer, node, CONST_BIAS, 0);
}

/* Constants along axis 1 alone are supported. */
static bool constants_by_channel(Caffe *c, CaffeLayer *layer,
                                 const ProtoMessage *param) {
    uint32_t axis = 1;
    int64_t n = 1;
    if (!caffe_axis(c, layer, param, "axis", caffe_in_shape(c, layer, 0)->rank,
                    &axis))
        return false;
    proto_i64(c->diag, param, "num_axes", &n);
    if (axis == 1 &&
        (n == 1 || (n == -1 && caffe_in_shape(c, layer, 0)->rank == 2)))
        return true;
    return caffe_error(c, layer,
                       "constants along axis 1 alone are supported, not along "
                       "%lld axes from %u",
                       (long long)n, axis);
}

/* The second bottom in the rank of the first: 1 in the axes that it lacks. */
static TensorId align(Caffe *c, CaffeLayer *layer, const ProtoMessage *param,
                      uint32_t axis) {
    const Shape *in = caffe_in_shape(c, layer, 0);
    const Shape *by = caffe_in_shape(c, layer, 1);
    TensorId tensor = caffe_in(c, layer, 1);
    if (!caffe_axis(c, layer, param, "axis", in->rank, &axis))
        return NO_TENSOR;
    if (axis + by->rank > in->rank) {
        caffe_error(c, layer, "bottom 1 of %s does not fit %s at axis %u",
                    shape_text(c->arena, by), shape_text(c->arena, in), axis);
        return NO_TENSOR;
    }
    Shape to = {.rank = in->rank};
    for (uint32_t i = 0; i < in->rank; i++)
        to.dim[i] = i < axis ? 1 : shape_dim(by, i - axis);
    if (shape_equal(&to, by))
        return tensor;
    NodeId node = caffe_part(c, layer, OP_RESHAPE, "shape", 1, &tensor);
    graph_node(c->graph, node)->attr.reshape = to;
    return caffe_inner(c, node);
}

/* The first bottom times or plus the second. */
static bool build_pairwise(Caffe *c, CaffeLayer *layer,
                           const ProtoMessage *param, EltKind kind) {
    TensorId in[2] = {caffe_in(c, layer, 0), align(c, layer, param, 1)};
    if (in[1].i == NONE)
        return false;
    NodeId node =
        graph_add(c->graph, OP_ELTWISE, layer->name, layer->loc, 2, in);
    graph_node(c->graph, node)->attr.elt.kind = kind;
    return caffe_finish(c, layer, node, 0);
}

/* A product with a bias behind it, the only constant of such a layer. */
static bool multiply_and_add(Caffe *c, CaffeLayer *layer,
                             const ProtoMessage *param) {
    TensorId in[2] = {caffe_in(c, layer, 0), align(c, layer, param, 1)};
    if (in[1].i == NONE)
        return false;
    NodeId mul = caffe_part(c, layer, OP_ELTWISE, "mul", 2, in);
    graph_node(c->graph, mul)->attr.elt.kind = ELT_MUL;
    TensorId product = caffe_inner(c, mul);
    if (product.i == NONE)
        return false;
    NodeId node =
        graph_add(c->graph, OP_SCALE, layer->name, layer->loc, 1, &product);
    return finish_bias(c, layer, node);
}

bool caffe_scale(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "scale_param");
    bool bias = false;
    proto_bool(c->diag, param, "bias_term", &bias);
    if (layer->n_bottom == 2)
        return bias ? multiply_and_add(c, layer, param)
                    : build_pairwise(c, layer, param, ELT_MUL);
    if (!constants_by_channel(c, layer, param))
        return false;
    NodeId node = caffe_node(c, layer, OP_SCALE);
    graph_node(c->graph, node)->no_bias = !bias;
    return caffe_finish(c, layer, node, 0) &&
           caffe_use_blob(c, layer, node, CONST_SCALE, 0) &&
           (!bias || caffe_use_blob(c, layer, node, CONST_BIAS, 1));
}

bool caffe_bias(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "bias_param");
    if (layer->n_bottom == 2)
        return build_pairwise(c, layer, param, ELT_ADD);
    if (!constants_by_channel(c, layer, param))
        return false;
    NodeId node = caffe_node(c, layer, OP_SCALE);
    return finish_bias(c, layer, node);
}

/* (shift + scale * x) ^ power, where power is 1. */
bool caffe_power(Caffe *c, CaffeLayer *layer) {
    const ProtoMessage *param = caffe_param(c, layer, "power_param");
    double power = 1, scale = 1, shift = 0;
    proto_f64(c->diag, param, "power", &power);
    proto_f64(c->diag, param, "scale", &scale);
    proto_f64(c->diag, param, "shift", &shift);
    if (power != 1)
        return caffe_error(c, layer, "power %g is not supported, only 1",
                           power);
    bool same = scale == 1 && shift == 0;
    NodeId node = caffe_node(c, layer, same ? OP_IDENTITY : OP_SCALE);
    graph_node(c->graph, node)->no_bias = shift == 0;
    if (!caffe_finish(c, layer, node, 0))
        return false;
    if (!same)
        caffe_fill(c, node, CONST_SCALE, scale);
    if (shift != 0)
        caffe_fill(c, node, CONST_BIAS, shift);
    return true;
}

/* ---- sums and products ---- */

/* Coefficients of a sum; NULL where all are 1. */
static bool read_coefficients(Caffe *c, CaffeLayer *layer,
                              const ProtoMessage *param, EltAttr *elt) {
    uint32_t n = proto_count(param, "coeff"), i = 0;
    bool plain = true;
    if (!n)
        return true;
    if (n != layer->n_bottom)
        return caffe_error(c, layer, "has %u coeff for %u bottoms", n,
                           layer->n_bottom);
    double *coeff = ARENA_ARRAY(c->arena, double, n);
    const ProtoField *f = NULL;
    while ((f = proto_next(param, "coeff", f))) {
        if (!proto_get_f64(c->diag, f, &coeff[i]))
            return false;
        plain &= coeff[i++] == 1;
    }
    if (!plain && elt->kind != ELT_ADD)
        return caffe_error(c, layer, "coeff goes with operation SUM alone");
    elt->coeff = plain ? NULL : coeff;
    return true;
}

bool caffe_eltwise(Caffe *c, CaffeLayer *layer) {
    static const char *const words[] = {"PROD", "SUM", "MAX", NULL};
    static const EltKind kinds[] = {ELT_MUL, ELT_ADD, ELT_MAX};
    const ProtoMessage *param = caffe_param(c, layer, "eltwise_param");
    uint32_t word = 1;
    EltAttr elt = {0};
    proto_enum(c->diag, param, "operation", words, &word);
    elt.kind = kinds[word];
    if (!read_coefficients(c, layer, param, &elt))
        return false;
    NodeId node = caffe_node(c, layer, OP_ELTWISE);
    graph_node(c->graph, node)->attr.elt = elt;
    return caffe_finish(c, layer, node, 0);
}

/* bottom 0 (by channel) * bottom 1 + bottom 2. */
bool caffe_axpy(Caffe *c, CaffeLayer *layer) {
    TensorId a = caffe_in(c, layer, 0);
    const Shape *factor = caffe_in_shape(c, layer, 0);
    if (factor->rank == 2) {
        NodeId shape = caffe_part(c, layer, OP_RESHAPE, "shape", 1, &a);
        graph_node(c->graph, shape)->attr.reshape =
            shape_nchw(factor->dim[0], factor->dim[1], 1, 1);
        a = caffe_inner(c, shape);
        if (a.i == NONE)
            return false;
    }
    NodeId mul = caffe_part(c, layer, OP_ELTWISE, "mul", 2,
                            (TensorId[]){caffe_in(c, layer, 1), a});
    graph_node(c->graph, mul)->attr.elt.kind = ELT_MUL;
    TensorId product = caffe_inner(c, mul);
    if (product.i == NONE)
        return false;
    NodeId add = graph_add(c->graph, OP_ELTWISE, layer->name, layer->loc, 2,
                           (TensorId[]){product, caffe_in(c, layer, 2)});
    graph_node(c->graph, add)->attr.elt.kind = ELT_ADD;
    return caffe_finish(c, layer, add, 0);
}
