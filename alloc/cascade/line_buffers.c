/* line_buffers.c - the line buffers of a cascade.
 *
 * Input: a cascade that rolls by columns, and how many at a time. Output: what
 * lies in line buffers (hwspec/lines.h), their sizes. What is not needed any
 * more when a band ends only passes; such tensors share a room where they are
 * never there together.
 */
#include "alloc/cascade/lines.h"
#include "alloc/geometry/tensor_bytes.h"
#include "base/arith.h"

#include <string.h>

/* ---- spans, and who is there together ---- */

typedef struct Watch {
    const Facts *f;
    const Cascade *g;
    Lines *lines;
} Watch;

/* The first column that node i of the cascade still wants in this band; `end`
 * if that is earlier. */
static uint32_t wanted_by(const Watch *v, uint32_t i, const uint32_t *done,
                          const bool *makes, uint32_t end) {
    FlowStep *s = &v->f->memo->flow[v->g->first + i];
    if (!makes[i] || done[i] == v->lines->node[i].strip.end)
        return end;
    uint32_t first = flow_first(v->f, s, 1, done[i]);
    return first < end ? first : end;
}

/* The same of some reader of the line. */
static uint32_t oldest(const Watch *v, const LineRing *line,
                       const uint32_t *done, const bool *makes, uint32_t end) {
    uint32_t first = v->g->first;
    if (line->maker == NONE) {
        CascadeReaders r = cascade_readers(v->f, v->g, line->tensor);
        while (cascade_readers_next(&r))
            end = wanted_by(v, r.i, done, makes, end);
        return end;
    }
    const FlowStep *s = &v->f->memo->flow[first + line->maker];
    for (uint32_t k = 0; k < s->n_readers; k++)
        if (s->reader[k] - first < cascade_length(v->g))
            end = wanted_by(v, s->reader[k] - first, done, makes, end);
    return end;
}

static uint32_t columns_done(const LineRing *line, const uint32_t *done) {
    return line->maker == NONE ? line->loaded : done[line->maker];
}

/* Whether the node at work reads the line. */
static bool reads(const Watch *v, const LineRing *line, const LineTurn *turn) {
    const Node *node = line_node(v->f, v->g, turn->i);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (same_tensor(node->in[k], line->tensor))
            return true;
    return false;
}

static bool touched(const Watch *v, const LineRing *line, uint32_t index,
                    const LineTurn *turn) {
    if (turn->loads)
        return index == turn->line;
    return reads(v, line, turn) || line->maker == turn->i;
}

static void span_holds(LineRing *line, uint32_t columns) {
    if (columns > line->buffer.span)
        line->buffer.span = columns;
}

static void watch_span(const Watch *v, const LineTurn *turn,
                       const uint32_t *done, const bool *makes) {
    for (uint32_t i = 0; i < v->lines->at.n; i++) {
        LineRing *line = &v->lines->at.at[i];
        bool grows = turn->loads ? i == turn->line : line->maker == turn->i;
        if (!turn->loads && reads(v, line, turn))
            span_holds(line, turn->in_cols.in_rows);
        if (!grows)
            continue;
        /* the node at work has not read yet what is loaded for it */
        uint32_t end = turn->cols.at + turn->cols.n;
        uint32_t first = oldest(v, line, done, makes, turn->cols.at);
        span_holds(line, end - first);
    }
}

/* Those that pass, and are there now, are there together. */
static void watch(void *context, const LineTurn *turn, const uint32_t *done,
                  const bool *makes) {
    const Watch *v = context;
    LineRing *at = v->lines->at.at;
    uint64_t here = 0;
    watch_span(v, turn, done, makes);
    for (uint32_t i = 0; i < v->lines->at.n; i++) {
        uint32_t end = columns_done(&at[i], done);
        if (at[i].passes && (touched(v, &at[i], i, turn) ||
                             oldest(v, &at[i], done, makes, end) < end))
            here |= UINT64_C(1) << i;
    }
    for (uint32_t i = 0; i < v->lines->at.n; i++)
        if (here >> i & 1)
            at[i].beside |= here;
}

/* What comes in the band: bits, of nodes and of what is loaded. */
typedef struct Busy {
    uint64_t makes, loads;
} Busy;

