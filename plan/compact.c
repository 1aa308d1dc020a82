/* compact.c - a plan without what tries have left behind; see overlap.h.
 *
 * Input: a plan whose actions, and pieces of placements, lie in an arena that
 * is given up. Output: the same plan in another one. Invariant: the first
 * placements keep their numbers; of the others those that no action uses are
 * gone, and the rest stays in order.
 */
#include "plan/cost.h"

/* By placement, its number in the copy; NONE: it is gone. */
static uint32_t *new_numbers(Arena *arena, const Plan *plan, uint32_t n_kept,
                             uint32_t *n) {
    uint32_t *number = ARENA_ARRAY(arena, uint32_t, plan->n_placements + 1);
    *n = 0;
    for (uint32_t i = 0; i < plan->n_placements; i++)
        number[i] = i < n_kept ? 0 : NONE;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        for (uint32_t k = 0; k < a->n_in; k++)
            number[a->in[k]] = 0;
        number[a->out] = 0;
    }
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (number[i] != NONE)
            number[i] = (*n)++;
    return number;
}

Plan plan_compact(Arena *arena, const Plan *plan, uint32_t n_kept) {
    Plan copy = *plan;
    Arena *scratch = arena_new("compact");
    uint32_t *number = new_numbers(scratch, plan, n_kept, &copy.n_placements);
    Placement *placement = ARENA_ARRAY(arena, Placement, copy.n_placements + 1);
    Action *action = ARENA_COPY(arena, Action, plan->action, plan->n_actions);
    for (uint32_t i = 0; i < plan->n_placements; i++)
        if (number[i] != NONE)
            placement[number[i]] = plan->placement[i];
    for (uint32_t i = 0; i < copy.n_actions; i++) {
        Action *a = &action[i];
        uint32_t *in = ARENA_COPY(arena, uint32_t, a->in, a->n_in);
        for (uint32_t k = 0; k < a->n_in; k++)
            in[k] = number[in[k]];
        a->in = in;
        a->out = number[a->out];
        if (a->legal.reason)
            a->legal.reason = arena_strdup(arena, a->legal.reason);
    }
    arena_free(scratch);
    copy.action = action;
    copy.placement = placement;
    return copy;
}
