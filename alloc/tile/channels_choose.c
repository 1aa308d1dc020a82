/* channels_choose.c - running a layer by some of its channels at a time, where
 * that moves fewer bytes than running it by rows.
 *
 * Input: a node, the bytes that are free at its step. Output: its mode: which
 * operands are in active memory whole, whether its result is, and how many
 * channels of the others pass at a time.
 * A layer that makes each channel from the same one of its operands (pools,
 * sums, scales, depthwise convolutions) takes any of them by channel tiles,
 * gives its result so. A dense convolution reads all channels for each: its
 * operand stays, its result passes. Channel tiles have all rows, so that
 * nothing is loaded twice, and what is written by channel tiles need not leave,
 * as rows must: they are no volume that the next layer could read. Method: of
 * all ways to let some pass that fit, the one that moves least.
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"
#include "graph/op_traits.h"

#include <math.h>
#include <string.h>

/* Channel tiles of a layer, if it has channels for so many: thin ones leave
 * room for what else could stay. */
enum {
    USUAL_CHANNEL_TILES = 8,
    MOST_CHANNEL_TILES = 256,
    MOST_QUANTUM = 64,
    MOST_SLOTS = 4
};

/* An operand, or behind them the result. */
typedef struct Passing {
    TensorId tensor;
    uint32_t alias;
    double cost; /* bytes that move if it passes */
} Passing;

typedef struct ChannelTiles {
    const Facts *f;
    const Decisions *d;
    NodeId id;
    uint32_t n; /* slots */
    Passing slot[MOST_SLOTS];
    uint32_t all, quantum; /* channels */
    bool dense;
} ChannelTiles;

/* ---- which layers ---- */

bool is_dense(const Node *node) {
    return node->op == OP_CONV && node->attr.conv.groups < 2;
}

bool goes_by_channel(const Facts *f, const Node *node) {
    const ConvAttr *conv = &node->attr.conv;
    if (node->n_in == 0)
        return false;
    Volume in = plan_volume(f->g, node->in[0]);
    bool depthwise = node->op == OP_CONV && conv->groups == in.c &&
                     conv->out_c == in.c && in.c > 1;
    return op_has(node->op, OP_BY_CHANNEL) || depthwise;
}

static bool machine_may(const Facts *f, NodeId id) {
    const HwTiling *tiling = &f->spec->tiling;
    return tiling->kind == HW_TILING_SOFTWARE && f->spec->backing >= 0 &&
           (f->spec->n_active == 1 ||
            hwspec_parts_between(f->spec, f->spec->memory)) &&
           tiling->rows.ops >> f->legal[id.i].op & 1;
}

/* ---- what it costs ---- */

static double cost_of(const Decisions *d, const Passing *slot, uint32_t step,
                      bool result) {
    const Facts *f = d->f;
    const AliasClass *alias = &d->alias.at[slot->alias];
    bool outside = from_outside(f, slot->tensor), stored = outside;
    bool before = false, behind = false;
    stored |= f->role[slot->tensor.i].outside;
    for (uint32_t i = 0; i < alias->n_uses; i++) {
        before |= alias->use[i].step < step && alias->use[i].whole;
        behind |= alias->use[i].step > step;
    }
    double trips = result ? (behind ? 1 + !stored : 0)
                          : (before ? 1 + !stored : 0) + behind;
    return trips * (double)moved_bytes(f, slot->tensor);
}

/* By rows: all passes, and rows at the edges of row tiles twice. */
static double cost_of_rows(const ChannelTiles *s, uint64_t free) {
    const Facts *f = s->f;
    const Node *node = graph_node(f->g, s->id);
    uint32_t rows = row_tile_highest(f, s->id, free), read = 0;
    uint32_t h = plan_volume(f->g, node->out[0]).h;
    Volume in = plan_volume(f->g, node->in[0]);
    double sum = 0;
    if (!rows)
        return HUGE_VAL;
    for (uint32_t row = 0; row < h; row += rows)
        read += rows_needed(f->g, s->id, row, rows < h - row ? rows : h - row)
                    .in_rows;
    for (uint32_t k = 0; k < s->n; k++)
        sum += s->slot[k].cost;
    for (uint32_t k = 0; k + 1 < s->n && read > in.h; k++)
        sum += (double)moved_bytes(f, s->slot[k].tensor) / in.h * (read - in.h);
    return sum;
}

/* ---- what fits ---- */

static bool stays(uint32_t staying, uint32_t k) {
    return staying >> k & 1;
}

/* The alias class counts once. */
static bool counted(const ChannelTiles *s, uint32_t staying, uint32_t k) {
    for (uint32_t i = 0; i < k; i++)
        if (stays(staying, i) && s->slot[i].alias == s->slot[k].alias)
            return true;
    return false;
}

static uint64_t bytes_of(const ChannelTiles *s, uint32_t staying,
                         uint32_t channels) {
    const Decisions *d = s->d;
    OperandBytes own[MOST_SLOTS] = {0};
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const Passing *slot = &s->slot[k];
        if (stays(staying, k) && counted(s, staying, k))
            continue;
        if (stays(staying, k))
            memcpy(own[n].bytes, d->alias.at[slot->alias].bytes,
                   sizeof own[n].bytes);
        else
            channel_tile_bytes(d->f, slot->tensor, channels, own[n].bytes);
        own[n++].memories = reach_of(d->f, s->id, slot->tensor);
    }
    return bytes_apart(d->f, own, n);
}

