/* states.h - which states stay in active memory from call to call; private. */
#ifndef ALLOC_SEARCH_STATES_H
#define ALLOC_SEARCH_STATES_H

#include "alloc/alloc.h"

/* Sets of states that are worth a plan, as PlanOptions.states; returns how
 * many: 0 where no state can stay. */
uint32_t states_to_keep(Arena *arena, const Schedule *schedule,
                        const PlanOptions *options, const bool *const **out);

#endif
