/* decisions.c - decisions as a value. */
#include "alloc/alias/alias.h"

Decisions decisions_make(const Facts *f, const Config *config) {
    Arena *arena = f->arena;
    uint32_t n_tensors = f->g->tensor.n + 1;
    Decisions d = {.f = f,
                   .config = config,
                   .mode = ARENA_ARRAY(arena, Mode, f->g->node.n + 1),
                   .alias_of = ARENA_ARRAY(arena, uint32_t, n_tensors),
                   .dissolved = ARENA_ARRAY(arena, bool, n_tensors),
                   .over = ARENA_ARRAY(arena, TensorId, n_tensors),
                   .bounce_rows = ARENA_ARRAY(arena, uint32_t, n_tensors)};
    for (TensorId t = {0}; t.i < f->g->tensor.n; t.i++)
        d.bounce_rows[t.i] = plan_volume(f->g, t).h;
    in_place_make(&d);
    return d;
}

Decisions decisions_copy(Arena *arena, const Decisions *d) {
    uint32_t n_tensors = d->f->g->tensor.n;
    Decisions copy = *d;
    copy.mode = ARENA_COPY(arena, Mode, d->mode, d->f->g->node.n);
    copy.alias_of = ARENA_COPY(arena, uint32_t, d->alias_of, n_tensors);
    copy.dissolved = ARENA_COPY(arena, bool, d->dissolved, n_tensors);
    copy.over = ARENA_COPY(arena, TensorId, d->over, n_tensors);
    copy.bounce_rows = ARENA_COPY(arena, uint32_t, d->bounce_rows, n_tensors);
    copy.cascade.at = ARENA_COPY(arena, Cascade, d->cascade.at, d->cascade.n);
    copy.cascade.cap = d->cascade.n;
    copy.alias.at = ARENA_COPY(arena, AliasClass, d->alias.at, d->alias.n);
    copy.alias.cap = d->alias.n;
    for (uint32_t u = 0; u < d->alias.n; u++)
        copy.alias.at[u].use =
            ARENA_COPY(arena, Use, d->alias.at[u].use, d->alias.at[u].n_uses);
    return copy;
}
