/* alloc.c - Schedule -> Plan: the story on one page.
 *
 * Roles of tensors, then units that share a buffer, then one level: everything
 * stays in active memory from its first write to its last read. Where that does
 * not fit, two levels: some volumes leave and come back, some nodes run by
 * tiles. Then the actions, and the judge.
 */
#include "alloc/overlap/overlap.h"
#include "alloc/search/search.h"
#include "alloc/weights/weights.h"
#include "pack/packers.h"

#include "hwspec/cost.h"

#include <math.h>
#include <string.h>

static void slots_read(Work *w) {
    for (uint32_t s = 0; s < w->schedule->n_steps; s++)
        for (uint32_t i = 0; i < w->schedule->step[s].n; i++) {
            const Slot *slot = &w->schedule->step[s].slot[i];
            w->legal[slot->node.i] = slot->legal;
        }
}

static const Once *once_new(Arena *arena, const Schedule *schedule,
                            const PlanOptions *options) {
    Once *once = ARENA_NEW(arena, Once);
    uint32_t n = schedule->n_steps;
    once->arena = arena;
    if (schedule->spec->tiling.rings) {
        once->rolls = roll_costs_new(arena, n);
        once->flow = flow_new(arena, schedule);
    }
    once->stripes = stripe_costs_new(arena, n);
    once->nest = ARENA_ARRAY(arena, NestKnown *, nest_slots(schedule));
    if (options->cycles) {
        once->table = ARENA_ARRAY(arena, NestTable *, nest_slots(schedule));
        once->smallest = ARENA_ARRAY(arena, NestKnown *, nest_slots(schedule));
    }
    once->planks = ARENA_ARRAY(arena, PlankRows, plank_slots(schedule->graph));
    once->recall = recall_new(arena);
    once->slab = ARENA_ARRAY(arena, uint32_t, 2 * schedule->graph->node.n + 2);
    return once;
}

Work *work_new(Arena *arena, const Schedule *schedule, const HwSpec *spec,
               const PlanOptions *options, const Once *once) {
    return work_new_with(arena, schedule, spec, options, once, (Start){0});
}

Work *work_new_with(Arena *arena, const Schedule *schedule, const HwSpec *spec,
                    const PlanOptions *options, const Once *once, Start start) {
    Work *w = ARENA_NEW(arena, Work);
    w->streams_first = start.streams_first;
    w->tiny = start.tiny;
    w->price = start.price;
    w->arena = arena;
    w->schedule = schedule;
    w->spec = spec;
    w->g = schedule->graph;
    w->options = options;
    w->once = once ? once : once_new(arena, schedule, options);
    w->uses = graph_uses(arena, w->g);
    w->legal = ARENA_ARRAY(arena, Legal, w->g->node.n + 1);
    w->copy = ARENA_ARRAY(arena, Legal, w->g->tensor.n + 1);
    w->mode = ARENA_ARRAY(arena, Mode, w->g->node.n + 1);
    w->role = ARENA_ARRAY(arena, Role, w->g->tensor.n + 1);
    w->unit_of = ARENA_ARRAY(arena, uint32_t, w->g->tensor.n + 1);
    w->relay_rows = ARENA_ARRAY(arena, uint32_t, w->g->tensor.n + 1);
    w->given_up = ARENA_ARRAY(arena, uint8_t, schedule->n_steps + 1);
    for (TensorId t = {0}; t.i < w->g->tensor.n; t.i++)
        w->relay_rows[t.i] = plan_volume(w->g, t).h;
    for (NodeId n = {0}; n.i < w->g->node.n; n.i++)
        w->legal[n.i] = (Legal){.engine = -1, .op = HW_OP_HOST};
    for (uint32_t m = 0; m < spec->n_active; m++) {
        Pool pool = pool_of(&spec->memory[m]);
        w->total += round_up(pool.size, pool.align);
    }
    slots_read(w);
    roles_make(w);
    ahead_choose(w);
    modes_start(w);
    units_make(w);
    w->settled = modes_settle(w);
    w->most = HUGE_VAL;
    return w;
}

