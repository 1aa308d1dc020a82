/* model.h - from a network on a machine to a problem of order; private to
 * sched. */
#ifndef SCHED_MODEL_H
#define SCHED_MODEL_H

#include "graph/graph.h"
#include "passes/legal.h"
#include "sched/order.h"

/* How bytes are counted. */
typedef enum ModelKind {
    /* As alloc does: volumes in active memory, from the first step at which an
     * engine touches them to the last; members of a concat lie in its volume,
     * and their bytes serve others until they are written. */
    MODEL_MACHINE,
    /* Each tensor by itself, a concat's output besides its members: as the
     * seed compiler estimates (facts/xdnn.md 3), in the machine's layout. */
    MODEL_TENSORS,
    /* The same with 4 bytes an element and no machine: as HMCOS counts
     * (facts/two-level.md 1.2). Results of element-wise nodes take the place of
     * the first operand of their size. */
    MODEL_PLAIN
} ModelKind;

typedef struct Model {
    ModelKind kind;
    const HwSpec *spec; /* NULL: PLAIN */
    const Graph *g;
    const OrderProblem *p;
    const NodeId *node;     /* by number in the problem */
    const uint32_t *number; /* by node id; ORDER_NONE for INPUT */
    const Legal *legal;     /* by node id */
} Model;

/* `replication`: volumes are stored with copies (facts/xdnn.md 2.4). */
Model model_make(Arena *arena, ModelKind kind, const HwSpec *spec,
                 const Graph *g, bool replication);

/* The same with nodes on the engines that work ahead. */
Model model_make_ahead(Arena *arena, const HwSpec *spec, const Graph *g,
                       bool replication);

/* Clock cycles that the node takes by itself on its engine: a product of
 * ceilings; 0 for the host's and for concats. */
uint64_t model_cycles(const Model *model, uint32_t number);

#endif
