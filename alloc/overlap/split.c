/* split.c - transfers in pieces, by rows and by channels; see split.h.
 *
 * Input: a plan. Output: its actions, long transfers in a few parts, whose
 * bytes are free, or there, at different times; pieces of them; and what
 * follows each other in one step as one transfer again. Channels are told apart
 * where they have addresses, rows where active memory holds them in a ring.
 * Invariant: all pieces together move what the whole does.
 */
#include "alloc/overlap/split.h"

#include "base/arith.h"

#include <string.h>

enum {
    PARTS = 4, /* into which moves of LONG cycles are cut */
    LONG = 500
};

static uint32_t placement_add(Pieces *o, Placement p) {
    uint32_t added = placements_add(o->arena, &o->placement, p);
    o->now.placement = o->placement.at;
    return added;
}

static uint32_t channels_of(Pieces *o, uint32_t of, uint32_t c, uint32_t n) {
    return placement_add(o, placement_channels(o->placement.at[of], c, n));
}

Action piece_channels(Pieces *o, const Action *whole, uint32_t c, uint32_t n) {
    Action a = *whole;
    if (n == o->placement.at[whole->out].n_c)
        return a;
    uint32_t from = channels_of(o, whole->in[0], c, n);
    a.in = ARENA_COPY(o->arena, uint32_t, &from, 1);
    a.out = channels_of(o, whole->out, c, n);
    return a;
}

static uint32_t rows_of(Pieces *o, uint32_t of, uint32_t row, uint32_t rows) {
    return placement_add(o, placement_rows(o->placement.at[of], row, rows));
}

bool piece_may_cut_rows(const Pieces *o, const Action *a) {
    const Placement *p =
        &o->placement.at[a->kind == ACTION_LOAD ? a->out : a->in[0]];
    return p->ring && !p->lines.band;
}

Action piece_rows(Pieces *o, const Action *whole, uint32_t row, uint32_t rows) {
    Action a = *whole;
    uint32_t in = whole->in[0];
    if (a.kind == ACTION_LOAD)
        a.out = rows_of(o, a.out, row, rows);
    else
        in = rows_of(o, in, row, rows);
    a.in = ARENA_COPY(o->arena, uint32_t, &in, 1);
    a.row = row;
    a.rows = rows;
    return a;
}

/* Whether the channels from c on, and those before, are volumes of their own,
 * with their padding. */
static bool ends_there(const Pieces *o, uint32_t placement, uint32_t c) {
    const HwSpec *spec = o->plan->schedule->spec;
    const Placement *p = &o->placement.at[placement];
    const HwMemory *m = &spec->memory[p->memory];
    uint32_t n = p->part_c + c;
    Volume before = {n, p->whole.h, p->whole.w, hwspec_repl_none(spec, n)};
    if (!part_has_address(m, &p->whole, n, p->n_c - c) ||
        !layout_part_alone(m->layout, &p->whole, p->part_c, c))
        return false;
    uint64_t at = layout_part_offset(m->layout, &p->whole, n);
    return layout_bytes(m->layout, &before) == at &&
           (m->role != HW_ACTIVE || !m->align || at % m->align == 0);
}

/* Channels of whole rows one behind the other: those at whose multiples a part
 * has an address, aligned; 0: the layout is another. */
static uint32_t seam_step(const Pieces *o, const Placement *p) {
    const HwSpec *spec = o->plan->schedule->spec;
    const HwMemory *m = &spec->memory[p->memory];
    if (layout_part_step(m->layout) != 1)
        return 0;
    uint64_t channel = layout_part_offset(m->layout, &p->whole, 1);
    uint64_t align = m->role == HW_ACTIVE && m->align ? m->align : 1;
    uint64_t step = m->unit / gcd(channel, m->unit);
    uint64_t other = align / gcd(channel, align);
    step = step / gcd(step, other) * other;
    return step > UINT32_MAX ? 0 : (uint32_t)step;
}

/* Line buffers are never cut by channels. */
Seams piece_seams(const Pieces *o, const Action *a) {
    const Placement *end[] = {&o->placement.at[a->in[0]],
                              &o->placement.at[a->out]};
    Seams seams = {
        .o = o, .of = a, .none = end[0]->lines.band || end[1]->lines.band};
    for (uint32_t i = 0; i < 2 && !seams.none; i++) {
        seams.first[i] = end[i]->part_c;
        seams.step[i] = seam_step(o, end[i]);
    }
    return seams;
}

bool seam_asked(const Seams *seams, uint32_t end, uint32_t c) {
    const Action *a = seams->of;
    return ends_there(seams->o, end ? a->out : a->in[0], c);
}

/* The last store, not far before, of other channels of what is loaded; NULL. */
static const Action *last_store(const Pieces *o, uint32_t i) {
    const Plan *plan = o->plan;
    const Action *load = &plan->action[i];
    const Placement *from = &plan->placement[load->in[0]];
    for (uint32_t k = i; k-- > 0 && k + WINDOW > i;) {
        const Action *a = &plan->action[k];
        const Placement *to = &plan->placement[a->out];
        if (a->kind == ACTION_STORE && placements_share(from, to) &&
            to->part_c < from->part_c + from->n_c &&
            from->part_c < to->part_c + to->n_c)
            return a;
    }
    return NULL;
}

/* Where a move is cut: in front of these channels of it, rising. */
typedef struct Cuts {
    uint32_t n, at[PARTS + 2];
} Cuts;

