/* ladder.c - of all plans for a ladder of sizes one that is no worse than what
 * a smaller memory gets.
 *
 * Input: a contest on a machine where time counts beside bytes. Output: its
 * best way.
 * Method: the rungs are sizes of active memory that depend on the network and
 * on the machine's other numbers alone, from the least in which anything fits
 * to the one in which everything does. Each plan is made, finished and timed as
 * if the memory ended at its rung, so that it is the same in every larger one.
 * A chain has one plan for each rung, made for this or a lower one. In it
 * neither bytes nor cycles rise; but where two fifths of the bytes go, and
 * saving them pays on many rungs, an eighth more cycles is allowed: else what
 * is fast by chance in little memory would keep bytes moving in a large one. Of
 * all chains the one is taken that is closest to the fewest bytes and the
 * fewest cycles offered at each rung: the sum of both ratios' logarithms,
 * squared, is least; only plans in it are finished. A memory gets what the
 * highest rung in it has, or what fits between that and the next one, and is no
 * better than the latter. Invariant: two memories look at the same chain; so
 * what a larger one gets does not depend on how large the smaller one was. No
 * rung has a better plan than that which keeps everything, but where there are
 * no others.
 */
#include "alloc/contest.h"

#include <math.h>
#include <stdlib.h>

/* Rungs for each power of two, and powers of two. */
enum { OCTAVE = 4, OCTAVES = 32, MOST_OCTAVES = 12 };
/* Of the cost of a chain: what cycles count beside bytes, and what a rise of
 * cycles does, as much as bytes 1.4 times the fewest on 16 rungs. */
enum { CYCLES_WORTH = 3, RISE_COST = 2 };

typedef struct Offer {
    uint32_t rung;
    bool exact; /* else it takes at most so many cycles */
    Way way;
    Timed timed;
} Offer;

typedef struct Ladder {
    Contest *c;
    Timed kept;     /* the plan that keeps everything, or nothing */
    Timed *least;   /* by rung: the fewest bytes, and the fewest cycles */
    uint64_t *rung; /* sizes */
    uint32_t n;
    VEC(Offer) offer; /* by rung */
    uint32_t *held;   /* by rung: an offer */
} Ladder;

static uint64_t rung_size(uint32_t rung) {
    return (uint64_t)(OCTAVE + rung % OCTAVE) << rung / OCTAVE;
}

static uint64_t bytes_of(Traffic t) {
    return t.moved + t.weights;
}

static bool no_worse(Timed a, Timed b) {
    return a.traffic.moved <= b.traffic.moved &&
           bytes_of(a.traffic) <= bytes_of(b.traffic) && a.cycles <= b.cycles;
}

/* ---- plans for one size ---- */

static int by_bytes(const void *a, const void *b) {
    const Attempt *x = *(Attempt *const *)a, *y = *(Attempt *const *)b;
    if (bytes_of(x->traffic) != bytes_of(y->traffic))
        return bytes_of(x->traffic) < bytes_of(y->traffic) ? -1 : 1;
    if (x->traffic.work != y->traffic.work)
        return x->traffic.work < y->traffic.work ? -1 : 1;
    return x->traffic.instructions < y->traffic.instructions
               ? -1
               : x->traffic.instructions > y->traffic.instructions;
}

static bool same_traffic(Traffic a, Traffic b) {
    return a.moved == b.moved && a.weights == b.weights && a.work == b.work &&
           a.instructions == b.instructions;
}

/* UINT64_MAX: it breaks a rule. */
static uint64_t finished_cycles(const Contest *c, Attempt *a) {
    if (!way_finish(a, diag_new(a->arena), c))
        return UINT64_MAX;
    return c->options->cycles(c->options->context, a->plan);
}

/* Whether a plan of the same bytes and work was timed in a memory that was
 * hardly smaller. */
static bool was_timed(const Ladder *l, const Attempt *a) {
    for (uint32_t i = 0; i < l->offer.n; i++) {
        const Offer *o = &l->offer.at[i];
        if (same_traffic(o->timed.traffic, a->traffic) &&
            o->way.size > a->way.size - a->way.size / 3)
            return true;
    }
    return false;
}

