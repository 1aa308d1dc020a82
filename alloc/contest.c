/* contest.c - which of several ways to plan.
 *
 * Input: a schedule. Output: the way whose plan costs least.
 * Invariant: a larger memory moves no more, and takes no longer but for what
 * no_worse allows, as far as climb_down tells.
 */
#include "alloc/contest.h"

#include <math.h>
#include <stdlib.h>

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

/* Bytes over DDR that an instruction is worth where there are too many. */
enum { LEAST_THRIFT = 4096, MOST_THRIFT = 8 * 8 * LEAST_THRIFT };

/* The plan made that way may be the best so far. */
static void plan_enter(Contest *c, const Way *way, const Plan *plan,
                       Traffic traffic) {
    Timed timed = {traffic, cycles_of(c, plan, traffic)};
    Tried tried = {c->tried.n, *way, timed};
    vec_push(c->arena, &c->tried, tried);
    if (!c->any || better(c, timed, c->least)) {
        c->any = true;
        c->least = timed;
        c->best = *way;
    }
    c->keeps_all |= plan->keeps_all;
}

/* False if nothing fits into active memory that way. */
static bool way_try(Contest *c, Way way) {
    if (c->enough && c->any && !c->least.traffic.too_long)
        return true;
    c->height = 0;
    if (way.size < c->never)
        return false;
    Arena *arena = arena_new("way");
    uint64_t height;
    const Traffic *least = &c->least.traffic;
    uint64_t size = c->schedule->spec->memory[0].size;
    bool hopeless, limited = c->any && !least->too_long && !weighs_time(c);
    way.most = limited ? (double)(least->moved + least->weights) : HUGE_VAL;
    const Plan *plan =
        way_plan(arena, diag_new(arena), c, &way, false, &height, &hopeless);
    /* one that has a height was planned, but for memories outside */
    bool fits = plan || hopeless || (height && way.size <= size);
    bool by_parts = plan && plan->by_parts;
    bool too_long = false;
    if (plan) {
        Traffic traffic = plan_traffic(plan);
        too_long = traffic.too_long;
        plan_enter(c, &way, plan, traffic);
    }
    arena_free(arena);
    if (by_parts && !way.low) {
        Way wholes = way;
        wholes.wholes = true;
        way_try(c, wholes);
    }
    bool groups = !way.thrift && (way.share || way.rolls);
    for (uint32_t kind = 1; groups && kind < KIND_END; kind *= 2)
        if (c->kinds & kind && way.apart < kind) {
            Way fewer = way;
            fewer.apart |= kind;
            fits |= way_try(c, fewer);
        }
    if (way.share && !way.apart && too_long && way.thrift < MOST_THRIFT) {
        Way longer = way;
        longer.thrift = way.thrift ? 8 * way.thrift : LEAST_THRIFT;
        fits |= way_try(c, longer);
    }
    c->height = height;
    return fits;
}

/* Between the sizes at which all plans are tried, whatever the size of this
 * memory: 32 for each power of two. */
static uint64_t rung_unit(uint64_t size) {
    uint64_t unit = 1;
    while (unit * 64 <= size)
        unit *= 2;
    return unit;
}

static uint64_t rung_below(uint64_t size) {
    return size - size % rung_unit(size);
}

static uint64_t rung_above(uint64_t size) {
    return round_up(size, rung_unit(size));
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

/* Half of the bytes that need not move are worth an eighth of the time: else
 * what happens to be fast in little memory would keep bytes moving in a large
 * one. */
static bool no_worse(Timed a, Timed b, uint64_t compulsory) {
    bool equal = a.traffic.moved == b.traffic.moved && a.cycles == b.cycles;
    if (a.traffic.too_long != b.traffic.too_long)
        return b.traffic.too_long;
    bool half =
        a.traffic.moved + (b.traffic.moved - compulsory) / 2 <= b.traffic.moved;
    uint64_t most = b.cycles + (half ? b.cycles / 8 : 0);
    return a.traffic.moved <= b.traffic.moved && a.cycles <= most &&
           (!equal || a.traffic.work <= b.traffic.work);
}

static int by_size(const void *a, const void *b) {
    const Tried *x = a, *y = b;
    if (x->way.size != y->way.size)
        return x->way.size < y->way.size ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

/* Of the smallest size that was tried the plan that costs least; of each larger
 * one another only if that is no worse. */
static void climb_up(Contest *c, uint32_t from, uint64_t compulsory) {
    Tried *at = c->tried.at + from, *held = at;
    uint32_t n = c->tried.n - from;
    qsort(at, n, sizeof *at, by_size);
    for (uint32_t i = 1; i < n; i++)
        if (at[i].way.size == at[0].way.size
                ? better(c, at[i].timed, held->timed)
                : no_worse(at[i].timed, held->timed, compulsory))
            held = &at[i];
    c->best = held->way;
    c->least = held->timed;
}

/* Groups beside volumes that stay: where machines can copy rows of these. With
 * many steps not at all sizes; which, does not depend on this memory. */
static void beside_try(Contest *c, uint64_t size) {
    enum { LOW = 8, STEPS = 128 };
    uint64_t unit = size - rung_below(size - 1);
    if (c->schedule->spec->tiling.kind != HW_TILING_SOFTWARE ||
        c->schedule->spec->tiling.rings)
        return;
    way_try(c, (Way){.size = size, .low = LOW, .mends = true});
    if (size / unit % (1 + c->schedule->n_steps / STEPS) == 0)
        way_try(c, (Way){.size = size, .share = 16, .low = LOW});
}

/* A larger memory shall be no worse. To that end two
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
        fits |= way_try(c, (Way){.size = size, .share = 16});
        beside_try(c, size--);
    }
}

/* Fixed buffers and a second memory do not shrink with the first one. */
static bool shrinks(const HwSpec *spec) {
    return spec->n_active == 1 && !spec->memory[0].buffers;
}

void way_choose(Contest *c, uint64_t compulsory) {
    const HwSpec *spec = c->schedule->spec;
    uint64_t size = spec->memory[0].size;
    bool groups = !c->options->layer_by_layer;
    c->known = known_groups_new(c->arena);
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
            climb_up(c, same ? own : 0, compulsory);
        if (c->any)
            return;
        *c = alone;
    }
    way_try(c, (Way){.size = size, .share = 16});
}
