/* tops.c - always the highest free block, at its high end. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

void plan_tops(Arena *arena, const PackProblem *problem, PackResult *result) {
    online_plan(arena, problem, result, choose_tops);
}
