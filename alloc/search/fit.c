/* fit.c - what planning starts from, and whether a configuration's decisions
 * fit.
 *
 * Input: a schedule, a machine. Output: the work of planning; a placement of
 * all buffers, or none. Method: roles of tensors, alias classes that share a
 * buffer, modes of nodes; then one level: everything stays in active memory
 * from its first write to its last read. Where that does not fit, two levels:
 * some tensors leave and come back, some nodes run by tiles.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/lower/lower.h"
#include "alloc/search/search.h"

#include <math.h>

static const Memo *memo_new(Arena *arena, const Schedule *schedule,
                            const PlanOptions *options) {
    Memo *memo = ARENA_NEW(arena, Memo);
    uint32_t n = schedule->n_steps;
    memo->arena = arena;
    if (schedule->spec->tiling.rows.rolls) {
        memo->rolls = roll_costs_new(arena, n);
        memo->flow = flow_new(arena, schedule);
    }
    memo->stripes = stripe_costs_new(arena, n);
    memo->nest = ARENA_ARRAY(arena, NestKnown *, nest_slots(schedule));
    if (options->cycles) {
        memo->table = ARENA_ARRAY(arena, NestTable *, nest_slots(schedule));
        memo->smallest = ARENA_ARRAY(arena, NestKnown *, nest_slots(schedule));
    }
    memo->parts = ARENA_ARRAY(arena, Truth, schedule->graph->node.n + 1);
    memo->row_tiles =
        ARENA_ARRAY(arena, RowTileRows, row_tile_slots(schedule->graph));
    memo->boxes = ARENA_ARRAY(arena, BoxKnown, box_slots(schedule->graph));
    memo->memo_table = memo_table_new(arena);
    memo->cascades = known_cascades_new(arena);
    memo->channel_tile =
        ARENA_ARRAY(arena, uint32_t, 2 * schedule->graph->node.n + 2);
    memo->input_quantum =
        ARENA_ARRAY(arena, uint32_t, schedule->graph->node.n + 1);
    return memo;
}

PlanShared *plan_shared_new(Arena *arena, const Schedule *schedule,
                            const PlanOptions *options) {
    PlanShared *shared = ARENA_NEW(arena, PlanShared);
    shared->memo = memo_new(arena, schedule, options);
    return shared;
}

Attempt *attempt_new(Arena *arena, const Schedule *schedule, const HwSpec *spec,
                     const PlanOptions *options, const Memo *memo,
                     const Config *config) {
    static const Config plain;
    const Facts *f =
        facts_make(arena, schedule, spec, options,
                   memo ? memo : memo_new(arena, schedule, options));
    Attempt *a = ARENA_NEW(arena, Attempt);
    *a = (Attempt){.f = f,
                   .d = decisions_make(f, config ? config : &plain),
                   .most = HUGE_VAL,
                   .brief = config && !config->long_too,
                   .too_long = too_long_to_place};
    a->given_up = ARENA_ARRAY(arena, uint8_t, schedule->n_steps + 1);
    start_again(a);
    return a;
}

/* All volumes stay that are not replicated on the fly. */
static bool fit_kept(Attempt *a) {
    a->two_levels = on_the_fly_choose(&a->d);
    if (fit_one_level(a))
        return true;
    if (a->two_levels) {
        a->two_levels = false;
        start_again(a);
        if (fit_one_level(a))
            return true;
    }
    return fit_slots(a);
}

bool work_fit(Attempt *a) {
    if (!a->settled)
        return false;
    if (a->f->kept > a->f->total)
        return false;
    a->keeps_all = fit_kept(a);
    if (a->keeps_all)
        return true;
    a->two_levels = true;
    pairs_choose(&a->d);
    return fit_two_levels(a);
}

bool work_choose_cascades(Decisions *d) {
    if (d->f->spec->tiling.kind != HW_TILING_SOFTWARE ||
        d->f->kept > d->f->total)
        return false;
    pairs_choose(d);
    return cascades_known(d, d->f->total - d->f->kept) > 0;
}

bool work_fit_cascades(Attempt *a) {
    if (!a->d.cascade.n)
        return false;
    if (!cascades_apply(&a->d))
        return false;
    cascades_lower(&a->d);
    return fit_around(a);
}

bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Memo *memo) {
    Arena *arena = arena_new("exists");
    Schedule resized = *schedule;
    Plan bound = {0};
    Search s;
    resized.spec = spec;
    search_open(&s, arena, &resized, options, memo, &bound);
    s.any = true;
    bool found = search_run(&s) && !s.best[0]->traffic.too_long;
    search_close(&s);
    arena_free(arena);
    return found;
}
