/* recompute.c - groups of nodes that run depth first, stripe by stripe.
 *
 * Input: a group: consecutive steps of one engine node each, and the rows of
 * its last result that a stripe has. Output: the rows of every operand of every
 * stripe, and what the group costs: bytes of active memory, bytes moved, work,
 * instructions.
 * What is made and read within the group never exists whole. An instruction
 * writes a dense volume, and in layouts with channels outside of rows the rows
 * of a stripe are together only within a channel: rows that the stripe before
 * has computed cannot stand in one volume with new ones, so each stripe
 * computes the halo of its readers again (facts/two-level.md 1.5, 2.2). A
 * reader that needs fewer rows of a stripe than another gets a copy of them.
 */
#include "alloc/work.h"
#include "base/arith.h"

NodeId group_node(const Work *w, const Group *g, uint32_t i) {
    return w->schedule->step[g->first + i].slot[0].node;
}

/* Index in the group of the node that makes the tensor; NONE if none does. */
uint32_t group_maker(const Work *w, const Group *g, TensorId t) {
    NodeId id = graph_tensor(w->g, t)->producer;
    uint32_t step = w->schedule->step_of[id.i];
    return step != NONE && g->first <= step && step < g->end ? step - g->first
                                                             : NONE;
}

GroupReaders group_readers(const Work *w, const Group *g, TensorId t) {
    return (GroupReaders){w, g, t, w->uses.start[t.i], 0};
}

bool group_readers_next(GroupReaders *r) {
    while (r->at < r->w->uses.start[r->t.i + 1]) {
        uint32_t step = r->w->schedule->step_of[r->w->uses.node[r->at++].i];
        if (step != NONE && r->g->first <= step && step < r->g->end) {
            r->i = step - r->g->first;
            return true;
        }
    }
    return false;
}

uint32_t group_kind(const Work *w, NodeId id) {
    if (is_placed(w, id))
        return concat_may_join(w, id) ? KIND_CONCAT : 0;
    return on_engine(w, id) && node_quantum(w->g, id, 0) > 1 ? KIND_SPREADS : 0;
}

bool group_may_hold(const Work *w, uint32_t step) {
    const Step *s = &w->schedule->step[step];
    NodeId id = s->slot[0].node;
    const Node *node = graph_node(w->g, id);
    if (s->n != 1 || w->spec->tiling.kind != HW_TILING_SOFTWARE ||
        w->apart & group_kind(w, id))
        return false;
    if (is_placed(w, id))
        return concat_may_join(w, id);
    return on_engine(w, id) && w->spec->tiling.ops >> w->legal[id.i].op & 1 &&
           w->mode[id.i].kind != MODE_AHEAD &&
           engine_takes_parts(w->spec, w->g, &w->legal[id.i], id, 0) &&
           (!w->spec->tiling.lines ||
            engine_takes_parts(w->spec, w->g, &w->legal[id.i], id, 1)) &&
           (node->op != OP_DECONV || deconv_spreads(node));
}

bool group_may_begin(const Work *w, uint32_t step) {
    return group_may_hold(w, step) &&
           !is_placed(w, w->schedule->step[step].slot[0].node);
}

static bool read_outside(const Work *w, const Group *g, TensorId t) {
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        uint32_t step = w->schedule->step_of[w->uses.node[i].i];
        if (on_engine(w, w->uses.node[i]) &&
            (step < g->first || step >= g->end))
            return true;
    }
    return false;
}

bool group_leaves(const Work *w, const Group *g, TensorId t) {
    while (!read_outside(w, g, t)) {
        t = w->role[t.i].parent;
        if (t.i == NONE)
            return false;
        if (group_maker(w, g, t) == NONE)
            return true;
    }
    return true;
}

bool group_stores(const Work *w, const Group *g, TensorId t) {
    const Role *role = &w->role[t.i];
    bool dead = !role->engine_reads && role->parent.i == NONE;
    return role->outside || dead || group_leaves(w, g, t);
}

uint32_t group_last_use(const Work *w, const Group *g, TensorId t) {
    uint32_t made = w->role[t.i].made, last = made == NONE ? 0 : made;
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        uint32_t step = w->schedule->step_of[w->uses.node[i].i];
        if (step < g->end && step > last)
            last = step;
    }
    return last;
}

uint32_t group_reach(const Work *w, const Group *g, TensorId t) {
    uint32_t memories = UINT32_MAX;
    NodeId maker = graph_tensor(w->g, t)->producer;
    if (group_maker(w, g, t) != NONE)
        memories = reach(w, maker, HW_OUT);
    if (group_maker(w, g, t) != NONE && is_placed(w, maker)) {
        const Node *node = graph_node(w->g, maker);
        for (uint32_t k = 0; k < node->n_in; k++)
            if (group_joins(w, g, node->in[k]))
                memories &= group_reach(w, g, node->in[k]);
    }
    for (uint32_t i = w->uses.start[t.i]; i < w->uses.start[t.i + 1]; i++) {
        uint32_t step = w->schedule->step_of[w->uses.node[i].i];
        if (g->first <= step && step < g->end)
            memories &= reach_of(w, w->uses.node[i], t);
    }
    return memories;
}

