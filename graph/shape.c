/* shape.c - shape inference: one function an operator, in a table.
 *
 * In: a node whose inputs have shapes. Out: the shape of its output, or an
 * error at the layer's place. Everything that a hostile file could break is
 * checked here, so that later stages need not: afterwards attributes are in
 * range, sizes fit in 32 bits and constants have the shapes of graph.h.
 */
#include "graph/shape.h"

#include <assert.h>
#include <inttypes.h>

/* Kernels, strides, dilations, pads and factors above this are refused: the
 * extent of a dilated kernel then fits in 32 bits. */
enum { ATTR_MAX = 1 << 16 };

bool shape_fail(const Infer *x, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *why = arena_vprintf(x->g->arena, format, args);
    va_end(args);
    diag_error(x->diag, x->node->loc, "layer \"%s\": %s", x->node->name, why);
    return false;
}

static const char *text(const Infer *x, const Shape *shape) {
    return shape_text(x->g->arena, shape);
}

/* ---- windows ---- */

uint32_t conv_out_size(uint32_t in, uint32_t kernel, uint32_t stride,
                       uint32_t dilation, uint32_t pad, uint32_t pad_end) {
    uint64_t padded = (uint64_t)in + pad + pad_end;
    uint64_t extent = (uint64_t)dilation * (kernel - 1) + 1;
    if (extent > padded)
        return 0;
    return (uint32_t)((padded - extent) / stride + 1);
}

uint32_t pool_out_size(const PoolAttr *pool, uint32_t axis, uint32_t in) {
    if (pool->global)
        return 1;
    uint64_t stride = pool->stride[axis], kernel = pool->kernel[axis];
    uint64_t padded = (uint64_t)in + pool->pad[axis] + pool->pad_end[axis];
    uint64_t reach = padded + (pool->ceil ? stride - 1 : 0);
    if (kernel > reach)
        return 0;
    uint64_t out = (reach - kernel) / stride + 1;
    if (pool->ceil && (out - 1) * stride >= (uint64_t)in + pool->pad[axis])
        out--;
    return (uint32_t)out;
}

/* One attribute of both axes within [min, ATTR_MAX]. */
static bool in_range(const Infer *x, const char *what, const uint32_t value[2],
                     uint32_t min) {
    for (int axis = 0; axis < 2; axis++)
        if (value[axis] < min || value[axis] > ATTR_MAX)
            return shape_fail(x, "%s %u is outside %u..%d", what, value[axis],
                              min, ATTR_MAX);
    return true;
}

bool shape_check_size(const Infer *x, const char *what, const Shape *shape) {
    if (shape_count(shape) < SHAPE_MAX_COUNT)
        return true;
    return shape_fail(x, "%s of %s is too large", what, text(x, shape));
}

static bool need_volume(const Infer *x) {
    if (x->in.rank == 4)
        return true;
    return shape_fail(x, "needs an input N x C x H x W, not %s",
                      text(x, &x->in));
}

static bool need_axis(const Infer *x, uint32_t axis) {
    if (axis < x->in.rank)
        return true;
    return shape_fail(x, "axis %u is outside its input %s", axis,
                      text(x, &x->in));
}

bool shape_need_groups(const Infer *x, uint32_t axis, uint32_t groups) {
    if (!groups || x->in.dim[axis] % groups == 0)
        return true;
    return shape_fail(x, "axis %u of its input %s is not %u groups", axis,
                      text(x, &x->in), groups);
}

/* ---- convolutions ---- */

static bool conv_attributes(const Infer *x, uint32_t in_c) {
    const ConvAttr *a = &x->node->attr.conv;
    if (!in_range(x, "kernel", a->kernel, 1) ||
        !in_range(x, "stride", a->stride, 1) ||
        !in_range(x, "dilation", a->dilation, 1) ||
        !in_range(x, "pad", a->pad, 0) || !in_range(x, "pad", a->pad_end, 0))
        return false;
    if (!a->out_c)
        return shape_fail(x, "convolution has no output channels");
    if (!a->groups || in_c % a->groups || a->out_c % a->groups)
        return shape_fail(
            x, "%u groups do not divide %u input and %u output channels",
            a->groups, in_c, a->out_c);
    return true;
}

static bool kernel_too_large(const Infer *x, const char *what,
                             const uint32_t extent[2], const uint32_t pad[2],
                             const uint32_t pad_end[2], const Shape *in) {
    return shape_fail(x, "%s %ux%u is larger than its padded input %ux%u", what,
                      extent[0], extent[1], in->dim[2] + pad[0] + pad_end[0],
                      in->dim[3] + pad[1] + pad_end[1]);
}