static Busy busy_in(const Facts *f, const Cascade *g, const Lines *lines,
                    int64_t band) {
    Busy busy = {0};
    for (uint32_t i = 0; i < cascade_length(g); i++)
        if (lines_made(f, g, lines, i, band).n)
            busy.makes |= UINT64_C(1) << i;
    for (uint32_t i = 0; i < lines->n_loaded; i++)
        if (lines_loaded(f, &lines->at.at[i], band).n)
            busy.loads |= UINT64_C(1) << i;
    return busy;
}

/* All bands of the strip at work; those in which the same comes are alike. */
static bool spans_strip(Watch *v) {
    Busy last = {0};
    for (int64_t band = v->lines->first; band < v->lines->end; band++) {
        Busy now = busy_in(v->f, v->g, v->lines, band);
        if ((now.makes != last.makes || now.loads != last.loads) &&
            !lines_sweep(&(LineWalk){v->f, v->g, v->lines, watch, v}, band,
                         UINT32_MAX))
            return false;
        last = now;
    }
    return true;
}

/* `exact`: all kinds of bands of all strips; else the beginning of a band in
 * the middle, of a strip in the middle. */
static bool spans_make(const Facts *f, const Cascade *g, Lines *lines,
                       bool exact) {
    enum { STEPS = 5 };
    Watch v = {.f = f, g, lines};
    uint32_t strips = cascade_strips(g);
    for (uint32_t i = 0; i < lines->at.n; i++) {
        lines->at.at[i].buffer.span = 1;
        lines->at.at[i].beside = 0;
    }
    if (!exact) {
        strip_enter(f, g, lines, strips / 2);
        return lines_sweep(&(LineWalk){f, g, lines, watch, &v},
                           (lines->first + lines->end) / 2, STEPS);
    }
    for (uint32_t k = 0; k < strips; k++) {
        strip_enter(f, g, lines, k);
        if (!spans_strip(&v))
            return false;
    }
    return true;
}

/* ---- bytes ---- */

Volume line_volume(const Facts *f, const LineRing *line) {
    Volume v = volume_in(f, line->tensor, 0);
    uint64_t pixels = lines_pixels(&line->buffer, line->width);
    v.h = 1;
    v.w = pixels > UINT32_MAX ? UINT32_MAX : (uint32_t)pixels;
    return v;
}

uint64_t line_bytes(const Facts *f, const LineRing *line) {
    const HwMemory *memory = &f->spec->memory[0];
    Volume v = line_volume(f, line);
    uint64_t bytes = layout_bytes(memory->layout, &v);
    return bytes > UINT64_MAX / 2 ? bytes
                                  : round_up(bytes, pool_of(memory).align);
}

/* The lowest place in the room beside those that are there with it. */
static uint64_t place_in_room(const Facts *f, const Lines *lines,
                              uint64_t placed, const LineRing *line,
                              uint64_t bytes) {
    uint64_t at = 0, was;
    do {
        was = at;
        for (uint32_t i = 0; i < lines->at.n; i++) {
            const LineRing *other = &lines->at.at[i];
            uint64_t end = other->offset + line_bytes(f, other);
            if ((placed & line->beside) >> i & 1 && at < end &&
                other->offset < at + bytes)
                at = end;
        }
    } while (at != was);
    return at;
}

/* Largest first. */
static void room_make(const Facts *f, Lines *lines) {
    uint64_t placed = 0;
    lines->room = 0;
    for (;;) {
        uint64_t most = 0;
        uint32_t next = NONE;
        for (uint32_t i = 0; i < lines->at.n; i++) {
            uint64_t bytes = line_bytes(f, &lines->at.at[i]);
            if (lines->at.at[i].passes && !(placed >> i & 1) && bytes > most) {
                most = bytes;
                next = i;
            }
        }
        if (next == NONE)
            return;
        LineRing *line = &lines->at.at[next];
        line->offset = place_in_room(f, lines, placed, line, most);
        placed |= UINT64_C(1) << next;
        if (line->offset + most > lines->room)
            lines->room = line->offset + most;
    }
}

/* Line buffers lie in the first memory, side by side. */
static bool may_lie(const Facts *f, const Cascade *g, const Lines *lines) {
    for (uint32_t i = 0; i < lines->at.n; i++)
        if (!(cascade_reach(f, g, lines->at.at[i].tensor) & 1))
            return false;
    return !f->spec->memory[0].buffers;
}

