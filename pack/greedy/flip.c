/* flip.c - bottom and tops in turn, so that neighbours in time lie
 * apart. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

static uint64_t choose(const void *context, const Gaps *gaps) {
    const Online *online = context;
    return online->turn % 2 ? choose_tops(context, gaps)
                            : choose_bottom(context, gaps);
}

void plan_flip(Arena *arena, const PackProblem *problem, PackResult *result) {
    online_plan(arena, problem, result, choose);
}
