/* rows.c - running a node by parts: which rows a row tile needs, and how large
 * row tiles and tiles are.
 *
 * Input: a node, the bytes that are free at its step. Output: its Mode.
 * Software tiling: row tiles of full width, as high as the free bytes allow and
 * balanced. Hardware tiling: the largest tile that fits the input buffer,
 * preferring the least re-read halo, then the widest (facts/xdnn.md 2.5).
 */
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"
#include "hwspec/insn.h"

/* ---- which engines ---- */

static bool range_spans(const HwRange *range, uint64_t lo, uint64_t hi) {
    if (range->set && !range->n)
        return range->lo <= lo && hi <= range->hi;
    for (uint64_t v = lo; range->set && v <= hi; v++)
        if (!hw_range_has(range, v))
            return false;
    return true;
}

/* Of a part: no more than the layer's, but where windows are spread. */
static uint32_t most_pad(const Node *node, uint32_t axis) {
    const ConvAttr *c = &node->attr.conv;
    if (node->op == OP_DECONV)
        return larger32(c->pad[axis],
                        (c->kernel[axis] - 1) * c->dilation[axis]);
    return node->op == OP_POOL ? node->attr.pool.pad[axis]
           : node->op == OP_CONV || node->op == OP_CONV_POOL ? c->pad[axis]
                                                             : 0;
}

bool crosses_rows(const Node *node, uint32_t axis) {
    return (node->op == OP_MIX || node->op == OP_TRANSPOSE) &&
           (axis || !node_goes_by_row(node));
}

bool only_rolls(const Node *node) {
    return node->op == OP_MIX || node->op == OP_OFFSET;
}

bool engine_takes_parts(const HwSpec *spec, const Graph *g, const Legal *legal,
                        NodeId id, uint32_t axis) {
    const HwLimitKind of[2][3] = {
        {HW_LIMIT_IN_H, HW_LIMIT_OUT_H, HW_LIMIT_PAD_H},
        {HW_LIMIT_IN_W, HW_LIMIT_OUT_W, HW_LIMIT_PAD_W}};
    const Node *node = graph_node(g, id);
    if (crosses_rows(node, axis) ||
        (only_rolls(node) &&
         (axis || spec->tiling.rows.rolls != HW_ROLLS_ROWS)))
        return false;
    const HwRange *limit = spec->engine[legal->engine].limit;
    Volume in = plan_volume(g, node->in[0]), out = plan_volume(g, node->out[0]);
    return range_spans(&limit[of[axis][0]], 1, axis ? in.w : in.h) &&
           range_spans(&limit[of[axis][1]], 1, axis ? out.w : out.h) &&
           range_spans(&limit[of[axis][2]], 0, most_pad(node, axis));
}

bool tells_channels(const HwSpec *spec, HwOp op) {
    int32_t row = spec->insns ? insn_row(spec, op) : -1;
    if (row < 0)
        return true;
    const HwForm *form = &spec->insns->row[row].form[0];
    return insn_token_of(form, HW_F_OUT_C) >= 0 ||
           insn_token_of(form, HW_F_MID_C) >= 0;
}

bool engine_takes_channels(const HwSpec *spec, const Legal *legal,
                           uint32_t all) {
    const HwRange *limit = spec->engine[legal->engine].limit;
    return tells_channels(spec, legal->op) &&
           range_spans(&limit[HW_LIMIT_OUT_C], 1, all);
}

static bool takes_row_tiles(const Facts *f, NodeId id) {
    return !only_rolls(graph_node(f->g, id)) &&
           engine_takes_parts(f->spec, f->g, &f->legal[id.i], id, 0);
}

/* ---- row tiles ---- */

static uint32_t out_rows(const Facts *f, NodeId node) {
    return plan_volume(f->g, graph_node(f->g, node)->out[0]).h;
}

