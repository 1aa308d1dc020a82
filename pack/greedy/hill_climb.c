/* hill_climb.c - greedy by size, then swaps in its order (the idea of
 * the third planner of TVM's unified static memory planner).
 *
 * Each attempt takes a buffer that ends at the top of the placement, swaps its
 * turn with that of a buffer which conflicts with it or with one of its
 * conflicts and had its turn earlier, and places all again. What is no worse is
 * kept; what is worse is kept with a chance that falls from one in two to
 * nothing. Stops at the bound.
 */
#include "base/order.h"
#include "base/rng.h"
#include "pack/free_list.h"
#include "pack/packers.h"

#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 500, MAX_WORK = 100000000 };

typedef struct Climb {
    const PackProblem *problem;
    uint32_t *order, *turn; /* inverse of each other */
    uint32_t *suspect;
    PackResult *now;
    uint64_t height;
    uint64_t drawn;
} Climb;

static uint32_t draw(Climb *c, uint32_t below) {
    return (uint32_t)(rng_bits(c->problem->seed, c->drawn++) % below);
}

static uint64_t top_of(const Climb *c, uint32_t b) {
    int32_t pool = c->now->pool[b];
    if (pool < 0)
        return UINT64_MAX; /* nothing is higher than no place at all */
    uint64_t bytes = c->problem->buf[b].bytes[pool];
    return bytes ? c->now->offset[b] + bytes : 0;
}

static void place_all(Climb *c) {
    Arena *scratch = arena_new("hill climb");
    Placer *placer = placer_new(scratch, c->problem, c->now);
    c->height = 0;
    for (uint32_t i = 0; i < c->problem->n_bufs; i++)
        placer_put_lowest(placer, c->order[i]);
    for (uint32_t b = 0; b < c->problem->n_bufs; b++) {
        uint64_t top = top_of(c, b);
        c->height = top > c->height ? top : c->height;
    }
    arena_free(scratch);
}

static void swap_turns(Climb *c, uint32_t a, uint32_t b) {
    uint32_t at = c->turn[a];
    c->order[c->turn[b]] = a;
    c->order[at] = b;
    c->turn[a] = c->turn[b];
    c->turn[b] = at;
}

/* One of the buffers that make the height. */
static uint32_t draw_top(Climb *c) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < c->problem->n_bufs; b++)
        if (top_of(c, b) == c->height)
            c->suspect[n++] = b;
    return c->suspect[draw(c, n)];
}

/* A buffer that conflicts with `with` and comes before `latest`; else
 * PLAN_NO_BUF. */
static uint32_t draw_earlier(Climb *c, uint32_t with, uint32_t latest) {
    const Buffer *buf = c->problem->buf;
    uint32_t n = 0;
    for (uint32_t b = 0; b < c->problem->n_bufs; b++)
        if (c->turn[b] < c->turn[latest] && b != with &&
            bufs_conflict(&buf[b], &buf[with]))
            c->suspect[n++] = b;
    return n ? c->suspect[draw(c, n)] : PACK_NO_BUFFER;
}

static void keep(PackResult *best, const PackResult *now, uint32_t n) {
    best->status = now->status;
    best->failed = now->failed;
    memcpy(best->pool, now->pool, n * sizeof *best->pool);
    memcpy(best->offset, now->offset, n * sizeof *best->offset);
}

/* True if the swap stays. `calm` goes from 0 to 100. */
static bool attempt(Climb *c, uint32_t calm) {
    uint64_t before = c->height;
    uint32_t top = draw_top(c), other = draw_earlier(c, top, top);
    if (other != PACK_NO_BUFFER && draw(c, 2)) {
        uint32_t further = draw_earlier(c, other, top);
        other = further == PACK_NO_BUFFER ? other : further;
    }
    if (other == PACK_NO_BUFFER)
        return false;
    swap_turns(c, top, other);
    place_all(c);
    if (c->height <= before || draw(c, 200) < 100 - calm)
        return true;
    swap_turns(c, top, other);
    place_all(c);
    return false;
}

static int largest_first(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return order_by(ORDER_DOWN(x[0], y[0]), ORDER_UP(x[1], y[1]));
}

/* Largest first. */
static void first_order(Arena *arena, Climb *c) {
    uint32_t n = c->problem->n_bufs;
    uint64_t(*key)[2] = arena_calloc(arena, n, sizeof *key, 8);
    for (uint32_t b = 0; b < n; b++) {
        key[b][0] = buf_bytes(c->problem, b);
        key[b][1] = b;
    }
    qsort(key, n, sizeof *key, largest_first);
    for (uint32_t i = 0; i < n; i++) {
        c->order[i] = (uint32_t)key[i][1];
        c->turn[key[i][1]] = i;
    }
}

/* An attempt costs up to the square of the number of buffers. */
static uint32_t attempts_for(const PackProblem *problem) {
    uint64_t n = problem->n_bufs, most = problem->budget;
    if (!most) {
        most = MAX_WORK / (n * n);
        most = most < ATTEMPTS ? most : ATTEMPTS;
    }
    return most < 1000000 ? (uint32_t)most : 1000000;
}

void plan_hill_climb(Arena *arena, const PackProblem *problem,
                     PackResult *result) {
    uint32_t n = problem->n_bufs;
    PackResult now = {.pool = ARENA_ARRAY(arena, int32_t, n),
                      .offset = ARENA_ARRAY(arena, uint64_t, n),
                      .failed = PACK_NO_BUFFER};
    Climb c = {.problem = problem, .now = &now};
    c.order = ARENA_ARRAY(arena, uint32_t, n);
    c.turn = ARENA_ARRAY(arena, uint32_t, n);
    c.suspect = ARENA_ARRAY(arena, uint32_t, n);
    if (n)
        first_order(arena, &c);
    place_all(&c);
    keep(result, &now, n);
    uint64_t best = c.height;
    uint32_t attempts = n ? attempts_for(problem) : 0;
    for (uint32_t i = 0;
         i < attempts && best > result->bound && !pack_late(problem); i++) {
        if (!attempt(&c, i * 100 / attempts) || c.height >= best)
            continue;
        best = c.height;
        keep(result, &now, n);
    }
}
