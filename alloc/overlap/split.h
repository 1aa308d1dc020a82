/* split.h - transfers in pieces, by rows and by channels; private to alloc. */
#ifndef ALLOC_OVERLAP_SPLIT_H
#define ALLOC_OVERLAP_SPLIT_H

#include "alloc/overlap/overlap.h"

enum { WINDOW = 256 }; /* actions that an action may pass */

typedef struct Pieces {
    Arena *arena;
    const Plan *plan;
    bool parts;           /* transfers are cut before anything else */
    VEC(Action) source;   /* the plan's actions, some transfers in parts */
    Placements placement; /* the plan's, and those of pieces */
    Plan now;             /* the plan with these placements */
} Pieces;

/* Fills source, placement and now. */
void pieces_make(Pieces *o);
/* Where a transfer can be cut by channels: in front of those that are, counted
 * from the first of the volume at each of its ends, a multiple of `step`. */
typedef struct Seams {
    const Pieces *o;
    const Action *of;
    bool none;
    uint32_t first[2], step[2]; /* step 0: the layout is asked each time */
} Seams;
Seams piece_seams(const Pieces *o, const Action *a);
bool seam_asked(const Seams *seams, uint32_t end, uint32_t c);
/* Whether a transfer can be cut in front of its channel c. */
static inline bool seam_at(const Seams *seams, uint32_t c) {
    bool all = !seams->none;
    for (uint32_t end = 0; end < 2 && all; end++)
        all = seams->step[end] ? (seams->first[end] + c) % seams->step[end] == 0
                               : seam_asked(seams, end, c);
    return all;
}
/* Whether it can be cut between any rows. */
bool piece_may_cut_rows(const Pieces *o, const Action *a);
/* Channels [c, c + n) of a transfer; rows [row, row + rows) of the tensor. */
Action piece_channels(Pieces *o, const Action *whole, uint32_t c, uint32_t n);
Action piece_rows(Pieces *o, const Action *whole, uint32_t row, uint32_t rows);
/* Adds to the transfer `last` one of the same step that goes on where it ends;
 * false if this one does not. */
bool pieces_join(Pieces *o, Action *last, const Action *a);

#endif
