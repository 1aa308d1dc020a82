/* lower.h - decisions and places -> actions; private. */
#ifndef ALLOC_LOWER_LOWER_H
#define ALLOC_LOWER_LOWER_H

#include "alloc/spill/spill.h"

/* ---- lower.c ---- */

/* False, with an error, when an external memory is too small. */
bool actions_make(Attempt *a, Diag *diag, const Problem *problem,
                  const PlanResult *result, Plan *plan);

/* ---- count_instructions.c ---- */

/* Whether a->brief can do without places for the problem,
 * as the plan has too many instructions anywhere; it is made anew. False also
 * if it might move more than a->most. */
bool too_long_to_place(Attempt *a, Problem *problem);

#endif
