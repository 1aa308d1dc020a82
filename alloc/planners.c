/* planners.c - the table of planners, and what holds for all of them: bounds,
 * proofs that nothing fits, the choice among rows, the judge at the end.
 *
 * Input: a PlanProblem. Output: a PlanResult whose arrays are in the caller's
 * arena; the planners work in arenas of their own, dropped after each.
 */
#include "alloc/planners.h"

#include "alloc/place.h"
#include "base/diag.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PLANNER(name, in_auto, doc) {#name, plan_##name, in_auto, doc},
const Planner planners[] = {
#include "alloc/planners.def"
};
#undef PLANNER

const uint32_t n_planners = sizeof planners / sizeof *planners;

const Planner *planner_find(const char *name) {
    for (uint32_t i = 0; i < n_planners; i++)
        if (!strcmp(planners[i].name, name))
            return &planners[i];
    return NULL;
}

bool bufs_conflict(const Buf *a, const Buf *b) {
    uint32_t first = a->first > b->first ? a->first : b->first;
    uint32_t end = a->end < b->end ? a->end : b->end;
    return first < end;
}

/* Of a search on behalf of "auto", which a compiler waits for: about 10 ms. */
enum { AUTO_STEPS = 10000 };

uint64_t buf_align(const Pool *pool, const Buf *buf) {
    uint64_t a = pool->align, b = buf->align ? buf->align : 1;
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    uint64_t times = buf->align ? buf->align / a : 1;
    return times > UINT64_MAX / pool->align ? UINT64_MAX : pool->align * times;
}

static uint64_t add_capped(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A step at which `bytes` come to life (or die, if `dies`). */
typedef struct Event {
    uint32_t step;
    bool dies;
    uint64_t bytes;
} Event;

static int by_step(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (int)y->dies - (int)x->dies; /* half-open: deaths first */
}

/* True if `pool` is the only one that allows the buffer. */
static bool only_in(const PlanProblem *problem, uint32_t buf, uint32_t pool) {
    for (uint32_t p = 0; p < problem->n_pools; p++)
        if (!problem->buf[buf].bytes[p] != (p != pool))
            return false;
    return true;
}

/* Live peak of all buffers, or of those that only `pool` (>= 0) allows;
 * UINT64_MAX if it does not fit 64 bits. */
static uint64_t live_peak(Arena *arena, const PlanProblem *problem,
                          int32_t pool, uint32_t *at) {
    uint32_t n = 0;
    Event *event = ARENA_ARRAY(arena, Event, 2 * (size_t)problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buf *buf = &problem->buf[b];
        uint64_t bytes = buf_bytes(problem, b);
        bool counts = pool < 0 || only_in(problem, b, (uint32_t)pool);
        if (!counts || buf->first >= buf->end)
            continue;
        event[n++] = (Event){buf->first, false, bytes};
        event[n++] = (Event){buf->end, true, bytes};
    }
    if (n)
        qsort(event, n, sizeof *event, by_step);
    uint64_t live = 0, peak = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (event[i].dies) {
            live -= event[i].bytes;
            continue;
        }
        live = add_capped(live, event[i].bytes);
        if (live <= peak)
            continue;
        peak = live;
        if (at)
            *at = event[i].step;
        if (peak == UINT64_MAX)
            break;
    }
    return peak;
}

uint64_t plan_live_peak(Arena *arena, const PlanProblem *problem,
                        uint32_t *at) {
    if (at)
        *at = 0;
    return live_peak(arena, problem, -1, at);
}

/* True if the buffer, alone, has a place: at its pin, or in some pool. */
static bool fits_alone(const PlanProblem *problem, const Buf *buf) {
    for (uint32_t p = 0; p < problem->n_pools; p++) {
        uint64_t size = problem->pool[p].size, bytes = buf->bytes[p];
        bool here = buf->pin_pool < 0 || (uint32_t)buf->pin_pool == p;
        uint64_t at = buf->pin_pool < 0 ? 0 : buf->pin_offset;
        if (here && bytes && at % buf_align(&problem->pool[p], buf) == 0 &&
            at <= size && bytes <= size - at)
            return true;
    }
    return false;
}

static bool pins_collide(const Buf *a, const Buf *b) {
    return a->pin_pool == b->pin_pool && bufs_conflict(a, b) &&
           a->pin_offset < b->pin_offset + b->bytes[b->pin_pool] &&
           b->pin_offset < a->pin_offset + a->bytes[a->pin_pool];
}

/* A buffer that has no place whatever the others do, or whose pin collides
 * with an earlier pin; PLAN_NO_BUF if there is none. */
static uint32_t find_impossible(Arena *arena, const PlanProblem *problem) {
    uint32_t *pinned = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    uint32_t n_pinned = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buf *buf = &problem->buf[b];
        assert(buf->pin_pool < (int32_t)problem->n_pools);
        if (!buf_bytes(problem, b))
            continue;
        if (!fits_alone(problem, buf))
            return b;
        if (buf->pin_pool < 0)
            continue;
        for (uint32_t i = 0; i < n_pinned; i++)
            if (pins_collide(&problem->buf[pinned[i]], buf))
                return b;
        pinned[n_pinned++] = b;
    }
    return PLAN_NO_BUF;
}

/* True if the volumes alive at one step cannot fit, however they are placed:
 * in all pools together, or in one pool those that have no other. */
