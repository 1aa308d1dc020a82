/* codegen.h - Plan -> Listing: one emit function an action kind. */
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "codegen/listing.h"
#include "plan/plan.h"

/* The listing of a plan. `action_of` (may be NULL) gets, by instruction, the
 * index of the plan's action it came from. NULL after errors (a value that a
 * row cannot express, too many instructions). */
const Listing *codegen_run(Arena *arena, Diag *diag, const Plan *plan,
                           const uint32_t **action_of);

/* What docs/listing.md says of each instruction (record.h): not part of
 * codegen_run, which searches call for plan after plan. */
const Record *records_make(Arena *arena, const Plan *plan,
                           const Listing *listing, const uint32_t *action_of);

#endif
