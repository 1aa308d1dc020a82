/* memory.c - pages of cells, and who wrote them; see memory.h.
 *
 * Input: places and values. Output: values, and a violation where a cell does
 * not hold what its reader wants. Invariants: a cell's writer number is that of
 * the last write; pages exist only where something was written.
 */
#include "sim/memory.h"

#include "sim/origin.h"
#include "sim/run.h"

#include <inttypes.h>
#include <string.h>

enum {
    KNOWN = 8 /* writers that a read remembers its verdict on */
};

/* What hwspecs allow, of elements of a byte; bounds the directories. */
static const uint64_t MAX_CELLS = UINT64_C(1) << 48;

void memory_open(Run *run) {
    const HwSpec *spec = run->spec;
    run->cells = ARENA_ARRAY(run->hold, Cells, spec->n_memories);
    for (uint32_t i = 0; i < spec->n_memories; i++) {
        const HwMemory *m = &spec->memory[i];
        uint64_t n = m->size / m->layout->element;
        n = n < MAX_CELLS ? n : MAX_CELLS;
        run->cells[i].n = n;
        run->cells[i].directory = ARENA_ARRAY(
            run->hold, Page **, (n >> (PAGE_BITS + DIRECTORY_BITS)) + 1);
    }
}

static Page *page_made(Run *run, Cells *cells, uint64_t cell) {
    Page *page = page_of(cells, cell);
    if (page)
        return page;
    Page ***pages = &cells->directory[cell >> (PAGE_BITS + DIRECTORY_BITS)];
    if (!*pages)
        *pages = ARENA_ARRAY(run->hold, Page *, DIRECTORY_PAGES);
    page = ARENA_NEW(run->hold, Page);
    page->writer = ARENA_ARRAY(run->hold, uint32_t, PAGE_CELLS);
    if (!run->options.memory_only)
        page->value = ARENA_ARRAY(run->hold, float, PAGE_CELLS);
    (*pages)[cell >> PAGE_BITS & (DIRECTORY_PAGES - 1)] = page;
    return page;
}

uint32_t memory_writer(Run *run, const Place *place, const char *name,
                       WriterKind kind) {
    if (run->options.time_only)
        return 0;
    Writer writer = {.insn = run->insn,
                     .name = name,
                     .kind = kind,
                     .place = place_keep(run->hold, place)};
    vec_push(run->hold, &run->writer, writer);
    return run->writer.n;
}

/* How many of the first cells one writer wrote: whole blocks of them, which are
 * compared side by side. */
static uint64_t same_writer(const uint32_t *at, uint64_t n, uint32_t writer) {
    enum { BLOCK = 8 };
    uint64_t same = 0;
    for (uint32_t other = 0; n - same >= BLOCK; same += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++)
            other |= at[same + i] ^ writer;
        if (other)
            break;
    }
    return same;
}

/* w_at: from the box's first column on. */
static void write_row(Run *run, Cells *cells, const uint64_t *w_at,
                      uint32_t cols, uint64_t row, uint32_t writer,
                      const float *values) {
    uint64_t held = UINT64_MAX;
    Page *page = NULL;
    for (uint32_t i = 0; i < cols; i++) {
        uint64_t cell = row + w_at[i];
        if (cell >> PAGE_BITS != held) {
            held = cell >> PAGE_BITS;
            page = page_made(run, cells, cell);
        }
        uint32_t at = (uint32_t)(cell & (PAGE_CELLS - 1));
        cells->live += page->writer[at] == 0;
        page->writer[at] = writer;
        if (page->origin)
            page->origin[at].writer = 0;
        if (values)
            page->value[at] = values[i];
    }
}

static bool is_straight(const uint64_t *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (at[i] != at[0] + i)
            return false;
    return true;
}

/* Rows of the box whose cells follow each other, all of them or each; 0: not
 * even those of a row. */
static uint32_t rows_together(const Place *p, Box box) {
    const uint64_t *row = place_columns(p, box.row) + box.col;
    uint32_t n = 1;
    if (p->ring || p->w_step || !is_straight(row, box.cols))
        return 0;
    while (n < box.rows &&
           p->h_at[box.row + n] == p->h_at[box.row] + (uint64_t)n * box.cols)
        n++;
    return n == box.rows ? n : 1;
}

/* Cells of one pixel that follow each other, from the pixel's first. */
typedef struct Span {
    uint64_t at, n;
} Span;

/* Spans of all channels and copies, if they are long enough to go by pixels;
 * else 0. */