static bool engine_makes(const ChannelTiles *s, uint32_t channels) {
    const HwEngine *engine = &s->f->spec->engine[s->f->legal[s->id.i].engine];
    return hw_range_has(&engine->limit[HW_LIMIT_OUT_C], channels) &&
           (s->dense || hw_range_has(&engine->limit[HW_LIMIT_IN_C], channels));
}

static bool valid(const ChannelTiles *s, uint32_t channels) {
    uint32_t rest = s->all % channels;
    return channels < s->all && engine_makes(s, channels) &&
           (!rest || engine_makes(s, rest));
}

/* What the array makes at a time, if that is a multiple of where it can be cut.
 */
static uint32_t step_of(const ChannelTiles *s) {
    const HwEngine *engine = &s->f->spec->engine[s->f->legal[s->id.i].engine];
    uint32_t lanes = s->dense ? engine->unroll.out_c : 0;
    return lanes && lanes < s->all && lanes % s->quantum == 0 ? lanes
                                                              : s->quantum;
}

/* Of all thicknesses those that part the layer into so many channel tiles, or
 * more: the thickest within `free`; 0 if there is none. */
static uint32_t thickest(const ChannelTiles *s, uint32_t staying, uint64_t free,
                         uint32_t most) {
    uint32_t step = step_of(s);
    for (int finer = 0; finer < 2; finer++, step = s->quantum)
        for (uint32_t n = 2; n <= MOST_CHANNEL_TILES; n++) {
            uint32_t one = ((s->all + n - 1) / n + step - 1) / step * step;
            if (one <= most && valid(s, one) &&
                bytes_of(s, staying, one) <= free)
                return one;
            if (one <= step)
                break;
        }
    return 0;
}

/* ---- which pass ---- */

static bool may_stay(const ChannelTiles *s, uint32_t staying) {
    uint32_t result = s->n - 1;
    if (s->dense && staying != (1U << result) - 1)
        return false;
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t i = 0; i < k; i++)
            if (s->slot[i].alias == s->slot[k].alias &&
                stays(staying, i) != stays(staying, k))
                return false;
    return true;
}

static double cost_with(const ChannelTiles *s, uint32_t staying) {
    double sum = 0;
    for (uint32_t k = 0; k < s->n; k++)
        sum += stays(staying, k) ? 0 : s->slot[k].cost;
    return sum;
}

static bool channel_tiles_look(const Decisions *d, NodeId id, ChannelTiles *s) {
    const Facts *f = d->f;
    const Node *node = graph_node(f->g, id);
    uint32_t step = f->schedule->step_of[id.i];
    bool dense = is_dense(node);
    if (config_low(d->config) || !machine_may(f, id) ||
        node->n_in >= MOST_SLOTS || !(dense || goes_by_channel(f, node)))
        return false;
    *s = (ChannelTiles){.f = f,
                        .d = d,
                        .id = id,
                        .n = node->n_in + 1,
                        .all = plan_volume(f->g, node->out[0]).c,
                        .quantum = channel_tile_quantum(f, id),
                        .dense = dense};
    for (uint32_t k = 0; k < s->n; k++) {
        Passing *slot = &s->slot[k];
        slot->tensor = node_operand(node, k);
        slot->alias = d->alias_of[slot->tensor.i];
        if (slot->alias == NONE)
            return false;
        slot->cost = cost_of(d, slot, step, k == node->n_in);
    }
    return s->quantum != NONE;
}

static Mode mode_of(const ChannelTiles *s, uint32_t staying,
                    uint32_t channels) {
    uint32_t result = s->n - 1, operands = (1U << result) - 1;
    return (Mode){.kind = MODE_ROW_TILES,
                  .streams_in = (staying & operands) != operands,
                  .streams_out = !stays(staying, result),
                  .stays = staying & operands,
                  .early = true,
                  .rows = plan_volume(s->f->g, s->slot[result].tensor).h,
                  .channels = channels,
                  .style = -1};
}

bool channel_tiles_start(Decisions *d, NodeId id, uint64_t free) {
    ChannelTiles s;
    if (!channel_tiles_look(d, id, &s))
        return false;
    double least = cost_of_rows(&s, free);
    bool found = false;
    for (uint32_t staying = 0; staying + 1 < 1U << s.n; staying++) {
        double cost = cost_with(&s, staying);
        if (cost >= least || !may_stay(&s, staying))
            continue;
        uint32_t usual =
            (s.all + USUAL_CHANNEL_TILES - 1) / USUAL_CHANNEL_TILES;
        uint32_t channels = thickest(&s, staying, free, usual);
        if (!channels)
            channels = thickest(&s, staying, free, s.all);
        if (!channels)
            continue;
        d->mode[id.i] = mode_of(&s, staying, channels);
        least = cost;
        found = true;
    }
    return found;
}

bool channel_tiles_shrink(Decisions *d, NodeId id) {
    ChannelTiles s;
    Mode *mode = &d->mode[id.i];
    if (!channel_tiles_look(d, id, &s))
        return false;
    uint32_t channels =
        thickest(&s, mode->stays, UINT64_MAX, mode->channels * 3 / 4);
    mode->channels = channels ? channels : mode->channels;
    return channels > 0;
}

uint32_t channel_tiles_thinnest(const Decisions *d, NodeId id) {
    ChannelTiles s;
    if (!channel_tiles_look(d, id, &s))
        return 0;
    uint32_t least = (s.all + MOST_CHANNEL_TILES - 1) / MOST_CHANNEL_TILES,
             q = s.quantum;
    for (uint32_t c = (least + q - 1) / q * q; c < s.all; c += q)
        if (valid(&s, c))
            return c;
    return 0;
}
