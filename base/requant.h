/* requant.h - from a sum to a code, by a list of integer stages.
 *
 * What a machine's description says (hwspec: `arithmetic`), applied: a sum of
 * 64 bits goes through stages; each adds, multiplies, shifts with a named
 * rounding, looks up a segment of a table, or cuts. All of it is exact; what
 * does not fit into 64 bits is told.
 *
 * Input: stages, and for each of their parameters a value, one a layer, one an
 * output channel, or one a segment. Output: codes.
 */
#ifndef BASE_REQUANT_H
#define BASE_REQUANT_H

#include <stdbool.h>
#include <stdint.h>

/* ROUNDING(NAME, "name in a hwspec", "what it does"). */
#define ROUNDINGS                                                              \
    ROUNDING(FLOOR, "floor", "towards less")                                   \
    ROUNDING(TRUNC, "trunc", "towards 0")                                      \
    ROUNDING(HALF_UP, "half_up", "to the nearest, halves up")                  \
    ROUNDING(HALF_AWAY, "half_away", "to the nearest, halves away from 0")     \
    ROUNDING(HALF_EVEN, "half_even", "to the nearest, halves to the even one") \
    ROUNDING(DOUBLE, "double",                                                 \
             "by 31 bits to the nearest, halves up, then by the others to "    \
             "the nearest, halves away from 0")                                \
    ROUNDING(FLOAT_EVEN, "float_even",                                         \
             "the product in 32 bit floats, to the nearest, halves to the "    \
             "even one")                                                       \
    ROUNDING(FLOAT_EVEN_CARRY, "float_even_carry",                             \
             "the same, where a float just below a power of two, plus 1, has " \
             "been rounded up")                                                \
    ROUNDING(HALF_EVEN_OUTWARD, "half_even_outward",                           \
             "as half_even, but a number below 0 that would go up goes one "   \
             "down instead")

typedef enum Rounding {
#define ROUNDING(NAME, text, doc) ROUND_##NAME,
    ROUNDINGS
#undef ROUNDING
        ROUND_COUNT
} Rounding;
extern const char *const rounding_name[ROUND_COUNT + 1]; /* NULL at the end */

/* What a stage does, in this order; each only where it has the parameter.
 * PARAM(NAME, "name in a hwspec", "what it does to x"). */
#define STAGE_PARAMS                                                           \
    PARAM(BIAS, "bias", "x + bias * 2^bias_at")                                \
    PARAM(START, "start", "of the segment of x: x - start")                    \
    PARAM(FACTOR, "factor", "x times a float, rounded")                        \
    PARAM(MUL, "mul", "x * mul")                                               \
    PARAM(SHIFT, "shift", "x / 2^shift, rounded; below 0: x * 2^-shift")       \
    PARAM(ADD, "add", "x + add")                                               \
    PARAM(MIN, "min", "the smaller of x and min")                              \
    PARAM(MAX, "max", "the larger of x and max")

typedef enum StageParam {
#define PARAM(NAME, text, doc) STAGE_##NAME,
    STAGE_PARAMS
#undef PARAM
        STAGE_PARAM_COUNT
} StageParam;
extern const char *const stage_param_name[STAGE_PARAM_COUNT + 1];

/* Which segment of a table x is in: the last whose start is below x (ABOVE), or
 * not above it (FROM). The starts need not rise. */
typedef enum StageSelect { SELECT_ABOVE, SELECT_FROM } StageSelect;

/* Of one layer. `value` NULL: the stage has no such parameter. */
typedef struct StageValues {
    uint32_t n; /* of values: 1, or one a channel, or one a segment */
    const int64_t *value;
} StageValues;

typedef struct RequantStage {
    StageValues of[STAGE_PARAM_COUNT];
    Rounding round;
    uint32_t bias_at;
    uint32_t segments; /* 0: no table; else START, MUL, SHIFT and ADD have as
                        * many values */
    StageSelect select;
} RequantStage;

typedef enum RequantFault {
    REQUANT_FINE,
    REQUANT_OVERFLOW,  /* a number of more than 64 bits, or no number */
    REQUANT_NO_SEGMENT /* x lies before all segments */
} RequantFault;

/* x / 2^shift; shift 0..62. DOUBLE: of a product, before which shift < 31 is
 * an exact step to the left; false where a number has no 32 bits there. The
 * rules on floats: as HALF_EVEN. */
bool round_shift(Rounding round, int64_t x, uint32_t shift, int64_t *out);
/* x times a factor, by a rule on floats; by any other, as FLOAT_EVEN. */
bool round_float(Rounding round, int64_t x, float factor, int64_t *out);

/* The code of a sum of channel `c`. `*at`: the stage where the fault is. */
RequantFault requant(uint32_t n, const RequantStage *stage, uint32_t c,
                     int64_t x, int64_t *out, uint32_t *at);

#endif
