/* dependences.h - which actions must keep their order; private to alloc. */
#ifndef ALLOC_OVERLAP_DEPENDENCES_H
#define ALLOC_OVERLAP_DEPENDENCES_H

#include "alloc/overlap/split.h"

/* Of the actions near to one, on one side: bit d is that d + 1 further on. */
typedef struct Near {
    uint64_t bit[WINDOW / 64];
} Near;

/* By action: those in front of it that it waits for, and those behind it that
 * wait for it. */
typedef struct Waits {
    Near *before, *after;
} Waits;

/* Layers keep their order among themselves. */
static inline bool is_layer(const Action *a) {
    return !is_move(a) && a->kind != ACTION_CONCAT;
}

/* The first from d on; NONE. */
static inline uint32_t near_next(const Near *near, uint32_t d) {
    uint32_t word = d / 64;
    if (word >= WINDOW / 64)
        return NONE;
    uint64_t bits = near->bit[word] >> d % 64 << d % 64;
    while (!bits && ++word < WINDOW / 64)
        bits = near->bit[word];
    return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : NONE;
}

/* Of the plan with these actions in its place. */
Waits waits_find(Arena *arena, const Plan *plan, const Action *action,
                 uint32_t n);

#endif
