/* simple.c - orders that need no search: the file's, depth first, frugal,
 * random; and where concats go in any of them. See orders.h. */
#include "sched/orders.h"

#include "base/rng.h"

#include <assert.h>

Ordering ordering_serial(Arena *arena, const OrderProblem *p,
                         const uint32_t *node) {
    return (Ordering){p->n_nodes, order_as_given(arena, p), node, {0}};
}

const uint32_t *order_as_given(Arena *arena, const OrderProblem *p) {
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1);
    for (uint32_t i = 0; i <= p->n_nodes; i++)
        order[i] = i;
    return order;
}

/* A stack; of the nodes that become ready together the first is on top. */
const uint32_t *order_depth_first(Arena *arena, const OrderProblem *p) {
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1);
    uint32_t *waits = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1);
    uint32_t *stack = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1);
    uint32_t n = 0, depth = 0;
    for (uint32_t v = p->n_nodes; v-- > 0;) {
        waits[v] = p->pred.start[v + 1] - p->pred.start[v];
        if (!waits[v])
            stack[depth++] = v;
    }
    while (depth) {
        uint32_t v = stack[--depth];
        order[n++] = v;
        for (uint32_t k = p->succ.start[v + 1]; k-- > p->succ.start[v];)
            if (--waits[p->succ.item[k]] == 0)
                stack[depth++] = p->succ.item[k];
    }
    assert(n == p->n_nodes);
    return order;
}

static uint32_t frugal_next(const OrderState *s) {
    uint32_t best = ORDER_NONE;
    OrderCost least = {0, 0};
    for (uint32_t v = order_next(s->ready, s->words, 0); v != ORDER_NONE;
         v = order_next(s->ready, s->words, v + 1)) {
        OrderCost cost = order_cost(s, v);
        if (best == ORDER_NONE || cost.then < least.then ||
            (cost.then == least.then && cost.peak < least.peak)) {
            best = v;
            least = cost;
        }
    }
    return best;
}

const uint32_t *order_frugal(Arena *arena, const OrderProblem *p) {
    OrderState s = order_state(arena, p);
    while (s.n < p->n_nodes)
        order_run(&s, frugal_next(&s));
    return s.order;
}

const uint32_t *order_random(Arena *arena, const OrderProblem *p,
                             uint64_t seed) {
    OrderState s = order_state(arena, p);
    while (s.n < p->n_nodes) {
        uint32_t n = 0;
        for (uint32_t w = 0; w < s.words; w++)
            n += (uint32_t)__builtin_popcountll(s.ready[w]);
        uint32_t skip = (uint32_t)(rng_bits(seed, s.n) % n);
        uint32_t v = order_next(s.ready, s.words, 0);
        while (skip--)
            v = order_next(s.ready, s.words, v + 1);
        order_run(&s, v);
    }
    return s.order;
}

/* ---- concats ---- */

typedef struct Settling {
    const Model *model;
    uint32_t *waits, *stack, *order;
    uint32_t n;
} Settling;

static bool is_concat(const Model *m, uint32_t v) {
    return graph_node(m->g, m->node[v])->op == OP_CONCAT;
}

/* The node, then the concats that it completes, and so on outwards. */
static void settle(Settling *x, uint32_t node) {
    const OrderProblem *p = x->model->p;
    uint32_t depth = 0;
    x->stack[depth++] = node;
    while (depth) {
        uint32_t v = x->stack[--depth];
        x->order[x->n++] = v;
        for (uint32_t k = p->succ.start[v]; k < p->succ.start[v + 1]; k++) {
            uint32_t next = p->succ.item[k];
            if (--x->waits[next] == 0 && is_concat(x->model, next))
                x->stack[depth++] = next;
        }
    }
}

const uint32_t *order_concats(Arena *arena, const Model *model,
                              const uint32_t *node) {
    const OrderProblem *p = model->p;
    if (model->kind != MODEL_MACHINE)
        return node;
    Settling x = {.model = model,
                  .waits = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1),
                  .stack = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1),
                  .order = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1)};
    for (uint32_t v = 0; v < p->n_nodes; v++)
        x.waits[v] = p->pred.start[v + 1] - p->pred.start[v];
    for (uint32_t v = 0; v < p->n_nodes; v++)
        if (p->pred.start[v] == p->pred.start[v + 1] && is_concat(model, v))
            settle(&x, v); /* of network inputs alone */
    for (uint32_t i = 0; i < p->n_nodes; i++)
        if (!is_concat(model, node[i]))
            settle(&x, node[i]);
    assert(x.n == p->n_nodes);
    return x.order;
}
