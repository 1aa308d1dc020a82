/* planner_bottom.c - always the lowest free block, at its low end. */
#include "alloc/online.h"
#include "alloc/planners.h"

void plan_bottom(Arena *arena, const PlanProblem *problem, PlanResult *result) {
    online_plan(arena, problem, result, choose_bottom);
}
