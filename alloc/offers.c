/* offers.c - plans for one size of active memory, with what they cost.
 *
 * Input: a contest, a size. Output: ways, with the bytes and cycles of their
 * plans, which are made, finished and timed as if the memory ended there: so
 * each is the same in every larger one. Quickly first: buffers live no longer
 * to hide transfers. That is a plan as good as any; the same way finished to
 * the end is another, in fewer cycles as a rule.
 */
#include "alloc/ladder.h"
#include "alloc/overlap.h"

#include <math.h>
#include <stdlib.h>

static int by_bytes(const void *a, const void *b) {
    const Attempt *x = *(Attempt *const *)a, *y = *(Attempt *const *)b;
    if (traffic_bytes(x->traffic) != traffic_bytes(y->traffic))
        return traffic_bytes(x->traffic) < traffic_bytes(y->traffic) ? -1 : 1;
    if (x->traffic.work != y->traffic.work)
        return x->traffic.work < y->traffic.work ? -1 : 1;
    return x->traffic.instructions < y->traffic.instructions
               ? -1
               : x->traffic.instructions > y->traffic.instructions;
}

void heat_sort(Heat *h) {
    if (h->entry.n)
        qsort(h->entry.at, h->entry.n, sizeof *h->entry.at, by_bytes);
}

bool same_traffic(Traffic a, Traffic b) {
    return a.moved == b.moved && a.weights == b.weights && a.work == b.work &&
           a.instructions == b.instructions;
}

/* Whether a plan of the same bytes and work is there, of a memory that was
 * hardly smaller; not smaller at all, where larger tiles take less time. */
static bool is_offered(const Contest *c, const Offers *offers,
                       const Attempt *a) {
    bool tiles = c->schedule->spec->tiling.always;
    uint64_t least = a->way.size - (tiles ? 1 : a->way.size / 3);
    for (uint32_t i = 0; i < offers->n; i++) {
        const Offer *o = &offers->at[i];
        if (same_traffic(o->timed.traffic, a->traffic) && o->way.size > least)
            return true;
    }
    return false;
}

/* Whether there is time that neither engines nor transfers need. */
static bool waits(const Contest *c, const Plan *plan) {
    enum { PART = 32 };
    return c->schedule->spec->tiling.overlap &&
           plan_waiting(plan) > plan->cycles / PART;
}

/* As the simulator counts; by its listing, where that is not the same. */
static uint64_t cycles_of(const Contest *c, const Plan *plan) {
    return c->exact ? plan->cycles
                    : c->options->cycles(c->options->context, plan);
}

bool offer_quickly(const Contest *c, Attempt *a, Offer *out) {
    a->way.quick = a->way.within = true;
    a->way.cuts = a->plan->cuts = c->schedule->spec->tiling.rings;
    if (!way_finish(a, diag_new(a->arena), c))
        return false;
    uint64_t cycles = cycles_of(c, a->plan);
    const Plan *serial = a->plan->serial ? a->plan->serial : a->plan;
    *out = (Offer){.way = a->way,
                   .timed = {plan_traffic(a->plan), cycles},
                   .serial = plan_cycles(serial),
                   .exact = cycles == a->plan->cycles,
                   .waits = waits(c, a->plan)};
    return true;
}

void offer_slower(const Contest *c, Attempt *a, Slow slow, Offer *o) {
    o->way.slow = slow;
    slow_down(a->arena, a->plan, slow.least, slow.most);
    o->timed.cycles = cycles_of(c, a->plan);
}

bool offer_finish(const Contest *c, Offer *o) {
    if (budget_spent(c->options->budget))
        return false;
    Arena *arena = arena_new("offer");
    Contest one = *c;
    o->way.quick = o->unmade;
    o->waits = o->unmade = false;
    one.best = o->way;
    Plan *plan = way_plan(arena, diag_new(arena), &one, &o->way);
    if (plan) {
        plan = plan_hidden(arena, &one, plan);
        o->timed.cycles = cycles_of(c, plan);
        o->timed.traffic = plan_traffic(plan);
    }
    arena_free(arena);
    return plan != NULL;
}

/* What is faster than a larger memory's plan becomes hardly slower than that;
 * others are to find room between the two. */
static void keep_above(const Contest *c, Attempt *a, Timed below, Timed above,
                       Offer *o) {
    enum { ROOM = 8, LITTLE = 64 };
    if (o->timed.cycles >= above.cycles || o->serial < above.cycles ||
        below.cycles < above.cycles)
        return;
    uint64_t room = (below.cycles - above.cycles) / ROOM;
    uint64_t little = above.cycles / LITTLE;
    Slow slow = {above.cycles, above.cycles + (room < little ? room : little)};
    offer_slower(c, a, slow, o);
    o->waits = false;
}

static bool is_between(const Attempt *a, Timed below, Timed above) {
    return !a->traffic.too_long && fewer_bytes(a->traffic, below.traffic) &&
           fewer_bytes(above.traffic, a->traffic);
}

void offers_make(const Contest *c, uint64_t size, Timed below, Timed above,
                 Offers *offers) {
    enum { MOST = 16 };
    Heat h = {.c = c,
              .loose = true,
              .most = SLACK * (double)traffic_bytes(below.traffic)};
    heat_ways(&h, size, true);
    heat_sort(&h);
    uint32_t looked = 0;
    for (uint32_t i = 0; i < h.entry.n && looked < MOST; i++) {
        Attempt *a = h.entry.at[i];
        Offer offer;
        if (!is_between(a, below, above) || is_offered(c, offers, a))
            continue;
        looked++;
        if (!offer_quickly(c, a, &offer))
            continue;
        keep_above(c, a, below, above, &offer);
        vec_push(c->arena, offers, offer);
    }
    heat_free(&h);
}

/* By how many times it is more than the least, as a logarithm, squared: little
 * of both is better than much of one. */
static double regret(uint64_t own, uint64_t least) {
    double times = log((double)(own + 1) / (double)(least + 1));
    return times * fabs(times);
}

double offer_cost(const Contest *c, const Offer *o, Timed least) {
    bool tiles = c->schedule->spec->tiling.always;
    double worth = tiles ? 0.1 : 3; /* of cycles, where bytes have 1 */
    return regret(traffic_bytes(o->timed.traffic),
                  traffic_bytes(least.traffic)) +
           worth * regret(o->timed.cycles, least.cycles);
}

Timed offers_least(const Offers *offers, Timed least) {
    for (uint32_t i = 0; i < offers->n; i++) {
        const Timed *t = &offers->at[i].timed;
        if (traffic_bytes(t->traffic) < traffic_bytes(least.traffic))
            least.traffic = t->traffic;
        if (t->cycles < least.cycles)
            least.cycles = t->cycles;
    }
    return least;
}
