/* qdq.c - nodes, constants, scales and codes of a model that is written; see
 * writer.c for what becomes which.
 */
#include "frontends/onnx/qdq.h"

#include <string.h>

const char *qdq_part(const Writer *w, const char *name, const char *suffix) {
    return arena_printf(w->arena, "%s/%s", name, suffix);
}

/* ---- nodes ---- */

Op qdq_op(const Writer *w, uint32_t n, const char *const *in) {
    Op op = {text_new(w->arena)};
    for (uint32_t i = 0; i < n; i++)
        wire_put_string(&op.text, NODE_INPUT, in[i]);
    return op;
}

void qdq_ints(const Writer *w, Op *op, const char *name, uint32_t n,
              const int64_t *value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    for (uint32_t i = 0; i < n; i++)
        wire_put_int(&attribute, ATTRIBUTE_INTS, value[i]);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_INTS);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

void qdq_pair(const Writer *w, Op *op, const char *name,
              const uint32_t value[2]) {
    qdq_ints(w, op, name, 2, (const int64_t[]){value[0], value[1]});
}

void qdq_int(const Writer *w, Op *op, const char *name, int64_t value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    wire_put_int(&attribute, ATTRIBUTE_I, value);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_INT);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

void qdq_float(const Writer *w, Op *op, const char *name, double value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    wire_put_float(&attribute, ATTRIBUTE_F, (float)value);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_FLOAT);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

void qdq_string(const Writer *w, Op *op, const char *name, const char *value) {
    Text attribute = text_new(w->arena);
    wire_put_string(&attribute, ATTRIBUTE_NAME, name);
    wire_put_string(&attribute, ATTRIBUTE_S, value);
    wire_put_number(&attribute, ATTRIBUTE_TYPE, TYPE_STRING);
    wire_put_message(&op->text, NODE_ATTRIBUTE, &attribute);
}

void qdq_end(Writer *w, Op *op, const char *kind, const char *out) {
    wire_put_string(&op->text, NODE_OUTPUT, out);
    wire_put_string(&op->text, NODE_NAME, qdq_part(w, out, "op"));
    wire_put_string(&op->text, NODE_OP, kind);
    wire_put_message(&w->graph, GRAPH_NODE, &op->text);
}

/* ---- constants ---- */

void qdq_tensor(Writer *w, const char *name, OnnxType type, const Shape *shape,
                const void *raw, size_t len) {
    Text tensor = text_new(w->arena);
    for (uint32_t i = 0; i < shape->rank; i++)
        wire_put_number(&tensor, TENSOR_DIMS, shape->dim[i]);
    wire_put_number(&tensor, TENSOR_TYPE, type);
    wire_put_string(&tensor, TENSOR_NAME, name);
    wire_put_bytes(&tensor, TENSOR_RAW, raw, len);
    wire_put_message(&w->graph, GRAPH_INITIALIZER, &tensor);
}

const char *qdq_const_ints(Writer *w, const char *name, uint32_t n,
                           const int64_t *value) {
    qdq_tensor(w, name, ONNX_INT64, &(Shape){1, {n}}, value, n * sizeof *value);
    return name;
}

const char *qdq_const_float(Writer *w, const char *name, double value) {
    float number = (float)value;
    qdq_tensor(w, name, ONNX_FLOAT, &(Shape){0}, &number, sizeof number);
    return name;
}

/* `n` zero points of a type. */
static void put_zeros(Writer *w, const char *name, OnnxType type, uint32_t n,
                      bool scalar, int32_t zero) {
    size_t size = type == ONNX_INT32 ? 4 : type == ONNX_INT16 ? 2 : 1;
    uint8_t *raw = ARENA_ARRAY(w->arena, uint8_t, n * size);
    for (uint32_t i = 0; i < n; i++)
        memcpy(raw + i * size, &zero, size); /* little-endian */
    qdq_tensor(w, name, type, &(Shape){!scalar, {n}}, raw, n * size);
}

