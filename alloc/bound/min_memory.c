/* min_memory.c - what no plan can do without.
 *
 * Input: the work, before any mode is chosen. Output: bytes of active memory
 * that some step takes however it runs: whole, by planks or in a group.
 * A bound from below, without alignment: of an engine's node at least the
 * operands stand beside its result, whole where the machine cannot take them by
 * rows, else the fewest rows that an instruction reads, and makes; of line
 * buffers a column of these. Only for one linear memory, without tiles of the
 * machine; 0 for others.
 */
#include "alloc/work.h"

static bool by_rows(const Work *w, NodeId id) {
    return w->spec->backing >= 0 && w->spec->tiling.kind != HW_TILING_NONE &&
           w->spec->tiling.ops >> w->legal[id.i].op & 1;
}

/* The fewest rows of an operand that any rows of the result need. */
static uint32_t least_in_rows(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    uint32_t h = plan_volume(w->g, node->out[0]).h;
    uint32_t q = node_quantum(w->g, id, 0), least = UINT32_MAX;
    for (uint32_t row = 0; row + q <= h; row += q) {
        uint32_t n = rows_needed(w->g, id, row, q).in_rows;
        least = n < least ? n : least;
    }
    return least == UINT32_MAX || !least ? 1 : least;
}

static uint64_t rows_bytes(const Work *w, TensorId t, uint32_t rows) {
    Volume v = plank_in(w, t, rows, 0);
    v.w = w->spec->tiling.lines ? 1 : v.w;
    return layout_bytes(w->spec->memory[0].layout, &v);
}

static uint64_t whole_bytes(const Work *w, TensorId t) {
    Volume v = plank_in(w, t, plan_volume(w->g, t).h, 0);
    return layout_bytes(w->spec->memory[0].layout, &v);
}

/* Of two operands that may lie within each other the larger one counts. */
static uint64_t operands_bytes(const Work *w, const Node *node, bool whole,
                               uint32_t rows) {
    uint64_t sum = 0, most = 0;
    bool nested = false;
    for (uint32_t i = 0; i < node->n_in; i++) {
        TensorId t = node->in[i];
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= same_tensor(node->in[k], t);
        uint64_t bytes = whole ? whole_bytes(w, t) : rows_bytes(w, t, rows);
        sum += again ? 0 : bytes;
        most = bytes > most ? bytes : most;
        nested |= w->role[t.i].parent.i != NONE;
    }
    return nested ? most : sum;
}

static bool replaces_operand(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (takes_in_place(w, id, node->in[i]))
            return true;
    return false;
}

/* Of `c` channels, all rows. */
static uint64_t slab_of(const Work *w, TensorId t, uint32_t c) {
    Volume v = plan_volume(w->g, t);
    v.c = c;
    v.repl = hwspec_repl_none(w->spec, c);
    return layout_bytes(w->spec->memory[0].layout, &v);
}

/* Slabs of all but what a dense convolution reads; UINT64_MAX if there are none
 * such. */
static uint64_t slabs_all_least(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    bool dense = is_dense(node);
    if (!by_rows(w, id) || w->spec->tiling.rings ||
        !(dense || goes_by_channel(w, node)) || slab_quantum(w, id) == NONE)
        return UINT64_MAX;
    uint32_t q = slab_quantum(w, id), n = dense ? 0 : node->n_in;
    uint64_t sum = dense ? operands_bytes(w, node, true, 0) : 0;
    for (uint32_t k = 0; k < n; k++)
        sum += slab_of(w, node->in[k], q);
    return sum + (replaces_operand(w, id) ? 0 : slab_of(w, node->out[0], q));
}

/* UINT64_MAX if it cannot run by slabs. */
static uint64_t slab_bytes_least(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    const Layout *layout = w->spec->memory[0].layout;
    uint32_t c = by_rows(w, id) ? slab_least(w, id) : 0;
    Volume out = plan_volume(w->g, node->out[0]);
    return c ? slab_of(w, node->in[0], c) + layout_bytes(layout, &out)
             : UINT64_MAX;
}

static uint64_t node_least(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    TensorId out = node->out[0];
    bool whole = !by_rows(w, id);
    uint64_t in =
        operands_bytes(w, node, whole, whole ? 0 : least_in_rows(w, id));
    uint64_t sum = in + (whole ? whole_bytes(w, out)
                               : rows_bytes(w, out, node_quantum(w->g, id, 0)));
    uint64_t slab = slab_bytes_least(w, id);
    sum = replaces_operand(w, id) ? in : sum;
    uint64_t slabs = slabs_all_least(w, id);
    slab = slabs < slab ? slabs : slab;
    return slab < sum ? slab : sum;
}

uint64_t never_less(const Work *w) {
    const HwSpec *spec = w->spec;
    uint64_t most = 0;
    if (spec->n_active > 1 || spec->memory[0].buffers ||
        spec->tiling.kind == HW_TILING_HARDWARE)
        return 0;
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++) {
        if (!on_engine(w, id) || w->mode[id.i].kind != MODE_WHOLE)
            continue;
        uint64_t least = node_least(w, id);
        most = least > most ? least : most;
    }
    return most;
}
