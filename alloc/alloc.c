/* alloc.c - Schedule -> Plan: the planner's door.
 *
 * Input: a schedule, an objective, an effort. Output: the best plan found that
 * the verifier finds legal; or errors that say why there is none, and what
 * would do.
 */
#include "alloc/bound/bound.h"
#include "alloc/explain/explain.h"
#include "alloc/lower/lower.h"
#include "alloc/search/blocks.h"
#include "alloc/search/states.h"
#include "alloc/weights/weights.h"
#include "pack/packers.h"

#include "hwspec/cost.h"
#include "hwspec/insn.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

static bool planner_known(Diag *diag, const char *name) {
    if (!strcmp(name, "auto") || planner_find(name))
        return true;
    diag_error(diag, (Loc){0}, "no planner is called '%s'", name);
    for (uint32_t i = 0; i < n_planners; i++)
        diag_note(diag, (Loc){0}, "%s: %s", planners[i].name, planners[i].doc);
    return false;
}

static void say_why(Arena *arena, Diag *diag, const Schedule *schedule,
                    const PlanOptions *options, const Memo *memo) {
    Attempt *a =
        attempt_new(arena, schedule, schedule->spec, options, memo, NULL);
    Plan *plan = ARENA_NEW(arena, Plan);
    a->explains = true;
    if (!work_fit(a)) {
        explain(diag, a);
        return;
    }
    if (!actions_make(a, diag, &a->buffers, &a->result, plan))
        return;
    Traffic traffic = plan_traffic(plan);
    if (traffic.too_long || a->gave_up)
        explain_length(diag, a, traffic.instructions);
    else
        diag_error(diag, schedule->spec->loc,
                   "does not fit: no plan was found that is legal");
}

/* The best plan that is legal; NULL: there is none. */
static Plan *take_legal(Search *s) {
    for (;;) {
        Plan *plan = search_take(s, s->arena);
        if (!plan || s->judges || search_admits(s, plan))
            return plan;
    }
}

/* All plans that were found are illegal: our bug, if it was our judge. */
static void blame_us(const Schedule *schedule, const PlanOptions *options,
                     const Rejected *rejected) {
    if (!options->judge)
        bug("no plan of %s is legal: %s", schedule->graph->name,
            rejected->wrong);
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
    memcpy(plan->ddr_bound, bound->ddr_bound, sizeof plan->ddr_bound);
}

/* Where all of the best were illegal, each is verified as it is found. */
static Plan *find_legal(Search *s) {
    search_run(s);
    Plan *plan = take_legal(s);
    if (plan || !s->rejected.n)
        return plan;
    search_again(s);
    s->judges = true;
    search_run(s);
    plan = take_legal(s);
    if (!plan)
        blame_us(s->schedule, s->options, &s->rejected);
    return plan;
}

static void give_reasons(Arena *arena, Diag *diag, const Schedule *schedule,
                         const PlanOptions *options, const Memo *memo) {
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    bool spent = budget_spent(options->budget);
    own->budget = NULL;
    own->spent = NULL;
    say_why(arena, diag, schedule, own, memo);
    if (spent)
        note_spent(diag);
}

static Plan *plan_volumes(Arena *arena, Diag *diag, const Schedule *schedule,
                          const PlanOptions *options, bool *does_not_fit) {
    Plan bound = {0};
    Search s;
    Attempt *a = search_open(&s, arena, schedule, options, NULL, &bound);
    Plan *plan = find_legal(&s);
    search_close(&s);
    *does_not_fit = true;
    if (!plan && wants_reasons(options))
        give_reasons(arena, diag, schedule, options, s.memo);
    if (!plan)
        return NULL;
    Traffic traffic = plan_traffic(plan);
    if (traffic.too_long) {
        if (wants_reasons(options))
            explain_length(diag, a, traffic.instructions);
        return NULL;
    }
    *does_not_fit = false;
    take_bounds(plan, &bound);
    plan->rejected = s.rejected.n;
    plan->n_front = archive_front(arena, &s.archive, &plan->front);
    return plan;
}

