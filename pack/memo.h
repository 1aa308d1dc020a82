/* memo.h - placements that were asked for before. */
#ifndef PACK_MEMO_H
#define PACK_MEMO_H

#include "base/memo.h"
#include "pack/pack.h"

/* As plan_memory, but what was asked before is not searched again. */
void placed_once(Recall *recall, Arena *arena, const PlanProblem *problem,
                 const char *planner, bool best, PlanResult *result,
                 const char **used);

#endif
