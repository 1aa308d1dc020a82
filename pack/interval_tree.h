/* interval_tree.h - which bytes of a pool are taken in a stretch of time.
 *
 * For many buffers: to add one, or to find its lowest gap, takes time that
 * grows with the logarithm of the number of births and with the holes on the
 * way, not with the buffers that were added before.
 *
 * A segment tree (Bentley, 1977) over the births of all buffers: a node stands
 * for a stretch of them. A life is cut into O(log n) whole nodes. Each node
 * keeps, as runs of bytes merged where they touch, what the lives that have it
 * whole take (`all`), and what these and the lives below it take somewhere in
 * its stretch (`some`). A newcomer meets the `some` of its own nodes and the
 * `all` of those above.
 *
 * Invariant: the runs of a node rise and neither overlap nor touch.
 */
#ifndef PACK_INTERVAL_TREE_H
#define PACK_INTERVAL_TREE_H

#include "pack/pack.h"

/* Bytes [at, end). */
typedef struct Run {
    uint64_t at, end;
} Run;

typedef struct Occupied Occupied;

/* Nothing is taken. Of the problem, the lives alone are read, gaps left out. */
Occupied *occupied_new(Arena *arena, const PackProblem *problem);

/* `buf` is alive at some step, and a buffer of the problem. */
void occupied_add(Occupied *occupied, const Buffer *buf, Run run);

enum { LOOK_MOST = 4 * 32 };

/* What stands in the way of one buffer, each set of runs from `next` on. */
typedef struct Look {
    struct Seen {
        const Run *run;
        uint32_t n, next;
    } seen[LOOK_MOST];
    uint32_t n;
    uint64_t steps; /* runs that were met so far */
    uint64_t floor; /* all below was offered or is of no use */
    uint64_t bytes, align, size;
} Look;

/* Of a buffer that is alive at some step, in a pool of `size` bytes. */
void occupied_look(const Occupied *occupied, const Buffer *buf, uint64_t bytes,
                   uint64_t align, uint64_t size, Look *look);

/* The next stretch of free bytes in which the buffer fits, from low to high:
 * `at` is aligned, `end` is where something taken begins, or the pool ends.
 * False if there is none. */
bool look_next(Look *look, Run *free);

#endif
