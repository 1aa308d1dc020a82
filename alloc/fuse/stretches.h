/* stretches.h - the dynamic program that cuts a schedule; private to
 * alloc/fuse.
 *
 * A schedule is cut into stretches: steps that run one by one, or a cascade
 * that runs depth first. The cheapest way to the end of a step is the cheapest
 * way to where the last stretch begins, and that. Where products that are
 * computed again are limited, some ways to each step are known, of which none
 * is both cheaper and computes less again than another.
 */
#ifndef ALLOC_FUSE_STRETCHES_H
#define ALLOC_FUSE_STRETCHES_H

#include "alloc/cascade/cascade.h"

/* Of two the one with less of the first; of equals, of the second. */
typedef struct Price {
    double first;
    uint64_t second;
    uint64_t again; /* products computed again, where these are limited; else
                     * 0 */
} Price;

/* Products that a plan may compute again. */
uint64_t most_again(const Facts *f);
Price price_sum(Price a, Price b);

/* A way to a step. */
typedef struct Way {
    Price price; /* of all steps before this one */
    Cascade g;   /* the stretch that ends here; rows 0: it is no cascade */
    uint32_t by; /* of the ways to where that begins */
} Way;

/* Those that no other beats, the cheapest first. */
enum { MOST_WAYS = 12 };
typedef struct Cut {
    uint32_t n;
    Way way[MOST_WAYS + 1];
} Cut;

typedef struct Stretches {
    Decisions *d;
    void *context;
    /* Offers stretches that begin with the step. */
    void (*from)(void *context, uint32_t step);
    /* Of a cascade that rolls. */
    Price (*price)(const void *context, const Cascade *g, const RollCost *cost);
    Cascade form;        /* what all cascades have that roll */
    bool fills;          /* they may be full, too */
    Cut *cut;            /* by step, and behind the last */
    uint64_t most_again; /* products that may be computed again */
} Stretches;

/* Takes the stretch if nothing that is known is as cheap, were this its price.
 */
void stretch_offer(Stretches *s, const Cascade *g, Price own);
/* Sets the rows of a cascade that rolls, or its columns, so that it takes at
 * most `bytes`; false if none do. */
bool stretch_rows(const Decisions *d, Cascade *g, uint64_t bytes,
                  RollCost *cost);
/* Offers a cascade that rolls in at most `bytes`, unless it is no cheaper than
 * what is known. False if none fits: *cost is then that of the least. */
bool stretch_roll(Stretches *s, uint32_t first, uint32_t end, uint64_t bytes,
                  RollCost *cost);
/* Puts the cascades of the cheapest way through into d->cascade; false if there
 * is no way. */
bool stretches_cut(Stretches *s);

#endif
