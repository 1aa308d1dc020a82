/* fields.c - tokens that follow from others must say so; see work.h.
 *
 * Input: an instruction whose fields make sense as work, and that work.
 * Output: a violation for each token that says something else than what its
 * meaning must be, given the rest: a constant, what an operation does not have
 * (hwspec/absent.c), an operand's place in all the ways that tokens tell it,
 * copies that the machine can store, modes that follow from sizes, what the
 * engine allows. Of fields that are free, flags are 0 or 1, and two tokens of
 * one meaning say the same. What the row declares unread is passed over.
 */
#include "sim/blobs.h"
#include "sim/engine.h"
#include "sim/host.h"

#include "base/arith.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_SHARE = 1 << 15 }; /* parts of a memory */

/* What a field must be, as far as it follows. */
typedef struct Must {
    enum { MUST_NOTHING, MUST_BE, MUST_BE_UNSET } kind;
    int64_t num;
} Must;

typedef struct Judge {
    Run *run;
    const HwSpec *spec;
    const HwRow *row;
    const HwForm *form;
    const HwFields *f;
    const Work *w;
    Must must[HW_F_COUNT];
} Judge;

/* Fields of operands come in threes. */
static HwOperand operand_of(HwField field) {
    return (HwOperand)((field - HW_F_IN_ADDR) % 3);
}

static bool is_move(const Work *w) {
    return w->op == HW_OP_LOAD || w->op == HW_OP_STORE;
}

/* Nothing but names and what the image has. */
static bool is_layer(const Work *w) {
    return w->op == HW_OP_HOST || w->op == HW_OP_LAYER;
}

static bool is_run(const Work *w) {
    return !is_move(w) && !is_layer(w) && w->op != HW_OP_CONCAT &&
           w->op != HW_OP_LOAD_WEIGHTS;
}

static void must_be(Judge *j, HwField field, int64_t num) {
    j->must[field] = (Must){MUST_BE, num};
}

static void unset(Judge *j, HwField field) {
    j->must[field] = (Must){MUST_BE_UNSET, 0};
}

static bool given(const Judge *j, HwField field) {
    return j->f->set[field];
}

static bool says(const Judge *j, HwField field) {
    return j->f->set[field] && j->f->num[field] != 0;
}

/* ---- operands ---- */

static bool has_operand(const Work *w, HwOperand operand) {
    if (operand == HW_OUT && w->op == HW_OP_CONCAT)
        return true;
    return operand == HW_IN2 ? is_run(w) && w->has_in2
                             : is_run(w) || is_move(w);
}

static void judge_address(Judge *j, HwOperand operand) {
    uint32_t memory;
    uint64_t offset;
    HwFields same = {0};
    static const HwField told[] = {HW_F_IN_ADDR,    HW_F_IN_MEMORY,
                                   HW_F_IN_BUFFER,  HW_F_IN_OFFSET,
                                   HW_F_IN_BACKING, HW_F_IN_IO};
    if (!insn_operand(j->spec, j->w->op, j->f, operand, &memory, &offset))
        return;
    insn_set_operand(j->spec, &same, operand, memory, offset);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        HwField field = told[i] + (HwField)operand;
        must_be(j, field, same.num[field]);
    }
}

static void judge_extent(Judge *j, HwOperand operand, const Extent *e) {
    must_be(j, HW_FIELD_OF(operand, W), e->w);
    must_be(j, HW_FIELD_OF(operand, H), e->h);
    must_be(j, HW_FIELD_OF(operand, C), e->c);
}

/* Of an operand that lies in rows of its own. */
static void judge_turns(Judge *j, HwOperand operand, const Extent *e) {
    bool lines = says(j, HW_FIELD_OF(operand, BAND));
    bool ring = says(j, HW_FIELD_OF(operand, RING));
    if (!lines) {
        must_be(j, HW_FIELD_OF(operand, KEEP), 0);
        must_be(j, HW_FIELD_OF(operand, SPAN), 0);
        must_be(j, HW_FIELD_OF(operand, SHIFT), 0);
    }
    HwField band = HW_FIELD_OF(operand, BAND);
    HwField shift = HW_FIELD_OF(operand, SHIFT);
    if (lines)
        must_be(j, HW_FIELD_OF(operand, RING), 0);
    if (lines && says(j, shift) && j->f->num[shift] >= j->f->num[band])
        fault(j->run, "%s is %" PRId64 ", not below %s", hw_field_name[shift],
              j->f->num[shift], hw_field_name[band]);
    if (lines || ring)
        return;
    must_be(j, HW_FIELD_OF(operand, ROW), 0);
    must_be(j, HW_FIELD_OF(operand, COL), 0);
    must_be(j, HW_FIELD_OF(operand, PITCH), e->w);
}

