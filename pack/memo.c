/* memo.c - placements that were asked for before.
 *
 * As plan_memory, whose answer depends on the question alone: of buffers
 * without relations each question is answered once.
 */
#include "pack/memo.h"

typedef struct Placed {
    PackResult result; /* without arrays */
    const char *used;
    uint64_t *offset;
    int32_t *pool;
} Placed;

static void print_pool(Print *p, const Pool *pool) {
    print_add(p, pool->size);
    print_add(p, pool->align);
    print_add(p, pool->partition);
    print_add(p, pool->cost);
}

static void print_buf(Print *p, const Buffer *buf, uint32_t n_pools) {
    print_add(p, (uint64_t)buf->first << 32 | buf->end);
    print_add(p, (uint64_t)buf->n_gaps << 32 | (uint32_t)buf->pin_pool);
    print_add(p, buf->pin_offset);
    print_add(p, buf->hint);
    print_add(p, buf->align);
    for (uint32_t i = 0; i < n_pools; i++)
        print_add(p, buf->bytes[i]);
    for (uint32_t i = 0; i < buf->n_gaps; i++)
        print_add(p, (uint64_t)buf->gap[i].first << 32 | buf->gap[i].end);
}

static Print print_of(const PackProblem *problem, const char *planner,
                      bool best) {
    Print p = {problem->n_bufs, problem->n_pools};
    print_add_text(&p, planner);
    print_add(&p, (uint64_t)best << 1 | problem->any_fit);
    print_add(&p, problem->seed);
    print_add(&p, problem->budget);
    for (uint32_t i = 0; i < problem->n_pools; i++)
        print_pool(&p, &problem->pool[i]);
    for (uint32_t i = 0; i < problem->n_bufs; i++)
        print_buf(&p, &problem->buf[i], problem->n_pools);
    return p;
}

static void keep(MemoTable *memo_table, Print print, uint32_t n,
                 const PackResult *result, const char *used) {
    Placed *own = memo_insert(memo_table, print, sizeof *own);
    if (!own)
        return;
    *own = (Placed){*result, used, NULL, NULL};
    own->offset =
        ARENA_COPY(recall_arena(memo_table), uint64_t, result->offset, n);
    own->pool = ARENA_COPY(recall_arena(memo_table), int32_t, result->pool, n);
}

void placed_once(MemoTable *memo_table, Arena *arena,
                 const PackProblem *problem, const char *planner, bool best,
                 PackResult *result, const char **used) {
    if (problem->n_relations) {
        pack_memory(arena, problem, planner, best, result, used);
        return;
    }
    Print print = print_of(problem, planner, best);
    const Placed *known = memo_find(memo_table, print);
    uint32_t n = problem->n_bufs;
    if (!known) {
        pack_memory(arena, problem, planner, best, result, used);
        keep(memo_table, print, n, result, *used);
        return;
    }
    *result = known->result;
    result->offset = ARENA_COPY(arena, uint64_t, known->offset, n);
    result->pool = ARENA_COPY(arena, int32_t, known->pool, n);
    *used = known->used;
}