static bool bytes_make(const Facts *f, const Cascade *g, Lines *lines,
                       bool exact) {
    if (!may_lie(f, g, lines) || !spans_make(f, g, lines, exact))
        return false;
    room_make(f, lines);
    lines->bytes = lines->room;
    for (uint32_t i = 0; i < lines->at.n; i++) {
        const LineRing *line = &lines->at.at[i];
        uint64_t own = line->passes ? 0 : line_bytes(f, line);
        if (own > UINT64_MAX / 4 - lines->bytes)
            return false;
        lines->bytes += own;
    }
    return true;
}

/* ---- the cascade's lines ---- */

static void line_add(const Facts *f, Lines *lines, TensorId t, uint32_t maker) {
    if (line_of(lines, t) == NONE)
        vec_push(f->arena, &lines->at,
                 ((LineRing){.tensor = t, .maker = maker}));
}

/* Those that are loaded come first. False if there are too many. */
static bool lines_list(const Decisions *d, const Cascade *g, Lines *lines) {
    const Facts *f = d->f;
    enum { MOST = 64 };
    uint32_t n = cascade_length(g);
    memset(lines, 0, sizeof *lines);
    for (uint32_t i = 0; i < n; i++) {
        const Node *node = line_node(f, g, i);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_maker(f, g, node->in[k]) == NONE &&
                !cascade_keeps(d, g, node->in[k]))
                line_add(f, lines, node->in[k], NONE);
    }
    lines->n_loaded = lines->at.n;
    for (uint32_t i = 0; i < n; i++)
        if (!cascade_keeps(d, g, line_result(f, g, i)))
            line_add(f, lines, line_result(f, g, i), i);
    lines->node = ARENA_ARRAY(f->arena, LineNode, n);
    return lines->at.n <= MOST && n <= MOST;
}

static uint32_t widest(const Facts *f, const Cascade *g) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        uint32_t own = plan_volume(f->g, line_result(f, g, i)).w;
        most = own > most ? own : most;
    }
    return most;
}

static uint32_t columns_at_least(const Facts *f, const Cascade *g, uint32_t i,
                                 uint32_t cols) {
    uint32_t q = node_quantum(f->g, cascade_node(f, g, i), 1);
    return (cols + q - 1) / q * q;
}

/* One column at a time; where that takes fewer bytes, as many as the reader
 * goes on by. */
static bool narrowest(const Facts *f, const Cascade *g, Lines *lines,
                      bool exact) {
    uint32_t n = cascade_length(g);
    for (uint32_t i = 0; i < n; i++)
        lines->node[i].cols = columns_at_least(f, g, i, 1);
    if (!bytes_make(f, g, lines, false))
        return false;
    for (uint32_t i = n; i-- > 0;) {
        uint64_t before = lines->bytes;
        CascadeReaders r = cascade_readers(f, g, line_result(f, g, i));
        bool read = cascade_readers_next(&r);
        const Node *reader = read ? line_node(f, g, r.i) : NULL;
        if (!read || reader->op != OP_POOL || reader->attr.pool.stride[1] < 2)
            continue;
        lines->node[i].cols =
            columns_at_least(f, g, i, reader->attr.pool.stride[1]);
        if (bytes_make(f, g, lines, false) && lines->bytes < before)
            continue;
        lines->node[i].cols = columns_at_least(f, g, i, 1);
        if (!bytes_make(f, g, lines, false))
            return false;
    }
    return bytes_make(f, g, lines, exact);
}

bool lines_make(const Decisions *d, const Cascade *g, bool exact,
                Lines *lines) {
    const Facts *f = d->f;
    if (f->spec->n_active != 1 || !lines_list(d, g, lines) ||
        !line_bands_make(f, g, lines))
        return false;
    strips_measure(f, g, lines);
    if (g->cols == 1)
        return narrowest(f, g, lines, exact);
    uint64_t most = widest(f, g);
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        uint64_t own = plan_volume(f->g, line_result(f, g, i)).w;
        uint64_t cols = (own * g->cols + most - 1) / most;
        lines->node[i].cols = columns_at_least(f, g, i, (uint32_t)cols);
    }
    return bytes_make(f, g, lines, exact);
}

void lines_number(Lines *lines) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < lines->at.n; i++)
        if (!lines->at.at[i].passes)
            lines->at.at[i].buf = n++;
    for (uint32_t i = 0; i < lines->at.n; i++)
        if (lines->at.at[i].passes)
            lines->at.at[i].buf = n;
}
