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
} MxNode;

typedef struct Mx {
    Net net;
    uint32_t n;
    MxNode *node;
    const MxNode *at; /* being built */
    Map *param_names;
    VEC(Const) param;
} Mx;

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
/* NULL if it is not known: ops.c. */
const MxOp *mx_find_op(const char *name);

#endif
