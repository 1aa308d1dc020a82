/* lower.h - decisions and places -> actions; private. */
#ifndef ALLOC_LOWER_LOWER_H
#define ALLOC_LOWER_LOWER_H

#include "alloc/spill/spill.h"

/* ---- lower.c ---- */

/* False, with an error, when an external memory is too small. */
bool actions_make(Attempt *a, Diag *diag, const Buffers *buffers,
                  const PackResult *result, Plan *plan);

/* ---- count_instructions.c ---- */

/* Whether a->brief can do without places, as the plan has too many instructions
 * wherever buffers lie. False also if it might move more than a->most. */
bool too_long_to_place(const Attempt *a);

#endif
