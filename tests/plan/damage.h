/* damage.h - changes one thing in a plan, by chance.
 *
 * A field of a placement, an action or a block of weights is one more, one less
 * or another's; an action is left out, done twice or at another time.
 */
#ifndef TESTS_PLAN_DAMAGE_H
#define TESTS_PLAN_DAMAGE_H

#include "base/rng.h"
#include "hwspec/layout.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

typedef struct Field {
    const char *name;
    size_t at;
} Field;

#define OF_PLACEMENT(field)                                                    \
    { "placement." #field, offsetof(Placement, field) }
static const Field placement_field[] = {
    OF_PLACEMENT(row),     OF_PLACEMENT(rows),    OF_PLACEMENT(col),
    OF_PLACEMENT(cols),    OF_PLACEMENT(c),       OF_PLACEMENT(n_c),
    OF_PLACEMENT(whole.c), OF_PLACEMENT(whole.h), OF_PLACEMENT(whole.w),
    OF_PLACEMENT(part_c),
};

#define OF_ACTION(field)                                                       \
    { "action." #field, offsetof(Action, field) }
static const Field action_field[] = {
    OF_ACTION(step),    OF_ACTION(row),     OF_ACTION(rows),
    OF_ACTION(in_row),  OF_ACTION(in_rows), OF_ACTION(pad_top),
    OF_ACTION(col),     OF_ACTION(cols),    OF_ACTION(in_col),
    OF_ACTION(in_cols), OF_ACTION(out),     OF_ACTION(pad_left),
    OF_ACTION(again),   OF_ACTION(weights), OF_ACTION(pool_pad_top),
};

#define OF_BLOCK(field)                                                        \
    { "block." #field, offsetof(ConstantBlock, field) }
static const Field block_field[] = {OF_BLOCK(c), OF_BLOCK(n_c), OF_BLOCK(taps)};

enum {
    N_PLACEMENT_FIELDS = sizeof placement_field / sizeof *placement_field,
    N_ACTION_FIELDS = sizeof action_field / sizeof *action_field,
    N_BLOCK_FIELDS = sizeof block_field / sizeof *block_field
};

typedef struct Damager {
    Arena *arena; /* of one damaged plan */
    const Plan *plan;
    uint64_t seed, drawn;
} Damager;

/* A copy that may be changed. */
typedef struct Damaged {
    Plan plan;
    Placement *placement;
    Action *action;
    ConstantBlock *block;
    const char *what;
} Damaged;

static inline uint32_t draw(Damager *c, uint32_t below) {
    return (uint32_t)(rng_bits(c->seed, c->drawn++) % below);
}

/* ---- damage ---- */

static inline Damaged copy_plan(Damager *c) {
    const Plan *p = c->plan;
    Damaged d = {.plan = *p};
    d.placement =
        ARENA_COPY(c->arena, Placement, p->placement, p->n_placements);
    d.action = ARENA_ARRAY(c->arena, Action, p->n_actions + 1);
    memcpy(d.action, p->action, p->n_actions * sizeof *p->action);
    for (uint32_t i = 0; i < p->n_actions; i++)
        d.action[i].in =
            ARENA_COPY(c->arena, uint32_t, p->action[i].in, p->action[i].n_in);
    d.block = ARENA_COPY(c->arena, ConstantBlock, p->block, p->n_blocks);
    d.plan.placement = d.placement;
    d.plan.action = d.action;
    d.plan.block = d.block;
    return d;
}

/* One more, one less, or as in the other. Not below 0. */
static void change(Damager *c, const Field *f, void *item, const void *other,
                   uint32_t i, Damaged *d) {
    uint32_t *at = (uint32_t *)((char *)item + f->at), was = *at;
    const uint32_t *from = (const uint32_t *)((const char *)other + f->at);
    uint32_t how = draw(c, 3);
    *at = how == 0 ? was + 1 : how == 1 && was ? was - 1 : *from;
    d->what = arena_printf(c->arena, "%u: %s %u, not %u", i, f->name, *at, was);
}

static void change_placement(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_placements);
    Placement *p = &d->placement[i],
              *other = &d->placement[draw(c, d->plan.n_placements)];
    change(c, &placement_field[draw(c, N_PLACEMENT_FIELDS)], p, other, i, d);
    const HwMemory *m = &d->plan.schedule->spec->memory[p->memory];
    if (draw(c, 2) && p->whole.c && p->whole.h && p->whole.w)
        p->bytes = layout_bytes(m->layout, &p->whole);
}

/* Some places further, or where another lies. */
static void move_placement(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_placements);
    Placement *p = &d->placement[i],
              *other = &d->placement[draw(c, d->plan.n_placements)];
    const HwMemory *m = &d->plan.schedule->spec->memory[p->memory];
    uint64_t align = m->align ? m->align : 1, was = p->offset;
    uint64_t by = align * (1 + draw(c, 4));
    switch (draw(c, 4)) {
    case 0:
        p->offset += by;
        break;
    case 1:
        p->offset = was >= by ? was - by : was + by;
        break;
    case 2:
        p->offset = other->offset;
        break;
    default:
        p->offset++;
    }
    d->what =
        arena_printf(c->arena, "%u: placement.offset %" PRIu64 ", not %" PRIu64,
                     i, p->offset, was);
}

static void change_action(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    Action *a = &d->action[i], *b = &d->action[draw(c, d->plan.n_actions)];
    change(c, &action_field[draw(c, N_ACTION_FIELDS)], a, b, i, d);
    a->out %= d->plan.n_placements;
}

static void change_block(Damager *c, Damaged *d) {
    uint32_t n = d->plan.n_blocks;
    if (!n) {
        change_action(c, d);
        return;
    }
    uint32_t i = draw(c, n), k = draw(c, n);
    uint64_t was = d->block[i].offset;
    if (draw(c, 2)) {
        change(c, &block_field[draw(c, N_BLOCK_FIELDS)], &d->block[i],
               &d->block[k], i, d);
        return;
    }
    const HwSpec *spec = d->plan.schedule->spec;
    uint32_t align = spec->memory[spec->weights].align;
    d->block[i].offset =
        i == k ? was + (align ? align : 1) : d->block[k].offset;
    d->what = arena_printf(c->arena, "%u: block.offset", i);
}

static void change_operand(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    const Action *a = &d->action[i];
    if (!a->n_in) {
        change_action(c, d);
        return;
    }
    uint32_t k = draw(c, a->n_in), other = draw(c, d->plan.n_placements);
    ((uint32_t *)a->in)[k] = other;
    d->what =
        arena_printf(c->arena, "%u: operand %u is placement %u", i, k, other);
}

static void change_engine(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    Action *a = &d->action[i];
    if (a->kind != ACTION_RUN) {
        change_operand(c, d);
        return;
    }
    a->legal.engine = (int32_t)draw(c, d->plan.schedule->spec->n_engines);
    d->what = arena_printf(c->arena, "%u: engine %d", i, a->legal.engine);
}

static void drop(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    memmove(&d->action[i], &d->action[i + 1],
            (d->plan.n_actions - i - 1) * sizeof(Action));
    d->plan.n_actions--;
    d->what = arena_printf(c->arena, "%u: dropped", i);
}

static void twice(Damager *c, Damaged *d) {
    uint32_t i = draw(c, d->plan.n_actions);
    memmove(&d->action[i + 1], &d->action[i],
            (d->plan.n_actions - i) * sizeof(Action));
    d->plan.n_actions++;
    d->what = arena_printf(c->arena, "%u: twice", i);
}

/* An action is done earlier or later; steps stay in order. */
static void reorder(Damager *c, Damaged *d) {
    uint32_t n = d->plan.n_actions, i = draw(c, n);
    uint32_t k = draw(c, 2) ? draw(c, n) : i + 1 < n ? i + 1 : 0;
    Action moved = d->action[i];
    int32_t by = k > i ? 1 : -1;
    for (uint32_t at = i; at != k; at = (uint32_t)((int32_t)at + by)) {
        uint32_t step = d->action[at].step, index = d->action[at].at;
        d->action[at] = d->action[(int32_t)at + by];
        d->action[at].step = step;
        d->action[at].at = index;
    }
    moved.step = d->action[k].step;
    moved.at = d->action[k].at;
    d->action[k] = moved;
    d->what = arena_printf(c->arena, "%u: moved to %u", i, k);
}

static inline void damage(Damager *c, Damaged *d) {
    static void (*const kind[])(Damager *, Damaged *) = {
        change_placement, move_placement, change_action,
        change_action,    change_block,   change_operand,
        change_engine,    drop,           twice,
        reorder};
    kind[draw(c, sizeof kind / sizeof *kind)](c, d);
}

#endif
