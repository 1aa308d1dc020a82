/* hide.c - plans whose transfers hide behind layers.
 *
 * Input: the plan that costs least. Output: that, or one that moves no more
 * bytes and takes fewer cycles.
 * Method: ways are compared before loads come early and stores late, by bytes
 * above all. Where much of the time then is not hidden, though neither the
 * engines nor the wires are busy all of it, plans are made of other ways, to
 * the last action, and compared by their cycles.
 */
#include "alloc/contest.h"
#include "alloc/overlap.h"

#include <math.h>

/* One part in so many of the time: what waiting must take, and what a plan must
 * save, for it pays in instructions, and perhaps in weights. */
enum { WAITING = 32, SAVED = 128 };

/* Runs of layers that roll together: the first of them are tried, fewer where
 * there are many steps. */
static const uint32_t runs[] = {16, 64, 8, 32, 4};
enum {
    N_RUNS = sizeof runs / sizeof *runs,
    STEPS = 640,
    WAYS = 2 * (1 + 2 * N_RUNS) /* each is ordered twice, at least */
};

static bool no_more(Traffic a, Traffic b) {
    return traffic_bytes(a) <= traffic_bytes(b) && a.too_long <= b.too_long;
}

typedef struct Hide {
    Arena *arena;
    const Contest *c;
    Plan *plan;    /* the best so far */
    uint64_t most; /* cycles of any other */
    uint32_t ways; /* that may still be tried */
} Hide;

/* False if nothing fits that way, or no more ways may be tried. */
static bool try_way(Hide *h, Way way) {
    if (!h->ways || budget_spent(h->c->options->budget))
        return false;
    h->ways--;
    way.most = HUGE_VAL;
    way.cuts = true;
    if (h->c->schedule->spec->tiling.rings)
        way.cycles = h->most < h->plan->cycles ? h->most + 1 : h->plan->cycles;
    Plan *plan = way_plan(h->arena, diag_new(h->arena), h->c, &way);
    if (plan && no_more(plan_traffic(plan), plan_traffic(h->plan)) &&
        plan->cycles <= h->most && plan->cycles < h->plan->cycles &&
        pace_admits(h->c->pace, plan))
        h->plan = plan;
    return plan != NULL;
}

/* All that others need stays; where that does not fit, groups of the best way
 * roll. */
static void try_runs(Hide *h) {
    const Schedule *schedule = h->c->schedule;
    uint32_t tries = STEPS / (schedule->n_steps + 1);
    Way way = {
        .size = h->c->best.size, .within = h->c->best.within, .rolls = true};
    for (uint32_t i = 0; i < tries && i < N_RUNS; i++) {
        way.runs = runs[i];
        if (try_way(h, way) || !way.rolls || !h->c->best.share)
            continue;
        way = h->c->best;
        way.runs = runs[i];
        try_way(h, way);
    }
}

Plan *plan_hidden(Arena *arena, const Contest *c, Plan *plan) {
    const HwTiling *tiling = &c->schedule->spec->tiling;
    if (!tiling->overlap || c->options->layer_by_layer || c->best.quick ||
        plan->cycles / WAITING >= plan_waiting(plan))
        return plan;
    Hide h = {arena, c, plan, plan->cycles - plan->cycles / SAVED,
              overlap_tries(plan, WAYS) / 2};
    try_way(&h, c->best);
    if (tiling->rings)
        try_runs(&h);
    return h.plan;
}
