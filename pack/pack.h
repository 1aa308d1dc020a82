/* pack.h - placing buffers in memory: integers only, no network in sight.
 *
 * PlanMemory(pools, problem) -> [(buffer, pool, offset)].
 * A buffer is alive in the half-open interval of steps [first, end), but for
 * its gaps. Two buffers conflict if both are alive at some step (bufs_conflict,
 * the one place); in a pool, conflicting buffers may not share bytes unless a
 * relation says so (bufs_clearance, the one place). A buffer that is never
 * alive conflicts with nothing, but has a place. One of 0 bytes in every pool
 * needs none: it is reported in pool 0 at offset 0, its pin ignored.
 */
#ifndef PACK_PACK_H
#define PACK_PACK_H

#include "base/arena.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PACK_MAX_POOLS = 8 };
#define PACK_NO_HINT UINT64_MAX
#define PACK_NO_BUFFER UINT32_MAX

typedef struct Pool {
    uint64_t size;      /* bytes */
    uint64_t align;     /* every offset is a multiple; >= 1 */
    uint64_t partition; /* bytes of each part that has a port of its own; 0:
                         * the pool is in one piece */
    uint64_t cost;      /* of each byte of a buffer that lies here */
} Pool;

/* Steps [first, end). */
typedef struct Steps {
    uint32_t first, end;
} Steps;

typedef struct Buffer {
    uint32_t first, end;
    uint32_t n_gaps;
    const Steps *gap;               /* within the life, apart, rising: its
                                     * bytes are free for others */
    uint64_t bytes[PACK_MAX_POOLS]; /* in each pool; 0: not allowed there */
    int32_t pin_pool;               /* -1: free; else exactly here: */
    uint64_t pin_offset;
    uint64_t hint;  /* preferred offset, or PLAN_NO_HINT */
    uint64_t align; /* of its own, besides the pool's; 0 or 1: none */
} Buffer;

/* What two buffers ask of each other's places, besides their lives. `at` is an
 * offset, and both lie in one pool unless it says otherwise. */
typedef enum RelationKind {
    REL_INSIDE, /* a is part of b: in b's pool, at[a] = at[b] + bytes, and not
                 * longer than b there. Neither is in the other's way, nor in
                 * that of what b is part of. a need not keep the pool's
                 * alignment. One b for each a, and no circles. A member of a
                 * concat; a result in place */
    REL_SHARE,  /* a and b may share any bytes although both are alive */
    REL_SAME,   /* they may lie at the same offset, or apart */
    REL_BELOW,  /* they may overlap where at[a] + bytes <= at[b]; `bytes` may be
                 * negative. Of an operator that consumes as it produces: a is
                 * its result, b its operand, `bytes` the most by which writing
                 * is ahead of reading. Where it runs from high addresses to
                 * low: a the operand, b the result */
    REL_APART,  /* no partition of a pool holds bytes of both, alive together or
                 * not: they are read in parallel */
    N_RELATIONS
} RelationKind;

typedef struct Relation {
    RelationKind kind;
    uint32_t a, b;
    int64_t bytes; /* INSIDE, BELOW */
} Relation;

typedef struct PackResult PackResult;

typedef struct PackProblem {
    uint32_t n_pools, n_bufs;
    Pool pool[PACK_MAX_POOLS]; /* in order of preference */
    const Buffer *buf;
    uint32_t n_relations;
    const Relation *relation;
    uint64_t seed;   /* for planners that draw */
    uint64_t budget; /* steps of search; 0: the planner's default, or with a
                      * deadline as many as come before it */
    double deadline; /* by pack_clock, after which the best so far is the
                      * answer; 0: none */
    bool any_fit;    /* what fits is enough: no search for less height */
    void (*found)(void *context, const PackResult *result);
    void *context; /* of `found`, which hears of better placements; NULL */
} PackProblem;

typedef enum PackStatus {
    PACK_FITS,
    PACK_FAILS,     /* this planner found none */
    PACK_INFEASIBLE /* none exists: proved */
} PackStatus;

