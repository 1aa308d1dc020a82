/* writer.c - graphs on codes as ONNX, with QuantizeLinear and DequantizeLinear
 * around operators on real numbers (QDQ).
 *
 * In: a graph whose tensors may be quantised. Out: the bytes of a model. A
 * quantised tensor T is written as T/float -> QuantizeLinear -> T/codes, with a
 * DequantizeLinear for each reader (runtimes fuse a layer only with inputs of
 * its own); T itself is what comes in or goes out of the network. Weights and
 * biases are their codes behind a DequantizeLinear. A bound that codes do not
 * give by their ends alone is a layer of its own between codes, so that a
 * runtime sees DequantizeLinear, the layer, QuantizeLinear in all places, which
 * it may fuse to integers with the same result.
 */
#include "frontends/frontend.h"
#include "frontends/onnx/qdq.h"

#include <math.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET = 14, OPSET_WIDE = 21 };

/* ---- operators ---- */

static void put_windows(const Writer *w, Op *op, const ConvAttr *a) {
    qdq_pair(w, op, "kernel_shape", a->kernel);
    qdq_pair(w, op, "strides", a->stride);
    qdq_pair(w, op, "dilations", a->dilation);
    qdq_ints(
        w, op, "pads", 4,
        (const int64_t[]){a->pad[0], a->pad[1], a->pad_end[0], a->pad_end[1]});
    qdq_int(w, op, "group", a->groups);
}

static void put_conv(Writer *w, const Node *node, const char *out) {
    bool back = node->op == OP_DECONV;
    const char *name = qdq_name(w, node->out[0]);
    ConstId bias = node->constant[CONST_BIAS];
    const char *in[3] = {
        qdq_read(w, node->in[0]),
        qdq_const(w, qdq_part(w, name, "weight"),
                  graph_const(w->g, node->constant[CONST_WEIGHT]), back)};
    if (bias.i != NONE)
        in[2] =
            qdq_const(w, qdq_part(w, name, "bias"), graph_const(w->g, bias), 0);
    Op op = qdq_op(w, bias.i != NONE ? 3 : 2, in);
    put_windows(w, &op, &node->attr.conv);
    qdq_end(w, &op, back ? "ConvTranspose" : "Conv", out);
}

/* Weights [out, in] as [in, out]: runtimes have scales by column of these. */
static const Const *turned(const Writer *w, const Const *c) {
    uint64_t rows = c->shape.dim[0], columns = c->shape.dim[1];
    Const plain = const_codes(c), *out = ARENA_NEW(w->arena, Const);
    double *value = ARENA_ARRAY(w->arena, double, rows *columns);
    bool codes = c->kind >= CONST_I8 && !c->mul1;
    const_read_f64(codes ? &plain : c, value);
    *out = (Const){.shape = {2, {c->shape.dim[1], c->shape.dim[0]}},
                   .kind = codes ? c->kind : CONST_F64,
                   .zero = codes ? c->zero : 0,
                   .mul1 = codes ? c->mul0 : NULL};
    size_t size = !codes ? 8 : c->kind == CONST_I16 ? 2 : 1;
    uint8_t *raw = ARENA_ARRAY(w->arena, uint8_t, rows * columns * size);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t k = 0; k < columns; k++) {
            double v = value[r * columns + k];
            int32_t code = (int32_t)v + c->zero;
            memcpy(raw + (k * rows + r) * size,
                   codes ? (const void *)&code : (const void *)&v, size);
        }
    out->data = raw;
    return out;
}

