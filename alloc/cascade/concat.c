/* concat.c - concats by placement in groups that run depth first.
 *
 * Input: a group. Output: which of its results lie in the plank of a concat.
 * A stripe of a concat is one plank. A member that the group makes, and that
 * nobody but the concat reads there, has the concat's rows: it writes its
 * channels of that plank. Others can have more rows (each window above them
 * adds some), and the rows of a plank are dense: they are copied. Members from
 * outside are loaded to their channels. No concat that a group holds exists
 * whole, so what others need of it they find in backing memory. In a ring all
 * members lie in the concat's: each is as far ahead as its readers ask.
 */
#include "alloc/work.h"
#include "base/arith.h"

static TensorId result(const Work *w, const Group *g, uint32_t i) {
    return graph_node(w->g, group_node(w, g, i))->out[0];
}

static uint32_t channel_in_root(const Work *w, TensorId t) {
    uint32_t c = 0;
    for (; w->role[t.i].parent.i != NONE; t = w->role[t.i].parent)
        c += w->role[t.i].part_c;
    return c;
}

static bool all_made(const Work *w, NodeId id) {
    const Node *node = graph_node(w->g, id);
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (from_outside(w, node->in[k]))
            return false;
    }
    return true;
}

bool concat_may_join(const Work *w, NodeId id) {
    if (w->spec->backing < 0 || (w->spec->tiling.rings && !all_made(w, id)))
        return false;
    const HwMemory *backing = &w->spec->memory[w->spec->backing];
    TensorId own = graph_node(w->g, id)->out[0], root = own;
    while (w->role[root.i].parent.i != NONE)
        root = w->role[root.i].parent;
    Volume whole = plan_volume(w->g, root);
    for (TensorId a = own; a.i != NONE; a = w->role[a.i].parent) {
        const Node *node = graph_node(w->g, graph_tensor(w->g, a)->producer);
        uint32_t base = channel_in_root(w, a);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (!part_has_address(backing, &whole,
                                  base + w->role[node->in[k].i].part_c,
                                  plan_volume(w->g, node->in[k]).c))
                return false;
    }
    return true;
}

bool group_only_reader(const Work *w, const Group *g, TensorId t, uint32_t i) {
    GroupReaders r = group_readers(w, g, t);
    while (group_readers_next(&r))
        if (r.i != i)
            return false;
    return true;
}

/* The concat of the group in whose plank the result of node i is written, the
 * innermost; NONE. */
static uint32_t joined_by(const Work *w, const Group *g, uint32_t i) {
    TensorId t = result(w, g, i), parent = w->role[t.i].parent;
    uint32_t by = parent.i == NONE ? NONE : group_maker(w, g, parent);
    return by != NONE && (g->rolls || group_only_reader(w, g, t, by)) ? by
                                                                      : NONE;
}

uint32_t group_plank(const Work *w, const Group *g, uint32_t i, uint32_t *c) {
    *c = 0;
    for (uint32_t by; (by = joined_by(w, g, i)) != NONE; i = by)
        *c += w->role[result(w, g, i).i].part_c;
    return i;
}

bool group_joins(const Work *w, const Group *g, TensorId t) {
    uint32_t maker = group_maker(w, g, t);
    return maker != NONE && joined_by(w, g, maker) != NONE;
}

uint32_t plank_first(const Work *w, const Group *g, uint32_t i) {
    const Node *node = graph_node(w->g, group_node(w, g, i));
    uint32_t first = i;
    for (uint32_t k = 0; is_placed(w, group_node(w, g, i)) && k < node->n_in;
         k++)
        if (group_joins(w, g, node->in[k])) {
            uint32_t part = plank_first(w, g, group_maker(w, g, node->in[k]));
            first = part < first ? part : first;
        }
    return first;
}

uint32_t group_quantum(const Work *w, const Group *g, uint32_t i) {
    NodeId id = group_node(w, g, i);
    const Node *node = graph_node(w->g, id);
    uint32_t all = node_quantum(w->g, id, 0);
    for (uint32_t k = 0; is_placed(w, id) && k < node->n_in; k++)
        if (group_joins(w, g, node->in[k])) {
            uint32_t q = group_quantum(w, g, group_maker(w, g, node->in[k]));
            all = all / (uint32_t)gcd(all, q) * q;
        }
    return all;
}

static bool part_starts(const Work *w, TensorId root, uint32_t rows, uint32_t c,
                        uint32_t n) {
    for (uint32_t m = 0; m < w->spec->n_active; m++) {
        Volume plank = plank_in(w, root, rows, m);
        if (!part_is_volume(&w->spec->memory[m], &plank, c, n))
            return false;
    }
    return true;
}

bool plank_parts_start(const Work *w, const Group *g, uint32_t i,
                       uint32_t rows) {
    NodeId id = group_node(w, g, i);
    const Node *node = graph_node(w->g, id);
    uint32_t base, root = group_plank(w, g, i, &base);
    for (uint32_t k = 0; is_placed(w, id) && k < node->n_in; k++)
        if (!part_starts(w, result(w, g, root), rows,
                         base + w->role[node->in[k].i].part_c,
                         plan_volume(w->g, node->in[k]).c))
            return false;
    return true;
}
