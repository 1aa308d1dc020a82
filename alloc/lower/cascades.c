/* cascades.c - the actions of a cascade that runs depth first.
 *
 * Input: a cascade, and where its buffers lie. Output: for each stripe, node by
 * node: the loads of rows that come from outside the cascade, the run, the
 * stores of what others need.
 * The buffers live by step as if the cascade had one stripe; stripes follow
 * each other, so they use the same ones.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/tensor_bytes.h"
#include "alloc/lower/emit.h"

/* What node i of a cascade has made, or what several share. */
typedef struct Member {
    uint32_t done;   /* rows of it that are computed */
    uint32_t placed; /* those of this stripe */
} Member;

/* Stripes come in turns, so what any of them uses is in use all the time. */
void emit_use_throughout(Emit *e, const Cascade *g, uint32_t placement) {
    uint32_t region = e->region_of.at[placement];
    if (region == NONE)
        return;
    region_use(&e->regions, region, g->first);
    region_use(&e->regions, region, g->end - 1);
}

static uint32_t copy_to(Emit *e, uint32_t from, uint32_t row_tile) {
    emit_copy(e, from, row_tile);
    return row_tile;
}

static uint32_t load_to(Emit *e, const Cascade *g, uint32_t row_tile) {
    uint32_t from = emit_rows_into(e, row_tile);
    if (from != NONE)
        emit_use_throughout(e, g, from);
    return row_tile;
}

/* Loads what node i is the first to read of what several do. */
static void load_shared(Emit *e, const Cascade *g, Member *member, uint32_t i,
                        uint32_t *buf, const Stripe *stripe) {
    uint32_t n = cascade_length(g);
    for (uint32_t s = 0; s < g->n_shared; s++) {
        const Stripe *own = &stripe[n + s];
        TensorId t = g->shared[s];
        if (shared_first(e->f, g, s) != i)
            continue;
        uint32_t p = emit_row_tile(e, (*buf)++, t, own->row, own->rows);
        e->placement.at[p].end = cascade_last_use(e->f, g, t) + 1;
        member[n + s].placed = load_to(e, g, p);
    }
}

/* `copied`: in some stripe, so that it has a buffer. */
static uint32_t operand(const CascadeRuns *runs, const Member *member,
                        TensorId t, uint32_t *buf, const Rows *need,
                        bool copied) {
    Emit *e = runs->e;
    const Cascade *g = runs->g;
    uint32_t holder = cascade_holder(e->f, g, t);
    if (holder != NONE) {
        uint32_t from = member[holder].placed, own = copied ? (*buf)++ : NONE;
        const Placement *p = &e->placement.at[from];
        bool same = p->row == need->in_row && p->rows == need->in_rows;
        return same ? from
                    : copy_to(e, from,
                              emit_row_tile(e, own, t, need->in_row,
                                            need->in_rows));
    }
    return load_to(e, g,
                   emit_row_tile(e, (*buf)++, t, need->in_row, need->in_rows));
}

/* Where the result of node i lies. `own`: node i's buffer for its result, if it
 * has one. */
static RowTile row_tile_of(const Emit *e, const Cascade *g, uint32_t i,
                           uint32_t own, uint32_t tile) {
    RowTile row_tile = {.buf = own};
    uint32_t by = cascade_row_tile(e->f, g, i, &row_tile.c);
    NodeId id = cascade_node(e->f, g, by);
    row_tile.root = graph_node(e->f->g, id)->out[0];
    if (by != i)
        row_tile.buf = emit_first_buf(e, id, tile) + shared_by(e->f, g, by);
    return row_tile;
}

static uint32_t place_result(Emit *e, const Cascade *g, RowTile row_tile,
                             TensorId t, const Stripe *stripe) {
    uint32_t p = emit_part(e, row_tile, t, stripe->row, stripe->rows);
    e->placement.at[p].end = cascade_last_use(e->f, g, t) + 1;
    return p;
}