/* Of the plans for one size those that move the fewest bytes. What groups load
 * once for several layers is counted more than once by what ends plans early:
 * hence `SLACK`. */
static void size_offer(Ladder *l, uint32_t rung, uint64_t size, uint64_t most) {
    enum { MOST = 8, SLACK = 4 };
    Heat h = {.c = l->c,
              .loose = true,
              .most = most ? SLACK * (double)most : HUGE_VAL};
    heat_ways(&h, size, true);
    if (h.entry.n)
        qsort(h.entry.at, h.entry.n, sizeof *h.entry.at, by_bytes);
    uint32_t looked = 0;
    for (uint32_t i = 0; i < h.entry.n && looked < MOST; i++) {
        Attempt *a = h.entry.at[i];
        bool many = most && bytes_of(a->traffic) / SLACK > most;
        if (many || a->traffic.too_long || was_timed(l, a))
            continue;
        a->way.quick = a->way.within = true;
        uint64_t cycles = finished_cycles(l->c, a);
        Offer offer = {rung, false, a->way, {a->traffic, cycles}};
        vec_push(l->c->arena, &l->offer, offer);
        looked++;
    }
    heat_free(&h);
}

/* ---- the rungs ---- */

typedef bool Fits(Ladder *l, uint64_t size);

/* The least number whose size fits, to one part in so many: too_low is too low,
 * `fits` fits. */
static uint64_t halved(Ladder *l, Fits *size_fits, bool rungs, uint64_t too_low,
                       uint64_t fits, uint64_t parts) {
    while (too_low + 1 < fits && fits - too_low > fits / parts) {
        uint64_t mid = (too_low + fits) / 2;
        uint64_t size = rungs ? rung_size((uint32_t)mid) : mid;
        *(size_fits(l, size) ? &fits : &too_low) = mid;
    }
    return fits;
}

static uint32_t rung_halved(Ladder *l, Fits *size_fits, uint32_t too_low) {
    uint64_t end = OCTAVES * OCTAVE;
    return (uint32_t)halved(l, size_fits, true, too_low, end, end);
}

static bool something_fits(Ladder *l, uint64_t size) {
    Contest any = *l->c;
    any.enough = true;
    Heat h = {.c = &any, .most = HUGE_VAL};
    heat_ways(&h, size, true);
    heat_free(&h);
    return h.stops;
}

/* As it is finished when it is chosen. */
static void offer_finish(const Ladder *l, Offer *o) {
    Arena *arena = arena_new("offer");
    Contest one = *l->c;
    o->way.quick = false;
    o->exact = true;
    o->timed.cycles = UINT64_MAX;
    one.best = o->way;
    Plan *plan = way_plan(arena, diag_new(arena), &one, &o->way);
    if (plan) {
        plan = plan_hidden(arena, &one, plan);
        o->timed.cycles = l->c->options->cycles(l->c->options->context, plan);
        o->timed.traffic = plan_traffic(plan);
    }
    arena_free(arena);
}

/* Whether all is kept within this size: l->kept is that plan, in the memory
 * that it takes. */
static bool all_is_kept(Ladder *l, uint64_t size) {
    Arena *arena = arena_new("keeps all");
    Way way = {.size = size, .tight = true, .within = true, .most = 0};
    Attempt a;
    bool fits = way_place(arena, l->c, &way, &a) && a.plan->keeps_all;
    if (fits) {
        uint64_t cycles = finished_cycles(l->c, &a);
        l->kept = (Timed){plan_traffic(a.plan), cycles};
    }
    arena_free(arena);
    return fits;
}

