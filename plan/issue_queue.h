/* issue_queue.h - time of a plan on machines whose engines and DMA each take
 * the next of their actions as soon as what it touches is free. */
#ifndef PLAN_ISSUE_QUEUE_H
#define PLAN_ISSUE_QUEUE_H

#include "base/vec.h"
#include "plan/access.h"
#include "plan/cost.h"

/* ---- issue_queue.c: time as the simulator counts it ---- */

/* What an action touches. */
typedef struct Touched {
    Accesses volumes;
    Reach weights; /* bytes where weights lie; none: both 0 */
    bool loads;    /* it writes these */
    Reach bias;    /* the same of biases */
    bool loads_bias;
    Reach sums; /* where sums lie */
} Touched;
static inline Reach block_bytes(const ConstantBlock *b) {
    return (Reach){b->offset, b->offset + b->bytes};
}
Touched touched_by(Arena *arena, const Plan *plan, const Action *a);

typedef struct QueueEntry {
    Touched touched;
    uint64_t end; /* cycle */
    uint32_t number;
} QueueEntry;

/* Bytes of the memory for weights that are in use. */
typedef struct InUse {
    Reach bytes;
    uint64_t until; /* cycle, or action */
} InUse;

/* By first byte. */
typedef VEC(InUse) InUses;
void in_uses_add(Arena *arena, InUses *all, InUse one);
/* Those are gone that were in use until less than this. */
void in_uses_drop(InUses *all, uint64_t less);

/* Engines, and units that move data. */
enum { PLAN_UNITS = HW_MAX_ENGINES + HW_MAX_DMAS };

typedef struct Queue {
    Arena *arena;
    const Plan *plan;                /* its placements and blocks */
    uint64_t done[PLAN_UNITS];       /* by unit_of */
    uint64_t wires[HW_MAX_MEMORIES]; /* by memory: when a transfer that uses
                                      * them ends */
    uint64_t floor;                  /* cycle before which nothing begins */
    VEC(uint64_t) ended;             /* by action */
    VEC(QueueEntry) entry;           /* that may still be at work, */
    uint32_t n_entries;              /* of so many */
    InUses at_work;                  /* of these, until they end */
} Queue;

/* When the bytes that an action touches are free of the first so many entries.
 */
typedef struct QueueReady {
    uint64_t cycle;
    uint32_t entries;
} QueueReady;
/* The cycle at which the bytes that it touches are free for the action, or, if
 * that is earlier, a cycle at which some unit is at work; goes on from what was
 * known of it. */
uint64_t queue_ready(const Queue *q, const Touched *t, QueueReady *known);
/* The same of bytes for weights that are to be written. */
uint64_t queue_free(const Queue *q, Reach bytes);
/* The engine at which it is at work; of what moves the unit of `dma`, behind
 * all engines. */
uint32_t unit_of(const Plan *plan, const Action *a);
/* Of what moves: which unit of `dma`. */
uint32_t unit_of_move(const Plan *plan, const Action *a);
/* The cycle at which weights can be loaded from there. */
uint64_t queue_from_free(const Queue *q, uint32_t memory);
/* The cycle at which that, and the wires of its memory, are free. */
uint64_t queue_unit_free(const Queue *q, const Action *a);
/* The action follows those that were added before. */
void queue_add(Queue *q, const Action *a, const Touched *t, QueueReady known);
/* The cycle at which all is done. */
uint64_t queue_over(const Queue *q);
/* Cycles of the whole plan, its actions in their order. */
uint64_t queue_cycles(const Plan *plan);

#endif
