/* paces.c - one plan, its transfers ordered for slower machines; see contest.h.
 *
 * Input: what finishes a plan for given bandwidths; the real machine, and with
 * it the one that plans are chosen for. Output: the plan for the real one.
 * Invariant: of two machines, alike but for bandwidths that are the lowest
 * beside those planned for, the faster one takes no more cycles, and moves as
 * many bytes.
 * Method: plans are finished for the planned bandwidths, and for these halved
 * once, twice, and so on, until they are no more than the machine's; it takes
 * the fastest. Where between two halves the machine lies changes none of these.
 * One for slower machines joins only if, in the fastest machine that gets to
 * know it, it takes no fewer cycles than those that joined before. As a listing
 * is no slower with more bandwidth, none of a slower machine's is faster than
 * all of a faster one's.
 */
#include "alloc/contest.h"
#include "alloc/overlap.h"

#include "hwspec/cost.h"

typedef struct Paces {
    Arena *arena;
    const Schedule *real;
    VEC(Plan *) plan;
} Paces;

/* What was planned, tiles included, on another machine. */
static Plan *plan_on(Arena *arena, const HwSpec *spec, const Plan *plan) {
    Plan *other = ARENA_COPY(arena, Plan, plan, 1);
    other->schedule =
        schedule_tiled(arena, plan->schedule, spec, plan->schedule->spec);
    if (plan->cycles)
        other->cycles = plan_cycles(other);
    return other;
}

bool pace_admits(const Pace *pace, const Plan *plan) {
    if (!pace || !pace->known)
        return true;
    Traffic own = plan_traffic(plan), known = plan_traffic(pace->known);
    if (traffic_bytes(own) != traffic_bytes(known) || own.too_long)
        return false;
    Arena *arena = arena_new("pace");
    uint64_t cycles = plan_on(arena, pace->faster, plan)->cycles;
    arena_free(arena);
    return cycles >= pace->least;
}

/* The index of the one that takes the fewest cycles there. */
static uint32_t fastest_on(const Paces *p, const HwSpec *spec,
                           uint64_t *cycles) {
    Arena *arena = arena_new("paces");
    uint32_t best = 0;
    for (uint32_t i = 0; i < p->plan.n; i++) {
        uint64_t own = plan_on(arena, spec, p->plan.at[i])->cycles;
        if (i && own >= *cycles)
            continue;
        best = i;
        *cycles = own;
    }
    arena_free(arena);
    return best;
}

static Plan *fastest(const Paces *p, const HwSpec *spec) {
    uint64_t cycles;
    return plan_on(p->arena, spec, p->plan.at[fastest_on(p, spec, &cycles)]);
}

static void finish_slower(Paces *p, FinishPlan *finish, void *context,
                          const HwSpec *planned, uint32_t halvings) {
    const HwSpec *real = p->real->spec;
    Pace pace = {.spec = hwspec_halved(p->arena, planned, real, halvings),
                 .faster =
                     hwspec_no_slower(p->arena, real, planned, halvings - 1)};
    pace.known = fastest(p, pace.spec);
    fastest_on(p, pace.faster, &pace.least);
    Plan *plan = finish(context, diag_new(p->arena), &pace);
    if (plan && plan != pace.known)
        vec_push(p->arena, &p->plan, plan);
}

Plan *plan_at_pace(Arena *arena, Diag *diag, const Schedule *real,
                   const Budget *budget, FinishPlan *finish, void *context) {
    const HwTiling *tiling = &real->spec->tiling;
    Paces p = {.arena = arena, .real = real};
    Pace own = {.spec = hwspec_ordered(arena, real->spec)};
    Plan *plan = finish(context, diag, &own);
    if (!plan)
        return NULL;
    vec_push(arena, &p.plan, plan);
    uint32_t halvings = hwspec_halvings(own.spec, real->spec);
    if (!tiling->overlap && !tiling->queue)
        halvings = 0;
    for (uint32_t i = 1; i <= halvings && !budget_spent(budget); i++)
        finish_slower(&p, finish, context, own.spec, i);
    plan = fastest(&p, real->spec);
    plan->schedule =
        schedule_tiled(arena, real, real->spec, plan->schedule->spec);
    return plan;
}
