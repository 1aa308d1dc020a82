/* fields_notes.c - notes of concats must say what lies there; see fields.h.
 *
 * Input: a note. Output: what its tokens must be, and a violation where nothing
 * lies at its start, or not all that it says.
 */
#include "sim/fields.h"

#include <inttypes.h>

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
void judge_note(Judge *j) {
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
