/* live.h - decisions -> buffers with live ranges. */
#ifndef ALLOC_LIVE_LIVE_H
#define ALLOC_LIVE_LIVE_H

#include "alloc/alias/alias.h"

/* ---- buffers.c: touches and lifetimes -> problem ---- */

/* Of units that have none yet. */
void touches_make(Decisions *d);
/* Whether the node takes the operand by rows that may be copied from a volume
 * that stays. */
bool takes_rows(const Decisions *d, NodeId node, TensorId in);
/* Whether what the node writes by parts is to be loaded into the concat that it
 * is part of. */
bool result_lands(const Decisions *d, NodeId node);
/* From a whole touch to the next one, or to the last that reads rows. */
typedef struct Away {
    uint32_t next;      /* touch: the next whole one, or n_touches */
    uint32_t n_by_rows; /* touches on the way */
    uint32_t end;       /* time at which it ends */
} Away;
/* False if the unit has to leave before any of them. */
bool away_find(const Decisions *d, const Unit *unit, uint32_t touch,
               Away *away);
/* After modes of nodes at the step have changed. */
void touches_refresh(Decisions *d, uint32_t step);
/* The same of all units. */
void touches_refill(Decisions *d, uint32_t step);
/* A touch of the unit at a step at which it has none; touches_refill fills it.
 */
void touch_insert(const Facts *f, Unit *unit, uint32_t step);
void problem_make(Decisions *d, Problem *out);
/* Corrects the problem's `live`, and no more, after a gap of the unit leaves;
 * false if it could not. problem_make must follow. */
bool live_follow(Decisions *d, Problem *p, uint32_t unit);
/* Adds to the problem's `live` what the unit has as it is now, or takes it
 * away; false if no memory holds a part of that. problem_make must follow. */
bool live_unit(Decisions *d, Problem *p, uint32_t unit, bool add);
/* Whether it is a concat of which all is alive at the time, though not all of
 * it is written. */
bool waits_empty(const Unit *unit, uint32_t time);
/* The same though not all of it is needed any more. */
bool waits_for_part(const Decisions *d, const Unit *unit, uint32_t time);
/* Channels of the unit up to the last that is there behind the touch and
 * touched later. */
uint32_t wanted_behind(const Facts *f, const Unit *unit, uint32_t touch);
/* Sums `live` again, after buffers have changed. */
void live_make(Problem *problem);
/* Where a tensor's values must go as soon as they are there; `streamed`: they
 * are written by tiles, not kept in active memory. */
typedef struct Dests {
    bool home;   /* its place in backing memory */
    bool output; /* its region in the output memory */
} Dests;
Dests dests_of(const Decisions *d, TensorId tensor, bool streamed);
/* Both run whole again, if it is one of a pair of layers. */
void couple_part(Decisions *d, NodeId node);

#endif
