/* ladder.h - plans for sizes of active memory, none worse than those for less;
 * private to alloc. */
#ifndef ALLOC_LADDER_H
#define ALLOC_LADDER_H

#include "alloc/contest.h"

/* No more at least. */
static inline bool fewer_bytes(Traffic a, Traffic b) {
    return a.moved <= b.moved && traffic_bytes(a) <= traffic_bytes(b);
}

static inline bool no_worse(Timed a, Timed b) {
    return fewer_bytes(a.traffic, b.traffic) && a.cycles <= b.cycles;
}

/* ---- offers.c ---- */

typedef struct Offer {
    Way way;
    Timed timed;
    uint32_t rung; /* chain.c: of those that it lies in the lowest */
    bool waits;    /* finished to the end it may take fewer cycles */
} Offer;

typedef VEC(Offer) Offers;

static const Timed costs_nothing = {{0}, 0},
                   costs_all = {{.moved = UINT64_MAX >> 8}, UINT64_MAX};

/* Plans for the size that move as many bytes as both allow, those with the
 * fewest bytes first; not those that are there. */
void offers_make(const Contest *c, uint64_t size, Timed below, Timed above,
                 Offers *offers);
/* As it is when it is chosen. False: it breaks a rule. */
bool offer_finish(const Contest *c, Offer *o);
/* The fewest bytes and cycles, each of any of them, or of `least`. */
Timed offers_least(const Offers *offers, Timed least);
/* How far it is from these. */
double offer_cost(const Offer *o, Timed least);

/* ---- chain.c ---- */

/* Of the offers for sizes in rising order one for each: no worse than that
 * before, no better than `last`. False if there are none. `held` is that, by
 * size. */
bool chain_make(const Contest *c, const uint64_t *size, uint32_t n, Timed last,
                Offer *held);

#endif
