/* eval_act.c - activations: functions of one number, those of base/acts.def.
 *
 * In and out: values in the order of the shape; channels are axis 1. Computed
 * in double, rounded once. NaN stays NaN but where the result is a truth, or
 * where `threshold` asks whether a number is large enough.
 */
#include "base/half.h"
#include "graph/eval.h"

#include <math.h>

static double act_clip(double x, double lo, double hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

static double act_sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* log(1 + exp(x)) without overflow. */
static double act_softplus(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* Halves to the even neighbour, whatever the rounding mode. */
static double act_round_even(double x) {
    double low = floor(x), over = x - low;
    if (over == 0.5)
        return fmod(low, 2.0) == 0.0 ? low : low + 1.0;
    return over < 0.5 ? low : low + 1.0;
}

/* ---- what alpha, lo and hi of the Act mean is what the row says ---- */

#define FUNCTION(name, value)                                                  \
    static double value_##name(const Act *a, double x) {                       \
        (void)a;                                                               \
        return value;                                                          \
    }

FUNCTION(none, x)
FUNCTION(relu, x <= 0 ? 0 : x)
FUNCTION(relu6, act_clip(x, 0, 6))
FUNCTION(leaky, x > 0 ? x : a->alpha * x)
/* Slopes are constants by channel: act_slopes. */
FUNCTION(prelu, x)
FUNCTION(sigmoid, act_sigmoid(x))
FUNCTION(tanh, tanh(x))
FUNCTION(clip, act_clip(x, a->lo, a->hi))
FUNCTION(elu, x > 0 ? x : a->alpha * expm1(x))
FUNCTION(selu, a->hi *(x > 0 ? x : a->alpha * expm1(x)))
FUNCTION(celu, x > 0 ? x : a->alpha * expm1(x / a->alpha))
FUNCTION(softplus, act_softplus(x))
FUNCTION(softsign, x / (1 + fabs(x)))
FUNCTION(hard_sigmoid, act_clip(a->alpha *x + a->lo, 0, 1))
FUNCTION(hard_swish, x *act_clip(x / 6 + 0.5, 0, 1))
FUNCTION(silu, x *act_sigmoid(x))
FUNCTION(gelu, 0.5 * x * (1 + erf(x * sqrt(0.5))))
FUNCTION(gelu_tanh,
         0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
FUNCTION(mish, x *tanh(act_softplus(x)))
FUNCTION(threshold, x > a->alpha ? x : 0)
FUNCTION(shrink, x < -a->alpha ? x + a->lo : x <= a->alpha ? 0 : x - a->lo)
FUNCTION(abs, fabs(x))
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
FUNCTION(round, act_round_even(x))
FUNCTION(trunc, trunc(x))
FUNCTION(sign, x > 0 ? 1 : x < 0 ? -1 : x)
FUNCTION(not, x == 0)
FUNCTION(to_f16, round_to_half(x))
FUNCTION(to_bf16, round_to_brain(x))

static double (*const act_value[ACT_COUNT])(const Act *, double) = {
#define ACT(NAME, name) [ACT_##NAME] = value_##name,
#include "base/acts.def"
#undef ACT
};

static void act_slopes(const Eval *e, const Shape *shape, float *value) {
    const float *slope = eval_need_const(e, CONST_SLOPE);
    Split s = eval_split(shape, 1);
    for (size_t n = 0; n < s.outer; n++)
        for (size_t c = 0; c < s.axis; c++)
            for (size_t i = 0; i < s.inner; i++, value++)
                if (*value < 0)
                    *value *= slope[c];
}

float eval_act(const Act *act, float x) {
    return (float)act_value[act->kind](act, (double)x);
}

void eval_activate(const Eval *e, const Shape *shape, float *value) {
    const Act *act = &e->node->act;
    size_t n = shape_count(shape);
    if (act->kind == ACT_PRELU)
        act_slopes(e, shape, value);
    else if (act->kind == ACT_RELU) /* by far the commonest */
        for (size_t i = 0; i < n; i++)
            value[i] = value[i] <= 0 ? 0 : value[i];
    else if (act->kind != ACT_NONE)
        for (size_t i = 0; i < n; i++)
            value[i] = eval_act(act, value[i]);
}
