/* planner_random.c - an order drawn from the problem's seed, each buffer in its
 * lowest gap.
 *
 * In one pool some order reaches the least height: that of the offsets in a
 * best placement. So drawing again and again finds it in the end, which tests
 * of other planners lean on.
 */
#include "alloc/place.h"
#include "alloc/planners.h"
#include "base/rng.h"

void plan_random(Arena *arena, const PlanProblem *problem, PlanResult *result) {
    Placer *placer = placer_new(arena, problem, result);
    uint32_t n = problem->n_bufs;
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)(rng_bits(problem->seed, i) % (i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < n; i++)
        placer_put_lowest(placer, order[i]);
}
