/* trial.c - one plan, from a configuration to actions.
 *
 * Input: a search, a configuration. Output: a plan for the real memory, made as
 * if that ended at the configuration's cap, and what it costs; or none.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/fuse/fuse.h"
#include "alloc/lower/lower.h"
#include "alloc/overlap/bank_spread.h"
#include "alloc/overlap/overlap.h"
#include "alloc/search/search.h"
#include "pack/memo.h"
#include "pack/packers.h"

#include "base/memo.h"
#include "hwspec/cost.h"

#include <math.h>
#include <string.h>

/* ---- machines with less memory ---- */

/* Tile buffers stay where they are. */
static HwSpec *spec_shrunk(Arena *arena, const HwSpec *spec, uint64_t size,
                           uint64_t others) {
    HwSpec *copy = ARENA_COPY(arena, HwSpec, spec, 1);
    HwMemory *memory =
        ARENA_COPY(arena, HwMemory, spec->memory, spec->n_memories);
    memory[0].size = size;
    for (uint32_t m = 1; m < spec->n_active; m++)
        if (memory[m].size > others)
            memory[m].size = others;
    copy->memory = memory;
    return copy;
}

/* Tile buffers are fractions of the first memory. */
static HwSpec *spec_capped(Arena *arena, const HwSpec *spec, uint64_t size,
                           uint64_t others) {
    HwSpec *copy = spec_shrunk(arena, spec, size, others);
    HwTileStyle *style = ARENA_COPY(
        arena, HwTileStyle, spec->tiling.tiles.style, spec->tiling.tiles.n);
    for (uint32_t i = 0; i < spec->tiling.tiles.n; i++)
        hwspec_place_style(&style[i], &copy->memory[0]);
    copy->tiling.tiles.style = style;
    return copy;
}

const HwSpec *spec_within(Arena *arena, const HwSpec *spec, uint64_t size) {
    return spec_capped(arena, spec, size, UINT64_MAX);
}

static const Schedule *schedule_on(Arena *arena, const Schedule *schedule,
                                   const HwSpec *spec) {
    Schedule *copy = ARENA_COPY(arena, Schedule, schedule, 1);
    copy->spec = spec;
    return copy;
}

const Schedule *schedule_within(Arena *arena, const Schedule *real,
                                uint64_t size) {
    return schedule_on(arena, real,
                       spec_shrunk(arena, real->spec, size, UINT64_MAX));
}

/* The schedule on the real machine, with tiles as they were planned. */
static const Schedule *schedule_tiled(Arena *arena, const Schedule *schedule,
                                      const HwSpec *real,
                                      const HwSpec *planned) {
    HwSpec *spec = ARENA_COPY(arena, HwSpec, real, 1);
    spec->tiling.tiles.style = planned->tiling.tiles.style;
    return schedule_on(arena, schedule, spec);
}

static bool is_capped(const Search *s, const Config *c) {
    const HwSpec *spec = s->schedule->spec;
    return c->cap != spec->memory[0].size || c->others != UINT64_MAX;
}

/* ---- placement ---- */

static void open(Search *s, Trial *t) {
    const Config *c = &t->config;
    Schedule *schedule = ARENA_COPY(t->arena, Schedule, s->schedule, 1);
    if (is_capped(s, c))
        schedule->spec =
            spec_capped(t->arena, schedule->spec, c->cap, c->others);
    bool all = c->others == UINT64_MAX;
    t->schedule = schedule;
    t->plan = ARENA_NEW(t->arena, Plan);
    t->a = attempt_new(t->arena, schedule, schedule->spec, s->options,
                       all ? s->memo : NULL, c);
}

static uint64_t mixed(uint64_t print, const uint64_t *part, size_t n) {
    for (size_t i = 0; i < n; i++)
        print = (print ^ part[i]) * UINT64_C(0x100000001b3);
    return print;
}
#define MIXED(print, part) mixed(print, part, sizeof(part) / sizeof *(part))

