/* random.c - orders drawn from the problem's seed, each buffer in its
 * lowest gap, until one fits; as many as the budget says.
 *
 * In one pool some order reaches the least height: that of the offsets in a
 * best placement. So drawing again and again finds it in the end, which tests
 * of other planners lean on.
 */
#include "base/rng.h"
#include "pack/free_list.h"
#include "pack/packers.h"

enum { DEFAULT_ORDERS = 8 };

static void place_in_order(Arena *scratch, const Placer *fresh, uint32_t n,
                           uint64_t seed, PackResult *result) {
    Placer *placer = placer_like(scratch, fresh, result);
    uint32_t *order = ARENA_ARRAY(scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)(rng_bits(seed, i) % (i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < n && result->status == PACK_FITS; i++)
        placer_put_lowest(placer, order[i]);
}

void plan_random(Arena *arena, const PackProblem *problem, PackResult *result) {
    uint64_t orders = problem->budget ? problem->budget : DEFAULT_ORDERS;
    Arena *scratch = arena_new("random orders");
    PackResult none = {.failed = PACK_NO_BUFFER,
                       .pool = ARENA_ARRAY(arena, int32_t, problem->n_bufs),
                       .offset = ARENA_ARRAY(arena, uint64_t, problem->n_bufs)};
    const Placer *fresh = placer_new(arena, problem, &none);
    for (uint64_t i = 0; i < orders && !pack_late(problem); i++) {
        arena_reset(scratch);
        place_in_order(scratch, fresh, problem->n_bufs,
                       rng_bits(problem->seed, i), result);
        if (result->status == PACK_FITS)
            break;
    }
    arena_free(scratch);
}
