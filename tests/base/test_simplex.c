/* Covering programs against all of their vertices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/simplex.h"

#include <math.h>

enum { MAX_COLS = 4, MAX_ROWS = 5 };

/* Row `i` of the program with its bounds x >= 0 behind the others. */
static void row_get(const Lp *lp, uint32_t i, double *row) {
    for (uint32_t j = 0; j < lp->n_cols; j++)
        row[j] = i >= lp->n_rows && i - lp->n_rows == j ? 1.0 : 0.0;
    for (uint32_t k = 0; k < lp->entry.n; k++)
        if (lp->entry.at[k].row == i)
            row[lp->entry.at[k].col] = lp->entry.at[k].value;
    row[lp->n_cols] = i < lp->n_rows ? lp->need[i] : 0;
}

/* Solves n rows of n unknowns; false if they are not independent. */
static bool solve(double m[MAX_COLS][MAX_COLS + 1], uint32_t n, double *x) {
    for (uint32_t c = 0; c < n; c++) {
        uint32_t p = c;
        for (uint32_t r = c + 1; r < n; r++)
            p = fabs(m[r][c]) > fabs(m[p][c]) ? r : p;
        if (fabs(m[p][c]) < 1e-9)
            return false;
        for (uint32_t k = 0; k <= n; k++) {
            double t = m[c][k];
            m[c][k] = m[p][k];
            m[p][k] = t;
        }
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = n + 1; r != c && k-- > c;)
                m[r][k] -= m[c][k] * m[r][c] / m[c][c];
    }
    for (uint32_t c = 0; c < n; c++)
        x[c] = m[c][n] / m[c][c];
    return true;
}

static bool feasible(const Lp *lp, const double *x) {
    double row[MAX_COLS + 1];
    for (uint32_t i = 0; i < lp->n_rows + lp->n_cols; i++) {
        double sum = 0;
        row_get(lp, i, row);
        for (uint32_t j = 0; j < lp->n_cols; j++)
            sum += row[j] * x[j];
        if (sum < row[lp->n_cols] - 1e-6)
            return false;
    }
    return true;
}

static double cost(const Lp *lp, const double *x) {
    double sum = 0;
    for (uint32_t j = 0; j < lp->n_cols; j++)
        sum += lp->cost[j] * x[j];
    return sum;
}

/* Least cost of all points where n_cols rows hold exactly; infinity if none
 * is feasible. */
static double by_vertices(const Lp *lp) {
    double least = INFINITY, x[MAX_COLS];
    for (uint32_t set = 0; set < 1u << (lp->n_rows + lp->n_cols); set++) {
        double m[MAX_COLS][MAX_COLS + 1];
        uint32_t n = 0;
        for (uint32_t i = 0; i < lp->n_rows + lp->n_cols; i++)
            if (set >> i & 1 && n++ < lp->n_cols)
                row_get(lp, i, m[n - 1]);
        if (n == lp->n_cols && solve(m, n, x) && feasible(lp, x))
            least = fmin(least, cost(lp, x));
    }
    return least;
}

static void equals_the_best_vertex(void **state) {
    (void)state;
    uint32_t solved = 0, refused = 0;
    Arena *keep = arena_new("room");
    LpRoom room = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        Arena *arena = arena_new("lp");
        uint32_t draw = 0;
        uint32_t cols = 1 + (uint32_t)(rng_bits(seed, draw++) % MAX_COLS);
        uint32_t rows = 1 + (uint32_t)(rng_bits(seed, draw++) % MAX_ROWS);
        Lp *lp = lp_new(arena, rows, cols);
        for (uint32_t k = 0; k < rows * cols; k++)
            lp_set(lp, k / cols, k % cols,
                   (double)(rng_bits(seed, draw++) % 7) - 2);
        for (uint32_t i = 0; i < rows; i++)
            lp->need[i] = (double)(rng_bits(seed, draw++) % 9) - 2;
        for (uint32_t j = 0; j < cols; j++)
            lp->cost[j] = (double)(rng_bits(seed, draw++) % 5);
        double x[MAX_COLS], value = 0, best = by_vertices(lp);
        LpStatus status = lp_cover(keep, &room, lp, x, &value);
        if (isinf(best)) {
            assert_int_equal(status, LP_INFEASIBLE);
            refused++;
        } else {
            assert_int_equal(status, LP_OPTIMAL);
            assert_true(feasible(lp, x));
            assert_true(fabs(value - best) < 1e-6);
            assert_true(fabs(cost(lp, x) - best) < 1e-6);
            solved++;
        }
        arena_free(arena);
    }
    arena_free(keep);
    assert_true(solved > 1000 && refused > 300);
}

/* Beale's example (1955) cycles by greatest gain alone. */
static void does_not_cycle(void **state) {
    (void)state;
    Arena *arena = arena_new("lp");
    Lp *lp = lp_new(arena, 4, 3);
    const double at[] = {0.25, 0.5, 0, -60, -90, 0, -0.04, -0.02, 1, 9, 3, 0};
    const double need[] = {0.75, -150, 0.02, -6}, costs[] = {0, 0, 1};
    for (uint32_t k = 0; k < 12; k++)
        lp_set(lp, k / 3, k % 3, at[k]);
    for (uint32_t i = 0; i < 4; i++)
        lp->need[i] = need[i];
    for (uint32_t j = 0; j < 3; j++)
        lp->cost[j] = costs[j];
    double x[3], value = 0;
    LpRoom room = {0};
    assert_int_equal(lp_cover(arena, &room, lp, x, &value), LP_OPTIMAL);
    assert_true(fabs(value - 0.05) < 1e-9);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_best_vertex),
        cmocka_unit_test(does_not_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
