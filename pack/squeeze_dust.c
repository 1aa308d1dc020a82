/* squeeze_dust.c - what is squeezed: first without dust, then all.
 *
 * Input: a problem, and a placement or none. Output: the lowest that was found.
 * Of many buffers most are often so small that together they never take a
 * thousandth of the height, as biases and scalars beside activations. They get
 * a layer of their own at the bottom, which costs a little height and leaves a
 * problem of fewer buffers. With the steps that are left all are squeezed
 * together.
 */
#include "base/arith.h"
#include "pack/free_list.h"
#include "pack/packers.h"
#include "pack/squeeze.h"

#include <string.h>

enum {
    MOST_STEPS = 10000000, /* some seconds */
    STEPS_A_BUFFER = 1000,
    LOOKS_A_STEP = 100, /* at buffers in the way */
    DUST = 2000,       /* the part of the bound that dust may take */
    DUST_MANY = 8,     /* the part of the buffers that it must be */
    WHOLE_SHARE = 4    /* of the steps, after those without dust */
};

/* The smallest buffers, if they never need more than a small part of the bound
 * together. */
typedef struct Dust {
    uint64_t most;   /* bytes of each */
    uint64_t height; /* of all, where they lie by themselves */
} Dust;

/* Of the buffers of at most `most` bytes, or of the others. */
static PackProblem part_of(Arena *arena, const PackProblem *problem,
                           uint64_t most, bool large, uint32_t *index) {
    PackProblem part = *problem;
    Buffer *buf = ARENA_ARRAY(arena, Buffer, problem->n_bufs);
    part.n_bufs = 0;
    part.buf = buf;
    part.found = NULL;
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        if ((problem->buf[b].bytes[0] > most) == large) {
            index[part.n_bufs] = b;
            buf[part.n_bufs++] = problem->buf[b];
        }
    return part;
}

static uint64_t peak_of_dust(const PackProblem *problem, uint64_t most) {
    Arena *arena = arena_new("dust");
    uint32_t *index = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    PackProblem part = part_of(arena, problem, most, false, index);
    uint64_t peak = pack_live_peak(arena, &part, NULL);
    arena_free(arena);
    return peak;
}

/* The largest power of two that `bytes` may be. */
static uint64_t find_dust(const PackProblem *problem, uint64_t bound) {
    uint64_t most = 1;
    while (most < bound / DUST &&
           peak_of_dust(problem, 2 * most) < bound / DUST)
        most *= 2;
    return most;
}

/* What all offsets must be multiples of; 0 if it is too large. */
static uint64_t common_align(const PackProblem *problem) {
    Pool pool = problem->pool[0];
    for (uint32_t b = 0; b < problem->n_bufs && pool.align < UINT32_MAX; b++)
        pool.align = buf_align(&pool, &problem->buf[b]);
    return pool.align < UINT32_MAX ? pool.align : 0;
}

typedef struct Parts {
    PackProblem dust, large;
    uint32_t *dust_index, *large_index;
    uint64_t align;
} Parts;

static bool cut_dust(Arena *arena, const PackProblem *problem, uint64_t bound,
                     Parts *parts) {
    uint64_t most = find_dust(problem, bound);
    parts->align = common_align(problem);
    parts->dust_index = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    parts->dust = part_of(arena, problem, most, false, parts->dust_index);
    if (!parts->align || parts->dust.n_bufs < problem->n_bufs / DUST_MANY)
        return false;
    parts->large_index = ARENA_ARRAY(arena, uint32_t, problem->n_bufs);
    parts->large = part_of(arena, problem, most, true, parts->large_index);
    return true;
}

/* Dust at the bottom, in a layer of its own, and the others above it: these are
 * fewer. */
