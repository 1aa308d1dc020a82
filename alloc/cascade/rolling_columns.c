/* rolling_columns.c - cascades that roll by rows and, within these, by columns.
 *
 * Input: a cascade of a machine whose operands may lie in line buffers. Output:
 * in which order its nodes make which pixels, and the line buffer of each
 * tensor (hwspec/lines.h).
 * The last result comes in bands of the fewest rows with which those of all
 * other tensors come in whole numbers of rows; a tensor is so many rows ahead
 * that its readers find all they need (Alwani et al., MICRO 2016: a pyramid
 * that moves down). Within a band a node that is asked for columns first asks
 * those that make its operands for what it lacks, as rolling_rows.c does by
 * rows. Nothing is computed twice. What is not needed any more when a band ends
 * only passes; such tensors share a room where they are never there together.
 * Recursion is as deep as a cascade is long.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"
#include "base/arith.h"

#include <string.h>

/* A result is computed in bands of at most so many rows. */
enum { MAX_BAND = 64 };

static Volume volume(const Facts *f, TensorId t) {
    return plan_volume(f->g, t);
}

static const Node *node_of(const Facts *f, const Cascade *g, uint32_t i) {
    return graph_node(f->g, cascade_node(f, g, i));
}

static TensorId result(const Facts *f, const Cascade *g, uint32_t i) {
    return node_of(f, g, i)->out[0];
}

static uint32_t length(const Cascade *g) {
    return g->end - g->first;
}

/* ---- what rows of an operand lie behind rows of a result ---- */

/* Rows of an operand per row of the result. */
typedef struct Rate {
    uint64_t num, den;
} Rate;

/* Rows of the result that a row of the operand makes by itself. */
static uint32_t spread_of(const Node *node) {
    if (node->op == OP_DECONV)
        return node->attr.conv.stride[0];
    return node->op == OP_UPSAMPLE ? node->attr.up.factor[0] : 1;
}

static bool rate_of(const Node *node, Rate *rate) {
    *rate = (Rate){1, 1};
    switch (node->op) {
    case OP_CONV:
        rate->num = node->attr.conv.stride[0];
        return true;
    case OP_POOL:
        rate->num = node->attr.pool.stride[0];
        return !node->attr.pool.global;
    case OP_UPSAMPLE:
    case OP_DECONV:
        rate->den = spread_of(node);
        return true;
    default:
        return node_goes_by_pixel(node);
    }
}

/* The first row of the operand that row `row` needs, not clipped. */
static int64_t first_behind(const Node *node, int64_t row) {
    if (node->op == OP_CONV)
        return row * node->attr.conv.stride[0] - node->attr.conv.pad[0];
    if (node->op == OP_POOL)
        return row * node->attr.pool.stride[0] - node->attr.pool.pad[0];
    return floor_div(row, spread_of(node));
}

/* The end of those that rows up to `end` need, not clipped. */
static int64_t end_behind(const Node *node, int64_t end) {
    int64_t first = first_behind(node, end - 1);
    if (node->op == OP_CONV)
        return first +
               (int64_t)node->attr.conv.dilation[0] *
                   (node->attr.conv.kernel[0] - 1) +
               1;
    return first + (node->op == OP_POOL ? node->attr.pool.kernel[0] : 1);
}

/* ---- bands ---- */

/* a * b or a / b, in lowest terms. */
static Rate times(Rate a, Rate b, bool inverse) {
    uint64_t num = a.num * (inverse ? b.den : b.num);
    uint64_t den = a.den * (inverse ? b.num : b.den);
    uint64_t both = gcd(num, den);
    return (Rate){num / both, den / both};
}

typedef struct Pace {
    const Facts *f;
    const Cascade *g;
    Lines *lines;
    Rate *made, *read; /* rows a band: by node; by loaded line. den 0: open */
    bool changed;
} Pace;

static uint32_t line_of(const Lines *lines, TensorId t) {
    for (uint32_t i = 0; i < lines->at.n; i++)
        if (same_tensor(lines->at.at[i].tensor, t))
            return i;
    return NONE;
}