/* Four fields, `first` the one of full sections; false where the row lacks
 * some. */
static bool read_copies(const Judge *j, const HwField field[4], Repl *out) {
    uint32_t v[4];
    for (int i = 0; i < 4; i++) {
        int64_t num = given(j, field[i]) ? j->f->num[field[i]] : -1;
        if (!given(j, field[i]))
            return false;
        v[i] = num < 0 || num > UINT32_MAX ? UINT32_MAX : (uint32_t)num;
    }
    *out = (Repl){v[0], v[1], v[2], v[3]};
    return true;
}

static bool is_zero(Repl r) {
    return !r.full && !r.sections && !r.units && !r.width;
}

/* All are 0 where a memory stores none and none are made on the fly. */
static void judge_copies(Judge *j, const HwField field[4], const char *what,
                         uint32_t channels, bool on_the_fly) {
    Repl repl;
    int32_t token = insn_token_of(j->form, field[0]);
    if (!read_copies(j, field, &repl) || token < 0 ||
        j->form->token[token].free || (on_the_fly && is_zero(repl)) ||
        hwspec_repl_allowed(j->spec, channels, repl, on_the_fly))
        return;
    fault(j->run, "%s: %u channels cannot be stored as %u %u %u %u", what,
          channels, repl.full, repl.sections, repl.units, repl.width);
}

/* The larger volume has copies only where the memory holds such. */
static void judge_part(Judge *j, HwOperand operand, const char *what,
                       bool stores_copies) {
    HwField field[] = {
        HW_FIELD_OF(operand, PART_FULL), HW_FIELD_OF(operand, PART_REPL),
        HW_FIELD_OF(operand, PART_UNITS), HW_FIELD_OF(operand, PART_WIDTH)};
    HwField start = HW_FIELD_OF(operand, PART_START);
    HwField whole = HW_FIELD_OF(operand, PART_C);
    if (says(j, HW_FIELD_OF(operand, PART))) {
        if (given(j, whole) && !says(j, whole))
            fault(j->run, "%s is part of a volume without channels", what);
        else if (given(j, whole) && stores_copies)
            judge_copies(j, field, what, (uint32_t)j->f->num[whole], false);
        for (int i = 0; i < 4 && !stores_copies; i++)
            unset(j, field[i]);
        return;
    }
    for (int i = 0; i < 4; i++)
        unset(j, field[i]);
    unset(j, start);
    unset(j, whole);
}

static void judge_operand(Judge *j, HwOperand operand, const Extent *e) {
    static const char *const what[] = {"input", "second input", "output"};
    uint32_t memory;
    uint64_t offset;
    HwField field[] = {HW_FIELD_OF(operand, FULL), HW_FIELD_OF(operand, REPL),
                       HW_FIELD_OF(operand, UNITS),
                       HW_FIELD_OF(operand, WIDTH)};
    if (!insn_operand(j->spec, j->w->op, j->f, operand, &memory, &offset))
        return;
    bool stores_copies = j->spec->replication.memories >> memory & 1;
    judge_address(j, operand);
    judge_turns(j, operand, e);
    judge_part(j, operand, what[operand], stores_copies);
    judge_copies(j, field, what[operand], e->c, !stores_copies);
}

static void judge_operands(Judge *j) {
    const Work *w = j->w;
    if (!is_layer(w))
        for (HwField f = HW_F_IN_ADDR; f < HW_F_COUNT; f++)
            if (!has_operand(w, operand_of(f)))
                unset(j, f);
    if (has_operand(w, HW_IN))
        judge_operand(j, HW_IN, &w->in);
    if (has_operand(w, HW_IN2))
        judge_operand(j, HW_IN2, &w->in2);
    if (is_run(w) && w->has_in2)
        judge_extent(j, HW_IN2, &w->in2);
    if (has_operand(w, HW_OUT) && w->op != HW_OP_CONCAT)
        judge_operand(j, HW_OUT, is_move(w) ? &w->in : &w->out);
    if (is_move(w))
        judge_extent(j, HW_OUT, &w->in);
}