/* Of the cascades, and what else was chosen with them. */
static uint64_t print_chosen(const Trial *t) {
    const Decisions *d = &t->a->d;
    const Config *c = &t->config;
    const uint64_t what[] = {
        config_low(c),
        d->cascade.n,
        d->alias.n,
#define BUDGET(value) 0
#define CASCADES(value) 0
#define PLACES(value) (value)
#define CONFIG(type, name, stage) stage(c->name),
#include "alloc/config.def"
#undef CONFIG
    };
    uint64_t print = MIXED(0, what);
    for (uint32_t i = 0; i < d->cascade.n; i++) {
        const Cascade *g = &d->cascade.at[i];
        const uint64_t part[] = {g->first, g->end,    g->rows,
                                 g->rolls, g->stays,  g->ahead,
                                 g->cols,  g->strips, g->n_shared};
        print = MIXED(print, part);
        for (uint32_t k = 0; k < g->n_shared; k++)
            print = MIXED(print, (const uint64_t[]){g->shared[k].i});
    }
    for (uint32_t i = 0; i < d->f->g->node.n; i++) {
        const Mode *m = &d->mode[i];
        print = MIXED(print, ((const uint64_t[]){m->kind, m->channels}));
    }
    for (uint32_t i = 0; i < d->f->g->tensor.n; i++)
        print = MIXED(print, (const uint64_t[]){d->over[i].i});
    return print;
}

bool trial_choose(Search *s, Trial *t) {
    open(s, t);
    t->a->two_levels = true;
    if (t->config.family != FAMILY_CASCADES &&
        t->config.family != FAMILY_BESIDE)
        return true;
    bool any = work_choose_cascades(&t->a->d);
    t->chosen = any ? print_chosen(t) : 0;
    return any;
}

static bool fit(Trial *t) {
    Attempt *a = t->a;
    switch (t->config.family) {
    case FAMILY_SPILL:
        return work_fit(a);
    case FAMILY_CASCADES:
    case FAMILY_BESIDE:
        return work_fit_cascades(a);
    case FAMILY_LOCAL:
        pairs_choose(&a->d);
        return cascades_repair(&a->d) && fit_around(a);
    case FAMILY_ROLL:
        return fit_rolling(a);
    }
    return false;
}

bool trial_place(Trial *t) {
    if (!fit(t))
        return false;
    t->plan->planner = t->a->planner;
    t->plan->two_levels = t->a->two_levels;
    t->plan->keeps_all = t->a->keeps_all;
    t->plan->cuts = t->a->f->spec->tiling.rows.rolls;
    t->plan->fills_holes = t->a->fills_holes;
    t->plan->by_parts = t->a->by_parts;
    return true;
}

/* What lies elsewhere waits for others; of plans that roll, which are long, and
 * wait little, the first is enough. */
static uint64_t fingerprint(const Plan *plan) {
    uint64_t print = plan->n_actions;
    bool rolls = plan->schedule->spec->tiling.rows.rolls;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        const Placement *p = &plan->placement[a->out];
        const uint64_t part[] = {a->kind,
                                 a->node.i,
                                 a->row,
                                 a->rows,
                                 a->col,
                                 a->cols,
                                 p->tensor.i,
                                 p->memory,
                                 rolls ? 0 : p->offset,
                                 p->n_c,
                                 p->bytes,
                                 a->tile_w,
                                 a->tile_h,
                                 a->nest.c,
                                 a->nest.in_c,
                                 a->nest.weights_stay};
        print = MIXED(print, part);
    }
    return print;
}

/* Bytes of weights that its runs read, by node. */
static uint64_t *reads_by_node(const Trial *t) {
    const Plan *plan = t->plan;
    uint64_t *reads = ARENA_ARRAY(t->arena, uint64_t, t->a->f->g->node.n + 1);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].kind == ACTION_RUN)
            reads[plan->action[i].node.i] +=
                action_weights(plan, &plan->action[i]);
    return reads;
}

/* Of those the bytes that need not be read again, as the weights of steps
 * [first, end), which take turns, all stay. */
