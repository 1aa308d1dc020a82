/* bysize.c - best fit: the smallest free block that fits, at its low
 * end; the lowest of equals. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

static uint64_t choose(const void *context, const Gaps *gaps) {
    (void)context;
    const Gap *best = &gaps->gap[0];
    for (uint32_t i = 1; i < gaps->n; i++)
        if (gaps->gap[i].end - gaps->gap[i].at < best->end - best->at)
            best = &gaps->gap[i];
    return best->at;
}

void plan_bysize(Arena *arena, const PackProblem *problem, PackResult *result) {
    online_plan(arena, problem, result, choose);
}
