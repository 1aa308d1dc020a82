/* stream_through.c - volumes that need not be in active memory as a whole.
 *
 * Input: a plan's alias classes and modes, placed, on a machine whose
 * instructions run layers by tiles of channels, too. Output: the same with
 * layers in other styles. What is loaded into active memory for one layer
 * alone, or stored as soon as one has made it, moves beside the layer's work if
 * it passes in tiles; by itself it would wait for the layer, and the layer for
 * it. Invariant: no byte more moves, no layer takes longer.
 */
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/spill/spill.h"
#include "alloc/tile/tile.h"

#include "hwspec/cost.h"

/* A layer in another style. */
typedef struct Change {
    NodeId node;
    bool in, out; /* passes in tiles then */
} Change;

/* The alias class's residency interval that begins and ends with the touch at
 * that step; NULL. */
static const Residency *alone_at(const AliasClass *alias,
                                 const Residencies *stays, uint32_t step) {
    for (uint32_t i = 0; i < stays->n; i++) {
        const Residency *s = &stays->at[i];
        if (s->first == s->last && alias->use[s->first].step == step)
            return s;
    }
    return NULL;
}

/* Whether the tensor's volume is in active memory for that step only, and all
 * of it is outside before or behind. */
static bool is_alone(const Decisions *d, const Buffers *p, TensorId t,
                     uint32_t step, bool made) {
    uint32_t u = d->alias_of[t.i];
    const AliasClass *alias = u == NONE ? NULL : &d->alias.at[u];
    if (!alias || (alias->concat && (made || step <= alias->complete)))
        return false;
    const Residency *s = alone_at(alias, residencies_of(p, u), step);
    const Use *use = s ? &alias->use[s->first] : NULL;
    return s && !use->retained && (s->first == 0 || !use[-1].retained);
}

static bool loaded_for(const Decisions *d, const Buffers *p, NodeId id) {
    TensorId t = graph_node(d->f->g, id)->in[0];
    return is_alone(d, p, t, d->f->schedule->step_of[id.i], false);
}

/* What must go to two places would be loaded again for the second. */
static bool stored_by(const Decisions *dec, const Buffers *p, NodeId id) {
    TensorId t = graph_node(dec->f->g, id)->out[0];
    Dests d = dests_of(dec, t, true);
    return !(d.home && d.output) &&
           is_alone(dec, p, t, dec->f->schedule->step_of[id.i], true);
}

static int32_t style_for(const Facts *f, HwOp op, bool in, bool out) {
    for (uint32_t i = 0; i < f->spec->tiling.tiles.n; i++) {
        const HwTileStyle *s = &f->spec->tiling.tiles.style[i];
        if (s->sums && s->ops >> op & 1 && s->in_backing == in &&
            s->out_backing == out)
            return (int32_t)i;
    }
    return -1;
}

/* Cycles of the whole tensor on its way. */
static uint64_t move_time(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    const HwMemory *m = &f->spec->memory[f->spec->backing];
    return hwspec_transfer_cycles(f->spec, m, v.c, v.h, v.w, ALL_TOGETHER);
}

/* Whether it moves no more in that mode, and takes less time. */
static bool pays(const Decisions *d, const Change *change, const Mode *mode) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, change->node);
    const Mode *old = &d->mode[change->node.i];
    NestCost now = nest_cost(f, change->node, old);
    NestCost then = nest_cost(f, change->node, mode);
    uint64_t moved = now.input, time = now.cycles;
    if (change->in && !old->streams_in) {
        moved += moved_bytes(f, node->in[0]);
        time += move_time(f, node->in[0]);
    }
    if (change->out && !old->streams_out)
        time += move_time(f, node->out[0]);
    return !mode->nest.over && then.input <= moved &&
           then.weights <= now.weights && then.cycles < time;
}

/* False, and nothing is changed, if it does not pay or not fit. */
static bool change_try(Attempt *a, Change change, uint32_t *tries) {
    Buffers *p = &a->buffers;
    Mode *mode = &a->d.mode[change.node.i], old = *mode;
    uint32_t step = a->f->schedule->step_of[change.node.i];
    Mode next = {.kind = MODE_HARDWARE,
                 .streams_in = change.in,
                 .streams_out = change.out,
                 .rank = old.rank,
                 .style = style_for(a->f, a->f->legal[change.node.i].op,
                                    change.in, change.out)};
    if (next.style < 0)
        return false;
    nest_choose(&a->d, change.node, &next);
    if (!pays(&a->d, &change, &next))
        return false;
    *mode = next;
    uses_refresh(&a->d, step);
    if (place_anew(a, tries))
        return true;
    *mode = old;
    uses_refresh(&a->d, step);
    buffers_make(&a->d, p);
    return false;
}

static bool node_passes(Attempt *a, NodeId id, uint32_t *tries) {
    Buffers *p = &a->buffers;
    const Mode *mode = &a->d.mode[id.i];
    if (mode->kind != MODE_HARDWARE || !mode->nest.c || node_keeps(a->f, id))
        return false;
    bool was_in = mode->streams_in, was_out = mode->streams_out;
    bool in = !was_in && loaded_for(&a->d, p, id),
         out = !was_out && stored_by(&a->d, p, id);
    if (in && out && change_try(a, (Change){id, true, true}, tries))
        return true;
    return (in && change_try(a, (Change){id, true, was_out}, tries)) ||
           (out && change_try(a, (Change){id, was_in, true}, tries));
}

bool pass_through(Attempt *a) {
    enum { MAX_TRIES = 64 };
    uint32_t tries = 0;
    bool any = false;
    for (NodeId id = {0}; id.i < a->f->g->node.n && tries < MAX_TRIES; id.i++)
        any |= node_passes(a, id, &tries);
    return any;
}
