/* layers.c - layers of like sizes, largest first; in each layer those
 * alive at the peak, then outwards in time; each in its lowest gap.
 *
 * Large buffers cannot use the holes between others, small ones can: so sizes
 * come first. Within a layer sizes are alike enough for one to take another's
 * place, and as time goes on without jumps, each finds the place of one that
 * just died; by size alone it would find ragged ends on both sides. The peak is
 * where no byte may be wasted: no time is filled before it.
 */
#include "pack/free_list.h"
#include "pack/packers.h"

#include "base/order.h"

#include <math.h>
#include <stdlib.h>

typedef struct Key {
    int layer;
    uint32_t away; /* steps from the peak */
    uint32_t buf;
} Key;

/* Two for each doubling of the size. */
static int layer_of(uint64_t bytes) {
    int exponent;
    double part = frexp((double)bytes, &exponent);
    return 2 * exponent + (part >= sqrt(0.5));
}

static uint32_t away_from(const Buffer *buf, uint32_t peak) {
    if (buf->first > peak)
        return buf->first - peak;
    return buf->end <= peak ? peak - buf->end + 1 : 0;
}

static int in_turn(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by3(ORDER_DOWN(x->layer, y->layer), ORDER_UP(x->away, y->away),
                     ORDER_UP(x->buf, y->buf));
}

void pack_layers_within(Arena *arena, const PackProblem *problem,
                        uint64_t steps, PackResult *result) {
    uint32_t peak;
    pack_live_peak(arena, problem, &peak);
    Placer *placer = placer_new(arena, problem, result);
    Key *key = ARENA_ARRAY(arena, Key, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        key[b] = (Key){layer_of(buf_bytes(problem, b)),
                       away_from(&problem->buf[b], peak), b};
    if (problem->n_bufs)
        qsort(key, problem->n_bufs, sizeof *key, in_turn);
    for (uint32_t i = 0; i < problem->n_bufs && result->status == PACK_FITS;
         i++) {
        placer_put_lowest(placer, key[i].buf);
        if (placer_steps(placer) > steps)
            result->status = PACK_FAILS;
    }
}

void plan_layers(Arena *arena, const PackProblem *problem, PackResult *result) {
    pack_layers_within(arena, problem, UINT64_MAX, result);
}
