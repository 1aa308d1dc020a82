/* overlap.h - loads and stores in the steps of layers; private to alloc. */
#ifndef ALLOC_OVERLAP_H
#define ALLOC_OVERLAP_H

#include "alloc/work.h"

/* ---- conflict.c: may two actions be at work at the same time? ---- */

/* Bytes that an action reads or writes: rows of a volume's channels. */
typedef struct Access {
    const Placement *at;
    uint64_t first, end; /* bytes of its memory */
    uint32_t row, rows;  /* of the volume at `at`, rows from 0 */
    bool exact;          /* else it may touch all of the bytes */
} Access;

/* Operand i of the action; the result is operand n_in. */
Access access_of(const Plan *plan, const Action *a, uint32_t i);
/* Whether they touch the same element, and one of them writes it. */
bool actions_conflict(const Plan *plan, const Action *a, const Action *b);

/* ---- clock.c: time as the simulator counts it ---- */

/* Cycles of the action on its engine, or of the transfer; ports of active
 * memory and weights aside. */
uint64_t action_cycles(const Plan *plan, const Action *a);
/* Cycles of a transfer of so many channels. */
uint64_t move_cycles(const Plan *plan, const Action *a, uint32_t channels);
/* Cycles of all actions, those of one step side by side. */
uint64_t plan_cycles(const Plan *plan);

/* ---- overlap.c ---- */

/* Orders the actions anew: loads early, stores late, both in the steps of
 * layers with which they do not conflict, in pieces where that fills them.
 * Placements stay where they are. */
void overlap(Arena *arena, Plan *plan);

/* ---- stretch.c ---- */

/* Overlaps the plan, and lets its buffers live longer where that hides more
 * transfers; all are placed anew then. True if they were. */
bool stretch(Work *w, Diag *diag, Problem *problem, PlanResult *result,
             Plan *plan);

#endif