static void finish(CascadeRuns *runs, Member *member, uint32_t i, Action a,
                   const Stripe *stripe) {
    a.again = member->done - stripe->row;
    member->done = stripe->row + stripe->rows;
    member->placed = a.out;
    emit_cascade_run(runs, i, a);
}

static void run_member(CascadeRuns *runs, Member *member, uint32_t i,
                       const Stripe *all, uint32_t copies) {
    Emit *e = runs->e;
    const Cascade *g = runs->g;
    const Stripe *stripe = &all[i];
    uint32_t tile = runs->done[i];
    NodeId id = cascade_node(e->f, g, i);
    const Node *node = graph_node(e->f->g, id);
    uint32_t in[MAX_OPERANDS];
    uint32_t buf = emit_first_buf(e, id, tile);
    load_shared(e, g, member, i, &buf, all);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = operand(runs, member, node->in[k], &buf, &stripe->need,
                        copies >> k & 1);
    RowTile row_tile = row_tile_of(e, g, i, buf, tile);
    Action a = emit_run_new(e, id, in,
                            place_result(e, g, row_tile, node->out[0], stripe));
    action_reads(&a, stripe->need);
    finish(runs, &member[i], i, a, stripe);
}

/* ---- concats ---- */

/* What the host or the user wrote has a place of its own outside; others need
 * it in the concat's, too. */
static void bring_home(Emit *e, const Cascade *g, uint32_t placed) {
    Placement p = e->placement.at[placed];
    Origin origin = e->f->role[p.tensor.i].origin;
    uint32_t to[2], home;
    if ((origin != FROM_INPUT && origin != FROM_HOST) ||
        !cascade_leaves(e->f, g, p.tensor))
        return;
    for (uint32_t k = 0, n = emit_targets(e, p.tensor, to, &home); k < n; k++) {
        emit_use_throughout(e, g, to[k]);
        emit_move(e, ACTION_STORE, placed, to[k], p.row, p.rows);
    }
}

static uint32_t join_operand(Emit *e, const Cascade *g, const Member *member,
                             TensorId t, RowTile row_tile,
                             const Stripe *stripe) {
    uint32_t holder = cascade_holder(e->f, g, t);
    if (cascade_joins(e->f, g, t))
        return member[holder].placed;
    row_tile.c += e->f->role[t.i].part_c;
    uint32_t part = place_result(e, g, row_tile, t, stripe);
    if (holder != NONE)
        copy_to(e, member[holder].placed, part);
    else
        load_to(e, g, part);
    if (cascade_maker(e->f, g, t) == NONE)
        bring_home(e, g, part);
    return part;
}

static void join_members(CascadeRuns *runs, Member *member, uint32_t i,
                         const Stripe *all) {
    Emit *e = runs->e;
    const Cascade *g = runs->g;
    const Stripe *stripe = &all[i];
    uint32_t tile = runs->done[i];
    NodeId id = cascade_node(e->f, g, i);
    const Node *node = graph_node(e->f->g, id);
    uint32_t *in = ARENA_ARRAY(e->arena, uint32_t, node->n_in);
    uint32_t own = emit_first_buf(e, id, tile);
    load_shared(e, g, member, i, &own, all);
    RowTile row_tile = row_tile_of(e, g, i, own, tile);
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = join_operand(e, g, member, node->in[k], row_tile, stripe);
    Action a = emit_run_new(e, id, in,
                            place_result(e, g, row_tile, node->out[0], stripe));
    a.kind = ACTION_CONCAT;
    a.in_row = stripe->row;
    a.in_rows = stripe->rows;
    finish(runs, &member[i], i, a, stripe);
}

/* ---- the cascade ---- */

/* All that others read of a concat its members bring to its place. */
static void drop_home(Target *target) {
    if (target->home != NONE)
        target->to[0] = target->to[--target->n];
}