static void cut_add(const Seams *seams, Cuts *cuts, uint32_t c) {
    const Pieces *o = seams->o;
    uint32_t i = cuts->n;
    if (c == 0 || c >= o->placement.at[seams->of->out].n_c ||
        !seam_at(seams, c))
        return;
    for (; i > 0 && cuts->at[i - 1] >= c; i--)
        if (cuts->at[i - 1] == c)
            return;
    for (uint32_t k = cuts->n++; k > i; k--)
        cuts->at[k] = cuts->at[k - 1];
    cuts->at[i] = c;
}

/* Of a concat what was stored last is a load of its own, so that the others
 * need not wait for it. */
static void cut_at_store(const Pieces *o, uint32_t i, Cuts *cuts) {
    const Action *load = &o->plan->action[i], *store = last_store(o, i);
    if (!store)
        return;
    Seams seams = piece_seams(o, load);
    const Placement *from = &o->placement.at[load->in[0]];
    const Placement *to = &o->placement.at[store->out];
    if (to->part_c > from->part_c)
        cut_add(&seams, cuts, to->part_c - from->part_c);
    cut_add(&seams, cuts, to->part_c + to->n_c - from->part_c);
}

/* The bytes of parts are free, or done with, at different times. */
static void cut_evenly(const Pieces *o, const Action *a, Cuts *cuts) {
    uint32_t n = o->placement.at[a->out].n_c, part = n / PARTS;
    Seams seams = piece_seams(o, a);
    for (uint32_t k = 1; k < PARTS && part; k++)
        for (uint32_t c = k * n / PARTS; c + part > k * n / PARTS; c--)
            if (seam_at(&seams, c)) {
                cut_add(&seams, cuts, c);
                break;
            }
}

static void add_by_channels(Pieces *o, const Action *move, const Cuts *cuts) {
    uint32_t n = o->placement.at[move->out].n_c, at = 0;
    for (uint32_t k = 0; k <= cuts->n; k++) {
        uint32_t end = k < cuts->n ? cuts->at[k] : n;
        Action part = piece_channels(o, move, at, end - at);
        vec_push(o->arena, &o->source, part);
        at = end;
    }
}

static void add_by_rows(Pieces *o, const Action *move) {
    uint32_t parts = move->rows < PARTS ? move->rows : PARTS;
    for (uint32_t k = 0; k < parts; k++) {
        uint32_t row = move->rows * k / parts;
        uint32_t end = move->rows * (k + 1) / parts;
        Action part = piece_rows(o, move, move->row + row, end - row);
        vec_push(o->arena, &o->source, part);
    }
}

static void add_parts(Pieces *o, uint32_t i) {
    const Action *move = &o->plan->action[i];
    bool longs = o->parts && action_cycles(o->plan, move) >= LONG;
    Cuts cuts = {0};
    if (o->parts && move->kind == ACTION_LOAD)
        cut_at_store(o, i, &cuts);
    if (longs && o->plan->cuts && !cuts.n && move->rows > 1 &&
        piece_may_cut_rows(o, move)) {
        add_by_rows(o, move);
        return;
    }
    if (longs)
        cut_evenly(o, move, &cuts);
    add_by_channels(o, move, &cuts);
}

void pieces_make(Pieces *o) {
    o->placement = placements_of(o->arena, o->plan);
    o->now = *o->plan;
    o->now.placement = o->placement.at;
    vec_reserve(o->arena, &o->source, 2 * o->plan->n_actions + 1);
    for (uint32_t i = 0; i < o->plan->n_actions; i++) {
        const Action *a = &o->plan->action[i];
        if (is_move(a))
            add_parts(o, i);
        else
            vec_push(o->arena, &o->source, *a);
    }
}

/* ---- one transfer again ---- */

/* Whether b are the channels behind a's, from and to the same places. */
static bool follows(const Pieces *o, const Action *a, const Action *b) {
    const Placement *p = &o->placement.at[a->out];
    const Placement *q = &o->placement.at[b->out];
    return a->kind == b->kind && a->step == b->step && p->buffer == q->buffer &&
           placements_share(p, q) && p->c + p->n_c == q->c &&
           a->row == b->row && a->rows == b->rows && a->col == b->col &&
           a->cols == b->cols && same_tensor(p->tensor, q->tensor) &&
           placements_share(&o->placement.at[a->in[0]],
                            &o->placement.at[b->in[0]]) &&
           o->placement.at[a->in[0]].part_c + p->n_c ==
               o->placement.at[b->in[0]].part_c;
}

/* The same of rows. */
static bool follows_rows(const Pieces *o, const Action *a, const Action *b) {
    const Placement *p = &o->placement.at[a->out];
    const Placement *q = &o->placement.at[b->out];
    const Placement *from = &o->placement.at[a->in[0]];
    const Placement *other = &o->placement.at[b->in[0]];
    return a->kind == b->kind && a->step == b->step && p->buffer == q->buffer &&
           placements_share(p, q) && p->c == q->c && p->n_c == q->n_c &&
           a->row + a->rows == b->row && a->col == b->col &&
           a->cols == b->cols && same_tensor(p->tensor, q->tensor) &&
           placements_share(from, other) && from->part_c == other->part_c &&
           piece_may_cut_rows(o, a) && piece_may_cut_rows(o, b);
}

bool pieces_join(Pieces *o, Action *last, const Action *a) {
    if (follows_rows(o, last, a)) {
        *last = piece_rows(o, last, last->row, last->rows + a->rows);
        return true;
    }
    if (!follows(o, last, a))
        return false;
    uint32_t n = o->placement.at[last->out].n_c + o->placement.at[a->out].n_c;
    *last = piece_channels(o, last, 0, n);
    return true;
}
