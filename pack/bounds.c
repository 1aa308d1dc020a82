/* bounds.c - what can be said of a problem before anything is placed:
 * the most bytes that one step needs, the least cost, and whether nothing fits.
 *
 * Input: a problem. Output: bounds that hold for every placement.
 */
#include "base/arith.h"
#include "base/order.h"
#include "pack/free_list.h"
#include "pack/packers.h"

#include <assert.h>
#include <stdlib.h>

uint64_t buf_align(const Pool *pool, const Buffer *buf) {
    uint64_t a = pool->align, b = buf->align ? buf->align : 1;
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    uint64_t times = buf->align ? buf->align / a : 1;
    return times > UINT64_MAX / pool->align ? UINT64_MAX : pool->align * times;
}

/* A step at which `bytes` come to life (or die, if `dies`). */
typedef struct Event {
    uint32_t step;
    bool dies;
    uint64_t bytes;
} Event;

static int by_step(const void *a, const void *b) {
    const Event *x = a, *y = b;
    /* half-open: deaths first */
    return order_by(ORDER_UP(x->step, y->step), ORDER_DOWN(x->dies, y->dies));
}

/* True if `pool` is the only one that allows the buffer. */
static bool only_in(const PackProblem *problem, uint32_t buf, uint32_t pool) {
    for (uint32_t p = 0; p < problem->n_pools; p++)
        if (!problem->buf[buf].bytes[p] != (p != pool))
            return false;
    return true;
}

static bool counts(const PackProblem *problem, uint32_t b, int32_t pool) {
    const Buffer *buf = &problem->buf[b];
    return (pool < 0 || only_in(problem, b, (uint32_t)pool)) &&
           buf->first < buf->end;
}

/* Where steps are few, sums for each of them take less time than sorting. */
static uint64_t peak_of_steps(Arena *arena, const PackProblem *problem,
                              int32_t pool, uint32_t end, uint32_t *at) {
    uint64_t *born = ARENA_ARRAY(arena, uint64_t, (size_t)end + 1);
    uint64_t *dies = ARENA_ARRAY(arena, uint64_t, (size_t)end + 1);
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        if (!counts(problem, b, pool))
            continue;
        uint64_t bytes = buf_bytes(problem, b);
        born[buf->first] = add_capped(born[buf->first], bytes);
        dies[buf->end] = add_capped(dies[buf->end], bytes);
    }
    uint64_t live = 0, peak = 0;
    for (uint32_t t = 0; t <= end && peak < UINT64_MAX; t++) {
        live = add_capped(live - dies[t], born[t]);
        if (live <= peak)
            continue;
        peak = live;
        if (at)
            *at = t;
    }
    return peak;
}

/* The end of the last life. */
static uint32_t last_end(const PackProblem *problem) {
    uint32_t end = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        end = problem->buf[b].end > end ? problem->buf[b].end : end;
    return end;
}

/* Live peak of all buffers, or of those that only `pool` (>= 0) allows;
 * UINT64_MAX if it does not fit 64 bits. */
