/* plan.c - Schedule -> Plan: the story on one page.
 *
 * Roles of tensors, then units that share a buffer, then one level: everything
 * stays in active memory from its first write to its last read. Where that does
 * not fit, two levels: some volumes leave and come back, some nodes run by
 * tiles. Then the actions, and the judge.
 */
#include "alloc/overlap.h"
#include "alloc/planners.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>
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
    if (spec->tiling.rings)
        w->costs = roll_costs_new(arena, schedule->n_steps);
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
    return fit_two_levels(w, problem, result, planner);
}

bool work_fit_groups(Work *w, uint32_t share, Problem *problem,
                     PlanResult *result, const char **planner) {
    return groups_choose(w, w->total / 16 * share) && groups_apply(w) &&
           fit_around(w, problem, result, planner);
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

/* A way to plan: within `size` bytes of the first active memory, of which
 * groups may take `share` sixteenths; 0: no groups. */
typedef struct Way {
    uint64_t size;
    uint32_t share;
    bool rolls;   /* groups with rings, nothing evicted */
    bool wholes;  /* whole volumes leave first, even where parts would do */
    bool streams; /* what never runs whole keeps nothing in active memory */
    bool apart;   /* layers that spread pixels are in no group */
    double most;  /* bytes: plans that move more are of no use */
} Way;

/* What a plan costs; cycles: 0 where nobody counts them. */
typedef struct Timed {
    Traffic traffic;
    uint64_t cycles;
} Timed;

typedef struct Tried {
    uint32_t number;
    Way way;
    Timed timed;
} Tried;

typedef struct Contest {
    Arena *arena;
    const Schedule *schedule;
    const PlanOptions *options;
    RollCosts *costs; /* NULL for machines without rings */
    bool any, keeps_all;
    uint64_t height;  /* of the last plan; 0: there was none */
    uint64_t weights; /* bytes, if each layer reads its own once */
    bool enough;      /* any plan is as good as others */
    bool spreads;     /* there are layers that spread pixels */
    Way best;
    Timed least;
    VEC(Timed) timed; /* all, each once */
    VEC(Tried) tried;
} Contest;

static bool way_fit(Work *w, const Way *way, Problem *problem,
                    PlanResult *result, const char **planner,
                    bool *two_levels) {
    w->wholes_first = way->wholes;
    w->streams_first = way->streams;
    w->apart = way->apart;
    if (way->streams)
        start_again(w);
    if (way->rolls) {
        *two_levels = true;
        return fit_rolling(w, problem, result, planner);
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

/* NULL if it does not fit that way; *height: bytes that it takes, 0 if there
 * is no plan; *hopeless: it would move too much. `last`: it is the one that
 * was chosen. */
static Plan *way_plan(Arena *arena, Diag *diag, const Contest *c,
                      const Way *way, bool last, uint64_t *height,
                      bool *hopeless) {
    const Schedule *schedule = c->schedule;
    const HwSpec *spec = spec_within(arena, schedule->spec, way->size);
    Work *w = work_new(arena, schedule, spec, c->options);
    if (c->costs)
        w->costs = c->costs;
    Plan *plan = ARENA_NEW(arena, Plan);
    Problem problem = {0};
    PlanResult result = {0};
    *height = 0;
    w->most = way->most;
    bool fits =
        way_fit(w, way, &problem, &result, &plan->planner, &plan->two_levels);
    *hopeless = w->hopeless;
    if (!fits)
        return NULL;
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
    plan->lends = w->lends;
    plan->by_parts = w->by_parts;
    if (!actions_make(w, diag, &problem, &result, plan))
        return NULL;
    if (last && spec->tiling.overlap)
        stretch(w, diag, &problem, &result, plan);
    return plan;
}

/* Where nothing is computed twice, the fewest bytes need no time to be weighed
 * against them; and where there are many steps, plans cost too much to make. */
static bool weighs_time(const Contest *c) {
    enum { MAX_STEPS = 200 };
    const HwTiling *tiling = &c->schedule->spec->tiling;
    return !c->enough && c->options->cycles && !tiling->rings &&
           !tiling->bytes_alone && !tiling->always &&
           c->schedule->n_steps <= MAX_STEPS;
}

/* Plans that move as much and compute as much take as long. */
static uint64_t cycles_of(Contest *c, const Plan *plan, Traffic traffic) {
    const PlanOptions *o = c->options;
    if (!weighs_time(c))
        return 0;
    for (uint32_t i = 0; i < c->timed.n; i++)
        if (c->timed.at[i].traffic.moved == traffic.moved &&
            c->timed.at[i].traffic.work == traffic.work)
            return c->timed.at[i].cycles;
    Timed timed = {traffic, o->cycles(o->context, plan)};
    vec_push(c->arena, &c->timed, timed);
    return timed.cycles;
}

static double cost(const Contest *c, Timed t) {
    const HwSpec *spec = c->schedule->spec;
    double moved = (double)(t.traffic.moved + t.traffic.weights);
    double byte = bytes_seconds(spec, 1);
    if (!weighs_time(c) || byte <= 0)
        return moved;
    return (double)t.cycles + PLAN_BYTE_PRICE * moved * byte * spec->clock;
}

static bool better(const Contest *c, Timed a, Timed b) {
    if (a.traffic.too_long != b.traffic.too_long)
        return b.traffic.too_long;
    double mine = cost(c, a), other = cost(c, b);
    if (mine != other)
        return mine < other;
    return a.traffic.work < b.traffic.work;
}

/* False if nothing fits that way. */
static bool way_try(Contest *c, Way way) {
    if (c->enough && c->any && !c->least.traffic.too_long)
        return true;
    Arena *arena = arena_new("way");
    uint64_t height;
    const Traffic *least = &c->least.traffic;
    bool hopeless, limited = c->any && !least->too_long && !weighs_time(c);
    way.most = limited ? (double)(least->moved + least->weights) : HUGE_VAL;
    const Plan *plan =
        way_plan(arena, diag_new(arena), c, &way, false, &height, &hopeless);
    bool fits = plan || hopeless, by_parts = plan && plan->by_parts;
    if (plan) {
        Traffic traffic = plan_traffic(plan);
        Timed timed = {traffic, cycles_of(c, plan, traffic)};
        Tried tried = {c->tried.n, way, timed};
        vec_push(c->arena, &c->tried, tried);
        if (!c->any || better(c, timed, c->least)) {
            c->any = true;
            c->least = timed;
            c->best = way;
        }
        c->keeps_all |= plan->keeps_all;
    }
    arena_free(arena);
    if (by_parts) {
        Way wholes = way;
        wholes.wholes = true;
        way_try(c, wholes);
    }
    if (way.share && c->spreads && !way.apart) {
        way.apart = true;
        fits |= way_try(c, way);
    }
    c->height = height;
    return fits;
}

/* The next of the sizes at which all plans are tried, whatever the size of this
 * memory: 32 for each power of two. */
static uint64_t rung_below(uint64_t size) {
    uint64_t unit = 1;
    while (unit * 64 <= size)
        unit *= 2;
    return size / unit * unit;
}

static uint64_t rung_above(uint64_t size) {
    uint64_t unit = 1;
    while (unit * 64 <= size)
        unit *= 2;
    return (size + unit - 1) / unit * unit;
}

/* Between two of these sizes: the plan for the larger one, the plan for a byte
 * less than that takes, and so on. Which there are does not depend on this
 * memory; of those that lie in it, a larger one has the same, and more. */
static void step_down(Contest *c, uint32_t share) {
    enum { STEPS = 3 };
    uint64_t size = c->schedule->spec->memory[0].size;
    uint64_t at = rung_above(size), below = rung_below(size);
    for (uint32_t i = 0; i < STEPS && at > below; i++) {
        way_try(c, (Way){.size = at, .share = share});
        if (!c->height)
            return;
        at = c->height - 1;
    }
}

/* Nothing moves that need not, and weights once. */
static bool is_least(const Contest *c, uint64_t compulsory) {
    return c->any && c->least.traffic.moved == compulsory &&
           c->least.traffic.weights <= c->weights;
}

static bool no_worse(Timed a, Timed b) {
    bool equal = a.traffic.moved == b.traffic.moved && a.cycles == b.cycles;
    return a.traffic.too_long <= b.traffic.too_long &&
           a.traffic.moved <= b.traffic.moved && a.cycles <= b.cycles &&
           (!equal || a.traffic.work <= b.traffic.work);
}

static int by_size(const void *a, const void *b) {
    const Tried *x = a, *y = b;
    if (x->way.size != y->way.size)
        return x->way.size < y->way.size ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Of the smallest size that was tried the plan that costs least; of each larger
 * one another only if that moves no more bytes and takes no more cycles. */
static void climb_up(Contest *c, uint32_t from) {
    Tried *at = c->tried.at + from, *held = at;
    uint32_t n = c->tried.n - from;
    qsort(at, n, sizeof *at, by_size);
    for (uint32_t i = 1; i < n; i++)
        if (at[i].way.size == at[0].way.size
                ? better(c, at[i].timed, held->timed)
                : no_worse(at[i].timed, held->timed))
            held = &at[i];
    c->best = held->way;
    c->least = held->timed;
}

/* A larger memory shall move no more, and take no longer. To that end two
 * memories are compared by the plans for the same sizes; the last bytes of a
 * size between two of them go unused. The more steps, the fewer sizes: then two
 * memories that are far apart can disagree. */
static void climb_down(Contest *c, uint64_t compulsory) {
    enum { LEAST = 16, STEPS = 1500 };
    uint64_t size = c->schedule->spec->memory[0].size;
    uint32_t rungs = STEPS / (c->schedule->n_steps + 1);
    rungs = rungs < LEAST ? LEAST : rungs;
    bool fits = true;
    step_down(c, 0);
    step_down(c, 16);
    for (uint32_t i = 0; i < rungs && size && fits; i++) {
        if (!weighs_time(c) && is_least(c, compulsory))
            return;
        size = rung_below(size);
        fits = way_try(c, (Way){.size = size});
        if (c->schedule->spec->tiling.rings)
            fits |= way_try(c, (Way){.size = size, .rolls = true});
        fits |= way_try(c, (Way){.size = size--, .share = 16});
    }
}

/* Fixed buffers and a second memory do not shrink with the first one. */
static bool shrinks(const HwSpec *spec) {
    return spec->n_active == 1 && !spec->memory[0].buffers;
}

/* The way that costs least. */
static void way_choose(Contest *c, uint64_t compulsory) {
    const HwSpec *spec = c->schedule->spec;
    uint64_t size = spec->memory[0].size;
    bool groups = !c->options->layer_by_layer;
    way_try(c, (Way){.size = size});
    if (spec->tiling.always)
        way_try(c, (Way){.size = size, .streams = true});
    if (c->keeps_all || !groups)
        return;
    if (spec->tiling.rings) {
        way_try(c, (Way){.size = size, .rolls = true});
        if (is_least(c, compulsory))
            return;
    }
    if (shrinks(spec)) {
        /* tiles that the machine places grow with its memory: never the same */
        bool same = spec->tiling.kind != HW_TILING_HARDWARE;
        uint32_t own = c->tried.n;
        Contest alone = *c;
        c->any &= !same;
        climb_down(c, compulsory);
        if (weighs_time(c) && c->tried.n > own)
            climb_up(c, same ? own : 0);
        if (c->any)
            return;
        *c = alone;
    }
    way_try(c, (Way){.size = size, .share = 16});
}

static bool any_spreads(const Work *w) {
    for (NodeId n = {0}; n.i < w->g->node.n; n.i++)
        if (on_engine(w, n) && node_quantum(w->g, n, 0) > 1)
            return true;
    return false;
}

bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options) {
    Arena *arena = arena_new("exists");
    Schedule resized = *schedule;
    resized.spec = spec;
    Contest c = {.arena = arena,
                 .schedule = &resized,
                 .options = options,
                 .enough = true};
    const Work *first = work_new(arena, &resized, spec, options);
    c.costs = first->costs;
    c.spreads = any_spreads(first);
    way_choose(&c, 0);
    arena_free(arena);
    return c.any && !c.least.traffic.too_long;
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
    Plan bound = {0};
    Contest c = {.arena = arena, .schedule = schedule, .options = options};
    Work *first = work_new(arena, schedule, schedule->spec, options);
    c.costs = first->costs;
    c.weights = weights_once(first);
    c.spreads = any_spreads(first);
    bound_make(first, &bound);
    way_choose(&c, bound.ddr_compulsory);
    if (!c.any) {
        *does_not_fit = true;
        say_why(arena, diag, schedule, options);
        return NULL;
    }
    uint64_t height;
    bool hopeless;
    Plan *plan = way_plan(arena, diag, &c, &c.best, true, &height, &hopeless);
    plan->ddr_moved = c.least.traffic.moved;
    plan->ddr_compulsory = bound.ddr_compulsory;
    plan->ddr_bound = bound.ddr_bound;
    plan->ddr_layers = bound.ddr_layers;
    const char *wrong = plan_judge(arena, plan);
    if (wrong)
        bug("plan of %s: %s", schedule->graph->name, wrong);
    return plan;
}
