/* chain.c - plans for sizes far apart, each no worse than that for the size
 * before.
 *
 * Input: a contest, rungs: sizes of active memory in rising order. Output: for
 * each a plan made for it, or for a rung below.
 * Method: dynamic programming over all that is offered. Of all chains in which
 * neither bytes nor cycles rise that one is taken that is closest to the fewest
 * bytes and the fewest cycles offered at each rung: the sum of both ratios'
 * logarithms, squared, is least; so what is fast by chance in little memory
 * does not keep bytes moving in a large one. What is too fast beside a larger
 * rung's plan with fewer bytes is on offer as slow as that, too, if it only has
 * to hide fewer transfers (slower.c): else the fewest bytes were shut out where
 * all plans for less memory are faster. Those in the chain are finished, which
 * makes new offers, until it has none that were not.
 */
#include "alloc/search/ladder.h"

#include <math.h>

typedef struct Chain {
    const Contest *c;
    uint32_t n;   /* rungs */
    Timed last;   /* no plan is better than this */
    Timed *least; /* by rung: the fewest bytes, and cycles, up to it */
    Offers offer; /* by rung, those that were finished behind all others */
    uint32_t *held;
} Chain;

static void chain_offer(Chain *ch, const uint64_t *size) {
    Timed least = costs_all;
    for (uint32_t r = 0; r < ch->n; r++) {
        uint32_t from = ch->offer.n;
        offers_make(ch->c, size[r], costs_all, ch->last, &ch->offer);
        for (uint32_t i = from; i < ch->offer.n; i++)
            ch->offer.at[i].rung = r;
        ch->least[r] = least = offers_least(&ch->offer, least);
    }
}

/* ---- plans that are slower than they could be ---- */

/* Cycles of plans that are as slow as a third one differ by one part in so
 * many from rung to rung. */
enum { BAND = 1024 };

/* Whether no other offer for the same size is better. */
static bool is_front(const Chain *ch, uint32_t i) {
    const Offer *o = &ch->offer.at[i];
    for (uint32_t k = 0; k < ch->offer.n; k++) {
        const Offer *b = &ch->offer.at[k];
        bool as_good = b->rung == o->rung && no_worse(b->timed, o->timed);
        if (k != i && as_good && (k < i || !no_worse(o->timed, b->timed)))
            return false;
    }
    return true;
}

/* The offer, were it no faster than `top`, of a larger rung. */
static void slow_offer(Chain *ch, const Offer *o, const Offer *top) {
    uint64_t above = top->timed.cycles, band = above / BAND;
    uint32_t n = top->rung - o->rung;
    Slow slow = {above + (n - 1) * band, above + n * band};
    if (o->timed.cycles >= slow.least || o->serial < slow.most ||
        fewer_bytes(o->timed.traffic, top->timed.traffic))
        return;
    Offer slower = *o;
    slower.way.slow = slow;
    slower.timed.cycles = slow.most;
    slower.waits = slower.unmade = true;
    vec_push(ch->c->arena, &ch->offer, slower);
}

static void slow_offers(Chain *ch) {
    uint32_t n = ch->offer.n;
    VEC(Offer) front = {0};
    for (uint32_t i = 0; i < n; i++)
        if (is_front(ch, i))
            vec_push(ch->c->arena, &front, ch->offer.at[i]);
    for (uint32_t i = 0; i < front.n; i++)
        for (uint32_t k = 0; k < front.n; k++)
            if (front.at[k].rung > front.at[i].rung)
                slow_offer(ch, &front.at[i], &front.at[k]);
}

/* ---- the chain ---- */

static double cost_at(const Chain *ch, uint32_t rung, const Offer *o) {
    return o->rung > rung || !no_worse(ch->last, o->timed)
               ? HUGE_VAL
               : offer_cost(ch->c, o, ch->least[rung]);
}

/* The least that a chain costs up to the rung below, from which one may go on
 * with this offer; `before` says so of each. */
static double cost_before(const Chain *ch, const Offer *o, const double *before,
                          uint32_t *from) {
    double least = HUGE_VAL;
    for (uint32_t k = 0; k < ch->offer.n; k++)
        if (before[k] < least && no_worse(o->timed, ch->offer.at[k].timed)) {
            least = before[k];
            *from = k;
        }
    return least;
}

static bool chain_find(Chain *ch) {
    Arena *arena = arena_new("chain");
    uint32_t n = ch->offer.n, *from = ARENA_ARRAY(arena, uint32_t, ch->n * n);
    double *before = ARENA_ARRAY(arena, double, n), *now;
    for (uint32_t i = 0; i < n; i++)
        before[i] = cost_at(ch, 0, &ch->offer.at[i]);
    for (uint32_t r = 1; r < ch->n; r++, before = now) {
        now = ARENA_ARRAY(arena, double, n);
        for (uint32_t i = 0; i < n; i++) {
            const Offer *o = &ch->offer.at[i];
            now[i] = cost_at(ch, r, o) +
                     cost_before(ch, o, before, &from[r * n + i]);
        }
    }
    uint32_t last = 0;
    for (uint32_t i = 1; i < n; i++)
        last = before[i] < before[last] ? i : last;
    bool found = n && before[last] < HUGE_VAL;
    for (uint32_t r = ch->n; found && r-- > 0; last = from[r * n + last])
        ch->held[r] = last;
    arena_free(arena);
    return found;
}

/* False if none of these in it waits to be finished. */
static bool chain_finish(Chain *ch, bool unmade) {
    bool any = false;
    for (uint32_t r = 0; r < ch->n; r++) {
        Offer *held = &ch->offer.at[ch->held[r]], o = *held;
        if (!o.waits || o.unmade != unmade)
            continue;
        any = true;
        held->waits = false;
        held->rung = unmade ? NONE : held->rung;
        if (offer_finish(ch->c, &o))
            vec_push(ch->c->arena, &ch->offer, o);
    }
    return any;
}

bool chain_make(const Contest *c, const uint64_t *size, uint32_t n, Timed last,
                Offer *held) {
    Chain ch = {.c = c, .n = n, .last = last};
    ch.least = ARENA_ARRAY(c->arena, Timed, n);
    ch.held = ARENA_ARRAY(c->arena, uint32_t, n);
    chain_offer(&ch, size);
    slow_offers(&ch);
    do {
        if (!chain_find(&ch))
            return false;
    } while (chain_finish(&ch, false) || chain_finish(&ch, true));
    for (uint32_t r = 0; r < n; r++)
        held[r] = ch.offer.at[ch.held[r]];
    return true;
}
