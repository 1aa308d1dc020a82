/* planner_portfolio.c - every cheap planner, then the search from the best of
 * what they found; stops as soon as the bound is reached. Of the cheap ones
 * most take the square of the number of buffers: many buffers get few of them.
 */
#include "alloc/exact.h"
#include "alloc/planners.h"

#include <string.h>

enum { MANY = 4000, TOO_MANY = 40000 };

static bool is_cheap(const Planner *planner, uint32_t n_bufs) {
    if (planner->run == plan_large)
        return true;
    if (n_bufs > MANY)
        return n_bufs <= TOO_MANY && planner->run == plan_greedy_by_size;
    return planner->in_auto && planner->run != plan_exact;
}

void plan_portfolio(Arena *arena, const PlanProblem *problem,
                    PlanResult *result) {
    result->status = PLAN_FAILS;
    PlanResult best;
    bool first = true;
    for (const Planner *row = planners; row < planners + n_planners; row++) {
        const char *used;
        if (!is_cheap(row, problem->n_bufs))
            continue;
        plan_memory(arena, problem, row->name, false, &best, &used);
        if (first || plan_better(&best, result))
            plan_keep(result, &best, problem->n_bufs);
        first = false;
        if (result->status == PLAN_FITS && (best.proved || problem->any_fit))
            break;
    }
    exact_improve(arena, problem, result);
}
