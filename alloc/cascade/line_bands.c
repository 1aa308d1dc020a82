/* line_bands.c - which rows a cascade with line buffers makes in each band.
 *
 * Input: a cascade, and the tensors that lie in line buffers. Output: of each
 * node the rows of a band, and how many it is ahead of the last one; of each
 * line buffer the rows that it keeps.
 * The last result comes in bands of the fewest rows with which those of all
 * other tensors come in whole numbers of rows; a tensor is so many rows ahead
 * that its readers find all they need (Alwani et al., MICRO 2016: a pyramid
 * that moves down).
 */
#include "alloc/cascade/lines.h"
#include "base/arith.h"

/* A result is computed in bands of at most so many rows. */
enum { MAX_BAND = 64 };

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
    const Node *node = line_node(p->f, p->g, i);
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
    uint32_t n = cascade_length(p->g);
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
    uint32_t n = cascade_length(g);
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
        int64_t end = end_behind(line_node(f, g, r.i), lines->node[r.i].lead);
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
        int64_t first =
            first_behind(line_node(f, g, r.i), lines->node[r.i].lead);
        keep = line->lead - first > keep ? line->lead - first : keep;
    }
    line->buffer.keep = (uint32_t)keep;
    line->buffer.shift = (uint32_t)(((-line->lead) % band + band) % band);
    line->passes = keep == 0;
}

static void leads_make(const Facts *f, const Cascade *g, Lines *lines) {
    for (uint32_t i = cascade_length(g); i-- > 0;) {
        int64_t q = node_quantum(f->g, cascade_node(f, g, i), 0);
        int64_t lead = lead_of(f, g, lines, line_result(f, g, i));
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
                     plan_volume(f->g, line->tensor).h);
}

static void bands_count(const Facts *f, const Cascade *g, Lines *lines) {
    lines->first = INT64_MAX;
    lines->end = INT64_MIN;
    for (uint32_t i = 0; i < cascade_length(g) + lines->n_loaded; i++) {
        bool node = i < cascade_length(g);
        const LineRing *line =
            node ? NULL : &lines->at.at[i - cascade_length(g)];
        int64_t rows = node ? lines->node[i].rows : line->buffer.band;
        int64_t lead = node ? lines->node[i].lead : line->lead;
        int64_t h =
            plan_volume(f->g, node ? line_result(f, g, i) : line->tensor).h;
        int64_t first = floor_div(-lead, rows);
        int64_t end = floor_div(h - lead - 1, rows) + 1;
        lines->first = first < lines->first ? first : lines->first;
        lines->end = end > lines->end ? end : lines->end;
    }
}

bool line_bands_make(const Facts *f, const Cascade *g, Lines *lines) {
    if (!paces_make(f, g, lines))
        return false;
    leads_make(f, g, lines);
    bands_count(f, g, lines);
    return true;
}
