/* best.h - the order with the least peak, with its proof; private to sched. */
#ifndef SCHED_BEST_H
#define SCHED_BEST_H

#include "sched/order.h"

typedef struct Best {
    const uint32_t *order;
    uint64_t peak;
    uint64_t bound;  /* no order has less */
    bool proved;     /* peak == bound */
    uint64_t states; /* sets of nodes that were looked at */
} Best;

/* `known`: some order of all nodes, returned where none is better. `budget`:
 * looks at nodes, after which the search gives up; 0: the default, about a
 * second or two. */
Best order_best(Arena *arena, const OrderProblem *problem,
                const uint32_t *known, uint64_t budget);

#endif
