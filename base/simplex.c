/* lp.c - covering programs by the simplex method.
 *
 * Input: a program. Output: an optimal vertex.
 * Method: the dual, max need y with at^T y <= cost and y >= 0, starts at y = 0
 * without a first phase, as no cost is negative (Dantzig 1951). The tableau
 * holds the variables that are zero only. The price with the greatest gain
 * enters; after steps that gain nothing it is the first one, which cannot
 * cycle (Bland 1977). x are the prices of the dual's rows at the end.
 * Most numbers are zero: where others are is told by bits, and the rest of the
 * tableau is never looked at.
 * Invariants: right sides stay >= 0; ties go to the least index.
 */
#include "base/simplex.h"

#include <string.h>

#define EPSILON 1e-9

/* Rows are the x, columns the y; variable k < n_rows of the program is y_k, the
 * others are slacks of x. */
typedef struct Tableau {
    uint32_t n, m; /* rows, columns */
    double *at;    /* (n + 1) x (m + 1): last row gains, last column sides */
    uint32_t row_words, col_words;
    uint64_t *in_row;          /* by row: bits of columns that hold a number */
    uint64_t *in_col;          /* by column: the same of rows */
    uint32_t *row_is, *col_is; /* variables */
    uint32_t *used;            /* pivot: columns that its row has, .. */
    uint64_t *used_bits;       /* .. and as bits */
} Tableau;

Lp *lp_new(Arena *arena, uint32_t n_rows, uint32_t n_cols) {
    Lp *lp = ARENA_NEW(arena, Lp);
    lp->arena = arena;
    lp->n_rows = n_rows;
    lp->n_cols = n_cols;
    lp->need = ARENA_ARRAY(arena, double, n_rows + 1);
    lp->cost = ARENA_ARRAY(arena, double, n_cols + 1);
    return lp;
}

void lp_set(Lp *lp, uint32_t row, uint32_t col, double value) {
    vec_push(lp->arena, &lp->entry, ((LpEntry){row, col, value}));
}

static double *row_of(const Tableau *t, uint32_t row) {
    return t->at + (size_t)row * (t->m + 1);
}

static uint64_t *bits_of_row(const Tableau *t, uint32_t row) {
    return t->in_row + (size_t)row * t->row_words;
}

static uint64_t *bits_of_col(const Tableau *t, uint32_t col) {
    return t->in_col + (size_t)col * t->col_words;
}

/* ---- bits ---- */

static uint32_t words_for(uint32_t bits) {
    return (bits + 63) / 64;
}

static void bit_set(uint64_t *bits, uint32_t i) {
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* The first bit that is set from `at` on, below `end`; `end` if there is none.
 */
static uint32_t bit_from(const uint64_t *bits, uint32_t at, uint32_t end) {
    if (at >= end)
        return end;
    uint32_t word = at / 64;
    uint64_t left = bits[word] & ~UINT64_C(0) << at % 64;
    while (!left && ++word < words_for(end))
        left = bits[word];
    if (!left)
        return end;
    at = word * 64 + (uint32_t)__builtin_ctzll(left);
    return at < end ? at : end;
}

/* ---- the tableau ---- */

static void number_set(Tableau *t, uint32_t row, uint32_t col, double value) {
    row_of(t, row)[col] = value;
    bit_set(bits_of_row(t, row), col);
    bit_set(bits_of_col(t, col), row);
}

static void room_grow(Arena *keep, LpRoom *room, size_t n) {
    if (n <= room->n)
        return;
    room->n = n + n / 2;
    room->at = arena_alloc_raw(keep, room->n * sizeof *room->at,
                               alignof(double));
}

static Tableau tableau_of(Arena *keep, LpRoom *room, const Lp *lp) {
    Tableau t = {.n = lp->n_cols, .m = lp->n_rows};
    Arena *arena = lp->arena;
    room_grow(keep, room, (size_t)(t.n + 1) * (t.m + 1));
    t.at = room->at;
    t.row_words = words_for(t.m + 1);
    t.col_words = words_for(t.n + 1);
    t.in_row = ARENA_ARRAY(arena, uint64_t, (size_t)(t.n + 1) * t.row_words);
    t.in_col = ARENA_ARRAY(arena, uint64_t, (size_t)(t.m + 1) * t.col_words);
    t.row_is = ARENA_ARRAY(arena, uint32_t, t.n + 1);
    t.col_is = ARENA_ARRAY(arena, uint32_t, t.m + 1);
    t.used = ARENA_ARRAY(arena, uint32_t, t.m + 1);
    t.used_bits = ARENA_ARRAY(arena, uint64_t, t.row_words);
    for (uint32_t i = 0; i < lp->entry.n; i++) {
        const LpEntry *e = &lp->entry.at[i];
        number_set(&t, e->col, e->row, e->value);
    }
    for (uint32_t j = 0; j < t.n; j++) {
        number_set(&t, j, t.m, lp->cost[j]);
        t.row_is[j] = t.m + j;
    }
    for (uint32_t i = 0; i < t.m; i++) {
        number_set(&t, t.n, i, lp->need[i]);
        t.col_is[i] = i;
    }
    number_set(&t, t.n, t.m, 0);
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
    const uint64_t *bits = bits_of_col(t, col);
    uint32_t best = t->n;
    double least = 0;
    for (uint32_t j = bit_from(bits, 0, t->n); j < t->n;
         j = bit_from(bits, j + 1, t->n)) {
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
static uint32_t columns_of(const Tableau *t, uint32_t own, uint32_t but) {
    const double *row = row_of(t, own);
    const uint64_t *bits = bits_of_row(t, own);
    uint32_t n = 0, end = t->m + 1;
    memset(t->used_bits, 0, t->row_words * sizeof *t->used_bits);
    for (uint32_t i = bit_from(bits, 0, end); i < end;
         i = bit_from(bits, i + 1, end))
        if (i != but && (row[i] < 0 || row[i] > 0)) {
            t->used[n++] = i;
            bit_set(t->used_bits, i);
        }
    return n;
}

/* The row gets a zero in each column that is used, and where it has none. */
static void widen(Tableau *t, uint32_t row) {
    uint64_t *bits = bits_of_row(t, row);
    for (uint32_t k = 0; k < t->row_words; k++) {
        uint64_t more = t->used_bits[k] & ~bits[k];
        for (; more; more &= more - 1)
            number_set(t, row, k * 64 + (uint32_t)__builtin_ctzll(more), 0);
    }
}

static void pivot(Tableau *t, uint32_t row, uint32_t col) {
    double *own = row_of(t, row), p = own[col];
    const uint64_t *bits = bits_of_col(t, col);
    uint32_t n = columns_of(t, row, col), end = t->n + 1;
    for (uint32_t i = 0; i < n; i++)
        own[t->used[i]] /= p;
    own[col] = 1 / p;
    for (uint32_t j = bit_from(bits, 0, end); j < end;
         j = bit_from(bits, j + 1, end)) {
        double *other = row_of(t, j), f = other[col];
        if (j == row || (f >= 0 && f <= 0))
            continue;
        widen(t, j);
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

LpStatus lp_cover(Arena *keep, LpRoom *room, const Lp *lp, double *x,
                  double *value) {
    Tableau t = tableau_of(keep, room, lp);
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
