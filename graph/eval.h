/* eval.h - what an operator's evaluation sees; inside graph/ only. */
#ifndef GRAPH_EVAL_H
#define GRAPH_EVAL_H

#include "graph/graph.h"

typedef struct Eval {
    Arena *scratch; /* emptied after each node */
    const Graph *g;
    const Node *node;
    const float *const *in;
    const Shape *in_shape; /* of the first input */
    const Shape *out_shape;
    float *out;
} Eval;

/* Elements, `outer` x `axis` x `inner`, around one axis of a shape. */
typedef struct Split {
    size_t outer, axis, inner;
} Split;
Split eval_split(const Shape *shape, uint32_t axis);
/* The same around some axes (0: all from there on), the first of which is in
 * groups (0: one). */
Split eval_lines(const Shape *shape, uint32_t axis, uint32_t axes,
                 uint32_t groups);

typedef void EvalOp(const Eval *e);

/* Values of a constant of the node; NULL if it has none. */
const float *eval_const(const Eval *e, ConstRole role);
/* The same for a constant without which the node has no meaning. */
const float *eval_need_const(const Eval *e, ConstRole role);

/* A matrix of floats, `stride` of them from row to row as it is stored; used as
 * it is or transposed. */
typedef struct Matrix {
    const float *at;
    size_t stride;
    bool transposed;
} Matrix;
/* out [m, n] = a [m, k] * b [k, n]; `stride`: from row to row of out. */
/* Softmax of `n` values that are `step` apart. */
void eval_softmax_line(const float *in, size_t n, size_t step, float *out);
void eval_product(size_t m, size_t n, size_t k, Matrix a, Matrix b, float *out,
                  size_t stride);

/* An activation of one number; none with slopes by channel. */
float eval_act(const Act *act, float x);
/* The node's activation over `shape`, in place: eval_act.c. */
void eval_activate(const Eval *e, const Shape *shape, float *value);

/* eval_conv.c */
void eval_conv(const Eval *e);
void eval_conv_pool(const Eval *e);
void eval_deconv(const Eval *e);
void eval_fc(const Eval *e);
/* eval_pool.c */
/* Indices [begin, end) of the input that one window covers along an axis, and
 * how many positions count in an average. */
typedef struct Window {
    uint32_t begin, end, count;
} Window;
Window eval_window(const PoolAttr *pool, int axis, uint32_t in, uint32_t out);
void eval_pool(const Eval *e);
/* Pools [n, c, h, w] into out. */
void eval_pool_into(const PoolAttr *pool, const Shape *in_shape,
                    const float *in, const Shape *out_shape, float *out);
void eval_lrn(const Eval *e);
void eval_upsample(const Eval *e);
void eval_pad(const Eval *e);
/* eval_point.c */
void eval_bn(const Eval *e);
void eval_scale(const Eval *e);
void eval_copy(const Eval *e);
void eval_eltwise(const Eval *e);
void eval_concat(const Eval *e);
void eval_slice(const Eval *e);
void eval_softmax(const Eval *e);
/* Input k as it looks in the output's shape: itself, or a spread copy. */
const float *eval_broadcast(const Eval *e, uint32_t k);
/* eval.c: a node and its activation on real numbers. */
void eval_real(const Eval *e, EvalOp *op);
/* eval_quant.c: a node that reads or writes codes; `op`: the same node on real
 * numbers, without its activation. */
void eval_quantised(const Eval *e, EvalOp *op);
/* The numbers that its codes are rounded from, as if by `reals`. */
void eval_numbers(const Eval *codes, EvalOp *op);
/* eval_tensor.c */
void eval_constant(const Eval *e);
void eval_call(const Eval *e);
void eval_matmul(const Eval *e);
void eval_transpose(const Eval *e);
void eval_reduce(const Eval *e);
void eval_gather(const Eval *e);
void eval_norm(const Eval *e);
void eval_routine(const Eval *e);
/* eval_tokens.c */
void eval_mix(const Eval *e);
void eval_offset(const Eval *e);
void eval_pixels(const Eval *e);

#endif
