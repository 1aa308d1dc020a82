/* numbers.c - integers for the stages of an arithmetic; numbers.h.
 *
 * In: a real factor and offset by channel, and a curve. The stage that
 * multiplies turns a sum into a position on the curve, in 2^-fine of a code;
 * the table, where there is one, turns it into a code. `fine` is the largest
 * for which all numbers have room. Since the multiplication rounds down, half
 * of its unit is added: what lies in the middle between two codes then goes up.
 */
#include "filegen/numbers.h"

#include <math.h>

enum { FINEST = 14, FINEST_SLOPED = 8, SLOPE_BITS = 12 };

Curve curve_of(int32_t lo, int32_t hi, int32_t zero, double slope) {
    Curve curve = {.n = 1, .piece = {{0, 0, lo}}};
    bool bends = slope > 0 && slope < 1 && lo < zero && zero < hi;
    if (bends)
        curve.piece[curve.n++] =
            (CurvePiece){zero + (lo - zero) / slope, slope, lo};
    int32_t from = bends ? zero : lo;
    if (!bends && slope <= 0 && lo < zero)
        curve.piece[0].code = from = zero;
    curve.piece[curve.n++] = (CurvePiece){from, 1, from};
    curve.piece[curve.n++] = (CurvePiece){hi, 0, hi};
    return curve;
}

typedef struct Solver {
    Arena *arena;
    const HwArith *arith;
    uint32_t channels;
    const double *factor, *offset;
    const Curve *curve;
    RequantStage *out;
    int fine;
    const char *why;
} Solver;

static bool has(const HwStage *s, StageParam param) {
    return s->param[param].given != HW_GIVEN_NOT;
}

static bool inside(const HwParam *p, double x) {
    return x >= (double)p->lo && x <= (double)p->hi;
}

static bool lacks(Solver *v, const char *why) {
    v->why = why;
    return false;
}

/* Values of a parameter: one, or `n`. */
static int64_t *values(Solver *v, uint32_t stage, StageParam param,
                       uint32_t n) {
    int64_t *value = ARENA_ARRAY(v->arena, int64_t, n);
    v->out[stage].of[param] = (StageValues){n, value};
    return value;
}

/* ---- the stage that multiplies ---- */

/* The most shift for which the multiplier has room; -1: there is none. */
static int shift_for(const HwStage *s, double factor) {
    int shift = (int)s->param[STAGE_SHIFT].hi;
    while (shift >= s->param[STAGE_SHIFT].lo &&
           !inside(&s->param[STAGE_MUL], nearbyint(ldexp(factor, shift))))
        shift--;
    return shift >= s->param[STAGE_SHIFT].lo ? shift : -1;
}

static bool multiply(Solver *v, uint32_t i) {
    const HwStage *s = &v->arith->stage[i];
    if (!has(s, STAGE_SHIFT) || !has(s, STAGE_ADD))
        return lacks(v, "the stage that multiplies has no shift or no add");
    int64_t *mul = values(v, i, STAGE_MUL, v->channels);
    int64_t *shift = values(v, i, STAGE_SHIFT, v->channels);
    int64_t *add = values(v, i, STAGE_ADD, v->channels);
    for (uint32_t c = 0; c < v->channels; c++) {
        double factor = ldexp(v->factor[c], v->fine);
        double offset = floor(ldexp(v->offset[c], v->fine) + 1);
        shift[c] = shift_for(s, factor);
        if (shift[c] < 0)
            return lacks(v, "a factor is too large");
        if (!inside(&s->param[STAGE_ADD], offset))
            return lacks(v, "a bias is too large");
        mul[c] = (int64_t)nearbyint(ldexp(factor, (int)shift[c]));
        add[c] = (int64_t)offset;
    }
    return true;
}

/* ---- the table ---- */

static bool is_bent(const Curve *curve) {
    for (uint32_t i = 0; i < curve->n; i++)
        if (curve->piece[i].slope > 0 && curve->piece[i].slope < 1)
            return true;
    return false;
}

