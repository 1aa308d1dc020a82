/* arithmetic.h - how an engine computes on codes, from sums to results: as the
 * file says it. */
#ifndef HWSPEC_ARITHMETIC_H
#define HWSPEC_ARITHMETIC_H

#include "base/diag.h"
#include "base/requant.h"

/* Whole numbers of so many bits, 1..64. */
typedef struct HwCode {
    uint32_t bits; /* 0: not said */
    bool is_signed;
} HwCode;
int64_t hw_code_least(HwCode code);
int64_t hw_code_most(HwCode code);

/* What happens to a sum that its type does not hold. */
typedef enum HwOverflow {
    HW_OVERFLOW_NEVER,
    HW_WRAPS,
    HW_SATURATES
} HwOverflow;

/* Where a number of the arithmetic comes from. */
typedef enum HwGiven {
    HW_GIVEN_NOT,     /* there is none */
    HW_GIVEN_HERE,    /* lo = hi: the number */
    HW_GIVEN_ZERO,    /* the zero point: of the result; of the input for pads */
    HW_GIVEN_LAYER,   /* one a layer, in lo..hi */
    HW_GIVEN_CHANNEL, /* one an output channel */
    HW_GIVEN_SEGMENT  /* one a segment of the stage's table */
} HwGiven;
typedef struct HwParam {
    HwGiven given;
    int64_t lo, hi;
} HwParam;

/* One stage from sum to code; base/requant.h computes it. A number that is
 * given by layer, channel or segment is the meaning `stage.param`. */
typedef struct HwStage {
    const char *name; /* NULL: all its numbers are given here */
    Loc loc;
    bool by_channel, to_codes;
    HwParam param[STAGE_PARAM_COUNT];
    bool has_round;
    Rounding round;
    uint32_t bias_at;
    uint32_t segments; /* 0: no table */
    StageSelect select;
} HwStage;

/* How the zero points of a sum of products are taken away. */
typedef enum HwZeroKind {
    HW_ZERO_ANY,     /* codes less their zero points are multiplied */
    HW_ZERO_NONE,    /* zero points are 0 */
    HW_ZERO_EXPANDED /* codes are multiplied; terms are added, see below */
} HwZeroKind;
/* Of the expanded form: to the sum of products are added x times the sum of
 * the inputs, / 2^shift_x, w times that of the weights, / 2^shift_w (both
 * downwards), and xw once for each input channel. The inputs' sum has pads. */
typedef enum HwZeroTerm {
    HW_ZERO_X,
    HW_ZERO_W,
    HW_ZERO_XW,
    HW_ZERO_SHIFT_X,
    HW_ZERO_SHIFT_W,
    HW_ZERO_TERMS
} HwZeroTerm;
extern const char *const hw_zero_term[HW_ZERO_TERMS + 1]; /* "x" */

typedef struct HwArith {
    const char *name;
    Loc loc;
    HwParam pad; /* the code outside a volume */
    HwCode activations, weights, bias, sums;
    HwOverflow overflow; /* of sums */
    bool pow2;           /* scales are powers of two */
    HwZeroKind zero_points;
    HwParam zero[HW_ZERO_TERMS];
    uint32_t n_stages;
    const HwStage *stage;
} HwArith;

#endif
