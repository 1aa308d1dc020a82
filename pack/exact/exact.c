/* exact.c - the least height, and a proof of it.
 *
 * Input: a placement of a cheap planner, or none. Output: the best found; the
 * bound, raised where smaller capacities were proved impossible; they meet
 * where the budget allows.
 *
 * A crew of searches decides whether a capacity is enough (solver_portfolio.c).
 * Heights are probed in rounds, each with twice the steps of the one before:
 * first the bound itself, which ends everything when it is reached, and which a
 * proof of the contrary raises to the least capacity at which some cut branch
 * would have gone on; then, halving the distance from above, what may be
 * easier. Where no byte may be wasted, a round begins with the search along
 * time (perfect_packing.c). Where any placement within the capacity will do, no
 * less is probed.
 *
 * Gaps in lives and relations: what fits without them is the start
 * (tighten.c). Several pools and relations: another search (disjunctive.h),
 * which also looks for the placement of this height that keeps most hints.
 * Problems too large for either: the cheap placement.
 */
#include "pack/exact/exact.h"
#include "pack/exact/disjunctive.h"
#include "pack/free_list.h"
#include "pack/packers.h"

enum {
    MANY = 4000, /* buffers: of these each step takes long */
    STEPS_OF_MANY = 100000,
    DEFAULT_STEPS = 6000000, /* up to a minute, where nothing is proved */
    FIRST_ROUND = 2000,      /* some tens of milliseconds */
    HALVINGS = 4,
    HALVING_SHARE = 4, /* of the steps for the bound */
    SWEEPS = 16,       /* runs a round; steps of other searches take longer */
    SWEEP_SHARE = 4,
    TIGHT_SHARE = 16, /* of the steps, before gaps and relations are used */
    ATTEMPTS = 6      /* welds of what may overlap */
};

typedef struct Descent {
    const PackProblem *problem;
    PackResult *result;
    Strip *strip;
    Portfolio *crew;
    int64_t *low;           /* by item: offsets that were found */
    uint64_t bound, height; /* bytes; height: UINT64_MAX if nothing fits yet */
    uint64_t spare;         /* steps left of the budget */
    uint32_t sweep;         /* runs of the sweep so far */
} Descent;

/* `low`: offsets by item. */
static void take_placement(Descent *d, const int64_t *low) {
    const Strip *strip = d->strip;
    for (uint32_t b = 0; b < d->problem->n_bufs; b++) {
        const Buffer *buf = &d->problem->buf[b];
        bool pinned = buf->bytes[0] && buf->pin_pool >= 0;
        d->result->pool[b] = 0;
        d->result->offset[b] = pinned ? buf->pin_offset : 0;
    }
    for (uint32_t i = 0; i < strip->n; i++)
        d->result->offset[strip->item[i].buf] = (uint64_t)low[i] * strip->unit;
    d->result->status = PACK_FITS;
    d->result->failed = PACK_NO_BUFFER;
    d->height = placed_height(d->problem, d->result);
    pack_tell(d->problem, d->result);
}

/* Each of the crew may take so many steps; what they took is paid for. */
static Verdict probe(Descent *d, uint64_t bytes, uint64_t steps) {
    uint64_t before = crew_cost(d->crew).steps;
    steps = steps < d->spare ? steps : d->spare;
    Verdict verdict = crew_within(d->crew, bytes, steps, d->low);
    uint64_t spent = crew_cost(d->crew).steps - before + 1;
    d->spare -= spent < d->spare ? spent : d->spare;
    if (verdict == FOUND)
        take_placement(d, d->low);
    if (verdict == NONE)
        d->bound = crew_needed(d->crew);
    return verdict;
}

/* Sizes rounded up may be full where the highest of them shows too much. */
static bool is_lower(const Descent *d) {
    const Strip *strip = d->strip;
    uint64_t most = d->problem->pool[0].size, height = 0;
    for (uint32_t i = 0; i < strip->n; i++) {
        uint64_t end =
            (uint64_t)d->low[i] * strip->unit + strip->item[i].bytes;
        height = end > height ? end : height;
    }
    return height <= most && height < d->height;
}