static uint32_t most_in_rows(const Graph *g, NodeId node, uint32_t rows) {
    uint32_t h = plan_volume(g, graph_node(g, node)->out[0]).h, most = 0;
    for (uint32_t row = 0; row < h; row += rows) {
        uint32_t n = rows < h - row ? rows : h - row;
        uint32_t in = rows_needed(g, node, row, n).in_rows;
        most = in > most ? in : most;
    }
    return most;
}

enum { ROW_TILE_SLOTS = 8 }; /* a node */

size_t row_tile_slots(const Graph *g) {
    return (size_t)g->node.n * ROW_TILE_SLOTS + 1;
}

uint32_t row_tile_in_rows(const Facts *f, NodeId node, uint32_t rows) {
    RowTileRows *known =
        &f->memo->row_tiles[node.i * ROW_TILE_SLOTS + rows % ROW_TILE_SLOTS];
    if (known->rows != rows)
        *known = (RowTileRows){rows, most_in_rows(f->g, node, rows)};
    return known->in;
}

/* Whether all row tiles of this height can be computed. */
static bool row_tiles_valid(const Graph *g, NodeId node, uint32_t rows) {
    uint32_t h = plan_volume(g, graph_node(g, node)->out[0]).h;
    for (uint32_t row = 0; row < h; row += rows) {
        uint32_t n = rows < h - row ? rows : h - row;
        if (!rows_needed(g, node, row, n).in_rows)
            return false;
    }
    return true;
}

/* Bytes of so many row tiles of the node, 1 or 2; UINT64_MAX if the memories
 * cannot hold them beside each other. */
static uint64_t row_tiles_bytes(const Facts *f, NodeId id, uint32_t rows,
                                uint32_t tiles) {
    const Node *node = graph_node(f->g, id);
    uint32_t in = row_tile_in_rows(f, id, rows), n = node->n_in + 1;
    OperandBytes own[2 * (MAX_OPERANDS + 1)] = {0};
    if (!sums_have_room(f, id, 0, rows, plan_volume(f->g, node->out[0]).w))
        return UINT64_MAX;
    for (uint32_t i = 0; i < tiles * n; i++) {
        TensorId t = node_operand(node, i % n);
        pool_bytes(f, t, i % n < node->n_in ? in : rows, false, own[i].bytes);
        own[i].memories = reach_of(f, id, t);
    }
    return bytes_apart(f, own, tiles * n);
}

static uint32_t quantum(const Facts *f, NodeId id) {
    return node_quantum(f->g, id, 0);
}

/* Row tiles of one height, a multiple of `q`, near `most` rows, so that the
 * last is not tiny. */
static uint32_t balance_by(uint32_t h, uint32_t most, uint32_t q) {
    uint32_t n = (h + most - 1) / most;
    uint32_t rows = ((h + n - 1) / n + q - 1) / q * q;
    return rows < most ? rows : most;
}

/* Of as many rows as the engine makes at once, where others take it longer. */
static uint32_t balance(const Facts *f, NodeId id, uint32_t most) {
    uint32_t h = out_rows(f, id), q = quantum(f, id);
    uint32_t full = q * rows_at_once(f, id);
    uint32_t rows = balance_by(h, most, q), fuller = most / full * full;
    if (!fuller)
        return rows;
    fuller = balance_by(h, fuller, full);
    return row_turns(f, id, fuller) < row_turns(f, id, rows) ? fuller : rows;
}

/* A height up to `most` of which so many row tiles take at most `free` bytes,
 * as large as can be; 0 if there is none. */
static uint32_t row_tile_height(const Facts *f, NodeId id, uint32_t most,
                                uint32_t tiles, uint64_t free) {
    uint32_t q = quantum(f, id), lo = 0;
    uint32_t hi = takes_row_tiles(f, id) ? most / q : 0;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        uint64_t bytes = row_tiles_bytes(f, id, mid * q, tiles);
        if (bytes != UINT64_MAX && bytes <= free)
            lo = mid;
        else
            hi = mid - 1;
    }
    uint32_t rows = lo ? balance(f, id, lo * q) : 0;
    while (rows && !row_tiles_valid(f->g, id, rows))
        rows -= q;
    return rows;
}

