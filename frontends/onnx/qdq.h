/* qdq.h - what models on codes are written from; inside frontends/onnx only. */
#ifndef FRONTENDS_ONNX_QDQ_H
#define FRONTENDS_ONNX_QDQ_H

#include "frontends/onnx/tensor.h"
#include "frontends/proto/wirewrite.h"
#include "graph/quant.h"

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

const char *qdq_part(const Writer *w, const char *name, const char *suffix);
Op qdq_op(const Writer *w, uint32_t n, const char *const *in);
void qdq_ints(const Writer *w, Op *op, const char *name, uint32_t n,
              const int64_t *value);
void qdq_pair(const Writer *w, Op *op, const char *name,
              const uint32_t value[2]);
void qdq_int(const Writer *w, Op *op, const char *name, int64_t value);
void qdq_float(const Writer *w, Op *op, const char *name, double value);
void qdq_string(const Writer *w, Op *op, const char *name, const char *value);
void qdq_end(Writer *w, Op *op, const char *kind, const char *out);
void qdq_tensor(Writer *w, const char *name, OnnxType type, const Shape *shape,
                const void *raw, size_t len);
const char *qdq_const_ints(Writer *w, const char *name, uint32_t n,
                           const int64_t *value);
const char *qdq_const_float(Writer *w, const char *name, double value);
const char *qdq_reals(Writer *w, const char *name, const Const *c);
const char *qdq_const(Writer *w, const char *name, const Const *c,
                      uint32_t axis);
void qdq_scales(Writer *w, const char *name, const Quant *q);
const Quant *qdq_quant(const Writer *w, TensorId t);
const char *qdq_name(const Writer *w, TensorId t);
void qdq_back(Writer *w, const char *name, const char *codes, const char *to);
void qdq_quantise(Writer *w, const char *name, const char *from,
                  const char *codes);
const char *qdq_read(Writer *w, TensorId t);
const char *qdq_moved(Writer *w, const Node *node, uint32_t k, Op *op,
                      const char *kind);

#endif
