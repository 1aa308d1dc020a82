/* make.c - nodes of the graph for the builders of ONNX; see onnx.h. */
#include "frontends/onnx/onnx.h"

#include <string.h>

const Shape *onnx_shape(const Onnx *x, TensorId tensor) {
    return &graph_tensor(x->graph, tensor)->shape;
}

NodeId onnx_add(Onnx *x, const OnnxNode *n, OpKind op, const char *part,
                uint32_t n_in, const TensorId *in) {
    const char *name = arena_printf(x->arena, "%s/%s", n->name, part);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i].i == NONE)
            return NO_NODE;
    return graph_add(x->graph, op, name, n->loc, n_in, in);
}

TensorId onnx_end(Onnx *x, NodeId id) {
    if (id.i == NONE)
        return NO_TENSOR;
    TensorId out =
        graph_add_output(x->graph, id, graph_node(x->graph, id)->name);
    return graph_infer(x->graph, id, x->diag) ? out : NO_TENSOR;
}

/* Attributes may be set of a node that was not made, too: they go nowhere. */
static Node *node_of(Onnx *x, NodeId id) {
    return id.i == NONE ? ARENA_NEW(x->arena, Node) : graph_node(x->graph, id);
}

static NodeId add_one(Onnx *x, const OnnxNode *n, OpKind op, const char *part,
                      TensorId in) {
    return onnx_add(x, n, op, part, 1, &in);
}

void onnx_give(Onnx *x, NodeId id, ConstRole role, Const constant) {
    if (id.i != NONE)
        graph_node(x->graph, id)->constant[role] =
            graph_add_const(x->graph, constant);
}

Const onnx_fill(Shape shape, double value) {
    return (Const){.shape = shape, .kind = CONST_SEEDED, .mean = value};
}

Const onnx_values(Shape shape, const double *value) {
    return (Const){.shape = shape, .kind = CONST_F64, .data = value};
}

/* ---- shapes ---- */

bool onnx_broadcast(const Shape *a, const Shape *b, Shape *out) {
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    Shape wide = onnx_rank(a, rank), other = onnx_rank(b, rank);
    *out = wide;
    for (uint32_t i = 0; i < rank; i++) {
        if (wide.dim[i] != other.dim[i] && wide.dim[i] != 1 &&
            other.dim[i] != 1)
            return false;
        out->dim[i] = wide.dim[i] == 1 ? other.dim[i] : wide.dim[i];
    }
    return true;
}

Shape onnx_rank(const Shape *shape, uint32_t rank) {
    Shape out = {.rank = rank > shape->rank ? rank : shape->rank};
    uint32_t more = out.rank - shape->rank;
    for (uint32_t i = 0; i < out.rank; i++)
        out.dim[i] = i < more ? 1 : shape->dim[i - more];
    return out;
}

/* ---- one node each ---- */

TensorId onnx_reshape(Onnx *x, const OnnxNode *n, TensorId in, Shape shape) {
    if (!shape.rank)
        shape = (Shape){1, {1}};
    if (in.i != NONE && shape_equal(onnx_shape(x, in), &shape))
        return in;
    NodeId id = add_one(x, n, OP_RESHAPE, "shape", in);
    node_of(x, id)->attr.reshape = shape;
    return onnx_end(x, id);
}

TensorId onnx_act(Onnx *x, const OnnxNode *n, TensorId in, Act act) {
    NodeId id = add_one(x, n, OP_ACT, act_name[act.kind], in);
    node_of(x, id)->act = act;
    return onnx_end(x, id);
}

TensorId onnx_binary(Onnx *x, const OnnxNode *n, EltKind kind, TensorId a,
                     TensorId b) {
    if (a.i == NONE || b.i == NONE)
        return NO_TENSOR;
    uint32_t rank = onnx_shape(x, a)->rank, other = onnx_shape(x, b)->rank;
    a = onnx_reshape(x, n, a, onnx_rank(onnx_shape(x, a), other));
    b = onnx_reshape(x, n, b, onnx_rank(onnx_shape(x, b), rank));
    NodeId id =
        onnx_add(x, n, OP_ELTWISE, elt_name[kind], 2, (TensorId[]){a, b});
    node_of(x, id)->attr.elt.kind = kind;
    return onnx_end(x, id);
}

TensorId onnx_transpose(Onnx *x, const OnnxNode *n, TensorId in,
                        const uint32_t *perm) {
    NodeId id = add_one(x, n, OP_TRANSPOSE, "transpose", in);
    Shape *to = &node_of(x, id)->attr.perm;
    to->rank = in.i == NONE ? 0 : onnx_shape(x, in)->rank;
    memcpy(to->dim, perm, to->rank * sizeof *perm);
    return onnx_end(x, id);
}

TensorId onnx_reduce(Onnx *x, const OnnxNode *n, TensorId in, ReduceKind kind,
                     uint32_t axes) {
    NodeId id = add_one(x, n, OP_REDUCE, reduce_name[kind], in);
    node_of(x, id)->attr.reduce.kind = kind;
    node_of(x, id)->attr.reduce.axes = axes;
    return onnx_end(x, id);
}