/* By halving, from rungs that are the same for all memories. */
static void find_rungs(Ladder *l) {
    enum { PARTS = 256 };
    uint32_t lowest = rung_halved(l, something_fits, 0);
    uint32_t highest = rung_halved(l, all_is_kept, lowest - 1);
    uint64_t least = halved(l, something_fits, false, rung_size(lowest - 1),
                            rung_size(lowest), PARTS);
    if (highest > lowest + MOST_OCTAVES * OCTAVE)
        highest = lowest + MOST_OCTAVES * OCTAVE;
    l->rung = ARENA_ARRAY(l->c->arena, uint64_t, highest - lowest + 2);
    if (least < rung_size(lowest))
        l->rung[l->n++] = least;
    for (uint32_t i = lowest; i <= highest; i++)
        l->rung[l->n++] = rung_size(i);
}

static void offers_make(Ladder *l) {
    uint64_t fewest = 0;
    for (uint32_t r = 0; r < l->n; r++) {
        size_offer(l, r, l->rung[r], fewest);
        for (uint32_t i = 0; i < l->offer.n; i++) {
            uint64_t bytes = bytes_of(l->offer.at[i].timed.traffic);
            fewest = !fewest || bytes < fewest ? bytes : fewest;
        }
    }
}

/* ---- the chain ---- */

/* By how many times it is more than the least, as a logarithm, squared: little
 * on many rungs is better than much on few. */
static double regret(uint64_t own, uint64_t least) {
    double times = log((double)(own + 1) / (double)(least + 1));
    return times * fabs(times);
}

static double offer_cost(const Ladder *l, const Offer *o, uint32_t rung) {
    const Timed *least = &l->least[rung];
    if (!no_worse(l->kept, o->timed))
        return HUGE_VAL;
    return regret(bytes_of(o->timed.traffic), bytes_of(least->traffic)) +
           CYCLES_WORTH * regret(o->timed.cycles, least->cycles);
}

/* Of what is offered up to each rung. */
static void leasts_find(Ladder *l) {
    Timed least = {.traffic.moved = UINT64_MAX, .cycles = UINT64_MAX};
    l->least = ARENA_ARRAY(l->c->arena, Timed, l->n + 1);
    for (uint32_t r = 0, i = 0; r < l->n; r++) {
        for (; i < l->offer.n && l->offer.at[i].rung == r; i++) {
            const Timed *t = &l->offer.at[i].timed;
            if (bytes_of(t->traffic) < bytes_of(least.traffic))
                least.traffic = t->traffic;
            if (t->cycles < least.cycles)
                least.cycles = t->cycles;
        }
        l->least[r] = least;
    }
}

/* What the change from one plan to another costs: HUGE_VAL where bytes rise, or
 * cycles but by an eighth where at least two fifths of the bytes go. Such a
 * rise has to pay, too: RISE_COST. */
static double rise_cost(Timed from, Timed to) {
    if (no_worse(to, from))
        return 0;
    Timed slower = from;
    slower.cycles += from.cycles / 8;
    bool fewer = bytes_of(to.traffic) <= bytes_of(from.traffic) / 5 * 3;
    return fewer && no_worse(to, slower) ? RISE_COST : HUGE_VAL;
}

/* What a chain costs that holds offer `i` at the rung, after `before`, what
 * those cost that hold each at the rung below. */
static double link_cost(const Ladder *l, uint32_t rung, uint32_t i,
                        const double *before, uint32_t *from) {
    const Offer *offer = l->offer.at;
    double least = HUGE_VAL;
    for (uint32_t k = 0; k < l->offer.n; k++) {
        if (before[k] >= least)
            continue;
        double cost = before[k] + rise_cost(offer[k].timed, offer[i].timed);
        if (cost < least) {
            least = cost;
            *from = k;
        }
    }
    return least + offer_cost(l, &offer[i], rung);
}

