/* channel_pairs.c - a layer and the only one that reads its result, by channel
 * tiles.
 *
 * Input: alias classes, all volumes whole. Output: modes of fused pairs.
 * Where the second layer makes each channel from the same one of its operands
 * (sums, pools, upsampling, depthwise convolutions), the two take turns: the
 * first, another such or a dense convolution, makes some channels, the second
 * uses them up. So what lies between never exists whole, and nothing is
 * computed twice or moved. All else that the two touch is in active memory
 * while both run: their operands, and the result, which is written channel tile
 * by channel tile. Weights are read once, where a cascade reads them with each
 * run. Method: fused pairs are made where active memory would hold
 * too much, and what they need by themselves fits; channel tiles are as thick
 * as there is room for. Invariant: channel tiles are of one size, but for the
 * last.
 */
#include "alloc/alias/alias.h"
#include "alloc/fuse/fuse.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"

/* Channel tiles of a layer: as few as fit, at most. */
enum {
    FEW_CHANNEL_TILES = 2,
    MOST_CHANNEL_TILES = 32,
    USUAL_CHANNEL_TILES = 8
};

typedef struct FusedPair {
    uint32_t step; /* of the producer */
    NodeId producer, consumer;
    TensorId passed;
} FusedPair;

/* ---- which layers ---- */

static bool may_run_so(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    return id.i != NONE && on_engine(f, id) && !node_keeps(f, id) &&
           d->mode[id.i].kind == MODE_WHOLE &&
           f->spec->tiling.rows.ops >> f->legal[id.i].op & 1;
}

/* Made for the consumer alone, and no part of anything. */
static bool passes_alone(const Decisions *d, TensorId t) {
    const Facts *f = d->f;
    const Role *role = &f->role[t.i];
    return role->origin == FROM_ENGINE && !role->outside &&
           role->parent.i == NONE && d->over[t.i].i == NONE &&
           f->uses.start[t.i + 1] - f->uses.start[t.i] == 1;
}

/* The layer that could take what the node gives, were it the next; NO_NODE. */
static NodeId pair_consumer(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    if (!may_run_so(d, id))
        return NO_NODE;
    const Node *node = graph_node(f->g, id);
    TensorId t = node->out[0];
    if (!(is_dense(node) || goes_by_channel(f, node)) || !passes_alone(d, t))
        return NO_NODE;
    NodeId consumer = f->uses.node[f->uses.start[t.i]];
    return may_run_so(d, consumer) &&
                   goes_by_channel(f, graph_node(f->g, consumer))
               ? consumer
               : NO_NODE;
}

/* Where the result takes the place of what is passed, nothing is won. */
static bool takes_its_place(const Decisions *d, const FusedPair *c) {
    const Node *node = graph_node(d->f->g, c->consumer);
    return same_tensor(d->over[node->out[0].i], c->passed);
}

/* A convolution reads all channels for each channel tile, so none may be
 * written over.
 */
static bool spoils_operands(const Decisions *d, const FusedPair *c) {
    const Node *node = graph_node(d->f->g, c->producer);
    uint32_t result = d->alias_of[graph_node(d->f->g, c->consumer)->out[0].i];
    for (uint32_t k = 0; k < node->n_in; k++)
        if (d->alias_of[node->in[k].i] == result)
            return true;
    return false;
}

static bool pair_at(const Decisions *d, uint32_t step, FusedPair *c) {
    const Facts *f = d->f;
    if (step + 1 >= f->schedule->n_steps)
        return false;
    *c = (FusedPair){step, only_node(f, step), only_node(f, step + 1),
                     NO_TENSOR};
    if (c->producer.i == NONE || c->consumer.i == NONE ||
        pair_consumer(d, c->producer).i != c->consumer.i)
        return false;
    c->passed = graph_node(f->g, c->producer)->out[0];
    return f->role[graph_node(f->g, c->consumer)->out[0].i].parent.i == NONE;
}

/* ---- how thick ---- */

static bool engine_takes(const Facts *f, NodeId id, uint32_t c) {
    const HwEngine *engine = &f->spec->engine[f->legal[id.i].engine];
    return !(c % engine->part_align) &&
           hw_range_has(&engine->limit[HW_LIMIT_OUT_C], c) &&
           (is_dense(graph_node(f->g, id))
                ? tells_channels(f->spec, f->legal[id.i].op)
                : hw_range_has(&engine->limit[HW_LIMIT_IN_C], c));
}

/* Whether channel tiles of what it reads are volumes; of what is passed they
 * need not be. */
static bool operands_cut(const Facts *f, const FusedPair *c, NodeId id,
                         uint32_t channels) {
    const Node *node = graph_node(f->g, id);
    for (uint32_t k = 0; k < node->n_in && !is_dense(node); k++)
        if (!same_tensor(node->in[k], c->passed) &&
            !volume_cuts(f, node->in[k], channels))
            return false;
    return true;
}

static bool channel_tiles_valid(const Facts *f, const FusedPair *c,
                                uint32_t channels) {
    const Node *consumer = graph_node(f->g, c->consumer);
    uint32_t rest = plan_volume(f->g, c->passed).c % channels;
    bool valid = volume_cuts(f, consumer->out[0], channels) &&
                 operands_cut(f, c, c->producer, channels) &&
                 operands_cut(f, c, c->consumer, channels);
    for (uint32_t i = 0; i < 2 && valid; i++) {
        NodeId id = i ? c->consumer : c->producer;
        valid = engine_takes(f, id, channels) &&
                (!rest || engine_takes(f, id, rest));
    }
    return valid;
}