const char *qdq_reals(Writer *w, const char *name, const Const *c) {
    uint64_t n = shape_count(&c->shape);
    float *value = ARENA_ARRAY(w->arena, float, n);
    const_read(c, value);
    qdq_tensor(w, name, ONNX_FLOAT, &c->shape, value, n * sizeof *value);
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
    const char *const in[] = {qdq_part(w, name, "codes"),
                              qdq_part(w, name, "scale"),
                              qdq_part(w, name, "zero")};
    qdq_tensor(w, in[0], type, &c->shape, raw, n * size);
    qdq_tensor(w, in[1], ONNX_FLOAT, &(Shape){mul != NULL, {scales}}, scale,
               scales * sizeof *scale);
    put_zeros(w, in[2], type, scales, mul == NULL, zero);
    Op op = qdq_op(w, 3, in);
    if (mul)
        qdq_int(w, &op, "axis", axis);
    qdq_end(w, &op, "DequantizeLinear", name);
    return name;
}

/* A constant of a node as a name to read. */
const char *qdq_const(Writer *w, const char *name, const Const *c,
                      uint32_t axis) {
    bool codes = c->kind >= CONST_I8 && c->groups <= 1 &&
                 !(axis ? c->mul0 : c->mul1) && !const_has_order(c);
    return codes ? put_codes(w, name, c, axis) : qdq_reals(w, name, c);
}

/* ---- quantised tensors ---- */

void qdq_scales(Writer *w, const char *name, const Quant *q) {
    bool wide = q->type == QUANT_I16;
    qdq_const_float(w, qdq_part(w, name, "scale"), q->scale);
    put_zeros(w, qdq_part(w, name, "zero"), wide ? ONNX_INT16 : ONNX_UINT8, 1,
              true, q->zero + (q->type == QUANT_I8 ? 128 : 0));
}

const Quant *qdq_quant(const Writer *w, TensorId t) {
    return &graph_tensor(w->g, t)->quant;
}

const char *qdq_name(const Writer *w, TensorId t) {
    return graph_tensor(w->g, t)->name;
}

/* codes -> to; scale and zero of tensor `name` are there. */
void qdq_back(Writer *w, const char *name, const char *codes, const char *to) {
    const char *const in[] = {codes, qdq_part(w, name, "scale"),
                              qdq_part(w, name, "zero")};
    Op back = qdq_op(w, 3, in);
    qdq_end(w, &back, "DequantizeLinear", to);
}

/* from -> codes */
void qdq_quantise(Writer *w, const char *name, const char *from,
                  const char *codes) {
    const char *const in[] = {from, qdq_part(w, name, "scale"),
                              qdq_part(w, name, "zero")};
    Op quantise = qdq_op(w, 3, in);
    qdq_end(w, &quantise, "QuantizeLinear", codes);
}

/* What a reader of a tensor reads. */
const char *qdq_read(Writer *w, TensorId t) {
    const char *name = qdq_name(w, t);
    if (qdq_quant(w, t)->type == QUANT_NONE)
        return name;
    const char *own = arena_printf(w->arena, "%s/read%u", name, w->reads++);
    qdq_back(w, name, qdq_part(w, name, "codes"), own);
    return own;
}

/* A move of input k into another form, between codes where these are. */
const char *qdq_moved(Writer *w, const Node *node, uint32_t k, Op *op,
                      const char *kind) {
    const char *base =
        arena_printf(w->arena, "%s/%s", qdq_name(w, node->out[0]), kind);
    bool codes = qdq_quant(w, node->in[k])->type != QUANT_NONE;
    qdq_end(w, op, kind, codes ? qdq_part(w, base, "float") : base);
    if (codes) {
        const char *name = qdq_name(w, node->in[k]);
        qdq_quantise(w, name, qdq_part(w, base, "float"),
                     qdq_part(w, base, "codes"));
        qdq_back(w, name, qdq_part(w, base, "codes"), base);
    }
    return base;
}
