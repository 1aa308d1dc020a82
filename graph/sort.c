/* sort.c - nodes into an order in which every tensor is produced before it is
 * read.
 *
 * In: a graph in any order, perhaps with a cycle. Out: the stable topological
 * order: always the ready node that stood first (a heap of indices, so
 * O(n log n)), or an error that names the layers of one cycle. Dead nodes wait
 * for nothing and nothing waits for them.
 */
#include "base/text.h"
#include "graph/graph.h"

enum { CYCLE_NAMES = 12 }; /* more are not told */

typedef struct Heap {
    uint32_t *at;
    uint32_t n;
} Heap;

static void swap(uint32_t *a, uint32_t *b) {
    uint32_t keep = *a;
    *a = *b;
    *b = keep;
}

static void heap_push(Heap *heap, uint32_t value) {
    uint32_t i = heap->n++;
    heap->at[i] = value;
    for (; i && heap->at[(i - 1) / 2] > heap->at[i]; i = (i - 1) / 2)
        swap(&heap->at[(i - 1) / 2], &heap->at[i]);
}

static uint32_t heap_pop(Heap *heap) {
    uint32_t top = heap->at[0];
    heap->at[0] = heap->at[--heap->n];
    for (uint32_t i = 0, child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && heap->at[child + 1] < heap->at[child])
            child++;
        if (heap->at[i] <= heap->at[child])
            break;
        swap(&heap->at[i], &heap->at[child]);
    }
    return top;
}

/* The live node that must come before `node` because of its input k, or NONE.
 */
static uint32_t before(const Graph *g, const Node *node, uint32_t k) {
    uint32_t producer = graph_tensor(g, node->in[k])->producer.i;
    return node->dead || g->node.at[producer].dead ? NONE : producer;
}

/* How many inputs of each node are not yet produced. */
static uint32_t *count_waits(Arena *scratch, const Graph *g) {
    uint32_t *waits = ARENA_ARRAY(scratch, uint32_t, g->node.n);
    for (uint32_t i = 0; i < g->node.n; i++)
        for (uint32_t k = 0; k < g->node.at[i].n_in; k++)
            waits[i] += before(g, &g->node.at[i], k) != NONE;
    return waits;
}

static void release(const Graph *g, const Uses *uses, uint32_t node,
                    uint32_t *waits, Heap *ready) {
    const Node *done = &g->node.at[node];
    for (uint32_t o = 0; !done->dead && o < done->n_out; o++) {
        uint32_t t = done->out[o].i;
        for (uint32_t u = uses->start[t]; u < uses->start[t + 1]; u++)
            if (--waits[uses->node[u].i] == 0)
                heap_push(ready, uses->node[u].i);
    }
}

/* Fills order[new] = old; returns how many nodes could be placed. */
static uint32_t find_order(Arena *scratch, const Graph *g, uint32_t *waits,
                           uint32_t *order) {
    Uses uses = graph_uses(scratch, g);
    Heap ready = {.at = ARENA_ARRAY(scratch, uint32_t, g->node.n)};
    for (uint32_t i = 0; i < g->node.n; i++)
        if (!waits[i])
            heap_push(&ready, i);
    uint32_t n = 0;
    while (ready.n) {
        order[n] = heap_pop(&ready);
        release(g, &uses, order[n++], waits, &ready);
    }
    return n;
}

/* A node that still waits has an input whose producer still waits; following
 * those must come to a node for the second time. */
static uint32_t waiting_before(const Graph *g, const uint32_t *waits,
                               uint32_t node) {
    for (uint32_t k = 0; k < g->node.at[node].n_in; k++) {
        uint32_t producer = before(g, &g->node.at[node], k);
        if (producer != NONE && waits[producer])
            return producer;
    }
    return NONE;
}

static void report_cycle(Arena *scratch, const Graph *g, const uint32_t *waits,
                         Diag *diag) {
    bool *seen = ARENA_ARRAY(scratch, bool, g->node.n);
    uint32_t *cycle = ARENA_ARRAY(scratch, uint32_t, g->node.n);
    uint32_t node = 0, n = 0;
    while (!waits[node])
        node++;
    for (; !seen[node]; node = waiting_before(g, waits, node))
        seen[node] = true;
    uint32_t last = node;
    do
        cycle[n++] = node = waiting_before(g, waits, node);
    while (node != last);
    Text text = text_new(scratch);
    for (uint32_t i = n; i-- > 0;) /* against the walk: with the data */
        if (i == 0 || n - i < CYCLE_NAMES)
            text_addf(&text, "\"%s\" -> ", g->node.at[cycle[i]].name);
        else if (n - i == CYCLE_NAMES)
            text_addf(&text, "%u more -> ", i);
    diag_error(diag, g->node.at[last].loc, "layers form a cycle: %s\"%s\"",
               text_str(&text), g->node.at[last].name);
}

void graph_reorder(Arena *scratch, Graph *g, const uint32_t *order) {
    uint32_t n = g->node.n;
    Node *old = ARENA_COPY(scratch, Node, g->node.at, n);
    uint32_t *place = ARENA_ARRAY(scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        g->node.at[i] = old[order[i]];
        place[order[i]] = i;
    }
    for (uint32_t t = 0; t < g->tensor.n; t++) {
        NodeId *producer = &g->tensor.at[t].producer;
        producer->i = place[producer->i];
    }
}

bool graph_sort(Graph *g, Diag *diag) {
    Arena *scratch = arena_new("graph_sort");
    uint32_t *waits = count_waits(scratch, g);
    uint32_t *order = ARENA_ARRAY(scratch, uint32_t, g->node.n);
    bool sorted = find_order(scratch, g, waits, order) == g->node.n;
    if (sorted)
        graph_reorder(scratch, g, order);
    else
        report_cycle(scratch, g, waits, diag);
    arena_free(scratch);
    return sorted;
}
