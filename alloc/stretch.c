/* stretch.c - longer lives for buffers, so that transfers hide behind layers.
 *
 * Input: a plan's problem and placement. Output: both, and the plan, in fewer
 * cycles by plan_cycles, with the same transfers.
 * Method: where a transfer stands in a step of its own, its buffer is given a
 * longer life: one that is loaded begins some steps earlier, one that is stored
 * ends some steps later, as many as are needed to hide the transfer and as the
 * live bytes allow. Everything is then placed anew, and the actions are ordered
 * anew (overlap.c). What takes fewer cycles stays; else half of the wishes are
 * tried, the costly ones, down to one.
 * Invariants: what must be alive is; never more bytes, never more cycles.
 */
#include "alloc/overlap.h"

#include <stdlib.h>
#include <string.h>

enum { TRIALS = 24, LEAST_TRIALS = 4, WORK = 20000 };

/* A transfer that nothing hides. */
typedef struct Wish {
    uint32_t buf;
    bool load;
    TensorId tensor;
    uint64_t cycles;
} Wish;

typedef struct Stretch {
    Work *w;
    Arena *arena;
    Diag *diag;
    Problem *problem;
    PlanResult *result;
    Plan *plan;      /* with these */
    uint64_t *time;  /* by step of the schedule: cycles of its layers */
    uint64_t cycles; /* of the plan */
    uint32_t trials; /* that are left */
    VEC(Wish) wish;
} Stretch;

static bool is_move(const Action *a) {
    return a->kind == ACTION_LOAD || a->kind == ACTION_STORE;
}

/* ---- what is not hidden ---- */

static void find_times(Stretch *s) {
    uint32_t n = s->w->schedule->n_steps;
    s->time = ARENA_ARRAY(s->arena, uint64_t, n + 1);
    for (uint32_t i = 0; i < s->plan->n_actions; i++) {
        const Action *a = &s->plan->action[i];
        if (a->kind == ACTION_RUN || a->kind == ACTION_COPY)
            s->time[a->at] += action_cycles(s->plan, a);
    }
}

static void wish_add(Stretch *s, const Action *a) {
    bool load = a->kind == ACTION_LOAD;
    const Placement *p = &s->plan->placement[load ? a->out : a->in[0]];
    Wish wish = {p->buffer, load, p->tensor, action_cycles(s->plan, a)};
    for (uint32_t i = 0; i < s->wish.n; i++)
        if (s->wish.at[i].buf == wish.buf && s->wish.at[i].load == load) {
            s->wish.at[i].cycles += wish.cycles;
            return;
        }
    if (p->buffer < s->problem->buf.n)
        vec_push(s->arena, &s->wish, wish);
}

static int by_cycles(const void *a, const void *b) {
    const Wish *x = a, *y = b;
    if (x->cycles != y->cycles)
        return x->cycles > y->cycles ? -1 : 1;
    return x->buf != y->buf ? (x->buf < y->buf ? -1 : 1) : x->load - y->load;
}

/* Transfers in steps without layers. */
static void find_wishes(Stretch *s) {
    const Plan *plan = s->plan;
    s->wish.n = 0;
    for (uint32_t i = 0, end; i < plan->n_actions; i = end) {
        bool alone = true;
        for (end = i; end < plan->n_actions &&
                      plan->action[end].step == plan->action[i].step;
             end++)
            alone &= is_move(&plan->action[end]);
        for (uint32_t k = i; alone && k < end; k++)
            wish_add(s, &plan->action[k]);
    }
    if (s->wish.n)
        qsort(s->wish.at, s->wish.n, sizeof *s->wish.at, by_cycles);
}

/* ---- longer lives ---- */

/* The step behind which the tensor's values, or those of the segment before,
 * are outside. */
static uint32_t outside_from(const Stretch *s, const Wish *wish) {
    const Owner *owner = &s->problem->owner.at[wish->buf];
    uint32_t made = s->w->role[wish->tensor.i].made, step = 0;
    if (made != NONE)
        step = made + 1;
    if (owner->kind != OWNER_SEGMENT)
        return step;
    const Unit *unit = &s->w->unit.at[owner->unit];
    for (uint32_t i = 1; i < unit->n_segments; i++)
        if (unit->segment[i].buf == wish->buf)
            step = unit->touch[unit->segment[i - 1].last].step + 1;
    return step;
}

/* The step at which the unit's next segment begins. */
static uint32_t outside_until(const Stretch *s, const Wish *wish) {
    const Owner *owner = &s->problem->owner.at[wish->buf];
    if (owner->kind == OWNER_SEGMENT) {
        const Unit *unit = &s->w->unit.at[owner->unit];
        for (uint32_t i = 0; i + 1 < unit->n_segments; i++)
            if (unit->segment[i].buf == wish->buf)
                return unit->touch[unit->segment[i + 1].first].step;
    }
    return s->w->schedule->n_steps;
}

static bool has_room(const Stretch *s, uint32_t buf, uint32_t step) {
    uint64_t bytes = s->problem->owner.at[buf].least;
    return s->problem->live[2 * step] + bytes <= s->w->total &&
           s->problem->live[2 * step + 1] + bytes <= s->w->total;
}

static void add_live(Stretch *s, uint32_t buf, uint32_t first, uint32_t end) {
    for (uint32_t t = first; t < end; t++)
        s->problem->live[t] += s->problem->owner.at[buf].least;
}

