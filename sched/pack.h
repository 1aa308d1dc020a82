/* pack.h - the search for steps of several nodes within one part; private. */
#ifndef SCHED_PACK_H
#define SCHED_PACK_H

#include "sched/orders.h"

/* One part of a model: what stands in it, and what was run before. */
typedef struct PackPart {
    const Model *model;
    uint32_t n;
    const uint32_t *node;
    const uint64_t *cost; /* by number: of a step the greatest counts */
    uint64_t bound;       /* bytes that no step may exceed */
    uint64_t budget;      /* moves */
} PackPart;

typedef struct Packed {
    bool found;
    uint64_t least; /* no steps cost less, proved */
    uint32_t n_steps;
    uint32_t *size; /* by step */
    uint32_t *node; /* of all steps, one behind the other */
} Packed;

/* Steps of least cost, and among these of least peak, that run the part's
 * nodes from the state. Not found: the budget is spent, or the bound is too
 * small. */
Packed pack_part(Arena *arena, const PackPart *part, const OrderState *from);

#endif
