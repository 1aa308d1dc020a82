/* decisions.c - decisions as a value. */
#include "alloc/alias/alias.h"

Decisions decisions_make(const Facts *f, const Config *config) {
    Arena *arena = f->arena;
    uint32_t n_tensors = f->g->tensor.n + 1;
    Decisions d = {.f = f,
                   .config = config,
                   .mode = ARENA_ARRAY(arena, Mode, f->g->node.n + 1),
                   .unit_of = ARENA_ARRAY(arena, uint32_t, n_tensors),
                   .dissolved = ARENA_ARRAY(arena, bool, n_tensors),
                   .over = ARENA_ARRAY(arena, TensorId, n_tensors),
                   .relay_rows = ARENA_ARRAY(arena, uint32_t, n_tensors)};
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        d.relay_rows[t.i] = plan_volume(f->g, t).h;
    in_place_make(&d);
    return d;
}

Decisions decisions_copy(Arena *arena, const Decisions *d) {
    uint32_t n_tensors = d->f->g->tensor.n;
    Decisions copy = *d;
    copy.mode = ARENA_COPY(arena, Mode, d->mode, d->f->g->node.n);
    copy.unit_of = ARENA_COPY(arena, uint32_t, d->unit_of, n_tensors);
    copy.dissolved = ARENA_COPY(arena, bool, d->dissolved, n_tensors);
    copy.over = ARENA_COPY(arena, TensorId, d->over, n_tensors);
    copy.relay_rows = ARENA_COPY(arena, uint32_t, d->relay_rows, n_tensors);
    copy.group.at = ARENA_COPY(arena, Group, d->group.at, d->group.n);
    copy.group.cap = d->group.n;
    copy.unit.at = ARENA_COPY(arena, Unit, d->unit.at, d->unit.n);
    copy.unit.cap = d->unit.n;
    for (uint32_t u = 0; u < d->unit.n; u++)
        copy.unit.at[u].touch = ARENA_COPY(arena, Touch, d->unit.at[u].touch,
                                           d->unit.at[u].n_touches);
    return copy;
}
