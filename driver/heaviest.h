/* heaviest.h - the layer that takes most of the time. */
#ifndef DRIVER_HEAVIEST_H
#define DRIVER_HEAVIEST_H

#include "sim/sim.h"

typedef struct Heavy {
    const char *layer;
    uint64_t cycles, all;
    SimCost bound;
} Heavy;

/* The layer of most cycles, and what they are spent on; its name is NULL where
 * nothing took any. */
Heavy heaviest(Arena *arena, const SimResult *sim);

#endif
