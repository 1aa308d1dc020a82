/* pace.c - what a plan is expected to cost, before its transfers are scheduled.
 *
 * Input: a plan with its actions, one behind the other; what became of others.
 * Output: a cost. Method: no schedule is shorter than its engines, or all of
 * its transfers, are at work. Of that so many times more is taken as the same
 * configuration took in a larger memory, and as finishing left of it where it
 * saved most: in less memory no more is hidden. So most plans for less memory
 * than there is are never scheduled.
 */
#include "alloc/search/search.h"

/* The same but for the memory. */
static bool same_kind(const Config *a, const Config *b) {
    Config like = *a;
    like.cap = b->cap;
    like.others = b->others;
    like.roomy = b->roomy;
    return config_same(&like, b);
}

static const Pace *pace_of(const Search *s, const Config *config) {
    for (uint32_t i = s->pace.n; i-- > 0;)
        if (same_kind(&s->pace.at[i].config, config))
            return &s->pace.at[i];
    return NULL;
}

void pace_note(Search *s, const Trial *t) {
    uint64_t busy = plan_busy(t->plan);
    if (t->plan->serial && busy)
        vec_push(s->arena, &s->pace,
                 ((Pace){t->config, (double)t->cost.cycles / (double)busy}));
}

void pace_note_finished(Search *s, uint64_t before, uint64_t cycles) {
    double left = before ? (double)cycles / (double)before : 1;
    if (left < s->finish_leaves || s->finish_leaves <= 0)
        s->finish_leaves = left;
}

PlanCost cost_expected(const Search *s, const Trial *t) {
    enum { FASTER = 32, LESS = 8 }; /* parts that it may well take less */
    const Pace *pace = pace_of(s, &t->config);
    double busy = (double)plan_busy(t->plan), cycles = busy;
    if (pace)
        cycles *= pace->times;
    if (pace && s->finish_leaves > 0)
        cycles *= s->finish_leaves;
    cycles -= cycles / FASTER;
    PlanCost cost = t->cost;
    cost.bytes -= t->traffic.moved / LESS; /* at other places */
    cost.cycles = (uint64_t)(cycles > busy ? cycles : busy);
    return cost;
}
