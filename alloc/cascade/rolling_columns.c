/* rolling_columns.c - cascades that roll by rows and, within these, by columns.
 *
 * Input: a cascade of a machine whose operands may lie in line buffers. Output:
 * in which order its nodes make which pixels. Within a band (line_bands.c) a
 * node that is asked for columns first asks those that make its operands for
 * what it lacks, as rolling_rows.c does by rows; so all bands of a strip
 * (line_strips.c), then those of the next one. Within a strip nothing is
 * computed twice. Recursion is as deep as a cascade is long.
 */
#include "alloc/cascade/lines.h"

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
        if (maker < cascade_length(s->g)) {
            if (!sweep_node(s, maker, end))
                return false;
            continue;
        }
        uint32_t line = line_of(s->lines, line_node(s->f, s->g, i)->in[k]);
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
        if (reader < cascade_length(s->g) && s->makes[reader])
            return true;
    }
    return false;
}

/* Loads what nobody has asked for in this band, as it would be. */
static void sweep_rest(Sweep *s) {
    for (uint32_t k = 0; k < s->lines->n_loaded; k++) {
        LineRing *line = &s->lines->at.at[k];
        uint64_t width = plan_volume(s->f->g, line->tensor).w;
        CascadeReaders r = cascade_readers(s->f, s->g, line->tensor);
        if (!cascade_readers_next(&r) || !lines_loaded(s->f, line, s->band).n)
            continue;
        uint64_t read = s->step[r.i].size[1];
        uint64_t cols = s->lines->node[r.i].cols;
        uint32_t step = (uint32_t)((cols * width + read - 1) / read);
        while (line->loaded < line->strip.end) {
            uint32_t end = line->loaded + step, all = line->strip.end;
            sweep_load(s, r.i, k, end < all ? end : all);
        }
    }
}

static void sweep_begin(Sweep *s) {
    for (uint32_t i = 0; i < s->lines->n_loaded; i++)
        s->lines->at.at[i].loaded = s->lines->at.at[i].strip.at;
    for (uint32_t i = 0; i < cascade_length(s->g); i++) {
        const Strip *strip = &s->lines->node[i].strip;
        s->done[i] = strip->at;
        s->makes[i] = strip->at < strip->end &&
                      lines_made(s->f, s->g, s->lines, i, s->band).n > 0;
    }
}

/* Who is not asked keeps pace with the last result; columns that nobody asks
 * for come last. */
static bool sweep(Sweep *s, uint32_t most) {
    uint32_t n = cascade_length(s->g);
    const LineNode *last = &s->lines->node[n - 1];
    uint32_t width = last->strip.end - last->strip.at, cols = last->cols;
    uint32_t steps = (width + cols - 1) / cols;
    sweep_begin(s);
    for (uint32_t k = 1; k <= steps && k <= most; k++)
        for (uint32_t i = n; i-- > 0;) {
            const Strip *strip = &s->lines->node[i].strip;
            uint64_t own = strip->end - strip->at;
            uint64_t end = k == steps ? own : own * cols * k / width;
            end = strip->at + (end < own ? end : own);
            if (s->makes[i] && (k == steps || !is_awaited(s, i)) &&
                !sweep_node(s, i, (uint32_t)end))
                return false;
        }
    if (steps <= most)
        sweep_rest(s);
    return true;
}

static Sweep sweep_new(const LineWalk *walk) {
    const Facts *f = walk->f;
    const Cascade *g = walk->g;
    return (Sweep){.f = f,
                   .g = g,
                   .step = f->memo->flow + g->first,
                   .lines = walk->lines,
                   .visit = walk->visit,
                   .context = walk->context,
                   .done = ARENA_ARRAY(f->arena, uint32_t, cascade_length(g)),
                   .makes = ARENA_ARRAY(f->arena, bool, cascade_length(g))};
}

bool lines_sweep(const LineWalk *walk, int64_t band, uint32_t most) {
    Sweep s = sweep_new(walk);
    s.band = band;
    return sweep(&s, most);
}

bool lines_roll(const LineWalk *walk) {
    Lines *lines = walk->lines;
    Sweep s = sweep_new(walk);
    for (uint32_t k = 0; k < cascade_strips(walk->g); k++) {
        strip_enter(walk->f, walk->g, lines, k);
        for (s.band = lines->first; s.band < lines->end; s.band++)
            if (!sweep(&s, UINT32_MAX))
                return false;
    }
    return true;
}
