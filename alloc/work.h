/* work.h - what the files of alloc share while one plan is made; private.
 *
 * The values that they work on are in decisions.h; alias.h, tile.h, cascade.h
 * and spill.h tell what the files do with them, each a room of its own. Here is
 * what begins and ends a plan.
 */
#ifndef ALLOC_WORK_H
#define ALLOC_WORK_H

#include "alloc/alias/alias.h"
#include "alloc/alias/decisions.h"
#include "alloc/cascade/cascade.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"
#include "alloc/tile/tile.h"
#include "pack/memo.h"
#include "plan/cost.h"

/* ---- tensor_bytes.c: what nodes cost ---- */

/* A byte over DDR counts as often as this the cycles that it takes: fewer bytes
 * are worth some time, but not any. */
enum { BYTE_PRICE = 10 };
uint64_t node_work(const Work *w, NodeId id);

/* A placement is asked of the packer: counts it. */
static inline void packing_count(const Work *w) {
    if (w->options->spent)
        w->options->spent->packings++;
}

/* ---- bank_spread.c: free memory for less waiting ---- */

/* Moves buffers of a placement apart. */
void spread(Work *w, Problem *problem, PlanResult *result);

/* ---- lower.c ---- */

/* False, with an error, when an external memory is too small. */
bool actions_make(Work *w, Diag *diag, const Problem *problem,
                  const PlanResult *result, Plan *plan);

/* ---- min_memory.c ---- */

/* Bytes of the first active memory without which some step cannot run; 0 where
 * nobody knows. */
uint64_t never_less(const Work *w);

/* ---- bound.c ---- */

/* Fills ddr_compulsory, ddr_bound, ddr_once and ddr_layers. */
void bound_make(const Work *w, Plan *plan);

/* Longer networks are searched less. */
enum { MANY_STEPS = 200 };

#endif
