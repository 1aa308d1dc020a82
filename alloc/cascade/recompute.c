/* recompute.c - cascades of nodes that run depth first, stripe by stripe.
 *
 * Input: a cascade: consecutive steps of one engine node each, and the rows of
 * its last result that a stripe has. Output: the rows of every operand of every
 * stripe, and what the cascade costs: bytes of active memory, bytes moved,
 * work, instructions. What is made and read within the cascade never exists
 * whole. An instruction writes a dense volume, and in layouts with channels
 * outside of rows the rows of a stripe are together only within a channel: rows
 * that the stripe before has computed cannot stand in one volume with new ones,
 * so each stripe computes the halo of its readers again
 * (facts/two-level.md 1.5, 2.2). A reader that needs fewer rows of a stripe
 * than another gets a copy of them.
 */
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"
#include "base/arith.h"

NodeId cascade_node(const Facts *f, const Cascade *g, uint32_t i) {
    return f->schedule->step[g->first + i].slot[0].node;
}

/* Index in the cascade of the node that makes the tensor; NONE if none does. */
uint32_t cascade_maker(const Facts *f, const Cascade *g, TensorId t) {
    NodeId id = graph_tensor(f->g, t)->producer;
    uint32_t step = f->schedule->step_of[id.i];
    return step != NONE && g->first <= step && step < g->end ? step - g->first
                                                             : NONE;
}

CascadeReaders cascade_readers(const Facts *f, const Cascade *g, TensorId t) {
    return (CascadeReaders){.f = f, g, t, f->uses.start[t.i], 0};
}

bool cascade_readers_next(CascadeReaders *r) {
    while (r->at < r->f->uses.start[r->t.i + 1]) {
        uint32_t step = r->f->schedule->step_of[r->f->uses.node[r->at++].i];
        if (step != NONE && r->g->first <= step && step < r->g->end) {
            r->i = step - r->g->first;
            return true;
        }
    }
    return false;
}

uint32_t cascade_kind(const Facts *f, NodeId id) {
    if (is_placed(f, id))
        return concat_may_join(f, id) ? KIND_CONCAT : 0;
    return on_engine(f, id) && node_quantum(f->g, id, 0) > 1 ? KIND_SPREADS : 0;
}

bool cascade_may_hold(const Decisions *d, uint32_t step) {
    const Facts *f = d->f;
    const Step *s = &f->schedule->step[step];
    NodeId id = s->slot[0].node;
    const Node *node = graph_node(f->g, id);
    if (s->n != 1 || f->spec->tiling.kind != HW_TILING_SOFTWARE ||
        node_keeps(f, id) || d->config->without & cascade_kind(f, id))
        return false;
    if (is_placed(f, id))
        return concat_may_join(f, id);
    return on_engine(f, id) &&
           f->spec->tiling.rows.ops >> f->legal[id.i].op & 1 &&
           d->mode[id.i].kind != MODE_AHEAD &&
           engine_takes_parts(f->spec, f->g, &f->legal[id.i], id, 0) &&
           sums_have_room(f, id, 0, 1, plan_volume(f->g, node->out[0]).w) &&
           (f->spec->tiling.rows.rolls != HW_ROLLS_COLUMNS ||
            engine_takes_parts(f->spec, f->g, &f->legal[id.i], id, 1)) &&
           (node->op != OP_DECONV || deconv_spreads(node));
}

bool cascade_may_begin(const Decisions *d, uint32_t step) {
    return cascade_may_hold(d, step) &&
           !is_placed(d->f, d->f->schedule->step[step].slot[0].node);
}

static bool read_outside(const Facts *f, const Cascade *g, TensorId t) {
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        uint32_t step = f->schedule->step_of[f->uses.node[i].i];
        if (on_engine(f, f->uses.node[i]) &&
            (step < g->first || step >= g->end))
            return true;
    }
    return false;
}

bool cascade_leaves(const Facts *f, const Cascade *g, TensorId t) {
    while (!read_outside(f, g, t)) {
        t = f->role[t.i].parent;
        if (t.i == NONE)
            return false;
        if (cascade_maker(f, g, t) == NONE)
            return true;
    }
    return true;
}