static bool conv_shape(const Infer *x, Shape *out) {
    const ConvAttr *a = &x->node->attr.conv;
    if (!need_volume(x) || !conv_attributes(x, x->in.dim[1]))
        return false;
    *out = shape_nchw(x->in.dim[0], a->out_c, 0, 0);
    uint32_t extent[2];
    bool dilated = false, fits = true;
    for (int i = 0; i < 2; i++) {
        extent[i] = a->dilation[i] * (a->kernel[i] - 1) + 1;
        dilated |= a->kernel[i] > 1 && a->dilation[i] > 1;
        out->dim[2 + i] =
            conv_out_size(x->in.dim[2 + i], a->kernel[i], a->stride[i],
                          a->dilation[i], a->pad[i], a->pad_end[i]);
        fits &= out->dim[2 + i] > 0;
    }
    if (!fits)
        return kernel_too_large(x, dilated ? "dilated kernel" : "kernel",
                                extent, a->pad, a->pad_end, &x->in);
    return shape_check_size(x, "output", out);
}

static bool infer_conv(const Infer *x) {
    return conv_shape(x, x->out);
}

static bool infer_deconv(const Infer *x) {
    const ConvAttr *a = &x->node->attr.conv;
    if (!need_volume(x) || !conv_attributes(x, x->in.dim[1]))
        return false;
    *x->out = shape_nchw(x->in.dim[0], a->out_c, 0, 0);
    for (int i = 0; i < 2; i++) {
        uint64_t whole = (uint64_t)a->stride[i] * (x->in.dim[2 + i] - 1) +
                         (uint64_t)a->dilation[i] * (a->kernel[i] - 1) + 1;
        uint64_t cut = (uint64_t)a->pad[i] + a->pad_end[i];
        if (whole <= cut)
            return shape_fail(x,
                              "pads of %" PRIu64 " leave nothing of %" PRIu64
                              " rows or columns",
                              cut, whole);
        if (whole - cut > INT32_MAX)
            return shape_fail(x, "output is too large");
        x->out->dim[2 + i] = (uint32_t)(whole - cut);
    }
    return shape_check_size(x, "output", x->out);
}

/* ---- pooling ---- */

static bool pool_attributes(const Infer *x) {
    const PoolAttr *a = &x->node->attr.pool;
    if (a->kind >= POOL_COUNT)
        return shape_fail(x, "pooling of kind %d is not known", (int)a->kind);
    if (a->global)
        return true;
    if (!in_range(x, "kernel", a->kernel, 1) ||
        !in_range(x, "stride", a->stride, 1) ||
        !in_range(x, "pad", a->pad, 0) || !in_range(x, "pad", a->pad_end, 0))
        return false;
    for (int i = 0; i < 2; i++)
        if (a->pad[i] >= a->kernel[i] || a->pad_end[i] >= a->kernel[i])
            return shape_fail(
                x, "pad %u is not smaller than the pooling kernel %u",
                a->pad[i] > a->pad_end[i] ? a->pad[i] : a->pad_end[i],
                a->kernel[i]);
    return true;
}

static bool pool_shape(const Infer *x, const Shape *in, Shape *out) {
    const PoolAttr *a = &x->node->attr.pool;
    if (!pool_attributes(x))
        return false;
    *out = *in;
    bool fits = true;
    for (uint32_t i = 0; i < 2; i++) {
        out->dim[2 + i] = pool_out_size(a, i, in->dim[2 + i]);
        fits &= out->dim[2 + i] > 0;
    }
    if (!fits)
        return kernel_too_large(x, "pooling kernel", a->kernel, a->pad,
                                a->pad_end, in);
    return shape_check_size(x, "output", out);
}

static bool infer_pool(const Infer *x) {
    return need_volume(x) && pool_shape(x, &x->in, x->out);
}

static bool infer_conv_pool(const Infer *x) {
    Shape conv;
    return conv_shape(x, &conv) && pool_shape(x, &conv, x->out);
}

/* ---- inputs, and operators that keep the shape ---- */

static bool infer_input(const Infer *x) {
    *x->out = graph_tensor(x->g, x->node->out[0])->shape;
    if (x->out->rank == 0 || x->out->rank > SHAPE_MAX_RANK)
        return shape_fail(x, "an input needs 1 to %d dimensions",
                          SHAPE_MAX_RANK);
    for (uint32_t i = 0; i < x->out->rank; i++)
        if (!x->out->dim[i])
            return shape_fail(x, "input of %s is empty", text(x, x->out));
    return shape_check_size(x, "input", x->out);
}

