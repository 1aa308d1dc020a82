/* bottom.c - always the lowest free block, at its low end. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

void plan_bottom(Arena *arena, const PackProblem *problem, PackResult *result) {
    online_plan(arena, problem, result, choose_bottom);
}
