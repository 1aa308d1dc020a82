/* contest.c - which of several ways to plan.
 *
 * Input: a schedule. Output: the way whose plan is best.
 * Invariant: a larger memory moves no more (of several, a much larger one
 * hardly more); where time counts, it takes no longer (ladder.c).
 */
#include "alloc/contest.h"

#include "base/arith.h"

#include <math.h>

static bool better(Traffic a, Traffic b) {
    uint64_t mine = traffic_bytes(a), other = traffic_bytes(b);
    if (a.too_long != b.too_long)
        return b.too_long;
    return mine != other ? mine < other : a.work < b.work;
}

static void take_from(Contest *c, const Heat *h) {
    for (uint32_t i = 0; i < h->entry.n; i++) {
        const Attempt *a = h->entry.at[i];
        if (c->any && !better(a->traffic, c->least.traffic))
            continue;
        c->any = true;
        c->best = a->way;
        c->least = (Timed){a->traffic, 0};
    }
}

static Heat heat_of(const Contest *c) {
    const Traffic *t = &c->least.traffic;
    bool limited = c->any && !t->too_long;
    return (Heat){.c = c,
                  .fewest = true,
                  .most = limited ? (double)traffic_bytes(*t) : HUGE_VAL};
}

/* False if nothing fits. */
static bool size_try(Contest *c, uint64_t size, bool beside) {
    Heat h = heat_of(c);
    heat_ways(&h, size, beside);
    take_from(c, &h);
    heat_free(&h);
    return h.fits;
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
        Heat h = heat_of(c);
        h.tight = h.falls = true;
        heat_way(&h, (Way){.size = at, .share = share});
        take_from(c, &h);
        heat_free(&h);
        if (!h.height)
            return;
        at = h.height - 1;
    }
}

/* Nothing moves that need not, and weights once. */
static bool is_least(const Contest *c) {
    return c->any && c->least.traffic.moved == c->compulsory &&
           c->least.traffic.weights <= c->weights;
}

/* So that a larger memory moves no more, two memories are compared by the plans
 * for the same sizes; the last bytes of a size between two of them go unused.
 * The more steps, the fewer sizes: then two memories that are far apart can
 * disagree. */
static void climb_down(Contest *c) {
    enum { LEAST = 16, STEPS = 1500, BESIDE_STEPS = 128 };
    uint64_t size = c->schedule->spec->memory[0].size;
    uint32_t n = c->schedule->n_steps, rungs = STEPS / (n + 1);
    rungs = rungs < LEAST ? LEAST : rungs;
    bool fits = true;
    step_down(c, 0);
    step_down(c, 16);
    for (uint32_t i = 0; i < rungs && size && fits; i++, size--) {
        if (is_least(c))
            return;
        size = rung_below(size);
        uint64_t number = size / (size - rung_below(size - 1));
        fits = size_try(c, size, number % (1 + n / BESIDE_STEPS) == 0);
    }
}

/* Fixed buffers and a second memory do not shrink with the first one. */
static bool shrinks(const HwSpec *spec) {
    return spec->n_active == 1 && !spec->memory[0].buffers;
}

static bool has_others(const HwSpec *spec) {
    for (uint32_t m = 0; m < spec->n_active; m++)
        if (spec->memory[m].buffers)
            return false;
    return spec->n_active > 1;
}

/* Whether everything stays; layer by layer, what does not fit so leaves. */
static bool fits_whole(Contest *c, uint64_t size) {
    bool layers = c->options->layer_by_layer;
    Heat h = {.c = c, .most = layers ? HUGE_VAL : 0};
    heat_way(&h, (Way){.size = size});
    bool whole = h.entry.n && h.entry.at[0]->plan->keeps_all;
    h.most = HUGE_VAL;
    if (whole && c->schedule->spec->tiling.always)
        heat_way(&h, (Way){.size = size, .streams = true});
    if (whole || layers)
        take_from(c, &h);
    heat_free(&h);
    return whole || layers;
}

/* The largest of so many sizes for each power of two that is no larger. */
static uint64_t rung_of(uint64_t size, uint32_t octave) {
    uint64_t unit = rung_unit(size) * 32 / octave;
    return size - size % unit;
}

/* False if nothing fits in so much of the first memory and of the others. */
static bool sizes_try(Contest *c, uint64_t first, uint64_t others) {
    Heat h = heat_of(c);
    h.others = others;
    heat_ways(&h, first, false);
    take_from(c, &h);
    heat_free(&h);
    return h.fits;
}

/* Sizes of the others up to this, and next to nothing of them. */
static void others_try(Contest *c, uint64_t first, uint64_t others) {
    enum { RUNGS = 10, OCTAVE = 8, LEAST = 1 };
    bool fits = true;
    for (uint32_t i = 0; i < RUNGS && fits && !is_least(c); i++) {
        others = rung_of(others, OCTAVE);
        if (!others)
            break;
        fits = sizes_try(c, first, others--);
    }
    if (fits && !is_least(c))
        sizes_try(c, first, LEAST);
}

/* The same of several active memories: all of them have sizes that do not
 * depend on how large they are. False if nothing fits. */
static bool others_choose(Contest *c) {
    enum { RUNGS = 3, OCTAVE = 4 };
    const HwSpec *spec = c->schedule->spec;
    uint64_t most = 0, first = spec->memory[0].size;
    for (uint32_t m = 1; m < spec->n_active; m++)
        most = larger(most, spec->memory[m].size);
    first = rung_of(first, OCTAVE);
    for (uint32_t i = 0; i < RUNGS && first && !is_least(c); i++) {
        others_try(c, first, most);
        first = rung_of(first - 1, OCTAVE);
    }
    return c->any;
}

/* Where layers roll, the least memory for that is the memory's own size. */
static void bytes_choose(Contest *c, uint64_t size) {
    Heat h = heat_of(c);
    if (c->schedule->spec->tiling.rings)
        heat_way(&h, (Way){.size = size, .rolls = true});
    take_from(c, &h);
    heat_free(&h);
    if (!is_least(c))
        climb_down(c);
}

void way_choose(Contest *c) {
    const HwSpec *spec = c->schedule->spec;
    uint64_t size = spec->memory[0].size;
    bool smaller = shrinks(spec) && !c->enough;
    bool by_time = smaller && weighs_time(c);
    /* tiles that the machine places take parts of just this memory */
    bool own =
        !smaller || (!by_time && spec->tiling.kind == HW_TILING_HARDWARE);
    c->known = known_groups_new(c->arena);
    bool weighed =
        by_time && !c->options->layer_by_layer && !kept_is_fastest(c);
    if (!weighed && fits_whole(c, size))
        return;
    if (own && !(has_others(spec) && !c->enough && others_choose(c)))
        size_try(c, size, true);
    if (by_time)
        ladder_climb(c);
    else if (smaller)
        bytes_choose(c, size);
    if (!c->any && !own)
        size_try(c, size, true);
}
