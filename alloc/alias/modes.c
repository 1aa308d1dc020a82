/* modes.c - what modes of nodes mean for their tensors: queries that change
 * nothing, but for the modes of engines that work ahead.
 */
#include "alloc/work.h"
#include "base/arith.h"

/* ---- engines that read their inputs from where they lie ---- */

bool runs_ahead(const Work *w, NodeId id) {
    return on_engine(w, id) && w->spec->engine[w->legal[id.i].engine].ahead;
}

void ahead_choose(Work *w) {
    for (NodeId id = {0}; id.i < w->g->node.n; id.i++)
        if (runs_ahead(w, id))
            w->mode[id.i] =
                (Mode){.kind = MODE_AHEAD, .streams_in = true, .style = -1};
}

bool made_ahead(const Work *w, TensorId t) {
    return runs_ahead(w, graph_tensor(w->g, t)->producer);
}

/* ---- pairs of layers that pass channels ---- */

static NodeId only_node(const Work *w, uint32_t step) {
    const Step *s = &w->schedule->step[step];
    return s->n == 1 ? s->slot[0].node : NO_NODE;
}

bool couple_passes(const Work *w, TensorId t) {
    NodeId maker = graph_tensor(w->g, t)->producer;
    return maker.i != NONE && w->mode[maker.i].kind == MODE_GIVES;
}

NodeId couple_partner(const Work *w, NodeId id) {
    uint32_t step = w->schedule->step_of[id.i];
    ModeKind kind = w->mode[id.i].kind;
    return kind == MODE_GIVES   ? only_node(w, step + 1)
           : kind == MODE_TAKES ? only_node(w, step - 1)
                                : NO_NODE;
}

/* ---- parts of tensors that stay ---- */

/* A granule is taken as soon as one of its channels is there. */
uint64_t kept_bytes(const Work *w, const Unit *unit, uint32_t channels) {
    const Layout *layout = w->spec->memory[0].layout;
    Volume whole = volume_in(w, unit->root, 0);
    uint64_t granule = layout_granule(layout);
    uint64_t end = granule ? round_up(channels, granule) : whole.c;
    return end < whole.c ? layout_part_offset(layout, &whole, (uint32_t)end)
                         : layout_bytes(layout, &whole);
}
