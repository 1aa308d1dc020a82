/* alloc.c - Schedule -> Plan: the story on one page.
 *
 * Roles of tensors, then units that share a buffer, then one level: everything
 * stays in active memory from its first write to its last read. Where that does
 * not fit, two levels: some volumes leave and come back, some nodes run by
 * tiles. Then the actions, and the judge.
 */
#include "alloc/overlap/overlap.h"
#include "alloc/search/contest.h"
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
    if (time_counts(schedule, options)) {
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

bool work_choose_groups(Work *w, uint32_t share) {
    if (w->spec->tiling.kind != HW_TILING_SOFTWARE)
        return false;
    couples_choose(w);
    return groups_known(w, w->total / 16 * share) > 0;
}

bool work_fit_groups(Work *w, Problem *problem, PlanResult *result,
                     const char **planner) {
    if (!w->group.n)
        return false;
    groups_narrow(w);
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

static uint32_t all_kinds(const Work *w) {
    uint32_t kinds = 0;
    for (NodeId n = {0}; n.i < w->g->node.n; n.i++)
        kinds |= group_kind(w, n);
    return kinds;
}

bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Once *once, uint64_t less) {
    Arena *arena = arena_new("exists");
    Schedule resized = *schedule;
    resized.spec = spec;
    Contest c = {.arena = arena,
                 .schedule = &resized,
                 .options = options,
                 .enough = true};
    const Work *first = work_new(arena, &resized, spec, options, once);
    c.once = first->once;
    c.kinds = all_kinds(first);
    c.never = never_less(first);
    c.never = c.never > less ? c.never : less + (less > 0);
    way_choose(&c);
    arena_free(arena);
    return c.any && !c.least.traffic.too_long;
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

/* The contest's plan to the last action. Its bytes are settled: from here on
 * transfers alone are ordered, at this pace. */
static Plan *finish_volumes(void *context, Diag *diag, const Pace *pace) {
    Contest c = *(const Contest *)context;
    c.pace = pace;
    Plan *plan = way_plan(c.arena, diag, &c, &c.best);
    Plan *known = pace->known;
    if (known &&
        (!plan || plan->cycles >= known->cycles || !pace_admits(pace, plan)))
        plan = known;
    if (!plan)
        return NULL;
    Schedule *schedule = ARENA_COPY(c.arena, Schedule, c.schedule, 1);
    schedule->spec = pace->spec;
    c.schedule = schedule;
    return plan_hidden(c.arena, &c, plan);
}

Work *contest_open(Contest *c, Plan *bound) {
    const Schedule *schedule = c->schedule;
    Work *first =
        work_new(c->arena, schedule, schedule->spec, c->options, NULL);
    c->once = first->once;
    c->weights = weights_once(first);
    c->kinds = all_kinds(first);
    c->never = never_less(first);
    bound_make(first, bound);
    c->compulsory = bound->ddr_compulsory;
    return first;
}

Plan *plan_volumes(Arena *arena, Diag *diag, const Schedule *real,
                   const PlanOptions *options, bool *does_not_fit) {
    *does_not_fit = false;
    Plan bound = {0};
    Schedule *schedule = ARENA_COPY(arena, Schedule, real, 1);
    schedule->spec = hwspec_planned(arena, real->spec);
    Contest c = {.arena = arena, .schedule = schedule, .options = options};
    Work *first = contest_open(&c, &bound);
    way_choose(&c);
    if (!c.any) {
        *does_not_fit = true;
        say_why(arena, diag, schedule, options, c.once);
        return NULL;
    }
    Plan *plan = plan_at_pace(arena, diag, real, finish_volumes, &c);
    if (!plan)
        return NULL;
    Traffic traffic = plan_traffic(plan);
    if (traffic.too_long) {
        *does_not_fit = true;
        explain_length(diag, first, traffic.instructions);
        return NULL;
    }
    const HwSpec *spec = schedule->spec;
    bool smaller = spec->n_active == 1 && c.best.size < spec->memory[0].size;
    plan->am_planned = smaller && !plan->keeps_all ? c.best.size : 0;
    plan->ddr_moved = traffic.moved;
    plan->ddr_compulsory = bound.ddr_compulsory;
    plan->ddr_bound = bound.ddr_bound;
    plan->ddr_again = plan_traffic(plan).again;
    plan->ddr_once = bound.ddr_once;
    plan->ddr_layers = bound.ddr_layers;
    return plan;
}

typedef struct StagedTask {
    Arena *arena;
    const Schedule *schedule;
    const PlanOptions *options;
} StagedTask;

static Plan *finish_staged(void *context, Diag *diag, const Pace *pace) {
    const StagedTask *task = context;
    Schedule *schedule = ARENA_COPY(task->arena, Schedule, task->schedule, 1);
    (void)diag; /* why it does not fit is asked once */
    schedule->spec = pace->spec;
    Plan *plan = plan_staged(task->arena, schedule, task->options);
    return plan && pace_admits(pace, plan) ? plan : NULL;
}

/* Weights move as well, and bounds hold for both. */
static Plan *make_staged(Arena *arena, Diag *diag, const Schedule *real,
                         const PlanOptions *options, bool *does_not_fit) {
    StagedTask task = {arena, real, options};
    Plan *plan = plan_at_pace(arena, diag, real, finish_staged, &task);
    if (!plan) {
        *does_not_fit = true;
        explain_staged(arena, diag, real, options);
        return NULL;
    }
    uint64_t once = plan_staged_weights(real);
    plan->ddr_compulsory += once;
    plan->ddr_bound += once;
    plan->ddr_once += once;
    plan->ddr_layers += once;
    return plan;
}

const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, bool *does_not_fit) {
    *does_not_fit = false;
    if (!planner_known(diag, options->planner))
        return NULL;
    Plan *plan = (schedule->spec->tiling.queue ? make_staged : plan_volumes)(
        arena, diag, schedule, options, does_not_fit);
    if (!plan)
        return NULL;
    const char *wrong = plan_judge(arena, plan);
    if (wrong)
        bug("plan of %s: %s", schedule->graph->name, wrong);
    return plan;
}
