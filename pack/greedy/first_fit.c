/* first_fit.c - in the order of birth, each in its lowest gap (as
 * TinyEngine lays out the tensors of a network for microcontrollers).
 *
 * Born together: larger first, then by id.
 */
#include "pack/free_list.h"
#include "pack/packers.h"

#include "base/order.h"

#include <stdlib.h>

typedef struct Key {
    uint64_t bytes;
    uint32_t first, buf;
} Key;

static int oldest_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by3(ORDER_UP(x->first, y->first),
                     ORDER_DOWN(x->bytes, y->bytes), ORDER_UP(x->buf, y->buf));
}

void plan_first_fit(Arena *arena, const PackProblem *problem,
                    PackResult *result) {
    Placer *placer = placer_new_by_birth(arena, problem, result);
    Key *key = ARENA_ARRAY(arena, Key, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        key[b] = (Key){buf_bytes(problem, b), problem->buf[b].first, b};
    if (problem->n_bufs)
        qsort(key, problem->n_bufs, sizeof *key, oldest_first);
    for (uint32_t i = 0; i < problem->n_bufs; i++) {
        if (i > 0 && key[i].first != key[i - 1].first)
            placer_retire(placer, key[i].first);
        placer_put_lowest(placer, key[i].buf);
    }
}
