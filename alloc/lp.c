/* lp.c - covering programs by the simplex method.
 *
 * Input: a program. Output: an optimal vertex.
 * Method: the dual, max need y with at^T y <= cost and y >= 0, starts at y = 0
 * without a first phase, as no cost is negative (Dantzig 1951). The tableau
 * holds the variables that are zero only. The price with the greatest gain
 * enters; after steps that gain nothing it is the first one, which cannot
 * cycle (Bland 1977). x are the prices of the dual's rows at the end.
 * Invariants: right sides stay >= 0; ties go to the least index.
 */
#include "alloc/lp.h"

#include <string.h>

#define EPSILON 1e-9

/* Rows are the x, columns the y; variable k < n_rows of the program is y_k, the
 * others are slacks of x. */
typedef struct Tableau {
    uint32_t n, m; /* rows, columns */
    double *at;    /* (n + 1) x (m + 1): last row gains, last column sides */
    uint32_t *row_is, *col_is; /* variables */
    uint32_t *used;            /* pivot: columns that its row has */
} Tableau;

Lp *lp_new(Arena *arena, uint32_t n_rows, uint32_t n_cols) {
    Lp *lp = ARENA_NEW(arena, Lp);
    lp->n_rows = n_rows;
    lp->n_cols = n_cols;
    lp->at = ARENA_ARRAY(arena, double, (size_t)n_rows *n_cols + 1);
    lp->need = ARENA_ARRAY(arena, double, n_rows + 1);
    lp->cost = ARENA_ARRAY(arena, double, n_cols + 1);
    return lp;
}

static double *row_of(const Tableau *t, uint32_t row) {
    return t->at + (size_t)row * (t->m + 1);
}

static Tableau tableau_of(Arena *arena, const Lp *lp) {
    Tableau t = {.n = lp->n_cols, .m = lp->n_rows};
    t.at = ARENA_ARRAY(arena, double, (size_t)(t.n + 1) * (t.m + 1));
    t.row_is = ARENA_ARRAY(arena, uint32_t, t.n + 1);
    t.col_is = ARENA_ARRAY(arena, uint32_t, t.m + 1);
    t.used = ARENA_ARRAY(arena, uint32_t, t.m + 1);
    for (uint32_t i = 0; i < t.m; i++) {
        const double *row = lp->at + (size_t)i * t.n;
        for (uint32_t j = 0; j < t.n; j++)
            if (row[j] < 0 || row[j] > 0)
                row_of(&t, j)[i] = row[j];
    }
    for (uint32_t j = 0; j < t.n; j++) {
        row_of(&t, j)[t.m] = lp->cost[j];
        t.row_is[j] = t.m + j;
    }
    for (uint32_t i = 0; i < t.m; i++) {
        row_of(&t, t.n)[i] = lp->need[i];
        t.col_is[i] = i;
    }
    return t;
}

/* The column that enters; m if none gains. */
static uint32_t entering(const Tableau *t, bool first) {
    const double *gain = row_of(t, t->n);
    uint32_t best = t->m;
    for (uint32_t i = 0; i < t->m; i++) {
        if (gain[i] <= EPSILON)
            continue;
        if (best == t->m ||
            (first ? t->col_is[i] < t->col_is[best] : gain[i] > gain[best]))
            best = i;
    }
    return best;
}

/* The row that leaves; n if none limits the column. */
static uint32_t leaving(const Tableau *t, uint32_t col) {
    uint32_t best = t->n;
    double least = 0;
    for (uint32_t j = 0; j < t->n; j++) {
        const double *row = row_of(t, j);
        if (row[col] <= EPSILON)
            continue;
        double ratio = row[t->m] / row[col];
        if (best == t->n || ratio < least ||
            (ratio <= least && t->row_is[j] < t->row_is[best])) {
            best = j;
            least = ratio;
        }
    }
    return best;
}

/* Most rows have few columns. */
static uint32_t columns_of(const Tableau *t, const double *row, uint32_t but) {
    uint32_t n = 0;
    for (uint32_t i = 0; i <= t->m; i++)
        if (i != but && (row[i] < 0 || row[i] > 0))
            t->used[n++] = i;
    return n;
}

static void pivot(Tableau *t, uint32_t row, uint32_t col) {
    double *own = row_of(t, row), p = own[col];
    uint32_t n = columns_of(t, own, col);
    for (uint32_t i = 0; i < n; i++)
        own[t->used[i]] /= p;
    own[col] = 1 / p;
    for (uint32_t j = 0; j <= t->n; j++) {
        double *other = row_of(t, j), f = other[col];
        if (j == row || (f >= 0 && f <= 0))
            continue;
        for (uint32_t i = 0; i < n; i++)
            other[t->used[i]] -= f * own[t->used[i]];
        other[col] = -f / p;
    }
    uint32_t was = t->row_is[row];
    t->row_is[row] = t->col_is[col];
    t->col_is[col] = was;
}

static LpStatus climb(Tableau *t) {
    enum { PATIENCE = 32, PIVOTS_EACH = 16 };
    uint32_t idle = 0;
    for (uint64_t left = 1 + PIVOTS_EACH * ((uint64_t)t->n + t->m); left;
         left--) {
        uint32_t col = entering(t, idle > PATIENCE);
        if (col == t->m)
            return LP_OPTIMAL;
        uint32_t row = leaving(t, col);
        if (row == t->n)
            return LP_INFEASIBLE;
        idle = row_of(t, row)[t->m] > EPSILON ? 0 : idle + 1;
        pivot(t, row, col);
    }
    return LP_GAVE_UP;
}

LpStatus lp_cover(Arena *arena, const Lp *lp, double *x, double *value) {
    Tableau t = tableau_of(arena, lp);
    LpStatus status = climb(&t);
    if (status != LP_OPTIMAL)
        return status;
    memset(x, 0, lp->n_cols * sizeof *x);
    for (uint32_t i = 0; i < t.m; i++)
        if (t.col_is[i] >= t.m)
            x[t.col_is[i] - t.m] = -row_of(&t, t.n)[i];
    *value = -row_of(&t, t.n)[t.m];
    return LP_OPTIMAL;
}
