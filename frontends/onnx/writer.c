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
#include "frontends/onnx/tensor.h"
#include "frontends/proto/wirewrite.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

enum { IR_VERSION = 8, OPSET = 14, OPSET_WIDE = 21 };

/* Fields of ONNX's messages. */
enum {
    MODEL_IR = 1,
    MODEL_PRODUCER = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP = 4,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TYPE = 20,
    TYPE_FLOAT = 1,
    TYPE_INT = 2,
    TYPE_STRING = 3,
    TYPE_INTS = 7,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
};

typedef struct Writer {
    Arena *arena;
    Diag *diag;
    const Graph *g;
    Text graph;
    bool wide;      /* 16 bits are there */
    uint32_t reads; /* names given */
    bool ok;
} Writer;

/* A node that is being written. */
typedef struct Op {
    Text text;
} Op;

static const char *printf_name(const Writer *w, const char *name,
                               const char *suffix) {
    return arena_printf(w->arena, "%s/%s", name, suffix);
}

/* ---- nodes ---- */

static Op op_new(const Writer *w, uint32_t n, const char *const *in) {
    Op op = {text_new(w->arena)};
    for (uint32_t i = 0; i < n; i++)
        wire_put_string(&op.text, NODE_INPUT, in[i]);
    return op;
}

static void op_ints(const Writer *w, Op *op, const char *name, uint32_t n,
                    const int64_t *value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    for (uint32_t i = 0; i < n; i++)
        wire_put_int(&attribute, ATTRIBUTE_INTS, value[i]);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_INTS);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

static void op_pair(const Writer *w, Op *op, const char *name,
                    const uint32_t value[2]) {
    op_ints(w, op, name, 2, (const int64_t[]){value[0], value[1]});
}

static void op_int(const Writer *w, Op *op, const char *name, int64_t value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    wire_put_int(&attribute, ATTRIBUTE_I, value);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_INT);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

static void op_float(const Writer *w, Op *op, const char *name, double value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    wire_put_float(&attribute, ATTRIBUTE_F, (float)value);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_FLOAT);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

static void op_string(const Writer *w, Op *op, const char *name,
                      const char *value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    wire_put_string(&attribute, ATTRIBUTE_S, value);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_STRING);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

static void op_end(Writer *w, Op *op, const char *kind, const char *out) {
    wire_put_string(&op->text, NODE_OUTPUT, out);
    wire_put_string(&op->text, NODE_NAME, printf_name(w, out, "op"));
    wire_put_string(&op->text, NODE_OP, kind);
    wire_put_message(&w->graph, GRAPH_NODE, &op->text);
}

/* ---- constants ---- */

static void put_tensor(Writer *w, const char *name, OnnxType type,
                       const Shape *shape, const void *raw, size_t len) {
    Text tensor = text_new(w->arena);
    for (uint32_t i = 0; i < shape->rank; i++)
        wire_put_number(&tensor, TENSOR_DIMS, shape->dim[i]);
    wire_put_number(&tensor, TENSOR_TYPE, type);
    wire_put_string(&tensor, TENSOR_NAME, name);
    wire_put_bytes(&tensor, TENSOR_RAW, raw, len);
    wire_put_message(&w->graph, GRAPH_INITIALIZER, &tensor);
}

static const char *put_ints(Writer *w, const char *name, uint32_t n,
                            const int64_t *value) {
    put_tensor(w, name, ONNX_INT64, &(Shape){1, {n}}, value, n * sizeof *value);
    return name;
}

static const char *put_float(Writer *w, const char *name, double value) {
    float number = (float)value;
    put_tensor(w, name, ONNX_FLOAT, &(Shape){0}, &number, sizeof number);
    return name;
}

/* `n` zero points of a type. */
static void put_zeros(Writer *w, const char *name, OnnxType type, uint32_t n,
                      bool scalar, int32_t zero) {
    size_t size = type == ONNX_INT32 ? 4 : type == ONNX_INT16 ? 2 : 1;
    uint8_t *raw = ARENA_ARRAY(w->arena, uint8_t, n * size);
    for (uint32_t i = 0; i < n; i++)
        memcpy(raw + i * size, &zero, size); /* little-endian */
    put_tensor(w, name, type, &(Shape){!scalar, {n}}, raw, n * size);
}

