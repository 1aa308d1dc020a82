/* am_map.h - which volume lies where in active memory, or what in those of
 * weights, biases and sums on chip, and how long. */
#ifndef REPORT_AM_MAP_H
#define REPORT_AM_MAP_H

#include "sim/sim.h"

typedef struct AmVolume {
    const SimEvent *by; /* that wrote it */
    bool is_tiles;      /* inputs on their way into the engine */
    SimSpan span;
    uint64_t from, to; /* cycles: first write to last read */
    uint32_t layer;    /* the same number for all tiles of one */
} AmVolume;

/* Whether memories of the role have a picture. */
bool am_draws(HwRole role);

/* In the order of the listing. */
uint32_t am_map(Arena *arena, const Listing *listing, const SimResult *sim,
                const AmVolume **out);

#endif
