/* planner_tops.c - always the highest free block, at its high end. */
#include "alloc/online.h"
#include "alloc/planners.h"

void plan_tops(Arena *arena, const PlanProblem *problem, PlanResult *result) {
    online_plan(arena, problem, result, choose_tops);
}