static const char *put_reals(Writer *w, const char *name, const Const *c) {
    uint64_t n = shape_count(&c->shape);
    float *value = ARENA_ARRAY(w->arena, float, n);
    const_read(c, value);
    put_tensor(w, name, ONNX_FLOAT, &c->shape, value, n * sizeof *value);
    return name;
}

/* Codes behind a DequantizeLinear; `axis` of their scales. */
static const char *put_codes(Writer *w, const char *name, const Const *c,
                             uint32_t axis) {
    Const plain = const_codes(c);
    uint64_t n = shape_count(&c->shape);
    double *value = ARENA_ARRAY(w->arena, double, n);
    const double *mul = axis ? c->mul1 : c->mul0;
    uint32_t scales = mul ? shape_dim(&c->shape, axis) : 1;
    OnnxType type = c->kind == CONST_I32   ? ONNX_INT32
                    : c->kind == CONST_I16 ? ONNX_INT16
                    : ONNX_UINT8;
    size_t size = type == ONNX_INT32 ? 4 : type == ONNX_INT16 ? 2 : 1;
    int32_t zero = c->zero + (c->kind == CONST_I8 ? 128 : 0);
    uint8_t *raw = ARENA_ARRAY(w->arena, uint8_t, n * size);
    float *scale = ARENA_ARRAY(w->arena, float, scales);
    const_read_f64(&plain, value);
    for (uint64_t i = 0; i < n; i++) {
        int32_t code = (int32_t)value[i] + zero;
        memcpy(raw + i * size, &code, size);
    }
    for (uint32_t i = 0; i < scales; i++)
        scale[i] = mul ? (float)mul[i] : 1;
    const char *const in[] = {printf_name(w, name, "codes"),
                              printf_name(w, name, "scale"),
                              printf_name(w, name, "zero")};
    put_tensor(w, in[0], type, &c->shape, raw, n * size);
    put_tensor(w, in[1], ONNX_FLOAT, &(Shape){mul != NULL, {scales}}, scale,
               scales * sizeof *scale);
    put_zeros(w, in[2], type, scales, mul == NULL, zero);
    Op op = op_new(w, 3, in);
    if (mul)
        op_int(w, &op, "axis", axis);
    op_end(w, &op, "DequantizeLinear", name);
    return name;
}

/* A constant of a node as a name to read. */
static const char *put_const(Writer *w, const char *name, const Const *c,
                             uint32_t axis) {
    bool codes = c->kind >= CONST_I8 && c->groups <= 1 &&
                 !(axis ? c->mul0 : c->mul1) && !const_has_order(c);
    return codes ? put_codes(w, name, c, axis) : put_reals(w, name, c);
}

/* ---- quantised tensors ---- */

static void put_scales(Writer *w, const char *name, const Quant *q) {
    bool wide = q->type == QUANT_I16;
    put_float(w, printf_name(w, name, "scale"), q->scale);
    put_zeros(w, printf_name(w, name, "zero"), wide ? ONNX_INT16 : ONNX_UINT8,
              1, true, q->zero + (q->type == QUANT_I8 ? 128 : 0));
}

static const Quant *quant_of(const Writer *w, TensorId t) {
    return &graph_tensor(w->g, t)->quant;
}

static const char *name_of(const Writer *w, TensorId t) {
    return graph_tensor(w->g, t)->name;
}

/* codes -> to; scale and zero of tensor `name` are there. */
static void put_back(Writer *w, const char *name, const char *codes,
                     const char *to) {
    const char *const in[] = {codes, printf_name(w, name, "scale"),
                              printf_name(w, name, "zero")};
    Op back = op_new(w, 3, in);
    op_end(w, &back, "DequantizeLinear", to);
}

/* from -> codes */
static void put_quantise(Writer *w, const char *name, const char *from,
                         const char *codes) {
    const char *const in[] = {from, printf_name(w, name, "scale"),
                              printf_name(w, name, "zero")};
    Op quantise = op_new(w, 3, in);
    op_end(w, &quantise, "QuantizeLinear", codes);
}

/* What a reader of a tensor reads. */
static const char *real_of(Writer *w, TensorId t) {
    const char *name = name_of(w, t);
    if (quant_of(w, t)->type == QUANT_NONE)
        return name;
    const char *own = arena_printf(w->arena, "%s/read%u", name, w->reads++);
    put_back(w, name, printf_name(w, name, "codes"), own);
    return own;
}

