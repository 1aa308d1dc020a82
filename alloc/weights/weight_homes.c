/* weight_homes.c - in which of several memories outside each block of weights
 * lies; see weights.h.
 *
 * Input: a plan whose layers run by slices. Output: the memory of each slice.
 * Method: in the order of actions each slice goes where its load would end
 * first, wires of other memories being at work meanwhile if there are several
 * units that move; wires that have nothing to do are at most so far behind as
 * loads can run ahead: until active memory is full.
 */
#include "alloc/weights/weights.h"

#include <string.h>

typedef struct Homes {
    const Plan *plan;
    const HwSpec *spec;
    Sliced *sliced;
    ConstantBlock *slice;
    double clock[HW_MAX_MEMORIES];    /* seconds, by wires */
    uint64_t filled[HW_MAX_MEMORIES]; /* bytes */
    bool waits;                       /* for wires that are at work */
} Homes;

static double seconds(const HwMemory *m, uint64_t bytes) {
    return m->bandwidth > 0 ? (double)bytes / m->bandwidth : 0;
}

/* Bytes outside, where elements may take less than on chip. */
static uint64_t stored(const Homes *h, const ConstantBlock *s) {
    return (uint64_t)s->taps * s->n_c * h->spec->element;
}

static void take(Homes *h, uint32_t memory, uint64_t bytes) {
    const HwMemory *m = &h->spec->memory[memory];
    h->clock[m->channel] += seconds(m, bytes);
}

static void take_move(Homes *h, const Action *a) {
    const Placement *p =
        &h->plan->placement[a->kind == ACTION_LOAD ? a->in[0] : a->out];
    take(h, p->memory, (uint64_t)p->n_c * a->rows * a->cols * h->spec->element);
}

static void follow(Homes *h) {
    double last = 0;
    uint64_t room = hwspec_active_bytes(h->spec);
    for (uint32_t m = 0; m < h->spec->n_memories; m++)
        last = h->clock[m] > last ? h->clock[m] : last;
    for (uint32_t m = 0; m < h->spec->n_memories; m++) {
        double since = last - seconds(&h->spec->memory[m], room);
        h->clock[m] = h->clock[m] < since ? since : h->clock[m];
    }
}

/* Weights that several nodes read lie in one memory, however each is cut. */
static bool is_shared(const Homes *h, NodeId id) {
    const Graph *g = h->plan->schedule->graph;
    const char *layer = node_constants_layer(graph_node(g, id));
    for (uint32_t i = 0; i < h->sliced->n_slices; i++) {
        NodeId other = h->slice[i].node;
        if (other.i != id.i &&
            strcmp(node_constants_layer(graph_node(g, other)), layer) == 0)
            return true;
    }
    return false;
}

static bool has_room(const Homes *h, uint32_t m, uint64_t bytes) {
    uint64_t size = h->spec->memory[m].size;
    return h->filled[m] <= size && bytes <= size - h->filled[m];
}

static bool choose(Homes *h, ConstantBlock *s) {
    uint64_t bytes = stored(h, s);
    uint32_t best = NONE, among = h->spec->tiling.rows.weights_in;
    double least = 0;
    uint32_t shared = UINT32_C(1) << h->spec->tiling.rows.weights_from;
    if (among != shared && is_shared(h, s->node))
        among = shared;
    for (uint32_t m = 0; m < h->spec->n_memories; m++) {
        const HwMemory *memory = &h->spec->memory[m];
        if (!(among >> m & 1) || !has_room(h, m, bytes))
            continue;
        double end = seconds(memory, bytes) + memory->latency;
        if (h->waits)
            end += h->clock[memory->channel];
        if (best == NONE || end < least) {
            best = m;
            least = end;
        }
    }
    if (best == NONE)
        return false;
    s->from = best;
    h->filled[best] += bytes;
    take(h, best, bytes);
    return true;
}

bool homes_choose(Arena *scratch, const Plan *plan, bool fastest,
                  Sliced *sliced) {
    const HwSpec *spec = plan->schedule->spec;
    Homes h = {.plan = plan,
               .spec = spec,
               .sliced = sliced,
               .waits = spec->n_dmas > 1 && !fastest};
    bool *known = ARENA_ARRAY(scratch, bool, sliced->n_slices + 1);
    bool fits = true;
    h.slice =
        ARENA_COPY(scratch, ConstantBlock, sliced->slice, sliced->n_slices);
    for (uint32_t m = spec->n_active; m < spec->n_memories; m++)
        h.filled[m] = plan->memory_used[m];
    for (uint32_t i = 0; i < plan->n_actions && fits; i++) {
        uint32_t slice = sliced->slice_of[i];
        if (is_move(&plan->action[i]))
            take_move(&h, &plan->action[i]);
        if (slice == NONE || known[slice])
            continue;
        known[slice] = true;
        follow(&h);
        fits = choose(&h, &h.slice[slice]);
    }
    sliced->slice = h.slice;
    return fits;
}
