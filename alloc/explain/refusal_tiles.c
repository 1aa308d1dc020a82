/* refusal_tiles.c - what a layer takes at the least where the machine tiles.
 *
 * Input: the work as it got stuck; a node. Output: the way to run it for which
 * the smallest memory would do, by itself, and a note that says so.
 * Where the buffers of tiles are fractions of active memory, a tile asks for a
 * larger memory than its own bytes: styles are placed in memories of all sizes.
 */
#include "alloc/explain/explain.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/tile/tile.h"

#include "base/arith.h"
#include "base/text.h"

enum { MOST_BITS = 40 };

/* Bytes of the node's operands in the first active memory that its way leaves
 * there whole. */
static uint64_t kept_whole(const Facts *f, NodeId id, bool in, bool out) {
    const Node *node = graph_node(f->g, id);
    const Layout *layout = f->spec->memory[0].layout;
    uint64_t align = f->spec->memory[0].align, sum = 0;
    for (uint32_t i = 0; i <= node->n_in; i++) {
        Volume v = volume_in(f, node_operand(node, i), 0);
        if (i < node->n_in ? in : out)
            sum += round_up(layout_bytes(layout, &v), align);
    }
    return sum;
}

/* Whether the tiles, and what is kept beside them, lie in so many bytes. */
static bool holds(const Facts *f, const LeastTile *t, uint64_t size) {
    HwTileStyle style = f->spec->tiling.tiles.style[t->mode.style];
    HwMemory memory = f->spec->memory[0];
    memory.size = size;
    hwspec_place_style(&style, &memory);
    return t->tile <= (style.sums ? style.reserved : style.buffer_size) &&
           style.reserved <= size && t->kept <= size - style.reserved;
}

/* The smallest memory that does; UINT64_MAX if none does. */
static uint64_t size_needed(const Facts *f, const LeastTile *t) {
    uint64_t align = f->spec->memory[0].align;
    uint64_t lo = 0, hi = ((uint64_t)1 << MOST_BITS) / align;
    if (!holds(f, t, hi * align))
        return UINT64_MAX;
    while (lo + 1 < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        *(holds(f, t, mid * align) ? &hi : &lo) = mid;
    }
    return hi * align;
}

static LeastTile by_style(const Decisions *d, NodeId id, int32_t style) {
    const Facts *f = d->f;
    const HwTileStyle *s = &f->spec->tiling.tiles.style[style];
    uint32_t width = plan_volume(f->g, graph_node(f->g, id)->out[0]).w;
    LeastTile t = {.mode = {.kind = MODE_HARDWARE, .style = style}};
    if (s->sums) {
        nest_choose(d, id, &t.mode);
        t.tile = t.mode.nest.over;
    } else {
        t.mode.tile_h = 1;
        t.mode.tile_w = s->multiple_w && s->multiple_w < width ? s->multiple_w
                        : s->multiple_w                        ? width
                                                               : 1;
        t.mode.repl = tile_repl(f, id);
        t.tile = tile_bytes(f, id, &t.mode);
    }
    t.kept = kept_whole(f, id, !s->in_backing, !s->out_backing);
    t.bytes = size_needed(f, &t);
    return t;
}

static LeastTile by_channel_tiles(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    LeastTile t = {.bytes = UINT64_MAX};
    uint32_t channels = channel_tile_least(f, id);
    uint64_t bytes[PACK_MAX_POOLS];
    if (!channels)
        return t;
    channel_tile_bytes(f, node->in[0], channels, bytes);
    t.mode = (Mode){.kind = MODE_ROW_TILES, .channels = channels};
    t.tile = least_bytes(f, bytes, UINT32_MAX);
    t.kept = kept_whole(f, id, false, true);
    t.bytes = add_capped(t.tile, t.kept);
    return t;
}

LeastTile least_tile(const Decisions *d, NodeId id) {
    const Facts *f = d->f;
    const HwTiling *tiling = &f->spec->tiling;
    HwOp op = f->legal[id.i].op;
    LeastTile best = {.mode = {.kind = MODE_WHOLE},
                      .bytes = kept_whole(f, id, true, true)};
    for (int32_t i = 0; (uint32_t)i < tiling->tiles.n; i++) {
        if (!(tiling->tiles.style[i].ops >> op & 1))
            continue;
        LeastTile t = by_style(d, id, i);
        best = t.bytes < best.bytes ? t : best;
    }
    LeastTile channel_tile = by_channel_tiles(f, id);
    return channel_tile.bytes < best.bytes ? channel_tile : best;
}

