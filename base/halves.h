/* halves.h - numbers of other widths as floats, for values in files. */
#ifndef BASE_HALVES_H
#define BASE_HALVES_H

#include "base/arena.h"
#include "base/half.h"

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
