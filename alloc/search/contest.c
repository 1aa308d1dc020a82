/* contest.c - which of several ways to plan.
 *
 * Input: a schedule. Output: the way whose plan is best.
 * Invariant: a larger memory moves no more (of several, a much larger one
 * hardly more); where time counts, it takes no longer (ladder.c).
 */
#include "alloc/search/contest.h"
#include "alloc/search/boxes.h"

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

/* Nothing moves that need not, and weights once. */
static bool is_least(const Contest *c) {
    return c->any && c->least.traffic.moved == c->compulsory &&
           c->least.traffic.weights <= c->weights;
}

/* Bytes of the first active memory at the fullest time, if everything stays in
 * one that holds it. */
static uint64_t bytes_kept(const Contest *c) {
    const uint64_t endless = UINT64_C(1) << 40;
    const Schedule *s = schedule_within(c->arena, c->schedule, endless);
    Work *w = work_new(c->arena, s, s->spec, c->options, c->once);
    Problem p = {0};
    uint64_t most = 1;
    problem_make(w, &p);
    for (uint32_t t = 0; t < p.n_times; t++)
        most = larger(most, p.live[t]);
    return most;
}

/* A size at which all plans are tried, whatever the size of this memory, and
 * the next larger one: there are 32 for each halving of what everything takes,
 * of which volumes are often simple parts. */
typedef struct Rung {
    uint64_t at, above;
} Rung;

static Rung rung_near(const Contest *c, uint64_t size) {
    enum { OCTAVE = 32 };
    uint64_t base = c->kept, above = 2 * base;
    for (; base && base <= size / 2; base *= 2)
        above = 2 * base;
    for (; base > size; base /= 2)
        above = base;
    for (uint32_t i = OCTAVE; i-- > 0;) {
        uint64_t at = base * (OCTAVE + i) / OCTAVE;
        if (at <= size)
            return (Rung){at, above};
        above = at;
    }
    return (Rung){0, above};
}

/* For long networks groups beside volumes are not tried at every size. */
static bool rung_try(Contest *c, uint64_t size) {
    enum { BESIDE_STEPS = 128 };
    uint64_t below = rung_near(c, size - 1).at;
    uint64_t number = size / (size > below ? size - below : 1);
    uint32_t every = 1 + c->schedule->n_steps / BESIDE_STEPS;
    return size_try(c, size, number % every == 0);
}

/* The plan for a size that is too large, the plan for a byte less than that
 * takes, and so on: those that are so low that they lie in this memory. */
static void step_down(Contest *c, uint64_t at, uint64_t below, uint32_t share) {
    enum { STEPS = 3 };
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

/* Whether there is a plan that costs less than the other. */
static bool gains(const Contest *c, const Contest *other) {
    return c->any &&
           (!other->any || better(c->least.traffic, other->least.traffic));
}

/* Halves what is between the two sizes, around this memory: which plans there
 * are does not depend on it. One for the middle costs no less than what more
 * memory gets, and no more than what less does. */
static void halve(Contest *c, Contest above, Rung rung) {
    enum { HALVES = 3, LONG_HALVES = 2, LONG = 256 };
    uint64_t size = c->schedule->spec->memory[0].size;
    bool is_long = c->schedule->n_steps > LONG;
    uint32_t n = is_long ? LONG_HALVES : HALVES;
    for (uint32_t i = 0; i < n && gains(&above, c); i++) {
        uint64_t at = rung.at + (rung.above - rung.at) / 2;
        Contest half = *c;
        size_try(&half, at, !is_long);
        if (gains(&half, &above))
            half = *c;
        *(at <= size ? c : &above) = half;
        *(at <= size ? &rung.at : &rung.above) = at;
    }
}

/* What lies between two of the sizes, if more memory than this is of use. */
static void between_try(Contest *c, Rung rung) {
    Contest above = *c, low = *c;
    if (rung.at == c->schedule->spec->memory[0].size)
        return;
    rung_try(&above, rung.above);
    if (!gains(&above, c))
        return;
    step_down(&low, rung.above, rung.at, 0);
    step_down(&low, rung.above, rung.at, 16);
    halve(c, above, rung);
    if (gains(&low, c) && !gains(&low, &above))
        *c = low;
}

/* So that a larger memory moves no more, two memories are compared by the plans
 * for the same sizes; the last bytes of a size between two of them go unused.
 * The more steps, the fewer sizes: then two memories that are far apart can
 * disagree. */
static void climb_down(Contest *c) {
    enum { LEAST = 16, STEPS = 1500 };
    uint64_t size = c->schedule->spec->memory[0].size;
    uint32_t n = c->schedule->n_steps, rungs = STEPS / (n + 1);
    Rung rung = rung_near(c, size);
    rungs = rungs < LEAST ? LEAST : rungs;
    bool fits = true;
    for (uint32_t i = 0; i < rungs && size && fits; i++, size--) {
        if (is_least(c))
            return;
        size = rung_near(c, size).at;
        fits = size && rung_try(c, size);
    }
    between_try(c, rung);
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
    for (uint32_t i = 0; i < RUNGS && fits && others && !is_least(c); i++) {
        others = box_size(OCTAVE, box_number(OCTAVE, others));
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
    for (uint32_t i = 0; i < RUNGS && first && !is_least(c); i++) {
        first = box_size(OCTAVE, box_number(OCTAVE, first));
        others_try(c, first--, most);
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
    if (is_least(c))
        return;
    c->kept = bytes_kept(c);
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
    bool climbs = by_time && !c->options->layer_by_layer;
    if (!climbs && fits_whole(c, size))
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
