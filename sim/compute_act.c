/* compute_act.c - activations on patches, by name; see compute.h. */
#include "sim/compute.h"

#include <math.h>
#include <string.h>

/* ---- functions of one number ---- */

typedef struct ActRow {
    ActStyle style;
    float lo, hi; /* CLIP: bounds of the name itself */
    double (*function)(const ActTask *task, double x);
} ActRow;

#define FUNCTION(name, value)                                                  \
    static double fn_##name(const ActTask *task, double x) {                   \
        (void)task;                                                            \
        return value;                                                          \
    }                                                                          \
    static const ActRow row_##name = {ACT_STYLE_FUNCTION, 0, 0, fn_##name};
#define ALPHA ((double)task->alpha)
#define LO ((double)task->lo)
#define HI ((double)task->hi)

static double logistic(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double softplus(double x) {
    return x > 30 ? x + exp(-x) : log1p(exp(x));
}

static double between(double x, double lo, double hi) {
    x = x < lo ? lo : x; /* NaN stays */
    return x > hi ? hi : x;
}

/* To the nearest; halves to the even one. */
static double nearest(double x) {
    return isinf(x) ? x : x - remainder(x, 1.0);
}

/* To the nearest float with so many bits of fraction, none below 2^least. */
static double narrowed(double x, int fraction, int least, double most) {
    if (!(fabs(x) > 0) || isinf(x))
        return x;
    double unit = exp2(fmax(logb(x) - fraction, least));
    double near = x - remainder(x, unit);
    return fabs(near) > most ? copysign((double)INFINITY, x)
                             : copysign(near, x);
}

FUNCTION(sigmoid, logistic(x))
FUNCTION(tanh, tanh(x))
FUNCTION(elu, x < 0 ? ALPHA * (exp(x) - 1) : x)
FUNCTION(selu, x < 0 ? HI * ALPHA * (exp(x) - 1) : HI * x)
FUNCTION(celu, x < 0 ? ALPHA * (exp(x / ALPHA) - 1) : x)
FUNCTION(softplus, softplus(x))
FUNCTION(softsign, x < 0 ? x / (1 - x) : x / (1 + x))
FUNCTION(hard_sigmoid, between(ALPHA *x + LO, 0, 1))
FUNCTION(hard_swish, x *between(x + 3, 0, 6) / 6)
FUNCTION(silu, x *logistic(x))
FUNCTION(gelu, x *erfc(-x / sqrt(2)) / 2)
FUNCTION(gelu_tanh,
         x / 2 *
             (1 + tanh(sqrt(8 / acos(-1)) / 2 * (x + 0.044715 * x * x * x))))
FUNCTION(mish, x *tanh(softplus(x)))
FUNCTION(threshold, x > ALPHA ? x : 0)
FUNCTION(shrink, x < -ALPHA ? x + LO : x <= ALPHA ? 0 : x - LO)
FUNCTION(abs, x < 0 ? -x : x)
FUNCTION(neg, -x)
FUNCTION(exp, exp(x))
FUNCTION(log, log(x))
FUNCTION(sqrt, sqrt(x))
FUNCTION(reciprocal, 1 / x)
FUNCTION(erf, erf(x))
FUNCTION(sin, sin(x))
FUNCTION(cos, cos(x))
FUNCTION(tan, tan(x))
FUNCTION(asin, asin(x))
FUNCTION(acos, acos(x))
FUNCTION(atan, atan(x))
FUNCTION(sinh, sinh(x))
FUNCTION(cosh, cosh(x))
FUNCTION(asinh, asinh(x))
FUNCTION(acosh, acosh(x))
FUNCTION(atanh, atanh(x))
FUNCTION(floor, floor(x))
FUNCTION(ceil, ceil(x))
FUNCTION(round, nearest(x))
FUNCTION(trunc, x < 0 ? ceil(x) : floor(x))
FUNCTION(sign, x<0 ? -1 : x> 0 ? 1 : x)
FUNCTION(not, x >= 0 && x <= 0)
FUNCTION(to_f16, narrowed(x, 10, -24, 65504))
FUNCTION(to_bf16, narrowed(x, 7, -133, 0x1.FEp127))

/* ---- others ---- */

static const ActRow row_none = {ACT_STYLE_NONE, 0, 0, NULL};
static const ActRow row_relu = {ACT_STYLE_CLIP, 0, INFINITY, NULL};
static const ActRow row_relu6 = {ACT_STYLE_CLIP, 0, 6, NULL};
static const ActRow row_clip = {ACT_STYLE_CLIP, 0, 0, NULL};
static const ActRow row_leaky = {ACT_STYLE_SLOPE, 0, 0, NULL};
static const ActRow row_prelu = {ACT_STYLE_SLOPE, 0, 0, NULL};

/* ---- by name ---- */

static const struct {
    const char *name;
    const ActRow *row;
} acts[] = {
#define ACT(NAME, name) {#name, &row_##name},
#include "base/acts.def"
#undef ACT
};

bool act_named(const char *kind, double alpha, double lo, double hi,
               ActTask *out) {
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        const ActRow *row = acts[i].row;
        if (strcmp(acts[i].name, kind) != 0)
            continue;
        bool own = row->style == ACT_STYLE_CLIP && strcmp(kind, "clip") != 0;
        *out = (ActTask){.style = row->style,
                         .alpha = (float)alpha,
                         .lo = own ? row->lo : (float)lo,
                         .hi = own ? row->hi : (float)hi,
                         .function = row->function};
        return true;
    }
    return false;
}

/* ---- running ---- */

static float act_one(const ActTask *task, float slope, float x) {
    switch (task->style) {
    case ACT_STYLE_CLIP:
        x = x < task->lo ? task->lo : x; /* NaN stays */
        return x > task->hi ? task->hi : x;
    case ACT_STYLE_SLOPE:
        return x > 0 ? x : slope * x;
    case ACT_STYLE_FUNCTION:
        return (float)task->function(task, (double)x);
    case ACT_STYLE_NONE:
        break;
    }
    return x;
}

void act_run(const ActTask *task, Patch *patch) {
    if (task->style == ACT_STYLE_NONE)
        return;
    size_t plane = patch_plane(patch);
    for (uint32_t c = 0; c < patch->full.c; c++) {
        float slope = task->slope ? task->slope[c] : task->alpha;
        float *at = patch->at + c * plane;
        for (size_t i = 0; i < plane; i++)
            at[i] = act_one(task, slope, at[i]);
    }
}
