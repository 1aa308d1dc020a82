/* eval_product.c - products of matrices of floats, summed in double and rounded
 * once; see eval.h.
 *
 * A library sums floats in the order that suits the processor at hand: results
 * differ in their last bits, and networks whose values are nearly alike make
 * much of these. In double what differs is lost when the sum is rounded.
 */
#include "graph/eval.h"

#include <cblas.h>

enum { BLOCK = 1 << 20 }; /* elements of the right matrix at a time */

/* Rows [0, rows) and columns [first, first + n) of the matrix as it is used. */
static double *widen(Arena *arena, const Matrix *m, size_t rows, size_t first,
                     size_t n) {
    double *out = arena_alloc(arena, rows * n * sizeof *out, sizeof *out);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < n; c++)
            out[r * n + c] = m->transposed
                                 ? (double)m->at[(first + c) * m->stride + r]
                                 : (double)m->at[r * m->stride + first + c];
    return out;
}

void eval_product(size_t m, size_t n, size_t k, Matrix a, Matrix b, float *out,
                  size_t stride) {
    Arena *arena = arena_new("matrices");
    const double *left = widen(arena, &a, m, 0, k);
    size_t step = BLOCK / (k ? k : 1) ? BLOCK / (k ? k : 1) : 1;
    for (size_t first = 0; first < n; first += step) {
        size_t cols = step < n - first ? step : n - first;
        Arena *block = arena_new("a block of columns");
        const double *right = widen(block, &b, k, first, cols);
        double *sum = arena_alloc(block, m * cols * sizeof *sum, sizeof *sum);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m,
                    (int)cols, (int)k, 1.0, left, (int)k, right, (int)cols, 0.0,
                    sum, (int)cols);
        for (size_t r = 0; r < m; r++)
            for (size_t c = 0; c < cols; c++)
                out[r * stride + first + c] = (float)sum[r * cols + c];
        arena_free(block);
    }
    arena_free(arena);
}
