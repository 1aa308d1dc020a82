/* free_list.h - which bytes a buffer could have, given the buffers placed
 * before.
 *
 * A Placer fills a PlanResult one buffer at a time, in any order. Pinned
 * buffers hold their bytes from the start. In each pool the placed buffers are
 * kept sorted by offset, so a walk over those that conflict with a new one
 * meets the gaps from low to high; many buffers in any order are kept in a tree
 * over time (interval_tree.h), with the same gaps.
 *
 * Where there are relations or gaps in lives, a buffer brings all of its bundle
 * with it, and what bars places to that is gathered and sorted.
 */
#ifndef PACK_FREE_LIST_H
#define PACK_FREE_LIST_H

#include "pack/cluster.h"

/* Free bytes [at, end): `at` is aligned and the buffer fits. */
typedef struct Gap {
    uint64_t at, end;
} Gap;

/* What a chooser sees of one pool: n > 0 gaps from low to high. */
typedef struct Gaps {
    uint32_t buf, n;
    const Gap *gap;
    uint64_t bytes, align; /* every offset that is a multiple will do; of a
                            * bundle: the first and the last in the gap will */
} Gaps;

/* An offset within one of the gaps. */
typedef uint64_t ChooseFn(const void *context, const Gaps *gaps);

typedef struct Placer Placer;

/* Every buffer unplaced, except pinned ones (in their places, which are taken
 * as right) and those of 0 bytes everywhere (pool 0, offset 0). */
Placer *placer_new(Arena *arena, const PackProblem *problem,
                   PackResult *result);

/* A copy of one that has placed nothing since it was made. */
Placer *placer_like(Arena *arena, const Placer *fresh, PackResult *result);

/* The same for buffers that come in the order of birth, to be retired: short
 * lists of the living do better than a tree over all of time. */
Placer *placer_new_by_birth(Arena *arena, const PackProblem *problem,
                            PackResult *result);

/* Places `buf`, unless it has its place already, in the cheapest pool with a
 * gap, the first of equals: at its hint if that is free, else where `choose`
 * says. Without a gap it stays
 * unplaced and the result's status becomes PLAN_FAILS. */
void placer_put(Placer *placer, uint32_t buf, ChooseFn *choose,
                const void *context);

/* The same in the lowest gap, without listing the others. */
void placer_put_lowest(Placer *placer, uint32_t buf);

/* What the search for gaps has cost so far, of a placer of many buffers: runs
 * of taken bytes that were met. 0 of others. */
uint64_t placer_steps(const Placer *placer);

/* Of a placer by birth: forgets buffers that are dead at `step` and after;
 * births come no earlier. */
void placer_retire(Placer *placer, uint32_t step);

/* The least bytes of a buffer over the pools that allow it; 0 if it needs no
 * place. */
uint64_t buf_bytes(const PackProblem *problem, uint32_t buf);

/* What the buffer costs in the pool. */
uint64_t place_cost(const PackProblem *problem, uint32_t buf, uint32_t pool);

/* Of a problem with one pool in which all buffers are placed: the highest byte
 * used + 1. */
uint64_t placed_height(const PackProblem *problem, const PackResult *r);

#endif
