/* place.c - operands as sets of cells; see memory.h.
 *
 * Input: a spot (memory, byte offset, enclosing volume, part). Output: tables
 * of cells by channel, row and column, all inside the memory. Overlap of two
 * places is decided on cells, not on ranges, since parts of concatenations
 * interleave.
 */
#include "sim/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* No dimension of a real volume comes near; tables stay small. */
static const uint32_t MAX_EXTENT = UINT32_C(1) << 24;

static bool is_sane(const Volume *v) {
    uint32_t size[] = {v->c, v->h, v->w};
    uint64_t count = 1;
    for (int i = 0; i < 3; i++) {
        if (size[i] == 0 || size[i] > MAX_EXTENT)
            return false;
        count *= size[i];
        if (count > SHAPE_MAX_COUNT)
            return false;
    }
    return true;
}

/* Volumes start at multiples of the memory's alignment; parts of them where
 * their channels lie. Loads and stores have no field for being a part, so
 * outside active memory any element may be a start. */
static bool is_aligned(Run *run, const Spot *spot) {
    const HwMemory *m = &run->spec->memory[spot->memory];
    uint64_t unit = m->layout->element;
    if (!spot->part && m->role == HW_ACTIVE && m->align > unit)
        unit = m->align;
    if (spot->offset % unit == 0)
        return true;
    fault(run, "%s at %s is not aligned to %" PRIu64 " bytes", spot->what,
          address_text(run, spot->memory, spot->offset), unit);
    return spot->offset % m->layout->element == 0;
}

/* Bytes from the start of the enclosing volume. */
static bool is_inside(Run *run, const Spot *spot) {
    const HwMemory *m = &run->spec->memory[spot->memory];
    const Volume *v = &spot->whole;
    if (!is_sane(v) || spot->part_c > v->c || spot->c > v->c - spot->part_c ||
        spot->c == 0) {
        fault(run, "%s has impossible sizes: channels %u to %u of %ux%ux%u",
              spot->what, spot->part_c, spot->part_c + spot->c, v->c, v->h,
              v->w);
        return false;
    }
    uint64_t bytes = address_bytes(m->layout, v);
    if (spot->offset <= m->size && bytes <= m->size - spot->offset)
        return true;
    if (spot->offset > m->size)
        fault(run, "%s at %s starts behind the memory's %" PRIu64 " bytes",
              spot->what, address_text(run, spot->memory, spot->offset),
              m->size);
    else
        fault(run,
              "%s %ux%ux%u at %s takes %" PRIu64 " bytes, %" PRIu64
              " more than the memory has from there",
              spot->what, v->c, v->h, v->w,
              address_text(run, spot->memory, spot->offset), bytes,
              bytes - (m->size - spot->offset));
    return false;
}

/* Entries of w_at. */
static uint32_t columns_told(const Place *p) {
    return p->w_step ? p->h * p->w_step : p->w;
}

static uint64_t lowest(const uint64_t *at, uint32_t n) {
    uint64_t least = at[0];
    for (uint32_t i = 1; i < n; i++)
        least = at[i] < least ? at[i] : least;
    return least;
}

static uint64_t highest(const uint64_t *at, uint32_t n) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = at[i] > most ? at[i] : most;
    return most;
}

/* A volume reaches to its last byte, padding included; of a part only the
 * cells count. */
static void measure_touched(Run *run, const Spot *spot, const Place *p) {
    const HwMemory *m = &run->spec->memory[spot->memory];
    uint64_t end = p->end * m->layout->element;
    if (!spot->part)
        end = spot->offset + address_bytes(m->layout, &spot->whole);
    Cells *cells = &run->cells[spot->memory];
    if (end > cells->touched)
        cells->touched = end;
}

static uint64_t highest_channel(const Place *p) {
    uint64_t most = 0;
    for (uint32_t c = 0; c < p->c; c++) {
        uint64_t at = p->c_at[c] + (p->copies[c] - 1) * p->copy_step;
        most = at > most ? at : most;
    }
    return most;
}

/* The operand's rows among those of the ring. */
static void turn_rows(Run *run, const Spot *spot, Place *p) {
    uint64_t *at = ARENA_ARRAY(run->work, uint64_t, spot->h);
    for (uint32_t h = 0; h < spot->h; h++)
        at[h] = p->h_at[(spot->row + h) % spot->whole.h];
    p->h_at = at;
    p->w_at += spot->col;
}

/* Its pixels among those of the line buffer. */
static void turn_lines(Run *run, const Spot *spot, Place *p) {
    uint64_t *at = ARENA_ARRAY(run->work, uint64_t, (size_t)spot->h * spot->w);
    for (uint32_t h = 0; h < spot->h; h++)
        for (uint32_t w = 0; w < spot->w; w++)
            at[(size_t)h * spot->w + w] = p->w_at[lines_pixel(
                &spot->lines, spot->pitch, spot->row + h, spot->col + w)];
    p->h_at = ARENA_ARRAY(run->work, uint64_t, spot->h);
    p->w_at = at;
    p->w_step = spot->w;
}

