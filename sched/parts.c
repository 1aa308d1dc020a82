/* parts.c - waists in one sweep over a topological order; see parts.h.
 *
 * A node is a waist if every node before it has a reader that is not behind it,
 * and every node behind it an operand that is not before it: then paths from
 * all before lead to it, and from it to all behind.
 */
#include "sched/parts.h"

static uint32_t earlier(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t later(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static const uint32_t *topological(Arena *arena, const OrderProblem *p) {
    OrderState s = order_state(arena, p);
    while (s.n < p->n_nodes)
        order_run(&s, order_next(s.ready, s.words, 0));
    return s.order;
}

/* By place: whether the node there is a waist. */
static const bool *find_waists(Arena *arena, const OrderProblem *p,
                               const uint32_t *order) {
    uint32_t n = p->n_nodes, *at = ARENA_ARRAY(arena, uint32_t, n + 1);
    bool *waist = ARENA_ARRAY(arena, bool, n + 1);
    for (uint32_t i = 0; i < n; i++)
        at[order[i]] = i;
    uint32_t last_read = 0; /* of those before, by their first reader */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i], first = n;
        waist[i] = last_read <= i;
        for (uint32_t k = p->succ.start[v]; k < p->succ.start[v + 1]; k++)
            first = earlier(first, at[p->succ.item[k]]);
        last_read = later(last_read, first);
    }
    uint32_t first_made = n; /* for those behind, their last operand */
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = order[i], last = 0;
        waist[i] &= first_made >= i + 1;
        for (uint32_t k = p->pred.start[v]; k < p->pred.start[v + 1]; k++)
            last = later(last, at[p->pred.item[k]] + 1);
        first_made = earlier(first_made, last);
    }
    return waist;
}

Parts parts_make(Arena *arena, const OrderProblem *p,
                 bool (*closes)(const void *context, uint32_t node),
                 const void *context) {
    Arena *scratch = arena_new("parts");
    const uint32_t *order = topological(scratch, p);
    const bool *waist = find_waists(scratch, p, order);
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 2);
    uint32_t *part_of = ARENA_ARRAY(scratch, uint32_t, p->n_nodes + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        part_of[order[i]] = n;
        if (waist[i] && (!closes || closes(context, order[i])))
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