/* No row tile is lower. A network is input from anywhere: it must not ask for
 * row tiles without end. */
static uint32_t row_tile_floor(const Facts *f, NodeId id) {
    enum { MAX_ROW_TILES = 1 << 14 };
    uint32_t q = quantum(f, id);
    return (out_rows(f, id) / MAX_ROW_TILES / q + 1) * q;
}

/* The smallest height that can be, whether it fits or not. */
uint32_t row_tile_least(const Facts *f, NodeId id) {
    uint32_t h = out_rows(f, id), q = quantum(f, id);
    if (!takes_row_tiles(f, id))
        return 0;
    for (uint32_t rows = row_tile_floor(f, id); rows <= h; rows += q)
        if (row_tiles_valid(f->g, id, rows))
            return rows;
    return 0;
}

uint32_t row_tile_highest(const Facts *f, NodeId node, uint64_t free) {
    return row_tile_height(f, node, out_rows(f, node), 1, free);
}

static bool pair_fits(const Facts *f, NodeId id, uint32_t rows, uint64_t free) {
    return row_tiles_bytes(f, id, rows, 2) <= free;
}

/* The highest, up to `most`, of which two have places: while one is computed
 * the next is loaded, the one before stored. Several of them, as what the first
 * loads and the last stores is not hidden. */
static uint32_t row_tile_pair(const Facts *f, NodeId id, uint32_t most,
                              uint64_t free) {
    enum { TILES = 4 };
    uint32_t q = quantum(f, id) * rows_at_once(f, id);
    uint32_t rows = (uint32_t)round_up(ceil_div(out_rows(f, id), TILES), q);
    return row_tile_height(f, id, smaller32(rows, most), 2, free);
}

/* Rows of lower row tiles than the mode has; 0 if there are none. */
static uint32_t lower_row_tiles(const Decisions *d, NodeId id, uint64_t free) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[id.i];
    bool first = mode->kind == MODE_WHOLE;
    uint32_t most = first ? out_rows(f, id) - 1 : mode->rows * 3 / 4;
    if (mode->channels)
        return 0;
    if (!first && most == mode->rows)
        most--;
    uint32_t rows =
        d->config->aims.hides ? row_tile_pair(f, id, most, free) : 0;
    rows = rows ? rows : row_tile_height(f, id, most, 1, free);
    if (rows < row_tile_floor(f, id)) {
        uint32_t least = row_tile_least(f, id);
        rows = rows < least ? least : rows;
    }
    return first || rows < mode->rows ? rows : 0;
}

/* Channels of smaller channel tiles than the mode has, where row tiles are not
 * lower or do not fit; 0 if there are none. */
static uint32_t smaller_channel_tiles(const Decisions *d, NodeId id,
                                      uint32_t rows, uint64_t free) {
    const Facts *f = d->f;
    uint32_t below = d->mode[id.i].channels;
    if (rows && row_tiles_bytes(f, id, rows, 1) <= free)
        return 0;
    below = below ? below : plan_volume(f->g, graph_node(f->g, id)->out[0]).c;
    uint32_t channels = channel_tile_largest(d, id, below, free);
    if (channels || row_tile_least(f, id) < out_rows(f, id))
        return channels;
    uint32_t least = channel_tile_least(f, id);
    return least < below ? least : 0;
}

static bool set_row_tiles(Decisions *d, NodeId id, uint32_t rows,
                          uint32_t channels, uint64_t free) {
    if (!rows && !channels)
        return false;
    d->mode[id.i] = (Mode){.kind = MODE_ROW_TILES,
                           .streams_in = true,
                           .streams_out = !channels,
                           .rows = channels ? out_rows(d->f, id) : rows,
                           .channels = channels,
                           .doubled = d->config->aims.hides && !channels &&
                                      pair_fits(d->f, id, rows, free),
                           .style = -1};
    return true;
}