static bool too_much_alive(Arena *arena, const PlanProblem *problem,
                           uint64_t peak) {
    uint64_t total = 0;
    for (uint32_t p = 0; p < problem->n_pools; p++) {
        uint64_t size = problem->pool[p].size;
        total = add_capped(total, size);
        bool several = problem->n_pools > 1;
        if (several && live_peak(arena, problem, (int32_t)p, NULL) > size)
            return true;
    }
    return peak > total || peak == UINT64_MAX;
}

static uint64_t highest_pin(const PlanProblem *problem) {
    uint64_t highest = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buf *buf = &problem->buf[b];
        if (buf->pin_pool < 0 || !buf_bytes(problem, b))
            continue;
        uint64_t end = buf->pin_offset + buf->bytes[buf->pin_pool];
        highest = end > highest ? end : highest;
    }
    return highest;
}

static PlanResult new_result(Arena *arena, const PlanProblem *problem) {
    PlanResult result = {.status = PLAN_FAILS, .failed = PLAN_NO_BUF};
    result.pool = ARENA_ARRAY(arena, int32_t, problem->n_bufs);
    result.offset = ARENA_ARRAY(arena, uint64_t, problem->n_bufs);
    return result;
}

static void measure(const PlanProblem *problem, PlanResult *result) {
    memset(result->height, 0, sizeof result->height);
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        if (result->pool[b] < 0)
            continue;
        uint32_t p = (uint32_t)result->pool[b];
        uint64_t bytes = p < problem->n_pools ? problem->buf[b].bytes[p] : 0;
        uint64_t end = result->offset[b] + bytes;
        if (bytes && end > result->height[p])
            result->height[p] = end;
    }
}

static uint64_t total_height(const PlanResult *result) {
    uint64_t total = 0;
    for (uint32_t p = 0; p < PLAN_MAX_POOLS; p++)
        total = add_capped(total, result->height[p]);
    return total;
}

bool plan_better(const PlanResult *a, const PlanResult *b) {
    if (a->status != b->status)
        return b->status == PLAN_FAILS || a->status == PLAN_FITS;
    return a->status == PLAN_FITS && total_height(a) < total_height(b);
}

void plan_keep(PlanResult *to, const PlanResult *from, uint32_t n_bufs) {
    PlanResult kept = *from;
    kept.pool = to->pool;
    kept.offset = to->offset;
    memcpy(kept.pool, from->pool, n_bufs * sizeof *kept.pool);
    memcpy(kept.offset, from->offset, n_bufs * sizeof *kept.offset);
    *to = kept;
}

/* Runs one row; `*result` and `*used` change if it is the first, or better. */
static void try_planner(const PlanProblem *problem, const Planner *planner,
                        PlanResult *result, const char **used) {
    Arena *scratch = arena_new("planner");
    PlanResult candidate = new_result(scratch, problem);
    candidate.bound = result->bound;
    planner->run(scratch, problem, &candidate);
    measure(problem, &candidate);
    if (candidate.status == PLAN_FITS) {
        const char *wrong = plan_check(scratch, problem, &candidate);
        if (wrong)
            bug("planner %s: %s", planner->name, wrong);
    }
    if (!*used || plan_better(&candidate, result)) {
        plan_keep(result, &candidate, problem->n_bufs);
        *used = planner->name;
    }
    if (candidate.bound > result->bound)
        result->bound = candidate.bound;
    result->proved = result->status == PLAN_FITS && problem->n_pools == 1 &&
                     result->height[0] == result->bound;
    arena_free(scratch);
}

static bool proves_infeasible(const PlanProblem *problem, PlanResult *result) {
    Arena *scratch = arena_new("planner bounds");
    result->bound = plan_live_peak(scratch, problem, NULL);
    result->failed = find_impossible(scratch, problem);
    bool infeasible = result->failed != PLAN_NO_BUF ||
                      too_much_alive(scratch, problem, result->bound);
    arena_free(scratch);
    if (!infeasible && problem->n_pools == 1) {
        uint64_t pin = highest_pin(problem);
        result->bound = pin > result->bound ? pin : result->bound;
    }
    return infeasible;
}

static void give_up(const PlanProblem *problem, PlanResult *result) {
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        result->pool[b] = -1;
    result->status = PLAN_INFEASIBLE;
}

void plan_memory(Arena *arena, const PlanProblem *problem, const char *planner,
                 bool best, PlanResult *result, const char **used) {
    assert(problem->n_pools <= PLAN_MAX_POOLS);
    *result = new_result(arena, problem);
    *used = NULL;
    bool all = !strcmp(planner, "auto");
    const Planner *row = all ? planners : planner_find(planner);
    if (!row)
        bug("no planner is called %s", planner);
    if (proves_infeasible(problem, result)) {
        give_up(problem, result);
        *used = row->name;
        return;
    }
    PlanProblem asked = *problem;
    asked.any_fit |= all && !best;
    const Planner *end = all ? planners + n_planners : row + 1;
    for (; row < end; row++) {
        if (all && !row->in_auto)
            continue;
        if (all && row->run == plan_exact && !problem->budget)
            asked.budget = AUTO_STEPS;
        try_planner(&asked, row, result, used);
        if (result->proved || (result->status == PLAN_FITS && !best))
            break;
    }
    if (result->status == PLAN_INFEASIBLE)
        give_up(problem, result);
}
