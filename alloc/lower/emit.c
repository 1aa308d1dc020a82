/* emit.c - placements, and actions over them; see emit.h.
 *
 * Input: where buffers lie. Output: placements of tensors, and of parts of
 * them, in buffers and regions; actions, numbered as they come.
 */
#include "alloc/lower/emit.h"
#include "alloc/cascade/cascade.h"
#include "alloc/geometry/onchip_copy.h"
#include "alloc/geometry/tensor_bytes.h"

#include <assert.h>

/* ---- placements ---- */

static uint32_t placement_add(Emit *e, Placement p, uint32_t region) {
    vec_push(e->arena, &e->region_of, region);
    return placements_add(e->arena, &e->placement, p);
}

uint32_t emit_outside(Emit *e, TensorId t, uint32_t region, uint32_t part_c) {
    const Region *r = &e->regions.at.at[region];
    return placement_add(e,
                         (Placement){.tensor = t,
                                     .rows = plan_volume(e->f->g, t).h,
                                     .cols = plan_volume(e->f->g, t).w,
                                     .n_c = plan_volume(e->f->g, t).c,
                                     .memory = r->memory,
                                     .whole = r->whole,
                                     .part_c = part_c,
                                     .bytes = r->bytes,
                                     .buffer = e->buffers->buf.n + region},
                         region);
}

uint32_t emit_place(Emit *e, uint32_t buf, uint64_t at, Placement p) {
    p.memory = (uint32_t)e->result->pool[buf];
    p.offset = e->result->offset[buf] + at;
    p.buffer = buf;
    p.bytes = layout_bytes(e->f->spec->memory[p.memory].layout, &p.whole);
    p.n_c = plan_volume(e->f->g, p.tensor).c;
    return placement_add(e, p, NONE);
}

/* All columns. */
static uint32_t place_buffer(Emit *e, uint32_t buf, Placement p) {
    p.cols = plan_volume(e->f->g, p.tensor).w;
    return emit_place(e, buf, 0, p);
}

uint32_t emit_part(Emit *e, RowTile at, TensorId t, uint32_t row,
                   uint32_t rows) {
    uint32_t memory = (uint32_t)e->result->pool[at.buf];
    return place_buffer(
        e, at.buf,
        (Placement){.tensor = t,
                    .row = row,
                    .rows = rows,
                    .whole = row_tile_in(e->f, at.root, rows, memory),
                    .part_c = at.c,
                    .first = e->step,
                    .end = e->step + 1});
}

uint32_t emit_row_tile(Emit *e, uint32_t buf, TensorId t, uint32_t row,
                       uint32_t rows) {
    return emit_part(e, (RowTile){buf, 0, t}, t, row, rows);
}

uint32_t emit_channels(Emit *e, uint32_t placement, uint32_t c, uint32_t end) {
    Placement p = e->placement.at[placement];
    if (p.n_c == end - c)
        return placement;
    return placement_add(e, placement_channels(p, c, end - c),
                         e->region_of.at[placement]);
}

const Residencies *emit_stays(const Emit *e, const AliasClass *alias) {
    return &e->buffers->stays[e->d->alias_of[alias->root.i]];
}

const Residency *emit_residency(const Emit *e, const AliasClass *alias) {
    const Residencies *stays = emit_stays(e, alias);
    for (uint32_t i = 0; i < stays->n; i++) {
        const Residency *s = &stays->at[i];
        if (alias->use[s->first].step <= e->step &&
            e->step <= alias->use[s->last].step)
            return s;
    }
    return NULL;
}

AliasClass *emit_alias(const Emit *e, TensorId t) {
    return &e->d->alias.at[e->d->alias_of[t.i]];
}

uint32_t emit_in_residency(Emit *e, TensorId t, const Residency *s) {
    const AliasClass *alias = emit_alias(e, t);
    uint32_t memory = (uint32_t)e->result->pool[s->buf];
    return place_buffer(
        e, s->buf,
        (Placement){.tensor = t,
                    .rows = plan_volume(e->f->g, t).h,
                    .whole = volume_in(e->f, alias->root, memory),
                    .part_c = channel_in_alias(e->f, alias, t),
                    .first = alias->kept ? 0 : alias->use[s->first].step,
                    .end = alias->kept ? e->f->schedule->n_steps
                                       : alias->use[s->last].step + 1});
}

