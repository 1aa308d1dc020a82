/* parts.c - waists in one sweep over a topological order; see parts.h.
 *
 * A node is a waist if no edge passes over its place in the order, nothing
 * before it is without a reader, and nothing behind it without an operand: then
 * every path from before ends in it, and every path to behind begins in it.
 */
#include "sched/parts.h"

static const uint32_t *topological(Arena *arena, const OrderProblem *p) {
    OrderState s = order_state(arena, p);
    while (s.n < p->n_nodes)
        order_run(&s, order_next(s.ready, s.words, 0));
    return s.order;
}

/* By place: over how many edges, sinks before it and sources behind it the
 * node there stands. */
static const uint32_t *passing(Arena *arena, const OrderProblem *p,
                               const uint32_t *order) {
    uint32_t n = p->n_nodes;
    uint32_t *at = ARENA_ARRAY(arena, uint32_t, n + 1);
    uint32_t *begin = ARENA_ARRAY(arena, uint32_t, n + 2);
    uint32_t *end = ARENA_ARRAY(arena, uint32_t, n + 2);
    for (uint32_t i = 0; i < n; i++)
        at[order[i]] = i;
    for (uint32_t v = 0; v < n; v++) {
        if (p->pred.start[v] == p->pred.start[v + 1]) {
            begin[0]++;
            end[at[v]]++;
        }
        if (p->succ.start[v] == p->succ.start[v + 1]) {
            begin[at[v] + 1]++;
            end[n]++;
        }
        for (uint32_t k = p->succ.start[v]; k < p->succ.start[v + 1]; k++) {
            begin[at[v] + 1]++;
            end[at[p->succ.item[k]]]++;
        }
    }
    uint32_t *over = ARENA_ARRAY(arena, uint32_t, n + 1), now = 0;
    for (uint32_t i = 0; i < n; i++) {
        now += begin[i];
        now -= end[i];
        over[i] = now;
    }
    return over;
}

Parts parts_make(Arena *arena, const OrderProblem *p,
                 bool (*closes)(const void *context, uint32_t node),
                 const void *context) {
    Arena *scratch = arena_new("parts");
    const uint32_t *order = topological(scratch, p);
    const uint32_t *over = passing(scratch, p, order);
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 2);
    uint32_t *part_of = ARENA_ARRAY(scratch, uint32_t, p->n_nodes + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        part_of[order[i]] = n;
        if (!over[i] && (!closes || closes(context, order[i])))
            start[++n] = i + 1;
    }
    if (!n || start[n] < p->n_nodes)
        start[++n] = p->n_nodes;
    uint32_t *fill = ARENA_COPY(scratch, uint32_t, start, n + 1);
    uint32_t *node = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 1);
    for (uint32_t v = 0; v < p->n_nodes; v++)
        node[fill[part_of[v]]++] = v;
    arena_free(scratch);
    return (Parts){n, start, node};
}