/* Where the pace of a tensor is kept; NULL for what lies whole. */
static Rate *pace_of(Pace *p, TensorId t) {
    uint32_t maker = cascade_maker(p->f, p->g, t);
    uint32_t line = line_of(p->lines, t);
    if (maker != NONE)
        return &p->made[maker];
    return line == NONE ? NULL : &p->read[line];
}

static bool settle(Pace *p, Rate *rate, Rate value) {
    if (value.num > MAX_BAND * value.den || value.den > MAX_BAND)
        return false;
    if (!rate->den) {
        *rate = value;
        p->changed = true;
    }
    return rate->num == value.num && rate->den == value.den;
}

/* From the node to its operands, or from one of these to the node. */
static bool pace_node(Pace *p, uint32_t i) {
    const Node *node = node_of(p->f, p->g, i);
    Rate rate;
    if (!rate_of(node, &rate))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        Rate *in = pace_of(p, node->in[k]);
        if (in && in->den && !p->made[i].den &&
            !settle(p, &p->made[i], times(*in, rate, true)))
            return false;
    }
    for (uint32_t k = 0; k < node->n_in && p->made[i].den; k++) {
        Rate *in = pace_of(p, node->in[k]);
        if (in && !settle(p, in, times(p->made[i], rate, false)))
            return false;
    }
    return true;
}

/* Whole rows for all. */
static bool paces_whole(Pace *p) {
    uint32_t n = length(p->g);
    uint64_t all = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!p->made[i].den)
            return false;
        all = all / gcd(all, p->made[i].den) * p->made[i].den;
        if (all > MAX_BAND)
            return false;
    }
    for (uint32_t i = 0; i < p->lines->n_loaded; i++)
        if (!p->read[i].den || all % p->read[i].den)
            return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rows = (uint32_t)(all / p->made[i].den * p->made[i].num);
        if (rows % node_quantum(p->f->g, cascade_node(p->f, p->g, i), 0))
            return false;
        p->lines->node[i].rows = rows;
    }
    for (uint32_t i = 0; i < p->lines->n_loaded; i++)
        p->lines->at.at[i].buffer.band =
            (uint32_t)(all / p->read[i].den * p->read[i].num);
    return true;
}

static bool paces_make(const Facts *f, const Cascade *g, Lines *lines) {
    uint32_t n = length(g);
    Pace p = {.f = f, .g = g, .lines = lines};
    p.made = ARENA_ARRAY(f->arena, Rate, n);
    p.read = ARENA_ARRAY(f->arena, Rate, lines->n_loaded + 1);
    p.made[n - 1] = (Rate){1, 1};
    do {
        p.changed = false;
        for (uint32_t i = n; i-- > 0;)
            if (!pace_node(&p, i))
                return false;
    } while (p.changed);
    return paces_whole(&p);
}

/* ---- how far each is ahead, and what it keeps ---- */

/* How many rows more than its bands' the tensor must have. */
static int64_t lead_of(const Facts *f, const Cascade *g, const Lines *lines,
                       TensorId t) {
    CascadeReaders r = cascade_readers(f, g, t);
    int64_t lead = 0;
    bool any = false;
    while (cascade_readers_next(&r)) {
        int64_t end = end_behind(node_of(f, g, r.i), lines->node[r.i].lead);
        lead = !any || end > lead ? end : lead;
        any = true;
    }
    return lead;
}

static void line_keeps(const Facts *f, const Cascade *g, const Lines *lines,
                       LineRing *line) {
    CascadeReaders r = cascade_readers(f, g, line->tensor);
    int64_t band = line->buffer.band, keep = 0;
    while (cascade_readers_next(&r)) {
        int64_t first = first_behind(node_of(f, g, r.i), lines->node[r.i].lead);
        keep = line->lead - first > keep ? line->lead - first : keep;
    }
    line->buffer.keep = (uint32_t)keep;
    line->buffer.shift = (uint32_t)(((-line->lead) % band + band) % band);
    line->passes = keep == 0;
}

