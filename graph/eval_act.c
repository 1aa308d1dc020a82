/* eval_act.c - activations: functions of one number, from the table acts.def.
 *
 * In and out: values in the order of the shape; channels are axis 1. Computed
 * in double, rounded once.
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

#define ACT(NAME, text, value)                                                 \
    static double value_##NAME(const Act *a, double x) {                       \
        (void)a;                                                               \
        return value;                                                          \
    }
#include "graph/acts.def"
#undef ACT

static double (*const act_value[ACT_COUNT])(const Act *, double) = {
#define ACT(NAME, text, value) value_##NAME,
#include "graph/acts.def"
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

void eval_act(const Eval *e, const Shape *shape, float *value) {
    const Act *act = &e->node->act;
    size_t n = shape_count(shape);
    if (act->kind == ACT_PRELU)
        act_slopes(e, shape, value);
    else if (act->kind == ACT_RELU) /* by far the commonest */
        for (size_t i = 0; i < n; i++)
            value[i] = value[i] > 0 ? value[i] : 0;
    else if (act->kind != ACT_NONE)
        for (size_t i = 0; i < n; i++)
            value[i] = (float)act_value[act->kind](act, (double)value[i]);
}
