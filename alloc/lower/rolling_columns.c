/* rolling_columns.c - the actions of a cascade with line buffers.
 *
 * Input: a cascade, and where its line buffers lie. Output: in the order of
 * rolling_columns.c: the loads of columns, the runs, the stores of what the
 * outside needs.
 */
#include "alloc/cascade/lines.h"
#include "alloc/lower/emit.h"

typedef struct Turns {
    Emit *e;
    const Cascade *g;
    Lines lines;
    CascadeRuns runs;
} Turns;

static const LineRing *ring_of(const Turns *t, TensorId tensor) {
    uint32_t i = 0;
    while (!same_tensor(t->lines.at.at[i].tensor, tensor))
        i++;
    return &t->lines.at.at[i];
}

/* Pixels of the tensor, in its line buffer or in its volume. */
static uint32_t pixels_of(Turns *t, TensorId tensor, Piece rows, Piece cols) {
    Emit *e = t->e;
    if (cascade_keeps(e->d, t->g, tensor)) {
        uint32_t p = emit_view(e, tensor, rows.at, rows.n);
        e->placement.at[p].col = cols.at;
        e->placement.at[p].cols = cols.n;
        return p;
    }
    const LineRing *line = ring_of(t, tensor);
    Placement p = {.tensor = tensor,
                   .row = rows.at,
                   .rows = rows.n,
                   .col = cols.at,
                   .cols = cols.n,
                   .lines = line->buffer,
                   .left = t->g->strips ? line->strip.at : 0,
                   .pitch = t->g->strips ? line->width : 0,
                   .whole = line_volume(e->f, line),
                   .first = t->g->first,
                   .end = t->g->end};
    return emit_place(e, cascade_first_buf(e, t->g) + line->buf, line->offset,
                      p);
}

static void load_columns(Turns *t, const LineTurn *turn) {
    TensorId tensor = t->lines.at.at[turn->line].tensor;
    uint32_t from = emit_readable(t->e, tensor);
    emit_use_throughout(t->e, t->g, from);
    emit_move_all(t->e, ACTION_LOAD, from,
                  pixels_of(t, tensor, turn->rows, turn->cols));
}

static Piece piece(const Rows *need) {
    return (Piece){need->in_row, need->in_rows};
}

static void run_columns(Turns *t, const LineTurn *turn) {
    Emit *e = t->e;
    NodeId id = cascade_node(e->f, t->g, turn->i);
    const Node *node = graph_node(e->f->g, id);
    const Rows *rows = &turn->in_rows, *cols = &turn->in_cols;
    uint32_t in[MAX_OPERANDS];
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = pixels_of(t, node->in[k], piece(rows), piece(cols));
    uint32_t out = pixels_of(t, node->out[0], turn->rows, turn->cols);
    Action a = emit_run_new(e, id, in, out);
    a.in_row = rows->in_row;
    a.in_rows = rows->in_rows;
    a.pad_top = rows->pad_top;
    action_reads_columns(&a, *cols);
    if (t->g->strips) {
        a.fresh = t->lines.node[turn->i].strip.fresh;
        a.strip_end = t->lines.node[turn->i].strip.end;
    }
    emit_cascade_run(&t->runs, turn->i, a);
}

static void turn_emit(void *context, const LineTurn *turn, const uint32_t *done,
                      const bool *makes) {
    Turns *t = context;
    (void)done;
    (void)makes;
    t->e->step = t->g->first + turn->i;
    (turn->loads ? load_columns : run_columns)(t, turn);
}

static void turn_count(void *context, const LineTurn *turn,
                       const uint32_t *done, const bool *makes) {
    Turns *t = context;
    (void)done;
    (void)makes;
    t->runs.all[turn->i] += !turn->loads;
}

void emit_lines(Emit *e, const Cascade *g) {
    Turns t = {.e = e, .g = g, .runs = emit_cascade_begin(e, g)};
    t.lines = *cascade_lines(e->d, g);
    t.lines.at.at = ARENA_COPY(e->arena, LineRing, t.lines.at.at, t.lines.at.n);
    lines_number(&t.lines);
    e->lost |= !lines_roll(&(LineWalk){e->f, g, &t.lines, turn_count, &t}) ||
               !lines_roll(&(LineWalk){e->f, g, &t.lines, turn_emit, &t});
    if (!e->lost)
        emit_cascade_end(&t.runs);
}