static bool segment(Solver *v, const HwStage *s, const CurvePiece *piece,
                    int64_t *mul, int64_t *shift) {
    int bits = piece->slope > 0 && piece->slope < 1 ? SLOPE_BITS : 0;
    double slope = nearbyint(ldexp(piece->slope, bits));
    *mul = (int64_t)slope;
    *shift = piece->slope > 0 ? v->fine + bits : 0;
    return (inside(&s->param[STAGE_MUL], slope) &&
            inside(&s->param[STAGE_SHIFT], (double)*shift)) ||
           lacks(v, "a slope is too steep");
}

static bool tabulate(Solver *v, uint32_t i) {
    const HwStage *s = &v->arith->stage[i];
    const Curve *curve = v->curve;
    if (!has(s, STAGE_MUL) || !has(s, STAGE_SHIFT) || !has(s, STAGE_ADD) ||
        s->segments < curve->n)
        return lacks(v, "the table has too few segments or numbers");
    int64_t *start = values(v, i, STAGE_START, s->segments);
    int64_t *mul = values(v, i, STAGE_MUL, s->segments);
    int64_t *shift = values(v, i, STAGE_SHIFT, s->segments);
    int64_t *add = values(v, i, STAGE_ADD, s->segments);
    for (uint32_t k = 0; k < s->segments; k++) {
        bool used = k < curve->n;
        const CurvePiece *piece = &curve->piece[used ? k : curve->n - 1];
        double from = nearbyint(ldexp(piece->from, v->fine));
        start[k] = k == 0 ? s->param[STAGE_START].lo : s->param[STAGE_START].hi;
        add[k] = piece->code;
        if (!used)
            continue;
        if (k && !inside(&s->param[STAGE_START], from))
            return lacks(v, "a segment starts too far away");
        start[k] = k ? (int64_t)from : start[k];
        if (!segment(v, s, piece, &mul[k], &shift[k]))
            return false;
    }
    return true;
}

/* ---- all stages ---- */

/* Numbers that the hwspec gives itself. */
static bool given(Solver *v, uint32_t i) {
    const HwStage *s = &v->arith->stage[i];
    for (int p = 0; p < STAGE_PARAM_COUNT; p++) {
        if (s->param[p].given == HW_GIVEN_NOT)
            continue;
        if (s->param[p].given != HW_GIVEN_HERE)
            return lacks(v, "a stage has numbers that nothing here knows");
        *values(v, i, (StageParam)p, 1) = s->param[p].lo;
    }
    return true;
}

static bool solve(Solver *v) {
    bool multiplied = false, tabulated = false;
    for (uint32_t i = 0; i < v->arith->n_stages; i++) {
        const HwStage *s = &v->arith->stage[i];
        v->out[i] = (RequantStage){.round = s->round,
                                   .bias_at = s->bias_at,
                                   .segments = s->segments,
                                   .select = s->select};
        bool ok = s->segments                        ? tabulate(v, i)
                  : has(s, STAGE_MUL) && !multiplied ? multiply(v, i)
                                                     : given(v, i);
        if (!ok)
            return false;
        multiplied |= !s->segments && has(s, STAGE_MUL);
        tabulated |= s->segments > 0;
    }
    return (multiplied && tabulated) ||
           lacks(v, "it has no stage that multiplies, or none with a table");
}

RequantStage *numbers_stages(Arena *arena, const HwArith *arith,
                             uint32_t channels, const double *factor,
                             const double *offset, const Curve *curve,
                             const char **why) {
    Solver v = {.arena = arena,
                .arith = arith,
                .channels = channels,
                .factor = factor,
                .offset = offset,
                .curve = curve,
                .out = ARENA_ARRAY(arena, RequantStage, arith->n_stages)};
    for (v.fine = is_bent(curve) ? FINEST_SLOPED : FINEST; v.fine >= 0;
         v.fine--)
        if (solve(&v))
            return v.out;
    *why = v.why;
    return NULL;
}
