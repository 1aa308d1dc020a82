/* budget.h - how far each search goes: the one table.
 *
 * Budgets are counted in steps, never in seconds, so that a result depends on
 * the input alone. Whoever does work takes steps; a search stops where none is
 * left, and returns the best that it has found by then.
 */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name; steps, and more of them for each layer of the network.
 *   PLAN    what is tried to choose a plan. A step: a buffer placed, an action
 *           made, an action given its time
 *   GUESS   a guess at the size that would do, where nothing fits
 *   ADVICE  plans that are made to the end to prove it */
#define BUDGETS(X)                                                             \
    X(PLAN, 3000000, 300000)                                                   \
    X(GUESS, 2000000, 1000000)                                                 \
    X(ADVICE, 4000000, 2000000)

typedef enum BudgetName {
#define BUDGET_NAME(name, steps, more) BUDGET_##name,
    BUDGETS(BUDGET_NAME)
#undef BUDGET_NAME
        BUDGET_NAMES
} BudgetName;

typedef struct Budget {
    uint64_t left;
    struct Budget *whole; /* that it is a part of; or NULL */
} Budget;

static inline Budget budget_of(BudgetName name, uint32_t layers) {
    static const uint64_t row[BUDGET_NAMES][2] = {
#define BUDGET_ROW(name, steps, more) {steps, more},
        BUDGETS(BUDGET_ROW)
#undef BUDGET_ROW
    };
    return (Budget){row[name][0] + row[name][1] * layers, NULL};
}

/* NULL: nobody counts. */
static inline void budget_take(Budget *b, uint64_t steps) {
    for (; b; b = b->whole)
        b->left -= steps < b->left ? steps : b->left;
}

static inline bool budget_spent(const Budget *b) {
    bool spent = false;
    for (; b; b = b->whole)
        spent |= !b->left;
    return spent;
}

#endif