/* "3 of its 56 rows, 8 of its 56 columns", and channels where tiles have them.
 */
static const char *tile_text(const Facts *f, NodeId id, const LeastTile *t) {
    Volume out = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    const char *text =
        arena_printf(f->arena, "%u of its %u rows, %u of its %u columns",
                     t->mode.tile_h, out.h, t->mode.tile_w, out.w);
    if (!f->spec->tiling.tiles.style[t->mode.style].sums)
        return text;
    return arena_printf(f->arena, "%s, %u of its %u channels", text,
                        t->mode.nest.c, out.c);
}

void note_least_tile(Diag *diag, const Attempt *attempt, NodeId id,
                     const LeastTile *t) {
    const Node *node = graph_node(attempt->f->g, id);
    const HwTileStyle *s = &attempt->f->spec->tiling.tiles.style[t->mode.style];
    const char *tile =
        with_commas(attempt->f->arena, bytes_said(attempt, t->tile));
    const char *kept =
        t->kept ? arena_printf(attempt->f->arena,
                               "; what is whole beside it, %s bytes",
                               with_commas(attempt->f->arena, t->kept))
                : "";
    if (s->sums)
        diag_note(diag, node->loc,
                  "no tile of %s fits: the smallest, %s, takes %s bytes with "
                  "its weights and sums%s",
                  node->name, tile_text(attempt->f, id, t), tile, kept);
    else
        diag_note(diag, node->loc,
                  "no tile of %s fits: the smallest, %s, reads %s bytes; a "
                  "buffer for one has %s%s",
                  node->name, tile_text(attempt->f, id, t), tile,
                  with_commas(attempt->f->arena, s->buffer_size), kept);
}

/* ---- boxes ---- */

uint64_t least_volume(const Facts *f, TensorId t, const Owner *o) {
    uint64_t least = UINT64_MAX;
    uint32_t reached =
        o->kind == OWNER_ROW_TILE ? reach_of(f, o->node, t) : UINT32_MAX;
    for (uint32_t m = 0; m < f->spec->n_active; m++) {
        if (reached && !(reached >> m & 1))
            continue;
        Volume v = row_tile_in(f, t, o->rows, m);
        if (o->channels)
            v = (Volume){o->channels, o->rows, o->cols ? o->cols : v.w,
                         hwspec_repl_none(f->spec, o->channels)};
        const HwMemory *memory = &f->spec->memory[m];
        uint64_t b = round_up(layout_bytes(memory->layout, &v),
                              memory->align ? memory->align : 1);
        if (memory->buffers)
            b = round_up(b, hwspec_buffer_bytes(memory));
        least = b < least ? b : least;
    }
    return least;
}

static uint64_t box_bytes(const Facts *f, NodeId id, const Mode *mode) {
    const Node *node = graph_node(f->g, id);
    uint64_t sum = 0;
    for (uint32_t k = 0; k <= node->n_in; k++) {
        Volume box = boxes_volume(f, id, mode, k);
        Owner o = {.kind = OWNER_ROW_TILE,
                   .node = id,
                   .rows = box.h,
                   .channels = box.c,
                   .cols = box.w};
        sum += least_volume(f, node_operand(node, k), &o);
    }
    return sum;
}

/* Whether boxes of the node are smaller than its stripes: the smallest. */
static bool smaller_boxes(const Facts *f, NodeId id, Mode *mode) {
    if (id.i == NONE || !boxes_smallest(f, id, mode))
        return false;
    Volume v = plan_volume(f->g, graph_node(f->g, id)->out[0]);
    return mode->cols < v.w || mode->channels < v.c;
}

uint64_t boxes_wanted(const Facts *f, NodeId id) {
    Mode mode;
    return smaller_boxes(f, id, &mode) ? box_bytes(f, id, &mode) : UINT64_MAX;
}

bool note_boxes(Diag *diag, const Attempt *a, NodeId id) {
    Mode mode;
    if (!smaller_boxes(a->f, id, &mode))
        return false;
    const Node *node = graph_node(a->f->g, id);
    Volume v = plan_volume(a->f->g, node->out[0]);
    diag_note(
        diag, node->loc,
        "the smallest part of %s, %u of its %u rows, %u of its %u columns "
        "and %u of its %u channels, takes %s bytes with what it reads",
        node->name, mode.rows, v.h, mode.cols, v.w, mode.channels, v.c,
        with_commas(a->f->arena, bytes_said(a, box_bytes(a->f, id, &mode))));
    return true;
}
