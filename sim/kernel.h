/* kernel.h - the innermost loops of convolution.
 *
 * Input: dense floats. Output: sums of products in one fixed order, so that
 * every machine, and every way of tiling, gives the same bits.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { KERNEL_OUT = 4, KERNEL_COLS = 8, KERNEL_STRIPS = 2 };

/* sum[strip][o][x] += over channels i and taps t, in this order, of
 *     weight[(i * taps + t) * KERNEL_OUT + o] *
 *     in[strip][i * plane + tap_at[t] + x]
 * The products of one call are summed by themselves before they are added. */
void kernel_conv(const float *const in[KERNEL_STRIPS], size_t plane,
                 uint32_t channels, const size_t *tap_at, uint32_t taps,
                 const float *weight,
                 float sum[KERNEL_STRIPS][KERNEL_OUT][KERNEL_COLS]);

/* Sum of a[i] * b[i], as 8 sums of every eighth product. */
float kernel_dot(const float *a, const float *b, size_t n);

/* sum[i] += by * at[i], which must have room. */
void kernel_add_codes(int32_t *restrict sum, const int32_t *restrict at,
                      int32_t by, size_t n);

#endif
