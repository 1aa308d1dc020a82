/* explain.h - parts of what explain.c tells. */
#ifndef PLAN_REPORT_EXPLAIN_H
#define PLAN_REPORT_EXPLAIN_H

#include "plan/plan.h"

/* Where weights lie and when they come, on machines that load them into active
 * memory. `live`: by step, bytes of volumes in the first memory. */
const char *explain_weights(Arena *arena, const Plan *plan,
                            const uint64_t *live);

#endif