/* ---- modes ---- */

static void judge_windows(Judge *j) {
    const Work *w = j->w;
    if (w->op == HW_OP_FC) {
        must_be(j, HW_F_KERNEL_W, w->in.w);
        must_be(j, HW_F_KERNEL_H, w->in.h);
    }
    if (op_has_pool(w->op)) {
        const Window *p = w->pool;
        bool whole = p[ROWS].kernel == w->mid.h && p[COLS].kernel == w->mid.w &&
                     !p[ROWS].pad && !p[COLS].pad;
        must_be(j, HW_F_POOL_GLOBAL, whole && w->out.h == 1 && w->out.w == 1);
    }
    if (op_is_conv(w->op) || w->op == HW_OP_DECONV)
        must_be(j, HW_F_GROUPS,
                w->op == HW_OP_CONV ? 1 : work_groups(j->run, w));
}

static void judge_method(Judge *j) {
    const char *method = given(j, HW_F_METHOD) ? j->f->str[HW_F_METHOD] : NULL;
    if (j->w->op == HW_OP_UPSAMPLE && method &&
        strcmp(method, "NearestNeighbor") != 0 && strcmp(method, "Zero") != 0)
        fault(j->run, "`%s` is neither NearestNeighbor nor Zero", method);
}

/* What the image says that the host runs. */
static void judge_kind(Judge *j) {
    const HostLayer *layer = host_layer(j->run, j->w->name);
    const char *kind =
        given(j, HW_F_HOST_KIND) ? j->f->str[HW_F_HOST_KIND] : NULL;
    if (layer && kind && strcmp(kind, layer->kind) != 0)
        fault(j->run, "a layer of kind `%s`; in the image `%s`", kind,
              layer->kind);
}

/* Weights are those of a layer, not of one of its tiles; one whose own name
 * ends as that of a tile has the number 0. */
static void judge_weights_name(Judge *j) {
    const Work *w = j->w;
    bool numbered = w->layer[insn_tile_mark(w->layer)];
    if (w->op == HW_OP_LOAD_WEIGHTS &&
        ((strcmp(w->name, w->layer) != 0) != numbered || w->first))
        fault(j->run, "weights of %s, a tile of %s", w->name, w->layer);
}

static void judge_flags(Judge *j) {
    const Work *w = j->w;
    bool scales = w->op == HW_OP_SCALE;
    must_be(j, HW_F_ADD,
            scales ? -1 : w->op == HW_OP_ADD || w->op == HW_OP_ADD_CHANNELS);
    must_be(j, HW_F_SCALE, scales);
    if (says(j, HW_F_PRELU))
        must_be(j, HW_F_RELU, 1); /* a relu with slopes */
    if (scales)
        must_be(j, HW_F_BIAS, 1);
    else if (j->run->listing->has_image)
        must_be(j, HW_F_BIAS, blob_find(j->run, w->layer, "bias") != NULL);
    for (HwField f = 0; f < HW_F_IN_ADDR; f++)
        if (hw_field_is_wait(f) && !insn_wait_stands(j->spec, f))
            must_be(j, f, 0);
    must_be(j, HW_F_BLOCK, is_move(w) || !j->spec->engine[w->engine].ahead);
}

/* Rows of the weight cache, where the instruction tells them. */
static bool weight_rows(const Judge *j, uint64_t *rows) {
    const Work *w = j->w;
    static const HwField field[] = {HW_F_IN_FULL, HW_F_IN_REPL, HW_F_IN_UNITS,
                                    HW_F_IN_WIDTH};
    Repl repl = {0};
    bool known = read_copies(j, field, &repl);
    *rows =
        hwspec_weight_rows(repl, w->conv[ROWS].kernel * w->conv[COLS].kernel);
    return known || !j->spec->replication.section;
}

static void judge_weights(Judge *j) {
    const Work *w = j->w;
    const HwWeightCache *cache = &j->spec->weight_cache;
    uint64_t rows;
    bool weighs = op_is_conv(w->op) || w->op == HW_OP_DECONV;
    if (!weighs)
        must_be(j, HW_F_PINGPONG, 1);
    if (!weighs || !weight_rows(j, &rows))
        return;
    must_be(j, HW_F_PINGPONG, rows <= cache->pingpong);
    must_be(j, HW_F_HALFRATE, cache->full_rate && rows > cache->full_rate);
}

