/* top.c - always the highest free block, at its low end. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

static uint64_t choose(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[gaps->n - 1].at;
}

void plan_top(Arena *arena, const PackProblem *problem, PackResult *result) {
    online_plan(arena, problem, result, choose);
}
