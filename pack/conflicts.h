/* conflicts.h - which buffers conflict, where one line of time cannot say it:
 * a list of pairs (forks and joins, several cores), or lives on several
 * streams that wait for each other.
 *
 * Such a list becomes lives with gaps, so all planners, bounds and proofs hold:
 * each step is a clique of the conflict graph, a buffer is alive in the cliques
 * that it is in, and each pair is in some clique.
 */
#ifndef PACK_CONFLICTS_H
#define PACK_CONFLICTS_H

#include "pack/pack.h"

typedef struct Pair {
    uint32_t a, b;
} Pair;

typedef struct Pairs {
    Pair *at;
    size_t n;
} Pairs;

/* Lives on streams: buffer i is born at the vector clock [2 i n_streams,
 * + n_streams) and dies at the one behind it. */
typedef struct Clocks {
    const int64_t *at;
    uint32_t n_streams;
} Clocks;

/* More pairs than these, on streams, are too many. */
enum { PAIRS_MOST = 1 << 26 };

/* Adds to the lives of `buf`, behind the last step, so that those conflict,
 * too, that `listed` names, and those on `clocks` (NULL: none): unless one is
 * dead, in each stream, when the other is born. What dies where it is born
 * conflicts with nothing. False: too many pairs, or more steps than a life can
 * have. */
bool conflicts_to_lives(Arena *arena, Pairs listed, const Clocks *clocks,
                        Buffer *buf, uint32_t n);

#endif
