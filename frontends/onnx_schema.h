/* onnx_schema.h - ONNX's ModelProto for protobin.h. */
#ifndef FRONTENDS_ONNX_SCHEMA_H
#define FRONTENDS_ONNX_SCHEMA_H

#include "frontends/protobin.h"

extern const ProtoSchema onnx_schema;

#endif
