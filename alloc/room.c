/* room.c - what volumes leave of active memory; see stage.h.
 *
 * Input: a plan whose actions run one behind the other. Output: which bytes of
 * the first memory hold values, from which action to which.
 * Method: what is written stays until its last reader, or until another volume
 * is written over it. So what stays of a volume between two uses, while
 * nothing names it, is found as well.
 */
#include "alloc/stage.h"

#include <stdlib.h>

typedef struct Walk {
    Arena *arena;
    const Plan *plan;
    Stays *stays;
    VEC(uint32_t) now; /* stays that are not written over */
} Walk;

static void begin(Walk *w, Reach bytes, uint32_t action, uint32_t placement) {
    Stay stay = {bytes, action, action, placement};
    vec_push(w->arena, &w->now, w->stays->at.n);
    vec_push(w->arena, &w->stays->at, stay);
}

/* What is left of a stay beside bytes that another volume takes. */
static void cut(Walk *w, uint32_t i, Reach taken) {
    Stay old = w->stays->at.at[i];
    const Reach rest[] = {{old.bytes.first, taken.first},
                          {taken.end, old.bytes.end}};
    for (uint32_t k = 0; k < 2; k++) {
        if (rest[k].first >= rest[k].end)
            continue;
        begin(w, rest[k], old.since, old.placement);
        w->stays->at.at[w->stays->at.n - 1].until = old.until;
    }
}

static void read_bytes(Walk *w, Reach bytes, uint32_t action) {
    for (uint32_t k = 0; k < w->now.n; k++) {
        Stay *s = &w->stays->at.at[w->now.at[k]];
        if (reaches_meet(s->bytes, bytes))
            s->until = action;
    }
}

/* True if the bytes are those of a stay of the same volume. */
static bool write_bytes(Walk *w, Reach bytes, uint32_t action,
                        uint32_t placement) {
    const Placement *own = &w->plan->placement[placement];
    bool within = false;
    for (uint32_t k = w->now.n; k-- > 0;) {
        Stay *s = &w->stays->at.at[w->now.at[k]];
        if (!reaches_meet(s->bytes, bytes))
            continue;
        if (placements_share(own, &w->plan->placement[s->placement])) {
            s->until = action;
            within |=
                s->bytes.first <= bytes.first && bytes.end <= s->bytes.end;
            continue;
        }
        uint32_t old = w->now.at[k];
        w->now.at[k] = w->now.at[--w->now.n];
        cut(w, old, bytes);
    }
    return within;
}

static void take_action(Walk *w, uint32_t i) {
    const Action *a = &w->plan->action[i];
    Arena *scratch = arena_new("room");
    Accesses all = accesses_of(scratch, w->plan, a);
    for (uint32_t k = 0; k < all.n; k++) {
        const Access *access = &all.at[k];
        Reach bytes = {access->first, access->end};
        uint32_t placement = k < a->n_in ? a->in[k] : a->out;
        if (access->at->memory != 0)
            continue;
        if (k < all.n_read) {
            read_bytes(w, bytes, i);
        } else if (!write_bytes(w, bytes, i, placement)) {
            if (a->kind == ACTION_LOAD)
                w->stays->of_load[i] = w->stays->at.n;
            begin(w, bytes, i, placement);
        }
    }
    arena_free(scratch);
}

Stays stays_of(Arena *arena, const Plan *plan) {
    Stays stays = {.of_load =
                       ARENA_ARRAY(arena, uint32_t, plan->n_actions + 1)};
    Walk w = {.arena = arena, .plan = plan, .stays = &stays};
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        stays.of_load[i] = NONE;
        take_action(&w, i);
    }
    return stays;
}

static int by_first(const void *a, const void *b) {
    const Reach *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

uint64_t room_longest(Arena *arena, const Plan *plan, const Stays *stays,
                      uint32_t action) {
    uint32_t n = 0;
    Reach *held = ARENA_ARRAY(arena, Reach, stays->at.n + 1);
    for (uint32_t i = 0; i < stays->at.n; i++) {
        const Stay *s = &stays->at.at[i];
        if (s->since <= action && action <= s->until)
            held[n++] = s->bytes;
    }
    uint64_t size = plan->schedule->spec->memory[0].size;
    held[n++] = (Reach){size, size};
    qsort(held, n, sizeof *held, by_first);
    uint64_t longest = 0, end = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (held[i].first > end && held[i].first - end > longest)
            longest = held[i].first - end;
        end = held[i].end > end ? held[i].end : end;
    }
    return longest;
}