static bool fits_lines(Run *run, const Spot *spot) {
    const LineBuffer *l = &spot->lines;
    if (spot->col + (uint64_t)spot->w > spot->pitch) {
        fault(run, "%s has columns up to %u of %u", spot->what,
              spot->col + spot->w - 1, spot->pitch);
        return false;
    }
    if (l->keep + (uint64_t)l->band >= spot->h && spot->w <= l->span)
        return true;
    fault(run, "%s has %u rows and %u columns, its line buffer %u and %u",
          spot->what, spot->h, spot->w, l->keep + l->band, l->span);
    return false;
}

static bool fits_ring(Run *run, const Spot *spot) {
    if (spot->lines.band)
        return fits_lines(run, spot);
    if (spot->ring && spot->col + (uint64_t)spot->w > spot->whole.w) {
        fault(run, "%s has columns up to %u, its ring %u", spot->what,
              spot->col + spot->w - 1, spot->whole.w);
        return false;
    }
    if (!spot->ring || spot->h <= spot->whole.h)
        return true;
    fault(run, "%s has %u rows, its ring %u", spot->what, spot->h,
          spot->whole.h);
    return false;
}

static void find_range(const VolumeTables *t, bool turns, Place *p) {
    uint64_t least = p->c_at[0], most;
    if (t->rise && !turns) {
        most = p->c_at[p->c - 1] + p->h_at[p->h - 1] + p->w_at[p->w - 1];
    } else {
        least = lowest(p->c_at, p->c);
        most = highest_channel(p) + highest(p->h_at, p->h) +
               highest(p->w_at, columns_told(p));
    }
    p->first = p->start + least;
    p->end = p->start + most + 1;
}

bool place_make(Run *run, const Spot *spot, Place *out) {
    if (!is_inside(run, spot) || !is_aligned(run, spot) ||
        !fits_ring(run, spot))
        return false;
    const Layout *layout = run->spec->memory[spot->memory].layout;
    const Volume *v = &spot->whole;
    VolumeTables t = tables_of(run, layout, v);
    *out = (Place){.memory = spot->memory,
                   .c = spot->c,
                   .h = spot->ring ? spot->h : v->h,
                   .w = spot->ring ? spot->w : v->w,
                   .ring = spot->ring,
                   .turns = !spot->ring        ? 0
                            : spot->lines.band ? spot->pitch
                                               : v->h,
                   .row = spot->row,
                   .col = spot->col,
                   .part = spot->part,
                   .whole = spot->said,
                   .inside = *v,
                   .part_c = spot->part_c,
                   .start = spot->offset / layout->element,
                   .h_at = t.at.h_at,
                   .w_at = t.at.w_at,
                   .copies = t.at.copies + spot->part_c,
                   .copy_step = t.at.copy_step};
    if (!tables_matter(run))
        return true;
    out->c_at = t.at.c_at + spot->part_c;
    if (spot->lines.band)
        turn_lines(run, spot, out);
    else if (spot->ring)
        turn_rows(run, spot, out);
    find_range(&t, spot->lines.band || spot->ring, out);
    measure_touched(run, spot, out);
    return true;
}

Place place_keep(Arena *arena, const Place *p) {
    Place kept = *p;
    if (!p->c_at)
        return kept;
    kept.c_at = ARENA_COPY(arena, uint64_t, p->c_at, p->c);
    kept.h_at = ARENA_COPY(arena, uint64_t, p->h_at, p->h);
    kept.w_at = ARENA_COPY(arena, uint64_t, p->w_at, columns_told(p));
    kept.copies = ARENA_COPY(arena, uint32_t, p->copies, p->c);
    return kept;
}

Place place_rows(const Place *place, uint32_t row, uint32_t rows) {
    Place part = *place;
    part.h = rows;
    if (!place->h_at)
        return part;
    part.h_at += row;
    part.first += part.h_at[0] - place->h_at[0];
    part.end -= place->h_at[place->h - 1] - part.h_at[rows - 1];
    return part;
}

Box place_box(const Place *place) {
    return (Box){0, place->h, 0, place->w};
}

uint64_t box_count(const Place *place, Box box) {
    return (uint64_t)place->c * box.rows * box.cols;
}

