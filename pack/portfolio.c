/* portfolio.c - every cheap planner, then the search from the best of
 * what they found; stops as soon as the bound is reached. Of the cheap ones
 * most take the square of the number of buffers: many buffers get few of them.
 *
 * Several pools: cheap planners fill the first to the brim before they look at
 * the next, where a lower first one may make both together lower. So they are
 * asked again with one pool cut to sixteenths of what they used.
 */
#include "pack/exact/exact.h"
#include "pack/packers.h"
#include "pack/squeeze.h"

#include <string.h>

enum { FEW = 500, SOME = 1000, MANY = 4000, TOO_MANY = 40000, PARTS = 16 };

static bool is_cheap(const Planner *planner, uint32_t n_bufs) {
    if (planner->run == plan_large)
        return true;
    if (n_bufs > MANY)
        return n_bufs <= TOO_MANY && planner->run == plan_greedy_by_size;
    return planner->in_auto && planner->run != plan_exact;
}

/* Of random orders a few: the budget is for the search behind them. */
static void run_cheap(Arena *arena, const PackProblem *problem,
                      PackResult *result) {
    PackResult best;
    bool first = true;
    for (const Planner *row = planners; row < planners + n_planners; row++) {
        const char *used;
        PackProblem asked = *problem;
        if (!is_cheap(row, problem->n_bufs))
            continue;
        if (row->run == plan_random)
            asked.budget = 0;
        pack_memory(arena, &asked, row->name, false, &best, &used);
        if (first || pack_better(&best, result))
            pack_keep(result, &best, problem->n_bufs);
        first = false;
        if (result->status == PACK_FITS &&
            (best.proved || problem->any_fit || pack_late(problem)))
            return;
    }
}

/* What is proved of the smaller pool does not hold of the whole one. */
static void run_cut(const PackProblem *cut, const char *planner,
                    PackResult *result) {
    Arena *scratch = arena_new("cut");
    PackResult other;
    const char *used;
    pack_memory(scratch, cut, planner, false, &other, &used);
    other.bound = result->bound;
    other.cost_bound = result->cost_bound;
    other.proved = false;
    if (other.status == PACK_FITS && pack_better(&other, result))
        pack_keep(result, &other, cut->n_bufs);
    arena_free(scratch);
}

static void cut_pools(const PackProblem *problem, PackResult *result) {
    for (uint32_t p = 0; p < problem->n_pools; p++) {
        PackProblem cut = *problem;
        uint64_t used = result->height[p];
        for (uint64_t part = PARTS; part-- > 1 && !pack_late(problem);) {
            cut.pool[p].size = used / PARTS * part;
            for (uint32_t i = 0; i < n_planners; i++)
                if (is_cheap(&planners[i], problem->n_bufs) &&
                    planners[i].run != plan_random) /* draws until one fits */
                    run_cut(&cut, planners[i].name, result);
        }
    }
}

void plan_portfolio(Arena *arena, const PackProblem *problem,
                    PackResult *result) {
    result->status = PACK_FAILS;
    run_cheap(arena, problem, result);
    bool done =
        result->status == PACK_FITS && (result->proved || problem->any_fit);
    if (problem->n_pools > 1 && problem->n_bufs <= FEW && !done)
        cut_pools(problem, result);
    if (problem->n_bufs > SOME && !done)
        pack_squeeze(problem, result);
    exact_improve(arena, problem, result);
}
