/* kernel.h - products of matrices of floats, the same bits everywhere.
 *
 * Each element of a result is one sum in the order of k, whatever the width of
 * the processor's registers; products and sums are rounded one by one.
 */
#ifndef QUANTISE_KERNEL_H
#define QUANTISE_KERNEL_H

#include <stddef.h>

/* Columns of the right matrix are padded to a multiple of this. */
enum { KERNEL_WIDTH = 16 };

/* out [m, n] = a [m, k] * b [k, n]; rows of `a` lie `a_row` floats apart, those
 * of `b` and of `out` `n`, which is a multiple of KERNEL_WIDTH. */
void kernel_product(size_t m, size_t n, size_t k, const float *a, size_t a_row,
                    const float *b, float *out);

/* sum[i] += weight * from[i * stride] */
void kernel_add_scaled(size_t n, float weight, const float *from, size_t stride,
                       float *sum);

/* Sum of a[i] * b[i], in eight sums that are then added in their order. */
float kernel_dot_f32(size_t n, const float *a, const float *b);

/* The same of doubles. */
double kernel_dot_f64(size_t n, const double *a, const double *b);

/* to[i] += by * from[i] */
void kernel_add_row(size_t n, double by, const double *from, double *to);

#endif