bool place_same(const Place *a, const Place *b) {
    if (a->memory != b->memory ||
        a->start + a->c_at[0] != b->start + b->c_at[0])
        return false;
    if (a->c != b->c || a->h != b->h || a->w != b->w ||
        a->copy_step != b->copy_step || a->w_step != b->w_step)
        return false;
    for (uint32_t c = 0; c < a->c; c++)
        if (a->start + a->c_at[c] != b->start + b->c_at[c] ||
            a->copies[c] != b->copies[c])
            return false;
    return memcmp(a->h_at, b->h_at, a->h * sizeof *a->h_at) == 0 &&
           memcmp(a->w_at, b->w_at, columns_told(a) * sizeof *a->w_at) == 0;
}

/* ---- overlap ---- */

typedef struct Spans {
    Arena *arena;
    CellRange window; /* cells outside do not count */
    bool rises;       /* each begins behind the one before it */
    VEC(CellRange) at;
} Spans;

static void add_span(Spans *s, uint64_t from, uint64_t n) {
    uint64_t to = from + n < s->window.to ? from + n : s->window.to;
    from = from > s->window.from ? from : s->window.from;
    if (from >= to)
        return;
    CellRange *last = s->at.n ? &s->at.at[s->at.n - 1] : NULL;
    if (last && last->to == from) {
        last->to = to;
        return;
    }
    s->rises &= !last || last->to < from;
    vec_push(s->arena, &s->at, ((CellRange){from, to}));
}

