/* registry.c - the table of planners, and what holds for all of them: what a
 * placement is worth, the choice among rows, the judge at the end.
 *
 * Input: a PlanProblem. Output: a PlanResult whose arrays are in the caller's
 * arena; the planners work in arenas of their own, dropped after each.
 */
#include "pack/packers.h"

#include "base/arith.h"
#include "base/diag.h"
#include "base/order.h"
#include "pack/exact/exact.h"
#include "pack/free_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLANNER(name, in_auto, doc) {#name, plan_##name, in_auto, doc},
const Planner planners[] = {
#include "pack/packers.def"
};
#undef PLANNER

const uint32_t n_planners = sizeof planners / sizeof *planners;

const Planner *planner_find(const char *name) {
    for (uint32_t i = 0; i < n_planners; i++)
        if (!strcmp(planners[i].name, name))
            return &planners[i];
    return NULL;
}

double pack_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool pack_late(const PackProblem *problem) {
    return problem->deadline > 0 && pack_clock() >= problem->deadline;
}

uint64_t pack_steps(const PackProblem *problem, uint64_t otherwise) {
    if (problem->budget)
        return problem->budget;
    return problem->deadline > 0 ? INT64_MAX : otherwise;
}

/* Of a search on behalf of "auto", which a compiler waits for: about 10 ms. */
enum { AUTO_STEPS = 10000 };

static PackResult new_result(Arena *arena, const PackProblem *problem) {
    PackResult result = {.status = PACK_FAILS, .failed = PACK_NO_BUFFER};
    result.pool = ARENA_ARRAY(arena, int32_t, problem->n_bufs);
    result.offset = ARENA_ARRAY(arena, uint64_t, problem->n_bufs);
    return result;
}

void pack_measure(const PackProblem *problem, PackResult *result) {
    Arena *scratch = arena_new("heights");
    const bool *inside = pack_insides(scratch, problem);
    memset(result->height, 0, sizeof result->height);
    result->cost = result->hints = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        uint32_t p = (uint32_t)result->pool[b];
        if (result->pool[b] < 0 || p >= problem->n_pools ||
            !problem->buf[b].bytes[p])
            continue;
        uint64_t end = result->offset[b] + problem->buf[b].bytes[p];
        result->height[p] = end > result->height[p] ? end : result->height[p];
        result->hints += result->offset[b] == problem->buf[b].hint;
        if (!inside || !inside[b])
            result->cost = add_capped(result->cost, place_cost(problem, b, p));
    }
    arena_free(scratch);
}

uint64_t pack_height(const PackResult *result) {
    uint64_t total = 0;
    for (uint32_t p = 0; p < PACK_MAX_POOLS; p++)
        total = add_capped(total, result->height[p]);
    return total;
}

bool pack_better(const PackResult *a, const PackResult *b) {
    if (a->status != b->status)
        return b->status == PACK_FAILS || a->status == PACK_FITS;
    if (a->status != PACK_FITS || a->cost != b->cost)
        return a->status == PACK_FITS && a->cost < b->cost;
    uint64_t low = pack_height(a), high = pack_height(b);
    return low < high || (low == high && a->hints > b->hints);
}

void pack_keep(PackResult *to, const PackResult *from, uint32_t n_bufs) {
    PackResult kept = *from;
    kept.pool = to->pool;
    kept.offset = to->offset;
    memcpy(kept.pool, from->pool, n_bufs * sizeof *kept.pool);
    memcpy(kept.offset, from->offset, n_bufs * sizeof *kept.offset);
    *to = kept;
}

static PackResult new_candidate(Arena *arena, const PackProblem *problem,
                                const PackResult *result) {
    PackResult candidate = new_result(arena, problem);
    candidate.bound = result->bound;
    candidate.cost_bound = result->cost_bound;
    return candidate;
}

/* Judges it; `*result` and `*used` change if it is the first, or better. */
static void consider(const PackProblem *problem, const char *planner,
                     PackResult *candidate, PackResult *result,
                     const char **used) {
    Arena *scratch = arena_new("judge");
    pack_measure(problem, candidate);
    if (candidate->status == PACK_FITS) {
        const char *wrong = pack_verify(scratch, problem, candidate);
        if (wrong)
            bug("planner %s: %s", planner, wrong);
    }
    arena_free(scratch);
    if (!*used || pack_better(candidate, result)) {
        pack_keep(result, candidate, problem->n_bufs);
        *used = planner;
        pack_tell(problem, result);
    }
    if (candidate->bound > result->bound)
        result->bound = candidate->bound;
    if (candidate->cost_bound > result->cost_bound)
        result->cost_bound = candidate->cost_bound;
    result->proved = result->status == PACK_FITS &&
                     result->cost == result->cost_bound &&
                     pack_height(result) == result->bound;
}

