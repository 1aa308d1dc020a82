/* insert.c - new nodes at a place of their own; see insert.h.
 *
 * graph_sort would also give a topological order, but one in which a late node
 * holds up all that follows it; here everything else keeps its neighbours.
 */
#include "passes/insert.h"

#include <assert.h>

void insert_before(Arena *arena, Insertions *insertions, NodeId node,
                   NodeId before) {
    assert(before.i < node.i);
    vec_push(arena, &insertions->node, node);
    vec_push(arena, &insertions->before, before);
}

/* Nodes to go before each node, as lists: first[before], next[node]. Filled
 * from the last note to the first, so that lists are in the order of notes. */
typedef struct Lists {
    uint32_t *first, *next;
    bool *noted;
} Lists;

static Lists make_lists(Arena *scratch, uint32_t n, const Insertions *notes) {
    Lists lists = {
        .first = ARENA_ARRAY(scratch, uint32_t, n),
        .next = ARENA_ARRAY(scratch, uint32_t, n),
        .noted = ARENA_ARRAY(scratch, bool, n),
    };
    for (uint32_t i = 0; i < n; i++)
        lists.first[i] = lists.next[i] = NONE;
    for (uint32_t i = notes->node.n; i-- > 0;) {
        uint32_t node = notes->node.at[i].i, before = notes->before.at[i].i;
        lists.noted[node] = true;
        lists.next[node] = lists.first[before];
        lists.first[before] = node;
    }
    return lists;
}

/* order[new place] = node. A node is put once all that goes before it is. */
static void find_order(Arena *scratch, uint32_t n, const Lists *lists,
                       uint32_t *order) {
    uint32_t *stack = ARENA_ARRAY(scratch, uint32_t, n);
    uint32_t placed = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = 0;
        if (!lists->noted[i])
            stack[depth++] = i;
        while (depth) {
            uint32_t *first = &lists->first[stack[depth - 1]];
            if (*first == NONE) {
                order[placed++] = stack[--depth];
            } else {
                stack[depth++] = *first;
                *first = lists->next[*first];
            }
        }
    }
    assert(placed == n);
}

void insert_finish(Arena *scratch, Graph *g, const Insertions *insertions) {
    uint32_t n = g->node.n;
    if (!insertions->node.n)
        return;
    Lists lists = make_lists(scratch, n, insertions);
    uint32_t *order = ARENA_ARRAY(scratch, uint32_t, n);
    find_order(scratch, n, &lists, order);
    graph_reorder(scratch, g, order);
}