/* A move of input k into another form, between codes where these are. */
static const char *moved(Writer *w, const Node *node, uint32_t k, Op *op,
                         const char *kind) {
    const char *base =
        arena_printf(w->arena, "%s/%s", name_of(w, node->out[0]), kind);
    bool codes = quant_of(w, node->in[k])->type != QUANT_NONE;
    op_end(w, op, kind, codes ? printf_name(w, base, "float") : base);
    if (codes) {
        const char *name = name_of(w, node->in[k]);
        put_quantise(w, name, printf_name(w, base, "float"),
                     printf_name(w, base, "codes"));
        put_back(w, name, printf_name(w, base, "codes"), base);
    }
    return base;
}

/* ---- operators ---- */

static void put_windows(const Writer *w, Op *op, const ConvAttr *a) {
    op_pair(w, op, "kernel_shape", a->kernel);
    op_pair(w, op, "strides", a->stride);
    op_pair(w, op, "dilations", a->dilation);
    op_ints(
        w, op, "pads", 4,
        (const int64_t[]){a->pad[0], a->pad[1], a->pad_end[0], a->pad_end[1]});
    op_int(w, op, "group", a->groups);
}

static void put_conv(Writer *w, const Node *node, const char *out) {
    bool back = node->op == OP_DECONV;
    const char *name = name_of(w, node->out[0]);
    ConstId bias = node->constant[CONST_BIAS];
    const char *in[3] = {
        real_of(w, node->in[0]),
        put_const(w, printf_name(w, name, "weight"),
                  graph_const(w->g, node->constant[CONST_WEIGHT]), back)};
    if (bias.i != NONE)
        in[2] = put_const(w, printf_name(w, name, "bias"),
                          graph_const(w->g, bias), 0);
    Op op = op_new(w, bias.i != NONE ? 3 : 2, in);
    put_windows(w, &op, &node->attr.conv);
    op_end(w, &op, back ? "ConvTranspose" : "Conv", out);
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
    const char *name = name_of(w, node->out[0]);
    const Shape *shape = &graph_tensor(w->g, node->in[0])->shape;
    ConstId bias = node->constant[CONST_BIAS];
    const char *in[3] = {real_of(w, node->in[0])};
    if (shape->rank != 2) {
        Op flat = op_new(w, 1, in);
        op_int(w, &flat, "axis", 1);
        in[0] = moved(w, node, 0, &flat, "Flatten");
    }
    in[1] = put_const(
        w, printf_name(w, name, "weight"),
        turned(w, graph_const(w->g, node->constant[CONST_WEIGHT])), 1);
    if (bias.i != NONE)
        in[2] = put_const(w, printf_name(w, name, "bias"),
                          graph_const(w->g, bias), 0);
    Op op = op_new(w, bias.i != NONE ? 3 : 2, in);
    op_end(w, &op, "Gemm", out);
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
    const char *in[] = {real_of(w, node->in[0])};
    Op op = op_new(w, 1, in);
    if (is_whole(w, node)) {
        op_end(w, &op, max ? "GlobalMaxPool" : "GlobalAveragePool", out);
        return;
    }
    op_pair(w, &op, "kernel_shape", a->kernel);
    op_pair(w, &op, "strides", a->stride);
    op_ints(
        w, &op, "pads", 4,
        (const int64_t[]){a->pad[0], a->pad[1], a->pad_end[0], a->pad_end[1]});
    op_int(w, &op, "ceil_mode", a->ceil);
    if (!max)
        op_int(w, &op, "count_include_pad", a->count_pad);
    op_end(w, &op, max ? "MaxPool" : "AveragePool", out);
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
        in[k] = real_of(w, node->in[k]);
    Op op = op_new(w, node->n_in, in);
    op_end(w, &op, name, out);
}

