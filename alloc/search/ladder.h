/* ladder.h - plans for sizes of active memory, none worse than those for less;
 * private to alloc. */
#ifndef ALLOC_SEARCH_LADDER_H
#define ALLOC_SEARCH_LADDER_H

#include "alloc/search/boxes.h"
#include "alloc/search/contest.h"

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
    uint32_t rung;   /* chain.c: of those that it lies in the lowest */
    uint64_t serial; /* cycles, were no transfer beside a layer */
    bool waits;      /* finished to the end it may take fewer cycles */
    bool unmade;     /* chain.c: it is slowed down only once it is taken */
    bool exact;      /* cycles are those that the plan says */
} Offer;

typedef VEC(Offer) Offers;

/* What groups load once for several layers is counted more than once by what
 * ends plans early: these may move so many times the bytes. */
enum { SLACK = 4 };

static const Timed costs_nothing = {{0}, 0},
                   costs_all = {{.moved = UINT64_MAX >> 8}, UINT64_MAX};

/* Plans for the size that move as many bytes as both allow, those with the
 * fewest bytes first; not those that are there. They are no faster than `above`
 * where that only takes fewer transfers beside layers. */
void offers_make(const Contest *c, uint64_t size, Timed below, Timed above,
                 Offers *offers);
bool same_traffic(Traffic a, Traffic b);
/* Of what was tried, those with the fewest bytes first. */
void heat_sort(Heat *h);
/* What is placed, finished quickly and timed. False: it breaks a rule. */
bool offer_quickly(const Contest *c, Attempt *a, Offer *out);
/* Slows down the plan that was offered: what is too fast beside a larger
 * memory's plan has its bytes still. */
void offer_slower(const Contest *c, Attempt *a, Slow slow, Offer *o);
/* As it is when it is chosen. False: it breaks a rule. */
bool offer_finish(const Contest *c, Offer *o);
/* The fewest bytes and cycles, each of any of them, or of `least`. */
Timed offers_least(const Offers *offers, Timed least);
/* How far it is from these. */
double offer_cost(const Contest *c, const Offer *o, Timed least);

/* ---- chain.c ---- */

/* Of the offers for sizes in rising order one for each: no worse than that
 * before, no better than `last`. False if there are none. `held` is that, by
 * size. */
bool chain_make(const Contest *c, const uint64_t *size, uint32_t n, Timed last,
                Offer *held);

/* ---- ends.c ---- */

/* The size in which everything stays. */
uint64_t size_for_all(const Contest *c);
/* The least in which anything fits: to the granule, or where layers roll or
 * steps are many to one part in 256. */
uint64_t size_for_any(const Contest *c, uint64_t fits);
/* The same to the byte, from what that has found: refusals name it so. */
uint64_t size_to_byte(const Contest *c, uint64_t fits);

/* ---- ladder.c ---- */

/* A contest, and the plans of its boxes. */
typedef struct Climb {
    const Contest *c;
    Offers held;
} Climb;

Box climb_box(Climb *climb, uint64_t size, Offer held);
/* The contest's best is this one. */
void ladder_take(Contest *c, const Offer *held);

/* ---- rolled.c ---- */

/* As ladder_climb, where layers roll. */
void rolled_climb(Contest *c);

#endif
