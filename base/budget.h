/* budget.h - how far each search goes: the one table.
 *
 * Budgets are counted in steps, never in seconds, so that a result depends on
 * the input alone. Whoever does work takes steps; a search stops where none is
 * left, and returns the best that it has found by then.
 */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Name; steps, and more of them for each layer of the network.
 *   PLAN    what is tried to choose a plan. A step: a buffer placed, an action
 *           made, an action given its time
 *   OWN     of these, plans for the memory's own size, where the choice has
 *           found nothing
 *   ADVICE  plans that are tried to find a size that would do */
#define BUDGETS(X)           \
    X(PLAN, 6000000, 300000) \
    X(OWN, 500000, 50000)    \
    X(ADVICE, 500000, 50000)

typedef enum BudgetName {
#define BUDGET_NAME(name, steps, more) BUDGET_##name,
    BUDGETS(BUDGET_NAME)
#undef BUDGET_NAME
        BUDGET_NAMES
} BudgetName;

typedef struct Budget {
    uint64_t steps, left;
} Budget;

static inline Budget budget_of(BudgetName name, uint32_t layers) {
    static const uint64_t row[BUDGET_NAMES][2] = {
#define BUDGET_ROW(name, steps, more) {steps, more},
        BUDGETS(BUDGET_ROW)
#undef BUDGET_ROW
    };
    uint64_t steps = row[name][0] + row[name][1] * layers;
    return (Budget){steps, steps};
}

/* NULL: nobody counts. */
static inline void budget_take(Budget *b, uint64_t steps) {
    if (b)
        b->left -= steps < b->left ? steps : b->left;
}

static inline bool budget_spent(const Budget *b) {
    return b && !b->left;
}

#endif
