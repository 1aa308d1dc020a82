/* origin.c - where the values of cells come from; see origin.h.
 *
 * Input: places. Output: yes or no. Invariant: a cell has an origin only while
 * it holds what a copy wrote.
 */
#include "sim/origin.h"

#include "sim/run.h"

#include <string.h>

static CellOrigin origin_of(const Run *run, uint32_t memory, uint64_t cell) {
    const Page *page = page_of(&run->cells[memory], cell);
    uint64_t at = cell & (PAGE_CELLS - 1);
    if (!page || !page->writer[at])
        return (CellOrigin){0};
    if (page->origin && page->origin[at].writer)
        return page->origin[at];
    return (CellOrigin){page->writer[at], cell};
}

static uint64_t place_cell(const Place *p, uint32_t c, uint32_t h, uint32_t w) {
    return p->start + p->c_at[c] + p->h_at[h] + place_columns(p, h)[w];
}

/* ---- copies ---- */

CellOrigin *origins_read(Run *run, const Place *from) {
    size_t n = (size_t)box_count(from, place_box(from)), i = 0;
    CellOrigin *origin = ARENA_ARRAY(run->work, CellOrigin, n + 1);
    for (uint32_t c = 0; c < from->c; c++)
        for (uint32_t h = 0; h < from->h; h++)
            for (uint32_t w = 0; w < from->w; w++)
                origin[i++] =
                    origin_of(run, from->memory, place_cell(from, c, h, w));
    return origin;
}

static void origin_set(Run *run, uint32_t memory, uint64_t cell,
                       const CellOrigin *origin) {
    Page *page = page_of(&run->cells[memory], cell);
    if (!page->origin)
        page->origin = ARENA_ARRAY(run->hold, CellOrigin, PAGE_CELLS);
    page->origin[cell & (PAGE_CELLS - 1)] = *origin;
}

void origins_write(Run *run, const Place *to, const CellOrigin *origin) {
    for (uint32_t c = 0; c < to->c; c++)
        for (uint32_t h = 0; h < to->h; h++)
            for (uint32_t w = 0; w < to->w; w++, origin++)
                for (uint32_t k = 0; k < to->copies[c]; k++)
                    origin_set(run, to->memory,
                               place_cell(to, c, h, w) + k * to->copy_step,
                               origin);
}

/* ---- reading ---- */

/* How far the reader's elements are from those of a writer. */
typedef struct OriginShift {
    uint32_t writer;
    uint32_t c, h, w; /* the writer's element that was looked for last */
    int64_t off[3];   /* channels, rows, columns */
} OriginShift;

typedef struct OriginReading {
    Run *run;
    const Place *place;
    uint32_t last;     /* in `shift` */
    const Place *part; /* a writer that says what it is part of */
    VEC(OriginShift) shift;
} OriginReading;

static bool is_at(const Place *p, const OriginShift *s, uint64_t cell) {
    return s->c < p->c && s->h < p->h && s->w < p->w &&
           place_cell(p, s->c, s->h, s->w) == cell;
}

static bool find_in_row(const Place *p, OriginShift *s, uint64_t cell) {
    for (s->w = 0; s->w < p->w; s->w++)
        if (is_at(p, s, cell))
            return true;
    return false;
}

/* The writer's element in the cell: most often the one behind the last. */
static bool element_find(const Place *p, OriginShift *s, uint64_t cell) {
    s->w++;
    if (is_at(p, s, cell))
        return true;
    for (s->c = 0; s->c < p->c; s->c++)
        for (s->h = 0; s->h < p->h; s->h++) {
            uint64_t row = p->start + p->c_at[s->c] + p->h_at[s->h];
            if (cell >= row && find_in_row(p, s, cell))
                return true;
        }
    return false;
}

/* Its entry among the shifts. */
static OriginShift *shift_of(OriginReading *r, uint32_t writer, bool *is_new) {
    *is_new = false;
    for (uint32_t i = 0; i < r->shift.n; i++) {
        uint32_t at = (r->last + i) % r->shift.n;
        if (r->shift.at[at].writer == writer) {
            r->last = at;
            return &r->shift.at[at];
        }
    }
    *is_new = true;
    r->last = r->shift.n;
    vec_push(r->run->work, &r->shift, ((OriginShift){.writer = writer}));
    return &r->shift.at[r->last];
}

static bool is_plain(const Place *p) {
    return !p->ring && !p->weights_of && p->c_at && !p->copy_step;
}

/* Whether the cell, which its reader takes for element c, h, w, can be that. */
static bool origin_agrees(OriginReading *r, uint32_t c, uint32_t h, uint32_t w,
                          uint64_t cell) {
    bool is_new;
    CellOrigin origin = origin_of(r->run, r->place->memory, cell);
    if (!origin.writer)
        return false;
    const Writer *writer = &r->run->writer.at[origin.writer - 1];
    OriginShift *s = shift_of(r, origin.writer, &is_new);
    if (writer->kind != WRITER_ENGINE || !is_plain(&writer->place) ||
        writer->place.memory != r->place->memory ||
        !parents_agree(&r->part, &writer->place) ||
        !element_find(&writer->place, s, origin.cell))
        return false;
    int64_t off[3] = {(int64_t)s->c - c, (int64_t)s->h - h, (int64_t)s->w - w};
    if (is_new)
        memcpy(s->off, off, sizeof off);
    return memcmp(s->off, off, sizeof off) == 0 &&
           (origin.cell != cell || !off[2]);
}

bool origins_agree(Run *run, const Place *p, Box box) {
    OriginReading r = {.run = run, .place = p};
    bool agree = run->spec->memory[p->memory].role == HW_ACTIVE && is_plain(p);
    for (uint32_t c = 0; agree && c < p->c; c++)
        for (uint32_t h = box.row; agree && h < box.row + box.rows; h++)
            for (uint32_t w = box.col; agree && w < box.col + box.cols; w++)
                agree = origin_agrees(&r, c, h, w, place_cell(p, c, h, w));
    return agree;
}