bool cascade_stores(const Facts *f, const Cascade *g, TensorId t) {
    const Role *role = &f->role[t.i];
    bool dead = !role->engine_reads && role->parent.i == NONE;
    return role->outside || dead || cascade_leaves(f, g, t);
}

uint32_t cascade_last_use(const Facts *f, const Cascade *g, TensorId t) {
    uint32_t made = f->role[t.i].made, last = made == NONE ? 0 : made;
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        uint32_t step = f->schedule->step_of[f->uses.node[i].i];
        if (step < g->end && step > last)
            last = step;
    }
    return last;
}

uint32_t cascade_reach(const Facts *f, const Cascade *g, TensorId t) {
    uint32_t memories = UINT32_MAX;
    NodeId maker = graph_tensor(f->g, t)->producer;
    if (cascade_maker(f, g, t) != NONE)
        memories = reach(f, maker, HW_OUT);
    if (cascade_maker(f, g, t) != NONE && is_placed(f, maker)) {
        const Node *node = graph_node(f->g, maker);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_joins(f, g, node->in[k]))
                memories &= cascade_reach(f, g, node->in[k]);
    }
    for (uint32_t i = f->uses.start[t.i]; i < f->uses.start[t.i + 1]; i++) {
        uint32_t step = f->schedule->step_of[f->uses.node[i].i];
        if (g->first <= step && step < g->end)
            memories &= reach_of(f, f->uses.node[i], t);
    }
    return memories;
}

/* ---- rows ---- */

/* Rows of the input behind output rows [row, row + rows). Within a cascade all
 * rows between two stripes are computed, also where nothing reads them. */
static Rows needed(const Facts *f, NodeId id, uint32_t row, uint32_t rows,
                   bool inner) {
    Rows need = rows_needed(f->g, id, row, rows);
    const Node *node = graph_node(f->g, id);
    if (only_rolls(node)) /* no stripe has these rows */
        return (Rows){0};
    uint32_t h = plan_volume(f->g, node->out[0]).h;
    uint32_t size = plan_volume(f->g, node->in[0]).h;
    uint32_t next = size;
    if (!inner || !need.in_rows)
        return need;
    if (row + rows < h) {
        Rows after = rows_needed(f->g, id, row + rows, 1);
        next = after.in_rows ? after.in_row : 0;
    }
    if (need.in_row + need.in_rows < next)
        need.in_rows = next - need.in_row;
    return need;
}

static TensorId held_tensor(const Facts *f, const Cascade *g, uint32_t i) {
    uint32_t n = cascade_length(g);
    return i < n ? graph_node(f->g, cascade_node(f, g, i))->out[0]
                 : g->shared[i - n];
}

/* All rows of what is held that its readers in the cascade need; false if there
 * are none. */
static bool rows_wanted(const Facts *f, const Cascade *g, uint32_t i,
                        Stripe *stripe) {
    CascadeReaders r = cascade_readers(f, g, held_tensor(f, g, i));
    uint32_t first = UINT32_MAX, end = 0;
    while (cascade_readers_next(&r)) {
        const Rows *need = &stripe[r.i].need;
        uint32_t need_end = need->in_row + need->in_rows;
        first = need->in_row < first ? need->in_row : first;
        end = need_end > end ? need_end : end;
    }
    stripe[i].row = first;
    stripe[i].rows = end - first;
    return end > 0;
}

/* Operands that are held with more rows than node i needs, or that it does not
 * read where they are; false if one of them cannot be copied. */
static bool copies_find(const Facts *f, const Cascade *g, uint32_t i,
                        Stripe *stripe) {
    NodeId id = cascade_node(f, g, i);
    const Node *node = graph_node(f->g, id);
    const Rows *need = &stripe[i].need;
    bool joins = is_placed(f, id);
    if (!row_tile_parts_start(f, g, i, stripe[i].rows))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t m = cascade_holder(f, g, node->in[k]);
        bool same = m != NONE && stripe[m].row == need->in_row &&
                    stripe[m].rows == need->in_rows;
        if (m == NONE || (joins ? cascade_joins(f, g, node->in[k]) : same))
            continue;
        if (copy_legal(f, node->in[k]).engine < 0)
            return false;
        if (!joins)
            stripe[i].copies |= 1u << k;
        stripe[m].shift =
            larger32(stripe[m].shift, need->in_row - stripe[m].row);
    }
    return true;
}