static void put_concat(Writer *w, const Node *node, const char *out) {
    const char **in = ARENA_ARRAY(w->arena, const char *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = real_of(w, node->in[k]);
    Op op = op_new(w, node->n_in, in);
    op_int(w, &op, "axis", node->attr.axis.axis);
    op_end(w, &op, "Concat", out);
}

static void put_softmax(Writer *w, const Node *node, const char *out) {
    const char *in[] = {real_of(w, node->in[0])};
    Op op = op_new(w, 1, in);
    op_int(w, &op, "axis", node->attr.axis.axis);
    op_end(w, &op, "Softmax", out);
}

static void put_reshape(Writer *w, const Node *node, const char *out) {
    const Shape *shape = &graph_tensor(w->g, node->out[0])->shape;
    int64_t dim[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < shape->rank; i++)
        dim[i] = shape->dim[i];
    const char *in[] = {
        real_of(w, node->in[0]),
        put_ints(w, printf_name(w, name_of(w, node->out[0]), "shape"),
                 shape->rank, dim)};
    Op op = op_new(w, 2, in);
    op_end(w, &op, "Reshape", out);
}

static void put_transpose(Writer *w, const Node *node, const char *out) {
    int64_t perm[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < node->attr.perm.rank; i++)
        perm[i] = node->attr.perm.dim[i];
    const char *in[] = {real_of(w, node->in[0])};
    Op op = op_new(w, 1, in);
    op_ints(w, &op, "perm", node->attr.perm.rank, perm);
    op_end(w, &op, "Transpose", out);
}

static void put_slice(Writer *w, const Node *node, const char *out) {
    const char *name = name_of(w, node->out[0]);
    const char *in[] = {real_of(w, node->in[0]),
                        put_ints(w, printf_name(w, name, "begin"), 1,
                                 (const int64_t[]){node->attr.slice.begin}),
                        put_ints(w, printf_name(w, name, "end"), 1,
                                 (const int64_t[]){node->attr.slice.end}),
                        put_ints(w, printf_name(w, name, "axis"), 1,
                                 (const int64_t[]){node->attr.slice.axis})};
    Op op = op_new(w, 4, in);
    op_end(w, &op, "Slice", out);
}

static void put_upsample(Writer *w, const Node *node, const char *out) {
    const char *name = name_of(w, node->out[0]);
    const float scale[] = {1, 1, (float)node->attr.up.factor[0],
                           (float)node->attr.up.factor[1]};
    const char *in[] = {real_of(w, node->in[0]), "",
                        printf_name(w, name, "scales")};
    put_tensor(w, in[2], ONNX_FLOAT, &(Shape){1, {4}}, scale, sizeof scale);
    Op op = op_new(w, 3, in);
    op_string(w, &op, "mode", "nearest");
    op_string(w, &op, "coordinate_transformation_mode", "asymmetric");
    op_string(w, &op, "nearest_mode", "floor");
    op_end(w, &op, "Resize", out);
}

static void put_surround(Writer *w, const Node *node, const char *out) {
    const char *name = name_of(w, node->out[0]);
    const uint32_t *before = node->attr.pad.before;
    const uint32_t *behind = node->attr.pad.behind;
    const char *in[] = {
        real_of(w, node->in[0]),
        put_ints(w, printf_name(w, name, "pads"), 8,
                 (const int64_t[]){0, 0, before[0], before[1], 0, 0, behind[0],
                                   behind[1]}),
        put_float(w, printf_name(w, name, "value"), node->attr.pad.value)};
    Op op = op_new(w, 3, in);
    op_end(w, &op, "Pad", out);
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
    const char *in[2] = {real_of(w, node->in[0])};
    if (listed)
        in[1] = put_ints(w, printf_name(w, name_of(w, node->out[0]), "axes"), n,
                         axis);
    Op op = op_new(w, listed ? 2 : 1, in);
    if (!listed)
        op_ints(w, &op, "axes", n, axis);
    op_int(w, &op, "keepdims", 1);
    op_end(w, &op, kind[node->attr.reduce.kind], out);
}

static void put_plain(Writer *w, const Node *node, const char *kind,
                      const char *out) {
    const char **in = ARENA_ARRAY(w->arena, const char *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = real_of(w, node->in[k]);
    Op op = op_new(w, node->n_in, in);
    op_end(w, &op, kind, out);
}

static void put_constant(Writer *w, const Node *node, const char *out) {
    const Const *c = graph_const(w->g, node->constant[CONST_VALUE]);
    put_reals(w, printf_name(w, out, "value"), c);
    const char *in[] = {printf_name(w, out, "value")};
    Op op = op_new(w, 1, in);
    op_end(w, &op, "Identity", out);
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
    [ACT_PRELU] = "PRelu"};

static const char *put_slope(Writer *w, const Node *node, const char *name) {
    Const c = *graph_const(w->g, node->constant[CONST_SLOPE]);
    uint32_t channels = c.shape.dim[0];
    if (channels > 1)
        c.shape = (Shape){3, {channels, 1, 1}};
    return put_reals(w, name, &c);
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
        in[n++] = put_float(w, printf_name(w, name, "lo"), six ? 0 : act->lo);
        in[n++] = put_float(w, printf_name(w, name, "hi"), six ? 6 : act->hi);
    }
    if (act->kind == ACT_PRELU)
        in[n++] = put_slope(w, node, printf_name(w, name, "slope"));
    Op op = op_new(w, n, in);
    if (act->kind == ACT_LEAKY || act->kind == ACT_ELU)
        op_float(w, &op, "alpha", act->alpha);
    op_end(w, &op, act_kind[act->kind], out);
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
        put_act(w, node, real_of(w, node->in[0]), out, out);
        break;
    default:
        refuse(w, node);
    }
}

