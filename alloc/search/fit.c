/* fit.c - what planning starts from, and whether a configuration's decisions
 * fit.
 *
 * Input: a schedule, a machine. Output: the work of planning; a placement of
 * all buffers, or none. Method: roles of tensors, units that share a buffer,
 * modes of nodes; then one level: everything stays in active memory from its
 * first write to its last read. Where that does not fit, two levels: some
 * tensors leave and come back, some nodes run by tiles.
 */
#include "alloc/search/search.h"

#include <math.h>

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

PlanShared *plan_shared_new(Arena *arena, const Schedule *schedule,
                            const PlanOptions *options) {
    PlanShared *shared = ARENA_NEW(arena, PlanShared);
    shared->once = once_new(arena, schedule, options);
    shared->known = known_groups_new(arena);
    return shared;
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
    w->too_long = too_long_to_place;
    slots_read(w);
    roles_make(w);
    ahead_choose(w);
    modes_start(w);
    units_make(w);
    touches_make(w);
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
