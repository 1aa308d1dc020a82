/* histogram.h - how often a tensor has which values, in whole numbers.
 *
 * Bins are as wide as a power of two that the largest value decides, so that
 * histograms of parts, joined in any order, are that of the whole. Zeros, which
 * every quantisation has exactly, are counted apart.
 */
#ifndef QUANTISE_HISTOGRAM_H
#define QUANTISE_HISTOGRAM_H

#include "base/arena.h"

#include <stdbool.h>

enum { HISTOGRAM_HALF = 2048, HISTOGRAM_BINS = 2 * HISTOGRAM_HALF };

typedef struct Histogram {
    uint64_t zeros, nans; /* nans: infinities too */
    uint64_t n;           /* values in bins */
    float lo, hi;         /* least and greatest of them; 0, 0 where n is 0 */
    int exponent;         /* of the width of a bin */
    uint64_t *bin; /* bin b: values in [b - HALF, b - HALF + 1) * width */
} Histogram;

Histogram *histogram_new(Arena *arena);
void histogram_add(Histogram *h, uint64_t n, const float *value);
/* Adds the other; which may become coarser. */
void histogram_join(Histogram *h, Histogram *other);
/* The middle of a bin. */
double histogram_value(const Histogram *h, uint32_t bin);

#endif