static bool reads_inner(const Facts *f, const Cascade *g, NodeId id) {
    const Node *node = graph_node(f->g, id);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (cascade_maker(f, g, node->in[k]) != NONE)
            return true;
    return false;
}

uint32_t cascade_stripes(const Facts *f, const Cascade *g) {
    NodeId last = cascade_node(f, g, cascade_length(g) - 1);
    uint32_t h = plan_volume(f->g, graph_node(f->g, last)->out[0]).h;
    return (h + g->rows - 1) / g->rows;
}

/* To rows that an instruction can make. */
static void stripe_round(uint32_t q, Stripe *stripe) {
    uint32_t end = stripe->row + stripe->rows;
    stripe->row = stripe->row / q * q;
    stripe->rows = (end + q - 1) / q * q - stripe->row;
}

/* Of a result that nobody reads in the cascade: the stripe's part of it, as
 * large as the stripe's part of the last result. */
static void take_share(const Facts *f, const Cascade *g, uint32_t i,
                       uint32_t index, Stripe *stripe) {
    uint64_t h = plan_volume(f->g, held_tensor(f, g, i)).h;
    uint64_t n = cascade_stripes(f, g);
    stripe[i].row = (uint32_t)(h * index / n);
    stripe[i].rows = (uint32_t)(h * (index + 1) / n) - stripe[i].row;
}

static void take_last(const Facts *f, const Cascade *g, uint32_t index,
                      Stripe *stripe) {
    uint32_t i = cascade_length(g) - 1, row = index * g->rows;
    uint32_t h = plan_volume(f->g, held_tensor(f, g, i)).h;
    stripe[i].row = row;
    stripe[i].rows = g->rows < h - row ? g->rows : h - row;
}

bool stripe_make(const Facts *f, const Cascade *g, uint32_t index,
                 Stripe *stripe) {
    uint32_t n = cascade_length(g);
    for (uint32_t i = n; i-- > 0;) {
        NodeId id = cascade_node(f, g, i);
        if (i + 1 == n)
            take_last(f, g, index, stripe);
        else if (!rows_wanted(f, g, i, stripe))
            take_share(f, g, i, index, stripe);
        if (!stripe[i].rows)
            return false;
        stripe_round(cascade_quantum(f, g, i), &stripe[i]);
        stripe[i].need =
            needed(f, id, stripe[i].row, stripe[i].rows, reads_inner(f, g, id));
        if (!stripe[i].need.in_rows)
            return false;
        stripe[i].copies = stripe[i].shift = 0;
    }
    for (uint32_t i = n; i < cascade_held(g); i++) {
        stripe[i] = (Stripe){0};
        rows_wanted(f, g, i, stripe);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!copies_find(f, g, i, stripe))
            return false;
    return true;
}

/* ---- what a cascade costs ---- */

static uint64_t row_bytes(const Facts *f, TensorId t) {
    Volume v = plan_volume(f->g, t);
    return (uint64_t)v.c * v.w * f->spec->element;
}

static bool reads_copy(const Facts *f, const Cascade *g, uint32_t i,
                       const Stripe *stripe, uint32_t k) {
    NodeId id = cascade_node(f, g, i);
    TensorId t = graph_node(f->g, id)->in[k];
    if (is_placed(f, id))
        return cascade_holder(f, g, t) != NONE && !cascade_joins(f, g, t);
    return stripe->copies >> k & 1;
}

static void charge_move(const Facts *f, TensorId t, uint32_t rows,
                        uint64_t times, CascadeCost *cost) {
    cost->moved += times * row_bytes(f, t) * rows;
    cost->instructions += times;
}

static void stripe_charge(const Facts *f, const Cascade *g,
                          const Stripe *stripe, uint64_t times,
                          CascadeCost *cost) {
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        NodeId id = cascade_node(f, g, i);
        const Node *node = graph_node(f->g, id);
        TensorId out = node->out[0];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (cascade_holder(f, g, node->in[k]) == NONE)
                charge_move(f, node->in[k], stripe[i].need.in_rows, times,
                            cost);
        if (is_placed(f, id) ? f->role[out.i].outside
                             : cascade_stores(f, g, out))
            charge_move(f, out, stripe[i].rows, times, cost);
        cost->work += times * row_work(f->g, node) * stripe[i].rows;
        cost->instructions += times;
        for (uint32_t k = 0; k < node->n_in; k++)
            if (reads_copy(f, g, i, &stripe[i], k)) {
                cost->work += times * stripe[i].need.in_rows *
                              row_bytes(f, node->in[k]) / f->spec->element;
                cost->instructions += times;
            }
    }
    for (uint32_t i = cascade_length(g); i < cascade_held(g); i++)
        charge_move(f, held_tensor(f, g, i), stripe[i].rows, times, cost);
}

