/* way.c - one way to plan, from units to actions.
 *
 * Input: a schedule, and the bytes of active memory within which it is planned.
 * Output: a plan for the real memory, or none.
 */
#include "alloc/contest.h"
#include "alloc/overlap.h"
#include "alloc/planners.h"

#include "hwspec/cost.h"

#include <math.h>
#include <string.h>

static void way_set(Work *w, const Way *way) {
    w->wholes_first = way->wholes;
    w->apart = way->apart;
    w->low = way->low;
    w->thrift = way->thrift;
    w->haste = way->haste;
    w->runs = way->runs;
    w->narrow = way->narrow;
}

static bool has_groups(const Way *way) {
    return way->share && !way->rolls && !way->mends;
}

static bool way_fit(Work *w, const Way *way, Problem *problem,
                    PlanResult *result, const char **planner,
                    bool *two_levels) {
    if (way->rolls) {
        *two_levels = true;
        return fit_rolling(w, problem, result, planner);
    }
    if (way->mends) {
        *two_levels = true;
        couples_choose(w);
        return groups_mend(w) && fit_around(w, problem, result, planner);
    }
    if (!has_groups(way))
        return work_fit(w, problem, result, planner, two_levels);
    *two_levels = true;
    return work_fit_groups(w, problem, result, planner);
}

/* The machine with another size of its first memory; tile buffers stay where
 * they are. */
