/* rolling_rows.c - the actions of a cascade with rings.
 *
 * Input: a cascade, and where its rings lie. Output: in the order of
 * rolling_rows.c: the loads of rows that were not loaded before, the run of the
 * rows that are new, the stores of those that the outside needs.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/lower/emit.h"

typedef struct Turn {
    Emit *e;
    const Cascade *g;
    Rings rings;
    CascadeRuns runs;
} Turn;

static uint32_t ring_of(const Turn *r, TensorId t) {
    uint32_t i = 0;
    while (!same_tensor(r->rings.at.at[i].tensor, t))
        i++;
    return i;
}

/* Rows of the tensor, in its ring or in its volume. */
static uint32_t rows_of(Turn *r, TensorId t, uint32_t row, uint32_t rows) {
    if (cascade_keeps(r->e->d, r->g, t))
        return emit_view(r->e, t, row, rows);
    uint32_t c, whole = ring_whole(r->e->f, &r->rings, ring_of(r, t), &c);
    const Ring *ring = &r->rings.at.at[whole];
    uint32_t buf = cascade_first_buf(r->e, r->g) + ring->buf;
    uint32_t p = emit_part(r->e, (RowTile){buf, c, ring->tensor}, t, ring->rows,
                           ring->rows);
    Placement *held = &r->e->placement.at[p];
    held->row = row;
    held->rows = rows;
    held->ring = true;
    held->first = r->g->first;
    held->end = r->g->end;
    return p;
}

static void load_rows(Turn *r, TensorId t, const Roll *roll,
                      const uint32_t *done) {
    Emit *e = r->e;
    if (cascade_keeps(e->d, r->g, t))
        return;
    Ring *ring = &r->rings.at.at[ring_of(r, t)];
    uint32_t row;
    if (!ring_load(e->f, r->g, ring, roll, done, &row))
        return;
    uint32_t from = emit_readable(e, t);
    emit_use_throughout(e, r->g, from);
    emit_move_all(e, ACTION_LOAD, from, rows_of(r, t, row, ring->loaded - row));
}

static void run_rows(void *context, const Roll *roll, const uint32_t *done) {
    Turn *r = context;
    Emit *e = r->e;
    NodeId id = cascade_node(e->f, r->g, roll->i);
    const Node *node = graph_node(e->f->g, id);
    const Rows *need = &roll->need;
    bool joins = is_placed(e->f, id);
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in + 1);
    e->step = r->g->first + roll->i;
    for (uint32_t k = 0; k < node->n_in; k++)
        load_rows(r, node->in[k], roll, done);
    for (uint32_t k = 0; k < node->n_in; k++) {
        Rows own = operand_rows(e->f, id, node->in[k], *need);
        in[k] = rows_of(r, node->in[k], own.in_row, own.in_rows);
    }
    uint32_t out = rows_of(r, node->out[0], roll->row, roll->rows);
    Action a = emit_run_new(e, id, in, out);
    a.kind = joins ? ACTION_CONCAT : ACTION_RUN;
    action_reads(&a, *need);
    emit_cascade_run(&r->runs, roll->i, a);
}

static void count_runs(void *context, const Roll *roll, const uint32_t *done) {
    Turn *r = context;
    (void)done;
    r->runs.all[roll->i]++;
}

void emit_rings(Emit *e, const Cascade *g) {
    Turn r = {.e = e, .g = g, .runs = emit_cascade_begin(e, g)};
    r.rings = *cascade_rings(e->d, g);
    r.rings.at.at = ARENA_COPY(e->arena, Ring, r.rings.at.at, r.rings.at.n);
    e->lost |= !cascade_roll(e->f, g, count_runs, &r) ||
               !cascade_roll(e->f, g, run_rows, &r);
    if (!e->lost)
        emit_cascade_end(&r.runs);
}
