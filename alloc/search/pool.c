/* pool.c - of the plans of one size, the most promising; of all, the best.
 *
 * Input: plans with actions. Output: those that are worth their time, timed;
 * the best of them finished, and among the best of the search. Method: the pool
 * keeps those that come first in one of four orders that need no clock; when a
 * size has been looked at, these are timed, and the best by the objective are
 * finished as long as they may become the best of all.
 */
#include "alloc/search/search.h"

/* ---- the most promising of one size ---- */

static bool fewer(uint64_t a, uint64_t b, const Trial *x, const Trial *y) {
    return a != b ? a < b : x->number < y->number;
}

static double both(const Trial *t) {
    double work = (double)t->traffic.work + 1;
    return work * work * work * ((double)t->cost.bytes + 1);
}

/* Four orders: bytes, work, instructions, work and bytes as if balanced. */
enum { ORDERS = 4 };
static bool precedes(uint32_t order, const Trial *a, const Trial *b) {
    switch (order) {
    case 0:
        return fewer(a->cost.bytes, b->cost.bytes, a, b);
    case 1:
        return fewer(a->traffic.work, b->traffic.work, a, b);
    case 2:
        return fewer(a->cost.instructions, b->cost.instructions, a, b);
    default:
        break;
    }
    double x = both(a), y = both(b);
    return x < y || (x <= y && a->number < b->number);
}

/* Its place in the order in which it comes first. */
static uint32_t rank(const Search *s, const Trial *t) {
    uint32_t best = UINT32_MAX;
    for (uint32_t order = 0; order < ORDERS; order++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->n_pool; i++)
            n += s->pool[i] != t && precedes(order, s->pool[i], t);
        best = n * ORDERS + order < best ? n * ORDERS + order : best;
    }
    return best;
}

static void pool_drop(Search *s, uint32_t i) {
    arena_free(s->pool[i]->arena);
    s->pool[i] = s->pool[--s->n_pool];
}

static void pool_drop_last(Search *s) {
    uint32_t worst = 0, most = 0;
    for (uint32_t i = 0; i < s->n_pool; i++) {
        uint32_t own = rank(s, s->pool[i]);
        if (own >= most) {
            most = own;
            worst = i;
        }
    }
    pool_drop(s, worst);
}

static bool pool_is_long(const Search *s) {
    enum { LONG = 8192 };
    uint64_t actions = 0;
    for (uint32_t i = 0; i < s->n_pool; i++)
        actions += s->pool[i]->plan->n_actions;
    return actions > LONG;
}

void pool_add(Search *s, Trial *t) {
    for (uint32_t i = 0; i < s->n_pool; i++)
        if (s->pool[i]->print == t->print) {
            arena_free(t->arena);
            return;
        }
    s->pool[s->n_pool++] = t;
    while (s->n_pool > s->effort->timed ||
           (s->n_pool > s->effort->least_timed && pool_is_long(s)))
        pool_drop_last(s);
}

/* ---- the best of all ---- */

bool plan_admitted(Arena *arena, const PlanOptions *options, const Plan *plan,
                   Rejected *rejected) {
    PlanJudge *judge = options->judge ? options->judge : plan_judge;
    const char *wrong = judge(arena, plan);
    if (wrong)
        *rejected = (Rejected){rejected->n + 1, wrong};
    return !wrong;
}

bool search_admits(Search *s, const Plan *plan) {
    return plan_admitted(s->arena, s->options, plan, &s->rejected);
}

static bool is_better(const Search *s, const Trial *a, const Trial *b) {
    PlanObjective objective = s->options->objective;
    if (a->traffic.too_long != b->traffic.too_long)
        return b->traffic.too_long;
    if (plan_cost_less(objective, &a->cost, &b->cost))
        return true;
    return !plan_cost_less(objective, &b->cost, &a->cost) &&
           a->number < b->number;
}

static void best_add(Search *s, Trial *t) {
    uint32_t at = s->n_best;
    while (at > 0 && is_better(s, t, s->best[at - 1]))
        at--;
    for (uint32_t i = s->n_best; i > at; i--)
        s->best[i] = s->best[i - 1];
    s->best[at] = t;
    s->n_best++;
    if (s->n_best > MOST_BEST / 2)
        arena_free(s->best[--s->n_best]->arena);
}

static void note(Search *s, const Trial *t) {
    archive_add(&s->archive, &(Candidate){t->number, t->cost});
}

static bool is_seen(Search *s, uint64_t print) {
    for (uint32_t i = 0; i < s->seen.n; i++)
        if (s->seen.at[i] == print)
            return true;
    vec_push(s->arena, &s->seen, print);
    return false;
}

enum { SHORT_PLAN = 64, LONG_PLAN = 2048 }; /* actions */

/* As good as it may get when it is finished. Where layers roll, more than this
 * part of all is hardly ever saved, but of short plans; of long ones, which
 * take much of the budget to finish, no more than half of the waiting, and less
 * of all. Places change, and with them what need not move. */
static PlanCost cost_bound(const Search *s, const Trial *t) {
    enum { ALL = 6, ALL_LONG = 16, MOVES = 8 };
    PlanCost cost = t->cost;
    bool is_short = t->plan->n_actions <= SHORT_PLAN;
    bool is_long = t->plan->n_actions > LONG_PLAN;
    uint64_t most = cost.cycles / (is_long ? ALL_LONG : ALL);
    uint64_t busy = plan_busy(t->plan);
    uint64_t saved =
        t->plan->serial && cost.cycles > busy ? cost.cycles - busy : 0;
    if (s->schedule->spec->tiling.rows.rolls && !is_short) {
        saved = is_long ? saved / 2 : saved;
        saved = saved < most ? saved : most;
    }
    cost.bytes -= t->traffic.moved / MOVES;
    cost.cycles -= saved < cost.cycles ? saved : cost.cycles;
    return cost;
}

