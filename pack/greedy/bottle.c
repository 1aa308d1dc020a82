/* bottle.c - bottom and tops in turn, counted from the peak step.
 *
 * In a chain each step makes one volume; turning at every step puts the input
 * and the output of the bottleneck at opposite ends, with all the free bytes in
 * one piece between them. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

static uint64_t choose(const void *context, const Gaps *gaps) {
    const Online *online = context;
    bool odd = (online->birth ^ online->peak) & 1;
    return odd ? choose_tops(context, gaps) : choose_bottom(context, gaps);
}

void plan_bottle(Arena *arena, const PackProblem *problem, PackResult *result) {
    online_plan(arena, problem, result, choose);
}
