/* emit_rings.c - the actions of a group with rings.
 *
 * Input: a group, and where its rings lie. Output: in the order of
 * rings.c: the loads of rows that were not loaded before, the run of the rows
 * that are new, the stores of those that the outside needs.
 */
#include "alloc/emit.h"

typedef struct Turn {
    Emit *e;
    const Group *g;
    Rings rings;
    uint32_t *tile, *tiles; /* by node: runs so far, and in all */
} Turn;

static uint32_t ring_of(const Turn *r, TensorId t) {
    uint32_t i = 0;
    while (!same_tensor(r->rings.at.at[i].tensor, t))
        i++;
    return i;
}

/* Rows of the tensor, in its ring or in its volume. */
static uint32_t rows_of(Turn *r, TensorId t, uint32_t row, uint32_t rows) {
    if (group_keeps(r->e->w, r->g, t))
        return emit_view(r->e, t, row, rows);
    const Ring *ring = &r->rings.at.at[ring_of(r, t)];
    uint32_t p = emit_plank(r->e, r->g->first_buf + ring->buf, t, ring->rows,
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
    if (group_keeps(e->w, r->g, t))
        return;
    Ring *ring = &r->rings.at.at[ring_of(r, t)];
    uint32_t row;
    if (!ring_load(e->w, r->g, ring, roll, done, &row))
        return;
    uint32_t to = rows_of(r, t, row, ring->loaded - row);
    emit_move_all(e, ACTION_LOAD, emit_readable(e, t), to);
}

static void store_rows(Turn *r, uint32_t from, const Roll *roll, TensorId t) {
    uint32_t to[2], home;
    if (!r->e->w->role[t.i].outside)
        return;
    uint32_t n = emit_targets(r->e, t, to, &home);
    for (uint32_t k = 0; k < n; k++)
        emit_move(r->e, ACTION_STORE, from, to[k], roll->row, roll->rows);
}

static void run_rows(void *context, const Roll *roll, const uint32_t *done) {
    Turn *r = context;
    Emit *e = r->e;
    NodeId id = group_node(e->w, r->g, roll->i);
    const Node *node = graph_node(e->w->g, id);
    const Rows *need = &roll->need;
    uint32_t in[MAX_OPERANDS];
    e->step = r->g->first + roll->i;
    for (uint32_t k = 0; k < node->n_in; k++)
        load_rows(r, node->in[k], roll, done);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = rows_of(r, node->in[k], need->in_row, need->in_rows);
    uint32_t out = rows_of(r, node->out[0], roll->row, roll->rows);
    Action a = emit_run_new(e, id, in, out);
    a.in_row = need->in_row;
    a.in_rows = need->in_rows;
    a.pad_top = need->pad_top;
    a.pool_pad_top = need->pool_pad_top;
    a.tile = r->tile[roll->i]++;
    a.n_tiles = r->tiles[roll->i];
    emit_action(e, a);
    store_rows(r, out, roll, node->out[0]);
}

/* Volumes that the group fills. */
static void volumes_ready(Turn *r) {
    Emit *e = r->e;
    for (uint32_t i = 0; i < r->g->end - r->g->first; i++) {
        TensorId t = graph_node(e->w->g, group_node(e->w, r->g, i))->out[0];
        e->step = r->g->first + i;
        if (group_keeps(e->w, r->g, t))
            emit_made(e, t);
    }
}

static void count_runs(void *context, const Roll *roll, const uint32_t *done) {
    Turn *r = context;
    (void)done;
    r->tiles[roll->i]++;
}

void emit_rings(Emit *e, const Group *g) {
    uint32_t n = g->end - g->first;
    Turn r = {.e = e,
              .g = g,
              .tile = ARENA_ARRAY(e->arena, uint32_t, n),
              .tiles = ARENA_ARRAY(e->arena, uint32_t, n)};
    bool made =
        rings_make(e->w, g, &r.rings) && group_roll(e->w, g, count_runs, &r);
    volumes_ready(&r);
    if (!made || !group_roll(e->w, g, run_rows, &r))
        bug("rows of a group cannot be computed");
    e->step = g->first;
}
