/* planner_portfolio.c - every cheap planner, then the search from the best of
 * what they found; stops as soon as the bound is reached. */
#include "alloc/exact.h"
#include "alloc/planners.h"

#include <string.h>

static bool is_cheap(const Planner *planner) {
    return planner->in_auto && planner->run != plan_exact;
}

void plan_portfolio(Arena *arena, const PlanProblem *problem,
                    PlanResult *result) {
    result->status = PLAN_FAILS;
    PlanResult best;
    for (const Planner *row = planners; row < planners + n_planners; row++) {
        const char *used;
        if (!is_cheap(row))
            continue;
        plan_memory(arena, problem, row->name, false, &best, &used);
        if (row == planners || plan_better(&best, result))
            plan_keep(result, &best, problem->n_bufs);
        if (result->status == PLAN_FITS && (best.proved || problem->any_fit))
            break;
    }
    exact_improve(arena, problem, result);
}
