/* cost.h - what a plan costs: bytes, products, instructions, and cycles as the
 * simulator counts them. */
#ifndef PLAN_COST_H
#define PLAN_COST_H

#include "plan/plan.h"

/* ---- traffic.c: what a plan costs ---- */

typedef struct Traffic {
    uint64_t moved;        /* bytes */
    uint64_t weights;      /* bytes that are read, again with each run */
    uint64_t work;         /* products, and elements of what has none */
    uint64_t again;        /* bytes of results that are computed once more */
    uint32_t instructions; /* of the listing, layers of the host aside */
    bool too_long;         /* more than the machine holds */
} Traffic;
static inline uint64_t traffic_bytes(Traffic t) {
    return t.moved + t.weights;
}
Traffic plan_traffic(const Plan *plan);
/* Products of the layers on engines: of each once, and as the plan's runs
 * compute them. */
typedef struct Products {
    uint64_t once, all;
} Products;
Products plan_products(const Plan *plan);
/* What an action by loops over tiles of channels reads. */
NestCost action_nest_reads(const Plan *plan, const Action *a);

/* Bytes of weights that a run reads. */
uint64_t action_weights(const Plan *plan, const Action *a);

/* Bytes of the weights of all layers that have theirs in active memory. */
uint64_t plan_staged_weights(const Schedule *schedule);

/* ---- cost.c: time as the simulator counts it ---- */

/* Cycles of the action on its engine, or of the transfer; ports of active
 * memory and weights aside. */
uint64_t action_cycles(const Plan *plan, const Action *a);
/* Cycles of a transfer of so many channels. */
uint64_t move_cycles(const Plan *plan, const Action *a, uint32_t channels);
/* Cycles of all actions, those of one step side by side. */
uint64_t plan_cycles(const Plan *plan);
/* Of plan->cycles, those in which neither all engines together nor all
 * transfers work. */
uint64_t plan_waiting(const Plan *plan);
/* Cycles of the engine that works longest, or of all transfers: no order of the
 * same actions takes less. */
uint64_t plan_busy(const Plan *plan);

/* ---- compact.c ---- */

/* A copy in `arena`, without placements that no action uses; the
 * first `n_kept` stay. */
Plan plan_compact(Arena *arena, const Plan *plan, uint32_t n_kept);

#endif
