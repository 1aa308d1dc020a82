/* advice_weights.c - the least memory that would do for tensors and weights.
 *
 * Input: what was asked of the planner. Output: sizes that were planned for to
 * the end, next to a guess.
 */
#include "alloc/bound/bound.h"
#include "alloc/explain/explain.h"
#include "alloc/search/blocks.h"
#include "hwspec/insn.h"

#include "base/text.h"

#include <string.h>

/* Who is asked for sizes, and how long. */
typedef struct Adviser {
    const Asked *asked;
    Arena *arena;
    PlanOptions options; /* of plans that need not be good */
    Budget steps;
    Staging s, other; /* in another order of layers, if there is one */
    const Plan *last; /* that was found, or NULL: as many images have others */
    bool simulates;   /* each, before it does */
    bool knows;       /* `s` goes on with what was tried */
} Adviser;

static void adviser_open(Adviser *a, const Asked *asked) {
    const PlanOptions *o = asked->options;
    *a = (Adviser){.asked = asked,
                   .arena = arena_new("advice"),
                   .options = *o,
                   .steps = budget_of(BUDGET_GUESS, asked->schedule->n_steps)};
    a->options.budget = &a->steps;
    a->options.no_remedy = a->options.first_will_do = true;
    a->options.cycles = NULL; /* asked of a plan that is found */
    a->options.asked = NULL;
    a->options.spent = NULL;
    a->options.watch = NULL;
    a->options.shared = NULL;
    a->knows = asked->tried != NULL;
    if (a->knows)
        a->s = *asked->tried;
    else
        staging_open(&a->s, a->arena, asked->schedule, &a->options);
    staging_serve(&a->s, &a->options);
    if (o->other)
        staging_open(&a->other, a->arena, o->other, &a->options);
}

static void adviser_close(Adviser *a) {
    if (a->knows)
        *a->asked->tried = a->s; /* which is closed with all that is new */
    else
        staging_close(&a->s);
    staging_close(&a->other);
    arena_free(a->arena);
}

/* Whether the simulator finds that it breaks no rule. */
static bool plan_runs(const Adviser *a, const Plan *plan) {
    const PlanOptions *o = a->asked->options;
    return !o->cycles || o->cycles(o->context, plan) != UINT64_MAX;
}

/* Volumes in buffers are those of a memory of that size, which no other has. */
static const Plan *plan_alone(Adviser *a, Staging *s, const Schedule *sized) {
    Staging own;
    staging_open(&own, a->arena, sized, &a->options);
    staging_serve(&own, &a->options);
    const Plan *plan = staging_find(&own);
    s->rejected = own.rejected;
    staging_close(&own);
    return plan;
}

static const Plan *plan_in(Adviser *a, Staging *s, const Schedule *sized) {
    const Schedule *order = s->schedule;
    if (s->one_size)
        return plan_alone(a, s, sized);
    s->schedule = sized;
    const Plan *plan = staging_find(s);
    s->schedule = order;
    return plan;
}

/* In that order of layers. */
static bool does_in(Adviser *a, Staging *s, uint64_t size) {
    Schedule *sized = ARENA_COPY(a->arena, Schedule, s->schedule, 1);
    sized->spec = spec_within(a->arena, sized->spec, size);
    const Plan *plan =
        insn_rows_hold(a->arena, sized->spec) ? plan_in(a, s, sized) : NULL;
    if (plan && a->simulates && !plan_runs(a, plan))
        return false;
    a->last = plan ? plan : a->last;
    return plan != NULL;
}

/* The best for several images may have room for more. Plans of which one was
 * illegal, each must be judged. */
static bool would_do(void *context, uint64_t size) {
    Adviser *a = context;
    const PlanOptions *o = a->asked->options;
    bool does =
        !budget_spent(&a->steps) && o->images < 2 &&
        (does_in(a, &a->s, size) || (o->other && does_in(a, &a->other, size)));
    bool unsure = o->images > 1 || a->s.rejected.n || a->other.rejected.n;
    a->s.rejected.n = a->other.rejected.n = 0;
    if (does || !unsure || !a->asked->would_do(a->asked, &a->steps, size))
        return does;
    a->last = NULL; /* it was simulated */
    return true;
}

/* Sizes next to that guess. */
static SizeAdvice advise(Adviser *a, uint64_t guess) {
    enum { TRIES = 16 };
    const Schedule *schedule = a->asked->schedule;
    uint64_t step = size_granule(&schedule->spec->memory[0]);
    SizeSearch search = {.step = step,
                         .fine = step,
                         .fails = schedule->spec->memory[0].size,
                         .guess = guess,
                         .does = would_do,
                         .context = a,
                         .budget = &a->steps,
                         .tries = TRIES};
    a->steps = budget_of(BUDGET_ADVICE, schedule->n_steps);
    a->last = NULL;
    return advise_size(&search);
}

/* The last plan that is found has the size that is named: it alone is
 * simulated, as a rule. */
SizeAdvice size_staged(const Asked *asked) {
    enum { MOST_BITS = 44 };
    SizeAdvice advice = {0};
    Asked anew = *asked;
    Adviser a;
    anew.tried = NULL;
    adviser_open(&a, asked);
    Scarce found = scarce_find(&a.s, (uint64_t)1 << MOST_BITS);
    uint64_t least = found.any ? found.size : 0;
    if (!a.steps.left) { /* some volumes were not planned for lack of it */
        adviser_close(&a);
        adviser_open(&a, &anew);
    }
    if (least)
        advice = advise(&a, least);
    a.simulates = a.last && !plan_runs(&a, a.last);
    if (a.simulates)
        advice = advise(&a, least);
    adviser_close(&a);
    return advice;
}

/* Names of the memories that weights come from, and how much they hold. */
static uint64_t sources_hold(const HwSpec *spec, Text *names) {
    uint64_t bytes = 0;
    const char *before = "";
    for (uint32_t m = 0; m < spec->n_memories; m++)
        if (spec->tiling.rows.weights_in >> m & 1) {
            text_addf(names, "%s%s", before, spec->memory[m].name);
            before = " and ";
            bytes += spec->memory[m].size;
        }
    return bytes;
}

bool weights_outside_too_large(Arena *arena, Diag *diag,
                               const Schedule *schedule, bool says) {
    Text names = text_new(arena);
    uint64_t bytes = plan_staged_weights(schedule);
    uint64_t have = sources_hold(schedule->spec, &names);
    if (bytes <= have)
        return false;
    if (says)
        diag_error(diag, schedule->spec->loc,
                   "does not fit: weights take %s bytes of %s, which %s %s",
                   with_commas(arena, bytes), text_str(&names),
                   strchr(text_str(&names), ' ') ? "have" : "has",
                   with_commas(arena, have));
    return true;
}
