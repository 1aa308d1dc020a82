/* plan.c - Schedule -> Plan: the story on one page.
 *
 * Roles of tensors, then units that share a buffer, then one level: everything
 * stays in active memory from its first write to its last read. Where that does
 * not fit, two levels: some volumes leave and come back, some nodes run by
 * tiles. Then the actions, and the judge.
 */
#include "alloc/work.h"

#include <string.h>

static void slots_read(Work *w) {
    for (uint32_t s = 0; s < w->schedule->n_steps; s++)
        for (uint32_t i = 0; i < w->schedule->step[s].n; i++) {
            const Slot *slot = &w->schedule->step[s].slot[i];
            w->legal[slot->node.i] = slot->legal;
        }
}

Work *work_new(Arena *arena, const Schedule *schedule, const HwSpec *spec,
               const PlanOptions *options) {
    Work *w = ARENA_NEW(arena, Work);
    w->arena = arena;
    w->schedule = schedule;
    w->spec = spec;
    w->g = schedule->graph;
    w->options = options;
    w->uses = graph_uses(arena, w->g);
    w->legal = ARENA_ARRAY(arena, Legal, w->g->node.n + 1);
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
    units_make(w);
    return w;
}

bool work_fit(Work *w, Problem *problem, PlanResult *result,
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
    if (fit_slots(w, problem, result, planner))
        return true;
    *two_levels = true;
    return fit_two_levels(w, problem, result, planner);
}

static bool planner_known(Diag *diag, const char *name) {
    if (!strcmp(name, "auto") || planner_find(name))
        return true;
    diag_error(diag, (Loc){0}, "no planner is called '%s'", name);
    for (uint32_t i = 0; i < n_planners; i++)
        diag_note(diag, (Loc){0}, "%s: %s", planners[i].name, planners[i].doc);
    return false;
}

/* ---- candidates ---- */

/* A way to plan: of active memory, groups may take `share` sixteenths; 0: no
 * groups. */
typedef struct Way {
    uint32_t share;
} Way;

static const Way ways[] = {{0}, {16}, {14}, {12}, {8}};

static bool way_fit(Work *w, const Way *way, Problem *problem,
                    PlanResult *result, const char **planner,
                    bool *two_levels) {
    if (!way->share)
        return work_fit(w, problem, result, planner, two_levels);
    *two_levels = true;
    return groups_choose(w, w->total / 16 * way->share) && groups_apply(w) &&
           fit_around(w, problem, result, planner);
}

/* NULL if it does not fit that way. */
static Plan *way_plan(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, const Way *way) {
    Work *w = work_new(arena, schedule, schedule->spec, options);
    Plan *plan = ARENA_NEW(arena, Plan);
    Problem problem = {0};
    PlanResult result = {0};
    if (way_fit(w, way, &problem, &result, &plan->planner, &plan->two_levels) &&
        actions_make(w, diag, &problem, &result, plan))
        return plan;
    return NULL;
}

static bool better(Traffic a, Traffic b) {
    return a.moved != b.moved ? a.moved < b.moved : a.work < b.work;
}

/* The way that moves the fewest bytes; NULL if none fits. */
static const Way *way_choose(const Schedule *schedule,
                             const PlanOptions *options) {
    const Way *best = NULL;
    Traffic least = {0};
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        Arena *arena = arena_new("way");
        const Plan *plan =
            way_plan(arena, diag_new(arena), schedule, options, &ways[i]);
        Traffic traffic = plan ? plan_traffic(plan) : least;
        bool one_level = plan && !plan->two_levels;
        if (plan && (!best || better(traffic, least))) {
            best = &ways[i];
            least = traffic;
        }
        arena_free(arena);
        if (one_level || options->layer_by_layer)
            break;
    }
    return best;
}

static void say_why(Arena *arena, Diag *diag, const Schedule *schedule,
                    const PlanOptions *options) {
    Work *w = work_new(arena, schedule, schedule->spec, options);
    Plan *plan = ARENA_NEW(arena, Plan);
    Problem problem = {0};
    PlanResult result = {0};
    if (work_fit(w, &problem, &result, &plan->planner, &plan->two_levels))
        actions_make(w, diag, &problem, &result, plan);
    else
        explain(diag, w, &problem, &result);
}

const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *schedule,
                      const PlanOptions *options, bool *does_not_fit) {
    *does_not_fit = false;
    if (!planner_known(diag, options->planner))
        return NULL;
    const Way *way = way_choose(schedule, options);
    if (!way) {
        *does_not_fit = true;
        say_why(arena, diag, schedule, options);
        return NULL;
    }
    const Plan *plan = way_plan(arena, diag, schedule, options, way);
    const char *wrong = plan_judge(arena, plan);
    if (wrong)
        bug("plan of %s: %s", schedule->graph->name, wrong);
    return plan;
}
