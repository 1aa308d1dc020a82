/* plan.c - Schedule -> Plan: the story on one page.
 *
 * Roles of tensors, then units that share a buffer, then one level: everything
 * stays in active memory from its first write to its last read. Where that does
 * not fit, two levels: some volumes leave and come back, some nodes run by
 * tiles. Then the actions, and the judge.
 */
#include "alloc/ladder.h"
#include "alloc/overlap.h"
#include "alloc/planners.h"
#include "alloc/stage.h"

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
                 const PlanOptions *options, const Once *once) {
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

/* ---- budgets ---- */

/* The options with another budget; NULL: none. */
static const PlanOptions *options_with(Arena *arena, const PlanOptions *options,
                                       Budget *budget) {
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    own->budget = budget;
    return own;
}

static const PlanOptions *options_for(Arena *arena, const PlanOptions *options,
                                      BudgetName name, uint32_t layers) {
    Budget *budget = ARENA_NEW(arena, Budget);
    *budget = budget_of(name, layers);
    budget->whole = options->budget;
    return options_with(arena, options, budget);
}

/* What the judge found wrong with plans that were to be the answer. */
typedef struct Rejected {
    uint32_t n;
    const char *first; /* a sentence */
} Rejected;

static bool is_legal(Arena *arena, const PlanOptions *options,
                     const Plan *plan, Rejected *rejected) {
    PlanJudge *judge = options->judge ? options->judge : plan_judge;
    const char *wrong = judge(arena, plan);
    if (wrong && !rejected->n++)
        rejected->first = wrong;
    return !wrong;
}

/* No plan that was made is legal: whether one would fit is not known. */
static void blame_us(const Schedule *schedule, const PlanOptions *options,
                     const Rejected *rejected) {
    if (rejected->n && !options->no_remedy)
        bug("plan of %s: %s", schedule->graph->name,
            rejected->first ? rejected->first : "none is legal");
}

/* ---- volumes ---- */

/* The contest's plan to the last action. Its bytes are settled: from here on
 * transfers alone are ordered, at this pace. It was made before: however much
 * of the budget is left, it can be again. */
static Plan *finish_volumes(void *context, Diag *diag, const Pace *pace) {
    enum { FINISHED = 16 }; /* steps for an action */
    const Contest *counted = context;
    Contest c = *counted;
    c.options = options_with(c.arena, c.options, NULL);
    c.pace = pace;
    Plan *plan = way_plan(c.arena, diag, &c, &c.best);
    Plan *known = pace->known;
    if (plan)
        budget_take(counted->options->budget,
                    FINISHED * (uint64_t)plan->n_actions);
    if (known &&
        (!plan || plan->cycles >= known->cycles || !pace_admits(pace, plan)))
        plan = known;
    if (!plan)
        return NULL;
    Schedule *schedule = ARENA_COPY(c.arena, Schedule, c.schedule, 1);
    schedule->spec = pace->spec;
    c.schedule = schedule;
    c.options = counted->options;
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

/* Plans of volumes: what is asked, and what became of it. */
typedef struct Asking {
    Arena *arena;
    const Schedule *real;
    Contest c;
    Rejected rejected;
    uint32_t too_long; /* instructions of a plan that has too many; 0: none */
    bool spent;        /* a budget ran out */
} Asking;

/* The plan of the contest's best way, if it is one. */
static Plan *plan_taken(Asking *a) {
    Contest *c = &a->c;
    Plan *plan = plan_at_pace(a->arena, diag_new(a->arena), a->real,
                              c->options->budget, finish_volumes, c);
    if (!plan)
        return NULL;
    Traffic traffic = plan_traffic(plan);
    if (traffic.too_long) {
        a->too_long = traffic.instructions;
        return NULL;
    }
    return is_legal(a->arena, c->options, plan, &a->rejected) ? plan : NULL;
}

static Plan *plan_chosen(Asking *a, const PlanOptions *options) {
    Contest *c = &a->c;
    c->options = options_for(a->arena, options, BUDGET_PLAN,
                             a->real->n_steps);
    way_choose(c);
    a->spent |= budget_spent(c->options->budget);
    return c->any ? plan_taken(a) : NULL;
}

/* Of the plans for the memory's own size the first that is legal, those with
 * the fewest bytes first; `enough`: of the first ways that fit. */
static Plan *plan_own_size(Asking *a, const PlanOptions *options, bool enough) {
    Contest *c = &a->c;
    c->options =
        options_for(a->arena, options, BUDGET_OWN, a->real->n_steps);
    c->enough = enough;
    c->known = known_groups_new(c->arena);
    Heat h = {.c = c, .most = HUGE_VAL};
    Plan *plan = NULL;
    uint64_t size = c->schedule->spec->memory[0].size;
    if (options->layer_by_layer)
        heat_way(&h, (Way){.size = size});
    else
        heat_ways(&h, size, !enough);
    heat_sort(&h);
    for (uint32_t i = 0; i < h.entry.n && !plan; i++) {
        const Attempt *one = h.entry.at[i];
        c->best = one->way;
        c->best.quick = true;
        if (one->traffic.too_long)
            a->too_long = one->traffic.instructions;
        else
            plan = plan_taken(a);
    }
    heat_free(&h);
    a->spent |= budget_spent(c->options->budget);
    return plan;
}

static Plan *plan_found(Asking *a, const PlanOptions *options) {
    bool own = options->where != PLAN_CHOSEN;
    bool chosen = options->where != PLAN_OWN;
    Plan *plan = chosen ? plan_chosen(a, options) : NULL;
    if (!plan && own && chosen)
        plan = plan_own_size(a, options, false);
    if (!plan && own)
        plan = plan_own_size(a, options, true);
    if (!plan && own && !chosen)
        plan = plan_own_size(a, options, false);
    return plan;
}

/* Whether the user waits for the answer, and for reasons; else it is one of
 * many that advice is made of. */
static bool wants_reasons(const PlanOptions *options) {
    return !options->budget;
}

static void note_spent(Diag *diag) {
    diag_note(diag, (Loc){0},
              "the search ended where its budget of steps did: there may be a "
              "plan that it has not come to");
}

/* Why there is none. False: it would fit, but for a memory outside. */
static bool refuse(Asking *a, Diag *diag, Work *first,
                   const PlanOptions *options) {
    Contest *c = &a->c;
    uint32_t before = diag_count(diag);
    if (a->too_long)
        explain_length(diag, first, a->too_long);
    else
        say_why(a->arena, diag, c->schedule, options, c->once);
    if (diag_count(diag) == before && c->any) {
        finish_volumes(c, diag, &(Pace){.spec = c->schedule->spec});
        return false;
    }
    if (a->spent)
        note_spent(diag);
    return true;
}

Plan *plan_volumes(Arena *arena, Diag *diag, const Schedule *real,
                   const PlanOptions *options, bool *does_not_fit) {
    *does_not_fit = false;
    Plan bound = {0};
    Schedule *schedule = ARENA_COPY(arena, Schedule, real, 1);
    schedule->spec = hwspec_planned(arena, real->spec);
    Asking a = {.arena = arena, .real = real};
    a.c = (Contest){.arena = arena,
                    .schedule = schedule,
                    .options = options_with(arena, options, NULL)};
    Work *first = contest_open(&a.c, &bound);
    Plan *plan = plan_found(&a, options);
    if (!plan) {
        blame_us(real, options, &a.rejected);
        *does_not_fit =
            !wants_reasons(options) || refuse(&a, diag, first, options);
        return NULL;
    }
    Traffic traffic = plan_traffic(plan);
    const HwSpec *spec = schedule->spec;
    uint64_t size = a.c.best.size;
    bool smaller = spec->n_active == 1 && size < spec->memory[0].size;
    plan->am_planned = smaller && !plan->keeps_all ? size : 0;
    plan->ddr_moved = traffic.moved;
    plan->ddr_compulsory = bound.ddr_compulsory;
    plan->ddr_bound = bound.ddr_bound;
    plan->ddr_again = traffic.again;
    plan->ddr_once = bound.ddr_once;
    plan->ddr_layers = bound.ddr_layers;
    plan->rejected = a.rejected.n;
    return plan;
}

/* ---- volumes and weights ---- */

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

static Plan *staged_chosen(Arena *arena, const Schedule *real,
                           const PlanOptions *options, Rejected *rejected) {
    options = options_for(arena, options, BUDGET_PLAN, real->n_steps);
    StagedTask task = {arena, real, options};
    Plan *plan = plan_at_pace(arena, diag_new(arena), real, options->budget,
                              finish_staged, &task);
    return plan && is_legal(arena, options, plan, rejected) ? plan : NULL;
}

/* Weights move as well, and bounds hold for both. */
static Plan *make_staged(Arena *arena, Diag *diag, const Schedule *real,
                         const PlanOptions *options, bool *does_not_fit) {
    const PlanOptions *own =
        options_for(arena, options, BUDGET_OWN, real->n_steps);
    Rejected rejected = {0};
    Plan *plan = NULL;
    if (options->where != PLAN_OWN)
        plan = staged_chosen(arena, real, options, &rejected);
    if (!plan && options->where != PLAN_CHOSEN)
        plan = plan_staged_own(arena, real, own, &rejected.n);
    if (!plan) {
        blame_us(real, options, &rejected);
        *does_not_fit = true;
        if (wants_reasons(options))
            explain_staged(arena, diag, real, options);
        if (budget_spent(own->budget))
            note_spent(diag);
        return NULL;
    }
    uint64_t once = plan_staged_weights(real);
    plan->ddr_compulsory += once;
    plan->ddr_bound += once;
    plan->ddr_once += once;
    plan->ddr_layers += once;
    plan->rejected = rejected.n;
    return plan;
}

/* ---- the door ---- */

static Plan *make(Arena *arena, Diag *diag, const Schedule *schedule,
                  const PlanOptions *options, bool *does_not_fit) {
    return (schedule->spec->tiling.queue ? make_staged : plan_volumes)(
        arena, diag, schedule, options, does_not_fit);
}

bool plan_would_do(const Asked *asked, Budget *budget, uint64_t size) {
    static const PlanWhere where[] = {PLAN_OWN, PLAN_CHOSEN};
    bool does = false, does_not_fit;
    for (uint32_t i = 0; i < 2 && !does && !budget_spent(budget); i++) {
        Arena *arena = arena_new("would do");
        Schedule *schedule = ARENA_COPY(arena, Schedule, asked->schedule, 1);
        PlanOptions *options =
            ARENA_COPY(arena, PlanOptions, asked->options, 1);
        schedule->spec = spec_within(arena, schedule->spec, size);
        options->no_remedy = true;
        options->budget = budget;
        options->where = where[i];
        does = make(arena, diag_new(arena), schedule, options, &does_not_fit);
        arena_free(arena);
    }
    return does;
}

const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, bool *does_not_fit) {
    *does_not_fit = false;
    if (!planner_known(diag, options->planner))
        return NULL;
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    own->asked = &(Asked){schedule, options};
    return make(arena, diag, schedule, own, does_not_fit);
}
