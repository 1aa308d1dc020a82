/* tensor.h - ONNX's TensorProto: in models, and in files of its own.
 *
 * In: a TensorProto, binary (a slice of a mapped file) or a tree of text. Out:
 * a constant that stays in the file where its elements are floats or bytes;
 * whole numbers of other widths are converted.
 */
#ifndef FRONTENDS_ONNX_TENSOR_H
#define FRONTENDS_ONNX_TENSOR_H

#include "frontends/proto/proto.h"
#include "graph/graph.h"

/* TensorProto.DataType */
typedef enum OnnxType {
    ONNX_FLOAT = 1,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_UINT16,
    ONNX_INT16,
    ONNX_INT32,
    ONNX_INT64,
    ONNX_STRING,
    ONNX_BOOL,
    ONNX_FLOAT16,
    ONNX_DOUBLE,
    ONNX_UINT32,
    ONNX_UINT64,
    ONNX_COMPLEX64,
    ONNX_COMPLEX128,
    ONNX_BFLOAT16,
    ONNX_TYPES
} OnnxType;

/* "float16"; "type 23" for those that are not known. */
const char *onnx_type_name(Arena *arena, int64_t type);
/* Whole numbers and truth values. */
bool onnx_is_whole(OnnxType type);
/* Types whose elements can be numbers of a graph. */
bool onnx_is_number(int64_t type);

typedef struct OnnxTensor {
    const char *name;
    OnnxType type;
    Const value; /* its shape may have rank 0, or no elements */
} OnnxTensor;

/* `field` holds it (PROTO_STRING: binary); `dir`: where external data may lie,
 * NULL: nowhere. `start`: of the file that a binary one is part of. Errors are
 * at the field's place. */
bool onnx_tensor_read(Arena *arena, Diag *diag, const ProtoField *field,
                      const char *dir, OnnxTensor *out);

#endif
