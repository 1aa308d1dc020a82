/* halves.h - numbers of other widths as floats, for values in files. */
#ifndef FRONTENDS_HALVES_H
#define FRONTENDS_HALVES_H

#include "base/arena.h"

#include <math.h>

static inline float float_from_half(uint16_t half) {
    int exponent = half >> 10 & 31;
    float fraction = (float)(half & 1023) / 1024;
    float value = exponent == 0    ? ldexpf(fraction, -14)
                  : exponent == 31 ? (half & 1023 ? NAN : INFINITY)
                                   : ldexpf(1 + fraction, exponent - 15);
    return half >> 15 ? -value : value;
}

/* `count` little-endian halves, perhaps unaligned. */
static inline float *floats_from_halves(Arena *arena, const uint8_t *bytes,
                                        uint64_t count) {
    float *out = ARENA_ARRAY(arena, float, count);
    for (uint64_t i = 0; i < count; i++)
        out[i] = float_from_half(
            (uint16_t)(bytes[2 * i] | (unsigned)bytes[2 * i + 1] << 8));
    return out;
}

#endif
