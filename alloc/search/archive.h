/* archive.h - the plans that were found; private to alloc. */
#ifndef ALLOC_SEARCH_ARCHIVE_H
#define ALLOC_SEARCH_ARCHIVE_H

#include "base/arena.h"
#include "base/vec.h"
#include "plan/objective.h"

/* A plan that was made: which configuration made it, by number, and what it
 * costs. */
typedef struct Candidate {
    uint32_t number;
    PlanCost cost;
} Candidate;

/* Those that no other one is as good as in every measure: memory, cycles,
 * bytes, instructions. */
typedef struct Archive {
    Arena *arena;
    VEC(Candidate) at;
} Archive;

/* Keeps the candidate, and drops those that are no better in any measure.
 * False if one that is there is as good in all. */
bool archive_add(Archive *archive, const Candidate *candidate);
/* What they cost, fewest bytes first; how many. */
uint32_t archive_front(Arena *arena, const Archive *archive,
                       const PlanCost **out);

#endif