static uint32_t pixel_spans(const Run *run, const Place *p, Span **out) {
    enum { SHORT = 8 };
    uint32_t n = 0, copies = 1, cells = 0;
    Span *span = ARENA_ARRAY(run->work, Span, p->c / SHORT + 2);
    for (uint32_t k = 0; k < copies; k++)
        for (uint32_t c = 0; c < p->c; c++) {
            uint64_t at = p->c_at[c] + k * p->copy_step;
            copies = p->copies[c] > copies ? p->copies[c] : copies;
            if (p->copies[c] <= k)
                continue;
            cells++;
            if (n && span[n - 1].at + span[n - 1].n == at)
                span[n - 1].n++;
            else if (n <= p->c / SHORT)
                span[n++] = (Span){at, 1};
            else
                return 0;
        }
    *out = span;
    return n * SHORT <= cells ? n : 0;
}

static void write_span(Run *run, Cells *cells, uint64_t cell, uint64_t n,
                       uint32_t writer) {
    while (n) {
        Page *page = page_made(run, cells, cell);
        uint64_t at = cell & (PAGE_CELLS - 1), fresh = 0;
        uint64_t part = n < PAGE_CELLS - at ? n : PAGE_CELLS - at;
        uint32_t *to = page->writer + at;
        for (uint64_t i = 0; i < part; i++) {
            fresh += to[i] == 0;
            to[i] = writer;
        }
        if (page->origin)
            memset(page->origin + at, 0, part * sizeof *page->origin);
        cells->live += fresh;
        cell += part;
        n -= part;
    }
}

/* Without values the order does not matter: pixel by pixel, where channels lie
 * side by side, is the quickest. */
static bool write_pixels(Run *run, Cells *cells, const Place *p, Box box,
                         uint32_t writer) {
    Span *span;
    uint32_t n = pixel_spans(run, p, &span);
    for (uint32_t h = 0; n && h < box.rows; h++)
        for (uint32_t w = 0; w < box.cols; w++) {
            uint64_t pixel = p->start + p->h_at[box.row + h] +
                             place_columns(p, box.row + h)[box.col + w];
            for (uint32_t i = 0; i < n; i++)
                write_span(run, cells, pixel + span[i].at, span[i].n, writer);
        }
    return n > 0;
}

static bool write_rows(Run *run, Cells *cells, const Place *p, Box box,
                       uint32_t writer) {
    uint32_t step = rows_together(p, box);
    uint64_t n = (uint64_t)step * box.cols;
    for (uint32_t c = 0; n && c < p->c; c++)
        for (uint32_t copy = 0; copy < p->copies[c]; copy++)
            for (uint32_t h = 0; h < box.rows; h += step)
                write_span(run, cells,
                           p->start + p->c_at[c] + copy * p->copy_step +
                               p->h_at[box.row + h] +
                               place_columns(p, box.row)[box.col],
                           n, writer);
    return n > 0;
}

void memory_write(Run *run, const Place *p, Box box, uint32_t writer,
                  const float *values) {
    if (run->options.time_only)
        return;
    Cells *cells = &run->cells[p->memory];
    run->writer.at[writer - 1].elements += box_count(p, box);
    access_add(run, p, box, true,
               run->writer.at[writer - 1].kind == WRITER_HOST);
    if (!values && (write_pixels(run, cells, p, box, writer) ||
                    write_rows(run, cells, p, box, writer)))
        return;
    for (uint32_t c = 0; c < p->c; c++)
        for (uint32_t h = 0; h < box.rows; h++) {
            uint64_t row = p->start + p->c_at[c] + p->h_at[box.row + h];
            const float *from =
                values ? values + ((size_t)c * box.rows + h) * box.cols : NULL;
            for (uint32_t copy = 0; copy < p->copies[c]; copy++)
                write_row(run, cells, place_columns(p, box.row + h) + box.col,
                          box.cols, row + copy * p->copy_step, writer, from);
        }
}

const Place *memory_written(const Run *run, uint32_t memory, uint64_t cell) {
    const Cells *cells = &run->cells[memory];
    const Page *page = cell < cells->n ? page_of(cells, cell) : NULL;
    uint32_t writer = page ? page->writer[cell & (PAGE_CELLS - 1)] : 0;
    return writer ? &run->writer.at[writer - 1].place : NULL;
}

bool memory_is_blank(const Run *run, const Place *p) {
    if (run->options.time_only)
        return false;
    uint64_t cell = p->start + p->c_at[0] + p->h_at[0] + p->w_at[0];
    return !memory_written(run, p->memory, cell);
}

/* ---- reading ---- */

typedef struct Found {
    uint64_t n;
    uint32_t c, h, w, writer; /* the first one */
    uint64_t cell;
} Found;

