/* legal.h - can this machine run this node, and if not, why. */
#ifndef PASSES_LEGAL_H
#define PASSES_LEGAL_H

#include "graph/graph.h"
#include "hwspec/hwspec.h"

typedef struct Legal {
    int32_t engine;     /* index in spec->engine; -1: the host */
    HwOp op;            /* the abstract operation; HW_OP_HOST for the host */
    const char *reason; /* why the host, one line; NULL for an engine */
} Legal;

/* The pool of a CONV_POOL as rows of files name it. */
typedef struct LegalPool {
    const char *kind, *edge; /* "max", "inside" */
    uint32_t kernel, stride;
} LegalPool;
/* False where they have no name for it. h, w: of what it pools; of its result.
 */
bool legal_pool(const PoolAttr *pool, const uint32_t in[2],
                const uint32_t out[2], LegalPool *p);

/* The abstract operation that a node is: depthwise and grouped convolutions,
 * kinds of pooling told apart; HW_OP_HOST if none. */
HwOp legal_op(const Graph *g, NodeId node);

/* One check for each row of the constraint table; reasons such as
 * "kernel.w 15 is outside 1..14 of engine conv". CONCAT is legal where each of
 * its members can be written in place (see alloc): engine -1, HW_OP_CONCAT, no
 * reason. INPUT: engine -1, HW_OP_HOST, no reason. */
Legal legal_check(Arena *arena, const HwSpec *spec, const Graph *g,
                  NodeId node);

/* legal_check of each node of the graph, by node. */
Legal *legal_check_all(Arena *arena, const HwSpec *spec, const Graph *g);

/* Where a node runs that no engine takes as one of its own operations: a
 * processor (an engine that runs `layer`), else for this reason the host. */
Legal legal_elsewhere(const HwSpec *spec, const Node *node, const char *reason);

/* The engine that could run the node ahead of the others, on the next image:
 * the node is the only reader of a network input, and its result is nobody's
 * part. engine -1: none. */
Legal legal_check_ahead(const HwSpec *spec, const Graph *g, const Uses *uses,
                        NodeId node);

#endif
