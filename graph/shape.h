/* shape.h - shape inference without storing the result; inside graph/ only. */
#ifndef GRAPH_SHAPE_H
#define GRAPH_SHAPE_H

#include "graph/graph.h"

/* The shape of the node's outputs, all its attributes, inputs and constants
 * checked. False after an error in `diag`. */
bool shape_infer(const Graph *g, const Node *node, Diag *diag, Shape *out);

/* The same, nothing stored in the graph. See graph_const_shape. */
bool shape_of_const(const Graph *g, const Node *node, ConstRole role,
                    Shape *out);

#endif
