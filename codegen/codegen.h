/* codegen.h - Plan -> Listing: one emit function an action kind. */
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "plan/plan.h"
#include "codegen/listing.h"

/* The listing of a plan. `action_of` (may be NULL) gets, by instruction, the
 * index of the plan's action it came from. NULL after errors (a value that a
 * row cannot express, too many instructions). */
const Listing *codegen_run(Arena *arena, Diag *diag, const Plan *plan,
                           const uint32_t **action_of);

#endif