/* ---- rows ---- */

/* Rows of the input behind output rows [row, row + rows). Within a group all
 * rows between two stripes are computed, also where nothing reads them. */
static Rows needed(const Work *w, NodeId id, uint32_t row, uint32_t rows,
                   bool inner) {
    Rows need = rows_needed(w->g, id, row, rows);
    const Node *node = graph_node(w->g, id);
    uint32_t h = plan_volume(w->g, node->out[0]).h;
    uint32_t size = plan_volume(w->g, node->in[0]).h;
    uint32_t next = size;
    if (!inner || !need.in_rows)
        return need;
    if (row + rows < h) {
        Rows after = rows_needed(w->g, id, row + rows, 1);
        next = after.in_rows ? after.in_row : 0;
    }
    if (need.in_row + need.in_rows < next)
        need.in_rows = next - need.in_row;
    return need;
}

static TensorId held_tensor(const Work *w, const Group *g, uint32_t i) {
    uint32_t n = g->end - g->first;
    return i < n ? graph_node(w->g, group_node(w, g, i))->out[0]
                 : g->shared[i - n];
}

/* All rows of what is held that its readers in the group need; false if there
 * are none. */
static bool rows_wanted(const Work *w, const Group *g, uint32_t i,
                        Stripe *stripe) {
    GroupReaders r = group_readers(w, g, held_tensor(w, g, i));
    uint32_t first = UINT32_MAX, end = 0;
    while (group_readers_next(&r)) {
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
static bool copies_find(const Work *w, const Group *g, uint32_t i,
                        Stripe *stripe) {
    NodeId id = group_node(w, g, i);
    const Node *node = graph_node(w->g, id);
    const Rows *need = &stripe[i].need;
    bool joins = is_placed(w, id);
    if (!plank_parts_start(w, g, i, stripe[i].rows))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        uint32_t m = group_holder(w, g, node->in[k]);
        bool same = m != NONE && stripe[m].row == need->in_row &&
                    stripe[m].rows == need->in_rows;
        if (m == NONE || (joins ? group_joins(w, g, node->in[k]) : same))
            continue;
        if (copy_legal(w, node->in[k]).engine < 0)
            return false;
        if (!joins)
            stripe[i].copies |= 1u << k;
        stripe[m].shift =
            larger32(stripe[m].shift, need->in_row - stripe[m].row);
    }
    return true;
}

static bool reads_inner(const Work *w, const Group *g, NodeId id) {
    const Node *node = graph_node(w->g, id);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (group_maker(w, g, node->in[k]) != NONE)
            return true;
    return false;
}

uint32_t group_stripes(const Work *w, const Group *g) {
    NodeId last = group_node(w, g, g->end - g->first - 1);
    uint32_t h = plan_volume(w->g, graph_node(w->g, last)->out[0]).h;
    return (h + g->rows - 1) / g->rows;
}

/* To rows that an instruction can make. */
static void stripe_round(uint32_t q, Stripe *stripe) {
    uint32_t end = stripe->row + stripe->rows;
    stripe->row = stripe->row / q * q;
    stripe->rows = (end + q - 1) / q * q - stripe->row;
}

/* Of a result that nobody reads in the group: the stripe's part of it, as large
 * as the stripe's part of the last result. */
static void take_share(const Work *w, const Group *g, uint32_t i,
                       uint32_t index, Stripe *stripe) {
    uint64_t h = plan_volume(w->g, held_tensor(w, g, i)).h;
    uint64_t n = group_stripes(w, g);
    stripe[i].row = (uint32_t)(h * index / n);
    stripe[i].rows = (uint32_t)(h * (index + 1) / n) - stripe[i].row;
}

static void take_last(const Work *w, const Group *g, uint32_t index,
                      Stripe *stripe) {
    uint32_t i = g->end - g->first - 1, row = index * g->rows;
    uint32_t h = plan_volume(w->g, held_tensor(w, g, i)).h;
    stripe[i].row = row;
    stripe[i].rows = g->rows < h - row ? g->rows : h - row;
}

bool stripe_make(const Work *w, const Group *g, uint32_t index,
                 Stripe *stripe) {
    uint32_t n = g->end - g->first;
    for (uint32_t i = n; i-- > 0;) {
        NodeId id = group_node(w, g, i);
        if (i + 1 == n)
            take_last(w, g, index, stripe);
        else if (!rows_wanted(w, g, i, stripe))
            take_share(w, g, i, index, stripe);
        if (!stripe[i].rows)
            return false;
        stripe_round(group_quantum(w, g, i), &stripe[i]);
        stripe[i].need =
            needed(w, id, stripe[i].row, stripe[i].rows, reads_inner(w, g, id));
        if (!stripe[i].need.in_rows)
            return false;
        stripe[i].copies = stripe[i].shift = 0;
    }
    for (uint32_t i = n; i < group_held(g); i++) {
        stripe[i] = (Stripe){0};
        rows_wanted(w, g, i, stripe);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!copies_find(w, g, i, stripe))
            return false;
    return true;
}

/* ---- what a group costs ---- */

static uint64_t row_bytes(const Work *w, TensorId t) {
    Volume v = plan_volume(w->g, t);
    return (uint64_t)v.c * v.w * w->spec->element;
}

static bool reads_copy(const Work *w, const Group *g, uint32_t i,
                       const Stripe *stripe, uint32_t k) {
    NodeId id = group_node(w, g, i);
    TensorId t = graph_node(w->g, id)->in[k];
    if (is_placed(w, id))
        return group_holder(w, g, t) != NONE && !group_joins(w, g, t);
    return stripe->copies >> k & 1;
}

static void charge_move(const Work *w, TensorId t, uint32_t rows,
                        uint64_t times, GroupCost *cost) {
    cost->moved += times * row_bytes(w, t) * rows;
    cost->instructions += times;
}

static void stripe_charge(const Work *w, const Group *g, const Stripe *stripe,
                          uint64_t times, GroupCost *cost) {
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        NodeId id = group_node(w, g, i);
        const Node *node = graph_node(w->g, id);
        TensorId out = node->out[0];
        for (uint32_t k = 0; k < node->n_in; k++)
            if (group_holder(w, g, node->in[k]) == NONE)
                charge_move(w, node->in[k], stripe[i].need.in_rows, times,
                            cost);
        if (is_placed(w, id) ? w->role[out.i].outside : group_stores(w, g, out))
            charge_move(w, out, stripe[i].rows, times, cost);
        cost->work += times * row_work(w->g, node) * stripe[i].rows;
        cost->instructions += times;
        for (uint32_t k = 0; k < node->n_in; k++)
            if (reads_copy(w, g, i, &stripe[i], k)) {
                cost->work += times * stripe[i].need.in_rows *
                              row_bytes(w, node->in[k]) / w->spec->element;
                cost->instructions += times;
            }
    }
    for (uint32_t i = g->end - g->first; i < group_held(g); i++)
        charge_move(w, held_tensor(w, g, i), stripe[i].rows, times, cost);
}