uint32_t emit_resident(Emit *e, TensorId t) {
    const Residency *s = emit_residency(e, emit_alias(e, t));
    assert(s);
    return emit_in_residency(e, t, s);
}

uint32_t emit_view(Emit *e, TensorId t, uint32_t row, uint32_t rows) {
    assert(e->present[t.i] != NONE);
    Placement whole = e->placement.at[e->present[t.i]];
    return placement_add(e, placement_rows(whole, row, rows), NONE);
}

/* ---- actions ---- */

Action emit_new(const Emit *e, ActionKind kind, uint32_t n_in,
                const uint32_t *in, uint32_t out) {
    uint32_t rows = e->placement.at[out].rows;
    return (Action){.kind = kind,
                    .node = NO_NODE,
                    .n_in = n_in,
                    .in = ARENA_COPY(e->arena, uint32_t, in, n_in),
                    .out = out,
                    .row = e->placement.at[out].row,
                    .rows = rows,
                    .col = e->placement.at[out].col,
                    .cols = e->placement.at[out].cols,
                    .n_tiles = 1,
                    .at = e->step,
                    .style = -1};
}

static void use_regions(Emit *e, const Action *a) {
    for (uint32_t i = 0; i <= a->n_in; i++) {
        uint32_t region = e->region_of.at[i < a->n_in ? a->in[i] : a->out];
        if (region != NONE)
            region_use(&e->regions, region, e->step);
    }
}

/* Whole nodes of one step have one number. */
static bool runs_beside(const Emit *e, const Action *a) {
    const Action *last = e->action.n ? &e->action.at[e->action.n - 1] : NULL;
    return last && a->kind == ACTION_RUN && last->kind == ACTION_RUN &&
           a->n_tiles == 1 && last->n_tiles == 1 && a->style < 0 &&
           last->style < 0 && last->at == a->at;
}

bool emit_gives_up(Emit *e) {
    uint32_t most = e->f->spec->max_instructions, unlisted = e->f->g->node.n;
    e->a->gave_up = (e->a->brief && most && e->action.n > most + unlisted) ||
                    budget_spent(e->f->options->budget);
    return e->a->gave_up;
}

/* Loads of network inputs may go without a number of their own, but only where
 * nothing has one yet: behind that, theirs would be another's. */
void emit_action(Emit *e, Action a) {
    bool input =
        a.kind == ACTION_LOAD &&
        e->f->role[e->placement.at[a.in[0]].tensor.i].origin == FROM_INPUT;
    bool shares = e->f->spec->input_shares_step && e->number == FIRST_STEP;
    if (runs_beside(e, &a))
        a.step = e->number - 1;
    else
        a.step = input && shares ? e->f->spec->input_step : e->number++;
    use_regions(e, &a);
    vec_push(e->arena, &e->action, a);
    budget_take(e->f->options->budget, 1);
}

void emit_move(Emit *e, ActionKind kind, uint32_t from, uint32_t to,
               uint32_t row, uint32_t rows) {
    Action a = emit_new(e, kind, 1, &from, to);
    a.row = row;
    a.rows = rows;
    emit_action(e, a);
}

void emit_move_from(Emit *e, ActionKind kind, uint32_t from, uint32_t to) {
    const Placement *p = &e->placement.at[from];
    Action a = emit_new(e, kind, 1, &from, to);
    a.row = p->row;
    a.rows = p->rows;
    a.col = p->col;
    a.cols = p->cols;
    emit_action(e, a);
}

void emit_move_all(Emit *e, ActionKind kind, uint32_t from, uint32_t to) {
    emit_move(e, kind, from, to, e->placement.at[to].row,
              e->placement.at[to].rows);
}

void emit_copy(Emit *e, uint32_t from, uint32_t to) {
    emit_move_all(e, ACTION_COPY, from, to);
    e->action.at[e->action.n - 1].legal =
        copy_legal(e->f, e->placement.at[to].tensor);
}