static uint64_t squeeze_parts(Arena *arena, const PackProblem *problem,
                              const Parts *parts, uint64_t goal, uint64_t looks,
                              PackResult *result) {
    uint32_t n = problem->n_bufs;
    PackResult part = {.pool = ARENA_ARRAY(arena, int32_t, n),
                       .offset = ARENA_ARRAY(arena, uint64_t, n)};
    PackResult whole = {.offset = ARENA_ARRAY(arena, uint64_t, n)};
    plan_large(arena, &parts->dust, &part);
    uint64_t dust_height =
        round_up(placed_height(&parts->dust, &part), parts->align);
    for (uint32_t i = 0; i < parts->dust.n_bufs; i++)
        whole.offset[parts->dust_index[i]] = part.offset[i];
    for (uint32_t i = 0; i < parts->large.n_bufs; i++)
        part.offset[i] = result->offset[parts->large_index[i]];
    uint64_t bound = pack_live_peak(arena, &parts->large, NULL);
    goal = goal > bound + dust_height ? goal - dust_height : bound;
    looks = squeeze_down(&parts->large, goal, looks, &part);
    for (uint32_t i = 0; i < parts->large.n_bufs; i++)
        whole.offset[parts->large_index[i]] = part.offset[i] + dust_height;
    if (placed_height(problem, &whole) < placed_height(problem, result)) {
        memcpy(result->offset, whole.offset, n * sizeof *whole.offset);
        pack_tell(problem, result);
    }
    return looks;
}

static uint64_t squeeze_large(const PackProblem *problem, uint64_t goal,
                              uint64_t looks, PackResult *result) {
    Arena *arena = arena_new("large");
    PackProblem asked = *problem;
    double now = pack_clock();
    Parts parts;
    uint64_t spent = 0;
    if (problem->deadline > now)
        asked.deadline -= (problem->deadline - now) / WHOLE_SHARE;
    looks -= looks / WHOLE_SHARE;
    if (cut_dust(arena, &asked, result->bound, &parts))
        spent = squeeze_parts(arena, &asked, &parts, goal, looks, result);
    arena_free(arena);
    return spent;
}

static bool applies(const PackProblem *problem) {
    bool may = problem->n_pools == 1 && !problem->n_relations;
    for (uint32_t b = 0; b < problem->n_bufs && may; b++)
        may = problem->buf[b].pin_pool < 0 &&
              buf_align(&problem->pool[0], &problem->buf[b]) < INT64_MAX / 4;
    return may;
}

/* Where nothing was found within the pool, one is found in a larger one, and
 * squeezed until it fits. */
static void squeeze_from(Arena *arena, const PackProblem *problem,
                         PackResult *result) {
    PackProblem roomy = *problem;
    uint64_t size = problem->pool[0].size;
    if (result->status != PACK_FITS) {
        roomy.pool[0].size = INT64_MAX / 4;
        roomy.found = NULL;
        plan_large(arena, &roomy, result);
    }
    if (result->status != PACK_FITS)
        return;
    uint64_t goal =
        problem->any_fit || roomy.pool[0].size != size ? size : result->bound;
    goal = goal > result->bound ? goal : result->bound;
    uint64_t steps = (uint64_t)STEPS_A_BUFFER * problem->n_bufs;
    uint64_t looks = INT64_MAX;
    steps = pack_steps(problem, steps < MOST_STEPS ? steps : MOST_STEPS);
    looks = steps < looks / LOOKS_A_STEP ? steps * LOOKS_A_STEP : looks;
    if (placed_height(problem, result) > goal)
        looks -= squeeze_large(&roomy, goal, looks, result);
    if (placed_height(problem, result) > goal)
        squeeze_down(&roomy, goal, looks, result);
    bool fits = placed_height(problem, result) <= size;
    result->status = fits ? PACK_FITS : PACK_FAILS;
    result->failed = PACK_NO_BUFFER;
    pack_measure(problem, result);
}

void pack_squeeze(const PackProblem *problem, PackResult *result) {
    Arena *arena = arena_new("squeeze");
    if (applies(problem))
        squeeze_from(arena, problem, result);
    arena_free(arena);
}

void plan_squeeze(Arena *arena, const PackProblem *problem,
                  PackResult *result) {
    plan_large(arena, problem, result);
    pack_squeeze(problem, result);
}
