/* channels.c - running a pool by some of its channels at a time.
 *
 * Input: a node, the bytes that are free at its step. Output: how many channels
 * its *channel tiles* have: volumes of some of the operand's channels, with all
 * their rows, which pass through active memory; the result lies there whole. A
 * pool makes each channel from the same one of its operand. One over a whole
 * image needs all rows for its only one, so that no row tile of it is lower
 * than the image; a channel tile is as thin as there are channels at whose ends
 * volumes can be cut. Invariant: channel tiles are of one size, but for the
 * last.
 */
#include "alloc/alias/alias.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"

enum { MOST_QUANTUM = 256, TRIES = 64, MOST_CHANNEL_TILES = 1 << 12 };

static uint32_t channels_of(const Facts *f, NodeId id) {
    return plan_volume(f->g, graph_node(f->g, id)->out[0]).c;
}

void channel_tile_bytes(const Facts *f, TensorId t, uint32_t channels,
                        uint64_t bytes[PACK_MAX_POOLS]) {
    Volume v = plan_volume(f->g, t);
    v.c = channels;
    v.repl = hwspec_repl_none(f->spec, channels);
    volume_pool_bytes(f, v, bytes);
}

/* ---- where a volume can be cut ---- */

/* Channels before c, and q or fewer from c on, lie as volumes of their own. */
static bool parts_there(const HwMemory *memory, Volume whole, uint32_t c,
                        uint32_t q) {
    if (!layout_part_alone(memory->layout, &whole, 0, c) ||
        !layout_part_alone(memory->layout, &whole, c,
                           smaller32(q, whole.c - c)))
        return false;
    uint64_t at = layout_offset(memory->layout, &whole, c, 0, 0, 0);
    whole.c = c;
    return at % memory->unit == 0 && layout_bytes(memory->layout, &whole) == at;
}

static bool parts_at_all(const HwSpec *spec, const HwMemory *memory,
                         Volume whole, uint32_t q) {
    if (hwspec_parts_between(spec, memory))
        return true;
    if (memory->layout->n && memory->layout->axis[0].dim != LAYOUT_C)
        return false; /* no instruction says where they begin */
    for (uint32_t c = q; c < whole.c; c += q)
        if (!parts_there(memory, whole, c, q))
            return false;
    return true;
}

/* Of the concats that it is part of. */
static bool starts_at(const Facts *f, TensorId t, uint32_t q) {
    for (; t.i != NONE; t = f->role[t.i].parent)
        if (f->role[t.i].part_c % q)
            return false;
    return true;
}

/* Whether channel tiles of the operand have places where it may lie outside. */
static bool operand_cuts(const Facts *f, TensorId t, uint32_t q) {
    const HwMemory *memory = f->spec->memory;
    Volume v = plan_volume(f->g, t);
    return starts_at(f, t, q) &&
           parts_at_all(f->spec, &memory[f->spec->backing], v, q) &&
           (!from_outside(f, t) ||
            parts_at_all(f->spec, &memory[f->spec->input], v, q));
}

/* Whether the engine can write each part of the result. */
static bool result_cuts(const Facts *f, NodeId id, uint32_t q) {
    TensorId t = graph_node(f->g, id)->out[0];
    bool told = !is_dense(graph_node(f->g, id)) ||
                tells_channels(f->spec, f->legal[id.i].op);
    return told && starts_at(f, t, q) && volume_cuts(f, t, q) &&
           q % f->spec->engine[f->legal[id.i].engine].part_align == 0;
}

/* The same of all that may pass or stay. */
static bool all_cut(const Facts *f, NodeId id, uint32_t q) {
    const Node *node = graph_node(f->g, id);
    TensorId out = node->out[0];
    Volume v = plan_volume(f->g, out);
    const HwMemory *to = &f->spec->memory[f->spec->output];
    for (uint32_t k = 0; k < node->n_in && !is_dense(node); k++)
        if (!operand_cuts(f, node->in[k], q) || !volume_cuts(f, node->in[k], q))
            return false;
    return result_cuts(f, id, q) && operand_cuts(f, out, q) &&
           (!f->role[out.i].outside || parts_at_all(f->spec, to, v, q));
}

uint32_t channel_tile_quantum(const Facts *f, NodeId id) {
    uint32_t *known = &f->memo->channel_tile[2 * id.i + 1],
             c = channels_of(f, id);
    for (uint32_t q = 1; !*known && q < c && q <= MOST_QUANTUM; q++)
        *known = all_cut(f, id, q) ? q : 0;
    *known = *known ? *known : NONE;
    return *known;
}

