/* lp.h - covering programs: linear, small, dense.
 *
 * Minimise sum cost[j] x[j] where for each row i
 * sum at[i * n_cols + j] x[j] >= need[i], and all x[j] >= 0; cost[j] >= 0.
 */
#ifndef ALLOC_LP_H
#define ALLOC_LP_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct Lp {
    uint32_t n_rows, n_cols;
    double *at, *need, *cost;
} Lp;

typedef enum LpStatus {
    LP_OPTIMAL,
    LP_INFEASIBLE,
    LP_GAVE_UP /* more steps than are allowed */
} LpStatus;

/* All zero. */
Lp *lp_new(Arena *arena, uint32_t n_rows, uint32_t n_cols);

/* Fills x[n_cols] and *value with an optimum, a vertex: the same for the same
 * program. */
LpStatus lp_cover(Arena *arena, const Lp *lp, double *x, double *value);

#endif