static HwSpec *spec_shrunk(Arena *arena, const HwSpec *spec, uint64_t size) {
    HwSpec *copy = ARENA_COPY(arena, HwSpec, spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    memory[0].size = size;
    copy->memory = memory;
    return copy;
}

/* The same with less of its other active memories. */
static const HwSpec *spec_capped(Arena *arena, const HwSpec *spec,
                                 uint64_t others) {
    HwSpec *copy = ARENA_COPY(arena, HwSpec, spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    for (uint32_t m = 1; m < spec->n_active; m++)
        if (memory[m].size > others)
            memory[m].size = others;
    copy->memory = memory;
    return copy;
}

const HwSpec *spec_within(Arena *arena, const HwSpec *spec, uint64_t size) {
    HwSpec *copy = spec_shrunk(arena, spec, size);
    HwTileStyle *style =
        ARENA_COPY(arena, HwTileStyle, spec->tiling.style, spec->tiling.n);
    for (uint32_t i = 0; i < spec->tiling.n; i++)
        hwspec_place_style(&style[i], &copy->memory[0]);
    copy->tiling.style = style;
    return copy;
}

static const Schedule *schedule_on(Arena *arena, const Schedule *schedule,
                                   const HwSpec *spec) {
    Schedule *copy = ARENA_COPY(arena, Schedule, schedule, 1);
    copy->spec = spec;
    return copy;
}

const Schedule *schedule_within(Arena *arena, const Schedule *real,
                                uint64_t size) {
    return schedule_on(arena, real, spec_shrunk(arena, real->spec, size));
}

static const HwSpec *real_spec(const Contest *c) {
    return c->pace ? c->pace->spec : c->schedule->spec;
}

const Schedule *schedule_tiled(Arena *arena, const Schedule *schedule,
                               const HwSpec *real, const HwSpec *planned) {
    HwSpec *spec = ARENA_COPY(arena, HwSpec, real, 1);
    spec->tiling.style = planned->tiling.style;
    return schedule_on(arena, schedule, spec);
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
    placed_once(w->once->recall, w->arena, &asked, "portfolio", true, &lower,
                &used);
    if (lower.status != PLAN_FITS || plan_height(&lower) > plan_height(result))
        return;
    if (plan_height(&lower) < plan_height(result))
        *planner = used;
    *result = lower;
}

static void lower(Attempt *a) {
    pass_through(a->w, &a->problem, &a->result, &a->plan->planner);
    if (!a->way.loose || a->w->keeps_all)
        settle(a->w, &a->problem, &a->result, &a->plan->planner);
}

/* What was planned for a larger memory may be so low that it lies in the real
 * one; then it is planned for that from now on. */
static bool lies_within(Attempt *a, const HwSpec *real) {
    const HwMemory *memory = &real->memory[0];
    if (a->way.size <= memory->size)
        return true;
    a->schedule->spec = a->w->spec = real;
    a->problem.p.pool[0] = pool_of(memory);
    return a->height <= memory->size;
}

void way_open(Arena *arena, const Contest *c, const Way *way, Attempt *a) {
    Schedule *schedule = ARENA_COPY(arena, Schedule, c->schedule, 1);
    if (way->size != schedule->spec->memory[0].size)
        schedule->spec = weighs_time(c)
                             ? spec_within(arena, schedule->spec, way->size)
                             : spec_shrunk(arena, schedule->spec, way->size);
    if (way->others)
        schedule->spec = spec_capped(arena, schedule->spec, way->others);
    const Once *once = way->others ? NULL : c->once;
    Start start = {way->streams, way->tiny, way->price};
    Work *w = work_new_with(arena, schedule, schedule->spec, c->options, once,
                            start);
    *a = (Attempt){.arena = arena,
                   .way = *way,
                   .schedule = schedule,
                   .w = w,
                   .plan = ARENA_NEW(arena, Plan)};
    w->most = way->most;
    w->brief = way->brief;
    a->way.brief = false;
    w->known = way->others ? NULL : c->known;
    way_set(w, way);
    if (has_groups(way))
        work_choose_groups(w, way->share);
}

bool way_settle(const Contest *c, Attempt *a) {
    Work *w = a->w;
    const Way *way = &a->way;
    bool fits = way_fit(w, way, &a->problem, &a->result, &a->plan->planner,
                        &a->plan->two_levels);
    a->hopeless = w->hopeless;
    a->too_long = !fits && w->gave_up;
    if (fits && way->tight)
        lower(a);
    a->height = fits ? plan_height(&a->result) : 0;
    a->plan->keeps_all = w->keeps_all;
    a->plan->cuts = way->cuts;
    a->plan->lends = w->lends;
    a->plan->by_parts = w->by_parts;
    return fits && (!way->falls || lies_within(a, c->schedule->spec));
}

bool way_place(Arena *arena, const Contest *c, const Way *way, Attempt *a) {
    way_open(arena, c, way, a);
    return way_settle(c, a);
}

bool way_act(Attempt *a, Diag *diag) {
    Plan *plan = a->plan;
    plan->am_packed = plan_height(&a->result);
    plan->am_bound = a->result.bound;
    plan->am_proved = a->result.proved;
    return actions_make(a->w, diag, &a->problem, &a->result, plan);
}

/* All is chosen but the order of transfers. */
static void take_times(Attempt *a, const Contest *c) {
    if (!c->pace)
        return;
    a->w->spec = hwspec_timed_as(a->arena, a->w->spec, c->pace->spec);
    a->w->schedule = schedule_on(a->arena, a->w->schedule, a->w->spec);
}

bool way_finish(Attempt *a, Diag *diag, const Contest *c) {
    enum { TIMED = 8 }; /* steps to order an action, and to give it its time */
    Plan *plan = a->plan;
    take_times(a, c);
    if (!a->way.tight)
        lower(a);
    uint64_t packed = plan_height(&a->result);
    if (a->way.tight)
        a->problem.p.pool[0].size = packed;
    const HwMemory *real = &c->schedule->spec->memory[0];
    bool smaller = a->way.size < real->size && !a->way.within;
    if (strcmp(plan->planner, "slots") != 0) { /* its parts lie as they must */
        spread(a->w, &a->problem, &a->result);
        if (smaller)
            partitions_keep(a->w, &a->problem, &a->result, real);
    }
    if (!way_act(a, diag))
        return false;
    plan->am_packed = packed;
    budget_take(c->options->budget, TIMED * (uint64_t)plan->n_actions);
    if (a->w->spec->tiling.overlap)
        stretch(a->w, diag_new(a->arena), &a->problem, &a->result, plan,
                a->way.quick, a->way.cycles);
    slow_down(a->arena, plan, a->way.slow.least, a->way.slow.most);
    if (smaller)
        plan->planned_in = &plan->schedule->spec->memory[0];
    if (smaller || a->way.others)
        plan->schedule = schedule_tiled(a->arena, c->schedule, real_spec(c),
                                        plan->schedule->spec);
    return true;
}

Plan *way_plan(Arena *arena, Diag *diag, const Contest *c, const Way *way) {
    Attempt a;
    return way_place(arena, c, way, &a) && way_finish(&a, diag, c) ? a.plan
                                                                   : NULL;
}