/* Of `n` channel tiles, rounded up to what the array makes at a time. */
static uint32_t channels_of(const Facts *f, const FusedPair *c, uint32_t n) {
    uint32_t all = plan_volume(f->g, c->passed).c;
    uint32_t lanes =
        f->spec->engine[f->legal[c->producer.i].engine].unroll.out_c;
    uint32_t one = (all + n - 1) / n;
    if (lanes && all > lanes)
        one = (one + lanes - 1) / lanes * lanes;
    return one + one % 2;
}

static uint64_t channel_tile_least_bytes(const Facts *f, const FusedPair *c,
                                         uint32_t n) {
    uint64_t bytes[PACK_MAX_POOLS];
    channel_tile_bytes(f, c->passed, n, bytes);
    return least_bytes(f, bytes,
                       reach_of(f, c->producer, c->passed) &
                           reach_of(f, c->consumer, c->passed));
}

/* The thickest channel tiles within `free`; else such as are usual, within
 * `most`; 0 if there are none. */
static uint32_t channel_tile_channels(const Facts *f, const FusedPair *c,
                                      uint64_t free, uint64_t most) {
    uint32_t all = plan_volume(f->g, c->passed).c, found = 0;
    for (uint32_t n = FEW_CHANNEL_TILES; n <= MOST_CHANNEL_TILES; n *= 2) {
        uint32_t channels = channels_of(f, c, n);
        uint64_t bytes = channel_tile_least_bytes(f, c, channels);
        if (channels >= all || bytes > most ||
            !channel_tiles_valid(f, c, channels))
            continue;
        if (bytes > free && n > USUAL_CHANNEL_TILES && found)
            break;
        found = channels;
        if (bytes <= free)
            break;
    }
    return found;
}

/* ---- where ---- */

static bool uses(const AliasClass *alias, uint32_t step) {
    for (uint32_t k = 0; k < alias->n_uses; k++)
        if (alias->use[k].step == step)
            return true;
    return false;
}

/* Bytes that are there while the two run, less what is passed; `own`: those of
 * volumes that they touch. */
static uint64_t bytes_at(const Decisions *d, const Buffers *p,
                         const FusedPair *c, uint64_t *own) {
    uint64_t sum = 0;
    *own = 0;
    for (uint32_t i = 0; i < p->buf.n; i++) {
        const Buffer *buf = &p->buf.at[i];
        const Owner *o = &p->owner.at[i];
        if (buf->first > 2 * c->step + 3 || buf->end <= 2 * c->step ||
            o->alias == d->alias_of[c->passed.i])
            continue;
        sum = add_capped(sum, o->least);
        const AliasClass *alias =
            o->alias == NONE ? NULL : &d->alias.at[o->alias];
        if (alias && (uses(alias, c->step) || uses(alias, c->step + 1)))
            *own = add_capped(*own, o->least);
    }
    return sum;
}

/* At the fuller of their steps. */
static uint64_t fullest(const Buffers *p, const FusedPair *c) {
    uint64_t most = 0;
    for (uint32_t t = 2 * c->step; t < 2 * c->step + 4; t++)
        most = p->live[t] > most ? p->live[t] : most;
    return most;
}

/* What either uses is there at both of their steps. */
static void use_both(Decisions *d, uint32_t step) {
    for (uint32_t u = 0; u < d->alias.n; u++) {
        AliasClass *alias = &d->alias.at[u];
        bool first = uses(alias, step), second = uses(alias, step + 1);
        if (first != second)
            use_insert(d->f, alias, first ? step + 1 : step);
    }
    uses_refill(d, step);
    uses_refill(d, step + 1);
}

static bool pair_make(Decisions *d, const Buffers *p, const FusedPair *c) {
    const Facts *f = d->f;
    uint64_t own, beside = bytes_at(d, p, c, &own);
    if (own >= f->total)
        return false;
    uint64_t free = beside < f->total ? f->total - beside : 0;
    uint32_t channels = channel_tile_channels(f, c, free, f->total - own);
    if (!channels || add_capped(beside, channel_tile_least_bytes(
                                            f, c, channels)) >= fullest(p, c))
        return false;
    d->mode[c->producer.i] =
        (Mode){.kind = MODE_PRODUCER, .channels = channels, .style = -1};
    d->mode[c->consumer.i] =
        (Mode){.kind = MODE_CONSUMER, .channels = channels, .style = -1};
    use_both(d, c->step);
    return true;
}

/* Another operand of which the place can be taken takes that of what is passed.
 */
static bool places_change(Decisions *d) {
    bool any = false;
    FusedPair c;
    for (uint32_t s = 0; s < d->f->schedule->n_steps; s++)
        if (pair_at(d, s, &c) && takes_its_place(d, &c))
            any |= place_instead(d, c.consumer, c.passed);
    return any;
}

static bool machine_may(const Decisions *d) {
    const Facts *f = d->f;
    const HwTiling *tiling = &f->spec->tiling;
    return tiling->kind == HW_TILING_SOFTWARE && !f->options->layer_by_layer &&
           (d->config->pairs || !tiling->rows.rolls);
}

void pairs_choose(Decisions *d) {
    const Facts *f = d->f;
    Buffers p = {0};
    FusedPair c;
    if (!machine_may(d))
        return;
    if (places_change(d)) {
        d->alias.n = 0;
        aliases_make(d);
        uses_make(d);
    }
    buffers_make(d, &p);
    for (uint32_t s = 0; s < f->schedule->n_steps; s++)
        if (pair_at(d, s, &c) && !takes_its_place(d, &c) &&
            !spoils_operands(d, &c) && fullest(&p, &c) > f->total)
            pair_make(d, &p, &c);
}
