/* blocks_volumes.c - plans of tensors alone, for weights to lie beside; see
 * blocks.h.
 *
 * Input: how many bytes they may take, and what they aim at. Output: the best
 * plan and the second best, kept until they are dropped, and these plans with
 * their transfers in bands.
 */
#include "alloc/search/blocks.h"

#include <string.h>

static void volumes_plan(Staging *s, Volumes *v) {
    uint64_t size = v->size, aside = v->aside;
    Search *n = &s->search;
    Config kept = {.cap = size,
                   .others = UINT64_MAX,
                   .aside = aside,
                   .runs = v->aims.hides ? HIDING_RUNS : 0,
                   .aims = v->aims};
    n->aside = aside;
    n->aims = v->aims;
    n->n_tried = n->tried.n = n->chosen.n = n->seen.n = 0;
    n->steps = n->effort->steps;
    if (!search_kept(n, &kept))
        search_size(n, size, UINT64_MAX);
    v->plan = search_take(n, v->arena);
    v->height = v->plan ? v->plan->am_height : 0;
    if (n->n_best) {
        v->next = ARENA_COPY(v->arena, Volumes, v, 1);
        v->next->plan = search_take(n, v->arena);
    }
    search_close(n);
}

void volumes_drop(Volumes *v) {
    arena_free(v->arena);
    v->arena = NULL;
    v->plan = NULL;
    v->next = NULL;
    memset(&v->banded, 0, sizeof v->banded);
}

Volumes *volumes_known(const Staging *s, uint64_t size, uint64_t aside,
                       Aims aims) {
    for (uint32_t i = 0; i < s->volumes.n; i++)
        if (s->volumes.at[i]->size == size &&
            s->volumes.at[i]->aside == aside &&
            same_aims(s->volumes.at[i]->aims, aims))
            return s->volumes.at[i];
    return NULL;
}

Volumes *volumes_within(Staging *s, uint64_t size, uint64_t aside, Aims aims) {
    uint32_t own = s->schedule->spec->weights;
    if (own && aside)
        aside = s->schedule->spec->memory[own].size;
    Volumes *v = volumes_known(s, size, aside, aims);
    if (v && v->arena)
        return v;
    if (!v) {
        v = ARENA_NEW(s->arena, Volumes);
        vec_push(s->arena, &s->volumes, v);
    }
    *v = (Volumes){.arena = arena_new("volumes"),
                   .budget = s->options->budget,
                   .size = size,
                   .aside = aside,
                   .aims = aims,
                   .need = v->need};
    volumes_plan(s, v);
    return v;
}

Banded banded_by(Volumes *v, StageWay way) {
    for (uint32_t i = 0; i < v->banded.n; i++)
        if (v->banded.at[i].n == way.bands &&
            v->banded.at[i].stores == way.stores)
            return v->banded.at[i];
    Banded made = bands_make(v->arena, v->plan, way.bands, way.stores);
    made.budget = v->budget;
    budget_take(v->budget, made.plan.n_actions);
    vec_push(v->arena, &v->banded, made);
    return made;
}