static bool infer_same(const Infer *x) {
    *x->out = x->in;
    return true;
}

static bool infer_bn(const Infer *x) {
    if (!(x->node->attr.bn.eps >= 0 && x->node->attr.bn.eps < 1e30))
        return shape_fail(x, "epsilon %g is not a number from 0 up",
                          x->node->attr.bn.eps);
    return infer_same(x);
}

static bool infer_lrn(const Infer *x) {
    const LrnAttr *a = &x->node->attr.lrn;
    if (a->size < 1 || a->size > ATTR_MAX)
        return shape_fail(x, "size %u is outside 1..%d", a->size, ATTR_MAX);
    if (a->within_channel && a->size % 2 == 0)
        return shape_fail(x, "size %u within a channel must be odd", a->size);
    return need_volume(x) && infer_same(x);
}

static bool infer_softmax(const Infer *x) {
    return need_axis(x, x->node->attr.axis.axis) &&
           shape_need_groups(x, x->node->attr.axis.axis,
                             x->node->attr.axis.groups) &&
           infer_same(x);
}

/* ---- operators of several inputs ---- */

static const Shape *input_shape(const Infer *x, uint32_t k) {
    return &graph_tensor(x->g, x->node->in[k])->shape;
}

static const char *input_layer(const Infer *x, uint32_t k) {
    NodeId producer = graph_tensor(x->g, x->node->in[k])->producer;
    return graph_node(x->g, producer)->name;
}

static bool misfit(const Infer *x, uint32_t a, uint32_t b, const char *why) {
    return shape_fail(x,
                      "inputs from layer \"%s\" (%s) and layer \"%s\" (%s) %s",
                      input_layer(x, a), text(x, input_shape(x, a)),
                      input_layer(x, b), text(x, input_shape(x, b)), why);
}

static bool infer_eltwise(const Infer *x) {
    const EltAttr *a = &x->node->attr.elt;
    if (a->kind >= ELT_COUNT)
        return shape_fail(x, "element-wise kind %d is not known", (int)a->kind);
    if (a->coeff && a->kind != ELT_ADD)
        return shape_fail(x, "coefficients go with a sum, not with \"%s\"",
                          elt_name[a->kind]);
    *x->out = x->in;
    for (uint32_t k = 1; k < x->node->n_in; k++) {
        const Shape *in = input_shape(x, k);
        if (in->rank != x->out->rank)
            return misfit(x, 0, k, "have different ranks");
        for (uint32_t i = 0; i < in->rank; i++) {
            uint32_t *dim = &x->out->dim[i];
            if (*dim != in->dim[i] && *dim != 1 && in->dim[i] != 1)
                return misfit(x, 0, k, "have different shapes");
            if (*dim == 1)
                *dim = in->dim[i];
        }
    }
    return shape_check_size(x, "output", x->out);
}

static bool infer_concat(const Infer *x) {
    uint32_t axis = x->node->attr.axis.axis;
    if (!need_axis(x, axis))
        return false;
    *x->out = x->in;
    for (uint32_t k = 1; k < x->node->n_in; k++) {
        Shape in = *input_shape(x, k);
        uint64_t whole = (uint64_t)x->out->dim[axis] + shape_dim(&in, axis);
        if (axis < in.rank)
            in.dim[axis] = x->out->dim[axis];
        if (!shape_equal(&in, x->out))
            return misfit(x, 0, k, "differ beside the axis of concatenation");
        if (whole > INT32_MAX)
            return shape_fail(x, "output is too large");
        x->out->dim[axis] = (uint32_t)whole;
    }
    return shape_check_size(x, "output", x->out);
}

/* ---- operators that change the shape ---- */

static bool infer_fc(const Infer *x) {
    uint32_t n = x->in.dim[0], out = x->node->attr.fc.out;
    if (!out)
        return shape_fail(x, "inner product has no outputs");
    *x->out = (Shape){2, {n, out}};
    return shape_check_size(x, "output", x->out);
}

static bool infer_slice(const Infer *x) {
    uint32_t axis = x->node->attr.slice.axis;
    uint32_t begin = x->node->attr.slice.begin, end = x->node->attr.slice.end;
    if (!need_axis(x, axis))
        return false;
    if (begin >= end || end > x->in.dim[axis])
        return shape_fail(x,
                          "slice [%u, %u) is outside axis %u of its input %s",
                          begin, end, axis, text(x, &x->in));
    *x->out = x->in;
    x->out->dim[axis] = end - begin;
    return true;
}

