/* mxnet.h - MXNet's symbol JSON; inside frontends/mxnet only. */
#ifndef FRONTENDS_MXNET_MXNET_H
#define FRONTENDS_MXNET_MXNET_H

#include "frontends/net/net.h"

#include "base/json.h"

typedef struct MxRef {
    uint32_t node, output;
} MxRef;

typedef struct MxNode {
    const char *op, *name;
    const cJSON *json;
    uint32_t n_in, n_out;
    MxRef *in;
    TensorId *out; /* made when built; a variable's when first read */
    bool ranged;   /* of codes: what the least and the greatest stand for */
    double range[2];
    const Const *weight, *bias; /* in the place of those of the file */
} MxNode;

typedef struct Mx {
    Net net;
    uint32_t n;
    MxNode *node;
    const MxNode *at; /* being built */
    Map *param_names;
    VEC(Const) param;
    bool fused;                           /* made for oneDNN: ops_fused.c */
    void (*build)(struct Mx *, MxNode *); /* a node that others hold */
} Mx;

/* What oneDNN takes for the largest code. */
#define MX_FUSED_I8 127.5
#define MX_FUSED_U8 255.5

/* Nodes of a symbol into mx->node: nodes.c. */
bool mx_read_nodes(Mx *mx, const cJSON *json);
/* [node, output] or [node, output, version]; `below`: nodes that may be named.
 */
bool mx_read_ref(const cJSON *json, uint32_t below, MxRef *out);

/* Values of a .params file by name, "arg:" and "aux:" taken off. */
bool mx_read_params(Mx *mx, const char *path);

/* ---- the node being built: node.c ---- */

/* Not a layer: an input of the network, or the name of weights. */
bool mx_is_variable(const MxNode *node);

/* An input as tensor; a variable becomes a network input, or a constant where
 * the weights hold it. */
TensorId mx_in(Mx *mx, uint32_t i);
/* A variable's values: input i, or for older files, which leave it out, the
 * variable called <layer>_<suffix>. NULL: none. */
const Const *mx_value(Mx *mx, uint32_t i, const char *suffix);

/* Attributes, all of which are strings; a wrong form is an error. */
const char *mx_str(const Mx *mx, const char *key, const char *fallback);
bool mx_bool(const Mx *mx, const char *key, bool fallback);
double mx_num(const Mx *mx, const char *key, double fallback);
uint32_t mx_whole(const Mx *mx, const char *key, uint32_t fallback);
/* "(3, 3)" or "3": how many there are, at most `max`; -1 after an error. */
int mx_tuple(const Mx *mx, const char *key, uint32_t max, int64_t *out);

/* Builds the node; one tensor for each of `outputs`. */
typedef TensorId MxBuild(Mx *mx, int kind);
typedef struct MxOp {
    const char *name;
    MxBuild *build;
    int kind;
} MxOp;
/* ops_axes.c */
MxBuild mx_concat, mx_flatten, mx_softmax_output, mx_softmax, mx_reshape,
    mx_expand_dims, mx_transpose, mx_slice_axis, mx_split, mx_reduce;
/* ops_codes.c */
MxBuild mx_quantize, mx_dequantize, mx_requantize, mx_quantized_sums,
    mx_quantized_two, mx_quantized_norm, mx_quantized_kept, mx_quantized_concat;
/* What the file has as codes with a range, as codes with scales: input k, whose
 * range begins at another. */
bool mx_scale_param(Mx *mx, uint32_t k, uint32_t range_k);
/* A rounding to codes of the calibrated range, if there is one. */
TensorId mx_round(Mx *mx, TensorId in, bool positive);
/* ops_fused.c */
MxBuild mx_fused;
/* NULL if it is not known: ops.c. */
const MxOp *mx_find_op(const char *name);

#endif
