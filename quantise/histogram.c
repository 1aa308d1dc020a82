/* histogram.c - counting in bins that double; see histogram.h. */
#include "quantise/histogram.h"

#include <math.h>
#include <string.h>

Histogram *histogram_new(Arena *arena) {
    Histogram *h = ARENA_NEW(arena, Histogram);
    h->bin = ARENA_ARRAY(arena, uint64_t, HISTOGRAM_BINS);
    return h;
}

/* The width so that what is at most `most` away from 0 has a bin. */
static int exponent_for(float most) {
    int exponent;
    frexpf(most, &exponent); /* most < 2^exponent */
    return exponent - 11;
}
_Static_assert(HISTOGRAM_HALF == 1 << 11, "of exponent_for");

/* Bins of 2^steps times the width. */
static void coarsen(Histogram *h, int exponent) {
    int steps = exponent - h->exponent;
    if (h->n && steps > 0)
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < HISTOGRAM_HALF; i++) {
                int from = side ? HISTOGRAM_HALF + i : HISTOGRAM_HALF - 1 - i;
                int to = steps > 11 ? 0 : i >> steps;
                to = side ? HISTOGRAM_HALF + to : HISTOGRAM_HALF - 1 - to;
                uint64_t n = h->bin[from];
                h->bin[from] = 0;
                h->bin[to] += n;
            }
        }
    h->exponent = exponent;
}

static void widen(Histogram *h, float lo, float hi, int exponent) {
    if (!h->n || exponent > h->exponent)
        coarsen(h, exponent);
    h->lo = h->n ? fminf(h->lo, lo) : lo;
    h->hi = h->n ? fmaxf(h->hi, hi) : hi;
}

void histogram_add(Histogram *h, uint64_t n, const float *value) {
    float lo = INFINITY, hi = -INFINITY;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(value[i]) && fpclassify(value[i]) != FP_ZERO) {
            lo = value[i] < lo ? value[i] : lo;
            hi = value[i] > hi ? value[i] : hi;
        }
    if (lo <= hi)
        widen(h, lo, hi, exponent_for(fmaxf(fabsf(lo), fabsf(hi))));
    double scale = ldexp(1, -h->exponent);
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(value[i])) {
            h->nans++;
        } else if (fpclassify(value[i]) == FP_ZERO) {
            h->zeros++;
        } else {
            h->bin[(int)floor((double)value[i] * scale) + HISTOGRAM_HALF]++;
            h->n++;
        }
    }
}

void histogram_join(Histogram *h, Histogram *other) {
    h->zeros += other->zeros;
    h->nans += other->nans;
    if (!other->n)
        return;
    widen(h, other->lo, other->hi, other->exponent);
    coarsen(other, h->exponent);
    for (int i = 0; i < HISTOGRAM_BINS; i++)
        h->bin[i] += other->bin[i];
    h->n += other->n;
}

double histogram_value(const Histogram *h, uint32_t bin) {
    return ldexp((double)bin - HISTOGRAM_HALF + 0.5, h->exponent);
}
