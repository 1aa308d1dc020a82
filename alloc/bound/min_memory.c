/* min_memory.c - what no plan can do without.
 *
 * Input: the work, before any mode is chosen. Output: bytes of active memory
 * that some step takes however it runs: whole, by row tiles or in a cascade.
 * A bound from below, without alignment: of an engine's node at least the
 * operands stand beside its result, whole where the machine cannot take them by
 * rows, else the fewest rows that an instruction reads, and makes; of line
 * buffers a column of these. Only for one linear memory, without tiles of the
 * machine; 0 for others.
 */
#include "alloc/alias/alias.h"
#include "alloc/bound/bound.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

static bool by_rows(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    return f->spec->backing >= 0 && !crosses_rows(node, 0) &&
           f->spec->tiling.kind != HW_TILING_NONE &&
           f->spec->tiling.rows.ops >> f->legal[id.i].op & 1;
}

/* The fewest rows of an operand that any rows of the result need. */
static uint32_t least_in_rows(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    uint32_t h = plan_volume(f->g, node->out[0]).h;
    uint32_t q = node_quantum(f->g, id, 0), least = UINT32_MAX;
    for (uint32_t row = 0; row + q <= h; row += q) {
        uint32_t n = rows_needed(f->g, id, row, q).in_rows;
        least = n < least ? n : least;
    }
    return least == UINT32_MAX || !least ? 1 : least;
}

static uint64_t rows_bytes(const Facts *f, TensorId t, uint32_t rows) {
    Volume v = row_tile_in(f, t, rows, 0);
    v.w = hwspec_by_columns(f->spec) ? 1 : v.w;
    return layout_bytes(f->spec->memory[0].layout, &v);
}

static uint64_t whole_bytes(const Facts *f, TensorId t) {
    Volume v = row_tile_in(f, t, plan_volume(f->g, t).h, 0);
    return layout_bytes(f->spec->memory[0].layout, &v);
}

/* Of two operands that may lie within each other the larger one counts. */
static uint64_t operands_bytes(const Facts *f, const Node *node, bool whole,
                               uint32_t rows) {
    uint64_t sum = 0, most = 0;
    bool nested = false;
    for (uint32_t i = 0; i < node->n_in; i++) {
        TensorId t = node->in[i];
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= same_tensor(node->in[k], t);
        bool all = whole || node_reads_whole(node, t);
        uint64_t bytes = all ? whole_bytes(f, t) : rows_bytes(f, t, rows);
        sum += again ? 0 : bytes;
        most = bytes > most ? bytes : most;
        nested |= f->role[t.i].parent.i != NONE;
    }
    return nested ? most : sum;
}

static bool replaces_operand(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    for (uint32_t i = 0; i < node->n_in; i++)
        if (takes_in_place(f, id, node->in[i]))
            return true;
    return false;
}

/* Of `c` channels, all rows. */
static uint64_t channel_tile_of(const Facts *f, TensorId t, uint32_t c) {
    Volume v = plan_volume(f->g, t);
    v.c = c;
    v.repl = hwspec_repl_none(f->spec, c);
    return layout_bytes(f->spec->memory[0].layout, &v);
}

/* Channel tiles of all but what a dense convolution reads; UINT64_MAX if there
 * are none such. */
static uint64_t channel_tiles_all_least(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    bool dense = is_dense(node);
    if (!by_rows(f, id) || !(dense || goes_by_channel(f, node)) ||
        channel_tile_quantum(f, id) == NONE)
        return UINT64_MAX;
    uint32_t q = channel_tile_quantum(f, id), n = dense ? 0 : node->n_in;
    uint64_t sum = dense ? operands_bytes(f, node, true, 0) : 0;
    for (uint32_t k = 0; k < n; k++)
        sum += channel_tile_of(f, node->in[k], q);
    return sum +
           (replaces_operand(f, id) ? 0 : channel_tile_of(f, node->out[0], q));
}

/* UINT64_MAX if it cannot run by channel tiles. */
static uint64_t channel_tile_bytes_least(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    const Layout *layout = f->spec->memory[0].layout;
    uint32_t c = by_rows(f, id) ? channel_tile_least(f, id) : 0;
    Volume out = plan_volume(f->g, node->out[0]);
    return c ? channel_tile_of(f, node->in[0], c) + layout_bytes(layout, &out)
             : UINT64_MAX;
}

/* UINT64_MAX if it cannot run by boxes. */
static uint64_t boxes_least(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    const Layout *layout = f->spec->memory[0].layout;
    Mode mode;
    uint64_t sum = 0;
    if (!by_rows(f, id) || !boxes_smallest(f, id, &mode))
        return UINT64_MAX;
    for (uint32_t k = 0; k <= node->n_in; k++) {
        Volume box = boxes_volume(f, id, &mode, k);
        sum += layout_bytes(layout, &box);
    }
    return sum;
}

static uint64_t node_least(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    TensorId out = node->out[0];
    bool whole = !by_rows(f, id);
    uint64_t in =
        operands_bytes(f, node, whole, whole ? 0 : least_in_rows(f, id));
    uint64_t sum = in + (whole ? whole_bytes(f, out)
                               : rows_bytes(f, out, node_quantum(f->g, id, 0)));
    uint64_t channel_tile = channel_tile_bytes_least(f, id);
    sum = replaces_operand(f, id) ? in : sum;
    uint64_t channel_tiles = channel_tiles_all_least(f, id);
    uint64_t boxes = boxes_least(f, id);
    channel_tile = channel_tiles < channel_tile ? channel_tiles : channel_tile;
    channel_tile = boxes < channel_tile ? boxes : channel_tile;
    return channel_tile < sum ? channel_tile : sum;
}

uint64_t memory_bound(const Decisions *d) {
    const Facts *f = d->f;
    const HwSpec *spec = f->spec;
    uint64_t most = 0;
    if (spec->n_active > 1 || spec->memory[0].buffers ||
        spec->tiling.kind == HW_TILING_HARDWARE)
        return 0;
    for (NodeId id = {0}; id.i < f->g->node.n; id.i++) {
        if (!on_engine(f, id) || d->mode[id.i].kind != MODE_WHOLE)
            continue;
        uint64_t least = node_least(f, id);
        most = least > most ? least : most;
    }
    return most;
}