/* All volumes stay that are not replicated on the fly. */
static bool fit_kept(Work *w, Problem *problem, PlanResult *result,
                     const char **planner, bool *two_levels) {
    *two_levels = fly_choose(w);
    if (fit_one_level(w, problem, result, planner))
        return true;
    if (*two_levels) {
        *two_levels = false;
        start_again(w);
        if (fit_one_level(w, problem, result, planner))
            return true;
    }
    return fit_slots(w, problem, result, planner);
}

bool work_fit(Work *w, Problem *problem, PlanResult *result,
              const char **planner, bool *two_levels) {
    if (!w->settled)
        return false;
    w->keeps_all = fit_kept(w, problem, result, planner, two_levels);
    if (w->keeps_all)
        return true;
    *two_levels = true;
    couples_choose(w);
    return fit_two_levels(w, problem, result, planner);
}

bool work_choose_groups(Work *w) {
    if (w->spec->tiling.kind != HW_TILING_SOFTWARE)
        return false;
    couples_choose(w);
    return groups_known(w, w->total) > 0;
}

bool work_fit_groups(Work *w, Problem *problem, PlanResult *result,
                     const char **planner) {
    if (!w->group.n)
        return false;
    if (!groups_apply(w))
        return false;
    groups_lower(w);
    return fit_around(w, problem, result, planner);
}

static bool planner_known(Diag *diag, const char *name) {
    if (!strcmp(name, "auto") || planner_find(name))
        return true;
    diag_error(diag, (Loc){0}, "no planner is called '%s'", name);
    for (uint32_t i = 0; i < n_planners; i++)
        diag_note(diag, (Loc){0}, "%s: %s", planners[i].name, planners[i].doc);
    return false;
}

bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Once *once) {
    Arena *arena = arena_new("exists");
    Schedule resized = *schedule;
    Plan bound = {0};
    Search s;
    resized.spec = spec;
    search_open(&s, arena, &resized, options, once, &bound);
    s.any = true;
    bool found = search_run(&s) && !s.best[0]->traffic.too_long;
    search_close(&s);
    arena_free(arena);
    return found;
}

static void say_why(Arena *arena, Diag *diag, const Schedule *schedule,
                    const PlanOptions *options, const Once *once) {
    Work *w = work_new(arena, schedule, schedule->spec, options, once);
    Plan *plan = ARENA_NEW(arena, Plan);
    Problem problem = {0};
    PlanResult result = {0};
    w->explains = true;
    if (work_fit(w, &problem, &result, &plan->planner, &plan->two_levels))
        actions_make(w, diag, &problem, &result, plan);
    else
        explain(diag, w, &problem, &result);
}

/* The best plan that is legal; NULL: there is none. */
static Plan *take_legal(Search *s) {
    for (;;) {
        Plan *plan = search_take(s);
        if (!plan || s->judges || search_admits(s, plan))
            return plan;
    }
}

/* All plans that were found are illegal: our bug, if it was our judge. */
static void blame_us(const Schedule *schedule, const PlanOptions *options) {
    if (!options->judge)
        bug("no plan of %s is legal", schedule->graph->name);
}

static void note_spent(Diag *diag) {
    diag_note(diag, (Loc){0},
              "the search ended where its budget of steps did: there may be a "
              "plan that it has not come to; --effort gives it more");
}

/* Of a plan that is only tried nobody reads why there is none. */
static bool wants_reasons(const PlanOptions *options) {
    return options->asked != NULL;
}

static void take_bounds(Plan *plan, const Plan *bound) {
    plan->ddr_compulsory = bound->ddr_compulsory;
    plan->ddr_bound = bound->ddr_bound;
    plan->ddr_once = bound->ddr_once;
    plan->ddr_layers = bound->ddr_layers;
}

