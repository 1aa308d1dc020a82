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

static inline uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline uint32_t larger32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static inline uint32_t smaller32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* The next multiple of `to`, of which 0 stands for 1. */
static inline uint64_t round_up(uint64_t v, uint64_t to) {
    return to > 1 ? (v + to - 1) / to * to : v;
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

/* Towards less, of negative numbers, too; b is positive. */
static inline int64_t floor_div(int64_t a, int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* The sum; UINT64_MAX where it has no room. */
static inline uint64_t add_capped(uint64_t a, uint64_t b) {
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

#endif
