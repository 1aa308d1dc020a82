/* modes.c - what modes of nodes mean for their tensors: queries that change
 * nothing, but for the modes of engines that work ahead.
 */
#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"
#include "base/arith.h"

/* ---- engines that read their inputs from where they lie ---- */

bool runs_ahead(const Facts *f, NodeId id) {
    return on_engine(f, id) && f->spec->engine[f->legal[id.i].engine].ahead;
}

void ahead_choose(Decisions *d) {
    for (NodeId id = {0}; id.i < d->f->g->node.n; id.i++)
        if (runs_ahead(d->f, id))
            d->mode[id.i] =
                (Mode){.kind = MODE_AHEAD, .streams_in = true, .style = -1};
}

bool made_ahead(const Facts *f, TensorId t) {
    return runs_ahead(f, graph_tensor(f->g, t)->producer);
}

/* ---- pairs of layers that pass channels ---- */

bool pair_passes(const Decisions *d, TensorId t) {
    NodeId maker = graph_tensor(d->f->g, t)->producer;
    return maker.i != NONE && d->mode[maker.i].kind == MODE_PRODUCER;
}

NodeId pair_partner(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    uint32_t step = f->schedule->step_of[id.i];
    ModeKind kind = d->mode[id.i].kind;
    return kind == MODE_PRODUCER   ? only_node(f, step + 1)
           : kind == MODE_CONSUMER ? only_node(f, step - 1)
                                   : NO_NODE;
}

/* ---- parts of tensors that stay ---- */

/* A granule is taken as soon as one of its channels is there. */
uint64_t kept_bytes(const Facts *f, const AliasClass *alias,
                    uint32_t channels) {
    const Layout *layout = f->spec->memory[0].layout;
    Volume whole = volume_in(f, alias->root, 0);
    uint64_t granule = layout_granule(layout);
    uint64_t end = granule ? round_up(channels, granule) : whole.c;
    return end < whole.c ? layout_part_offset(layout, &whole, (uint32_t)end)
                         : layout_bytes(layout, &whole);
}
