/* room.h - whether this computer has the memory that running a network takes.
 */
#ifndef DRIVER_ROOM_H
#define DRIVER_ROOM_H

#include "driver/pipeline.h"

/* Bytes that `verify` takes at least: the values of all tensors, for the
 * reference, and of each memory the largest volume that is written there, a
 * value and its writer a cell, for the simulator. */
uint64_t room_to_verify(const Pipeline *pipeline);

/* Bytes that the process may take: physical memory, or less by limits of its
 * own (ulimit -v, -d). */
uint64_t room_there(void);

/* False, with an error that tells both, where there is too little: to verify;
 * for the values of all tensors; for those at the listing's border, in memories
 * as well. */
bool room_verifies(Arena *arena, Diag *diag, const Pipeline *pipeline);
bool room_evaluates(Arena *arena, Diag *diag, const Graph *graph);
bool room_simulates(Arena *arena, Diag *diag, const Listing *listing);

#endif