static uint64_t spared_by(const Trial *t, const uint64_t *reads, uint32_t first,
                          uint32_t end) {
    const Facts *f = t->a->f;
    uint64_t once = 0, all = 0;
    for (uint32_t step = first; step < end; step++)
        for (uint32_t k = 0; k < f->schedule->step[step].n; k++) {
            NodeId id = f->schedule->step[step].slot[k].node;
            if (!reads[id.i])
                continue;
            once += node_weights(f, id) * f->spec->element;
            all += reads[id.i];
        }
    return once <= t->config.aside && once < all ? all - once : 0;
}

static uint64_t weights_spared(const Trial *t) {
    const Decisions *d = &t->a->d;
    const uint64_t *reads = reads_by_node(t);
    uint64_t sum = 0;
    uint32_t step = 0;
    for (uint32_t i = 0; i <= d->cascade.n; i++) {
        const Cascade *g = i < d->cascade.n ? &d->cascade.at[i] : NULL;
        for (uint32_t end = g ? g->first : d->f->schedule->n_steps; step < end;
             step++)
            sum += spared_by(t, reads, step, step + 1);
        if (g)
            sum += spared_by(t, reads, g->first, g->end);
        step = g ? g->end : step;
    }
    return sum;
}

/* All but cycles. */
static void count(Trial *t) {
    t->traffic = plan_traffic(t->plan);
    if (t->config.aside)
        t->traffic.weights -= weights_spared(t);
    t->cost.bytes = t->traffic.moved + t->traffic.weights;
    t->cost.instructions = t->traffic.instructions;
    t->cost.memory = t->plan->am_height;
}

static void note_packed(Trial *t) {
    t->plan->am_packed = pack_height(&t->a->result);
    t->plan->am_bound = t->a->result.bound;
    t->plan->am_proved = t->a->result.proved;
}

bool trial_act(Trial *t, Diag *diag) {
    Plan *plan = t->plan;
    note_packed(t);
    if (!actions_make(t->a, diag, &t->a->buffers, &t->a->result, plan))
        return false;
    count(t);
    t->traffic.too_long |= t->a->gave_up;
    t->print = fingerprint(plan) + t->config.tile_bytes; /* pass_through */
    t->a->brief = false;
    return true;
}

/* ---- time ---- */

/* Lowers the placement to the least height, or as far as some steps of search
 * go. Where buffers are pinned together that is not asked. */
static void settle(const Search *s, Trial *t) {
    const Facts *f = t->a->f;
    const Buffers *buffers = &t->a->buffers;
    bool tied = false; /* but not by relations */
    for (uint32_t i = 0; i < buffers->buf.n && !tied && !buffers->relation.n;
         i++)
        tied = buffers->owner.at[i].kind != OWNER_HARDWARE_TILE &&
               (buffers->tied.at[i] != i || buffers->buf.at[i].pin_pool >= 0);
    if (t->a->result.proved || tied || strcmp(f->options->planner, "auto") != 0)
        return;
    PackProblem asked = buffers->p;
    asked.budget = s->effort->packing;
    PackResult lower;
    const char *used;
    packing_count(f);
    placed_once(f->memo->memo_table, f->arena, &asked, "portfolio", true,
                &lower, &used);
    if (lower.status != PACK_FITS ||
        pack_height(&lower) > pack_height(&t->a->result))
        return;
    if (pack_height(&lower) < pack_height(&t->a->result))
        t->plan->planner = used;
    t->a->result = lower;
}

bool has_partitions(const HwSpec *spec) {
    bool any = false;
    for (uint32_t m = 0; m < spec->n_active; m++)
        any |= spec->memory[m].partitions > 1;
    return any;
}

/* Its memories are the real ones from here on. */
static void enter_real(const Search *s, Trial *t) {
    const HwSpec *real = s->schedule->spec;
    if (!is_capped(s, &t->config))
        return;
    t->schedule->spec =
        schedule_tiled(t->arena, s->schedule, real, t->a->f->spec)->spec;
    t->a->f = t->a->d.f = facts_on(t->a->f, t->schedule->spec);
}

