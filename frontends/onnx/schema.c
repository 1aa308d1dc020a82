/* schema.c - field numbers of ONNX's messages, for binary models.
 *
 * The numbers are those of onnx.proto. Tensors and graphs within attributes
 * stay slices, so that neither weights nor nesting cost anything before they
 * are asked for.
 */
#include "frontends/onnx/schema.h"
#include "frontends/proto/schema_rows.h"

SCHEMA(dimension, INT(1, "dim_value"), TEXT(2, "dim_param"));
SCHEMA(shape, SUB(1, "dim", dimension));
SCHEMA(tensor_type, INT(1, "elem_type"), SUB(2, "shape", shape));
SCHEMA(type, SUB(1, "tensor_type", tensor_type), RAW(4, "sequence_type"),
       RAW(5, "map_type"), RAW(8, "sparse_tensor_type"),
       RAW(9, "optional_type"));
SCHEMA(value, TEXT(1, "name"), SUB(2, "type", type), RAW(3, "doc_string"));
SCHEMA(attribute, TEXT(1, "name"), FLOAT(2, "f"), INT(3, "i"), TEXT(4, "s"),
       RAW(5, "t"), RAW(6, "g"), FLOAT(7, "floats"), INT(8, "ints"),
       TEXT(9, "strings"), RAW(10, "tensors"), RAW(11, "graphs"),
       RAW(13, "doc_string"), RAW(14, "tp"), INT(20, "type"),
       TEXT(21, "ref_attr_name"), RAW(22, "sparse_tensor"));
SCHEMA(node, TEXT(1, "input"), TEXT(2, "output"), TEXT(3, "name"),
       TEXT(4, "op_type"), SUB(5, "attribute", attribute), RAW(6, "doc_string"),
       TEXT(7, "domain"));
SCHEMA(graph, SUB(1, "node", node), TEXT(2, "name"), RAW(5, "initializer"),
       RAW(10, "doc_string"), SUB(11, "input", value), SUB(12, "output", value),
       SUB(13, "value_info", value), RAW(14, "quantization_annotation"),
       RAW(15, "sparse_initializer"));
SCHEMA(opset, TEXT(1, "domain"), INT(2, "version"));
SCHEMA(function, TEXT(1, "name"), TEXT(4, "input"), TEXT(5, "output"),
       TEXT(6, "attribute"), SUB(7, "node", node), RAW(8, "doc_string"),
       SUB(9, "opset_import", opset), TEXT(10, "domain"),
       SUB(11, "attribute_proto", attribute), SUB(12, "value_info", value));
static const ProtoRow model_rows[] = {
    INT(1, "ir_version"),          RAW(2, "producer_name"),
    RAW(3, "producer_version"),    RAW(4, "domain"),
    INT(5, "model_version"),       RAW(6, "doc_string"),
    SUB(7, "graph", graph),        SUB(8, "opset_import", opset),
    RAW(14, "metadata_props"),     RAW(20, "training_info"),
    SUB(25, "functions", function)};

const ProtoSchema onnx_schema = {sizeof model_rows / sizeof *model_rows,
                                 model_rows};

const ProtoSchema onnx_graph_schema = {sizeof graph_rows / sizeof *graph_rows,
                                       graph_rows};