static void leads_make(const Facts *f, const Cascade *g, Lines *lines) {
    for (uint32_t i = length(g); i-- > 0;) {
        int64_t q = node_quantum(f->g, cascade_node(f, g, i), 0);
        int64_t lead = lead_of(f, g, lines, result(f, g, i));
        lines->node[i].lead = floor_div(lead + q - 1, q) * q;
    }
    for (uint32_t i = 0; i < lines->at.n; i++) {
        LineRing *line = &lines->at.at[i];
        if (line->maker == NONE)
            line->lead = lead_of(f, g, lines, line->tensor);
        else
            line->lead = lines->node[line->maker].lead;
        if (line->maker != NONE)
            line->buffer.band = lines->node[line->maker].rows;
        line_keeps(f, g, lines, line);
    }
}

/* Rows of a tensor of `height` rows in band `index`. */
static Piece band_rows(int64_t index, uint32_t rows, int64_t lead,
                       uint32_t height) {
    int64_t at = index * rows + lead, end = at + rows;
    at = at < 0 ? 0 : at;
    end = end > height ? height : end;
    return at < end ? (Piece){(uint32_t)at, (uint32_t)(end - at)} : (Piece){0};
}

Piece lines_made(const Facts *f, const Cascade *g, const Lines *lines,
                 uint32_t i, int64_t band) {
    return band_rows(band, lines->node[i].rows, lines->node[i].lead,
                     f->memo->flow[g->first + i].size[0]);
}

Piece lines_loaded(const Facts *f, const LineRing *line, int64_t band) {
    return band_rows(band, line->buffer.band, line->lead,
                     volume(f, line->tensor).h);
}

static void bands_count(const Facts *f, const Cascade *g, Lines *lines) {
    lines->first = INT64_MAX;
    lines->end = INT64_MIN;
    for (uint32_t i = 0; i < length(g) + lines->n_loaded; i++) {
        bool node = i < length(g);
        const LineRing *line = node ? NULL : &lines->at.at[i - length(g)];
        int64_t rows = node ? lines->node[i].rows : line->buffer.band;
        int64_t lead = node ? lines->node[i].lead : line->lead;
        int64_t h = volume(f, node ? result(f, g, i) : line->tensor).h;
        int64_t first = floor_div(-lead, rows);
        int64_t end = floor_div(h - lead - 1, rows) + 1;
        lines->first = first < lines->first ? first : lines->first;
        lines->end = end > lines->end ? end : lines->end;
    }
}

/* ---- columns ---- */

typedef struct Sweep {
    const Facts *f;
    const Cascade *g;
    const FlowStep *step; /* by node */
    Lines *lines;
    int64_t band;
    LineVisitor *visit;
    void *context;
    uint32_t *done; /* by node: columns */
    bool *makes;    /* by node: rows in this band */
} Sweep;

static bool sweep_node(Sweep *s, uint32_t i, uint32_t end);

/* Whether an operand that is loaded lacks columns up to `end`. */
static void sweep_load(Sweep *s, uint32_t i, uint32_t line, uint32_t end) {
    LineRing *l = &s->lines->at.at[line];
    Piece rows = lines_loaded(s->f, l, s->band);
    if (l->loaded >= end || !rows.n)
        return;
    LineTurn turn = {.i = i,
                     .line = line,
                     .loads = true,
                     .rows = rows,
                     .cols = {l->loaded, end - l->loaded}};
    l->loaded = end;
    s->visit(s->context, &turn, s->done, s->makes);
}

static bool operands_swept(Sweep *s, uint32_t i, const Rows *need) {
    const FlowStep *step = &s->step[i];
    uint32_t end = need->in_row + need->in_rows;
    for (uint32_t k = 0; k < step->n_makers; k++) {
        uint32_t maker = step->maker[k] - s->g->first;
        if (maker < length(s->g)) {
            if (!sweep_node(s, maker, end))
                return false;
            continue;
        }
        uint32_t line = line_of(s->lines, node_of(s->f, s->g, i)->in[k]);
        if (line != NONE)
            sweep_load(s, i, line, end);
    }
    return true;
}

