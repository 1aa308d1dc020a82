/* states.c - which states stay in active memory; see states.h.
 *
 * Input: a schedule. Output: sets of states. Method: a state may stay if what
 * it is in the next call can take its place. Each byte of one that stays saves
 * as much, so sets are told apart by their bytes alone: all of them, then the
 * smallest that take half of active memory, a quarter, an eighth.
 */
#include "alloc/search/states.h"

#include "base/order.h"

#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 4 };

typedef struct State {
    uint32_t node;
    uint64_t bytes;
} State;

static int by_bytes(const void *a, const void *b) {
    const State *x = a, *y = b;
    return order_by(ORDER_UP(x->bytes, y->bytes), ORDER_UP(x->node, y->node));
}

/* Those that may stay, the smallest first. */
static uint32_t able(Arena *arena, const Schedule *schedule,
                     const PlanOptions *options, State *out, uint64_t *total) {
    const Graph *g = schedule->graph;
    PlanOptions all = *options;
    bool *states = ARENA_ARRAY(arena, bool, g->node.n + 1);
    for (uint32_t i = 0; i < g->node.n; i++)
        states[i] = graph_state_next(g, &g->node.at[i]).i != NONE;
    all.states = states;
    static const Config plain;
    const Facts *f = facts_make(arena, schedule, schedule->spec, &all, NULL);
    Decisions d = decisions_make(f, &plain);
    uint32_t n = 0;
    for (NodeId id = {0}; id.i < g->node.n; id.i++)
        if (states[id.i] && state_follows(&d, id))
            out[n++] = (State){id.i, state_bytes(f, graph_node(g, id)->out[0])};
    qsort(out, n, sizeof *out, by_bytes);
    *total = f->total;
    return n;
}

uint32_t states_to_keep(Arena *arena, const Schedule *schedule,
                        const PlanOptions *options, const bool *const **out) {
    const Graph *g = schedule->graph;
    if (!graph_states(g) || options->no_states)
        return 0;
    State *state = ARENA_ARRAY(arena, State, g->node.n + 1);
    const bool **set = ARENA_ARRAY(arena, const bool *, MOST_SETS);
    uint64_t room;
    uint32_t n = able(arena, schedule, options, state, &room), sets = 0;
    for (uint32_t k = 0, before = UINT32_MAX; k < MOST_SETS; k++, room /= 2) {
        bool *keeps = ARENA_ARRAY(arena, bool, g->node.n + 1);
        uint64_t bytes = 0;
        uint32_t some = 0;
        while (some < n && state[some].bytes <= room - bytes) {
            keeps[state[some].node] = true;
            bytes += state[some++].bytes;
        }
        if (!some || some == before)
            continue;
        before = some;
        set[sets++] = keeps;
    }
    *out = set;
    return sets;
}
