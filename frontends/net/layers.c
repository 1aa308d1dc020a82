/* layers.c - layers as nodes, the same from whatever format; see net.h.
 */
#include "frontends/net/net.h"

#include "base/rng.h"

static const Shape *shape_of(const Net *net, TensorId tensor) {
    return &graph_tensor(net->g, tensor)->shape;
}

/* ---- layers with weights ---- */

TensorId net_conv(Net *net, OpKind op, TensorId in, const ConvAttr *attr,
                  const Const *weight, bool has_bias, const Const *bias) {
    NodeId id = net_node(net, op, NULL, 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    Node *node = graph_node(net->g, id);
    node->attr.conv = *attr;
    node->no_bias = !has_bias;
    if (attr->groups) {
        net_const(net, id, CONST_WEIGHT, weight);
        net_const(net, id, CONST_BIAS, bias);
    }
    return net_out(net, id);
}

/* What a flattened image was before, NO_TENSOR if `in` is none. */
static TensorId before_flatten(const Net *net, TensorId in) {
    const Node *node = graph_node(net->g, graph_tensor(net->g, in)->producer);
    if (node->op != OP_RESHAPE || shape_of(net, in)->rank != 2 ||
        shape_dim(shape_of(net, node->in[0]), 0) != shape_of(net, in)->dim[0])
        return NO_TENSOR;
    const Node *before =
        graph_node(net->g, graph_tensor(net->g, node->in[0])->producer);
    bool turned = net->nhwc && before->op == OP_TRANSPOSE &&
                  before->attr.perm.rank == 4 && before->attr.perm.dim[1] == 2;
    TensorId image = turned ? before->in[0] : node->in[0];
    return shape_of(net, image)->rank == 4 ? image : NO_TENSOR;
}

/* An inner product reads images as they are, which spares a reordering of what
 * comes in: its columns are reordered instead. */
TensorId net_fc(Net *net, TensorId in, uint32_t out, const Const *weight,
                bool has_bias, const Const *bias) {
    if (in.i == NONE)
        return NO_TENSOR;
    TensorId image = before_flatten(net, in);
    Const turned;
    if (image.i != NONE) {
        const Shape *s = shape_of(net, image);
        if (weight && net->nhwc) {
            Shape view = shape_nchw(out, s->dim[2], s->dim[3], s->dim[1]);
            turned = net_permute(net, weight, view, (uint32_t[]){0, 3, 1, 2});
            weight = &turned;
        }
        in = image;
    }
    NodeId id = net_node(net, OP_FC, NULL, 1, &in);
    graph_node(net->g, id)->attr.fc.out = out;
    graph_node(net->g, id)->no_bias = !has_bias;
    net_const(net, id, CONST_WEIGHT, weight);
    net_const(net, id, CONST_BIAS, bias);
    return net_out(net, id);
}

TensorId net_dense(Net *net, TensorId in, const Dense *d) {
    const char *layer = net->layer;
    const ConvAttr pixel = {.out_c = d->out,
                            .groups = 1,
                            .kernel = {1, 1},
                            .stride = {1, 1},
                            .dilation = {1, 1}};
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(net, in), rows = {2, {1, 0}};
    if (shape.rank == 2)
        return net_fc(net, in, d->out, d->weight, d->has_bias, d->bias);
    if (shape.rank == 4 && net->nhwc)
        return net_conv(net, OP_CONV, in, &pixel, d->weight, d->has_bias,
                        d->bias);
    rows.dim[1] = shape.dim[shape.rank - 1];
    for (uint32_t i = 0; i + 1 < shape.rank; i++)
        rows.dim[0] *= shape.dim[i];
    in = net_reshape(net, "rows", in, rows);
    net->layer = arena_printf(net->arena, "%s/product", layer);
    in = net_fc(net, in, d->out, d->weight, d->has_bias, d->bias);
    net->layer = layer;
    shape.dim[shape.rank - 1] = d->out;
    return net_reshape(net, NULL, in, shape);
}

/* A bias beside a scale that is known: graph_seed_constants would take the
 * layer for one without. */
static void seed_bias(Net *net, NodeId id) {
    const double spread = 0.05;
    net_fill(net, id, CONST_BIAS, 0);
    Const *bias =
        graph_const(net->g, graph_node(net->g, id)->constant[CONST_BIAS]);
    bias->seed = rng_seed(graph_node(net->g, id)->name, net->options->seed);
    bias->spread = spread;
}

TensorId net_norm(Net *net, TensorId in, const Norm *norm) {
    NodeId id = net_node(net, OP_BN, NULL, 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    graph_node(net->g, id)->attr.bn.eps = norm->eps;
    net_const(net, id, CONST_MEAN, norm->mean);
    net_const(net, id, CONST_VAR, norm->var);
    TensorId out = net_out(net, id);
    if ((!norm->has_gamma && !norm->has_beta) || out.i == NONE)
        return out;
    id = net_node(net, OP_SCALE, "scale", 1, &out);
    graph_node(net->g, id)->no_bias = !norm->has_beta;
    if (norm->has_gamma)
        net_const(net, id, CONST_SCALE, norm->gamma);
    else
        net_fill(net, id, CONST_SCALE, 1);
    net_const(net, id, CONST_BIAS, norm->beta);
    if (norm->has_beta && !norm->beta && !norm->has_gamma)
        seed_bias(net, id);
    return net_out(net, id);
}

/* A normalisation has its statistics along axis 1 of the graph: another axis
 * changes places with it, before and behind. */
TensorId net_norm_along(Net *net, TensorId in, int64_t axis, const Norm *norm) {
    const char *layer = net->layer;
    uint32_t at;
    if (in.i == NONE || !net_axis(net, in, axis, &at))
        return NO_TENSOR;
    if (!at)
        return net_none(net, "normalises over the batch");
    if (at == 1)
        return net_norm(net, in, norm);
    Shape perm = {.rank = shape_of(net, in)->rank};
    for (uint32_t i = 0; i < perm.rank; i++)
        perm.dim[i] = i == 1 ? at : i == at ? 1 : i;
    TensorId turned = net_transpose(net, "turned", in, perm);
    net->layer = arena_printf(net->arena, "%s/norm", layer);
    turned = net_norm(net, turned, norm);
    net->layer = layer;
    return net_transpose(net, NULL, turned, perm);
}

TensorId net_affine(Net *net, const char *part, TensorId in, double a,
                    double b) {
    NodeId id = net_node(net, OP_SCALE, part, 1, &in);
    if (id.i == NONE)
        return NO_TENSOR;
    graph_node(net->g, id)->no_bias = true;
    net_fill(net, id, CONST_SCALE, a);
    if (b < 0 || b > 0)
        net_fill(net, id, CONST_BIAS, b);
    return net_out(net, id);
}

TensorId net_constant(Net *net, const char *part, const Const *value) {
    Shape shape = value->shape;
    if (!shape.rank)
        shape = (Shape){1, {1}};
    NodeId id = net_node(net, OP_CONSTANT, part, 0, NULL);
    graph_node(net->g, id)->attr.reshape = shape;
    net_const(net, id, CONST_VALUE, value);
    TensorId out = net_out(net, id);
    if (!net->nhwc || shape.rank != 4)
        return out;
    return net_transpose(net, "nchw", out, shape_nchw(0, 3, 1, 2));
}

/* ---- functions of elements ---- */

TensorId net_act(Net *net, const char *part, TensorId in, Act act) {
    NodeId id = net_node(net, OP_ACT, part, 1, &in);
    if (id.i != NONE)
        graph_node(net->g, id)->act = act;
    return net_out(net, id);
}

TensorId net_pool(Net *net, TensorId in, const PoolAttr *attr) {
    NodeId id = net_node(net, OP_POOL, NULL, 1, &in);
    if (id.i != NONE)
        graph_node(net->g, id)->attr.pool = *attr;
    return net_out(net, id);
}

/* With leading ones, up to `rank`, in the order of the file. */
static TensorId raise_rank(Net *net, TensorId in, uint32_t rank) {
    if (in.i == NONE || shape_of(net, in)->rank >= rank)
        return in;
    Shape from = net_shape(net, in), to = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        to.dim[i] = i + from.rank < rank ? 1 : from.dim[i + from.rank - rank];
    return net_reshape(net, "rank", in, to);
}

TensorId net_elt(Net *net, const char *part, EltKind kind, uint32_t n,
                 const TensorId *in) {
    uint32_t rank = 0;
    TensorId *raised = ARENA_COPY(net->arena, TensorId, in, n);
    for (uint32_t i = 0; i < n; i++)
        if (in[i].i != NONE && shape_of(net, in[i])->rank > rank)
            rank = shape_of(net, in[i])->rank;
    for (uint32_t i = 0; i < n; i++)
        raised[i] = raise_rank(net, in[i], rank);
    NodeId id = net_node(net, OP_ELTWISE, part, n, raised);
    if (id.i != NONE)
        graph_node(net->g, id)->attr.elt.kind = kind;
    return net_out(net, id);
}

/* ---- axes ---- */

TensorId net_concat(Net *net, uint32_t n, const TensorId *in, int64_t axis) {
    NodeId id = net_node(net, OP_CONCAT, NULL, n, in);
    uint32_t at;
    if (id.i == NONE || !net_axis(net, in[0], axis, &at))
        return NO_TENSOR;
    graph_node(net->g, id)->attr.axis.axis = at;
    return net_out(net, id);
}

TensorId net_softmax(Net *net, TensorId in, int64_t axis) {
    NodeId id = net_node(net, OP_SOFTMAX, NULL, 1, &in);
    uint32_t at;
    if (id.i == NONE || !net_axis(net, in, axis, &at))
        return NO_TENSOR;
    graph_node(net->g, id)->attr.axis.axis = at;
    return net_out(net, id);
}

TensorId net_slice(Net *net, const char *part, TensorId in, uint32_t axis,
                   uint32_t begin, uint32_t end) {
    NodeId id = net_node(net, OP_SLICE, part, 1, &in);
    if (id.i != NONE) {
        graph_node(net->g, id)->attr.slice.axis = axis;
        graph_node(net->g, id)->attr.slice.begin = begin;
        graph_node(net->g, id)->attr.slice.end = end;
    }
    return net_out(net, id);
}

/* The mean over height and width is pooling, which machines know. */
TensorId net_reduce(Net *net, const char *part, TensorId in, ReduceKind kind,
                    uint32_t axes) {
    if (in.i == NONE)
        return in;
    bool image = shape_of(net, in)->rank == 4 && axes == (1u << 2 | 1u << 3);
    bool pools = image && (kind == REDUCE_MEAN || kind == REDUCE_MAX);
    NodeId id = net_node(net, pools ? OP_POOL : OP_REDUCE, part, 1, &in);
    Node *node = graph_node(net->g, id);
    if (pools) {
        node->attr.pool.kind = kind == REDUCE_MEAN ? POOL_AVG : POOL_MAX;
        node->attr.pool.global = true;
    } else {
        node->attr.reduce.kind = kind;
        node->attr.reduce.axes = axes;
    }
    return net_out(net, id);
}

TensorId net_pad(Net *net, TensorId in, const uint32_t before[2],
                 const uint32_t behind[2], double value) {
    NodeId id = net_node(net, OP_PAD, NULL, 1, &in);
    for (int i = 0; id.i != NONE && i < 2; i++) {
        graph_node(net->g, id)->attr.pad.before[i] = before[i];
        graph_node(net->g, id)->attr.pad.behind[i] = behind[i];
        graph_node(net->g, id)->attr.pad.value = value;
    }
    return net_out(net, id);
}

TensorId net_identity(Net *net, TensorId in) {
    return net_out(net, net_node(net, OP_IDENTITY, NULL, 1, &in));
}

/* ---- other shapes ---- */

TensorId net_transpose(Net *net, const char *part, TensorId in, Shape perm) {
    NodeId id = net_node(net, OP_TRANSPOSE, part, 1, &in);
    if (id.i != NONE)
        graph_node(net->g, id)->attr.perm = perm;
    return net_out(net, id);
}

static TensorId plain_reshape(Net *net, const char *part, TensorId in,
                              Shape to) {
    NodeId id = net_node(net, OP_RESHAPE, part, 1, &in);
    if (id.i != NONE)
        graph_node(net->g, id)->attr.reshape = to;
    return net_out(net, id);
}

/* An image of one channel or one pixel has its values in the same order in the
 * file and in the graph. */
static bool same_order(const Shape *nchw) {
    return nchw->dim[1] == 1 || (nchw->dim[2] == 1 && nchw->dim[3] == 1);
}

TensorId net_reshape(Net *net, const char *part, TensorId in, Shape to) {
    if (in.i == NONE || !net->nhwc)
        return plain_reshape(net, part, in, to);
    if (shape_of(net, in)->rank == 4 && !same_order(shape_of(net, in)))
        in = net_transpose(net, "nhwc", in, shape_nchw(0, 2, 3, 1));
    if (to.rank != 4)
        return plain_reshape(net, part, in, to);
    Shape nchw = shape_nchw(to.dim[0], to.dim[3], to.dim[1], to.dim[2]);
    if (same_order(&nchw))
        return plain_reshape(net, part, in, nchw);
    in = plain_reshape(net, "reshape", in, to);
    return net_transpose(net, part, in, shape_nchw(0, 3, 1, 2));
}

TensorId net_squeeze(Net *net, TensorId in, uint32_t axes) {
    if (in.i == NONE)
        return in;
    Shape shape = net_shape(net, in), to = {0};
    for (uint32_t i = 0; i < shape.rank; i++)
        if (axes ? !(axes >> i & 1) : shape.dim[i] != 1)
            to.dim[to.rank++] = shape.dim[i];
    if (!to.rank)
        to = (Shape){1, {1}};
    return net_reshape(net, NULL, in, to);
}

TensorId net_flatten(Net *net, TensorId in) {
    if (in.i == NONE)
        return in;
    const Shape *shape = shape_of(net, in);
    uint64_t rest = shape_count(shape) / (shape->dim[0] ? shape->dim[0] : 1);
    return net_reshape(net, NULL, in,
                       (Shape){2, {shape->dim[0], (uint32_t)rest}});
}