static void put_fc(Writer *w, const Node *node, const char *out) {
    const char *name = qdq_name(w, node->out[0]);
    const Shape *shape = &graph_tensor(w->g, node->in[0])->shape;
    ConstId bias = node->constant[CONST_BIAS];
    const char *in[3] = {qdq_read(w, node->in[0])};
    if (shape->rank != 2) {
        Op flat = qdq_op(w, 1, in);
        qdq_int(w, &flat, "axis", 1);
        in[0] = qdq_moved(w, node, 0, &flat, "Flatten");
    }
    in[1] = qdq_const(
        w, qdq_part(w, name, "weight"),
        turned(w, graph_const(w->g, node->constant[CONST_WEIGHT])), 1);
    if (bias.i != NONE)
        in[2] =
            qdq_const(w, qdq_part(w, name, "bias"), graph_const(w->g, bias), 0);
    Op op = qdq_op(w, bias.i != NONE ? 3 : 2, in);
    qdq_end(w, &op, "Gemm", out);
}

static bool is_whole(const Writer *w, const Node *node) {
    const PoolAttr *a = &node->attr.pool;
    const Shape *in = &graph_tensor(w->g, node->in[0])->shape;
    return a->global ||
           (a->kernel[0] == in->dim[2] && a->kernel[1] == in->dim[3] &&
            !a->pad[0] && !a->pad[1] && !a->pad_end[0] && !a->pad_end[1]);
}

static void put_pool(Writer *w, const Node *node, const char *out) {
    const PoolAttr *a = &node->attr.pool;
    bool max = a->kind == POOL_MAX;
    const char *in[] = {qdq_read(w, node->in[0])};
    Op op = qdq_op(w, 1, in);
    if (is_whole(w, node)) {
        qdq_end(w, &op, max ? "GlobalMaxPool" : "GlobalAveragePool", out);
        return;
    }
    qdq_pair(w, &op, "kernel_shape", a->kernel);
    qdq_pair(w, &op, "strides", a->stride);
    qdq_ints(
        w, &op, "pads", 4,
        (const int64_t[]){a->pad[0], a->pad[1], a->pad_end[0], a->pad_end[1]});
    qdq_int(w, &op, "ceil_mode", a->ceil);
    if (!max)
        qdq_int(w, &op, "count_include_pad", a->count_pad);
    qdq_end(w, &op, max ? "MaxPool" : "AveragePool", out);
}

static void refuse(Writer *w, const Node *node) {
    diag_error(w->diag, node->loc,
               "layer \"%s\" (%s) cannot be written as ONNX", node->name,
               op_info[node->op].name);
    w->ok = false;
}