static uint64_t live_peak(Arena *arena, const PackProblem *problem,
                          int32_t pool, uint32_t *at) {
    enum { FEW = 4096 };
    if (!problem_is_plain(problem))
        return bundles_live_peak(arena, bundles_new(arena, problem), pool, at);
    uint32_t n = 0, end = last_end(problem);
    if (end <= FEW)
        return peak_of_steps(arena, problem, pool, end, at);
    Event *event = ARENA_ARRAY(arena, Event, 2 * (size_t)problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        uint64_t bytes = buf_bytes(problem, b);
        if (!counts(problem, b, pool))
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

uint64_t pack_live_peak(Arena *arena, const PackProblem *problem,
                        uint32_t *at) {
    if (at)
        *at = 0;
    return live_peak(arena, problem, -1, at);
}

/* True if the buffer, alone, has a place: at its pin, or in some pool. */
static bool fits_alone(const PackProblem *problem, const Buffer *buf) {
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

static bool pins_collide(const Buffer *a, const Buffer *b) {
    return a->pin_pool == b->pin_pool && bufs_conflict(a, b) &&
           a->pin_offset < b->pin_offset + b->bytes[b->pin_pool] &&
           b->pin_offset < a->pin_offset + a->bytes[a->pin_pool];
}

/* A buffer that has no place whatever the others do, or whose pin collides
 * with an earlier pin; PLAN_NO_BUF if there is none. */
static uint32_t find_impossible(Arena *arena, const PackProblem *problem) {
    uint32_t *pinned = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    uint32_t n_pinned = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
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
    return PACK_NO_BUFFER;
}

/* True if the volumes alive at one step cannot fit, however they are placed:
 * in all pools together, or in one pool those that have no other. */
static bool too_much_alive(Arena *arena, const PackProblem *problem,
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

static uint64_t highest_pin(const PackProblem *problem) {
    uint64_t highest = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        if (buf->pin_pool < 0 || !buf_bytes(problem, b))
            continue;
        uint64_t end = buf->pin_offset + buf->bytes[buf->pin_pool];
        highest = end > highest ? end : highest;
    }
    return highest;
}

/* Whether the bundle has a place, alone: at its pin, or in some pool. */
static bool bundle_fits_alone(const Clusters *bundles, const Cluster *bundle) {
    for (uint32_t p = 0; p < bundles->problem->n_pools; p++) {
        bool pinned = bundle->pin_pool >= 0;
        if ((pinned && (uint32_t)bundle->pin_pool != p) ||
            !(bundle->pools >> p & 1))
            continue;
        uint64_t size = bundles->problem->pool[p].size;
        uint64_t bytes = (uint64_t)bundle_bytes(bundles, bundle, p);
        int64_t at = bundle_up(bundles, bundle, p, pinned ? bundle->pin : 0);
        if (at >= 0 && (!pinned || at == bundle->pin) && (uint64_t)at <= size &&
            bytes <= size - (uint64_t)at)
            return true;
    }
    return false;
}

static uint32_t find_impossible_bundle(Arena *arena,
                                       const PackProblem *problem) {
    const Clusters *bundles = bundles_new(arena, problem);
    if (bundles->contradicted != PACK_NO_BUFFER)
        return bundles->contradicted;
    for (uint32_t i = 0; i < bundles->n; i++) {
        const Cluster *bundle = &bundles->bundle[i];
        if (!bundle_fits_alone(bundles, bundle))
            return bundle->root;
        for (uint32_t k = 0; k < i && bundle->pin_pool >= 0; k++) {
            const Cluster *other = &bundles->bundle[k];
            if (other->pin_pool == bundle->pin_pool &&
                bundles_collide(bundles, (uint32_t)bundle->pin_pool, bundle,
                                bundle->pin, other, other->pin))
                return bundle->root;
        }
    }
    return PACK_NO_BUFFER;
}

bool *pack_insides(Arena *arena, const PackProblem *problem) {
    if (!problem->n_relations)
        return NULL;
    bool *inside = ARENA_ARRAY(arena, bool, problem->n_bufs);
    for (uint32_t i = 0; i < problem->n_relations; i++)
        if (problem->relation[i].kind == REL_INSIDE)
            inside[problem->relation[i].a] = true;
    return inside;
}

static uint64_t least_cost(Arena *arena, const PackProblem *problem) {
    const bool *inside = pack_insides(arena, problem);
    uint64_t sum = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        uint64_t least = UINT64_MAX;
        for (uint32_t p = 0; p < problem->n_pools; p++)
            if (problem->buf[b].bytes[p] && place_cost(problem, b, p) < least)
                least = place_cost(problem, b, p);
        if (buf_bytes(problem, b) && !(inside && inside[b]))
            sum = add_capped(sum, least);
    }
    return sum;
}

bool pack_refuted(const PackProblem *problem, PackResult *result) {
    Arena *scratch = arena_new("planner bounds");
    bool plain = problem_is_plain(problem);
    result->failed = plain ? find_impossible(scratch, problem)
                           : find_impossible_bundle(scratch, problem);
    bool infeasible = result->failed != PACK_NO_BUFFER;
    /* impossible relations may go round in circles: no peak of these */
    if (!infeasible || !problem->n_relations) {
        result->bound = pack_live_peak(scratch, problem, NULL);
        infeasible |= too_much_alive(scratch, problem, result->bound);
        result->cost_bound = least_cost(scratch, problem);
    }
    arena_free(scratch);
    if (!infeasible && problem->n_pools == 1) {
        uint64_t pin = highest_pin(problem);
        result->bound = pin > result->bound ? pin : result->bound;
    }
    return infeasible;
}