typedef struct Reading {
    Run *run;
    const Cells *cells;
    const Place *place;
    Box box;
    uint32_t last;     /* writer of the cell before, if it agrees, */
    uint32_t last_end; /* up to this column */
    struct {
        uint32_t writer;
        bool agrees;
    } known[KNOWN];
    const Place *part; /* a writer that says what it is part of */
    Found unwritten, foreign;
} Reading;

static void found(Found *f, uint32_t c, uint32_t h, uint32_t w, uint64_t cell,
                  uint32_t writer) {
    if (f->n++ == 0)
        *f = (Found){1, c, h, w, writer, cell};
}

static bool known_to_agree(Reading *r, uint32_t writer) {
    uint32_t slot = writer % KNOWN;
    if (r->known[slot].writer != writer) {
        Writer *w = &r->run->writer.at[writer - 1];
        r->known[slot].writer = writer;
        r->known[slot].agrees =
            place_agrees(r->run, r->place, &w->place, r->box) &&
            parents_agree(&r->part, &w->place);
        if (!r->run->on_host)
            w->last_reader = r->run->insn;
    }
    return r->known[slot].agrees;
}

static void judge_cell(Reading *r, uint32_t c, uint32_t h, uint32_t w,
                       uint64_t cell, uint32_t writer) {
    uint32_t n = 0;
    if (writer == 0)
        found(&r->unwritten, c, h, w, cell, 0);
    else if (known_to_agree(r, writer))
        n = columns_shared(r->place, &r->run->writer.at[writer - 1].place, h,
                           w);
    if (n) {
        r->last = writer;
        r->last_end = w + n;
    } else if (writer) {
        found(&r->foreign, c, h, w, cell, writer);
    }
}

static void read_row(Reading *r, uint32_t c, uint32_t h, uint64_t row,
                     float *out) {
    uint64_t held = UINT64_MAX;
    const Page *page = NULL;
    const uint64_t *w_at = place_columns(r->place, h);
    r->last = 0;
    for (uint32_t i = 0; i < r->box.cols; i++) {
        uint32_t w = r->box.col + i;
        uint64_t cell = row + w_at[w];
        if (cell >> PAGE_BITS != held) {
            held = cell >> PAGE_BITS;
            page = page_of(r->cells, cell);
        }
        uint32_t at = (uint32_t)(cell & (PAGE_CELLS - 1));
        uint32_t writer = page ? page->writer[at] : 0;
        if (writer == 0 || writer != r->last || w >= r->last_end)
            judge_cell(r, c, h, w, cell, writer);
        if (out)
            out[i] = page ? page->value[at] : 0.0f;
    }
}

/* Cells of a page; false at the first that does not hold what it should. */
static bool read_cells(Reading *r, const uint32_t *at, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        if (at[i] == r->last && at[i])
            continue;
        if (!at[i] || !known_to_agree(r, at[i]) ||
            r->run->writer.at[at[i] - 1].place.ring)
            return false;
        r->last = at[i];
        i += same_writer(at + i + 1, n - i - 1, r->last);
    }
    return true;
}

static bool read_span(Reading *r, uint64_t cell, uint64_t n) {
    while (n) {
        const Page *page = page_of(r->cells, cell);
        uint64_t at = cell & (PAGE_CELLS - 1);
        uint64_t part = n < PAGE_CELLS - at ? n : PAGE_CELLS - at;
        const uint32_t *from = page ? page->writer + at : NULL;
        uint64_t same = page && r->last ? same_writer(from, part, r->last) : 0;
        if (!page || !read_cells(r, from + same, part - same))
            return false;
        cell += part;
        n -= part;
    }
    return true;
}

/* True if all is well; what is not, a reading in order says. */
static bool read_pixels(Reading *r) {
    const Place *p = r->place;
    Span *span;
    uint32_t n = pixel_spans(r->run, p, &span);
    for (uint32_t h = 0; n && h < r->box.rows; h++)
        for (uint32_t w = 0; w < r->box.cols; w++) {
            uint64_t pixel = p->start + p->h_at[r->box.row + h] +
                             place_columns(p, r->box.row + h)[r->box.col + w];
            for (uint32_t i = 0; i < n; i++)
                if (!read_span(r, pixel + span[i].at, span[i].n))
                    return false;
        }
    return n > 0;
}

/* The same by rows. */
static bool read_rows(Reading *r) {
    const Place *p = r->place;
    uint32_t step = rows_together(p, r->box);
    uint64_t n = (uint64_t)step * r->box.cols;
    for (uint32_t c = 0; n && c < p->c; c++)
        for (uint32_t copy = 0; copy < p->copies[c]; copy++)
            for (uint32_t h = 0; h < r->box.rows; h += step) {
                uint64_t row = p->start + p->c_at[c] + copy * p->copy_step +
                               p->h_at[r->box.row + h];
                uint64_t col = place_columns(p, r->box.row)[r->box.col];
                if (!read_span(r, row + col, n))
                    return false;
            }
    return n > 0;
}