TensorId onnx_slice(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                    uint32_t begin, uint32_t end) {
    NodeId id = add_one(x, n, OP_SLICE, "slice", in);
    Attrs *attr = &node_of(x, id)->attr;
    attr->slice.axis = axis;
    attr->slice.begin = begin;
    attr->slice.end = end;
    return onnx_end(x, id);
}

TensorId onnx_gather(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                     uint32_t count, uint32_t taps, const double *index,
                     const double *factor) {
    NodeId id = add_one(x, n, OP_GATHER, "gather", in);
    Attrs *attr = &node_of(x, id)->attr;
    attr->gather.axis = axis;
    attr->gather.n = count;
    attr->gather.taps = taps;
    Shape shape = {2, {count, taps}};
    onnx_give(x, id, CONST_INDEX, onnx_values(shape, index));
    onnx_give(x, id, CONST_VALUE,
              factor ? onnx_values(shape, factor) : onnx_fill(shape, 1));
    return onnx_end(x, id);
}

TensorId onnx_scale(Onnx *x, const OnnxNode *n, TensorId in, const Const *a,
                    const Const *b) {
    NodeId id = add_one(x, n, OP_SCALE, "scale", in);
    if (id.i == NONE)
        return NO_TENSOR;
    Shape channels = {1, {shape_dim(onnx_shape(x, in), 1)}};
    Const one = onnx_fill(channels, 1);
    onnx_give(x, id, CONST_SCALE,
              onnx_const_reshaped(x, a ? a : &one, &channels));
    graph_node(x->graph, id)->no_bias = !b;
    if (b)
        onnx_give(x, id, CONST_BIAS, onnx_const_reshaped(x, b, &channels));
    return onnx_end(x, id);
}

TensorId onnx_norm(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                   double eps) {
    NodeId id = add_one(x, n, OP_NORM, "norm", in);
    node_of(x, id)->attr.norm.axis = axis;
    node_of(x, id)->attr.norm.eps = eps;
    return onnx_end(x, id);
}

TensorId onnx_constant(Onnx *x, const OnnxNode *n, Const constant) {
    NodeId id = onnx_add(x, n, OP_CONSTANT, "constant", 0, NULL);
    graph_node(x->graph, id)->attr.reshape = constant.shape;
    onnx_give(x, id, CONST_VALUE, constant);
    return onnx_end(x, id);
}

/* ---- codes ---- */

static TensorId number(Onnx *x, const OnnxNode *n, double value) {
    return onnx_constant(x, n, onnx_fill((Shape){1, {1}}, value));
}

/* Codes as numbers: the division gives whole ones exactly. */
TensorId onnx_plain(Onnx *x, OnnxValue *value) {
    if (value->plain.i != NONE)
        return value->plain;
    Quant q = graph_tensor(x->graph, value->tensor)->quant;
    OnnxNode n = {.name = value->name, .loc = {x->path, 0, 0}};
    TensorId out =
        onnx_binary(x, &n, ELT_DIV, value->tensor, number(x, &n, q.scale));
    if (q.zero)
        out = onnx_binary(x, &n, ELT_ADD, out, number(x, &n, q.zero));
    value->plain = out;
    return out;
}

/* ---- padding of any axes ---- */

static TensorId pad_plane(Onnx *x, const OnnxNode *n, TensorId in,
                          const uint32_t before[2], const uint32_t behind[2],
                          double value) {
    NodeId id = add_one(x, n, OP_PAD, "pad", in);
    Attrs *attr = &node_of(x, id)->attr;
    for (int i = 0; i < 2; i++) {
        attr->pad.before[i] = before[i];
        attr->pad.behind[i] = behind[i];
    }
    attr->pad.value = value;
    return onnx_end(x, id);
}

/* One axis, as the rows of a volume that holds all others in order. */
static TensorId pad_axis(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                         uint32_t before, uint32_t behind, double value) {
    if (in.i == NONE)
        return NO_TENSOR;
    Shape whole = *onnx_shape(x, in), rows = {4, {1, 1, 1, 1}};
    for (uint32_t i = 0; i < whole.rank; i++)
        rows.dim[i < axis ? 1 : i == axis ? 2 : 3] *= whole.dim[i];
    in = onnx_reshape(x, n, in, rows);
    in = pad_plane(x, n, in, (uint32_t[]){before, 0}, (uint32_t[]){behind, 0},
                   value);
    whole.dim[axis] += before + behind;
    return onnx_reshape(x, n, in, whole);
}

TensorId onnx_pad(Onnx *x, const OnnxNode *n, TensorId in,
                  const uint32_t *before, const uint32_t *behind,
                  double value) {
    uint32_t rank = in.i == NONE ? 0 : onnx_shape(x, in)->rank, axis = 0;
    for (; axis < (rank == 4 ? 2 : rank); axis++)
        if (before[axis] + behind[axis])
            in = pad_axis(x, n, in, axis, before[axis], behind[axis], value);
    if (axis < rank && before[2] + behind[2] + before[3] + behind[3])
        in = pad_plane(x, n, in, before + 2, behind + 2, value);
    return in;
}
