/* registry.c - the table of planners, and what holds for all of them: what a
 * placement is worth, the choice among rows, the judge at the end.
 *
 * Input: a PlanProblem. Output: a PlanResult whose arrays are in the caller's
 * arena; the planners work in arenas of their own, dropped after each.
 */
#include "pack/packers.h"

#include "base/arith.h"
#include "base/diag.h"
#include "pack/exact/exact.h"
#include "pack/free_list.h"

#include <assert.h>
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

/* Runs one row; `*result` and `*used` change if it is the first, or better. */
static void try_planner(const PackProblem *problem, const Planner *planner,
                        PackResult *result, const char **used) {
    Arena *scratch = arena_new("planner");
    PackResult candidate = new_result(scratch, problem);
    candidate.bound = result->bound;
    candidate.cost_bound = result->cost_bound;
    const uint64_t *offset = candidate.offset;
    Arena *work = arena_new("work");
    planner->run(work, problem, &candidate);
    arena_free(work); /* before the judge needs as much */
    if (candidate.offset != offset)
        bug("planner %s: offsets of its own", planner->name);
    pack_measure(problem, &candidate);
    if (candidate.status == PACK_FITS) {
        const char *wrong = pack_verify(scratch, problem, &candidate);
        if (wrong)
            bug("planner %s: %s", planner->name, wrong);
    }
    if (!*used || pack_better(&candidate, result)) {
        pack_keep(result, &candidate, problem->n_bufs);
        *used = planner->name;
        pack_tell(problem, result);
    }
    if (candidate.bound > result->bound)
        result->bound = candidate.bound;
    if (candidate.cost_bound > result->cost_bound)
        result->cost_bound = candidate.cost_bound;
    result->proved = result->status == PACK_FITS &&
                     result->cost == result->cost_bound &&
                     pack_height(result) == result->bound;
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

/* Whatever is pushed down in a pool of its own ends below this. */
static uint64_t highest_use(const PackProblem *problem) {
    uint64_t sum = 0, pin = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        sum += buf->bytes[0] + buf_align(&problem->pool[0], buf);
        if (buf->pin_pool >= 0 && buf->pin_offset > pin)
            pin = buf->pin_offset;
        if (sum > INT64_MAX / 4)
            return UINT64_MAX;
    }
    return sum + pin;
}

void pack_lowest(Arena *arena, const PackProblem *problem, const char *planner,
                 PackResult *result) {
    enum { PARTS = 32, MOST = 8 * PARTS };
    const char *used;
    pack_memory(arena, problem, planner, true, result, &used);
    if (result->status != PACK_FITS || problem->any_fit ||
        problem->n_pools != 1)
        return;
    PackProblem ended = *problem;
    uint64_t bound = result->bound, most = highest_use(problem);
    bool counted =
        result->height[0] > most || result->height[0] == problem->pool[0].size;
    for (uint64_t k = 0; k <= MOST && counted && !pack_late(problem); k++) {
        PackResult found;
        ended.pool[0].size = k < MOST ? bound + bound / PARTS * k : most;
        if (ended.pool[0].size >= result->height[0])
            return;
        pack_memory(arena, &ended, planner, true, &found, &used);
        if (found.status == PACK_FITS) {
            *result = found;
            return;
        }
    }
}
