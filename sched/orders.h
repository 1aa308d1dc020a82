/* orders.h - what the strategies of sched share; private. */
#ifndef SCHED_ORDERS_H
#define SCHED_ORDERS_H

#include "sched/model.h"
#include "sched/sched.h"

struct OrderTask {
    const Model *model;
    const SchedOptions *options;
};

/* Step s runs node[start[s]] to node[start[s + 1]]: numbers in the model. */
struct Ordering {
    uint32_t n_steps;
    const uint32_t *start, *node;
    OrderFacts facts; /* what the strategy found; the rest is filled later */
};

/* One node a step. */
Ordering ordering_serial(Arena *arena, const OrderProblem *problem,
                         const uint32_t *node);

/* ---- simple.c: orders without a search ---- */

const uint32_t *order_as_given(Arena *arena, const OrderProblem *problem);
/* After a node, those that wait only for it. */
const uint32_t *order_depth_first(Arena *arena, const OrderProblem *problem);
/* Always the ready node that leaves the least alive. */
const uint32_t *order_frugal(Arena *arena, const OrderProblem *problem);
const uint32_t *order_random(Arena *arena, const OrderProblem *problem,
                             uint64_t seed);
/* The same order, but each concat by placement right behind its last member. */
const uint32_t *order_concats(Arena *arena, const Model *model,
                              const uint32_t *node);

/* ---- enumerate.c ---- */

void enumerate_run(Arena *arena, const OrderTask *task, Ordering *out);

/* ---- pack.c: steps of several nodes ---- */

/* Whether the node's engine may run beside all of the step's. */
bool can_join(const Model *model, const uint32_t *step, uint32_t n,
              uint32_t node);
/* Along an order: each node joins the step before it where that is allowed. */
Ordering pack_along(Arena *arena, const Model *model, const Ordering *serial);
/* The best steps for the aim, by search; `serial` is an order of least
 * peak, with its facts. */
Ordering pack_search(Arena *arena, const OrderTask *task,
                     const Ordering *serial);

#endif
