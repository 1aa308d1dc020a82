/* dram_layout.h - places outside active memory; private to alloc. */
#ifndef ALLOC_LOWER_DRAM_LAYOUT_H
#define ALLOC_LOWER_DRAM_LAYOUT_H

#include "alloc/facts.h"

/* A volume in the input, output or backing memory. */
typedef struct Region {
    uint32_t memory;
    Volume whole;
    uint64_t bytes, offset;
    uint32_t first, end; /* steps; those of the network's own stay */
    bool timed;          /* others may lie there before and behind */
    const char *name;
} Region;

typedef struct Regions {
    Arena *arena;
    const Facts *f;
    VEC(Region) at;
} Regions;

/* A new region for the tensor's volume; returns its number. */
uint32_t region_add(Regions *regions, TensorId tensor, uint32_t memory,
                    bool timed);
/* The region is in use at the step. */
void region_use(Regions *regions, uint32_t region, uint32_t step);

/* Gives all regions their offsets: those that stay one behind the other in the
 * order in which they were made, the others by a planner behind them. Outside
 * backing memory all stay if there is room for that. False, with an error,
 * when a memory is too small. used[memory]: highest byte + 1. */
bool regions_place(Regions *regions, Diag *diag, uint64_t *used);

#endif
