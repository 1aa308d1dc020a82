/* concat.c - concats by placement in cascades that run depth first.
 *
 * Input: a cascade. Output: which of its results lie in the row tile of a
 * concat. A stripe of a concat is one row tile. A member that the cascade
 * makes, and that nobody but the concat reads there, has the concat's rows: it
 * writes its channels of that row tile. Others can have more rows (each window
 * above them adds some), and the rows of a row tile are dense: they are copied.
 * Members from outside are loaded to their channels. No concat that a cascade
 * holds exists whole, so what others need of it they find in backing memory. In
 * a ring all members lie in the concat's: each is as far ahead as its readers
 * ask.
 */
#include "alloc/alias/alias.h"
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"
#include "base/arith.h"

static TensorId result(const Facts *f, const Cascade *g, uint32_t i) {
    return graph_node(f->g, cascade_node(f, g, i))->out[0];
}

static bool all_made(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (from_outside(f, node->in[k]))
            return false;
    }
    return true;
}

/* Whether all parts of it, and of what it is part of, can lie outside. */
static bool parts_have_addresses(const Facts *f, NodeId id) {
    const HwMemory *backing = &f->spec->memory[f->spec->backing];
    TensorId own = graph_node(f->g, id)->out[0];
    Volume whole = plan_volume(f->g, enclosing(f, own));
    uint32_t base = f->role[own.i].root_c;
    for (TensorId a = own; a.i != NONE; a = f->role[a.i].parent) {
        const Node *node = graph_node(f->g, graph_tensor(f->g, a)->producer);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (!part_has_address(backing, &whole,
                                  base + f->role[node->in[k].i].part_c,
                                  plan_volume(f->g, node->in[k]).c))
                return false;
        base -= f->role[a.i].parent.i == NONE ? 0 : f->role[a.i].part_c;
    }
    return true;
}

bool concat_may_join(const Facts *f, NodeId id) {
    if (f->spec->backing < 0 ||
        (f->spec->tiling.rows.rolls && !all_made(f, id)))
        return false;
    Truth *known = &f->memo->parts[id.i];
    if (*known == NOT_ASKED)
        *known = parts_have_addresses(f, id) ? IS_TRUE : IS_FALSE;
    return *known == IS_TRUE;
}

bool cascade_only_reader(const Facts *f, const Cascade *g, TensorId t,
                         uint32_t i) {
    CascadeReaders r = cascade_readers(f, g, t);
    while (cascade_readers_next(&r))
        if (r.i != i)
            return false;
    return true;
}

/* The concat of the cascade in whose row tile the result of node i is written,
 * the innermost; NONE. */
static uint32_t joined_by(const Facts *f, const Cascade *g, uint32_t i) {
    TensorId t = result(f, g, i), parent = f->role[t.i].parent;
    uint32_t by = parent.i == NONE ? NONE : cascade_maker(f, g, parent);
    return by != NONE && (g->rolls || cascade_only_reader(f, g, t, by)) ? by
                                                                        : NONE;
}

uint32_t cascade_row_tile(const Facts *f, const Cascade *g, uint32_t i,
                          uint32_t *c) {
    *c = 0;
    for (uint32_t by; (by = joined_by(f, g, i)) != NONE; i = by)
        *c += f->role[result(f, g, i).i].part_c;
    return i;
}

bool cascade_joins(const Facts *f, const Cascade *g, TensorId t) {
    uint32_t maker = cascade_maker(f, g, t);
    return maker != NONE && joined_by(f, g, maker) != NONE;
}

uint32_t row_tile_first(const Facts *f, const Cascade *g, uint32_t i) {
    const Node *node = graph_node(f->g, cascade_node(f, g, i));
    uint32_t first = i;
    for (uint32_t k = 0; is_placed(f, cascade_node(f, g, i)) && k < node->n_in;
         k++)
        if (cascade_joins(f, g, node->in[k])) {
            uint32_t part =
                row_tile_first(f, g, cascade_maker(f, g, node->in[k]));
            first = part < first ? part : first;
        }
    return first;
}

uint32_t cascade_quantum(const Facts *f, const Cascade *g, uint32_t i) {
    NodeId id = cascade_node(f, g, i);
    const Node *node = graph_node(f->g, id);
    uint32_t all = node_quantum(f->g, id, 0);
    for (uint32_t k = 0; is_placed(f, id) && k < node->n_in; k++)
        if (cascade_joins(f, g, node->in[k])) {
            uint32_t q =
                cascade_quantum(f, g, cascade_maker(f, g, node->in[k]));
            all = all / (uint32_t)gcd(all, q) * q;
        }
    return all;
}

static bool part_starts(const Facts *f, TensorId root, uint32_t rows,
                        uint32_t c, uint32_t n) {
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        Volume row_tile = row_tile_in(f, root, rows, m);
        if (!part_is_volume(&f->spec->memory[m], &row_tile, c, n))
            return false;
    }
    return true;
}

bool row_tile_parts_start(const Facts *f, const Cascade *g, uint32_t i,
                          uint32_t rows) {
    NodeId id = cascade_node(f, g, i);
    const Node *node = graph_node(f->g, id);
    uint32_t base, root = cascade_row_tile(f, g, i, &base);
    for (uint32_t k = 0; is_placed(f, id) && k < node->n_in; k++)
        if (!part_starts(f, result(f, g, root), rows,
                         base + f->role[node->in[k].i].part_c,
                         plan_volume(f->g, node->in[k]).c))
            return false;
    return true;
}