/* Where all of the best were illegal, each is verified as it is found. */
static Plan *find_legal(Search *s) {
    search_run(s);
    Plan *plan = take_legal(s);
    if (plan || !s->rejected)
        return plan;
    search_again(s);
    s->judges = true;
    search_run(s);
    plan = take_legal(s);
    if (!plan)
        blame_us(s->schedule, s->options);
    return plan;
}

Plan *plan_volumes(Arena *arena, Diag *diag, const Schedule *schedule,
                   const PlanOptions *options, bool *does_not_fit) {
    Plan bound = {0};
    Search s;
    Work *first = search_open(&s, arena, schedule, options, NULL, &bound);
    Plan *plan = find_legal(&s);
    search_close(&s);
    bool spent = budget_spent(options->budget);
    *does_not_fit = true;
    if (!plan && !wants_reasons(options))
        return NULL;
    if (!plan) {
        PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
        own->budget = NULL;
        say_why(arena, diag, schedule, own, s.once);
        if (spent)
            note_spent(diag);
        return NULL;
    }
    Traffic traffic = plan_traffic(plan);
    if (traffic.too_long) {
        if (wants_reasons(options))
            explain_length(diag, first, traffic.instructions);
        return NULL;
    }
    *does_not_fit = false;
    take_bounds(plan, &bound);
    plan->rejected = s.rejected;
    plan->n_front = archive_front(arena, &s.archive, &plan->front);
    return plan;
}

/* Weights move as well, and bounds hold for both. */
static Plan *make_staged(Arena *arena, Diag *diag, const Schedule *schedule,
                         const PlanOptions *options, bool *does_not_fit) {
    uint32_t rejected = 0;
    Plan *plan = plan_staged(arena, schedule, options, &rejected);
    if (!plan && rejected)
        blame_us(schedule, options);
    if (!plan) {
        *does_not_fit = true;
        if (wants_reasons(options))
            explain_staged(arena, diag, schedule, options);
        return NULL;
    }
    uint64_t once = plan_staged_weights(schedule);
    plan->ddr_compulsory += once;
    plan->ddr_bound += once;
    plan->ddr_once += once;
    plan->ddr_layers += once;
    plan->rejected = rejected;
    return plan;
}

/* ---- the door ---- */

static Plan *make(Arena *arena, Diag *diag, const Schedule *schedule,
                  const PlanOptions *options, bool *does_not_fit) {
    return (schedule->spec->tiling.queue ? make_staged : plan_volumes)(
        arena, diag, schedule, options, does_not_fit);
}

bool plan_would_do(const Asked *asked, Budget *budget, uint64_t size) {
    if (budget_spent(budget))
        return false;
    Arena *arena = arena_new("would do");
    Schedule *schedule = ARENA_COPY(arena, Schedule, asked->schedule, 1);
    PlanOptions *options = ARENA_COPY(arena, PlanOptions, asked->options, 1);
    bool does_not_fit;
    schedule->spec = spec_within(arena, schedule->spec, size);
    options->no_remedy = true;
    options->asked = NULL;
    options->budget = budget;
    bool does = make(arena, diag_new(arena), schedule, options, &does_not_fit);
    arena_free(arena);
    return does;
}

/* The higher the effort, the more. */
static Budget plan_budget(const Schedule *schedule, uint32_t effort) {
    static const uint64_t times[PLAN_MOST_EFFORT + 1] = {1, 1, 16, 256};
    Budget budget = budget_of(BUDGET_PLAN, schedule->n_steps);
    budget.left *= times[effort < PLAN_MOST_EFFORT ? effort : PLAN_MOST_EFFORT];
    return budget;
}

const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, bool *does_not_fit) {
    *does_not_fit = false;
    if (!planner_known(diag, options->planner))
        return NULL;
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    Budget budget = plan_budget(schedule, options->effort);
    own->asked = &(Asked){schedule, options};
    own->budget = &budget;
    return make(arena, diag, schedule, own, does_not_fit);
}
