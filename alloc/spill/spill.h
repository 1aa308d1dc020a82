/* spill.h - what stays in active memory, what leaves it, and which part of
 * that stays; private.
 */
#ifndef ALLOC_SPILL_SPILL_H
#define ALLOC_SPILL_SPILL_H

#include "alloc/alias/alias.h"

/* ---- greedy.c: what is evicted, dissolved, tiled ---- */

/* A volume that passes in tiles must not be part of a concat that is still
 * being filled: dissolves such. */
bool operand_freed(Work *w, NodeId node, TensorId t);
/* The same for all modes that are set; false if one cannot be. */
bool modes_settle(Work *w);
/* The modes that are set stay; false if they leave no way. */
bool fit_around(Work *w, Problem *problem, PlanResult *result,
                const char **planner);
/* Places everything. False if it does not fit; w->stuck then tells where. */
bool fit_one_level(Work *w, Problem *problem, PlanResult *result,
                   const char **planner);
/* Places what units and modes ask for now. False if it does not fit: then the
 * result is as it was. Counts placements in *tries. */
bool place_again(Work *w, Problem *problem, PlanResult *result,
                 const char **planner, uint32_t *tries);
/* All volumes kept, all nodes whole. */
void start_again(Work *w);
/* onthefly_replication.c: nodes that read network inputs by tiles for more
 * copies; false if there are none. */
bool fly_choose(Work *w);
/* Whether some layer takes fewer steps of the array so; modes change. */
bool fly_hastens(Work *w);
bool fit_two_levels(Work *w, Problem *problem, PlanResult *result,
                    const char **planner);

/* count_instructions.c: whether w->brief can do without places for the problem,
 * as the plan has too many instructions anywhere; it is made anew. False also
 * if it might move more than w->most. */
bool too_long_to_place(Work *w, Problem *problem);

/* stream_through.c: of a plan that fits, what is loaded for a layer alone, or
 * stored as soon as it is made, passes in the layer's tiles, where that moves
 * no more.
 */
void pass_through(Work *w, Problem *problem, PlanResult *result,
                  const char **planner);

/* ---- fractional.c: how much of a volume stays between two uses ---- */

/* The tensors of which a part may stay over the gap behind the touch, of none
 * that is part of another; at most as many as the unit has. */
uint32_t kept_tensors(const Work *w, const Unit *unit, uint32_t touch,
                      TensorId *out);
/* How many of the tensor's channels are among the unit's first `keeps`. */
uint32_t kept_of(const Work *w, const Unit *unit, TensorId t, uint32_t keeps);
/* Bytes that move at least, whatever stays between two uses. */
double streams_cost(const Work *w);
/* By touch of each unit: whether, and what of it, leaves. */
typedef struct GapChoice {
    bool leaves, keeps_end;
    uint32_t keeps;
} GapChoice;
GapChoice *gaps_save(const Work *w);
void gaps_restore(Work *w, const GapChoice *choice);
/* Nothing leaves. */
void gaps_close(Work *w);
/* Bytes that leave and come back, by gaps' leaves and keeps. */
double gaps_cost(const Work *w);
/* Concats take no more than is written of them, where they would not fit. */
void units_fill(Work *w, Problem *problem);
/* Chooses the gaps anew and places everything, if that moves fewer bytes than
 * `most`; else false, and all is as it was. */
bool fit_gaps(Work *w, double most, Problem *problem, PlanResult *result,
              const char **planner);

/* Places a problem with buffers that move together. False if no place is found;
 * *blocked: while what was most in the way is alive. Sets Unit.keeps_end. */
bool place_tied(Work *w, const Problem *p, PlanResult *result, Times *blocked);

/* ---- concat_holes.c: concats whose bytes serve others until they are written
 * ---- */

/* One level in one linear memory, where whole concats did not fit. */
bool fit_slots(Work *w, Problem *problem, PlanResult *result,
               const char **planner);

#endif
