/* interleave.c - slices of layers that follow each other, by turns.
 *
 * Input: a plan, some of its layers by slices of rows (row_slices.c). Output:
 * the same in another order. Method: a slice runs as soon as what it reads is
 * there, in front of the slices of the layer before that make what it does not
 * read. So what is loaded for a layer with little to do hides behind the one
 * that reads its result, too, and what is stored of it behind the one whose
 * result it reads. Invariant: actions that conflict keep their order.
 */
#include "alloc/overlap/overlap.h"

enum { LOOK = 128 };

typedef struct Interleave {
    Arena *arena;
    const Plan *plan;
    Action *action;
    Accesses *access; /* by action */
} Interleave;

static bool is_slice(const Interleave *w, const Action *a) {
    return a->kind == ACTION_RUN && a->n_tiles > 1 &&
           w->plan->schedule->step[a->at].n == 1;
}

/* Whether the slice at `i` may run before the action at `k`. */
static bool may_pass(const Interleave *w, uint32_t i, uint32_t k) {
    const Action *a = &w->action[k], *slice = &w->action[i];
    bool other = is_slice(w, a) && a->node.i != slice->node.i;
    return (is_move(a) || other) &&
           !accesses_conflict(&w->access[i], &w->access[k]);
}

/* Where the slice at `i` can run: before the first other layer's that it may
 * pass. */
static uint32_t place_of(const Interleave *w, uint32_t i) {
    uint32_t at = i;
    for (uint32_t k = i; k > 0 && i - k < LOOK && may_pass(w, i, k - 1); k--)
        if (w->action[k - 1].kind == ACTION_RUN)
            at = k - 1;
    return at;
}

static void move_up(Interleave *w, uint32_t i, uint32_t to) {
    Action slice = w->action[i];
    Accesses access = w->access[i];
    for (; i > to; i--) {
        w->action[i] = w->action[i - 1];
        w->access[i] = w->access[i - 1];
    }
    w->action[to] = slice;
    w->access[to] = access;
}

bool interleave(Arena *arena, Plan *plan) {
    uint32_t n = plan->n_actions;
    Interleave w = {.arena = arena, .plan = plan};
    bool any = false;
    w.action = ARENA_COPY(arena, Action, plan->action, n);
    w.access = ARENA_ARRAY(arena, Accesses, n + 1);
    for (uint32_t i = 0; i < n; i++)
        w.access[i] = accesses_of(arena, plan, &w.action[i]);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = is_slice(&w, &w.action[i]) ? place_of(&w, i) : i;
        move_up(&w, i, to);
        any |= to < i;
    }
    if (any)
        plan->action = w.action;
    return any;
}
