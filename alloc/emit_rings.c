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
    struct Turner {
        uint32_t tile, tiles;       /* runs so far, and in all */
        uint32_t to[2], n_to, home; /* where its result is stored */
    } * node;                       /* by node of the group */
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
    uint32_t from = emit_readable(e, t);
    emit_use_throughout(e, r->g, from);
    emit_move_all(e, ACTION_LOAD, from, rows_of(r, t, row, ring->loaded - row));
}

static void run_rows(void *context, const Roll *roll, const uint32_t *done) {
    Turn *r = context;
    Emit *e = r->e;
    NodeId id = group_node(e->w, r->g, roll->i);
    const Node *node = graph_node(e->w->g, id);
    const Rows *need = &roll->need;
    struct Turner *own = &r->node[roll->i];
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
    a.tile = own->tile++;
    a.n_tiles = own->tiles;
    emit_action(e, a);
    for (uint32_t k = 0; k < own->n_to; k++)
        emit_move(e, ACTION_STORE, out, own->to[k], roll->row, roll->rows);
}

/* Where each result goes: into its volume, and outside. */
static void prepare(Turn *r) {
    Emit *e = r->e;
    for (uint32_t i = 0; i < r->g->end - r->g->first; i++) {
        TensorId t = graph_node(e->w->g, group_node(e->w, r->g, i))->out[0];
        struct Turner *own = &r->node[i];
        e->step = r->g->first + i;
        own->home = NONE;
        if (group_keeps(e->w, r->g, t))
            emit_made(e, t);
        if (r->g->stays ? e->w->role[t.i].outside : group_stores(e->w, r->g, t))
            own->n_to = emit_targets(e, t, own->to, &own->home);
        for (uint32_t k = 0; k < own->n_to; k++)
            emit_use_throughout(e, r->g, own->to[k]);
    }
}

static void finish(Turn *r) {
    Emit *e = r->e;
    for (uint32_t i = 0; i < r->g->end - r->g->first; i++)
        if (r->node[i].home != NONE)
            e->copy[graph_node(e->w->g, group_node(e->w, r->g, i))->out[0].i] =
                r->node[i].home;
    e->step = r->g->first;
}

static void count_runs(void *context, const Roll *roll, const uint32_t *done) {
    Turn *r = context;
    (void)done;
    r->node[roll->i].tiles++;
}

void emit_rings(Emit *e, const Group *g) {
    Turn r = {.e = e,
              .g = g,
              .node = ARENA_ARRAY(e->arena, struct Turner, g->end - g->first)};
    bool made =
        rings_make(e->w, g, &r.rings) && group_roll(e->w, g, count_runs, &r);
    prepare(&r);
    if (!made || !group_roll(e->w, g, run_rows, &r))
        bug("rows of a group cannot be computed");
    finish(&r);
}
