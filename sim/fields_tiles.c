/* fields_tiles.c - tiles must be those of one of the machine's styles; see
 * fields.h.
 */
#include "sim/engine.h"
#include "sim/fields.h"

#include "base/arith.h"

enum { MAX_SHARE = 1 << 15 }; /* parts of a memory */

static int64_t units(const Judge *j, uint64_t bytes) {
    const HwMemory *m = &j->spec->memory[0];
    return (int64_t)(m->base + bytes / m->unit);
}

/* Tiles are as wide as the style asks for, or as the output. */
static bool is_step(const Work *w, const HwTileStyle *style) {
    uint32_t step = style->multiple_w ? style->multiple_w : 1;
    return w->tile.w % step == 0 || w->tile.w == w->out.w;
}

static void judge_tile_size(Judge *j, const HwTileStyle *style) {
    const Work *w = j->w;
    if (w->tile.w > w->out.w || w->tile.h > w->out.h)
        fault(j->run, "its tiles of %ux%u are larger than its output",
              w->tile.h, w->tile.w);
    else if (!is_step(w, style))
        fault(j->run,
              "its tiles are %u wide, neither all of the output nor a "
              "multiple of %u",
              w->tile.w, style->multiple_w);
}

/* Sizes of the whole memory, from..to, of which `at` is the share; what was
 * planned may be smaller than it is, but of one size for the whole listing. */
typedef struct Sizes {
    uint64_t from, to; /* from > to: none */
} Sizes;

static Sizes sizes_of_share(const Judge *j, uint64_t at, const HwPlace *share) {
    const Run *run = j->run;
    const HwMemory *m = &j->spec->memory[0];
    uint64_t known = run->am_most ? run->am_most : m->size;
    if (at > m->size || share->whole > MAX_SHARE)
        return (Sizes){1, 0};
    uint64_t least = at ? (at * share->whole - 1) / share->part + 1 : 0;
    uint64_t most = ((at + m->align) * share->whole - 1) / share->part;
    return (Sizes){larger(least, run->am_least), most < known ? most : known};
}

static bool is_share(const HwPlace *place) {
    return place->whole && place->part;
}

static void judge_share(Judge *j, uint64_t at, const HwPlace *share) {
    Run *run = j->run;
    Sizes sizes = sizes_of_share(j, at, share);
    if (sizes.from > sizes.to) {
        fault(run,
              "its input tiles at %s are not %u/%u of an active memory of "
              "which the others are such a share",
              address_text(run, 0, at), share->part, share->whole);
        return;
    }
    run->am_least = sizes.from;
    run->am_most = sizes.to;
}

static HwField buffer_field(int i) {
    return i ? HW_F_TILE_BUFFER1 : HW_F_TILE_BUFFER0;
}

static void judge_buffer(Judge *j, int i, const HwPlace *place) {
    if (!is_share(place))
        must_be(j, buffer_field(i), units(j, place->bytes));
    else
        judge_share(j, j->w->tile.buffer[i], place);
}

static bool buffer_agrees(const Judge *j, int i, const HwPlace *place) {
    Sizes sizes = is_share(place)
                      ? sizes_of_share(j, j->w->tile.buffer[i], place)
                      : (Sizes){0, 0};
    return (is_share(place) || !given(j, buffer_field(i)) ||
            j->f->num[buffer_field(i)] == units(j, place->bytes)) &&
           sizes.from <= sizes.to;
}

/* What the tile's destination must be told as. */
static int64_t tile_dest(const Judge *j, const HwTileStyle *style) {
    if (style->has_dest)
        return units(j, style->dest);
    return style->out_backing ? -1 : j->must[HW_F_OUT_ADDR].num;
}

/* A machine may have several styles of one operation between the same memories:
 * whether the instruction can be of this one. */
static bool style_agrees(const Judge *j, const HwTileStyle *style) {
    bool dest = !given(j, HW_F_TILE_DEST) ||
                j->f->num[HW_F_TILE_DEST] == tile_dest(j, style);
    for (int i = 0; i < 2 && !j->w->tile.c; i++)
        dest &= buffer_agrees(j, i, &style->given.buffer[i]);
    return dest && is_step(j->w, style);
}

/* One that agrees with all that is told, or the first that is possible. */
static const HwTileStyle *style_of(const Judge *j) {
    const HwTiling *tiling = &j->spec->tiling;
    const HwTileStyle *first = NULL;
    const Work *w = j->w;
    for (uint32_t i = 0; i < tiling->tiles.n; i++) {
        const HwTileStyle *s = &tiling->tiles.style[i];
        bool possible = tiles_may_be(j->spec, w, s);
        if (possible && style_agrees(j, s))
            return s;
        first = possible && !first ? s : first;
    }
    return first;
}

void judge_tile(Judge *j) {
    const Work *w = j->w;
    HwField tile[] = {HW_F_TILE_W,        HW_F_TILE_H,     HW_F_TILE_BUFFER0,
                      HW_F_TILE_BUFFER1,  HW_F_TILE_DEST,  HW_F_TILE_C,
                      HW_F_TILE_IN_C,     HW_F_TILE_STAYS, HW_F_TILE_WEIGHTS0,
                      HW_F_TILE_WEIGHTS1, HW_F_TILE_SUMS};
    enum { N = sizeof tile / sizeof *tile, OF_NEST = 5 };
    for (int i = w->tile.on ? OF_NEST : 0; i < N && !w->tile.c; i++)
        must_be_unset(j, tile[i]);
    if (!w->tile.on)
        return;
    const HwTileStyle *style = style_of(j);
    if (!style) {
        fault(j->run,
              "the machine has no such tiles of %s between these "
              "memories",
              hw_op_name[w->op]);
        return;
    }
    judge_tile_size(j, style);
    for (int i = 0; i < 2 && !w->tile.c; i++)
        judge_buffer(j, i, &style->given.buffer[i]);
    must_be(j, HW_F_TILE_DEST, tile_dest(j, style));
}