/* Where a perfect packing may exist, runs of the sweep look for one: many, for
 * they are short. */
static void sweep_round(Descent *d, uint64_t steps) {
    bool found = false;
    for (int k = 0; k < SWEEPS && d->spare && !found && !pack_late(d->problem);
         k++) {
        uint64_t spent = d->strip->n + steps / SWEEP_SHARE;
        spent = spent < d->spare ? spent : d->spare;
        found = sweep_search(d->strip, d->problem->seed, d->sweep++, &spent,
                             d->low) &&
                is_lower(d);
        d->spare -= spent < d->spare ? spent : d->spare;
        d->result->nodes += spent;
    }
    if (found)
        take_placement(d, d->low);
}

static bool done(const Descent *d) {
    uint64_t most = d->problem->pool[0].size;
    if (d->height != UINT64_MAX && d->problem->any_fit)
        return true;
    return d->bound >= d->height || d->bound > most || !d->spare ||
           pack_late(d->problem);
}

/* From the bound upwards while proofs are quick, then from above. */
static void one_round(Descent *d, uint64_t steps) {
    uint64_t most = d->problem->pool[0].size;
    if (d->height == UINT64_MAX) {
        most = most < d->strip->total ? most : d->strip->total;
        most = most > d->bound ? most : d->bound;
        probe(d, most, steps);
    }
    if (!done(d) && sweep_applies(d->strip))
        sweep_round(d, steps);
    if (d->problem->any_fit)
        return; /* no less will be easier */
    while (!done(d) && probe(d, d->bound, steps) == NONE)
        continue;
    uint64_t low = d->bound;
    for (int k = 0; k < HALVINGS && !done(d) && d->height != UINT64_MAX; k++) {
        uint64_t middle = low + (d->height - low) / 2;
        if (middle <= low || middle >= d->height)
            break;
        if (probe(d, middle, steps / HALVING_SHARE) != FOUND)
            low = d->bound > middle ? d->bound : middle;
    }
}

/* What is never alive has a place all the same. */
static uint64_t largest_dead(const PackProblem *problem) {
    uint64_t largest = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        uint64_t end = buf->bytes[0];
        if (buf_is_alive(buf) || !end)
            continue;
        end += buf->pin_pool < 0 ? 0 : buf->pin_offset;
        largest = end > largest ? end : largest;
    }
    return largest;
}

static void descend(Arena *arena, const PackProblem *problem,
                    PackResult *result) {
    Strip *strip = strip_new(arena, problem);
    if (!strip)
        return;
    Descent d = {.problem = problem,
                 .result = result,
                 .strip = strip,
                 .low = ARENA_ARRAY(arena, int64_t, strip->n),
                 .bound = strip_bound(strip)};
    uint64_t dead = largest_dead(problem);
    d.bound = dead > d.bound ? dead : d.bound;
    d.spare = pack_steps(problem, problem->n_bufs > MANY ? STEPS_OF_MANY
                                                         : DEFAULT_STEPS);
    d.height = result->status == PACK_FITS ? placed_height(problem, result)
                                           : UINT64_MAX;
    if (!done(&d))
        d.crew = crew_new(arena, strip, problem->seed);
    for (uint64_t steps = FIRST_ROUND; !done(&d); steps *= 2)
        one_round(&d, steps);
    result->bound = d.bound < d.height ? d.bound : d.height;
    result->nodes += d.crew ? crew_cost(d.crew).nodes : 0;
    if (d.bound > problem->pool[0].size)
        result->status = PACK_INFEASIBLE;
}

static bool is_decided(const PackProblem *problem, const PackResult *result) {
    if (result->status != PACK_FITS)
        return result->status == PACK_INFEASIBLE;
    return problem->any_fit || placed_height(problem, result) <= result->bound;
}

/* One part in so many of the steps and of the time that are left. */
static void take_share(PackProblem *problem, uint64_t share) {
    double now = pack_clock();
    problem->budget = pack_steps(problem, DEFAULT_STEPS) / share;
    if (problem->deadline > now)
        problem->deadline = now + (problem->deadline - now) / (double)share;
}

