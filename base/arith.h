/* arith.h - small arithmetic that several rooms need. */
#ifndef BASE_ARITH_H
#define BASE_ARITH_H

#include <stdint.h>

/* The greatest common divisor; of 0 and b it is b. */
static inline uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The sum; UINT64_MAX where it has no room. */
static inline uint64_t add_capped(uint64_t a, uint64_t b) {
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

#endif
