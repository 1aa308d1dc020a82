/* tflite.h - TensorFlow Lite models; inside frontends/tflite only. */
#ifndef FRONTENDS_TFLITE_TFLITE_H
#define FRONTENDS_TFLITE_TFLITE_H

#include "frontends/net/net.h"
#include "frontends/tflite/flatbuf.h"

typedef struct TflTensor {
    uint32_t table;
    const char *name;
    Shape shape;
    uint32_t type;
    Quant quant;   /* of all its elements; QUANT_NONE: real, or by channel */
    Bytes data;    /* of constants; at is NULL for others */
    bool variable; /* kept from call to call */
    bool unpacked; /* was sparse in the file */
    TensorId made;
    bool has_value;
    Const value; /* dequantised, once asked for */
} TflTensor;

typedef struct Tfl {
    Net net;
    Flat flat;
    uint32_t n;
    TflTensor *tensor;
    FlatVector codes;
    /* the operator that is being built */
    FlatVector in, out;
    uint32_t options;
    bool aside; /* in a graph of its own: net_aside */
} Tfl;

/* ---- values.c ---- */

/* Dequantises a constant into its `value`; false after errors. */
bool tfl_values(Tfl *t, TflTensor *tensor);
Quant tfl_quant(Tfl *t, const TflTensor *tensor);
/* A constant as codes without factors; false where it is none of codes. */
bool tfl_coded(Tfl *t, TflTensor *tensor, Const *out);
/* Gives codes their factors, by the first (axis 0) or second index of `value`,
 * once it has its shape. */
void tfl_put_scales(Tfl *t, const TflTensor *tensor, uint32_t axis,
                    Const *value);

/* ---- sparse.c ---- */

/* Writes out a constant of elements of `size` bytes of which the file has only
 * some, at places that it tells. False after errors. */
bool tfl_fill_in(Tfl *t, TflTensor *tensor, uint32_t size);

/* ---- node.c: the operator being built ---- */

/* NULL where the operator has no input i (or it is -1). */
TflTensor *tfl_tensor(Tfl *t, uint32_t i);
/* Input i; constants become tensors. */
TensorId tfl_in(Tfl *t, uint32_t i);
/* Whether it is a constant, of the file or computed of such. */
bool tfl_known(const TflTensor *tensor);
/* Values of a constant, dequantised; NULL if it is none, which is an error for
 * tfl_const. */
const Const *tfl_maybe(Tfl *t, uint32_t i);
const Const *tfl_const(Tfl *t, uint32_t i);
/* The same for weights and biases: where they are quantised, as codes without
 * factors, which tfl_put_scales gives them. */
bool tfl_codes(Tfl *t, uint32_t i, Const *out);
/* The same as whole numbers, of int32 or int64: how many, -1 on errors. */
int tfl_ints(Tfl *t, uint32_t i, uint32_t max, int64_t *out);
/* The same as a shape. */
bool tfl_shape_in(Tfl *t, uint32_t i, Shape *out);
/* The tensor is as the file says, and so are those that were made since `known`
 * and only moved into it. */
void tfl_set_quant(Tfl *t, uint32_t known, TensorId made, const Quant *quant);
/* Whether its first output is. */
bool tfl_is_quantised(const Tfl *t);
/* A number of the options. */
int32_t tfl_option(Tfl *t, uint32_t field, int32_t missing);
/* The activation that an option fuses, as a node behind; part of the layer
 * where results are codes, which are rounded only once. */
TensorId tfl_fused(Tfl *t, uint32_t field, TensorId in);

typedef TensorId TflBuild(Tfl *t, int kind);
typedef struct TflOp TflOp;
struct TflOp {
    uint32_t code;
    const char *name;
    TflBuild *build; /* sets `made` of outputs behind the first by itself */
    int kind;
};
/* ops_axes.c */
TflBuild tfl_concat, tfl_reshape, tfl_transpose, tfl_reduce, tfl_pad,
    tfl_mirror_pad, tfl_batches, tfl_resize, tfl_blocks, tfl_slice,
    tfl_strided_slice, tfl_split, tfl_split_v, tfl_pack, tfl_unpack,
    tfl_l2_norm;
/* The tensors of the operator's outputs; the first is returned. */
TensorId tfl_put_outputs(Tfl *t, const TensorId *made);
/* ops_index.c */
TflBuild tfl_take, tfl_lookup, tfl_gather_nd, tfl_scatter_nd, tfl_top_k,
    tfl_cumulate, tfl_arg, tfl_one_hot, tfl_tile, tfl_broadcast, tfl_reverse,
    tfl_cast, tfl_compare, tfl_unequal, tfl_floor_div, tfl_select,
    tfl_log_softmax, tfl_batch_matmul;
/* ops_recurrent.c */
TflBuild tfl_lstm, tfl_svdf;
/* constants.c: of shapes and numbers */
TflBuild tfl_shape_of, tfl_rank_of, tfl_range, tfl_fill, tfl_zeros, tfl_densify;
/* Computes an operator whose inputs are all constants; false where it is to be
 * built like any other. */
bool tfl_fold(Tfl *t, const TflOp *op);
/* NULL if it is not known: ops.c. */
const TflOp *tfl_find_op(uint32_t code);

#endif
