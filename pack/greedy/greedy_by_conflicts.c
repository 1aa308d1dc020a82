/* greedy_by_conflicts.c - what conflicts with most others first, each
 * in its lowest gap (TVM's unified static memory planner has such an order).
 *
 * Equal numbers: larger first, then by id. A buffer conflicts with all but
 * those dead before its birth and those born after its death, and both are
 * counted in sorted lists.
 */
#include "pack/free_list.h"
#include "pack/packers.h"

#include "base/order.h"

#include <stdlib.h>

typedef struct Key {
    uint64_t bytes;
    uint32_t conflicts, buf;
} Key;

static int most_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by3(ORDER_DOWN(x->conflicts, y->conflicts),
                     ORDER_DOWN(x->bytes, y->bytes), ORDER_UP(x->buf, y->buf));
}

static int by_step(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;
    return ORDER_UP(*x, *y);
}

/* How many of the sorted steps are less than `step`. */
static uint32_t count_below(const uint32_t *steps, uint32_t n, uint32_t step) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (steps[middle] < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t *pack_conflicts(Arena *arena, const PackProblem *problem) {
    uint32_t n = 0;
    uint32_t *conflicts = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    uint32_t *first = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    uint32_t *end = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        if (problem->buf[b].first < problem->buf[b].end) {
            first[n] = problem->buf[b].first;
            end[n++] = problem->buf[b].end;
        }
    if (n) {
        qsort(first, n, sizeof *first, by_step);
        qsort(end, n, sizeof *end, by_step);
    }
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        if (buf->first < buf->end)
            conflicts[b] = count_below(first, n, buf->end) -
                           count_below(end, n, buf->first + 1) - 1;
    }
    return conflicts;
}

void plan_greedy_by_conflicts(Arena *arena, const PackProblem *problem,
                              PackResult *result) {
    Placer *placer = placer_new(arena, problem, result);
    Key *key = ARENA_ARRAY(arena, Key, problem->n_bufs);
    const uint32_t *conflicts = pack_conflicts(arena, problem);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        key[b] = (Key){buf_bytes(problem, b), conflicts[b], b};
    if (problem->n_bufs)
        qsort(key, problem->n_bufs, sizeof *key, most_first);
    for (uint32_t i = 0; i < problem->n_bufs; i++)
        placer_put_lowest(placer, key[i].buf);
}
