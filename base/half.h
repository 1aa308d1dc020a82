/* half.h - floats of 16 bits: IEEE 754's binary16, and bfloat16, the upper half
 * of a float. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float float_from_half(uint16_t half) {
    int exponent = half >> 10 & 31;
    float fraction = (float)(half & 1023) / 1024;
    float value = exponent == 0    ? ldexpf(fraction, -14)
                  : exponent == 31 ? (half & 1023 ? NAN : INFINITY)
                                   : ldexpf(1 + fraction, exponent - 15);
    return half >> 15 ? -value : value;
}

static inline float float_from_brain(uint16_t brain) {
    uint32_t bits = (uint32_t)brain << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest number of `digits` binary digits from 2^least up, even where two
 * are as near; infinite from 2^most on. */
static inline double round_binary(double value, int digits, int least,
                                  int most) {
    int exponent;
    if (!isfinite(value) || !(frexp(value, &exponent) < 0 || value > 0))
        return value;
    int unit = exponent - digits > least ? exponent - digits : least;
    value = ldexp(rint(ldexp(value, -unit)), unit);
    return fabs(value) >= ldexp(1, most) ? copysign((double)INFINITY, value)
                                         : value;
}
static inline double round_to_half(double value) {
    return round_binary(value, 11, -24, 16);
}
static inline double round_to_brain(double value) {
    return round_binary(value, 8, -133, 128);
}

#endif
