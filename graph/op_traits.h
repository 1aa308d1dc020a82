/* op_traits.h - what is true of an operator, whatever its attributes: of layers
 * of an operator that states nothing, passes and planner assume the least.
 */
#ifndef GRAPH_OP_TRAITS_H
#define GRAPH_OP_TRAITS_H

#include "graph/graph.h"

typedef enum OpTrait {
    OP_MOVES = 1, /* elements of the result are elements of an operand, or of a
                   * constant; its activation aside */
    OP_BY_CHANNEL = 2, /* channel c of the result is made of channel c of each
                        * operand */
    OP_BY_PIXEL = 4    /* a pixel of the result is made of the same pixel of
                        * each operand, be it of all channels */
} OpTrait;

bool op_has(OpKind op, OpTrait trait);

#endif