static bool sweep_node(Sweep *s, uint32_t i, uint32_t end) {
    NodeId id = s->step[i].node;
    uint32_t q = s->step[i].quantum[1];
    end = (end + q - 1) / q * q;
    if (!s->makes[i] || s->done[i] >= end)
        return true;
    Piece rows = lines_made(s->f, s->g, s->lines, i, s->band);
    Rows in_rows = rows_needed(s->f->g, id, rows.at, rows.n);
    while (s->done[i] < end) {
        uint32_t col = s->done[i], cols = s->lines->node[i].cols;
        cols = cols < end - col ? cols : end - col;
        LineTurn turn = {.i = i,
                         .line = NONE,
                         .rows = rows,
                         .cols = {col, cols},
                         .in_rows = in_rows,
                         .in_cols = columns_needed(s->f->g, id, col, cols)};
        if (!turn.in_rows.in_rows || !turn.in_cols.in_rows ||
            !operands_swept(s, i, &turn.in_cols))
            return false;
        s->done[i] = col + cols;
        s->visit(s->context, &turn, s->done, s->makes);
    }
    return true;
}

/* Whether somebody who makes rows in this band reads what node i makes. */
static bool is_awaited(const Sweep *s, uint32_t i) {
    const FlowStep *step = &s->step[i];
    for (uint32_t k = 0; k < step->n_readers; k++) {
        uint32_t reader = step->reader[k] - s->g->first;
        if (reader < length(s->g) && s->makes[reader])
            return true;
    }
    return false;
}

/* Loads what nobody has asked for in this band, as it would be. */
static void sweep_rest(Sweep *s) {
    for (uint32_t k = 0; k < s->lines->n_loaded; k++) {
        LineRing *line = &s->lines->at.at[k];
        uint32_t width = volume(s->f, line->tensor).w;
        CascadeReaders r = cascade_readers(s->f, s->g, line->tensor);
        if (!cascade_readers_next(&r) || !lines_loaded(s->f, line, s->band).n)
            continue;
        uint64_t read = volume(s->f, result(s->f, s->g, r.i)).w;
        uint64_t cols = s->lines->node[r.i].cols;
        uint32_t step = (uint32_t)((cols * width + read - 1) / read);
        while (line->loaded < width) {
            uint32_t end = line->loaded + step;
            sweep_load(s, r.i, k, end < width ? end : width);
        }
    }
}

/* Who is not asked keeps pace with the last result; columns that nobody asks
 * for come last. */
static bool sweep(Sweep *s, uint32_t most) {
    uint32_t n = length(s->g);
    uint32_t width = s->step[n - 1].size[1];
    uint32_t cols = s->lines->node[n - 1].cols,
             steps = (width + cols - 1) / cols;
    for (uint32_t i = 0; i < s->lines->n_loaded; i++)
        s->lines->at.at[i].loaded = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->done[i] = 0;
        s->makes[i] = lines_made(s->f, s->g, s->lines, i, s->band).n > 0;
    }
    for (uint32_t k = 1; k <= steps && k <= most; k++)
        for (uint32_t i = n; i-- > 0;) {
            uint64_t own = s->step[i].size[1];
            uint64_t end = k == steps ? own : own * cols * k / width;
            if (s->makes[i] && (k == steps || !is_awaited(s, i)) &&
                !sweep_node(s, i, (uint32_t)(end < own ? end : own)))
                return false;
        }
    if (steps <= most)
        sweep_rest(s);
    return true;
}

static Sweep sweep_new(const Facts *f, const Cascade *g, Lines *lines,
                       LineVisitor *visit, void *context) {
    return (Sweep){.f = f,
                   .g = g,
                   .step = f->memo->flow + g->first,
                   .lines = lines,
                   .visit = visit,
                   .context = context,
                   .done = ARENA_ARRAY(f->arena, uint32_t, length(g)),
                   .makes = ARENA_ARRAY(f->arena, bool, length(g))};
}

