/* planner.h - placing buffers in memory: integers only, no network in sight.
 *
 * PlanMemory(pools, problem) -> [(buffer, pool, offset)].
 * A buffer is alive in the half-open interval of steps [first, end). Two
 * buffers conflict if their lives overlap (bufs_conflict, the one place); in a
 * pool, conflicting buffers may not share bytes. A buffer with first >= end is
 * never alive and conflicts with nothing, but has a place. One of 0 bytes in
 * every pool needs none: it is reported in pool 0 at offset 0, its pin ignored.
 */
#ifndef ALLOC_PLANNER_H
#define ALLOC_PLANNER_H

#include "base/arena.h"

#include <stdbool.h>

enum { PLAN_MAX_POOLS = 8 };
#define PLAN_NO_HINT UINT64_MAX
#define PLAN_NO_BUF UINT32_MAX

typedef struct Pool {
    uint64_t size;  /* bytes */
    uint64_t align; /* every offset is a multiple; >= 1 */
} Pool;

typedef struct Buf {
    uint32_t first, end;
    uint64_t bytes[PLAN_MAX_POOLS]; /* in each pool; 0: not allowed there */
    int32_t pin_pool;               /* -1: free; else exactly here: */
    uint64_t pin_offset;
    uint64_t hint;  /* preferred offset, or PLAN_NO_HINT */
    uint64_t align; /* of its own, besides the pool's; 0 or 1: none */
} Buf;

typedef struct PlanProblem {
    uint32_t n_pools, n_bufs;
    Pool pool[PLAN_MAX_POOLS]; /* in order of preference */
    const Buf *buf;
    uint64_t seed;   /* for planners that draw */
    uint64_t budget; /* steps of search; 0: the planner's default */
    bool any_fit;    /* what fits is enough: no search for less height */
} PlanProblem;

typedef enum PlanStatus {
    PLAN_FITS,
    PLAN_FAILS,     /* this planner found none */
    PLAN_INFEASIBLE /* none exists: proved */
} PlanStatus;

typedef struct PlanResult {
    PlanStatus status;
    int32_t *pool;                   /* by buffer; -1: could not be placed */
    uint64_t *offset;                /* bytes */
    uint64_t height[PLAN_MAX_POOLS]; /* highest byte used + 1 */
    uint64_t bound;  /* live peak; one pool: no placement is lower (a pin that
                      * ends higher counts, and what a search proved) */
    bool proved;     /* height[0] is the least possible */
    uint32_t failed; /* first buffer that found no place; INFEASIBLE: one that
                      * fits in no pool or has an impossible pin, or
                      * PLAN_NO_BUF where all together are too large */
    uint64_t nodes;  /* of a search; 0: there was none */
} PlanResult;

typedef void PlanFn(Arena *arena, const PlanProblem *problem,
                    PlanResult *result);

/* One file a planner; the table is in planners.c. */
typedef struct Planner {
    const char *name;
    PlanFn *run;
    bool in_auto; /* "auto" tries it */
    const char *doc;
} Planner;
extern const Planner planners[];
extern const uint32_t n_planners;
const Planner *planner_find(const char *name); /* NULL if unknown */

bool bufs_conflict(const Buf *a, const Buf *b);

/* What every offset of the buffer in the pool is a multiple of: the least
 * common multiple of both alignments; UINT64_MAX if that is too large. */
uint64_t buf_align(const Pool *pool, const Buf *buf);

/* Largest sum of live bytes over all steps, each buffer at its cheapest pool;
 * `*at` (if not NULL) gets the step. */
uint64_t plan_live_peak(Arena *arena, const PlanProblem *problem, uint32_t *at);

/* Runs the named planner, or for "auto" the rows marked in_auto in the table's
 * order until one fits (the one with the least height among those that fit, if
 * `best`); the search comes last and, without a budget, gets a modest one.
 * result arrays are made here; height, bound, proved are filled here. The
 * judge (plan_check) has passed it. `*used` gets the planner's name. */
void plan_memory(Arena *arena, const PlanProblem *problem, const char *planner,
                 bool best, PlanResult *result, const char **used);

/* Why nothing fits: of a problem with one pool, buffers that cannot be placed
 * in it whatever is done, none of which can be left out. */
typedef struct PlanConflict {
    bool infeasible;  /* false: a placement exists, or none was ruled out */
    bool irreducible; /* proved: without any one of them the rest fits */
    uint32_t n;
    const uint32_t *buf; /* by id */
    uint64_t bound;      /* bytes that they need at least */
} PlanConflict;

/* `problem->budget` counts for each of the at most n + 1 questions that are
 * asked of the search. */
void plan_irreducible(Arena *arena, const PlanProblem *problem,
                      PlanConflict *conflict);

/* The judge: shares no code with the planners. NULL if the result is right,
 * else a sentence: which buffers collide, leave a pool, break alignment, a pin,
 * or miss a place. */
const char *plan_check(Arena *arena, const PlanProblem *problem,
                       const PlanResult *result);

#endif
