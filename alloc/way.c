/* way.c - one way to plan, from units to actions.
 *
 * Input: a schedule, and the bytes of active memory within which it is planned.
 * Output: a plan for the real memory, or none.
 */
#include "alloc/contest.h"
#include "alloc/overlap.h"
#include "alloc/planners.h"

#include <math.h>
#include <string.h>

static bool way_fit(Work *w, const Way *way, Problem *problem,
                    PlanResult *result, const char **planner,
                    bool *two_levels) {
    w->wholes_first = way->wholes;
    w->streams_first = way->streams;
    w->apart = way->apart;
    w->low = way->low;
    w->thrift = way->thrift;
    w->runs = way->runs;
    if (way->streams)
        start_again(w);
    if (way->rolls) {
        *two_levels = true;
        return fit_rolling(w, problem, result, planner);
    }
    if (way->mends) {
        *two_levels = true;
        return groups_mend(w) && fit_around(w, problem, result, planner);
    }
    if (!way->share)
        return work_fit(w, problem, result, planner, two_levels);
    *two_levels = true;
    return work_fit_groups(w, way->share, problem, result, planner);
}

/* The machine as if its first active memory ended at `size`: what is planned
 * for that holds for the real one. */
static const HwSpec *spec_within(Arena *arena, const HwSpec *spec,
                                 uint64_t size) {
    HwSpec *copy = ARENA_COPY(arena, HwSpec, spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    memory[0].size = size;
    copy->memory = memory;
    return copy;
}

/* Lowers the placement to the least height, or as far as some steps of search
 * go. Where buffers are pinned together that is not asked. */
static void settle(const Work *w, const Problem *problem, PlanResult *result,
                   const char **planner) {
    enum { STEPS = 30000 };
    bool tied = false; /* but not by relations */
    for (uint32_t i = 0; i < problem->buf.n && !tied && !problem->relation.n;
         i++)
        tied = problem->owner.at[i].kind != OWNER_TILE &&
               (problem->tied.at[i] != i || problem->buf.at[i].pin_pool >= 0);
    if (result->proved || tied || strcmp(w->options->planner, "auto") != 0)
        return;
    PlanProblem asked = problem->p;
    asked.budget = STEPS;
    PlanResult lower;
    const char *used;
    plan_memory(w->arena, &asked, "portfolio", true, &lower, &used);
    if (lower.status != PLAN_FITS || plan_height(&lower) > plan_height(result))
        return;
    if (plan_height(&lower) < plan_height(result))
        *planner = used;
    *result = lower;
}

/* What was planned for a larger memory may be so low that it lies in the real
 * one. */
static bool lies_within(Work *w, const HwSpec *real, Problem *problem,
                        uint64_t height) {
    if (w->spec->memory[0].size <= real->memory[0].size)
        return true;
    w->spec = real;
    problem->p.pool[0] = pool_of(&real->memory[0]);
    return height <= real->memory[0].size;
}

Plan *way_plan(Arena *arena, Diag *diag, const Contest *c, const Way *way,
               bool last, uint64_t *height, bool *hopeless) {
    const Schedule *schedule = c->schedule;
    const HwSpec *spec = spec_within(arena, schedule->spec, way->size);
    Work *w = work_new(arena, schedule, spec, c->options, c->once);
    Plan *plan = ARENA_NEW(arena, Plan);
    Problem problem = {0};
    PlanResult result = {0};
    *height = 0;
    w->most = way->most;
    w->known = c->known;
    bool fits =
        way_fit(w, way, &problem, &result, &plan->planner, &plan->two_levels);
    *hopeless = w->hopeless;
    if (!fits)
        return NULL;
    if (last)
        pass_through(w, &problem, &result, &plan->planner);
    if (last || way->size > schedule->spec->memory[0].size)
        settle(w, &problem, &result, &plan->planner);
    *height = plan_height(&result);
    if (!lies_within(w, schedule->spec, &problem, *height))
        return NULL;
    plan->am_packed = plan_height(&result);
    plan->am_bound = result.bound;
    plan->am_proved = result.proved;
    if (strcmp(plan->planner, "slots") != 0) /* its parts lie as they must */
        spread(w, &problem, &result);
    plan->keeps_all = w->keeps_all;
    plan->cuts = way->cuts;
    plan->lends = w->lends;
    plan->by_parts = w->by_parts;
    if (!actions_make(w, diag, &problem, &result, plan))
        return NULL;
    if (last && spec->tiling.overlap)
        stretch(w, diag_new(arena), &problem, &result, plan);
    return plan;
}