static void put_elt(Writer *w, const Node *node, const char *out) {
    static const char *const kind[ELT_COUNT] = {
        [ELT_ADD] = "Add", [ELT_SUB] = "Sub", [ELT_MUL] = "Mul",
        [ELT_DIV] = "Div", [ELT_MAX] = "Max", [ELT_MIN] = "Min"};
    const char *name = kind[node->attr.elt.kind];
    bool many =
        node->attr.elt.kind == ELT_MAX || node->attr.elt.kind == ELT_MIN;
    if (!name || node->attr.elt.coeff || (node->n_in > 2 && !many)) {
        refuse(w, node);
        return;
    }
    const char **in = ARENA_ARRAY(w->arena, const char *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = qdq_read(w, node->in[k]);
    Op op = qdq_op(w, node->n_in, in);
    qdq_end(w, &op, name, out);
}

static void put_concat(Writer *w, const Node *node, const char *out) {
    const char **in = ARENA_ARRAY(w->arena, const char *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = qdq_read(w, node->in[k]);
    Op op = qdq_op(w, node->n_in, in);
    qdq_int(w, &op, "axis", node->attr.axis.axis);
    qdq_end(w, &op, "Concat", out);
}

static void put_softmax(Writer *w, const Node *node, const char *out) {
    const char *in[] = {qdq_read(w, node->in[0])};
    Op op = qdq_op(w, 1, in);
    qdq_int(w, &op, "axis", node->attr.axis.axis);
    qdq_end(w, &op, "Softmax", out);
}

static void put_reshape(Writer *w, const Node *node, const char *out) {
    const Shape *shape = &graph_tensor(w->g, node->out[0])->shape;
    int64_t dim[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < shape->rank; i++)
        dim[i] = shape->dim[i];
    const char *in[] = {
        qdq_read(w, node->in[0]),
        qdq_const_ints(w, qdq_part(w, qdq_name(w, node->out[0]), "shape"),
                       shape->rank, dim)};
    Op op = qdq_op(w, 2, in);
    qdq_end(w, &op, "Reshape", out);
}

static void put_transpose(Writer *w, const Node *node, const char *out) {
    int64_t perm[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < node->attr.perm.rank; i++)
        perm[i] = node->attr.perm.dim[i];
    const char *in[] = {qdq_read(w, node->in[0])};
    Op op = qdq_op(w, 1, in);
    qdq_ints(w, &op, "perm", node->attr.perm.rank, perm);
    qdq_end(w, &op, "Transpose", out);
}

static void put_slice(Writer *w, const Node *node, const char *out) {
    const char *name = qdq_name(w, node->out[0]);
    const char *in[] = {
        qdq_read(w, node->in[0]),
        qdq_const_ints(w, qdq_part(w, name, "begin"), 1,
                       (const int64_t[]){node->attr.slice.begin}),
        qdq_const_ints(w, qdq_part(w, name, "end"), 1,
                       (const int64_t[]){node->attr.slice.end}),
        qdq_const_ints(w, qdq_part(w, name, "axis"), 1,
                       (const int64_t[]){node->attr.slice.axis})};
    Op op = qdq_op(w, 4, in);
    qdq_end(w, &op, "Slice", out);
}

static void put_upsample(Writer *w, const Node *node, const char *out) {
    const char *name = qdq_name(w, node->out[0]);
    const float scale[] = {1, 1, (float)node->attr.up.factor[0],
                           (float)node->attr.up.factor[1]};
    const char *in[] = {qdq_read(w, node->in[0]), "",
                        qdq_part(w, name, "scales")};
    qdq_tensor(w, in[2], ONNX_FLOAT, &(Shape){1, {4}}, scale, sizeof scale);
    Op op = qdq_op(w, 3, in);
    qdq_string(w, &op, "mode", "nearest");
    qdq_string(w, &op, "coordinate_transformation_mode", "asymmetric");
    qdq_string(w, &op, "nearest_mode", "floor");
    qdq_end(w, &op, "Resize", out);
}

static void put_surround(Writer *w, const Node *node, const char *out) {
    const char *name = qdq_name(w, node->out[0]);
    const uint32_t *before = node->attr.pad.before;
    const uint32_t *behind = node->attr.pad.behind;
    const char *in[] = {
        qdq_read(w, node->in[0]),
        qdq_const_ints(w, qdq_part(w, name, "pads"), 8,
                       (const int64_t[]){0, 0, before[0], before[1], 0, 0,
                                         behind[0], behind[1]}),
        qdq_const_float(w, qdq_part(w, name, "value"), node->attr.pad.value)};
    Op op = qdq_op(w, 3, in);
    qdq_end(w, &op, "Pad", out);
}

static void put_reduce(Writer *w, const Node *node, const char *out) {
    static const char *const kind[REDUCE_COUNT] = {
        [REDUCE_MEAN] = "ReduceMean", [REDUCE_SUM] = "ReduceSum",
        [REDUCE_MAX] = "ReduceMax",   [REDUCE_MIN] = "ReduceMin",
        [REDUCE_PROD] = "ReduceProd", [REDUCE_L1] = "ReduceL1",
        [REDUCE_L2] = "ReduceL2"};
    int64_t axis[SHAPE_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < SHAPE_MAX_RANK; i++)
        if (node->attr.reduce.axes >> i & 1)
            axis[n++] = i;
    if (!kind[node->attr.reduce.kind]) {
        refuse(w, node);
        return;
    }
    bool listed = w->wide || node->attr.reduce.kind == REDUCE_SUM;
    const char *in[2] = {qdq_read(w, node->in[0])};
    if (listed)
        in[1] = qdq_const_ints(
            w, qdq_part(w, qdq_name(w, node->out[0]), "axes"), n, axis);
    Op op = qdq_op(w, listed ? 2 : 1, in);
    if (!listed)
        qdq_ints(w, &op, "axes", n, axis);
    qdq_int(w, &op, "keepdims", 1);
    qdq_end(w, &op, kind[node->attr.reduce.kind], out);
}

static void put_plain(Writer *w, const Node *node, const char *kind,
                      const char *out) {
    const char **in = ARENA_ARRAY(w->arena, const char *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = qdq_read(w, node->in[k]);
    Op op = qdq_op(w, node->n_in, in);
    qdq_end(w, &op, kind, out);
}

static void put_constant(Writer *w, const Node *node, const char *out) {
    const Const *c = graph_const(w->g, node->constant[CONST_VALUE]);
    qdq_reals(w, qdq_part(w, out, "value"), c);
    const char *in[] = {qdq_part(w, out, "value")};
    Op op = qdq_op(w, 1, in);
    qdq_end(w, &op, "Identity", out);
}

/* ---- activations ---- */

/* Names of operators that are the activation; "" where it has attributes. */
static const char *const act_kind[ACT_COUNT] = {
    [ACT_RELU] = "Relu",         [ACT_SIGMOID] = "Sigmoid",
    [ACT_TANH] = "Tanh",         [ACT_SOFTPLUS] = "Softplus",
    [ACT_SOFTSIGN] = "Softsign", [ACT_HARD_SWISH] = "HardSwish",
    [ACT_ABS] = "Abs",           [ACT_NEG] = "Neg",
    [ACT_EXP] = "Exp",           [ACT_LOG] = "Log",
    [ACT_SQRT] = "Sqrt",         [ACT_RECIPROCAL] = "Reciprocal",
    [ACT_ERF] = "Erf",           [ACT_FLOOR] = "Floor",
    [ACT_CEIL] = "Ceil",         [ACT_SIGN] = "Sign",
    [ACT_LEAKY] = "LeakyRelu",   [ACT_ELU] = "Elu",
    [ACT_CLIP] = "Clip",         [ACT_RELU6] = "Clip",
    [ACT_PRELU] = "PRelu",       [ACT_HARD_SIGMOID] = "HardSigmoid",
    [ACT_SILU] = "Sigmoid"}; /* of which put_act makes a gate */

static const char *put_slope(Writer *w, const Node *node, const char *name) {
    Const c = *graph_const(w->g, node->constant[CONST_SLOPE]);
    uint32_t channels = c.shape.dim[0];
    if (channels > 1)
        c.shape = (Shape){3, {channels, 1, 1}};
    return qdq_reals(w, name, &c);
}

/* The activation of a node on `from`; `name`: for its constants. */
static void put_act(Writer *w, const Node *node, const char *from,
                    const char *name, const char *out) {
    const Act *act = &node->act;
    const char *in[3] = {from};
    uint32_t n = 1;
    if (!act_kind[act->kind]) {
        refuse(w, node);
        return;
    }
    if (act->kind == ACT_CLIP || act->kind == ACT_RELU6) {
        bool six = act->kind == ACT_RELU6;
        in[n++] =
            qdq_const_float(w, qdq_part(w, name, "lo"), six ? 0 : act->lo);
        in[n++] =
            qdq_const_float(w, qdq_part(w, name, "hi"), six ? 6 : act->hi);
    }
    if (act->kind == ACT_PRELU)
        in[n++] = put_slope(w, node, qdq_part(w, name, "slope"));
    Op op = qdq_op(w, n, in);
    bool hard = act->kind == ACT_HARD_SIGMOID;
    if (act->kind == ACT_LEAKY || act->kind == ACT_ELU || hard)
        qdq_float(w, &op, "alpha", act->alpha);
    if (hard)
        qdq_float(w, &op, "beta", act->lo);
    bool gates = act->kind == ACT_SILU;
    const char *gate = gates ? qdq_part(w, name, "gate") : out;
    qdq_end(w, &op, act_kind[act->kind], gate);
    if (gates) {
        const char *both[] = {from, gate};
        Op mul = qdq_op(w, 2, both);
        qdq_end(w, &mul, "Mul", out);
    }
}

/* ---- a node ---- */

static void put_kind(Writer *w, const Node *node, const char *out) {
    switch (node->op) {
    case OP_CONV:
    case OP_DECONV:
        put_conv(w, node, out);
        break;
    case OP_FC:
        put_fc(w, node, out);
        break;
    case OP_POOL:
        put_pool(w, node, out);
        break;
    case OP_ELTWISE:
        put_elt(w, node, out);
        break;
    case OP_CONCAT:
        put_concat(w, node, out);
        break;
    case OP_SOFTMAX:
        put_softmax(w, node, out);
        break;
    case OP_RESHAPE:
        put_reshape(w, node, out);
        break;
    case OP_TRANSPOSE:
        put_transpose(w, node, out);
        break;
    case OP_SLICE:
        put_slice(w, node, out);
        break;
    case OP_UPSAMPLE:
        put_upsample(w, node, out);
        break;
    case OP_PAD:
        put_surround(w, node, out);
        break;
    case OP_REDUCE:
        put_reduce(w, node, out);
        break;
    case OP_CONSTANT:
        put_constant(w, node, out);
        break;
    case OP_MATMUL:
        put_plain(w, node, "MatMul", out);
        break;
    case OP_IDENTITY:
        put_plain(w, node, "Identity", out);
        break;
    case OP_ACT:
        put_act(w, node, qdq_read(w, node->in[0]), out, out);
        break;
    default:
        refuse(w, node);
    }
}

/* Behind the layer, its codes and its bounds; or on real numbers. */
static void put_node(Writer *w, const Node *node) {
    TensorId t = node->out[0];
    const char *name = qdq_name(w, t);
    bool codes = qdq_quant(w, t)->type != QUANT_NONE;
    bool bound = node->op != OP_ACT && node->act.kind != ACT_NONE;
    bool cuts = bound && (!codes || quant_act_cuts(w->g, node));
    if (!codes) {
        put_kind(w, node, cuts ? qdq_part(w, name, "before") : name);
        if (cuts)
            put_act(w, node, qdq_part(w, name, "before"), name, name);
        return;
    }
    qdq_scales(w, name, qdq_quant(w, t));
    put_kind(w, node, qdq_part(w, name, "float"));
    const char *number = qdq_part(w, name, "float");
    if (cuts && !quant_bends(&node->act)) {
        const char *uncut = qdq_part(w, name, "uncut");
        const char *before = qdq_part(w, name, "uncut_codes");
        qdq_quantise(w, name, number, before);
        qdq_back(w, name, before, uncut);
        number = uncut;
    }
    if (cuts) {
        put_act(w, node, number, name, qdq_part(w, name, "cut"));
        number = qdq_part(w, name, "cut");
    }
    qdq_quantise(w, name, number, qdq_part(w, name, "codes"));
}

static void put_input(Writer *w, const Node *node) {
    TensorId t = node->out[0];
    const char *name = qdq_name(w, t);
    if (qdq_quant(w, t)->type == QUANT_NONE)
        return;
    qdq_scales(w, name, qdq_quant(w, t));
    qdq_quantise(w, name, name, qdq_part(w, name, "codes"));
}

/* Other outputs of a node, which are copies. */
static void put_copies(Writer *w, const Node *node) {
    for (uint32_t o = 1; o < node->n_out; o++) {
        const char *in[] = {qdq_read(w, node->out[0])};
        Op op = qdq_op(w, 1, in);
        bool codes = qdq_quant(w, node->out[o])->type != QUANT_NONE;
        const char *name = qdq_name(w, node->out[o]);
        qdq_end(w, &op, "Identity", codes ? qdq_part(w, name, "float") : name);
        if (!codes)
            continue;
        qdq_scales(w, name, qdq_quant(w, node->out[o]));
        qdq_quantise(w, name, qdq_part(w, name, "float"),
                     qdq_part(w, name, "codes"));
    }
}

/* ---- the whole ---- */

/* ValueInfoProto of floats. */
static void put_value_info(Writer *w, uint32_t field, TensorId t,
                           const char *name) {
    enum { INFO_NAME = 1, INFO_TYPE = 2, TENSOR = 1, ELEMENT = 1, SHAPE = 2 };
    enum { DIMENSION = 1, DIM_VALUE = 1 };
    Text shape = text_new(w->arena), tensor = text_new(w->arena);
    Text type = text_new(w->arena), info = text_new(w->arena);
    const Shape *s = &graph_tensor(w->g, t)->shape;
    for (uint32_t i = 0; i < s->rank; i++) {
        Text dim = text_new(w->arena);
        wire_put_number(&dim, DIM_VALUE, s->dim[i]);
        wire_put_message(&shape, DIMENSION, &dim);
    }
    wire_put_number(&tensor, ELEMENT, ONNX_FLOAT);
    wire_put_message(&tensor, SHAPE, &shape);
    wire_put_message(&type, TENSOR, &tensor);
    wire_put_string(&info, INFO_NAME, name);
    wire_put_message(&info, INFO_TYPE, &type);
    wire_put_message(&w->graph, field, &info);
}

static void put_ends(Writer *w) {
    for (uint32_t i = 0; i < w->g->node.n; i++) {
        const Node *node = &w->g->node.at[i];
        if (node->op == OP_INPUT)
            put_value_info(w, GRAPH_INPUT, node->out[0],
                           qdq_name(w, node->out[0]));
    }
    for (uint32_t i = 0; i < w->g->output.n; i++)
        put_value_info(w, GRAPH_OUTPUT, w->g->output.at[i],
                       qdq_name(w, w->g->output.at[i]));
}

/* Real numbers of outputs, under their names. An input that is an output, too,
 * comes as it is. */
static void put_outputs(Writer *w) {
    for (uint32_t i = 0; i < w->g->output.n; i++) {
        TensorId t = w->g->output.at[i];
        const Node *node = graph_node(w->g, graph_tensor(w->g, t)->producer);
        if (qdq_quant(w, t)->type != QUANT_NONE && node->op != OP_INPUT)
            qdq_back(w, qdq_name(w, t), qdq_part(w, qdq_name(w, t), "codes"),
                     qdq_name(w, t));
    }
}

bool graph_to_onnx(Arena *arena, Diag *diag, const Graph *g, Text *out) {
    Arena *scratch = arena_new("graph_to_onnx");
    Writer w = {.arena = scratch, .diag = diag, .g = g, .ok = true};
    w.graph = text_new(scratch);
    for (uint32_t t = 0; t < g->tensor.n; t++)
        w.wide |= g->tensor.at[t].quant.type == QUANT_I16;
    for (uint32_t i = 0; i < g->constant.n; i++)
        w.wide |= g->constant.at[i].kind == CONST_I16;
    wire_put_string(&w.graph, GRAPH_NAME, g->name);
    put_ends(&w);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->dead)
            continue;
        if (node->op == OP_INPUT)
            put_input(&w, node);
        else
            put_node(&w, node);
        put_copies(&w, node);
    }
    put_outputs(&w);
    Text opset = text_new(scratch);
    wire_put_number(&opset, OPSET_VERSION, w.wide ? OPSET_WIDE : OPSET);
    *out = text_new(arena);
    wire_put_number(out, MODEL_IR, w.wide ? IR_VERSION + 2 : IR_VERSION);
    wire_put_string(out, MODEL_PRODUCER, "amphora");
    wire_put_message(out, MODEL_GRAPH, &w.graph);
    wire_put_message(out, MODEL_OPSET, &opset);
    arena_free(scratch);
    return w.ok;
}
