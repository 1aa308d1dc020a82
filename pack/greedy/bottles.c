/* bottles.c - bottle for networks with several bottlenecks: the turns
 * are counted from the nearest step whose live bytes are a local peak of more
 * than half the highest; of two equally near, from the earlier. */
#include "pack/greedy/online.h"
#include "pack/packers.h"

static bool is_bottleneck(const Online *online, uint32_t birth) {
    const uint64_t *live = online->live;
    bool rises = birth == 0 || live[birth - 1] < live[birth];
    bool falls =
        birth + 1 == online->n_births || live[birth + 1] <= live[birth];
    return rises && falls && live[birth] > live[online->peak] / 2;
}

/* Steps to the nearest bottleneck; the peak is one, so the search ends. */
static uint32_t distance(const Online *online) {
    uint32_t birth = online->birth, last = online->n_births - 1;
    for (uint32_t d = 0; d <= last; d++)
        if ((d <= birth && is_bottleneck(online, birth - d)) ||
            (d <= last - birth && is_bottleneck(online, birth + d)))
            return d;
    return 0;
}

static uint64_t choose(const void *context, const Gaps *gaps) {
    return distance(context) % 2 ? choose_tops(context, gaps)
                                 : choose_bottom(context, gaps);
}

void plan_bottles(Arena *arena, const PackProblem *problem,
                  PackResult *result) {
    online_plan(arena, problem, result, choose);
}
