/* rng.h - numbers that look random and are the same everywhere.
 *
 * Counter based: value i of a stream is a function of (seed, i) alone, so any
 * part of a stream can be made without the rest. The mixer is splitmix64
 * (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

/* 64 well mixed bits for position `i` of stream `seed`. */
static inline uint64_t rng_bits(uint64_t seed, uint64_t i) {
    uint64_t z = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Uniform in [-1, 1), a multiple of 2^-23: exact in float. */
static inline double rng_unit(uint64_t seed, uint64_t i) {
    return (double)(int32_t)(rng_bits(seed, i) >> 40) / 8388608.0 - 1.0;
}

/* A seed from a name and a number (FNV-1a, 64 bit). */
static inline uint64_t rng_seed(const char *name, uint64_t salt) {
    uint64_t h = UINT64_C(0xCBF29CE484222325) ^ salt;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
    return h;
}

#endif
