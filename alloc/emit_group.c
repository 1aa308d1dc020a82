/* emit_group.c - the actions of a group that runs depth first.
 *
 * Input: a group, and where its buffers lie. Output: for each stripe, node by
 * node: the loads of rows that come from outside the group, the run, the
 * stores of what others need.
 * The buffers live by step as if the group had one stripe; stripes follow each
 * other, so they use the same ones.
 */
#include "alloc/emit.h"

typedef struct Member {
    uint32_t to[2], n_to, home; /* where its result is stored */
    uint32_t done;              /* rows of it that are computed */
    uint32_t placed;            /* its result of this stripe */
} Member;

/* Stripes come in turns, so what any of them uses is in use all the time. */
void emit_use_throughout(Emit *e, const Group *g, uint32_t placement) {
    uint32_t region = e->region_of.at[placement];
    if (region == NONE)
        return;
    region_use(&e->regions, region, g->first);
    region_use(&e->regions, region, g->end - 1);
}

static uint32_t copy_of(Emit *e, uint32_t from, uint32_t buf, TensorId t,
                        const Rows *need) {
    uint32_t plank = emit_plank(e, buf, t, need->in_row, need->in_rows);
    emit_move_all(e, ACTION_COPY, from, plank);
    e->action.at[e->action.n - 1].legal = copy_legal(e->w, t);
    return plank;
}

/* `copied`: in some stripe, so that it has a buffer. */
static uint32_t operand(Emit *e, const Group *g, const Member *member,
                        TensorId t, uint32_t *buf, const Rows *need,
                        bool copied) {
    uint32_t maker = group_maker(e->w, g, t);
    if (maker != NONE) {
        uint32_t from = member[maker].placed, own = copied ? (*buf)++ : NONE;
        const Placement *p = &e->placement.at[from];
        bool same = p->row == need->in_row && p->rows == need->in_rows;
        return same ? from : copy_of(e, from, own, t, need);
    }
    uint32_t from = emit_readable(e, t);
    emit_use_throughout(e, g, from);
    uint32_t plank = emit_plank(e, (*buf)++, t, need->in_row, need->in_rows);
    emit_move_all(e, ACTION_LOAD, from, plank);
    return plank;
}

static void run_member(Emit *e, const Group *g, Member *member, uint32_t i,
                       const Stripe *stripe, uint32_t copies, uint32_t tile) {
    NodeId id = group_node(e->w, g, i);
    const Node *node = graph_node(e->w->g, id);
    uint32_t in[MAX_OPERANDS];
    uint32_t buf = emit_first_buf(&e->w->mode[id.i], tile);
    e->step = g->first + i;
    for (uint32_t k = 0; k < node->n_in; k++)
        in[k] = operand(e, g, member, node->in[k], &buf, &stripe->need,
                        copies >> k & 1);
    uint32_t out = emit_plank(e, buf, node->out[0], stripe->row, stripe->rows);
    e->placement.at[out].end = group_last_use(e->w, g, node->out[0]) + 1;
    Action a = emit_run_new(e, id, in, out);
    a.in_row = stripe->need.in_row;
    a.in_rows = stripe->need.in_rows;
    a.pad_top = stripe->need.pad_top;
    a.pool_pad_top = stripe->need.pool_pad_top;
    a.tile = tile;
    a.n_tiles = group_stripes(e->w, g);
    a.again = member[i].done - stripe->row;
    member[i].done = stripe->row + stripe->rows;
    member[i].placed = out;
    emit_action(e, a);
    for (uint32_t k = 0; k < member[i].n_to; k++)
        emit_move(e, ACTION_STORE, out, member[i].to[k], stripe->row,
                  stripe->rows);
}

static void find_targets(Emit *e, const Group *g, Member *member) {
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        TensorId out = graph_node(e->w->g, group_node(e->w, g, i))->out[0];
        member[i].home = NONE;
        if (group_stores(e->w, g, out))
            member[i].n_to =
                emit_targets(e, out, member[i].to, &member[i].home);
        for (uint32_t k = 0; k < member[i].n_to; k++)
            emit_use_throughout(e, g, member[i].to[k]);
    }
}

static void emit_stripes(Emit *e, const Group *g) {
    uint32_t n = g->end - g->first;
    Stripe *stripe = ARENA_ARRAY(e->arena, Stripe, n);
    Stripe *most = ARENA_ARRAY(e->arena, Stripe, n);
    Member *member = ARENA_ARRAY(e->arena, Member, n);
    group_highest(e->w, g, most);
    find_targets(e, g, member);
    for (uint32_t k = 0, end = group_stripes(e->w, g); k < end; k++) {
        bool made = stripe_make(e->w, g, k, stripe);
        if (!made)
            bug("a stripe of a group cannot be computed");
        for (uint32_t i = 0; i < n; i++)
            run_member(e, g, member, i, &stripe[i], most[i].copies, k);
    }
    e->step = g->first;
    for (uint32_t i = 0; i < n; i++) {
        TensorId out = graph_node(e->w->g, group_node(e->w, g, i))->out[0];
        if (member[i].home != NONE)
            e->copy[out.i] = member[i].home;
    }
}

void emit_group(Emit *e, const Group *g) {
    (!g->rolls ? emit_stripes : g->cols ? emit_lines : emit_rings)(e, g);
}