bool trial_count(Search *s, Trial *t) {
    const PlanOptions *options = s->options;
    uint64_t told = t->plan->cycles;
    count(t);
    t->cost.cycles =
        options->cycles ? options->cycles(options->context, t->plan) : told;
    t->counted = s->clock_told = true;
    s->clock_errs |= t->cost.cycles != told;
    return t->cost.cycles != UINT64_MAX;
}

bool trial_clock(Search *s, Trial *t) {
    if (!s->clock_told || s->clock_errs)
        return trial_count(s, t);
    count(t);
    t->cost.cycles = t->plan->cycles;
    t->counted = false;
    return true;
}

/* Whether something lies elsewhere, or nodes run otherwise. */
static bool resettle(Search *s, Trial *t) {
    Attempt *a = t->a;
    uint32_t n = a->buffers.buf.n;
    PackResult before = result_copy(t->arena, n, &a->result);
    bool passes = pass_through(a);
    t->plan->planner = a->planner;
    settle(s, t);
    note_packed(t);
    if (!s->volumes && (t->config.roomy || has_partitions(s->schedule->spec)))
        enter_real(s, t); /* whose partitions lie elsewhere */
    if (strcmp(t->plan->planner, "slots") != 0) /* its parts lie as they must */
        spread(&a->d, &a->buffers, &a->result);
    return passes || !result_same(a->buffers.buf.n, &before, &a->result);
}

bool trial_settle(Search *s, Trial *t) {
    bool anew = resettle(s, t);
    uint64_t packed = t->plan->am_packed;
    t->plan->schedule = t->a->f->schedule;
    bool acts = !anew || trial_act(t, diag_new(t->arena));
    t->plan->am_packed = packed;
    return acts;
}

Plan *trial_volumes(const Search *s, const Trial *t, Arena *arena) {
    const Plan *plan = t->plan;
    const HwSpec *spec = s->schedule->spec;
    Plan *copy = ARENA_NEW(arena, Plan);
    *copy = plan_compact(arena, plan, plan->n_placements);
    copy->repl =
        ARENA_COPY(arena, Repl, plan->repl, s->schedule->graph->tensor.n + 1);
    if (is_capped(s, &t->config))
        spec = spec_capped(arena, spec, t->config.cap, t->config.others);
    copy->schedule = schedule_on(arena, s->schedule, spec);
    return copy;
}

void trial_leave(const Search *s, Trial *t) {
    enter_real(s, t);
    t->plan->schedule = t->a->f->schedule;
}

/* Steps of the budget to order an action, and to give it its time. */
enum { ORDERED = 8 };

bool trial_time(Search *s, Trial *t) {
    budget_take(s->options->budget, ORDERED * (uint64_t)t->plan->n_actions);
    if (t->a->f->spec->tiling.rows.moves == HW_MOVES_BESIDE)
        prefetch_quickly(t->a->f, t->plan);
    count(t);
    t->cost.cycles = t->plan->cycles;
    return true;
}

/* One part in so many of the time: what waiting must take, for it to be worth
 * more of it. */
enum { WAITING = 256 };

void trial_finish(Search *s, Trial *t) {
    if (t->finished)
        return;
    t->finished = true;
    budget_take(s->options->budget, ORDERED * (uint64_t)t->plan->n_actions);
    const Plan *quick = ARENA_COPY(t->arena, Plan, t->plan, 1);
    PlanCost cost = t->cost;
    if (!quick->serial || quick->cycles / WAITING >= plan_waiting(quick))
        return;
    bool cuts = quick->cuts, counted = t->counted;
    t->plan = ARENA_COPY(t->arena, Plan, cuts ? quick : quick->serial, 1);
    t->plan->cuts = true;
    if (!cuts)
        prefetch_quickly(t->a->f, t->plan);
    prefetch(t->a, diag_new(t->arena), &t->a->buffers, &t->a->result, t->plan);
    if ((s->clock_errs || t->plan->cycles < quick->cycles) &&
        trial_clock(s, t) &&
        plan_cost_less(s->options->objective, &t->cost, &cost))
        return;
    t->plan = ARENA_COPY(t->arena, Plan, quick, 1);
    count(t);
    t->cost = cost;
    t->counted = counted;
}