/* Tensors by themselves lack their weights. */
static const char *not_judged(Arena *arena, const Plan *plan) {
    (void)arena, (void)plan;
    return NULL;
}

static void explain_staged(Arena *arena, Diag *diag, const Schedule *schedule,
                           const PlanOptions *options, Staging *tried) {
    uint64_t size = schedule->spec->memory[0].size;
    PlanOptions own = *options;
    Asked asked = *options->asked;
    asked.tried = budget_spent(options->budget) ? NULL : tried;
    own.asked = &asked;
    uint64_t aside = blocks_aside(schedule, &own.aside_for);
    bool does_not_fit;
    own.cycles = NULL;
    own.judge = not_judged;
    own.aside = aside;
    size = size > aside ? size - aside : 0;
    if (!plan_volumes(arena, diag, schedule_within(arena, schedule, size), &own,
                      &does_not_fit))
        return;
    if (schedule->spec->weights) {
        explain_roles(arena, diag, schedule, options);
        return;
    }
    diag_error(diag, schedule->spec->loc,
               "does not fit: volumes leave weights no room");
    if (!options->no_remedy)
        note_advice(arena, diag, schedule->spec, 0, size_staged(&asked));
}

/* Weights move as well, and bounds hold for both. */
static Plan *make_staged(Arena *arena, Diag *diag, const Schedule *schedule,
                         const PlanOptions *options, bool *does_not_fit) {
    Rejected rejected = {0};
    bool says = wants_reasons(options);
    if (roles_too_small(arena, diag, schedule, options, says) ||
        weights_outside_too_large(arena, diag, schedule, says)) {
        *does_not_fit = true;
        return NULL;
    }
    Staging s;
    Plan *plan = plan_staged(&s, arena, schedule, options, &rejected);
    if (!plan && rejected.n)
        blame_us(schedule, options, &rejected);
    if (!plan && says)
        explain_staged(arena, diag, schedule, options, &s);
    staging_close(&s);
    if (!plan) {
        *does_not_fit = true;
        return NULL;
    }
    plan_bounds_add(plan, (int64_t)weights_bound(arena, schedule));
    plan->rejected = rejected.n;
    return plan;
}

/* ---- the door ---- */

static Plan *make(Arena *arena, Diag *diag, const Schedule *schedule,
                  const PlanOptions *options, bool *does_not_fit) {
    return (schedule->spec->tiling.rows.moves == HW_MOVES_QUEUED
                ? make_staged
                : plan_volumes)(arena, diag, schedule, options, does_not_fit);
}

/* A listing of more instructions than the machine holds at once: cut between
 * two steps, where nothing is at work, it runs part by part. */
static Plan *make_long(Arena *arena, Diag *diag, const Schedule *schedule,
                       const PlanOptions *options, bool *does_not_fit) {
    Schedule *endless = ARENA_COPY(arena, Schedule, schedule, 1);
    HwSpec *spec = ARENA_COPY(arena, HwSpec, schedule->spec, 1);
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    spec->max_instructions = 0;
    endless->spec = spec;
    own->asked = NULL;
    own->shared = NULL;
    Plan *plan = make(arena, diag, endless, own, does_not_fit);
    if (plan)
        plan->schedule = schedule;
    return plan;
}

/* Whether one listing may be several. */
static bool may_be_long(const Schedule *schedule, const PlanOptions *options) {
    return schedule->spec->max_instructions && options->images < 2 &&
           schedule->spec->tiling.rows.moves != HW_MOVES_QUEUED;
}

/* An instruction each; of those that are tiled, or whose operands leave active
 * memory, several. */
static uint32_t listed_layers(const Schedule *schedule) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < schedule->n_steps; i++)
        for (uint32_t k = 0; k < schedule->step[i].n; k++)
            n += schedule->step[i].slot[k].legal.op != HW_OP_HOST;
    return n;
}