void stripe_bytes(const Work *w, TensorId result, const Stripe *most,
                  uint64_t bytes[PLAN_MAX_POOLS]) {
    pool_bytes(w, result, most->rows, false, bytes);
    Volume plank = plank_in(w, result, most->rows, 0);
    for (uint32_t m = 0; m < w->spec->n_active && most->shift; m++)
        if (bytes[m])
            bytes[m] += copy_offset(w->spec, &plank, most->shift);
}

/* Bytes of a buffer. Not `sized`: were one linear memory of any size. */
static uint64_t buffer_bytes(const Work *w,
                             const uint64_t bytes[PLAN_MAX_POOLS],
                             uint32_t memories, bool sized, GroupCost *cost) {
    if (sized)
        return least_bytes(w, bytes, memories);
    if (!(memories & 1) || !bytes[0])
        return UINT64_MAX;
    cost->largest = bytes[0] > cost->largest ? bytes[0] : cost->largest;
    return round_up(bytes[0], pool_of(&w->spec->memory[0]).align);
}

/* Adds the plank of what is held, by step of the group. */
static void plank_lives(const Work *w, const Group *g, uint32_t i,
                        const Stripe *most, bool sized, uint64_t *live,
                        GroupCost *cost) {
    uint32_t n = g->end - g->first;
    TensorId t = held_tensor(w, g, i);
    uint32_t last = group_last_use(w, g, t) - g->first;
    uint64_t bytes[PLAN_MAX_POOLS];
    if (group_joins(w, g, t))
        return;
    stripe_bytes(w, t, most, bytes);
    uint64_t own = buffer_bytes(w, bytes, group_reach(w, g, t), sized, cost);
    uint32_t s = i < n ? plank_first(w, g, i) : shared_first(w, g, i - n);
    for (; s <= last; s++)
        live[s] = add_capped(live[s], own);
}

