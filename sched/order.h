/* order.h - in what order to run nodes, as a problem of integers: nodes that
 * wait for others, buffers of bytes, and which node touches which buffer.
 *
 * A buffer is alive from the first node that touches it to the last. A node
 * whose result may take the place of an operand (in place) needs no new bytes
 * for it where it is the operand's last reader. The peak of an order is the
 * most bytes alive while any one node runs. Private to sched.
 */
#ifndef SCHED_ORDER_H
#define SCHED_ORDER_H

#include "base/arena.h"

#include <stdbool.h>

#define ORDER_NONE UINT32_MAX

/* Lists by index: those of i are item[start[i]] to item[start[i + 1]]. */
typedef struct OrderLists {
    const uint32_t *start, *item;
} OrderLists;

typedef struct OrderProblem {
    uint32_t n_nodes, n_bufs;
    OrderLists pred, succ;   /* nodes by node; each once */
    OrderLists touch;        /* buffers by node; each once */
    OrderLists over;         /* by node: buffers whose place its result takes */
    const uint64_t *saves;   /* by node: bytes that it then does not need */
    const uint64_t *bytes;   /* by buffer */
    const uint32_t *touches; /* by buffer: nodes that touch it */
    const uint8_t *from_start, *to_end; /* by buffer: alive before, behind */
} OrderProblem;

/* Collects pairs, then makes the lists; pairs may repeat. */
typedef struct OrderMaker OrderMaker;
OrderMaker *order_maker(Arena *arena, uint32_t n_nodes);
void order_wait(OrderMaker *maker, uint32_t node, uint32_t pred);
uint32_t order_buf(OrderMaker *maker, uint64_t bytes, bool from_start,
                   bool to_end);
void order_touch(OrderMaker *maker, uint32_t node, uint32_t buf);
void order_over(OrderMaker *maker, uint32_t node, uint32_t buf, uint64_t saves);
/* Buffers that nobody touches are alive throughout if they are from_start. */
const OrderProblem *order_problem(OrderMaker *maker);

/* ---- a place in the middle of an order ---- */

typedef struct OrderState {
    const OrderProblem *p;
    uint32_t words; /* of a set of nodes */
    uint64_t *done, *ready;
    uint32_t *waits; /* by node: predecessors that have not run */
    uint32_t *left;  /* by buffer: touches to come */
    uint32_t *total; /* by buffer: `left` before the first touch */
    uint32_t *order; /* nodes in the order in which they ran */
    uint32_t n;
    uint64_t live;
} OrderState;

/* Nothing has run. */
OrderState order_state(Arena *arena, const OrderProblem *problem);
/* The state in which exactly the nodes of the set have run (order unknown). */
void order_load(OrderState *state, const uint64_t *done);
void order_run(OrderState *state, uint32_t node);
void order_undo(OrderState *state);

typedef struct OrderCost {
    uint64_t peak; /* bytes alive while the node runs */
    uint64_t then; /* and when it has run */
} OrderCost;
OrderCost order_cost(const OrderState *state, uint32_t node);

/* Runs nodes side by side: none waits for another, and all that they touch is
 * alive together. Returns the bytes alive meanwhile. */
uint64_t order_run_step(OrderState *state, uint32_t n, const uint32_t *node);

/* The next node of the set from `from` on; ORDER_NONE. */
uint32_t order_next(const uint64_t *set, uint32_t words, uint32_t from);

/* ---- whole orders ---- */

/* The peak of an order of all nodes; `live` (if not NULL): bytes by place in
 * the order. UINT64_MAX if a node runs before one it waits for. */
uint64_t order_peak(Arena *arena, const OrderProblem *problem,
                    const uint32_t *order, uint64_t *live);

/* The peak where steps hold several nodes: step s runs order[start[s]] to
 * order[start[s + 1]]; all that they touch is alive together. */
uint64_t order_steps_peak(Arena *arena, const OrderProblem *problem,
                          uint32_t n_steps, const uint32_t *start,
                          const uint32_t *order, uint64_t *live);

/* No order has less: the largest need of any one node. */
uint64_t order_least(const OrderProblem *problem);

#endif
