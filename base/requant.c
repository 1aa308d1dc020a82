/* requant.c - integer stages and their roundings; see requant.h. */
#include "base/requant.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const rounding_name[ROUND_COUNT + 1] = {
#define ROUNDING(NAME, text, doc) [ROUND_##NAME] = (text),
    ROUNDINGS
#undef ROUNDING
};

const char *const stage_param_name[STAGE_PARAM_COUNT + 1] = {
#define PARAM(NAME, text, doc) [STAGE_##NAME] = (text),
    STAGE_PARAMS
#undef PARAM
};

/* ---- roundings ---- */

/* x / 2^shift downwards, and what is left of it, in 0..2^shift - 1. */
typedef struct Parts {
    int64_t floor, rest, half;
} Parts;

static Parts parts_of(int64_t x, uint32_t shift) {
    int64_t unit = INT64_C(1) << shift;
    int64_t rest = x & (unit - 1);
    return (Parts){(x - rest) / unit, rest, unit / 2};
}

/* Is the fraction above a half, or a half that goes up by the rule? */
static bool goes_up(Rounding round, int64_t x, const Parts *p) {
    if (p->rest != p->half)
        return p->rest > p->half;
    switch (round) {
    case ROUND_HALF_UP:
        return true;
    case ROUND_HALF_AWAY:
        return x >= 0;
    default:
        return p->floor & 1;
    }
}

bool round_shift(Rounding round, int64_t x, uint32_t shift, int64_t *out) {
    Parts p = parts_of(x, shift);
    *out = p.floor;
    if (shift == 0 || round == ROUND_FLOOR)
        return true;
    if (round == ROUND_TRUNC)
        *out += x < 0 && p.rest;
    else if (goes_up(round, x, &p))
        *out += round == ROUND_HALF_EVEN_OUTWARD && x < 0 ? -1 : 1;
    return true;
}

/* A product of two numbers of 32 bits, by 31 bits and then by the rest. */
static bool round_double(int64_t x, int64_t mul, uint32_t shift, int64_t *out) {
    enum { FIRST = 31 };
    int64_t left = INT64_C(1) << (shift < FIRST ? FIRST - shift : 0);
    int64_t wide;
    if (__builtin_mul_overflow(x, left, &wide) || wide < INT32_MIN ||
        wide > INT32_MAX || mul < INT32_MIN || mul > INT32_MAX)
        return false;
    int64_t nearest;
    round_shift(ROUND_HALF_UP, wide * mul, FIRST, &nearest);
    if (nearest > INT32_MAX) /* of the two least numbers */
        nearest = INT32_MAX;
    return round_shift(ROUND_HALF_AWAY, nearest,
                       shift > FIRST ? shift - FIRST : 0, out);
}

static float half_even(float y) {
    float below = floorf(y), rest = y - below;
    bool odd = fmodf(below, 2) != 0;
    return below + (rest > 0.5F || (rest == 0.5F && odd) ? 1 : 0);
}

/* The neighbour further from 0 is found by adding 1 before the cut. */
static float half_even_carry(float y) {
    float near = truncf(y);
    float far = truncf(y < 0 ? y - 1 : y + 1);
    float rest = fabsf(y - near);
    if (rest == 0.5F)
        return fmodf(near, 2) == 0 ? near : far;
    return rest < 0.5F ? near : far;
}

bool round_float(Rounding round, int64_t x, float factor, int64_t *out) {
    const float most = 9.2e18F; /* below 2^63 */
    float y = (float)x * factor;
    if (!(fabsf(y) < most))
        return false;
    *out = (int64_t)(round == ROUND_FLOAT_EVEN_CARRY ? half_even_carry(y)
                                                     : half_even(y));
    return true;
}

/* ---- stages ---- */

static int64_t value_at(const StageValues *v, uint32_t i) {
    return v->value[v->n > 1 ? i : 0];
}

/* The last segment that x is in; `segments`: none. */
static uint32_t segment_of(const RequantStage *s, int64_t x) {
    const int64_t *start = s->of[STAGE_START].value;
    for (uint32_t i = s->segments; i-- > 0;)
        if (s->select == SELECT_ABOVE ? x > start[i] : x >= start[i])
            return i;
    return s->segments;
}

static bool times_power(int64_t x, uint32_t power, int64_t *out) {
    return !__builtin_mul_overflow(x, INT64_C(1) << power, out);
}

/* x * mul / 2^shift. */
static bool scale(const RequantStage *s, uint32_t i, int64_t x, int64_t *out) {
    const StageValues *mul = &s->of[STAGE_MUL], *shift = &s->of[STAGE_SHIFT];
    int64_t by = shift->value ? value_at(shift, i) : 0;
    int64_t factor = mul->value ? value_at(mul, i) : 1;
    if (s->round == ROUND_DOUBLE && by >= 0)
        return round_double(x, factor, (uint32_t)by, out);
    if (__builtin_mul_overflow(x, factor, &x))
        return false;
    return by < 0 ? times_power(x, (uint32_t)-by, out)
                  : round_shift(s->round, x, (uint32_t)by, out);
}

static float as_float(int64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static bool has(const RequantStage *s, StageParam param) {
    return s->of[param].value != NULL;
}

static bool add_bias(const RequantStage *s, uint32_t i, int64_t *x) {
    int64_t bias;
    return times_power(value_at(&s->of[STAGE_BIAS], i), s->bias_at, &bias) &&
           !__builtin_add_overflow(*x, bias, x);
}

/* All but the choice of a segment; i: the channel, or the segment. False: the
 * number has no 64 bits. */
static bool run_stage(const RequantStage *s, uint32_t i, int64_t *x) {
    bool ok = !has(s, STAGE_BIAS) || add_bias(s, i, x);
    if (has(s, STAGE_START))
        ok &= !__builtin_sub_overflow(*x, value_at(&s->of[STAGE_START], i), x);
    if (has(s, STAGE_FACTOR))
        ok &= round_float(s->round, *x,
                          as_float(value_at(&s->of[STAGE_FACTOR], i)), x);
    if (has(s, STAGE_MUL) || has(s, STAGE_SHIFT))
        ok &= scale(s, i, *x, x);
    if (has(s, STAGE_ADD))
        ok &= !__builtin_add_overflow(*x, value_at(&s->of[STAGE_ADD], i), x);
    if (has(s, STAGE_MIN) && *x > value_at(&s->of[STAGE_MIN], i))
        *x = value_at(&s->of[STAGE_MIN], i);
    if (has(s, STAGE_MAX) && *x < value_at(&s->of[STAGE_MAX], i))
        *x = value_at(&s->of[STAGE_MAX], i);
    return ok;
}

RequantFault requant(uint32_t n, const RequantStage *stage, uint32_t c,
                     int64_t x, int64_t *out, uint32_t *at) {
    for (*at = 0; *at < n; ++*at) {
        const RequantStage *s = &stage[*at];
        uint32_t i = s->segments ? segment_of(s, x) : c;
        if (s->segments && i == s->segments)
            return REQUANT_NO_SEGMENT;
        if (!run_stage(s, i, &x))
            return REQUANT_OVERFLOW;
    }
    *out = x;
    return REQUANT_FINE;
}
