/* insert.h - new nodes at a place of their own in the order of a graph. */
#ifndef PASSES_INSERT_H
#define PASSES_INSERT_H

#include "graph/graph.h"

/* Nodes that were added at the end of the graph, each to go before another. */
typedef struct Insertions {
    VEC(NodeId) node, before;
} Insertions;

/* Notes that `node` belongs right before `before`, behind nodes that were
 * noted for the same place earlier. `before` may itself be noted. */
void insert_before(Arena *arena, Insertions *insertions, NodeId node,
                   NodeId before);

/* Moves all noted nodes to their places; ids of nodes change. */
void insert_finish(Arena *scratch, Graph *g, const Insertions *insertions);

#endif