/* Of the offers as they are timed now. False if there is none. */
static bool chain_find(Ladder *l) {
    Arena *arena = arena_new("chain");
    uint32_t n = l->offer.n, *from = ARENA_ARRAY(arena, uint32_t, l->n * n + 1);
    double *before = ARENA_ARRAY(arena, double, n), *now;
    for (uint32_t i = 0; i < n; i++)
        before[i] =
            l->offer.at[i].rung ? HUGE_VAL : offer_cost(l, &l->offer.at[i], 0);
    for (uint32_t r = 1; r < l->n; r++, before = now) {
        now = ARENA_ARRAY(arena, double, n);
        for (uint32_t i = 0; i < n; i++)
            now[i] = l->offer.at[i].rung > r
                         ? HUGE_VAL
                         : link_cost(l, r, i, before, &from[r * n + i]);
    }
    uint32_t last = 0;
    for (uint32_t i = 1; i < n; i++)
        last = before[i] < before[last] ? i : last;
    bool found = before[last] < HUGE_VAL;
    for (uint32_t r = l->n; r-- > 0; last = from[r * n + last])
        l->held[r] = last;
    arena_free(arena);
    return found;
}

/* Times those exactly that are in the chain; false if all were. */
static bool chain_finish(Ladder *l) {
    bool any = false;
    for (uint32_t r = 0; r < l->n; r++) {
        Offer *o = &l->offer.at[l->held[r]];
        any |= !o->exact;
        if (!o->exact)
            offer_finish(l, o);
    }
    return any;
}

static bool chain_make(Ladder *l) {
    l->held = ARENA_ARRAY(l->c->arena, uint32_t, l->n);
    leasts_find(l);
    bool found, kept;
    do {
        kept = l->kept.cycles > 0;
        found = chain_find(l);
        if (!found) /* what keeps everything is no better */
            l->kept = (Timed){0};
    } while (found ? chain_finish(l) : kept);
    return found;
}

/* ---- between two rungs ---- */

/* Takes what is offered if it is better, and leaves the upper rung no worse. */
static void hold_better(const Ladder *l, uint32_t rung, uint32_t from,
                        Timed above, Offer *held) {
    enum { PART = 8 };
    for (uint32_t i = from; i < l->offer.n; i++) {
        Offer *o = &l->offer.at[i];
        uint64_t most = held->timed.cycles;
        if (o->timed.cycles > most + most / PART ||
            offer_cost(l, o, rung) >= offer_cost(l, held, rung))
            continue;
        offer_finish(l, o);
        if (no_worse(l->kept, o->timed) && no_worse(above, o->timed) &&
            no_worse(o->timed, held->timed))
            *held = *o;
    }
}

static Offer climb_between(Ladder *l, uint32_t rung, uint64_t size) {
    enum { PARTS = 8 };
    Offer held = l->offer.at[l->held[rung]];
    if (rung + 1 == l->n)
        return held;
    const Timed above = l->offer.at[l->held[rung + 1]].timed;
    uint64_t low = l->rung[rung], unit = l->rung[rung + 1] - low;
    bool ends = no_worse(held.timed, above);
    for (uint64_t i = 1; i < PARTS && low + unit * i / PARTS <= size && !ends;
         i++) {
        uint32_t from = l->offer.n;
        size_offer(l, rung, low + unit * i / PARTS,
                   bytes_of(held.timed.traffic));
        hold_better(l, rung, from, above, &held);
    }
    return held;
}

/* Where nothing is computed twice, the fewest bytes need no time to be weighed
 * against them; and where there are many steps, plans cost too much to make. */
bool weighs_time(const Contest *c) {
    enum { MAX_STEPS = 200 };
    const HwTiling *tiling = &c->schedule->spec->tiling;
    return c->options->cycles && !tiling->rings && !tiling->bytes_alone &&
           !tiling->always && c->schedule->n_steps <= MAX_STEPS;
}

void ladder_climb(Contest *c) {
    uint64_t size = c->schedule->spec->memory[0].size;
    Ladder l = {.c = c};
    find_rungs(&l);
    if (l.rung[0] > size)
        return;
    offers_make(&l);
    if (!l.offer.n || !chain_make(&l))
        return;
    uint32_t rung = 0;
    while (rung + 1 < l.n && l.rung[rung + 1] <= size)
        rung++;
    Offer held = climb_between(&l, rung, size);
    c->any = true;
    c->best = held.way;
    c->best.within = false;
    c->least = held.timed;
}
