/* packers.h - the functions behind the rows of packers.def. */
#ifndef PACK_PACKERS_H
#define PACK_PACKERS_H

#include "pack/pack.h"

#define PLANNER(name, in_auto, doc) PlanFn plan_##name;
#include "pack/packers.def"
#undef PLANNER

/* plan_layers that gives up after so many steps (placer_steps): FAILS. */
void plan_layers_within(Arena *arena, const PlanProblem *problem,
                        uint64_t steps, PlanResult *result);

/* Fills bound, cost_bound and failed; true where nothing fits. */
bool plan_refuted(const PlanProblem *problem, PlanResult *result);

/* By buffer: does it lie inside another? NULL if none does. */
bool *plan_insides(Arena *arena, const PlanProblem *problem);

/* Fills heights, cost and hints of a placement. */
void plan_measure(const PlanProblem *problem, PlanResult *result);

/* By buffer: with how many others its life overlaps; gaps are not looked at. */
uint32_t *plan_conflicts(Arena *arena, const PlanProblem *problem);

/* Heights of all pools, added. */
uint64_t plan_height(const PlanResult *result);

/* Fits where the other does not, or costs less, or is lower, or keeps more
 * hints: in this order. */
bool plan_better(const PlanResult *a, const PlanResult *b);

/* A copy into the arrays of `to`. */
void plan_keep(PlanResult *to, const PlanResult *from, uint32_t n_bufs);

#endif