static uint32_t input_quantum_find(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    const Legal *legal = &f->legal[id.i];
    Volume v = plan_volume(f->g, node->in[0]);
    bool grouped = node->op == OP_CONV && node->attr.conv.groups > 1;
    bool pixels = node->op == OP_FC && (v.h > 1 || v.w > 1);
    if (!hwspec_adds_up(f->spec, legal->op, legal->engine) || grouped ||
        pixels || f->spec->backing < 0)
        return NONE;
    for (uint32_t q = 1; q < v.c && q <= MOST_QUANTUM; q++)
        if (operand_cuts(f, node->in[0], q))
            return q;
    return NONE;
}

uint32_t input_quantum(const Facts *f, NodeId id) {
    uint32_t *known = &f->memo->input_quantum[id.i];
    if (!*known)
        *known = input_quantum_find(f, id);
    return *known;
}

static uint32_t quantum_find(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    uint32_t c = channels_of(f, id);
    if (node->op != OP_POOL || f->spec->backing < 0)
        return NONE;
    for (uint32_t q = 1; q < c && q <= MOST_QUANTUM; q++)
        if (operand_cuts(f, node->in[0], q) && result_cuts(f, id, q))
            return q;
    return NONE;
}

/* Channel tiles have multiples of this; NONE: the node cannot run by channel
 * tiles. */
static uint32_t quantum(const Facts *f, NodeId id) {
    uint32_t *known = &f->memo->channel_tile[2 * id.i];
    if (!*known)
        *known = quantum_find(f, id);
    return *known;
}

/* ---- how many channels ---- */

/* With the result, or the concat that it is part of. */
static uint64_t channel_tiles_bytes(const Decisions *d, NodeId id,
                                    uint32_t channels) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    const AliasClass *result = &d->alias.at[d->alias_of[node->out[0].i]];
    uint64_t bytes[PACK_MAX_POOLS];
    channel_tile_bytes(f, node->in[0], channels, bytes);
    return add_capped(least_bytes(f, bytes, reach(f, id, HW_IN)),
                      least_bytes(f, result->bytes, reach(f, id, HW_OUT)));
}

static bool engine_takes(const Facts *f, NodeId id, uint32_t channels) {
    const HwEngine *engine = &f->spec->engine[f->legal[id.i].engine];
    return hw_range_has(&engine->limit[HW_LIMIT_IN_C], channels) &&
           hw_range_has(&engine->limit[HW_LIMIT_OUT_C], channels);
}

static bool channel_tiles_valid(const Facts *f, NodeId id, uint32_t channels) {
    uint32_t rest = channels_of(f, id) % channels;
    return engine_takes(f, id, channels) &&
           (!rest || engine_takes(f, id, rest));
}

/* The fewest multiples of the quantum that may be. */
static uint32_t floor_of(const Facts *f, NodeId id) {
    return channels_of(f, id) / MOST_CHANNEL_TILES / quantum(f, id) + 1;
}

uint32_t channel_tile_least(const Facts *f, NodeId id) {
    uint32_t q = quantum(f, id);
    if (q == NONE)
        return 0;
    uint32_t n = floor_of(f, id);
    for (uint32_t k = 0; k < TRIES && (n + k) * q < channels_of(f, id); k++)
        if (channel_tiles_valid(f, id, (n + k) * q))
            return (n + k) * q;
    return 0;
}

/* Channel tiles of one size, near `most` multiples of q, so that the last is
 * not tiny.
 */
static uint32_t balance(const Facts *f, NodeId id, uint32_t most, uint32_t q) {
    uint32_t all = (channels_of(f, id) + q - 1) / q;
    uint32_t n = (all + most - 1) / most;
    return (all + n - 1) / n;
}

uint32_t channel_tile_largest(const Decisions *d, NodeId id, uint32_t below,
                              uint64_t free) {
    const Facts *f = d->f;
    uint32_t q = quantum(f, id), least = channel_tile_least(f, id);
    if (!least || below <= least)
        return 0;
    uint32_t lo = 0, hi = (below - 1) / q;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2;
        if (channel_tiles_bytes(d, id, mid * q) <= free)
            lo = mid;
        else
            hi = mid - 1;
    }
    if (lo * q < least)
        return 0;
    uint32_t n = balance(f, id, lo, q);
    for (uint32_t k = 0; k < TRIES && k < n && (n - k) * q >= least; k++)
        if (channel_tiles_valid(f, id, (n - k) * q))
            return (n - k) * q;
    return least;
}

uint32_t parts_of_row_tiles(const Decisions *d, NodeId id) {
    const Mode *mode = &d->mode[id.i];
    if (mode->cols)
        return boxes_count(d->f, id, mode);
    Volume v = plan_volume(d->f->g, graph_node(d->f->g, id)->out[0]);
    uint32_t all = mode->channels ? v.c : v.h;
    uint32_t one = mode->channels ? mode->channels : mode->rows;
    return (all + one - 1) / one;
}