/* Gaps and relations only relax a problem: what was found without them counts,
 * what was proved does not. */
static bool descend_tight(const PackProblem *problem, uint32_t attempt,
                          uint64_t share, PackResult *result) {
    Arena *arena = arena_new("tight");
    Tight tight;
    bool better = false;
    if (!is_decided(problem, result) && !pack_late(problem) &&
        tight_new(arena, problem, attempt, &tight)) {
        PackResult found = {.status = PACK_FAILS}, all;
        found.pool = ARENA_ARRAY(arena, int32_t, tight.problem.n_bufs);
        found.offset = ARENA_ARRAY(arena, uint64_t, tight.problem.n_bufs);
        tight.problem.found = NULL;
        take_share(&tight.problem, share);
        if (result->status == PACK_FITS) /* nothing else is of use */
            tight.problem.pool[0].size = placed_height(problem, result) - 1;
        if (!pack_refuted(&tight.problem, &found)) {
            plan_greedy_by_size(arena, &tight.problem, &found);
            descend(arena, &tight.problem, &found);
        }
        result->nodes += found.nodes;
        tight_result(arena, &tight, &found, &all);
        pack_measure(problem, &all);
        all.nodes = result->nodes;
        all.bound = result->bound;
        all.cost_bound = result->cost_bound;
        better = all.status == PACK_FITS && pack_better(&all, result) &&
                 !pack_verify(arena, problem, &all);
        if (better)
            pack_keep(result, &all, problem->n_bufs);
        pack_tell(problem, result);
    }
    arena_free(arena);
    return better;
}

static void search_loose(Arena *arena, const PackProblem *problem,
                         PackResult *result) {
    if (pack_steps(problem, DEFAULT_STEPS) / TIGHT_SHARE <
        FIRST_ROUND) { /* a compiler waits */
        pile_improve(arena, problem, result);
        return;
    }
    bool related = problem->n_relations > 0;
    uint32_t attempts = related ? ATTEMPTS : 1, best = 0;
    for (uint64_t share = related ? TIGHT_SHARE * TIGHT_SHARE : TIGHT_SHARE;
         share >= TIGHT_SHARE; share /= TIGHT_SHARE)
        for (uint32_t k = 0; k < attempts; k++)
            if (descend_tight(problem, k, share, result))
                best = k;
    if (!related)
        descend(arena, problem, result);
    /* Keeps hints beside relations; its bounds know more of alignments. */
    if (related || !is_decided(problem, result)) {
        PackProblem half = *problem;
        if (problem->deadline > 0)
            take_share(&half, 2);
        pile_improve(arena, &half, result);
    }
    descend_tight(problem, best, 1, result);
    if (!problem->n_relations)
        pile_keep_hints(arena, problem, result);
}

void exact_improve(Arena *arena, const PackProblem *problem,
                   PackResult *result) {
    if (problem->n_pools > 1) {
        pile_improve(arena, problem, result);
        return;
    }
    if (!problem_is_plain(problem)) {
        search_loose(arena, problem, result);
        return;
    }
    descend(arena, problem, result);
    pile_keep_hints(arena, problem, result);
}

bool exact_refuted(const PackProblem *problem, uint64_t *bound) {
    if (!problem_is_plain(problem) || problem->n_pools != 1)
        return false;
    Arena *arena = arena_new("pins");
    uint64_t size = problem->pool[0].size;
    Strip *strip = strip_new(arena, problem);
    bool refuted = false;
    if (strip && strip->n_pins && strip_limit(strip, size)) {
        Skyline *sky = skyline_new(arena, strip);
        sky->needed = UINT64_MAX;
        refuted = !skyline_start(sky);
        if (refuted)
            *bound = sky->needed > size ? sky->needed : size + 1;
    }
    arena_free(arena);
    return refuted;
}

void plan_exact(Arena *arena, const PackProblem *problem, PackResult *result) {
    plan_greedy_by_size(arena, problem, result);
    exact_improve(arena, problem, result);
}
