/* states.h - which outputs are inputs of the next call; private to frontends.
 */
#ifndef FRONTENDS_STATES_H
#define FRONTENDS_STATES_H

#include "frontends/frontend.h"

/* By node, of inputs: the output that it is in the next call, or NO_TENSOR. */
const TensorId *states_next(Arena *arena, const Graph *g);
/* The same outputs, as they stand in the list now; those that are none any more
 * leave inputs of the caller's. */
void states_follow(Graph *g, const TensorId *next);
/* Makes states of inputs, as the settings say. Without any, a note names the
 * inputs and outputs that look like states. */
void states_take(Arena *arena, Diag *diag, Graph *g, uint32_t n,
                 const StateSetting *setting);

#endif
