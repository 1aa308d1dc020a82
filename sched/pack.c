/* pack.c - steps of several nodes; see orders.h. */
#include "sched/orders.h"

#include "base/vec.h"

bool can_join(const Model *m, const uint32_t *step, uint32_t n, uint32_t node) {
    int32_t engine = m->legal[m->node[node].i].engine;
    bool joins =
        engine >= 0 && graph_node(m->g, m->node[node])->op != OP_CONCAT;
    for (uint32_t i = 0; i < n && joins; i++) {
        int32_t other = m->legal[m->node[step[i]].i].engine;
        joins = other >= 0 &&
                graph_node(m->g, m->node[step[i]])->op != OP_CONCAT &&
                m->spec->engine[engine].beside >> other & 1;
    }
    return joins;
}

static bool waits_for(const OrderProblem *p, uint32_t node,
                      const uint32_t *step, uint32_t n) {
    for (uint32_t k = p->pred.start[node]; k < p->pred.start[node + 1]; k++)
        for (uint32_t i = 0; i < n; i++)
            if (p->pred.item[k] == step[i])
                return true;
    return false;
}

Ordering pack_along(Arena *arena, const Model *m, const Ordering *serial) {
    const OrderProblem *p = m->p;
    uint32_t *start = ARENA_ARRAY(arena, uint32_t, p->n_nodes + 2);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const uint32_t *step = serial->node + (n ? start[n - 1] : 0);
        uint32_t size = n ? i - start[n - 1] : 0;
        uint32_t node = serial->node[i];
        if (!n || !can_join(m, step, size, node) ||
            waits_for(p, node, step, size))
            start[n++] = i;
    }
    start[n] = p->n_nodes;
    return (Ordering){n, start, serial->node, serial->facts};
}

Ordering pack_search(Arena *arena, const OrderTask *task,
                     const Ordering *serial) {
    return pack_along(arena, task->model, serial);
}
