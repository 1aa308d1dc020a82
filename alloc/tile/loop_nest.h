/* loop_nest.h - what the search for tiles of channels shares; private to
 * alloc/tile. */
#ifndef ALLOC_TILE_LOOP_NEST_H
#define ALLOC_TILE_LOOP_NEST_H

#include "alloc/facts.h"
#include "geometry/tile_loops.h"

/* ---- loop_nest_table.c ---- */

/* The cheapest tiles of a layer for all capacities. */
typedef struct NestEntry {
    uint64_t end, moved, cycles;
    uint32_t tile_h, tile_w;
    Nest nest;
} NestEntry;
NestTable *nest_table_new(Arena *arena, const Loops *l);
/* For the largest of these that is no larger; NULL: none fits. */
const NestEntry *nest_table_find(Arena *arena, NestTable *table, const Loops *l,
                                 uint64_t capacity);

#endif