struct PackResult {
    PackStatus status;
    int32_t *pool;                   /* by buffer; -1: could not be placed */
    uint64_t *offset;                /* bytes */
    uint64_t height[PACK_MAX_POOLS]; /* highest byte used + 1 */
    uint64_t cost;       /* of all bytes, those inside others counted once */
    uint64_t cost_bound; /* no placement costs less */
    uint64_t bound;      /* no placement of least cost is lower: heights of all
                          * pools added. At least the live peak */
    bool proved;         /* cost and height are the least possible */
    uint32_t hints;      /* buffers that lie where their hint says */
    uint32_t failed; /* first buffer that found no place; INFEASIBLE: one that
                      * fits in no pool or has an impossible pin, or
                      * PLAN_NO_BUF where all together are too large */
    uint64_t nodes;  /* of a search; 0: there was none */
};

typedef void PlanFn(Arena *arena, const PackProblem *problem,
                    PackResult *result);

/* One file a planner; the table is in registry.c. */
typedef struct Planner {
    const char *name;
    PlanFn *run;
    bool in_auto; /* "auto" tries it */
    const char *doc;
} Planner;
extern const Planner planners[];
extern const uint32_t n_planners;
const Planner *planner_find(const char *name); /* NULL if unknown */

bool bufs_conflict(const Buffer *a, const Buffer *b);

/* What two offsets in one pool must satisfy, one of:
 *     at[a] + below <= at[b],    at[b] + above <= at[a],
 *     at[a] == at[b], where `same` is set;
 * nothing, where `free` is set. */
typedef struct Clearance {
    bool free, same;
    int64_t below, above;
} Clearance;

/* Of two buffers that conflict, by the `n` relations between the two (others
 * are passed over). Bytes of both in the pool are at most INT64_MAX. */
Clearance bufs_clearance(const PackProblem *problem, uint32_t a, uint32_t b,
                         uint32_t pool, const Relation *relation, uint32_t n);

/* What every offset of the buffer in the pool is a multiple of: the least
 * common multiple of both alignments; UINT64_MAX if that is too large. */
uint64_t buf_align(const Pool *pool, const Buffer *buf);

/* Most bytes that buffers alive at one step need, each at its cheapest pool,
 * what may be shared counted once; `*at` (if not NULL) gets the step. */
uint64_t pack_live_peak(Arena *arena, const PackProblem *problem, uint32_t *at);

/* Seconds since some moment in the past. */
double pack_clock(void);

/* Is the deadline over? */
bool pack_late(const PackProblem *problem);

/* Runs the named planner, or for "auto" the rows marked in_auto in the table's
 * order until one fits (the one with the least height among those that fit, if
 * `best`); the search comes last and, without a budget, gets a modest one.
 * result arrays are made here; height, bound, proved are filled here. The
 * judge (plan_check) has passed it. `*used` gets the planner's name. */
void pack_memory(Arena *arena, const PackProblem *problem, const char *planner,
                 bool best, PackResult *result, const char **used);

/* The same, as low as the planner can, in a pool that may have no end. Some
 * planners count from the end of memory, so there must be one: the first of
 * bound, bound + 1/32, bound + 2/32... in which they find a placement, up to
 * 9 times the bound; what they placed is then pushed down. */
void pack_lowest(Arena *arena, const PackProblem *problem, const char *planner,
                 PackResult *result);

/* Why nothing fits: buffers that cannot be placed whatever is done, none of
 * which can be left out (with its relations). */
typedef struct PackConflict {
    bool infeasible;  /* false: a placement exists, or none was ruled out */
    bool irreducible; /* proved: without any one of them the rest fits */
    uint32_t n;
    const uint32_t *buf; /* by id */
    uint64_t bound;      /* bytes that they need at least */
} PackConflict;

/* `problem->budget` counts for each of the at most n + 1 questions that are
 * asked of the search. */
void pack_irreducible(Arena *arena, const PackProblem *problem,
                      PackConflict *conflict);

/* The judge: shares no code with the planners. NULL if the result is right,
 * else a sentence: which buffers collide, leave a pool, break alignment, a pin,
 * or miss a place. */
const char *pack_verify(Arena *arena, const PackProblem *problem,
                        const PackResult *result);

#ifdef __cplusplus
}
#endif

#endif