static bool begin_earlier(Stretch *s, const Wish *wish) {
    Buf *buf = &s->problem->buf.at[wish->buf];
    uint32_t from = outside_from(s, wish), was = buf->first;
    uint64_t hidden = 0;
    for (uint32_t step = buf->first / 2; step > from; step--) {
        if (hidden >= wish->cycles || !has_room(s, wish->buf, step - 1))
            break;
        hidden += s->time[step - 1];
        if (s->time[step - 1])
            buf->first = 2 * (step - 1);
    }
    add_live(s, wish->buf, buf->first, was);
    return buf->first < was;
}

static bool end_later(Stretch *s, const Wish *wish) {
    Buf *buf = &s->problem->buf.at[wish->buf];
    uint32_t until = outside_until(s, wish), was = buf->end;
    uint64_t hidden = 0;
    for (uint32_t step = (buf->end + 1) / 2; step < until; step++) {
        if (hidden >= wish->cycles || !has_room(s, wish->buf, step))
            break;
        hidden += s->time[step];
        if (s->time[step])
            buf->end = 2 * step + 2;
    }
    add_live(s, wish->buf, was, buf->end);
    return buf->end > was;
}

/* Stripes follow each other: what is loaded or stored in each of them is there
 * all the time. */
static bool last_throughout(Stretch *s, const Wish *wish, const Group *g) {
    Buf *buf = &s->problem->buf.at[wish->buf];
    uint32_t first = buf->first, end = buf->end;
    for (uint32_t step = g->first; step < g->end; step++)
        if ((2 * step + 1 < first || 2 * step >= end) &&
            !has_room(s, wish->buf, step))
            return false;
    buf->first = 2 * g->first < first ? 2 * g->first : first;
    buf->end = 2 * g->end > end ? 2 * g->end : end;
    add_live(s, wish->buf, buf->first, first);
    add_live(s, wish->buf, end, buf->end);
    return buf->first < first || buf->end > end;
}

static bool grant(Stretch *s, const Wish *wish) {
    const Owner *owner = &s->problem->owner.at[wish->buf];
    if (s->problem->tied.at[wish->buf] != wish->buf)
        return false;
    for (uint32_t i = 0; i < s->problem->buf.n; i++)
        if (i != wish->buf && s->problem->tied.at[i] == wish->buf)
            return false;
    if (owner->node.i != NONE && s->w->mode[owner->node.i].kind == MODE_GROUP) {
        const Group *g = &s->w->group.at[s->w->mode[owner->node.i].group];
        if (g->rolls)
            return false;
        if (last_throughout(s, wish, g))
            return true;
    }
    return (wish->load ? begin_earlier : end_later)(s, wish);
}

/* ---- trials ---- */

static bool any_tied(const Problem *p) {
    for (uint32_t i = 0; i < p->buf.n; i++)
        if (p->tied.at[i] != i)
            return true;
    return false;
}

static bool place_again(const Stretch *s, PlanResult *result) {
    Times blocked;
    const char *used;
    if (any_tied(s->problem))
        return place_tied(s->w, s->problem, result, &blocked);
    PlanProblem asked = s->problem->p;
    asked.any_fit = true;
    plan_memory(s->arena, &asked, "auto", false, result, &used);
    return result->status == PLAN_FITS;
}

/* The plan with the problem as it is now; true if it takes fewer cycles. */
static bool try_now(Stretch *s) {
    PlanResult result = {0};
    Plan plan = *s->plan;
    if (!place_again(s, &result) ||
        !actions_make(s->w, s->diag, s->problem, &result, &plan))
        return false;
    overlap(s->arena, &plan);
    uint64_t cycles = plan_cycles(&plan);
    if (cycles >= s->cycles)
        return false;
    *s->result = result;
    *s->plan = plan;
    s->cycles = cycles;
    return true;
}

/* Grants the first n wishes; false if all is as it was. */
static bool try_wishes(Stretch *s, uint32_t n) {
    Problem *p = s->problem;
    Buf *was = ARENA_COPY(s->arena, Buf, p->buf.at, p->buf.n);
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= grant(s, &s->wish.at[i]);
    if (any && try_now(s))
        return true;
    memcpy(p->buf.at, was, p->buf.n * sizeof *was);
    live_make(p);
    return false;
}

static bool improve(Stretch *s) {
    find_wishes(s);
    for (uint32_t n = s->wish.n; n && s->trials; n /= 2) {
        s->trials--;
        if (try_wishes(s, n))
            return true;
    }
    return false;
}

bool stretch(Work *w, Diag *diag, Problem *problem, PlanResult *result,
             Plan *plan) {
    Stretch s = {.w = w,
                 .arena = w->arena,
                 .diag = diag,
                 .problem = problem,
                 .result = result,
                 .plan = plan,
                 .trials = WORK / (plan->n_actions + 1)};
    s.trials = s.trials < LEAST_TRIALS ? LEAST_TRIALS
               : s.trials > TRIALS     ? TRIALS
                                       : s.trials;
    uint64_t live = plan->am_live;
    overlap(s.arena, plan);
    s.cycles = plan_cycles(plan);
    bool any = false, fixed = problem->relation.n > 0;
    find_times(&s);
    while (!fixed && s.trials && improve(&s))
        any = true;
    plan->am_live = live;
    plan->cycles = s.cycles;
    return any;
}
