/* objective.h - what plans are compared by. */
#ifndef PLAN_OBJECTIVE_H
#define PLAN_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

/* What the user wants least of. Balanced: 3 ln(cycles) + ln(bytes), so one
 * per cent of the time is worth three of the bytes. */
typedef enum PlanObjective {
    PLAN_BALANCED,
    PLAN_TIME,  /* cycles, then bytes */
    PLAN_BYTES, /* bytes, then cycles */
    PLAN_OBJECTIVES
} PlanObjective;
extern const char *const plan_objective_name[PLAN_OBJECTIVES + 1];

typedef struct PlanCost {
    uint64_t cycles; /* 0: nobody counts them */
    uint64_t bytes;  /* to and from outside, weights included */
    uint64_t instructions;
    uint64_t memory; /* bytes of active memory that it takes */
} PlanCost;

/* Whether the objective is better met by `a`: of equals the one of fewer
 * instructions, then the one in less memory. */
bool plan_cost_less(PlanObjective objective, const PlanCost *a,
                    const PlanCost *b);
/* Whether `a` is no worse in any measure, memory included. */
bool plan_cost_no_worse(const PlanCost *a, const PlanCost *b);

#endif
