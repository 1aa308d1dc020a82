/* objective.c - see objective.h. */
#include "plan/objective.h"

#include <stddef.h>

const char *const plan_objective_name[PLAN_OBJECTIVES + 1] = {"balanced",
                                                              "time", "bytes"};

static double at_least_one(uint64_t n) {
    return n ? (double)n : 1;
}

/* Without logarithms, which differ between machines in their last bit. */
static double balanced(const PlanCost *cost) {
    double cycles = at_least_one(cost->cycles);
    return cycles * cycles * cycles * at_least_one(cost->bytes);
}

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_objective(PlanObjective objective, const PlanCost *a,
                        const PlanCost *b) {
    int cycles = compare(a->cycles, b->cycles);
    int bytes = compare(a->bytes, b->bytes);
    if (objective == PLAN_TIME)
        return cycles ? cycles : bytes;
    if (objective == PLAN_BYTES)
        return bytes ? bytes : cycles;
    double x = balanced(a), y = balanced(b);
    return (x > y) - (x < y);
}

bool plan_cost_less(PlanObjective objective, const PlanCost *a,
                    const PlanCost *b) {
    int order = by_objective(objective, a, b);
    if (!order)
        order = compare(a->instructions, b->instructions);
    return order ? order < 0 : a->memory < b->memory;
}

bool plan_cost_no_worse(const PlanCost *a, const PlanCost *b) {
    return a->cycles <= b->cycles && a->bytes <= b->bytes &&
           a->instructions <= b->instructions && a->memory <= b->memory;
}