/* Behind the layer, its codes and its bounds; or on real numbers. */
static void put_node(Writer *w, const Node *node) {
    TensorId t = node->out[0];
    const char *name = name_of(w, t);
    bool codes = quant_of(w, t)->type != QUANT_NONE;
    bool bound = node->op != OP_ACT && node->act.kind != ACT_NONE;
    bool cuts = bound && (!codes || quant_act_cuts(w->g, node));
    if (!codes) {
        put_kind(w, node, cuts ? printf_name(w, name, "before") : name);
        if (cuts)
            put_act(w, node, printf_name(w, name, "before"), name, name);
        return;
    }
    put_scales(w, name, quant_of(w, t));
    put_kind(w, node, printf_name(w, name, "float"));
    if (!cuts) {
        put_quantise(w, name, printf_name(w, name, "float"),
                     printf_name(w, name, "codes"));
        return;
    }
    put_quantise(w, name, printf_name(w, name, "float"),
                 printf_name(w, name, "uncut_codes"));
    put_back(w, name, printf_name(w, name, "uncut_codes"),
             printf_name(w, name, "uncut"));
    put_act(w, node, printf_name(w, name, "uncut"), name,
            printf_name(w, name, "cut"));
    put_quantise(w, name, printf_name(w, name, "cut"),
                 printf_name(w, name, "codes"));
}

static void put_input(Writer *w, const Node *node) {
    TensorId t = node->out[0];
    const char *name = name_of(w, t);
    if (quant_of(w, t)->type == QUANT_NONE)
        return;
    put_scales(w, name, quant_of(w, t));
    put_quantise(w, name, name, printf_name(w, name, "codes"));
}

/* Other outputs of a node, which are copies. */
static void put_copies(Writer *w, const Node *node) {
    for (uint32_t o = 1; o < node->n_out; o++) {
        const char *in[] = {real_of(w, node->out[0])};
        Op op = op_new(w, 1, in);
        bool codes = quant_of(w, node->out[o])->type != QUANT_NONE;
        const char *name = name_of(w, node->out[o]);
        op_end(w, &op, "Identity",
               codes ? printf_name(w, name, "float") : name);
        if (!codes)
            continue;
        put_scales(w, name, quant_of(w, node->out[o]));
        put_quantise(w, name, printf_name(w, name, "float"),
                     printf_name(w, name, "codes"));
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
                           name_of(w, node->out[0]));
    }
    for (uint32_t i = 0; i < w->g->output.n; i++)
        put_value_info(w, GRAPH_OUTPUT, w->g->output.at[i],
                       name_of(w, w->g->output.at[i]));
}

/* Real numbers of outputs, under their names. An input that is an output, too,
 * comes as it is. */
static void put_outputs(Writer *w) {
    for (uint32_t i = 0; i < w->g->output.n; i++) {
        TensorId t = w->g->output.at[i];
        const Node *node = graph_node(w->g, graph_tensor(w->g, t)->producer);
        if (quant_of(w, t)->type != QUANT_NONE && node->op != OP_INPUT)
            put_back(w, name_of(w, t), printf_name(w, name_of(w, t), "codes"),
                     name_of(w, t));
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