static void report_unwritten(Reading *r, const char *what) {
    const Found *f = &r->unwritten;
    if (f->n == 0 || !fault_once(r->run, ONCE_UNWRITTEN))
        return;
    uint32_t element = r->run->spec->memory[r->place->memory].layout->element;
    fault(r->run,
          "%s %s: %" PRIu64 " of its cells were never written, first channel "
          "%u, row %u, column %u at %s",
          what, place_text(r->run, r->place), f->n, f->c, f->h, f->w,
          address_text(r->run, r->place->memory, f->cell * element));
}

static void report_foreign(Reading *r, const char *what) {
    const Found *f = &r->foreign;
    if (f->n == 0 || !fault_once(r->run, ONCE_FOREIGN))
        return;
    uint32_t element = r->run->spec->memory[r->place->memory].layout->element;
    const Writer *w = &r->run->writer.at[f->writer - 1];
    fault(r->run,
          "%s %s: %" PRIu64 " of its cells hold something else, first channel "
          "%u, row %u, column %u at %s, last written by %s as %s%s",
          what, place_text(r->run, r->place), f->n, f->c, f->h, f->w,
          address_text(r->run, r->place->memory, f->cell * element), w->name,
          w->kind == WRITER_BUFFER ? "an input tile, " : "",
          place_text(r->run, &w->place));
}

bool memory_holds(Run *run, const Place *p, Box box, const char *what) {
    if (run->options.time_only)
        return true;
    uint64_t want = box_count(p, box), live = run->cells[p->memory].live;
    if (want > live && fault_once(run, ONCE_UNWRITTEN))
        fault(run,
              "%s %s: at least %" PRIu64 " of its cells were never written",
              what, place_text(run, p), want - live);
    return want <= live;
}

static bool crosses(const Run *run, uint32_t writer) {
    WriterKind kind = writer ? run->writer.at[writer - 1].kind : WRITER_BUFFER;
    return kind == (run->on_host ? WRITER_ENGINE : WRITER_HOST);
}

static void cross_row(Run *run, Cells *cells, uint64_t row,
                      const uint64_t *w_at, uint32_t cols) {
    uint64_t held = UINT64_MAX;
    uint32_t last = 0; /* a writer that does not cross */
    Page *page = NULL;
    for (uint32_t w = 0; w < cols; w++) {
        uint64_t cell = row + w_at[w];
        if (cell >> PAGE_BITS != held) {
            held = cell >> PAGE_BITS;
            page = page_of(cells, cell);
        }
        uint32_t at = (uint32_t)(cell & (PAGE_CELLS - 1));
        if (!page || page->writer[at] == last)
            continue;
        if (!crosses(run, page->writer[at])) {
            last = page->writer[at];
            continue;
        }
        if (!page->crossed)
            page->crossed = ARENA_ARRAY(run->hold, uint32_t, PAGE_CELLS);
        cells->crossed += page->crossed[at] != page->writer[at];
        page->crossed[at] = page->writer[at];
    }
}

/* Counts what host and device read of each other. */
static void cross(Run *run, const Place *p, Box box) {
    for (uint32_t c = 0; c < p->c; c++)
        for (uint32_t h = box.row; h < box.row + box.rows; h++)
            cross_row(run, &run->cells[p->memory],
                      p->start + p->c_at[c] + p->h_at[h],
                      place_columns(p, h) + box.col, box.cols);
}

void memory_read(Run *run, const Place *p, Box box, const char *what,
                 float *out) {
    if (run->options.time_only)
        return;
    Reading r = {
        .run = run, .cells = &run->cells[p->memory], .place = p, .box = box};
    run->reads = true;
    access_add(run, p, box, false, run->on_host);
    if (run->spec->memory[p->memory].role != HW_ACTIVE)
        cross(run, p, box);
    if (!out && !p->ring && (read_pixels(&r) || read_rows(&r)))
        return;
    r.last = 0;
    for (uint32_t c = 0; c < p->c; c++)
        for (uint32_t copy = 0; copy < p->copies[c]; copy++)
            for (uint32_t h = 0; h < box.rows; h++) {
                uint64_t row = p->start + p->c_at[c] + copy * p->copy_step +
                               p->h_at[box.row + h];
                size_t at = ((size_t)c * box.rows + h) * box.cols;
                read_row(&r, c, box.row + h, row,
                         out && copy == 0 ? out + at : NULL);
            }
    report_unwritten(&r, what);
    if (r.foreign.n && !origins_agree(run, p, box))
        report_foreign(&r, what);
}
