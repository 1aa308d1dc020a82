/* planners.h - the functions behind the rows of planners.def. */
#ifndef ALLOC_PLANNERS_H
#define ALLOC_PLANNERS_H

#include "alloc/planner.h"

#define PLANNER(name, in_auto, doc) PlanFn plan_##name;
#include "alloc/planners.def"
#undef PLANNER

/* Fits where the other does not, or is lower. */
bool plan_better(const PlanResult *a, const PlanResult *b);

/* A copy into the arrays of `to`. */
void plan_keep(PlanResult *to, const PlanResult *from, uint32_t n_bufs);

#endif