static int by_start(const void *a, const void *b) {
    const CellRange *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static bool follow_each_other(const uint64_t *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (at[i] != at[i - 1] + 1)
            return false;
    return true;
}

static bool rise(const uint64_t *at, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (at[i] < at[i - 1])
            return false;
    return true;
}

static bool has_plain_rows(const Place *p) {
    for (uint32_t h = 0; h < (p->w_step ? p->h : 1); h++)
        if (!follow_each_other(place_columns(p, h), p->w))
            return false;
    return true;
}

/* Cells from the lowest pixel of a channel to behind its highest. */
static CellRange plane_of(const Place *p) {
    uint32_t n = columns_told(p);
    return (CellRange){lowest(p->h_at, p->h) + lowest(p->w_at, n),
                       highest(p->h_at, p->h) + highest(p->w_at, n) + 1};
}

/* No cell between its first and last is another's. */
static bool is_dense(const Place *p) {
    return !p->copy_step && box_count(p, place_box(p)) == p->end - p->first;
}

/* What is told of a place to find its cells. */
typedef struct Cut {
    const Place *place;
    Spans channel;   /* with their copies, in cells from the start */
    CellRange plane; /* plane_of */
    uint32_t cols;   /* so many columns follow each other */
    bool rises;      /* columns of a row do */
} Cut;

static Cut cut_of(Run *run, const Place *p) {
    Cut cut = {
        p, {.arena = run->work, .window = {0, UINT64_MAX}}, {0}, 0, false};
    if (is_dense(p))
        return cut;
    for (uint32_t c = 0; c < p->c; c++)
        for (uint32_t copy = 0; copy < p->copies[c]; copy++)
            add_span(&cut.channel, p->c_at[c] + copy * p->copy_step, 1);
    cut.plane = plane_of(p);
    cut.cols = has_plain_rows(p) ? p->w : 1;
    cut.rises = !p->w_step && rise(p->w_at, p->w);
    return cut;
}

/* The first column of the row whose cells end behind `cell`. */
static uint32_t column_at(const uint64_t *at, uint32_t cols, uint64_t width,
                          uint64_t cell) {
    uint32_t lo = 0, hi = cols;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (at[mid] + width <= cell)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void add_rows(Spans *s, const Cut *cut, CellRange c) {
    const Place *p = cut->place;
    uint64_t width = c.to - c.from + cut->cols - 1;
    for (uint32_t h = 0; h < p->h; h++) {
        const uint64_t *at = place_columns(p, h);
        uint64_t base = p->start + c.from + p->h_at[h];
        uint32_t w = 0;
        if (cut->rises && cut->cols == 1 && s->window.from > base)
            w = column_at(at, p->w, width, s->window.from - base);
        for (; w < p->w && (!cut->rises || base + at[w] < s->window.to);
             w += cut->cols)
            add_span(s, base + at[w], width);
    }
}

/* All cells in the window, ascending. */
static Spans spans_of(Run *run, const Cut *cut, CellRange window) {
    const Place *p = cut->place;
    Spans s = {.arena = run->work, .window = window, .rises = true};
    if (!cut->cols)
        add_span(&s, p->first, p->end - p->first);
    for (uint32_t i = 0; i < cut->channel.at.n; i++) {
        CellRange c = cut->channel.at.at[i];
        if (p->start + c.from + cut->plane.from < window.to &&
            p->start + c.to + cut->plane.to > window.from)
            add_rows(&s, cut, c);
    }
    if (!s.rises)
        qsort(s.at.at, s.at.n, sizeof *s.at.at, by_start);
    return s;
}

/* The place of a box alone; what is told of it by first and end is gone. */
static Place box_place(const Place *place, Box box) {
    Place p = *place;
    p.h_at += box.row;
    p.w_at += (size_t)box.row * p.w_step + box.col;
    p.h = box.rows;
    p.w = box.cols;
    p.first = 0;
    p.end = UINT64_MAX;
    return p;
}

uint32_t place_spans(Run *run, const Place *place, Box box,
                     const CellRange **out) {
    bool whole = box.rows == place->h && box.cols == place->w;
    Place p = whole ? *place : box_place(place, box);
    Cut cut = cut_of(run, &p);
    Spans spans = spans_of(run, &cut, (CellRange){0, UINT64_MAX});
    *out = spans.at.at;
    return spans.at.n;
}

static bool meet_in(Run *run, const Cut *a, const Cut *b, CellRange window) {
    Spans own = spans_of(run, a, window), its = spans_of(run, b, window);
    for (uint32_t i = 0, k = 0; i < own.at.n && k < its.at.n;) {
        if (own.at.at[i].to <= its.at.at[k].from)
            i++;
        else if (its.at.at[k].to <= own.at.at[i].from)
            k++;
        else
            return true;
    }
    return false;
}

/* Whether all channels of the one lie as the first ones of the other do, each
 * in a range of its own: then the first channels meet, or none do. */
static bool channels_alike(const Place *a, const Place *b) {
    if (a->c > b->c)
        return channels_alike(b, a);
    if (a->start != b->start ||
        memcmp(a->c_at, b->c_at, a->c * sizeof *a->c_at) != 0)
        return false;
    CellRange own = plane_of(a), its = plane_of(b);
    uint64_t plane = (own.to > its.to ? own.to : its.to) -
                     (own.from < its.from ? own.from : its.from);
    for (uint32_t c = 0; c < b->c; c++)
        if (b->copies[c] != 1 || (c < a->c && a->copies[c] != 1) ||
            (c && b->c_at[c] < b->c_at[c - 1] + plane))
            return false;
    return true;
}

/* Whether both are parts of one volume that holds each element once: its cells
 * tell channels, rows and columns apart. */
static bool in_one_volume(const Place *a, const Place *b) {
    return a->start == b->start && volumes_same(&a->inside, &b->inside) &&
           a->inside.c && !a->weights_of && !b->weights_of && !a->w_step &&
           !b->w_step && !a->copy_step && !b->copy_step;
}

static bool have_common(const uint64_t *a, uint32_t n_a, const uint64_t *b,
                        uint32_t n_b) {
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            if (a[i] == b[k])
                return true;
    return false;
}

static bool parts_overlap(const Place *a, const Place *b) {
    return a->part_c < b->part_c + b->c && b->part_c < a->part_c + a->c &&
           have_common(a->h_at, a->h, b->h_at, b->h) &&
           have_common(a->w_at, a->w, b->w_at, b->w);
}

bool place_overlap(Run *run, const Place *a, const Place *b) {
    enum { FIRST = 256, MORE = 8 }; /* cells: those that meet do so early */
    Place first[] = {*a, *b};
    uint64_t at = a->first > b->first ? a->first : b->first;
    uint64_t end = a->end < b->end ? a->end : b->end;
    if (a->memory != b->memory || at >= end || !cells_matter(run))
        return false;
    if (is_dense(a) && is_dense(b))
        return true;
    if (in_one_volume(a, b))
        return parts_overlap(a, b);
    if (channels_alike(a, b))
        first[0].c = first[1].c = 1;
    Cut own = cut_of(run, &first[0]), its = cut_of(run, &first[1]);
    for (uint64_t n = FIRST, to; at < end; at = to, n *= MORE) {
        to = end - at < n ? end : at + n;
        if (meet_in(run, &own, &its, (CellRange){at, to}))
            return true;
    }
    return false;
}

const char *place_text(Run *run, const Place *place) {
    uint32_t element = run->spec->memory[place->memory].layout->element;
    return arena_printf(
        run->work, "%ux%ux%u at %s", place->c, place->h, place->w,
        address_text(run, place->memory,
                     (place->start + place->c_at[0]) * element));
}

/* ---- regions ---- */

bool region_place(Run *run, const Region *region, const char *what,
                  Place *out) {
    uint32_t c, h, w;
    shape_chw(&region->shape, &c, &h, &w);
    Volume whole = region->whole;
    bool part = whole.c != c || region->part_c != 0;
    if (!(run->spec->replication.memories >> region->memory & 1))
        whole.repl = (Repl){0};
    Spot spot = {.what = what,
                 .memory = region->memory,
                 .offset = region->offset,
                 .whole = whole,
                 .part_c = region->part_c,
                 .c = c,
                 .part = part};
    return place_make(run, &spot, out);
}