void stripe_bytes(const Facts *f, TensorId result, const Stripe *most,
                  uint64_t bytes[PACK_MAX_POOLS]) {
    pool_bytes(f, result, most->rows, false, bytes);
    Volume row_tile = row_tile_in(f, result, most->rows, 0);
    for (uint32_t m = 0; m < f->spec->n_active && most->shift; m++)
        if (bytes[m])
            bytes[m] += copy_offset(f->spec, &row_tile, most->shift);
}

/* Bytes that are live in a cascade. Not `sized`: were one linear memory of any
 * size. */
typedef struct Peak {
    const Facts *f;
    const Cascade *g;
    bool sized;
    uint64_t *live;   /* by step of the cascade */
    uint64_t largest; /* of its buffers, where not `sized` */
} Peak;

static uint64_t buffer_bytes(Peak *p, const uint64_t bytes[PACK_MAX_POOLS],
                             uint32_t memories) {
    if (p->sized)
        return least_bytes(p->f, bytes, memories);
    if (!(memories & 1) || !bytes[0])
        return UINT64_MAX;
    p->largest = larger(p->largest, bytes[0]);
    return round_up(bytes[0], pool_of(&p->f->spec->memory[0]).align);
}

/* Adds the row tile of what is held, by step of the cascade. */
static void row_tile_lives(Peak *p, uint32_t i, const Stripe *most) {
    const Facts *f = p->f;
    const Cascade *g = p->g;
    uint32_t n = cascade_length(g);
    TensorId t = held_tensor(f, g, i);
    uint32_t last = cascade_last_use(f, g, t) - g->first;
    uint64_t bytes[PACK_MAX_POOLS];
    if (cascade_joins(f, g, t))
        return;
    stripe_bytes(f, t, most, bytes);
    uint64_t own = buffer_bytes(p, bytes, cascade_reach(f, g, t));
    uint32_t s = i < n ? row_tile_first(f, g, i) : shared_first(f, g, i - n);
    for (; s <= last; s++)
        p->live[s] = add_capped(p->live[s], own);
}

/* Adds the row tiles of operands that node i reads from outside, or copies. */
static void operands_live(Peak *p, uint32_t i, const Stripe *most) {
    const Facts *f = p->f;
    const Cascade *g = p->g;
    NodeId id = cascade_node(f, g, i);
    const Node *node = graph_node(f->g, id);
    uint64_t bytes[PACK_MAX_POOLS];
    for (uint32_t k = 0; k < node->n_in && !is_placed(f, id); k++) {
        if (cascade_holder(f, g, node->in[k]) != NONE &&
            !(most->copies >> k & 1))
            continue;
        pool_bytes(f, node->in[k], most->need.in_rows, false, bytes);
        p->live[i] = add_capped(
            p->live[i], buffer_bytes(p, bytes, reach_of(f, id, node->in[k])));
    }
}

/* Bytes of active memory at the fullest of the cascade's steps. */
static void cascade_peak(const Facts *f, const Cascade *g, const Stripe *most,
                         bool sized, CascadeCost *cost) {
    uint32_t n = cascade_length(g);
    Peak p = {.f = f,
              .g = g,
              .sized = sized,
              .live = ARENA_ARRAY(f->arena, uint64_t, n + 1),
              .largest = cost->largest};
    for (uint32_t i = 0; i < n; i++)
        operands_live(&p, i, &most[i]);
    for (uint32_t i = 0; i < cascade_held(g); i++)
        row_tile_lives(&p, i, &most[i]);
    for (uint32_t i = 0; i < n; i++)
        cost->peak = larger(cost->peak, p.live[i]);
    cost->largest = p.largest;
}

