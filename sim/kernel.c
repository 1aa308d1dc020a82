/* kernel.c - the innermost loops of convolution; see kernel.h.
 *
 * Vector types of the compilers, not of one machine: element by element the
 * arithmetic is that of float, whatever the width of the registers.
 */
#include "sim/kernel.h"

#include <string.h>

/* Clang 14 names the clones so that other files do not find them; gcc's choice
 * among clones runs before its sanitizers are set up. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&    \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_CPU __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

typedef float Strip __attribute__((vector_size(KERNEL_COLS * sizeof(float))));
/* The same in memory, at any address. */
typedef float LooseStrip
    __attribute__((vector_size(KERNEL_COLS * sizeof(float)), aligned(4)));

#define ADD_PRODUCTS(o)                                                        \
    a##o += x * w[o];                                                          \
    b##o += y * w[o]

FOR_EACH_CPU
void kernel_conv(const float *const in[KERNEL_STRIPS], size_t plane,
                 uint32_t channels, const size_t *tap_at, uint32_t taps,
                 const float *weight,
                 float sum[KERNEL_STRIPS][KERNEL_OUT][KERNEL_COLS]) {
    Strip a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
    Strip b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
    const float *w = weight;
    for (uint32_t i = 0; i < channels; i++) {
        const float *p = in[0] + i * plane, *q = in[1] + i * plane;
        for (uint32_t t = 0; t < taps; t++, w += KERNEL_OUT) {
            Strip x = *(const LooseStrip *)(const void *)(p + tap_at[t]);
            Strip y = *(const LooseStrip *)(const void *)(q + tap_at[t]);
            ADD_PRODUCTS(0);
            ADD_PRODUCTS(1);
            ADD_PRODUCTS(2);
            ADD_PRODUCTS(3);
        }
    }
    LooseStrip *to = (LooseStrip *)(void *)sum;
    to[0] += a0;
    to[1] += a1;
    to[2] += a2;
    to[3] += a3;
    to[4] += b0;
    to[5] += b1;
    to[6] += b2;
    to[7] += b3;
}

FOR_EACH_CPU
float kernel_dot(const float *a, const float *b, size_t n) {
    Strip sum = {0};
    size_t i = 0;
    for (; i + KERNEL_COLS <= n; i += KERNEL_COLS)
        sum += *(const LooseStrip *)(const void *)(a + i) *
               *(const LooseStrip *)(const void *)(b + i);
    float total = 0;
    for (int k = 0; k < KERNEL_COLS; k++)
        total += sum[k];
    for (; i < n; i++)
        total += a[i] * b[i];
    return total;
}

FOR_EACH_CPU
void kernel_add_codes(int32_t *restrict sum, const int32_t *restrict at,
                      int32_t by, size_t n) {
    for (size_t i = 0; i < n; i++)
        sum[i] += by * at[i];
}
