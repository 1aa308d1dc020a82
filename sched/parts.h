/* parts.h - parts of a problem that can be ordered one by one; private.
 *
 * A *waist* is a node that every other node comes before or behind. Between two
 * waists nothing runs that belongs elsewhere, so orders of the parts are
 * independent of each other, and what is alive at a waist is the same in all.
 */
#ifndef SCHED_PARTS_H
#define SCHED_PARTS_H

#include "sched/order.h"

/* Part i holds node[start[i]] to node[start[i + 1]], ids ascending; the waist
 * that closes it (if any) is last. */
typedef struct Parts {
    uint32_t n;
    const uint32_t *start, *node;
} Parts;

/* Closed by each waist for which `closes` says so (NULL: all). */
Parts parts_make(Arena *arena, const OrderProblem *problem,
                 bool (*closes)(const void *context, uint32_t node),
                 const void *context);

#endif
