/* kernel.c - the innermost loops of calibration; see kernel.h.
 *
 * Vector types of the compilers, not of one machine: element by element the
 * arithmetic is that of float, whatever the width of the registers.
 */
#include "quantise/kernel.h"

#include <string.h>

/* Clang 14 names the clones so that other files do not find them; gcc's choice
 * among clones runs before its sanitizers are set up. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) &&    \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_CPU __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

typedef double Strip64 __attribute__((vector_size(8 * sizeof(double))));
typedef double LooseStrip64
    __attribute__((vector_size(8 * sizeof(double)), aligned(8)));
typedef float Strip __attribute__((vector_size(8 * sizeof(float))));
/* The same in memory, at any address. */
typedef float LooseStrip
    __attribute__((vector_size(8 * sizeof(float)), aligned(4)));

static const float *row_of(const float *a, size_t a_row, size_t i, size_t m) {
    return a + (i < m ? i : m - 1) * a_row;
}

#define ADD_PRODUCTS(o)                                                        \
    a##o += x * r##o[i];                                                       \
    b##o += y * r##o[i]

/* Four rows, of which the last may be one row again and again, by 16 columns.
 */
FOR_EACH_CPU
void kernel_product(size_t m, size_t n, size_t k, const float *a, size_t a_row,
                    const float *b, float *out) {
    for (size_t row = 0; row < m; row += 4) {
        const float *r0 = row_of(a, a_row, row, m);
        const float *r1 = row_of(a, a_row, row + 1, m);
        const float *r2 = row_of(a, a_row, row + 2, m);
        const float *r3 = row_of(a, a_row, row + 3, m);
        for (size_t col = 0; col < n; col += KERNEL_WIDTH) {
            Strip a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
            Strip b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
            const float *at = b + col;
            for (size_t i = 0; i < k; i++, at += n) {
                Strip x = *(const LooseStrip *)(const void *)at;
                Strip y = *(const LooseStrip *)(const void *)(at + 8);
                ADD_PRODUCTS(0);
                ADD_PRODUCTS(1);
                ADD_PRODUCTS(2);
                ADD_PRODUCTS(3);
            }
            const Strip sum[4][2] = {{a0, b0}, {a1, b1}, {a2, b2}, {a3, b3}};
            for (size_t i = 0; i < 4 && row + i < m; i++)
                memcpy(out + (row + i) * n + col, sum[i], sizeof sum[i]);
        }
    }
}

FOR_EACH_CPU
void kernel_add_scaled(size_t n, float weight, const float *from, size_t stride,
                       float *sum) {
    if (stride == 1)
        for (size_t i = 0; i < n; i++)
            sum[i] += weight * from[i];
    else
        for (size_t i = 0; i < n; i++)
            sum[i] += weight * from[i * stride];
}

FOR_EACH_CPU
float kernel_dot_f32(size_t n, const float *a, const float *b) {
    Strip sum = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        sum += *(const LooseStrip *)(const void *)(a + i) *
               *(const LooseStrip *)(const void *)(b + i);
    float total = 0;
    for (int lane = 0; lane < 8; lane++)
        total += sum[lane];
    for (; i < n; i++)
        total += a[i] * b[i];
    return total;
}

FOR_EACH_CPU
double kernel_dot_f64(size_t n, const double *a, const double *b) {
    Strip64 sum = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        sum += *(const LooseStrip64 *)(const void *)(a + i) *
               *(const LooseStrip64 *)(const void *)(b + i);
    double total = 0;
    for (int lane = 0; lane < 8; lane++)
        total += sum[lane];
    for (; i < n; i++)
        total += a[i] * b[i];
    return total;
}

FOR_EACH_CPU
void kernel_add_row(size_t n, double by, const double *from, double *to) {
    for (size_t i = 0; i < n; i++)
        to[i] += by * from[i];
}
