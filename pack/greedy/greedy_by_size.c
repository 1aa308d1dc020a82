/* greedy_by_size.c - largest first, each in its lowest gap.
 *
 * Equal sizes: longest life first, then by id. A buffer with different sizes in
 * different pools counts as its least.
 */
#include "pack/free_list.h"
#include "pack/packers.h"

#include "base/order.h"

#include <stdlib.h>

typedef struct Key {
    uint64_t bytes;
    uint32_t life, buf;
} Key;

static int largest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by3(ORDER_DOWN(x->bytes, y->bytes),
                     ORDER_DOWN(x->life, y->life), ORDER_UP(x->buf, y->buf));
}

void plan_greedy_by_size(Arena *arena, const PackProblem *problem,
                         PackResult *result) {
    Placer *placer = placer_new(arena, problem, result);
    Key *key = ARENA_ARRAY(arena, Key, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++) {
        const Buffer *buf = &problem->buf[b];
        uint32_t life = buf->end > buf->first ? buf->end - buf->first : 0;
        key[b] = (Key){buf_bytes(problem, b), life, b};
    }
    if (problem->n_bufs)
        qsort(key, problem->n_bufs, sizeof *key, largest_first);
    for (uint32_t i = 0; i < problem->n_bufs; i++)
        placer_put_lowest(placer, key[i].buf);
}
