/* record_make.h - records of a plan's instructions; see record.h. */
#ifndef CODEGEN_RECORD_MAKE_H
#define CODEGEN_RECORD_MAKE_H

#include "codegen/record.h"
#include "plan/plan.h"

/* One for each instruction of the listing. */
const Record *records_make(Arena *arena, const Plan *plan,
                           const Listing *listing, const uint32_t *action_of);

#endif