static Target target_of(Emit *e, const Cascade *g, uint32_t i) {
    NodeId id = cascade_node(e->f, g, i);
    TensorId t = graph_node(e->f->g, id)->out[0];
    Target own = {.home = NONE};
    if (cascade_keeps(e->d, g, t))
        emit_made(e, t);
    if (g->stays ? e->f->role[t.i].outside : cascade_stores(e->f, g, t))
        own.n = emit_targets(e, t, own.to, &own.home);
    if (is_placed(e->f, id))
        drop_home(&own);
    for (uint32_t k = 0; k < own.n; k++)
        emit_use_throughout(e, g, own.to[k]);
    return own;
}

CascadeRuns emit_cascade_begin(Emit *e, const Cascade *g) {
    uint32_t n = cascade_length(g);
    CascadeRuns runs = {.e = e,
                        .g = g,
                        .done = ARENA_ARRAY(e->arena, uint32_t, n),
                        .all = ARENA_ARRAY(e->arena, uint32_t, n),
                        .target = ARENA_ARRAY(e->arena, Target, n)};
    for (uint32_t i = 0; i < n; i++) {
        e->step = g->first + i;
        runs.target[i] = target_of(e, g, i);
    }
    return runs;
}

/* Columns that the strip before has made are stored. */
static void store_new(Emit *e, const Action *run, uint32_t to) {
    Action a = emit_new(e, ACTION_STORE, 1, &run->out, to);
    uint32_t end = run->col + run->cols;
    a.row = run->row;
    a.rows = run->rows;
    a.col = run->col > run->fresh ? run->col : run->fresh;
    a.cols = end > a.col ? end - a.col : 0;
    if (a.cols)
        emit_action(e, a);
}

void emit_cascade_run(CascadeRuns *runs, uint32_t i, Action a) {
    const Target *target = &runs->target[i];
    a.tile = runs->done[i]++;
    a.n_tiles = runs->all[i];
    emit_action(runs->e, a);
    for (uint32_t k = 0; k < target->n; k++)
        store_new(runs->e, &a, target->to[k]);
}

void emit_cascade_end(CascadeRuns *runs) {
    Emit *e = runs->e;
    const Cascade *g = runs->g;
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        TensorId out = graph_node(e->f->g, cascade_node(e->f, g, i))->out[0];
        if (runs->target[i].home != NONE)
            e->copy[out.i] = runs->target[i].home;
    }
    e->step = g->first;
}

static void emit_stripe(CascadeRuns *runs, Member *member, const Stripe *stripe,
                        const Stripe *most) {
    Emit *e = runs->e;
    const Cascade *g = runs->g;
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        e->step = g->first + i;
        if (is_placed(e->f, cascade_node(e->f, g, i)))
            join_members(runs, member, i, stripe);
        else
            run_member(runs, member, i, stripe, most[i].copies);
    }
}

static void emit_stripes(Emit *e, const Cascade *g) {
    uint32_t stripes = cascade_stripes(e->f, g);
    Stripe *stripe = ARENA_ARRAY(e->arena, Stripe, cascade_held(g));
    const Stripe *most = cascade_highest(e->f, g);
    Member *member = ARENA_ARRAY(e->arena, Member, cascade_held(g));
    CascadeRuns runs = emit_cascade_begin(e, g);
    for (uint32_t i = 0; i < cascade_length(g); i++)
        runs.all[i] = stripes;
    for (uint32_t k = 0; k < stripes && !emit_gives_up(e) && !e->lost; k++) {
        e->lost = !stripe_make(e->f, g, k, stripe);
        if (!e->lost)
            emit_stripe(&runs, member, stripe, most);
    }
    if (!e->lost)
        emit_cascade_end(&runs);
}

void emit_cascade(Emit *e, const Cascade *g) {
    (!g->rolls ? emit_stripes : g->cols ? emit_lines : emit_rings)(e, g);
}