static bool infer_upsample(const Infer *x) {
    const uint32_t *factor = x->node->attr.up.factor;
    if (!need_volume(x) || !in_range(x, "factor", factor, 1))
        return false;
    *x->out = x->in;
    for (int i = 0; i < 2; i++) {
        uint64_t size = (uint64_t)x->in.dim[2 + i] * factor[i];
        if (size > INT32_MAX)
            return shape_fail(x, "output is too large");
        x->out->dim[2 + i] = (uint32_t)size;
    }
    return shape_check_size(x, "output", x->out);
}

static bool infer_pad(const Infer *x) {
    const Node *node = x->node;
    if (!need_volume(x) || !in_range(x, "pad", node->attr.pad.before, 0) ||
        !in_range(x, "pad", node->attr.pad.behind, 0))
        return false;
    *x->out = x->in;
    for (int i = 0; i < 2; i++)
        x->out->dim[2 + i] +=
            node->attr.pad.before[i] + node->attr.pad.behind[i];
    return shape_check_size(x, "output", x->out);
}

static bool infer_reshape(const Infer *x) {
    const Shape *to = &x->node->attr.reshape;
    if (to->rank == 0 || to->rank > SHAPE_MAX_RANK)
        return shape_fail(x, "a shape needs 1 to %d dimensions",
                          SHAPE_MAX_RANK);
    if (shape_count(to) != shape_count(&x->in))
        return shape_fail(x, "%s does not have the elements of its input %s",
                          text(x, to), text(x, &x->in));
    *x->out = *to;
    return true;
}

#define infer_scale infer_same
#define infer_act infer_same
#define infer_identity infer_same

static bool (*const infer_op[OP_COUNT])(const Infer *) = {
#define OP(NAME, name, min, max, doc) [OP_##NAME] = infer_##name,
#include "graph/ops.def"
#undef OP
};

/* ---- constants and activations ---- */

static bool weight_shape(const Node *node, const Shape *in, Shape *out) {
    const ConvAttr *a = &node->attr.conv;
    uint32_t in_c = shape_dim(in, 1), kh = a->kernel[0], kw = a->kernel[1];
    switch (node->op) {
    case OP_CONV:
    case OP_CONV_POOL:
        *out = shape_nchw(a->out_c, in_c / a->groups, kh, kw);
        return true;
    case OP_DECONV:
        *out = shape_nchw(in_c, a->out_c / a->groups, kh, kw);
        return true;
    case OP_FC:
        *out = (Shape){
            2, {node->attr.fc.out, (uint32_t)(shape_count(in) / in->dim[0])}};
        return true;
    default:
        return false;
    }
}

/* Channels behind the operator, where biases and slopes are added: of the
 * convolution in CONV_POOL, whose pool keeps them. */
static uint32_t out_channels(const Node *node, const Shape *in) {
    switch (node->op) {
    case OP_CONV:
    case OP_CONV_POOL:
    case OP_DECONV:
        return node->attr.conv.out_c;
    case OP_FC:
        return node->attr.fc.out;
    default:
        return shape_dim(in, 1);
    }
}

static bool has_constant(const Node *node, ConstRole role) {
    static const uint32_t by_op[OP_COUNT] = {
        [OP_CONV] = 1u << CONST_WEIGHT | 1u << CONST_BIAS,
        [OP_CONV_POOL] = 1u << CONST_WEIGHT | 1u << CONST_BIAS,
        [OP_DECONV] = 1u << CONST_WEIGHT | 1u << CONST_BIAS,
        [OP_FC] = 1u << CONST_WEIGHT | 1u << CONST_BIAS,
        [OP_BN] = 1u << CONST_MEAN | 1u << CONST_VAR,
        [OP_SCALE] = 1u << CONST_SCALE | 1u << CONST_BIAS,
        [OP_CONSTANT] = 1u << CONST_VALUE,
        [OP_CALL] = 1u << CONST_VALUE,
        [OP_OFFSET] = 1u << CONST_VALUE,
        [OP_PIXELS] = 1u << CONST_INDEX,
        [OP_GATHER] = 1u << CONST_VALUE | 1u << CONST_INDEX,
    };
    if (role == CONST_SLOPE)
        return node->act.kind == ACT_PRELU;
    if (node->op == OP_INPUT) /* which starts at zeros without one */
        return role == CONST_VALUE && node->constant[role].i != NONE;
    return by_op[node->op] >> role & 1;
}

