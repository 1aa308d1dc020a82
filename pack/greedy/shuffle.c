/* shuffle.c - large volumes to the bottom, small ones to the top: at
 * least as large as the first volume alive at the peak step is large. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

static uint64_t choose(const void *context, const Gaps *gaps) {
    const Online *online = context;
    bool large = buf_bytes(online->problem, gaps->buf) >= online->boundary;
    return large ? choose_bottom(context, gaps) : choose_tops(context, gaps);
}

void plan_shuffle(Arena *arena, const PackProblem *problem,
                  PackResult *result) {
    online_plan(arena, problem, result, choose);
}