static void try_planner(const PackProblem *problem, const Planner *planner,
                        PackResult *result, const char **used) {
    Arena *scratch = arena_new("planner");
    PackResult candidate = new_candidate(scratch, problem, result);
    const uint64_t *offset = candidate.offset;
    Arena *work = arena_new("work");
    planner->run(work, problem, &candidate);
    arena_free(work); /* before the judge needs as much */
    if (candidate.offset != offset)
        bug("planner %s: offsets of its own", planner->name);
    consider(problem, planner->name, &candidate, result, used);
    arena_free(scratch);
}

void pack_tell(const PackProblem *problem, const PackResult *result) {
    if (problem->found && result->status == PACK_FITS)
        problem->found(problem->context, result);
}

static void give_up(const PackProblem *problem, PackResult *result) {
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        result->pool[b] = -1;
    result->status = PACK_INFEASIBLE;
}

/* Of random orders a few: the budget is for the search behind them. */
static uint64_t auto_budget(const PackProblem *problem, const Planner *row) {
    if (row->run != plan_exact)
        return 0;
    return problem->budget ? problem->budget : AUTO_STEPS;
}

void pack_memory(Arena *arena, const PackProblem *problem, const char *planner,
                 bool best, PackResult *result, const char **used) {
    assert(problem->n_pools <= PACK_MAX_POOLS);
    *result = new_result(arena, problem);
    *used = NULL;
    bool all = !strcmp(planner, "auto");
    const Planner *row = all ? planners : planner_find(planner);
    if (!row)
        bug("no planner is called %s", planner);
    if (pack_refuted(problem, result)) {
        give_up(problem, result);
        *used = row->name;
        return;
    }
    PackProblem asked = *problem;
    asked.any_fit |= all && !best;
    const Planner *end = all ? planners + n_planners : row + 1;
    for (; row < end; row++) {
        if (all && !row->in_auto)
            continue;
        if (all)
            asked.budget = auto_budget(problem, row);
        try_planner(&asked, row, result, used);
        if (result->proved ||
            (result->status == PACK_FITS && (!best || pack_late(problem))))
            break;
        if (all && row == planners && result->status != PACK_FITS &&
            exact_refuted(problem, &result->bound)) {
            result->status =
                PACK_INFEASIBLE; /* which names who is in the way */
            break;
        }
    }
    if (result->status == PACK_INFEASIBLE)
        give_up(problem, result);
}

/* Can the bundle lie no higher, for its alignments and the pool's end? */
static bool is_highest(const Clusters *bundles, const Cluster *bundle,
                       const PackResult *result) {
    uint32_t root = bundle->root;
    int64_t at = (int64_t)result->offset[root] - bundles->low[root];
    int64_t up = bundle_up(bundles, bundle, 0, at + 1);
    uint64_t end = (uint64_t)(up + bundle_bytes(bundles, bundle, 0));
    return up < 0 || end > bundles->problem->pool[0].size;
}

/* Does a buffer lie at the end of the pool that need not? */
static bool is_at_end(const PackProblem *problem, const PackResult *result) {
    Arena *scratch = arena_new("end");
    const Clusters *bundles = bundles_new(scratch, problem);
    bool at_end = false;
    for (uint32_t i = 0; i < bundles->n && !at_end; i++)
        at_end = bundles->bundle[i].pin_pool < 0 &&
                 is_highest(bundles, &bundles->bundle[i], result);
    arena_free(scratch);
    return at_end;
}

typedef struct Key {
    uint64_t at;
    uint32_t buf;
} Key;

static int lowest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by(ORDER_UP(x->at, y->at), ORDER_UP(x->buf, y->buf));
}

/* Pushes all down: each buffer into its lowest gap, the lowest first. */
static void push_down(const PackProblem *problem, const char *planner,
                      PackResult *result) {
    Arena *scratch = arena_new("push down");
    PackResult low = new_candidate(scratch, problem, result);
    low.nodes = result->nodes;
    Key *key = ARENA_ARRAY(scratch, Key, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        key[b] = (Key){result->offset[b], b};
    qsort(key, problem->n_bufs, sizeof *key, lowest_first);
    Placer *placer = placer_new(scratch, problem, &low);
    for (uint32_t i = 0; i < problem->n_bufs; i++)
        placer_put_lowest(placer, key[i].buf);
    consider(problem, planner, &low, result, &planner);
    arena_free(scratch);
}

void pack_lowest(Arena *arena, const PackProblem *problem, const char *planner,
                 PackResult *result) {
    enum { PARTS = 32, MOST = 8 * PARTS };
    const char *used;
    pack_memory(arena, problem, planner, true, result, &used);
    if (result->status != PACK_FITS || result->proved || problem->any_fit ||
        problem->n_pools != 1 || !is_at_end(problem, result))
        return;
    PackProblem ended = *problem;
    uint64_t bound = result->bound;
    for (uint64_t k = 0; k < MOST && !pack_late(problem); k++) {
        PackResult found;
        ended.pool[0].size = bound + bound / PARTS * k;
        if (ended.pool[0].size >= result->height[0])
            break;
        pack_memory(arena, &ended, planner, true, &found, &used);
        if (found.status == PACK_FITS) {
            *result = found;
            break;
        }
    }
    push_down(problem, used, result);
}
