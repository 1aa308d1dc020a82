/* squeeze.h - a placement of many buffers, made lower; see squeeze.c and
 * squeeze_dust.c. */
#ifndef PACK_SQUEEZE_H
#define PACK_SQUEEZE_H

#include "pack/pack.h"

/* Lowers a placement, or finds one where status is PACK_FAILS: in one pool
 * without relations and pins; others it leaves as they are. `result->bound` is
 * given. The same budget gives the same placement. */
void pack_squeeze(const PackProblem *problem, PackResult *result);

/* Down to `goal`, with as many looks at buffers in the way as that, or with all
 * before the deadline. Returns how many it took. */
uint64_t squeeze_down(const PackProblem *problem, uint64_t goal,
                      uint64_t most_looks, PackResult *result);

#endif
