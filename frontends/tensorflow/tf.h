/* tf.h - TensorFlow GraphDefs; inside frontends/tensorflow only. */
#ifndef FRONTENDS_TENSORFLOW_TF_H
#define FRONTENDS_TENSORFLOW_TF_H

#include "frontends/net/net.h"
#include "frontends/proto/protobin.h"
#include "frontends/tensorflow/bundle.h"

#include "base/json.h"

typedef struct TfRef {
    uint32_t node, output;
} TfRef;

typedef enum TfState { TF_NOT_BUILT, TF_TENSOR, TF_CONST, TF_DEAD } TfState;

typedef struct TfNode {
    const char *name, *op;
    const char *key; /* of a variable in the bundle */
    const ProtoMessage *message;
    Loc loc;
    uint32_t n_in, n_out;
    TfRef *in;
    uint32_t readers, waits; /* inputs that are not built yet */
    TfState state;
    TensorId *out; /* TF_TENSOR */
    Const value;   /* TF_CONST; a recipe where the values are not known */
    bool known;
    uint32_t live; /* Switch: the output that is taken; else NONE */
} TfNode;

typedef struct Tf {
    Net net;
    uint32_t n;
    TfNode *node;
    Map *names;
    TfNode *at;   /* being built */
    Map *weights; /* tfjs: values by name of a Const */
    VEC(Const) weight;
    /* a SavedModel */
    Bundle *bundle;
    VEC(TfRef) result; /* what its signature gives back */
} Tf;

/* ---- node.c: the node that is being built ---- */

/* A node of the file without its inputs. */
bool tf_read_node(const Tf *tf, TfNode *node, const ProtoField *field);

/* The attribute `key` as AttrValue; NULL: absent. */
const ProtoMessage *tf_attr(const Tf *tf, const char *key);
const char *tf_str(const Tf *tf, const char *key, const char *fallback);
double tf_num(const Tf *tf, const char *key, double fallback);
bool tf_bool(const Tf *tf, const char *key, bool fallback);
/* A list of whole numbers: how many there are, -1 for too many. */
int tf_list(const Tf *tf, const char *key, uint32_t max, int64_t *out);
Shape tf_shape(const Tf *tf, const ProtoMessage *shape);

/* Input i as tensor, or as constant: NULL where it is none, which is an error
 * for tf_const. */
TensorId tf_in(Tf *tf, uint32_t i);
const Const *tf_maybe(Tf *tf, uint32_t i);
const Const *tf_const(Tf *tf, uint32_t i);
/* Constants whose values count, as axes do: how many, -1 after an error. */
int tf_ints(Tf *tf, uint32_t i, uint32_t max, int64_t *out);
/* The same as a shape; as one number. */
bool tf_shape_in(Tf *tf, uint32_t i, Shape *out);
bool tf_number_in(Tf *tf, uint32_t i, double *out);
/* Makes the node a constant; NO_TENSOR, to be returned. */
TensorId tf_be_const(Tf *tf, Const value, bool known);

/* ---- other files ---- */

/* schema.c: a GraphDef and a SavedModel in binary. */
extern const ProtoSchema tf_graph_schema, tf_saved_schema;
/* files.c: the three forms of either as one tree. */
const ProtoMessage *tf_parse(Tf *tf, Bytes bytes, const ProtoSchema *schema);
/* saved.c: the nodes that the signature of a SavedModel needs, functions
 * opened; keys of variables. */
bool tf_read_saved(Tf *tf, const ProtoMessage *model);
/* values.c */
/* Names of types by their numbers. */
extern const char *const tf_type_names[];
TensorId tf_constant(Tf *tf, int kind);
TensorId tf_variable(Tf *tf, int kind);
/* An EltKind of two constants, one of which may be a single number. */
TensorId tf_fold(Tf *tf, int kind);
TensorId tf_fold_two(Tf *tf, int kind, const Const *a, const Const *b);
bool tf_all_known(Tf *tf);
/* Builds the node, whose inputs are all known, by the reference evaluation:
 * a constant. False where it is to be built like any other. */
typedef struct TfOp TfOp;
bool tf_fold_node(Tf *tf, const TfOp *op);
/* tfjs' manifest and its files, beside the JSON. */
void tf_read_manifest(Tf *tf, const cJSON *json);

typedef TensorId TfBuild(Tf *tf, int kind);
struct TfOp {
    const char *name;
    TfBuild *build;
    int kind;
};
/* ops.c: NULL if it is not known. */
const TfOp *tf_find_op(const char *name);
/* ops_window.c */
TfBuild tf_conv, tf_deconv, tf_pool, tf_matmul, tf_bias_add, tf_batch_norm,
    tf_prelu;
/* ops_axes.c */
TfBuild tf_concat, tf_reshape, tf_squeeze, tf_transpose, tf_reduce, tf_pad,
    tf_mirror_pad, tf_resize, tf_blocks, tf_slice, tf_strided_slice, tf_split,
    tf_expand, tf_shape_of, tf_rank_of, tf_pack, tf_unpack, tf_split_v,
    tf_batches, tf_range, tf_fill, tf_like;
/* Whole numbers as a constant of one dimension, or of none; NO_TENSOR. */
TensorId tf_be_ints(Tf *tf, uint32_t n, const int64_t *value, bool scalar);
/* ops_index.c */
TfBuild tf_take, tf_gather_nd, tf_scatter_nd, tf_sparse, tf_top_k, tf_arg,
    tf_one_hot, tf_cumulate, tf_tile, tf_broadcast, tf_reverse, tf_compare,
    tf_unequal, tf_floor_div, tf_select, tf_cast, tf_log_softmax;

#endif