static bool would_do_in(const Schedule *order, const Asked *asked,
                        Budget *budget, uint64_t size) {
    if (budget_spent(budget))
        return false;
    Arena *arena = arena_new("would do");
    Schedule *schedule = ARENA_COPY(arena, Schedule, order, 1);
    PlanOptions *options = ARENA_COPY(arena, PlanOptions, asked->options, 1);
    bool does_not_fit;
    schedule->spec = spec_within(arena, schedule->spec, size);
    options->no_remedy = true;
    options->first_will_do =
        options->images < 2; /* the best may have room for more */
    options->asked = NULL;
    options->budget = budget;
    options->spent = NULL;
    options->watch = NULL;
    if (order != asked->schedule)
        options->shared = NULL;
    const Plan *plan =
        insn_rows_hold(arena, schedule->spec)
            ? (may_be_long(schedule, options) ? make_long : make)(
                  arena, diag_new(arena), schedule, options, &does_not_fit)
            : NULL;
    bool does = plan && images_fit(arena, plan, options->images);
    arena_free(arena);
    return does;
}

static bool would_do(const Asked *asked, Budget *budget, uint64_t size) {
    const Schedule *other = asked->options->other;
    return would_do_in(asked->schedule, asked, budget, size) ||
           (other && would_do_in(other, asked, budget, size));
}

/* The higher the effort, the more. */
static Budget plan_budget(const Schedule *schedule, uint32_t effort) {
    static const uint64_t times[PLAN_MOST_EFFORT + 1] = {1, 1, 16, 256};
    Budget budget = budget_of(BUDGET_PLAN, schedule->n_steps);
    budget.left *= times[effort < PLAN_MOST_EFFORT ? effort : PLAN_MOST_EFFORT];
    return budget;
}

static Plan *make_one(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, bool *does_not_fit) {
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    Budget budget = plan_budget(schedule, options->effort);
    PlanEffort spent = {.budget = budget.left};
    const Asked asked = {schedule, options, would_do, NULL};
    own->asked = &asked;
    own->budget = &budget;
    own->spent = &spent;
    if (schedule->spec->tiling.rows.moves ==
        HW_MOVES_QUEUED) /* volumes that cost no cycles */
        own->shared = NULL;
    bool longer = may_be_long(schedule, own);
    bool surely =
        longer && listed_layers(schedule) > schedule->spec->max_instructions;
    if (longer)
        own->asked = NULL;
    Plan *plan = surely ? NULL : make(arena, diag, schedule, own, does_not_fit);
    spent.steps = spent.budget - budget.left;
    if (!plan && longer && (surely || spent.too_long))
        plan = make_long(arena, diag, schedule, own, does_not_fit);
    own->asked = &asked;
    if (!plan && longer)
        give_reasons(arena, diag, schedule, own, NULL);
    if (plan)
        plan->effort = spent;
    return plan;
}

/* With these states in active memory; NULL: with none, or not so. */
static Plan *make_keeping(Arena *arena, const Schedule *schedule,
                          const PlanOptions *options, const bool *states) {
    PlanOptions *own = ARENA_COPY(arena, PlanOptions, options, 1);
    bool does_not_fit;
    own->states = states;
    own->shared = NULL;
    own->no_remedy = true;
    own->watch = NULL;
    own->judge = options->judge ? options->judge : plan_judge;
    return make_one(arena, diag_new(arena), schedule, own, &does_not_fit);
}

const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, bool *does_not_fit) {
    const bool *const *states;
    *does_not_fit = false;
    if (!planner_known(diag, options->planner))
        return NULL;
    Plan *best = NULL;
    uint32_t n = states_to_keep(arena, schedule, options, &states);
    for (uint32_t i = 0; i < n; i++) {
        Plan *plan = make_keeping(arena, schedule, options, states[i]);
        if (plan && (!best || plan_cost_less(options->objective, &plan->cost,
                                             &best->cost)))
            best = plan;
    }
    Diag *said = best ? diag_new(arena) : diag;
    Plan *plan = make_one(arena, said, schedule, options, does_not_fit);
    if (best && (!plan || plan_cost_less(options->objective, &best->cost,
                                         &plan->cost))) {
        *does_not_fit = false;
        return best;
    }
    return plan;
}
