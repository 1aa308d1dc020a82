/* online.c - the engine under the online strategies; see online.h. */
#include "pack/greedy/online.h"

#include "base/order.h"
#include "base/vec.h"

#include <stdlib.h>

typedef struct Life {
    uint32_t first, end, buf;
} Life;

static int by_first(const void *a, const void *b) {
    const Life *x = a, *y = b;
    return order_by(ORDER_UP(x->first, y->first), ORDER_UP(x->buf, y->buf));
}

static int by_end(const void *a, const void *b) {
    const Life *x = a, *y = b;
    return order_by(ORDER_UP(x->end, y->end), ORDER_UP(x->buf, y->buf));
}

static Life *lives(Arena *arena, const PackProblem *problem,
                   int (*order)(const void *, const void *)) {
    Life *life = ARENA_ARRAY(arena, Life, problem->n_bufs);
    for (uint32_t b = 0; b < problem->n_bufs; b++)
        life[b] = (Life){problem->buf[b].first, problem->buf[b].end, b};
    if (problem->n_bufs)
        qsort(life, problem->n_bufs, sizeof *life, order);
    return life;
}

/* Bytes alive just after the births of each step that has some. Unsigned sums
 * may wrap on absurd sizes; then a strategy's choice is odd but still sound. */
static void profile(Arena *arena, Online *online, const Life *born) {
    const PackProblem *problem = online->problem;
    const Life *dead = lives(arena, problem, by_end);
    uint64_t *live = ARENA_ARRAY(arena, uint64_t, problem->n_bufs);
    uint64_t now = 0;
    uint32_t deaths = 0;
    for (uint32_t i = 0; i < problem->n_bufs; i++) {
        if (i == 0 || born[i].first != born[i - 1].first)
            online->n_births++;
        for (; deaths < problem->n_bufs && dead[deaths].end <= born[i].first;
             deaths++)
            if (dead[deaths].first < dead[deaths].end)
                now -= buf_bytes(problem, dead[deaths].buf);
        if (born[i].first < born[i].end)
            now += buf_bytes(problem, born[i].buf);
        live[online->n_births - 1] = now;
    }
    online->live = live;
    for (uint32_t i = 0; i < online->n_births; i++)
        if (live[i] > live[online->peak])
            online->peak = i;
}

/* The bytes of the first-born volume that is alive at the peak. */
static uint64_t boundary(const Online *online, const Life *born) {
    uint32_t births = 0, peak = 0, n = online->problem->n_bufs;
    for (uint32_t i = 0; i < n; i++) {
        births += i > 0 && born[i].first != born[i - 1].first;
        if (births == online->peak)
            peak = born[i].first;
    }
    for (uint32_t i = 0; i < n; i++)
        if (born[i].first <= peak && peak < born[i].end)
            return buf_bytes(online->problem, born[i].buf);
    return 0;
}

void online_plan(Arena *arena, const PackProblem *problem, PackResult *result,
                 ChooseFn *choose) {
    Online online = {.problem = problem};
    Placer *placer = placer_new_by_birth(arena, problem, result);
    const Life *born = lives(arena, problem, by_first);
    profile(arena, &online, born);
    online.boundary = boundary(&online, born);
    for (uint32_t i = 0; i < problem->n_bufs; i++) {
        if (i > 0 && born[i].first != born[i - 1].first) {
            online.birth++;
            placer_retire(placer, born[i].first);
        }
        placer_put(placer, born[i].buf, choose, &online);
        online.turn++;
    }
}

uint64_t choose_bottom(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[0].at;
}

uint64_t choose_tops(const void *context, const Gaps *gaps) {
    (void)context;
    uint64_t start = gaps->gap[gaps->n - 1].end - gaps->bytes;
    return start - start % gaps->align;
}
