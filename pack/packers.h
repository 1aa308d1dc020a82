/* packers.h - the functions behind the rows of packers.def. */
#ifndef PACK_PACKERS_H
#define PACK_PACKERS_H

#include "pack/pack.h"

#define PLANNER(name, in_auto, doc) PlanFn plan_##name;
#include "pack/packers.def"
#undef PLANNER

/* plan_layers that gives up after so many steps (placer_steps): FAILS. */
void pack_layers_within(Arena *arena, const PackProblem *problem,
                        uint64_t steps, PackResult *result);

/* Fills bound, cost_bound and failed; true where nothing fits. */
bool pack_refuted(const PackProblem *problem, PackResult *result);

/* Steps of search that the problem allows, where it leaves them open so many.
 */
uint64_t pack_steps(const PackProblem *problem, uint64_t otherwise);

/* By buffer: does it lie inside another? NULL if none does. */
bool *pack_insides(Arena *arena, const PackProblem *problem);

/* Fills heights, cost and hints of a placement. */
void pack_measure(const PackProblem *problem, PackResult *result);

/* By buffer: with how many others its life overlaps; gaps are not looked at. */
uint32_t *pack_conflicts(Arena *arena, const PackProblem *problem);

/* Heights of all pools, added. */
uint64_t pack_height(const PackResult *result);

/* Fits where the other does not, or costs less, or is lower, or keeps more
 * hints: in this order. */
bool pack_better(const PackResult *a, const PackResult *b);

/* Where somebody wants to hear of placements: this one, if it fits. */
void pack_tell(const PackProblem *problem, const PackResult *result);

/* A copy into the arrays of `to`. */
void pack_keep(PackResult *to, const PackResult *from, uint32_t n_bufs);

#endif
