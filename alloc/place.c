/* place.c - free gaps for one buffer at a time; see place.h. */
#include "alloc/place.h"

#include "base/vec.h"

#include <string.h>

/* Lives stand here, too: a walk reads every entry, and little of most. */
typedef struct Taken {
    uint64_t at, end;     /* bytes */
    uint32_t first, last; /* steps: half-open */
    uint32_t buf;
} Taken;

typedef VEC(Taken) TakenList;

struct Placer {
    Arena *arena;
    const PlanProblem *problem;
    PlanResult *result;
    TakenList taken[PLAN_MAX_POOLS]; /* sorted by `at`, then `buf` */
    VEC(Gap) gap;                    /* of the latest walk */
};

uint64_t buf_bytes(const PlanProblem *problem, uint32_t buf) {
    uint64_t least = 0;
    for (uint32_t p = 0; p < problem->n_pools; p++) {
        uint64_t bytes = problem->buf[buf].bytes[p];
        if (bytes && (!least || bytes < least))
            least = bytes;
    }
    return least;
}

static bool sorts_before(const Taken *a, const Taken *b) {
    return a->at != b->at ? a->at < b->at : a->buf < b->buf;
}

static void take(Placer *placer, uint32_t buf, uint32_t pool, uint64_t offset) {
    TakenList *list = &placer->taken[pool];
    const Buf *b = &placer->problem->buf[buf];
    Taken taken = {offset, offset + b->bytes[pool], b->first, b->end, buf};
    placer->result->pool[buf] = (int32_t)pool;
    placer->result->offset[buf] = offset;
    if (b->first >= b->end)
        return; /* never alive, in nobody's way */
    uint32_t low = 0, high = list->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sorts_before(&list->at[middle], &taken))
            low = middle + 1;
        else
            high = middle;
    }
    vec_push(placer->arena, list, taken);
    memmove(list->at + low + 1, list->at + low,
            (list->n - 1 - low) * sizeof *list->at);
    list->at[low] = taken;
}

Placer *placer_new(Arena *arena, const PlanProblem *problem,
                   PlanResult *result) {
    Placer *placer = ARENA_NEW(arena, Placer);
    *placer = (Placer){.arena = arena, .problem = problem, .result = result};
    result->status = PLAN_FITS;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buf *buf = &problem->buf[b];
        bool somewhere = buf_bytes(problem, b);
        result->pool[b] = somewhere ? -1 : 0;
        result->offset[b] = 0;
        if (somewhere && buf->pin_pool >= 0)
            take(placer, b, (uint32_t)buf->pin_pool, buf->pin_offset);
    }
    return placer;
}

/* A walk over the gaps of one pool, from low to high. */
typedef struct Walk {
    const TakenList *list;
    const Buf *buf;
    uint64_t bytes, align, size;
    uint32_t next;
    uint64_t floor; /* all below is taken, or was offered */
} Walk;

static Walk walk_gaps(const Placer *placer, uint32_t buf, uint32_t pool) {
    const PlanProblem *problem = placer->problem;
    const Buf *b = &problem->buf[buf];
    return (Walk){.list = &placer->taken[pool],
                  .buf = b,
                  .next = b->first < b->end ? 0 : placer->taken[pool].n,
                  .bytes = b->bytes[pool],
                  .align = buf_align(&problem->pool[pool], b),
                  .size = problem->pool[pool].size};
}

static bool fits(const Walk *walk, uint64_t ceiling, Gap *gap) {
    uint64_t over = walk->floor % walk->align;
    uint64_t pad = over ? walk->align - over : 0;
    if (ceiling < walk->floor || ceiling - walk->floor < pad ||
        ceiling - walk->floor - pad < walk->bytes)
        return false;
    *gap = (Gap){walk->floor + pad, ceiling};
    return true;
}

/* The next gap that fits; false at the end of the pool. */
static bool next_gap(Walk *walk, Gap *gap) {
    while (walk->next < walk->list->n) {
        const Taken *taken = &walk->list->at[walk->next++];
        if (taken->first >= walk->buf->end || walk->buf->first >= taken->last)
            continue;
        bool found = fits(walk, taken->at, gap);
        if (taken->end > walk->floor)
            walk->floor = taken->end;
        if (found)
            return true;
    }
    bool found = walk->next == walk->list->n && fits(walk, walk->size, gap);
    walk->next = walk->list->n + 1; /* the last gap is offered once */
    return found;
}

/* All gaps, from low to high; stops early where a `hint` is free, and then
 * gives that one alone. */
static Gaps list_gaps(Placer *placer, uint32_t buf, uint32_t pool) {
    Walk walk = walk_gaps(placer, buf, pool);
    uint64_t hint = walk.buf->hint;
    bool hinted = hint != PLAN_NO_HINT && hint % walk.align == 0;
    Gap gap;
    placer->gap.n = 0;
    while (next_gap(&walk, &gap)) {
        if (hinted && gap.at <= hint && hint < gap.end &&
            gap.end - hint >= walk.bytes) {
            placer->gap.n = 0;
            gap = (Gap){hint, hint + walk.bytes};
            walk.next = walk.list->n + 1;
        }
        vec_push(placer->arena, &placer->gap, gap);
    }
    return (Gaps){buf, placer->gap.n, placer->gap.at, walk.bytes, walk.align};
}

static void no_place(Placer *placer, uint32_t buf) {
    if (placer->result->status == PLAN_FITS)
        placer->result->failed = buf;
    placer->result->status = PLAN_FAILS;
}

void placer_put(Placer *placer, uint32_t buf, ChooseFn *choose,
                const void *context) {
    if (placer->result->pool[buf] >= 0)
        return;
    for (uint32_t p = 0; p < placer->problem->n_pools; p++) {
        if (!placer->problem->buf[buf].bytes[p])
            continue;
        Gaps gaps = list_gaps(placer, buf, p);
        if (gaps.n) {
            take(placer, buf, p, choose(context, &gaps));
            return;
        }
    }
    no_place(placer, buf);
}

static uint64_t lowest(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[0].at;
}

void placer_put_lowest(Placer *placer, uint32_t buf) {
    const Buf *b = &placer->problem->buf[buf];
    if (placer->result->pool[buf] >= 0)
        return;
    if (b->hint != PLAN_NO_HINT) {
        placer_put(placer, buf, lowest, NULL);
        return;
    }
    for (uint32_t p = 0; p < placer->problem->n_pools; p++) {
        Walk walk = walk_gaps(placer, buf, p);
        Gap gap;
        if (b->bytes[p] && next_gap(&walk, &gap)) {
            take(placer, buf, p, gap.at);
            return;
        }
    }
    no_place(placer, buf);
}

void placer_retire(Placer *placer, uint32_t step) {
    for (uint32_t p = 0; p < placer->problem->n_pools; p++) {
        TakenList *list = &placer->taken[p];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < list->n; i++)
            if (list->at[i].last > step)
                list->at[kept++] = list->at[i];
        list->n = kept;
    }
}

uint64_t placed_height(const PlanProblem *problem, const PlanResult *r) {
    uint64_t height = 0;
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        uint64_t end = r->offset[b] + problem->buf[b].bytes[0];
        height = end > height ? end : height;
    }
    return height;
}
