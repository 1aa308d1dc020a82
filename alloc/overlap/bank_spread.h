/* bank_spread.h - buffers moved apart; private. */
#ifndef ALLOC_OVERLAP_BANK_SPREAD_H
#define ALLOC_OVERLAP_BANK_SPREAD_H

#include "alloc/live/live.h"

/* Moves buffers of a placement apart where that frees memory for less waiting.
 */
void spread(Decisions *d, Buffers *buffers, PackResult *result);

#endif