bool shape_of_const(const Graph *g, const Node *node, ConstRole role,
                    Shape *out) {
    if (!has_constant(node, role))
        return false;
    if (node->op == OP_CONSTANT ||
        (node->op == OP_OFFSET && role == CONST_VALUE)) {
        *out = node->attr.reshape;
        return true;
    }
    if (node->op == OP_CALL) {
        *out = node->attr.call.shape;
        return true;
    }
    if (node->op == OP_INPUT) {
        *out = graph_tensor(g, node->out[0])->shape;
        return true;
    }
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    if (node->op == OP_GATHER && role != CONST_SLOPE) {
        *out = (Shape){2, {node->attr.gather.n, node->attr.gather.taps}};
        return true;
    }
    if (role == CONST_INDEX) {
        *out = (Shape){1, {node->attr.plane[0] * node->attr.plane[1]}};
        return true;
    }
    if (role == CONST_WEIGHT)
        return weight_shape(node, in, out);
    *out = (Shape){1, {out_channels(node, in)}};
    return true;
}

bool graph_const_shape(const Graph *g, NodeId node, ConstRole role,
                       Shape *out) {
    return shape_of_const(g, graph_node(g, node), role, out);
}

static bool check_constants(const Infer *x) {
    for (ConstRole role = 0; role < CONST_ROLES; role++) {
        ConstId id = x->node->constant[role];
        Shape want;
        bool has = shape_of_const(x->g, x->node, role, &want);
        if (has && !shape_check_size(x, const_role_name[role], &want))
            return false;
        if (id.i == NONE)
            continue;
        const Shape *is = &graph_const(x->g, id)->shape;
        if (!has)
            return shape_fail(x, "an operator \"%s\" has no constant \"%s\"",
                              op_info[x->node->op].name, const_role_name[role]);
        if (!shape_equal(is, &want))
            return shape_fail(x, "its %s has shape %s, not %s",
                              const_role_name[role], text(x, is),
                              text(x, &want));
    }
    return true;
}

static bool check_activation(const Infer *x) {
    const Act *act = &x->node->act;
    OpKind op = x->node->op;
    if (act->kind >= ACT_COUNT || (op == OP_ACT && act->kind == ACT_NONE))
        return shape_fail(x, "activation of kind %d is not known",
                          (int)act->kind);
    if (act->kind != ACT_NONE &&
        (op == OP_INPUT || op == OP_CONSTANT || op == OP_CALL ||
         op == OP_ROUTINE || op == OP_LRN))
        return shape_fail(x,
                          "no activation can be fused into an operator \"%s\"",
                          op_info[op].name);
    if (act->kind == ACT_CLIP && !(act->lo <= act->hi))
        return shape_fail(x, "clips to [%g, %g], which is empty", act->lo,
                          act->hi);
    return true;
}

static bool check_arity(const Infer *x) {
    const OpInfo *info = &op_info[x->node->op];
    if (x->node->n_in >= info->min_in && x->node->n_in <= info->max_in)
        return true;
    if (info->min_in == info->max_in)
        return shape_fail(x, "has %u inputs, not %u", x->node->n_in,
                          info->min_in);
    return shape_fail(x, "has %u inputs, not %u to %u", x->node->n_in,
                      info->min_in, info->max_in);
}

bool shape_infer(const Graph *g, const Node *node, Diag *diag, Shape *out) {
    Infer x = {.g = g, .node = node, .diag = diag, .out = out};
    if (!check_arity(&x))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (!input_shape(&x, k)->rank)
            return shape_fail(&x,
                              "the shape of its input from layer \"%s\" is not "
                              "known",
                              input_layer(&x, k));
    if (node->n_in)
        x.in = *input_shape(&x, 0);
    return infer_op[node->op](&x) && check_activation(&x) &&
           check_constants(&x);
}

bool graph_infer(const Graph *g, NodeId id, Diag *diag) {
    const Node *node = graph_node(g, id);
    Shape out;
    assert(node->n_out > 0);
    bool good = shape_infer(g, node, diag, &out);
    for (uint32_t i = 0; good && i < node->n_out; i++)
        graph_tensor(g, node->out[i])->shape = out;
    return good;
}

static void forget_shapes(Graph *g) {
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        for (uint32_t o = 0; node->op != OP_INPUT && o < node->n_out; o++)
            graph_tensor(g, node->out[o])->shape.rank = 0;
    }
}

static bool inputs_known(const Graph *g, const Node *node) {
    for (uint32_t k = 0; k < node->n_in; k++)
        if (!graph_tensor(g, node->in[k])->shape.rank)
            return false;
    return true;
}

/* Layers behind a wrong one are passed over: one mistake, one message. */
bool graph_infer_all(Graph *g, Diag *diag) {
    bool good = true;
    forget_shapes(g);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (!node->dead && (good || inputs_known(g, node)))
            good &= graph_infer(g, (NodeId){i}, diag);
    }
    return good;
}
