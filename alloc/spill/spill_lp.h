/* spill_lp.h - which shares of volumes leave over which gaps; private to alloc.
 */
#ifndef ALLOC_SPILL_SPILL_LP_H
#define ALLOC_SPILL_SPILL_LP_H

#include "base/memo.h"
#include "base/simplex.h"
#include "graph/graph.h"

/* Between touch i of a unit and the next one. */
typedef struct Stay {
    uint32_t unit, touch;
    uint32_t first, end; /* times */
    double bytes;        /* of active memory */
    double load;         /* bytes moved each time that all of it leaves, */
    double store;        /* and once for all gaps of the unit */
    bool parts;          /* a part of it can stay */
    bool filling;        /* a concat whose members are not all there */
    bool forced;         /* it leaves whole */
    bool uncut;          /* a part of it could stay, but was in the way */
    double away;         /* x: what shares_solve finds */
} Stay;

typedef struct Shares {
    Arena *arena;
    double total; /* bytes of active memory: the unit of the program */
    uint32_t n_times;
    double *live;   /* by time: bytes, if nothing leaves */
    VEC(Stay) stay; /* those of one unit stand together */
    LpRoom room;
    Recall *recall;     /* of what was solved before; NULL: none */
    VEC(uint32_t) full; /* times that hold too much, and differ in their gaps */
} Shares;

/* The cheapest shares of the gaps that are not forced with at most `target`
 * bytes at any time, and what they move; false if there are none, or the
 * program is too large. */
bool shares_solve(Shares *x, double target, double *moved);

/* Bytes that move at least, in memory of `total`; of a program that is too
 * large the fullest times, as many as can be. */
double shares_bound(Shares *x);

#endif
