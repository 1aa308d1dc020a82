/* schema.c - field numbers of TensorFlow's messages, for binary files. */
#include "frontends/proto/schema_rows.h"
#include "frontends/tensorflow/tf.h"

SCHEMA(dim, INT(1, "size"));
SCHEMA(shape, SUB(2, "dim", dim));
SCHEMA(tensor, INT(1, "dtype"), SUB(2, "tensor_shape", shape),
       RAW(4, "tensor_content"), FLOAT(5, "float_val"), DOUBLE(6, "double_val"),
       INT(7, "int_val"), TEXT(8, "string_val"), INT(10, "int64_val"),
       BOOL(11, "bool_val"), INT(13, "half_val"));
SCHEMA(list, TEXT(2, "s"), INT(3, "i"), FLOAT(4, "f"));
SCHEMA(func, TEXT(1, "name"));
SCHEMA(value, SUB(1, "list", list), TEXT(2, "s"), INT(3, "i"), FLOAT(4, "f"),
       BOOL(5, "b"), INT(6, "type"), SUB(7, "shape", shape),
       SUB(8, "tensor", tensor), SUB(10, "func", func));
SCHEMA(attr, TEXT(1, "key"), SUB(2, "value", value));
SCHEMA(node, TEXT(1, "name"), TEXT(2, "op"), TEXT(3, "input"), RAW(4, "device"),
       SUB(5, "attr", attr));

/* ---- functions ---- */

SCHEMA(arg, TEXT(1, "name"));
SCHEMA(op, TEXT(1, "name"), SUB(2, "input_arg", arg),
       SUB(3, "output_arg", arg));
SCHEMA(ret, TEXT(1, "key"), TEXT(2, "value"));
SCHEMA(function, SUB(1, "signature", op), SUB(3, "node_def", node),
       SUB(4, "ret", ret), RAW(5, "attr"), RAW(6, "control_ret"),
       RAW(7, "arg_attr"));
SCHEMA(library, SUB(1, "function", function), RAW(2, "gradient"));
SCHEMA(graph, SUB(1, "node", node), SUB(2, "library", library),
       RAW(4, "versions"));

/* ---- SavedModels ---- */

SCHEMA(op_list, SUB(1, "op", op));
SCHEMA(info, SUB(2, "stripped_op_list", op_list), TEXT(4, "tags"));
SCHEMA(saver, TEXT(1, "filename_tensor_name"), TEXT(3, "restore_op_name"));
SCHEMA(end, TEXT(1, "name"));
SCHEMA(named_end, TEXT(1, "key"), SUB(2, "value", end));
SCHEMA(signature, SUB(1, "inputs", named_end), SUB(2, "outputs", named_end),
       TEXT(3, "method_name"));
SCHEMA(named_signature, TEXT(1, "key"), SUB(2, "value", signature));
SCHEMA(meta_graph, SUB(1, "meta_info_def", info), SUB(2, "graph_def", graph),
       SUB(3, "saver_def", saver), RAW(4, "collection_def"),
       SUB(5, "signature_def", named_signature), RAW(6, "asset_file_def"),
       RAW(7, "object_graph_def"));
static const ProtoRow saved_rows[] = {INT(1, "saved_model_schema_version"),
                                      SUB(2, "meta_graphs", meta_graph)};

const ProtoSchema tf_graph_schema = {sizeof graph_rows / sizeof *graph_rows,
                                     graph_rows};
const ProtoSchema tf_saved_schema = {sizeof saved_rows / sizeof *saved_rows,
                                     saved_rows};