static void judge_parallel(Judge *j) {
    const Work *w = j->w;
    const Place *a = &w->in_at, *b = &w->in2_at;
    const HwMemory *m = &j->spec->memory[a->memory];
    uint32_t e = m->layout->element;
    if (!w->parallel_read || !w->has_in2)
        return;
    if (a->memory != b->memory ||
        !hwspec_in_partitions(m, a->first * e, (a->end - a->first) * e,
                              b->first * e, (b->end - b->first) * e))
        fault(j->run, "its operands cannot be read at once: both lie in one "
                      "partition");
}

/* ---- tiles ---- */

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

static void judge_tile(Judge *j) {
    const Work *w = j->w;
    HwField tile[] = {HW_F_TILE_W,        HW_F_TILE_H,     HW_F_TILE_BUFFER0,
                      HW_F_TILE_BUFFER1,  HW_F_TILE_DEST,  HW_F_TILE_C,
                      HW_F_TILE_IN_C,     HW_F_TILE_STAYS, HW_F_TILE_WEIGHTS0,
                      HW_F_TILE_WEIGHTS1, HW_F_TILE_SUMS};
    enum { N = sizeof tile / sizeof *tile, OF_NEST = 5 };
    for (int i = w->tile.on ? OF_NEST : 0; i < N && !w->tile.c; i++)
        unset(j, tile[i]);
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

/* ---- notes of concats ---- */

/* Extent that the row tells; 0: none, or no possible one. */
static uint32_t told_extent(const Judge *j, HwField field) {
    int64_t num = given(j, field) ? j->f->num[field] : 0;
    return num < 1 || num > INT32_MAX ? 0 : (uint32_t)num;
}

/* Where the row tells that the concat is part of a larger volume: which
 * channels. */
static void read_noted_part(const Judge *j, Spot *spot) {
    if (!says(j, HW_F_OUT_PART))
        return;
    spot->part = true;
    spot->whole.c = told_extent(j, HW_F_OUT_PART_C);
    spot->part_c = told_extent(j, HW_F_OUT_PART_START);
}

/* What the row tells of its volume; a row without sizes: just where. */
static Spot noted_spot(const Judge *j, uint32_t memory, uint64_t start) {
    Volume v = {told_extent(j, HW_F_OUT_C),
                told_extent(j, HW_F_OUT_H),
                told_extent(j, HW_F_OUT_W),
                {0}};
    Spot spot = {.what = "the concat",
                 .memory = memory,
                 .offset = start,
                 .c = v.c,
                 .whole = v};
    read_noted_part(j, &spot);
    return spot;
}

/* Where its first element lies, in cells; false where the row does not tell
 * enough: parts between parts are addressed by the volume that they are part
 * of, and its size. */
static bool first_cell(const Judge *j, const Spot *spot, uint64_t *cell) {
    const Layout *layout = j->spec->memory[spot->memory].layout;
    *cell = spot->offset / layout->element;
    if (!spot->part || layout_granule(layout))
        return true;
    if (!spot->whole.h || !spot->whole.w)
        return false;
    if (spot->part_c < spot->whole.c)
        *cell += address_cell(layout, &spot->whole, spot->part_c, 0, 0, 0);
    return true;
}

/* What lies at the note's start; NULL: that is not told, or, with a violation,
 * nothing does. */
static const Place *noted(Judge *j, uint32_t *memory, uint64_t *start) {
    if (!insn_operand(j->spec, j->w->op, j->f, HW_OUT, memory, start)) {
        fault(j->run, "its volume lies in no memory");
        return NULL;
    }
    Spot spot = noted_spot(j, *memory, *start);
    uint64_t cell;
    if (!first_cell(j, &spot, &cell))
        return NULL;
    const Place *first = memory_written(j->run, *memory, cell);
    if (!first)
        fault(j->run, "nothing lies at its start, %s",
              address_text(j->run, *memory, *start));
    return first;
}

static void judge_end(Judge *j, uint32_t memory, uint64_t end) {
    HwFields f = {0};
    insn_set_operand(j->spec, &f, HW_OUT, memory, end);
    must_be(j, HW_F_END, f.num[HW_F_OUT_ADDR]);
    must_be(j, HW_F_END_BUFFER, f.num[HW_F_OUT_BUFFER]);
    must_be(j, HW_F_END_OFFSET, f.num[HW_F_OUT_OFFSET]);
}

/* The note's volume, as high and wide as the one that its first part is part
 * of, with as many channels as its sections have: all, or, of a concat in a
 * concat, the first ones. False where rows do not tell. */
static bool noted_volume(Judge *j, const Place *first, Volume *out) {
    static const HwField field[] = {HW_F_OUT_FULL, HW_F_OUT_REPL,
                                    HW_F_OUT_UNITS, HW_F_OUT_WIDTH};
    Repl repl;
    if (!first->part || !first->whole.c || !read_copies(j, field, &repl))
        return false;
    uint32_t section = j->spec->replication.section;
    uint64_t c =
        (uint64_t)repl.full * section + (uint64_t)repl.sections * repl.width;
    *out = first->whole;
    if (c < out->c)
        out->c = (uint32_t)c;
    out->repl = repl.sections ? repl : (Repl){0};
    judge_copies(j, field, "the concat", out->c, false);
    if (!out->c)
        fault(j->run, "the concat has no channels");
    return out->c > 0;
}

/* Where the note says its size, its elements are there; or it is of as many
 * rows as the last engine has made. */
static void judge_noted_size(Judge *j, uint32_t memory, uint64_t start,
                             const Place *first) {
    Run *run = j->run;
    Spot spot = noted_spot(j, memory, start);
    if (!given(j, HW_F_OUT_C) || !given(j, HW_F_OUT_H) ||
        !given(j, HW_F_OUT_W) ||
        (spot.whole.h < first->h && spot.whole.h == run->rows_made))
        return;
    Place place;
    if (first->ring || !place_make(run, &spot, &place))
        return;
    bool on_host = run->on_host, reads = run->reads;
    run->on_host = true; /* it is no reader that anybody waits for */
    memory_read(run, &place, place_box(&place), "the concat", NULL);
    run->on_host = on_host;
    run->reads = reads;
}

/* Its parts say what volume it is, where rows have tokens for that; else its
 * bytes tell its end. */
static void judge_note(Judge *j) {
    uint32_t memory;
    uint64_t start;
    Volume v;
    const Place *first = noted(j, &memory, &start);
    if (!first)
        return;
    int64_t bytes = given(j, HW_F_BYTES) ? j->f->num[HW_F_BYTES] : 0;
    judge_address(j, HW_OUT);
    if (noted_volume(j, first, &v)) {
        bytes = (int64_t)layout_bytes(j->spec->memory[memory].layout, &v);
        must_be(j, HW_F_BYTES, bytes);
    }
    if (bytes < 0 || bytes > INT64_MAX / 2)
        fault(j->run, "the concat takes %" PRId64 " bytes", bytes);
    else if (given(j, HW_F_BYTES))
        judge_end(j, memory, start + (uint64_t)bytes);
    judge_noted_size(j, memory, start, first);
}

/* ---- what all of it makes of the tokens ---- */

static void judge_absent(Judge *j) {
    int64_t value;
    for (HwField f = 0; f < HW_F_IN_ADDR; f++) {
        HwAbsent absent = insn_absent(j->w->op, f, &value);
        if (absent == HW_UNSET)
            unset(j, f);
        else if (absent == HW_NEUTRAL)
            must_be(j, f, value);
    }
}

static bool is_absent(const Judge *j, HwField field) {
    int64_t value;
    return j->must[field].kind == MUST_BE_UNSET ||
           (field < HW_F_IN_ADDR &&
            insn_absent(j->w->op, field, &value) != HW_PRESENT);
}

/* Of two meanings the one that the operation has. */
static HwField meaning_of(const Judge *j, const HwToken *token) {
    bool other = token->also != HW_F_CONST && is_absent(j, token->from);
    return other ? token->also : token->from;
}

static bool tells_operations(const Judge *j, const HwToken *token) {
    for (uint32_t s = 0; s < j->row->n_serves; s++)
        for (uint32_t k = 0; k < j->row->serve[s].n; k++)
            if (!strcmp(j->row->serve[s].when[k].token, token->name))
                return true;
    return false;
}

static void judge_number(Judge *j, const HwToken *token, int64_t got,
                         int64_t want) {
    if (got != want)
        fault(j->run, "%s is %" PRId64 ", and must be %" PRId64, token->name,
              got, want);
}

static void judge_text(Judge *j, const HwToken *token, const char *got,
                       const char *want) {
    if (strcmp(got ? got : "", want) != 0)
        fault(j->run, "%s is `%s`, and must be `%s`", token->name, got, want);
}

static void judge_limit(Judge *j, const HwToken *token, HwField field) {
    HwLimitKind limit;
    int64_t num = j->f->num[field];
    if (!is_run(j->w) || !insn_limit(field, &limit))
        return;
    const HwEngine *engine = &j->spec->engine[j->w->engine];
    const HwRange *range = &engine->limit[limit];
    if (range->set && (num < 0 || !hw_range_has(range, (uint64_t)num)))
        fault(j->run, "%s is %" PRId64 "; engine %s takes %s", token->name, num,
              engine->name, hw_range_text(j->run->work, range));
}

static void judge_free(Judge *j, const HwToken *token, HwField field,
                       const HwValue *value) {
    if (token->is_string) {
        judge_text(j, token, value->str, j->f->str[field]);
        return;
    }
    judge_number(j, token, value->num,
                 insn_token_value(token, j->f->num[field]));
    if (hw_field_kind(field) == HW_FLAG && j->f->num[field] >> 1)
        fault(j->run, "%s is %" PRId64 ", neither 0 nor 1", token->name,
              j->f->num[field]);
    judge_limit(j, token, field);
}

static void judge_token(Judge *j, const HwToken *token, const HwValue *value) {
    if (!token->name || token->from == HW_F_MNEMONIC || token->unread ||
        token->free || token->later)
        return;
    if (token->from == HW_F_CONST && tells_operations(j, token))
        return;
    if (token->from == HW_F_CONST && token->is_string) {
        judge_text(j, token, value->str, token->constant_text);
        return;
    }
    if (token->from == HW_F_CONST) {
        judge_number(j, token, value->num, token->constant);
        return;
    }
    HwField field = meaning_of(j, token);
    const Must *must = &j->must[field];
    if (must->kind == MUST_NOTHING)
        judge_free(j, token, field, value);
    else if (token->is_string)
        judge_text(j, token, value->str, "0");
    else
        judge_number(j, token, value->num,
                     must->kind == MUST_BE_UNSET
                         ? 0
                         : insn_token_value(token, must->num));
}

/* A listing has placeholders in all its instructions, or in none. */
static void judge_placeholders(Judge *j, const HwInsn *insn) {
    const HwToken *some = NULL;
    bool put = false;
    for (uint32_t i = 0; i < j->form->n; i++) {
        const HwToken *token = &j->form->token[i];
        if (!token->later || token->unread)
            continue;
        some = token;
        put = put || (token->is_string
                          ? strcmp(insn->value[i].str, token->constant_text)
                          : insn->value[i].num != token->constant);
    }
    if (!some)
        return;
    if (!j->run->placeholders)
        j->run->placeholders = put ? PUT_DONE : PUT_LATER;
    else if (put != (j->run->placeholders == PUT_DONE))
        fault(j->run,
              "%s and the like are %s here, %s in instructions before "
              "this one",
              some->name, put ? "numbers" : "placeholders",
              put ? "placeholders" : "numbers");
}

void fields_judge(Run *run, const HwInsn *insn, const HwFields *fields,
                  const Work *w) {
    const HwRow *row = &run->spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    Judge j = {.run = run,
               .spec = run->spec,
               .row = row,
               .form = form,
               .f = fields,
               .w = w};
    judge_absent(&j);
    judge_operands(&j);
    if (is_run(w)) {
        judge_windows(&j);
        judge_method(&j);
        judge_weights(&j);
        judge_parallel(&j);
        judge_tile(&j);
    }
    if (is_run(w) || is_move(w))
        judge_flags(&j);
    if (is_layer(w))
        judge_kind(&j);
    judge_weights_name(&j);
    if (w->op == HW_OP_CONCAT)
        judge_note(&j);
    judge_placeholders(&j, insn);
    if (is_run(w))
        run->rows_made = w->out.h;
    for (uint32_t i = 0; i < form->n; i++)
        judge_token(&j, &form->token[i], &insn->value[i]);
}
