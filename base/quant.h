/* quant.h - tensors of whole numbers that stand for real ones.
 *
 * A quantised tensor holds codes: real = scale * (code - zero). What layers do
 * with codes, and how results are rounded, is docs/quantisation.md; here are
 * the numbers that every part of amphora needs for it. The arithmetic itself is
 * in graph/quant.h, and by itself in sim/.
 */
#ifndef BASE_QUANT_H
#define BASE_QUANT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* TYPE(NAME, "name in text forms", C type, least code, greatest code). */
#define QUANT_TYPES                                                            \
    TYPE(I8, "int8", int8_t, INT8_MIN, INT8_MAX)                               \
    TYPE(U8, "uint8", uint8_t, 0, UINT8_MAX)                                   \
    TYPE(I16, "int16", int16_t, INT16_MIN, INT16_MAX)

typedef enum QuantType {
    QUANT_NONE, /* real numbers */
#define TYPE(NAME, text, type, lo, hi) QUANT_##NAME,
    QUANT_TYPES
#undef TYPE
        QUANT_TYPE_COUNT
} QuantType;

typedef struct QuantTypeInfo {
    const char *name;
    uint32_t size; /* bytes */
    int32_t lo, hi;
} QuantTypeInfo;
extern const QuantTypeInfo quant_type[QUANT_TYPE_COUNT];
/* By name; QUANT_TYPE_COUNT if there is none. */
QuantType quant_type_named(const char *name);

/* How results become codes; ROUND(NAME, "name in text forms", "how"). */
#define QUANT_ROUNDS                                                           \
    ROUND(UP, "up", "a factor of 31 bits, halves up")                          \
    ROUND(EVEN, "even", "floats of 32 bits, halves to the even code")          \
    ROUND(TERMS, "terms", "as even; of a sum of two first the smaller term")

typedef enum QuantRound {
#define ROUND(NAME, text, doc) QUANT_##NAME,
    QUANT_ROUNDS
#undef ROUND
        QUANT_ROUND_COUNT
} QuantRound;
extern const char *const quant_round_name[QUANT_ROUND_COUNT + 1]; /* NULL */
/* By floats, halves to the even code? */
static inline bool quant_by_floats(QuantRound round) {
    return round != QUANT_UP;
}
/* By name; QUANT_ROUND_COUNT if there is none. */
QuantRound quant_round_named(const char *name);

typedef struct Quant {
    QuantType type;
    int32_t zero; /* code of 0 */
    double scale;
    QuantRound round; /* of what is written here */
} Quant;

/* The value of an input that nobody gives: u is in [-1, 1); a real number, or
 * a code, each of the type's equally likely. */
float quant_seeded(QuantType type, double u);

/* Do codes mean the same? The rule of rounding may differ. */
bool quant_equal(const Quant *a, const Quant *b);
/* A type, a finite scale above 0, and a zero that is a code; or all zero. */
bool quant_sound(const Quant *q);

/* ---- layers ---- */

/* RULE(NAME, "name in text forms", "what it computes"). `q` are codes of an
 * input, `w` of the weights, each less its zero; [x] is x times a QuantScale,
 * rounded by the layer's QuantRound. Zero is added last, then codes are
 * clamped to lo..hi. Those that take several steps say here what they do where
 * halves go up; graph/quant.h has the other. */
#define QUANT_RULES                                                            \
    RULE(REALS, "reals", "the layer on real numbers; scale and round at last") \
    RULE(MOVES, "moves", "codes go elsewhere or are compared; then [q]")       \
    RULE(SUMS, "sums", "[bias + sum of q * w], a scale by output channel")     \
    RULE(ADDS, "adds", "[[q0 << left] +- [q1 << left]]")                       \
    RULE(PRODUCT, "product", "[q0 * q1]")                                      \
    RULE(MEANS, "means", "[sum of q] / n, halves away from 0")                 \
    RULE(TABLE, "table", "the result of each code, from a table")

typedef enum QuantRule {
#define RULE(NAME, text, doc) QUANT_##NAME,
    QUANT_RULES
#undef RULE
        QUANT_RULE_COUNT
} QuantRule;
extern const char *const quant_rule_name[QUANT_RULE_COUNT];

/* A factor of 31 bits: x times factor / 2^shift; shift is 1 to 62. One that is
 * a float has 24 of these bits. */
typedef struct QuantScale {
    int32_t factor;
    uint32_t shift;
} QuantScale;

/* As the float that it is. */
static inline float quant_float(QuantScale s) {
    return (float)ldexp((double)s.factor, -(int)s.shift);
}

/* Codes of 8 bits. */
enum { QUANT_TABLE_SIZE = 256 };

/* A layer's numbers. */
typedef struct QuantLayer {
    QuantRule rule;
    int32_t zero_in[2], zero_out;
    int32_t lo, hi; /* codes of results, the activation's bounds included */
    uint32_t left;  /* ADDS, halves up */
    bool minus;     /* ADDS: a difference */
    uint32_t n;     /* scales. SUMS: 1 or one a channel; ADDS: of the first
                     * input, of the second, of the result; others: 0 (none is
                     * needed) or 1. Halves to even, PRODUCT: as ADDS; MOVES: 0,
                     * or of the input, of the result */
    const QuantScale *scale;
    QuantRound round;
    const QuantScale *below; /* SUMS: n scales of sums below 0 where these
                              * differ (leaky ReLU), else NULL */
    const int16_t *table; /* TABLE: QUANT_TABLE_SIZE codes, the first of which
                           * is that of code zero_in[0]; else NULL */
} QuantLayer;

#endif