/* Whether its lowest row tiles fit where nothing else waits. */
static bool fits_by_rows(const Facts *f, NodeId id) {
    uint32_t least = row_tile_least(f, id);
    return least && row_tiles_bytes(f, id, least, 1) <= f->total;
}

/* Boxes where no stripe fits, and smaller ones. */
static bool boxes_next(Decisions *d, NodeId id, uint64_t free) {
    Mode *mode = &d->mode[id.i];
    if (mode->cols) {
        uint64_t less = boxes_bytes(d->f, id, mode) / 4 * 3;
        free = less < free ? less : free;
    }
    return boxes_choose(d->f, id, free, mode) ||
           (!mode->cols && boxes_choose(d->f, id, d->f->total, mode));
}

static bool row_tiles_next(Decisions *d, NodeId id, uint64_t free) {
    Mode *mode = &d->mode[id.i];
    Volume out = plan_volume(d->f->g, graph_node(d->f->g, id)->out[0]);
    if (mode->kind == MODE_WHOLE ? sums_have_room(d->f, id, 0, out.h, out.w) &&
                                       channel_tiles_start(d, id, free)
                                 : mode->early && channel_tiles_shrink(d, id))
        return true;
    if (mode->early)
        *mode = (Mode){.style = -1};
    if (mode->cols)
        return boxes_next(d, id, free);
    uint32_t rows = lower_row_tiles(d, id, free);
    uint32_t channels = smaller_channel_tiles(d, id, rows, free);
    if (rows && !channels &&
        ((d->config->aims.hides &&
          boxes_hide(d->f, id, rows, pair_fits(d->f, id, rows, free), free,
                     mode)) ||
         boxes_pay(d->f, id, rows, free, d->config->aims.blocks, mode)))
        return true;
    bool may = channels || fits_by_rows(d->f, id);
    return (!may && boxes_next(d, id, free)) ||
           set_row_tiles(d, id, rows, channels, free);
}

/* Where the machine has tiles, but none that is small enough. */
static bool channel_tiles_next(Decisions *d, NodeId id, uint64_t free) {
    bool never_whole =
        d->f->spec->tiling.tiles.always >> d->f->legal[id.i].op & 1;
    return !never_whole &&
           set_row_tiles(d, id, 0, smaller_channel_tiles(d, id, 0, free), free);
}

/* ---- hardware tiles ---- */

typedef struct TileFit {
    const Facts *f;
    const Node *node;
    const HwTileStyle *style;
    const Layout *layout;
    Volume in, out;
    Repl repl;
} TileFit;

static uint64_t fit_bytes(const TileFit *f, uint32_t tw, uint32_t th) {
    Volume v = {f->in.c, tile_extent(f->f->g, f->node, 0, th),
                tile_extent(f->f->g, f->node, 1, tw), f->repl};
    return layout_bytes(f->layout, &v);
}

static bool tile_fits(const TileFit *f, uint32_t tw, uint32_t th) {
    return fit_bytes(f, tw, th) <= f->style->buffer_size;
}

