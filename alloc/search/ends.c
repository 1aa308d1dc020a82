/* ends.c - the sizes of active memory between which plans differ.
 *
 * Input: a contest. Output: the size in which everything stays, and the least
 * in which anything fits. They depend on the network and on the machine's other
 * numbers alone.
 */
#include "alloc/search/ladder.h"

#include "base/arith.h"

#include <math.h>

enum { OCTAVES = 32 };

/* What is known of the sizes in which anything fits. */
typedef struct Least {
    const Contest *c;
    Way leader;     /* the way that fitted last */
    bool led;       /* it may fit in the least; no other one asks for it */
    uint64_t fits;  /* the least size in which something does; 0: none yet */
    uint64_t fails; /* the largest in which nothing does; 0: none yet */
    uint64_t doubt; /* the largest in which just the leader does not */
} Least;

static bool something_fits(Least *l, uint64_t size) {
    Contest any = *l->c;
    any.enough = true;
    Heat h = {.c = &any, .most = HUGE_VAL};
    heat_ways(&h, size, true);
    if (h.stops) {
        l->leader = h.entry.at[h.entry.n - 1]->way;
        l->led = (l->leader.share || l->leader.streams) && !l->leader.thrift &&
                 !l->leader.wholes;
        l->fits = size;
    } else {
        l->fails = larger(l->fails, size);
    }
    heat_free(&h);
    return h.stops;
}

static bool leader_fits(const Least *l, uint64_t size) {
    Contest any = *l->c;
    any.enough = true;
    Heat h = {.c = &any, .most = HUGE_VAL};
    Way way = l->leader;
    way.size = size;
    heat_alone(&h, way);
    heat_free(&h);
    return h.stops;
}

/* Where nothing fits all ways are tried, which takes long: once that is known
 * of some size, the way that fitted last answers for all. */
static bool seems_to_fit(Least *l, uint64_t size) {
    if ((l->fits && size >= l->fits) || size <= l->fails)
        return size > l->fails;
    if (l->led && leader_fits(l, size)) {
        l->fits = size;
        return true;
    }
    if (!l->led || !l->fails)
        return something_fits(l, size);
    l->doubt = larger(l->doubt, size);
    return false;
}

/* The bytes that all takes together, if it lies within this size; else 0. */
static uint64_t all_kept(const Contest *c, uint64_t size) {
    Arena *arena = arena_new("keeps all");
    Way way = {.size = size, .tight = true, .tiny = true, .most = 0};
    Attempt a;
    bool kept = way_place(arena, c, &way, &a) && a.plan->keeps_all;
    uint64_t height = kept ? a.height : 0;
    arena_free(arena);
    return height;
}

/* Volumes take less where there is little room: so the least that it could be,
 * the peak of the order, is tried, too. */
uint64_t size_for_all(const Contest *c) {
    uint32_t too_low = 0, fits = OCTAVES;
    uint64_t least = 0, peak = c->schedule->facts.peak;
    while (too_low + 1 < fits) {
        uint32_t mid = (too_low + fits) / 2;
        uint64_t height = all_kept(c, (uint64_t)1 << mid);
        least = height ? height : least;
        *(height ? &fits : &too_low) = mid;
    }
    if (peak < least && peak > (uint64_t)1 << too_low && all_kept(c, peak))
        return peak;
    return least && all_kept(c, least) ? least : (uint64_t)1 << fits;
}

/* To the granule: a size below it has a plan of its own, which knows nothing of
 * what larger ones get. Only to a part of it where that would take long, or
 * where layers roll. */
static uint64_t least_halve(Least *l, uint64_t fits) {
    enum { PARTS = 256 };
    const Contest *c = l->c;
    const HwSpec *spec = c->schedule->spec;
    bool rolls = spec->tiling.rings, coarse = rolls || has_many_steps(c);
    uint64_t step = rolls ? 1 : larger(spec->memory[0].align, 1);
    uint64_t too_low = c->never ? (c->never - 1) / step : 0;
    uint64_t enough = (fits + step - 1) / step;
    while (too_low + 1 < enough &&
           (!coarse || enough - too_low > enough / PARTS)) {
        uint64_t mid = too_low + (enough - too_low) / (too_low ? 2 : 8);
        mid = mid > too_low ? mid : too_low + 1;
        *(seems_to_fit(l, mid * step) ? &enough : &too_low) = mid;
    }
    return enough * step < fits ? enough * step : fits;
}

/* What lies on top need not fill the last granule: the same to the byte. */
static uint64_t end_within(Least *l, uint64_t fits) {
    uint64_t align = larger(l->c->schedule->spec->memory[0].align, 1);
    uint64_t too_low = fits > align ? fits - align : 0;
    if (fits - 1 == too_low || !something_fits(l, fits - 1))
        return fits;
    for (fits--; too_low + 1 < fits;) {
        uint64_t mid = too_low + (fits - too_low) / 2;
        *(something_fits(l, mid) ? &fits : &too_low) = mid;
    }
    return fits;
}

/* If another way fits in the largest size that was in doubt, that is the one to
 * ask. */
uint64_t size_for_any(const Contest *c, uint64_t fits) {
    Least l = {.c = c};
    uint64_t least;
    do {
        l.doubt = 0;
        least = least_halve(&l, fits);
    } while (l.doubt > l.fails && something_fits(&l, l.doubt));
    bool coarse = c->schedule->spec->tiling.rings || has_many_steps(c);
    return coarse ? least : end_within(&l, least);
}

uint64_t size_to_byte(const Contest *c, uint64_t fits) {
    Least l = {.c = c};
    enum { PARTS = 256, FINE = 16 * PARTS };
    uint64_t align = c->schedule->spec->memory[0].align;
    uint64_t step = larger(larger(align, 1), fits / FINE);
    uint64_t part = larger(step, fits / PARTS), too_low = 0;
    while (fits > part + step && fits > c->never) {
        uint64_t lower = fits - part - (fits - part) % step;
        if (!something_fits(&l, lower)) {
            too_low = lower;
            break;
        }
        fits = lower;
        part *= 2;
    }
    while (too_low + 1 < fits) {
        uint64_t mid = too_low + (fits - too_low) / 2;
        *(something_fits(&l, mid) ? &fits : &too_low) = mid;
    }
    return fits;
}
