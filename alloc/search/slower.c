/* slower.c - the same plan in more cycles, as what a larger memory gets may
 * take more; see overlap.h.
 *
 * Input: a plan that is overlapped, and the cycles that it is to take. Output:
 * the same, of whose transfers some that ran beside layers stand in steps of
 * their own. Actions of one step do not conflict, so they may as well run one
 * behind the other: nothing is planned again, and any number of cycles up to
 * that of all actions one behind the other is met, but for less than one short
 * transfer.
 */
#include "alloc/overlap/overlap.h"

#include "base/arith.h"

typedef struct Slower {
    const Plan *plan;
    uint64_t *cycles; /* by action */
    bool *apart;      /* likewise: a transfer behind its step */
} Slower;

/* Actions [first, end). */
typedef struct Span {
    uint32_t first, end;
} Span;

static Span step_at(const Plan *plan, uint32_t i) {
    uint32_t end = i + 1;
    while (end < plan->n_actions &&
           plan->action[end].step == plan->action[i].step)
        end++;
    return (Span){i, end};
}

static uint64_t step_cycles(const Slower *s, Span step) {
    uint64_t unit[HW_MAX_ENGINES + 1] = {0}, most = 0, apart = 0;
    for (uint32_t i = step.first; i < step.end; i++) {
        const Action *a = &s->plan->action[i];
        int32_t engine = a->legal.engine < 0 ? 0 : a->legal.engine;
        uint32_t at = is_move(a) ? HW_MAX_ENGINES : (uint32_t)engine;
        if (s->apart[i])
            apart += s->cycles[i];
        else
            unit[at] += s->cycles[i];
        most = larger(most, unit[at]);
    }
    return most + apart;
}

/* What the transfer costs apart. */
static uint64_t costs_apart(const Slower *s, Span step, uint32_t i) {
    uint64_t before = step_cycles(s, step);
    s->apart[i] = true;
    uint64_t after = step_cycles(s, step);
    s->apart[i] = false;
    return after - before;
}

static bool has_layers(const Slower *s, Span step) {
    for (uint32_t i = step.first; i < step.end; i++)
        if (!is_move(&s->plan->action[i]) && s->cycles[i])
            return true;
    return false;
}

/* Puts apart what costs no more than is still needed. Returns what is needed
 * then; *least is the transfer that costs least of the others, or NONE. */
static uint64_t put_apart(Slower *s, uint64_t needed, uint32_t *least) {
    const Plan *plan = s->plan;
    uint64_t most = UINT64_MAX;
    Span step;
    *least = NONE;
    for (uint32_t i = 0; i < plan->n_actions && needed; i = step.end) {
        step = step_at(plan, i);
        if (!has_layers(s, step))
            continue;
        for (uint32_t k = step.first; k < step.end; k++) {
            if (!is_move(&plan->action[k]))
                continue;
            uint64_t costs = costs_apart(s, step, k);
            s->apart[k] = costs <= needed;
            if (s->apart[k])
                needed -= costs;
            else if (costs < most) {
                most = costs;
                *least = k;
            }
        }
    }
    return needed;
}

/* Actions in the order in which they run then. */
static void number(Arena *arena, Plan *plan, const bool *apart) {
    Action *action = ARENA_ARRAY(arena, Action, plan->n_actions + 1);
    uint32_t n = 0, added = 0;
    Span step;
    for (uint32_t i = 0; i < plan->n_actions; i = step.end) {
        step = step_at(plan, i);
        bool any = false;
        for (uint32_t pass = 0; pass < 2; pass++) {
            for (uint32_t k = step.first; k < step.end; k++) {
                if (apart[k] != (pass == 1))
                    continue;
                action[n] = plan->action[k];
                action[n++].step += added + pass;
                any |= pass == 1;
            }
        }
        added += any;
    }
    plan->action = action;
}

void slow_down(Arena *arena, Plan *plan, uint64_t least, uint64_t most) {
    most = larger(least, most);
    if (plan->cycles >= most)
        return;
    Arena *scratch = arena_new("slower");
    Slower s = {.plan = plan,
                .cycles = ARENA_ARRAY(scratch, uint64_t, plan->n_actions + 1),
                .apart = ARENA_ARRAY(scratch, bool, plan->n_actions + 1)};
    for (uint32_t i = 0; i < plan->n_actions; i++)
        s.cycles[i] = action_cycles(plan, &plan->action[i]);
    uint32_t next;
    uint64_t needed = put_apart(&s, most - plan->cycles, &next);
    if (most - needed < least && next != NONE)
        s.apart[next] = true;
    number(arena, plan, s.apart);
    plan->cycles = plan_cycles(plan);
    arena_free(scratch);
}