/* The greatest height with this width; 0 if none fits. */
static uint32_t tile_height(const TileFit *f, uint32_t tw) {
    uint32_t lo = 0, hi = f->out.h;
    while (lo < hi) {
        uint32_t mid = (lo + hi + 1) / 2;
        if (tile_fits(f, tw, mid))
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static bool tile_choose(const TileFit *f, Mode *mode) {
    uint32_t step = f->style->multiple_w ? f->style->multiple_w : 1;
    uint64_t best = UINT64_MAX;
    uint32_t tw = f->out.w;
    while (tw) {
        uint32_t th = tile_height(f, tw);
        if (th) {
            uint64_t reads = tiles_read(f->f->g, f->node, tw, th);
            if (reads < best) {
                best = reads;
                mode->tile_w = tw;
                mode->tile_h = th;
            }
        }
        tw = tw > step ? (tw - 1) / step * step : 0;
    }
    return best != UINT64_MAX;
}

static uint32_t first_bit(uint32_t bits) {
    uint32_t i = 0;
    while (!(bits >> i & 1))
        i++;
    return i;
}

Repl tile_repl(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    uint32_t c = plan_volume(f->g, node->in[0]).c;
    HwOp op = f->legal[id.i].op;
    bool dense = op == HW_OP_CONV || op == HW_OP_CONV_POOL_MAX ||
                 op == HW_OP_CONV_POOL_AVG;
    if (!f->options->replication || !dense)
        return hwspec_repl_none(f->spec, c);
    return hwspec_repl_rule(
        f->spec, c, node->attr.conv.kernel[0] * node->attr.conv.kernel[1],
        true);
}

/* Styles in order of preference: both operands stay in active memory, the
 * output does, the input does, neither. */
static uint32_t style_class(const HwTileStyle *s) {
    if (s->in_backing)
        return s->out_backing ? 3 : 1;
    return s->out_backing ? 2 : 0;
}

/* The style of rank `rank` for the operation; -1 behind the last. */
int32_t hardware_style(const Facts *f, NodeId id, uint32_t rank) {
    for (uint32_t class = 0; class < 4; class ++)
        for (uint32_t i = 0; i < f->spec->tiling.tiles.n; i++) {
            const HwTileStyle *s = &f->spec->tiling.tiles.style[i];
            if (style_class(s) == class && (class || s->sums) &&
                s->ops >> f->legal[id.i].op & 1 && rank-- == 0)
                return (int32_t)i;
        }
    return -1;
}

/* A byte over DDR counts as often as this the cycles that it takes: fewer bytes
 * are worth some time, but not any. */
enum { BYTE_PRICE = 10 };

/* Tiles that the mode's style can hold. */
static bool tile_mode(const Facts *f, NodeId id, Mode *mode) {
    const Node *node = graph_node(f->g, id);
    uint32_t memory = first_bit(reach(f, id, HW_IN));
    TileFit fit = {.f = f,
                   node,
                   &f->spec->tiling.tiles.style[mode->style],
                   f->spec->memory[memory].layout,
                   plan_volume(f->g, node->in[0]),
                   plan_volume(f->g, node->out[0]),
                   mode->repl};
    if (!tile_choose(&fit, mode))
        return false;
    if (node->op == OP_CONV || node->op == OP_CONV_POOL)
        tiles_hasten(f, id, BYTE_PRICE, mode);
    else
        tiles_quicken(f, id, mode);
    return true;
}

bool hardware_mode(Decisions *d, NodeId id, uint32_t rank) {
    const Facts *f = d->f;
    int32_t i = hardware_style(f, id, rank);
    const HwTileStyle *style = &f->spec->tiling.tiles.style[i];
    Mode next = {.kind = MODE_HARDWARE,
                 .streams_in = style->in_backing,
                 .streams_out = style->out_backing,
                 .rank = rank,
                 .style = i,
                 .repl = tile_repl(f, id)};
    if (style->sums) {
        next.repl = (Repl){0};
        nest_choose(d, id, &next);
    } else if (!tile_mode(f, id, &next)) {
        return false;
    }
    d->mode[id.i] = next;
    return true;
}

static bool hardware_next(Decisions *d, NodeId id) {
    const Mode *mode = &d->mode[id.i];
    uint32_t rank = mode->kind == MODE_WHOLE ? 0 : mode->rank + 1;
    for (; hardware_style(d->f, id, rank) >= 0; rank++)
        if (hardware_mode(d, id, rank))
            return true;
    return false;
}

/* Its sums have no room, and its rows no names in what lies whole. */
static bool sums_too_many(const Facts *f, NodeId id) {
    Volume out = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    return f->spec->tiling.rows.ops >> f->legal[id.i].op & 1 &&
           !sums_have_room(f, id, 0, out.h, out.w);
}

void modes_start(Decisions *d) {
    const Facts *f = d->f;
    for (NodeId id = {0}; id.i < f->g->node.n; id.i++) {
        if (!on_engine(f, id) || d->mode[id.i].kind != MODE_WHOLE)
            continue;
        if (f->spec->tiling.tiles.always >> f->legal[id.i].op & 1)
            while (hardware_next(d, id) && d->config->streams)
                ;
        else if (f->spec->sums && sums_too_many(f, id))
            (void)row_tiles_next(d, id, f->total);
    }
}

uint64_t tile_bytes(const Facts *f, NodeId id, const Mode *mode) {
    const Node *node = graph_node(f->g, id);
    TileFit fit = {.f = f,
                   node,
                   &f->spec->tiling.tiles.style[mode->style],
                   f->spec->memory[first_bit(reach(f, id, HW_IN))].layout,
                   plan_volume(f->g, node->in[0]),
                   plan_volume(f->g, node->out[0]),
                   mode->repl};
    return fit_bytes(&fit, mode->tile_w, mode->tile_h);
}

bool mode_next(Decisions *d, NodeId id, uint64_t free) {
    const Facts *f = d->f;
    HwOp op = f->legal[id.i].op;
    if (d->mode[id.i].kind == MODE_AHEAD || node_keeps(f, id))
        return false;
    switch (f->spec->tiling.kind) {
    case HW_TILING_SOFTWARE:
        return f->spec->tiling.rows.ops >> op & 1 &&
               row_tiles_next(d, id, free);
    case HW_TILING_HARDWARE:
        return d->mode[id.i].kind == MODE_ROW_TILES
                   ? channel_tiles_next(d, id, free)
                   : hardware_next(d, id) || channel_tiles_next(d, id, free);
    case HW_TILING_NONE:
        break;
    }
    return false;
}

static void range_add(Range *pin, uint32_t *n, Range r) {
    if (r.end <= r.at)
        return;
    for (uint32_t i = 0; i < *n; i++) {
        if (r.at <= pin[i].end && pin[i].at <= r.end) {
            r.at = r.at < pin[i].at ? r.at : pin[i].at;
            r.end = r.end > pin[i].end ? r.end : pin[i].end;
            pin[i] = pin[--*n];
            range_add(pin, n, r);
            return;
        }
    }
    pin[(*n)++] = r;
}

/* The machine's buffers stay where they are if only a part of its memory is
 * planned with: what is behind that need not be pinned. */
static void pin_add(Range *pin, uint32_t *n, uint64_t at, uint64_t end,
                    uint64_t size) {
    range_add(pin, n, (Range){at, end < size ? end : size});
}

uint32_t mode_pins(const Decisions *d, NodeId id, Range pin[3],
                   uint32_t *memory) {
    const Facts *f = d->f;
    const Mode *mode = &d->mode[id.i];
    const HwTileStyle *style = &f->spec->tiling.tiles.style[mode->style];
    uint32_t n = 0;
    *memory = first_bit(reach(f, id, HW_IN));
    Pool pool = pool_of(&f->spec->memory[*memory]);
    pin_add(pin, &n, 0, style->reserved, pool.size);
    range_add(pin, &n, (Range){0, mode->nest.over});
    for (uint32_t i = 0; i < 2 && !style->sums; i++)
        pin_add(pin, &n, style->buffer[i] / pool.align * pool.align,
                style->buffer[i] + style->buffer_size, pool.size);
    return n;
}

uint64_t mode_pinned(const Decisions *d, NodeId id) {
    Range pin[3];
    uint32_t memory, n = mode_pins(d, id, pin, &memory);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += pin[i].end - pin[i].at;
    return sum;
}
