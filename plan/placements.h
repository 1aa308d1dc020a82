/* placements.h - lists of placements, and parts of them; private to alloc. */
#ifndef PLAN_PLACEMENTS_H
#define PLAN_PLACEMENTS_H

#include "base/vec.h"
#include "plan/plan.h"

#include <string.h>

typedef VEC(Placement) Placements;

/* Rows [row, row + rows) of the tensor, which are named by their numbers as
 * those of a ring are. */
static inline Placement placement_rows(Placement p, uint32_t row,
                                       uint32_t rows) {
    p.row = row;
    p.rows = rows;
    p.ring = true;
    return p;
}

/* Channels [c, c + n) of what it holds. */
static inline Placement placement_channels(Placement p, uint32_t c,
                                           uint32_t n) {
    p.part_c += c;
    p.c += c;
    p.n_c = n;
    return p;
}

/* Their number in the list. */
static inline uint32_t placements_add(Arena *arena, Placements *all,
                                      Placement p) {
    vec_push(arena, all, p);
    return all->n - 1;
}

static inline uint32_t placements_add_rows(Arena *arena, Placements *all,
                                           uint32_t of, uint32_t row,
                                           uint32_t rows) {
    return placements_add(arena, all, placement_rows(all->at[of], row, rows));
}

static inline uint32_t placements_add_channels(Arena *arena, Placements *all,
                                               uint32_t of, uint32_t c,
                                               uint32_t n) {
    return placements_add(arena, all, placement_channels(all->at[of], c, n));
}

/* A list of the plan's, with room for as many more. */
static inline Placements placements_of(Arena *arena, const Plan *plan) {
    Placements all = {0};
    vec_reserve(arena, &all, 2 * plan->n_placements + 1);
    if (plan->n_placements)
        memcpy(all.at, plan->placement, plan->n_placements * sizeof *all.at);
    all.n = plan->n_placements;
    return all;
}

#endif
