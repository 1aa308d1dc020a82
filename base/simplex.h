/* lp.h - covering programs: linear, small, with few numbers that are not zero.
 *
 * Minimise sum cost[j] x[j] where for each row i
 * sum a[i][j] x[j] >= need[i], and all x[j] >= 0; cost[j] >= 0.
 */
#ifndef BASE_SIMPLEX_H
#define BASE_SIMPLEX_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

/* A number of the program. */
typedef struct LpEntry {
    uint32_t row, col;
    double value;
} LpEntry;

typedef struct Lp {
    Arena *arena;
    uint32_t n_rows, n_cols;
    double *need, *cost;
    VEC(LpEntry) entry;
} Lp;

/* Room for programs that are solved one after the other. */
typedef struct LpRoom {
    double *at;
    size_t n;
} LpRoom;

typedef enum LpStatus {
    LP_OPTIMAL,
    LP_INFEASIBLE,
    LP_GAVE_UP /* more steps than are allowed */
} LpStatus;

/* All zero. */
Lp *lp_new(Arena *arena, uint32_t n_rows, uint32_t n_cols);
/* What is there is zero so far. */
void lp_set(Lp *lp, uint32_t row, uint32_t col, double value);

/* Fills x[n_cols] and *value with an optimum, a vertex: the same for the same
 * program. The room grows in `keep`. */
LpStatus lp_cover(Arena *keep, LpRoom *room, const Lp *lp, double *x,
                  double *value);

#endif
