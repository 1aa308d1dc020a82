/* shape.h - shape inference without storing the result; inside graph/ only. */
#ifndef GRAPH_SHAPE_H
#define GRAPH_SHAPE_H

#include "graph/graph.h"

/* What the functions that infer one operator see. */
typedef struct Infer {
    const Graph *g;
    const Node *node;
    Diag *diag;
    Shape in; /* of the first input */
    Shape *out;
} Infer;
/* An error at the layer's place; false, to be returned. */
/* The axis, which there is, divides into so many groups; 0: not asked for. */
bool shape_need_groups(const Infer *x, uint32_t axis, uint32_t groups);
bool shape_fail(const Infer *x, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The shape of every tensor and constant must pass here. */
bool shape_check_size(const Infer *x, const char *what, const Shape *shape);

/* shape_tensor.c: operators on tensors of any rank. */
bool infer_constant(const Infer *x);
bool infer_call(const Infer *x);
bool infer_matmul(const Infer *x);
bool infer_transpose(const Infer *x);
bool infer_reduce(const Infer *x);
bool infer_gather(const Infer *x);
bool infer_norm(const Infer *x);
bool infer_routine(const Infer *x);
/* shape_tokens.c: operators on pixels as tokens. */
bool infer_mix(const Infer *x);
bool infer_offset(const Infer *x);
bool infer_pixels(const Infer *x);

/* The shape of the node's outputs, all its attributes, inputs and constants
 * checked. False after an error in `diag`. */
bool shape_infer(const Graph *g, const Node *node, Diag *diag, Shape *out);

/* The same, nothing stored in the graph. See graph_const_shape. */
bool shape_of_const(const Graph *g, const Node *node, ConstRole role,
                    Shape *out);

#endif
