/* spill_lp.h - which shares of volumes leave over which intervals; private to
 * alloc.
 */
#ifndef ALLOC_SPILL_SPILL_LP_H
#define ALLOC_SPILL_SPILL_LP_H

#include "base/memo.h"
#include "base/simplex.h"
#include "graph/graph.h"

/* Between touch i of an alias class and the next one. */
typedef struct SpillInterval {
    uint32_t alias, use;
    uint32_t first, end; /* times */
    double bytes;        /* of active memory */
    double load;         /* bytes moved each time that all of it leaves, */
    double store;        /* and once for all intervals of the alias class */
    bool parts;          /* a part of it can stay */
    bool filling;        /* a concat whose members are not all there */
    bool forced;         /* it leaves whole */
    bool uncut;          /* a part of it could stay, but was in the way */
    double away;         /* x: what spill_lp_solve finds */
} SpillInterval;

typedef struct SpillProgram {
    Arena *arena;
    double total; /* bytes of active memory: the unit of the program */
    uint32_t n_times;
    double *live;            /* by time: bytes, if nothing leaves */
    VEC(SpillInterval) stay; /* those of one alias class stand together */
    LpRoom room;
    MemoTable *memo_table; /* of what was solved before; NULL: none */
    VEC(uint32_t)
    full; /* times that hold too much, and differ in their intervals */
} SpillProgram;

/* The cheapest shares of the intervals that are not forced with at most
 * `target` bytes at any time, and what they move; false if there are none, or
 * the program is too large. */
bool spill_lp_solve(SpillProgram *x, double target, double *moved);

/* Bytes that move at least, in memory of `total`; of a program that is too
 * large the fullest times, as many as can be. */
double spill_lp_bound(SpillProgram *x);

#endif