static bool may_be_best(const Search *s, const Trial *t) {
    PlanCost bound = cost_bound(s, t);
    return !s->n_best ||
           plan_cost_less(s->options->objective, &bound, &s->best[0]->cost);
}

static void by_objective(const Search *s, Trial **timed, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        Trial *t = timed[i];
        uint32_t at = i;
        for (; at > 0 && is_better(s, t, timed[at - 1]); at--)
            timed[at] = timed[at - 1];
        timed[at] = t;
    }
}

/* Plans that are the same may differ once tensors are moved apart, and when
 * they are finished: there is less room for that in less memory. Of large
 * networks that is not tried. */
static bool time(Search *s, Trial *t) {
    uint64_t room = search_is_small(s) && !t->config.roomy ? t->config.cap : 0;
    if (s->volumes)
        return !is_seen(s, t->print);
    return trial_settle(s, t) && !is_seen(s, t->print ^ room) &&
           trial_time(s, t);
}

/* Whether transfers are put beside layers, which takes most of the time. */
static bool schedules(const Search *s) {
    return !s->volumes &&
           s->schedule->spec->tiling.rows.moves == HW_MOVES_BESIDE;
}

/* The most promising first; what they are expected to cost is known then. */
static void pool_sort(Search *s) {
    for (uint32_t i = 0; i < s->n_pool; i++) {
        Trial *t = s->pool[i];
        uint32_t at = i;
        t->expected = cost_expected(s, t);
        for (; at > 0 && plan_cost_less(s->options->objective, &t->expected,
                                        &s->pool[at - 1]->expected);
             at--)
            s->pool[at] = s->pool[at - 1];
        s->pool[at] = t;
    }
}

/* Whether it is not worth its time: it is expected to cost more than that,
 * which may be nothing. What is expected of the `first` of a size may be wrong,
 * which costs little time to see if it is short. */
static bool is_beaten(const Search *s, const Trial *t, const PlanCost *best,
                      bool first) {
    if (!best || !schedules(s) || s->clock_errs || s->options->front ||
        (first && t->plan->n_actions <= LONG_PLAN))
        return false;
    return !plan_cost_less(s->options->objective, &t->expected, best);
}

/* Gives those in the pool their time, the best first; how many there are. */
static uint32_t pool_order(Search *s, Trial **timed) {
    const PlanCost *best = s->n_best ? &s->best[0]->cost : NULL;
    uint32_t n = 0;
    if (schedules(s))
        pool_sort(s);
    for (uint32_t i = 0; i < s->n_pool; i++) {
        Trial *t = s->pool[i];
        if (is_beaten(s, t, best, !n) || !time(s, t)) {
            arena_free(t->arena);
            continue;
        }
        timed[n++] = t;
        if (!best || plan_cost_less(s->options->objective, &t->cost, best))
            best = &t->cost;
    }
    for (uint32_t i = 0; i < n && schedules(s); i++)
        pace_note(s, timed[i]);
    s->n_pool = 0;
    by_objective(s, timed, n);
    return n;
}

/* Whether the simulator is to say if it is better than that, which may be
 * nothing: not where its own clock says that it is much worse. */
static bool is_near(const Search *s, const Trial *t, const PlanCost *best) {
    enum { PART = 16 };
    PlanCost least = t->cost;
    least.cycles -= least.cycles / PART;
    return !best || s->clock_errs || !t->plan->cycles ||
           plan_cost_less(s->options->objective, &least, best);
}

/* Cycles of those that may be the best: of the simulator, until its first says
 * that plans' own clock is right. */
static uint32_t pool_count(Search *s, Trial **timed, uint32_t n) {
    const PlanCost *best = s->n_best ? &s->best[0]->cost : NULL;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        Trial *t = timed[i];
        if (!s->volumes && is_near(s, t, best) && !trial_clock(s, t)) {
            arena_free(t->arena);
            continue;
        }
        timed[kept++] = t;
        if (!best || plan_cost_less(s->options->objective, &t->cost, best))
            best = &t->cost;
    }
    by_objective(s, timed, kept);
    return kept;
}

/* Times what is in the pool, finishes the best. */
void pool_time(Search *s) {
    Trial *timed[MOST_TIMED];
    uint32_t finishes = s->volumes        ? 0
                        : pool_is_long(s) ? 1
                                          : s->effort->finished;
    uint32_t n = pool_order(s, timed);
    n = pool_count(s, timed, n);
    for (uint32_t i = 0; i < n; i++) {
        note(s, timed[i]);
        if (i < finishes && may_be_best(s, timed[i])) {
            uint64_t before = timed[i]->cost.cycles;
            trial_finish(s, timed[i]);
            pace_note_finished(s, before, timed[i]->cost.cycles);
            note(s, timed[i]);
        }
        if (s->volumes && !i && !trial_settle(s, timed[i]))
            continue;
        if (s->judges && !search_admits(s, timed[i]->plan))
            arena_free(timed[i]->arena);
        else
            best_add(s, timed[i]);
    }
}
