/* schema.h - ONNX's ModelProto for proto/protobin.h. */
#ifndef FRONTENDS_ONNX_SCHEMA_H
#define FRONTENDS_ONNX_SCHEMA_H

#include "frontends/proto/protobin.h"

extern const ProtoSchema onnx_schema;
/* GraphProto: of a slice. */
extern const ProtoSchema onnx_graph_schema;

#endif