/* Adds the planks of operands that node i reads from outside, or copies. */
static void operands_live(const Work *w, const Group *g, uint32_t i,
                          const Stripe *most, bool sized, uint64_t *live,
                          GroupCost *cost) {
    NodeId id = group_node(w, g, i);
    const Node *node = graph_node(w->g, id);
    uint64_t bytes[PLAN_MAX_POOLS];
    for (uint32_t k = 0; k < node->n_in && !is_placed(w, id); k++) {
        if (group_holder(w, g, node->in[k]) != NONE && !(most->copies >> k & 1))
            continue;
        pool_bytes(w, node->in[k], most->need.in_rows, false, bytes);
        *live = add_capped(*live,
                           buffer_bytes(w, bytes, reach_of(w, id, node->in[k]),
                                        sized, cost));
    }
}

/* Bytes of active memory at the fullest of the group's steps. */
static void group_peak(const Work *w, const Group *g, const Stripe *most,
                       bool sized, GroupCost *cost) {
    uint32_t n = g->end - g->first;
    uint64_t *live = ARENA_ARRAY(w->arena, uint64_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        operands_live(w, g, i, &most[i], sized, &live[i], cost);
    for (uint32_t i = 0; i < group_held(g); i++)
        plank_lives(w, g, i, &most[i], sized, live, cost);
    for (uint32_t i = 0; i < n; i++)
        cost->peak = live[i] > cost->peak ? live[i] : cost->peak;
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

static bool all_done(const Work *w, const Group *g, const uint32_t *done) {
    for (uint32_t i = 0; i < g->end - g->first; i++) {
        const Node *node = graph_node(w->g, group_node(w, g, i));
        if (done[i] != plan_volume(w->g, node->out[0]).h)
            return false;
    }
    return true;
}

/* Raises `most` to the stripe; false if that cannot be computed. */
static bool raise_to(const Work *w, const Group *g, uint32_t index,
                     Stripe *stripe, Stripe *most) {
    if (!stripe_make(w, g, index, stripe))
        return false;
    for (uint32_t i = 0; i < group_held(g); i++) {
        most[i].rows = larger32(most[i].rows, stripe[i].rows);
        most[i].need.in_rows =
            larger32(most[i].need.in_rows, stripe[i].need.in_rows);
        most[i].copies |= stripe[i].copies;
        most[i].shift = larger32(most[i].shift, stripe[i].shift);
    }
    return true;
}

static bool find_highest(const Work *w, const Group *g, Stripe *most) {
    Stripe *stripe = ARENA_ARRAY(w->arena, Stripe, group_held(g));
    for (uint32_t k = 0, end = group_stripes(w, g); k < end; k++)
        if (!raise_to(w, g, k, stripe, most))
            return false;
    return true;
}

const Stripe *stripes_highest(const Work *w, const Group *g, Arena *arena) {
    Stripe *most = ARENA_ARRAY(arena, Stripe, group_held(g));
    find_highest(w, g, most);
    return most;
}

static bool look_at_middle(const Work *w, const Group *g, Stripe *most,
                           GroupCost *cost) {
    (void)cost;
    return stripe_make(w, g, group_stripes(w, g) / 2, most);
}

/* Most groups have but these kinds, and the halo of one in the middle is not
 * cut. */
static bool look_at_three(const Work *w, const Group *g, Stripe *most,
                          GroupCost *cost) {
    uint32_t end = group_stripes(w, g);
    Stripe *stripe = ARENA_ARRAY(w->arena, Stripe, group_held(g));
    const uint32_t at[] = {0, end / 2, end - 1};
    const uint32_t times[] = {1, end > 2 ? end - 2 : 0, end > 1};
    for (uint32_t k = 0; k < 3; k++) {
        if (times[k] && !raise_to(w, g, at[k], stripe, most))
            return false;
        stripe_charge(w, g, stripe, times[k], cost);
    }
    return true;
}

static bool look_at_all(const Work *w, const Group *g, Stripe *most,
                        GroupCost *cost) {
    uint32_t n = g->end - g->first;
    Stripe *stripe = ARENA_ARRAY(w->arena, Stripe, group_held(g));
    uint32_t *done = ARENA_ARRAY(w->arena, uint32_t, n);
    for (uint32_t k = 0, end = group_stripes(w, g); k < end; k++) {
        if (!stripe_make(w, g, k, stripe) || !follows(n, stripe, done))
            return false;
        stripe_charge(w, g, stripe, 1, cost);
    }
    return all_done(w, g, done) && find_highest(w, g, most);
}

bool group_measure(const Work *w, const Group *g, StripesLook look, bool sized,
                   GroupCost *cost) {
    static bool (*const look_at[])(const Work *, const Group *, Stripe *,
                                   GroupCost *) = {
        [STRIPES_MIDDLE] = look_at_middle,
        [STRIPES_THREE] = look_at_three,
        [STRIPES_ALL] = look_at_all,
    };
    Stripe *most = ARENA_ARRAY(w->arena, Stripe, group_held(g));
    *cost = (GroupCost){0};
    if (!look_at[look](w, g, most, cost))
        return false;
    group_peak(w, g, most, sized, cost);
    return true;
}
