/* ranks.h - a set of the numbers below n that knows the neighbours of each.
 *
 * A tree of words as van Emde Boas's (1975), cut at 64: a bit of a word says
 * that the word below it has some, down to the words whose bits are the
 * members. All four take as many steps as there are levels, log n to the
 * base 64.
 */
#ifndef BASE_RANKS_H
#define BASE_RANKS_H

#include "base/arena.h"

#define RANKS_NONE UINT32_MAX

enum { RANKS_LEVELS = 6 }; /* 64 ^ 6 is more than 32 bits count */

typedef struct Ranks {
    uint64_t *level[RANKS_LEVELS]; /* the members first, one word last */
    uint32_t n_levels;
} Ranks;

/* Empty. */
Ranks ranks_new(Arena *arena, uint32_t n);

/* Of a number below n; to add a member or remove another changes nothing. */
void ranks_add(Ranks *ranks, uint32_t member);
void ranks_remove(Ranks *ranks, uint32_t member);

/* The largest member below `limit`, which may be n; RANKS_NONE if there is
 * none. */
uint32_t ranks_below(const Ranks *ranks, uint32_t limit);

/* The least member above `limit`, a number below n; or RANKS_NONE. */
uint32_t ranks_above(const Ranks *ranks, uint32_t limit);

#endif