bool lines_roll(const Facts *f, const Cascade *g, Lines *lines,
                LineVisitor *visit, void *context) {
    Sweep s = sweep_new(f, g, lines, visit, context);
    for (s.band = lines->first; s.band < lines->end; s.band++)
        if (!sweep(&s, UINT32_MAX))
            return false;
    return true;
}

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
    if (!makes[i] || done[i] == s->size[1])
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
        if (s->reader[k] - first < length(v->g))
            end = wanted_by(v, s->reader[k] - first, done, makes, end);
    return end;
}

static uint32_t columns_done(const LineRing *line, const uint32_t *done) {
    return line->maker == NONE ? line->loaded : done[line->maker];
}

/* Whether the node at work reads the line. */
static bool reads(const Watch *v, const LineRing *line, const LineTurn *turn) {
    const Node *node = node_of(v->f, v->g, turn->i);
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
    for (uint32_t i = 0; i < length(g); i++)
        if (lines_made(f, g, lines, i, band).n)
            busy.makes |= UINT64_C(1) << i;
    for (uint32_t i = 0; i < lines->n_loaded; i++)
        if (lines_loaded(f, &lines->at.at[i], band).n)
            busy.loads |= UINT64_C(1) << i;
    return busy;
}

/* Bands in which the same comes are alike. `exact`: all kinds of
 * them and all columns; else the beginning of one in the middle. */
static bool spans_make(const Facts *f, const Cascade *g, Lines *lines,
                       bool exact) {
    enum { STEPS = 5 };
    Watch v = {.f = f, g, lines};
    Sweep s = sweep_new(f, g, lines, watch, &v);
    Busy last = {0};
    for (uint32_t i = 0; i < lines->at.n; i++) {
        lines->at.at[i].buffer.span = 1;
        lines->at.at[i].beside = 0;
    }
    s.band = (lines->first + lines->end) / 2;
    if (!exact)
        return sweep(&s, STEPS);
    for (s.band = lines->first; s.band < lines->end; s.band++) {
        Busy now = busy_in(f, g, lines, s.band);
        if ((now.makes != last.makes || now.loads != last.loads) &&
            !sweep(&s, UINT32_MAX))
            return false;
        last = now;
    }
    return true;
}

/* ---- bytes ---- */

Volume line_volume(const Facts *f, const LineRing *line) {
    Volume v = volume_in(f, line->tensor, 0);
    uint64_t pixels = lines_pixels(&line->buffer, v.w);
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
    uint32_t n = length(g);
    memset(lines, 0, sizeof *lines);
    for (uint32_t i = 0; i < n; i++) {
        const Node *node = node_of(f, g, i);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_maker(f, g, node->in[k]) == NONE &&
                !cascade_keeps(d, g, node->in[k]))
                line_add(f, lines, node->in[k], NONE);
    }
    lines->n_loaded = lines->at.n;
    for (uint32_t i = 0; i < n; i++)
        if (!cascade_keeps(d, g, result(f, g, i)))
            line_add(f, lines, result(f, g, i), i);
    lines->node = ARENA_ARRAY(f->arena, LineNode, n);
    return lines->at.n <= MOST && n <= MOST;
}

static uint32_t widest(const Facts *f, const Cascade *g) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < length(g); i++) {
        uint32_t own = volume(f, result(f, g, i)).w;
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
    uint32_t n = length(g);
    for (uint32_t i = 0; i < n; i++)
        lines->node[i].cols = columns_at_least(f, g, i, 1);
    if (!bytes_make(f, g, lines, false))
        return false;
    for (uint32_t i = n; i-- > 0;) {
        uint64_t before = lines->bytes;
        CascadeReaders r = cascade_readers(f, g, result(f, g, i));
        bool read = cascade_readers_next(&r);
        const Node *reader = read ? node_of(f, g, r.i) : NULL;
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
        !paces_make(f, g, lines))
        return false;
    leads_make(f, g, lines);
    bands_count(f, g, lines);
    if (g->cols == 1)
        return narrowest(f, g, lines, exact);
    uint64_t most = widest(f, g);
    for (uint32_t i = 0; i < length(g); i++) {
        uint64_t own = volume(f, result(f, g, i)).w;
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
