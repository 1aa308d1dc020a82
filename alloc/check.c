/* check.c - the judge of planners; shares no code with them.
 *
 * Input: a problem and a result that claims to solve it. Output: NULL, or a
 * sentence about the first thing that is wrong. One sweep over time keeps the
 * living buffers sorted by place; as they never overlapped so far, a newcomer
 * needs to be compared with its two neighbours only.
 */
#include "alloc/planner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A placed buffer: a box in (pool, bytes, steps). */
typedef struct Box {
    uint32_t buf, pool, first, end;
    uint64_t low, high; /* bytes [low, high) */
} Box;

typedef struct Judge {
    Arena *arena;
    const PlanProblem *problem;
    const PlanResult *result;
} Judge;

static bool needs_place(const Judge *j, uint32_t buf) {
    for (uint32_t p = 0; p < j->problem->n_pools; p++)
        if (j->problem->buf[buf].bytes[p])
            return true;
    return false;
}

static const char *judge_pin(const Judge *j, uint32_t buf) {
    const Buf *b = &j->problem->buf[buf];
    bool moved = b->pin_pool >= 0 && (b->pin_pool != j->result->pool[buf] ||
                                      b->pin_offset != j->result->offset[buf]);
    if (!moved)
        return NULL;
    return arena_printf(j->arena,
                        "buffer %u is pinned to byte %" PRIu64
                        " of pool %d but lies at byte %" PRIu64 " of pool %d",
                        buf, b->pin_offset, b->pin_pool, j->result->offset[buf],
                        j->result->pool[buf]);
}

/* What one buffer's place must satisfy, the others aside. */
static const char *judge_alone(const Judge *j, uint32_t buf) {
    int32_t pool = j->result->pool[buf];
    uint64_t offset = j->result->offset[buf];
    if (pool < 0)
        return arena_printf(j->arena, "buffer %u has no place", buf);
    if ((uint32_t)pool >= j->problem->n_pools)
        return arena_printf(j->arena, "buffer %u lies in pool %d of %u", buf,
                            pool, j->problem->n_pools);
    uint64_t bytes = j->problem->buf[buf].bytes[pool];
    const Pool *in = &j->problem->pool[pool];
    if (!bytes)
        return arena_printf(j->arena, "buffer %u is not allowed in pool %d",
                            buf, pool);
    if (bytes > in->size || offset > in->size - bytes)
        return arena_printf(j->arena,
                            "buffer %u (%" PRIu64 " bytes at byte %" PRIu64
                            ") leaves pool %d of %" PRIu64 " bytes",
                            buf, bytes, offset, pool, in->size);
    uint64_t own = j->problem->buf[buf].align;
    if (offset % in->align || (own && offset % own))
        return arena_printf(j->arena,
                            "buffer %u at byte %" PRIu64 " of pool %d is not "
                            "a multiple of %" PRIu64,
                            buf, offset, pool,
                            offset % in->align ? in->align : own);
    return judge_pin(j, buf);
}

static int compare_births(const void *a, const void *b) {
    const Box *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static const char *collision(const Judge *j, const Box *a, const Box *b) {
    uint64_t low = a->low > b->low ? a->low : b->low;
    uint64_t high = a->high < b->high ? a->high : b->high;
    uint32_t first = a->first > b->first ? a->first : b->first;
    uint32_t end = a->end < b->end ? a->end : b->end;
    bool ordered = a->buf < b->buf;
    return arena_printf(j->arena,
                        "buffers %u and %u share bytes %" PRIu64 " to %" PRIu64
                        " of pool %u in steps %u to %u",
                        ordered ? a->buf : b->buf, ordered ? b->buf : a->buf,
                        low, high - 1, a->pool, first, end - 1);
}

/* Buffers alive now, by pool and place. */
typedef struct Alive {
    Box *box;
    uint32_t n;
} Alive;

static void bury(Alive *alive, uint32_t step) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < alive->n; i++)
        if (alive->box[i].end > step)
            alive->box[kept++] = alive->box[i];
    alive->n = kept;
}

static bool is_below(const Box *a, const Box *b) {
    return a->pool != b->pool ? a->pool < b->pool : a->low < b->low;
}

static bool overlap(const Box *low, const Box *high) {
    return low->pool == high->pool && high->low < low->high;
}

static const char *admit(const Judge *j, Alive *alive, const Box *box) {
    uint32_t at = 0, above = alive->n;
    while (at < above) {
        uint32_t middle = at + (above - at) / 2;
        if (is_below(&alive->box[middle], box))
            at = middle + 1;
        else
            above = middle;
    }
    if (at > 0 && overlap(&alive->box[at - 1], box))
        return collision(j, &alive->box[at - 1], box);
    if (at < alive->n && overlap(box, &alive->box[at]))
        return collision(j, box, &alive->box[at]);
    memmove(alive->box + at + 1, alive->box + at,
            (alive->n - at) * sizeof *alive->box);
    alive->box[at] = *box;
    alive->n++;
    return NULL;
}

static const char *judge_together(const Judge *j, Box *box, uint32_t n) {
    Alive alive = {ARENA_ARRAY(j->arena, Box, n), 0};
    if (n)
        qsort(box, n, sizeof *box, compare_births);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || box[i].first != box[i - 1].first)
            bury(&alive, box[i].first);
        const char *wrong = admit(j, &alive, &box[i]);
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *plan_check(Arena *arena, const PlanProblem *problem,
                       const PlanResult *result) {
    Judge judge = {arena, problem, result};
    Box *box = ARENA_ARRAY(arena, Box, problem->n_bufs);
    uint32_t n = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buf *buf = &problem->buf[b];
        if (!needs_place(&judge, b))
            continue;
        const char *wrong = judge_alone(&judge, b);
        if (wrong)
            return wrong;
        if (buf->first >= buf->end)
            continue;
        uint64_t low = result->offset[b];
        uint32_t pool = (uint32_t)result->pool[b];
        box[n++] =
            (Box){b, pool, buf->first, buf->end, low, low + buf->bytes[pool]};
    }
    return judge_together(&judge, box, n);
}