/* Every stripe goes on where the one before it has ended, or above. */
static bool follows(uint32_t n, const Stripe *stripe, uint32_t *done) {
    for (uint32_t i = 0; i < n; i++) {
        if (stripe[i].row > done[i] || stripe[i].row + stripe[i].rows < done[i])
            return false;
        done[i] = stripe[i].row + stripe[i].rows;
    }
    return true;
}

static bool all_done(const Facts *f, const Cascade *g, const uint32_t *done) {
    for (uint32_t i = 0; i < cascade_length(g); i++) {
        const Node *node = graph_node(f->g, cascade_node(f, g, i));
        if (done[i] != plan_volume(f->g, node->out[0]).h)
            return false;
    }
    return true;
}

/* Raises `most` to the stripe; false if that cannot be computed. */
static bool raise_to(const Facts *f, const Cascade *g, uint32_t index,
                     Stripe *stripe, Stripe *most) {
    if (!stripe_make(f, g, index, stripe))
        return false;
    for (uint32_t i = 0; i < cascade_held(g); i++) {
        most[i].rows = larger32(most[i].rows, stripe[i].rows);
        most[i].need.in_rows =
            larger32(most[i].need.in_rows, stripe[i].need.in_rows);
        most[i].copies |= stripe[i].copies;
        most[i].shift = larger32(most[i].shift, stripe[i].shift);
    }
    return true;
}

static bool find_highest(const Facts *f, const Cascade *g, Stripe *most) {
    Stripe *stripe = ARENA_ARRAY(f->arena, Stripe, cascade_held(g));
    for (uint32_t k = 0, end = cascade_stripes(f, g); k < end; k++)
        if (!raise_to(f, g, k, stripe, most))
            return false;
    return true;
}

const Stripe *stripes_highest(const Facts *f, const Cascade *g, Arena *arena) {
    Stripe *most = ARENA_ARRAY(arena, Stripe, cascade_held(g));
    find_highest(f, g, most);
    return most;
}

static bool look_at_middle(const Facts *f, const Cascade *g, Stripe *most,
                           CascadeCost *cost) {
    (void)cost;
    return stripe_make(f, g, cascade_stripes(f, g) / 2, most);
}

/* Most cascades have but these kinds, and the halo of one in the middle is not
 * cut. */
static bool look_at_three(const Facts *f, const Cascade *g, Stripe *most,
                          CascadeCost *cost) {
    uint32_t end = cascade_stripes(f, g);
    Stripe *stripe = ARENA_ARRAY(f->arena, Stripe, cascade_held(g));
    const uint32_t at[] = {0, end / 2, end - 1};
    const uint32_t times[] = {1, end > 2 ? end - 2 : 0, end > 1};
    for (uint32_t k = 0; k < 3; k++) {
        if (times[k] && !raise_to(f, g, at[k], stripe, most))
            return false;
        stripe_charge(f, g, stripe, times[k], cost);
    }
    return true;
}

static bool look_at_all(const Facts *f, const Cascade *g, Stripe *most,
                        CascadeCost *cost) {
    uint32_t n = cascade_length(g);
    Stripe *stripe = ARENA_ARRAY(f->arena, Stripe, cascade_held(g));
    uint32_t *done = ARENA_ARRAY(f->arena, uint32_t, n);
    for (uint32_t k = 0, end = cascade_stripes(f, g); k < end; k++) {
        if (!stripe_make(f, g, k, stripe) || !follows(n, stripe, done))
            return false;
        stripe_charge(f, g, stripe, 1, cost);
    }
    return all_done(f, g, done) && find_highest(f, g, most);
}

bool cascade_measure(const Facts *f, const Cascade *g, StripesLook look,
                     bool sized, CascadeCost *cost) {
    static bool (*const look_at[])(const Facts *, const Cascade *, Stripe *,
                                   CascadeCost *) = {
        [STRIPES_MIDDLE] = look_at_middle,
        [STRIPES_THREE] = look_at_three,
        [STRIPES_ALL] = look_at_all,
    };
    Stripe *most = ARENA_ARRAY(f->arena, Stripe, cascade_held(g));
    *cost = (CascadeCost){0};
    if (!look_at[look](f, g, most, cost))
        return false;
    cascade_peak(f, g, most, sized, cost);
    return true;
}
