/* act.c - what base/acts.def and graph/elts.def say, as code; see act.h. */
#include "native/llvm/act.h"

#include <math.h>
#include <string.h>

/* ---- functions of one number ---- */

#define FUNCTION(name, value)                                                  \
    static Val fn_##name(Code *c, const Epilogue *e, Val x) {                  \
        (void)e;                                                               \
        return value;                                                          \
    }
#define NUMBER(value) code_float(x, (value))

static Val clip(Code *c, Val x, double lo, double hi) {
    return float_min(c, float_max(c, x, NUMBER(lo)), NUMBER(hi));
}

/* below: the value for x <= 0. */
static Val above_zero(Code *c, Val x, Val above, Val below) {
    return code_select(c, float_less(c, NUMBER(0), x), above, below);
}

/* alpha * (exp(x / over) - 1) */
static Val scaled_expm1(Code *c, Val x, double alpha, double over) {
    Val to = over == 1 ? x : float_div(c, x, NUMBER(over));
    return float_mul(c, NUMBER(alpha), math_expm1(c, to));
}

static Val gelu_tanh(Code *c, Val x) {
    Val cube = float_mul(c, float_mul(c, x, x), x);
    Val inner = float_fma(c, NUMBER(0.044715), cube, x);
    /* (1 + tanh t) / 2 = sigmoid(2 t) */
    inner = float_mul(c, inner, NUMBER(2 * 0.7978845608028654));
    return float_mul(c, x, math_sigmoid(c, inner));
}

static Val gelu(Code *c, Val x) {
    Val tail = math_erfc(c, float_mul(c, x, NUMBER(-0.7071067811865476)));
    return float_mul(c, float_mul(c, x, NUMBER(0.5)), tail);
}

static Val shrink(Code *c, const Epilogue *e, Val x) {
    Val inside = float_less_equal(c, x, NUMBER(e->alpha));
    Val above =
        code_select(c, inside, NUMBER(0), float_sub(c, x, NUMBER(e->lo)));
    Val below = float_less(c, x, NUMBER(-e->alpha));
    return code_select(c, below, float_add(c, x, NUMBER(e->lo)), above);
}

static Val sign(Code *c, Val x) {
    Val zero = NUMBER(0);
    Val below = code_select(c, float_less(c, x, zero), NUMBER(-1), x);
    return code_select(c, float_less(c, zero, x), NUMBER(1), below);
}

FUNCTION(relu, float_max(c, x, NUMBER(0)))
FUNCTION(relu6, clip(c, x, 0, 6))
FUNCTION(clip, clip(c, x, e->lo, e->hi))
FUNCTION(leaky, above_zero(c, x, x, float_mul(c, NUMBER(e->alpha), x)))
FUNCTION(sigmoid, math_sigmoid(c, x))
FUNCTION(tanh, math_tanh(c, x))
FUNCTION(elu, above_zero(c, x, x, scaled_expm1(c, x, e->alpha, 1)))
FUNCTION(selu, float_mul(c, NUMBER(e->hi),
                         above_zero(c, x, x, scaled_expm1(c, x, e->alpha, 1))))
FUNCTION(celu, above_zero(c, x, x, scaled_expm1(c, x, e->alpha, e->alpha)))
FUNCTION(softplus, math_softplus(c, x))
FUNCTION(softsign, float_div(c, x, float_add(c, float_abs(c, x), NUMBER(1))))
FUNCTION(hard_sigmoid,
         clip(c, float_fma(c, NUMBER(e->alpha), x, NUMBER(e->lo)), 0, 1))
FUNCTION(hard_swish,
         float_mul(c, x,
                   clip(c, float_fma(c, x, NUMBER(1.0 / 6), NUMBER(0.5)), 0,
                        1)))
FUNCTION(silu, float_mul(c, x, math_sigmoid(c, x)))
FUNCTION(gelu, gelu(c, x))
FUNCTION(gelu_tanh, gelu_tanh(c, x))
FUNCTION(mish, float_mul(c, x, math_tanh(c, math_softplus(c, x))))
FUNCTION(threshold,
         code_select(c, float_less(c, NUMBER(e->alpha), x), x, NUMBER(0)))
FUNCTION(shrink, shrink(c, e, x))
FUNCTION(abs, float_abs(c, x))
FUNCTION(neg, float_neg(c, x))
FUNCTION(exp, math_exp(c, x))
FUNCTION(log, math_log(c, x))
FUNCTION(sqrt, float_sqrt(c, x))
FUNCTION(reciprocal, float_div(c, NUMBER(1), x))
FUNCTION(erf, math_erf(c, x))
FUNCTION(sin, math_sin(c, x))
FUNCTION(cos, math_cos(c, x))
FUNCTION(tan, math_tan(c, x))
FUNCTION(asin, math_asin(c, x))
FUNCTION(acos, math_acos(c, x))
FUNCTION(atan, math_atan(c, x))
FUNCTION(sinh, math_sinh(c, x))
FUNCTION(cosh, math_cosh(c, x))
FUNCTION(asinh, math_asinh(c, x))
FUNCTION(acosh, math_acosh(c, x))
FUNCTION(atanh, math_atanh(c, x))
FUNCTION(floor, math_floor(c, x))
FUNCTION(ceil, math_ceil(c, x))
FUNCTION(round, math_round(c, x))
FUNCTION(trunc, math_trunc(c, x))
FUNCTION(sign, sign(c, x))
FUNCTION(to_f16, math_to_half(c, x))
FUNCTION(to_bf16, math_to_brain(c, x))
FUNCTION(not, float_of_bool(c, float_equal(c, x, NUMBER(0)), x))

/* The value itself; by slopes of each channel: epilogue_apply. */
#define fn_none NULL
#define fn_prelu NULL

static const struct ActRow {
    const char *name;
    Val (*apply)(Code *c, const Epilogue *e, Val x);
} act_rows[] = {
#define ACT(NAME, name) {#name, fn_##name},
#include "base/acts.def"
#undef ACT
};

bool epilogue_read(const Kernel *kernel, Epilogue *out) {
    const AttrPair *act = kernel_attr(kernel, "act");
    *out = (Epilogue){.alpha = kernel_number(kernel, "alpha", 0, 0),
                      .lo = kernel_number(kernel, "lo", 0, 0),
                      .hi = kernel_number(kernel, "hi", 0, 0)};
    if (!act || !act->word)
        return true;
    for (size_t i = 0; i < sizeof act_rows / sizeof *act_rows; i++)
        if (strcmp(act_rows[i].name, act->word) == 0) {
            out->apply = act_rows[i].apply;
            out->by_channel = strcmp(act->word, "prelu") == 0;
            return !out->by_channel || kernel_constant(kernel, "slope") >= 0;
        }
    return false;
}

Val epilogue_apply(Code *c, const Epilogue *e, Val x, Val slope) {
    if (e->by_channel)
        return above_zero(c, x, x, float_mul(c, slope, x));
    return e->apply ? e->apply(c, e, x) : x;
}

/* ---- functions of two numbers ---- */

/* Of comparisons: 1 or 0. */
static Val truth(Code *c, Val condition, Val like) {
    return float_of_bool(c, condition, like);
}

static Val is_true(Code *c, Val x) {
    Val zero = float_equal(c, x, NUMBER(0));
    return LLVMBuildNot(c->builder, zero, "");
}

static Val bin_prelu(Code *c, Val a, Val b) {
    Val negative = float_less(c, a, code_float(a, 0));
    return code_select(c, negative, float_mul(c, a, b), a);
}
static Val bin_equal(Code *c, Val a, Val b) {
    return truth(c, float_equal(c, a, b), a);
}
static Val bin_less(Code *c, Val a, Val b) {
    return truth(c, float_less(c, a, b), a);
}
static Val bin_less_equal(Code *c, Val a, Val b) {
    return truth(c, float_less_equal(c, a, b), a);
}
static Val bin_greater(Code *c, Val a, Val b) {
    return truth(c, float_less(c, b, a), a);
}
static Val bin_greater_equal(Code *c, Val a, Val b) {
    return truth(c, float_less_equal(c, b, a), a);
}
static Val bin_and(Code *c, Val a, Val b) {
    Val both = LLVMBuildAnd(c->builder, is_true(c, a), is_true(c, b), "");
    return truth(c, both, a);
}
static Val bin_or(Code *c, Val a, Val b) {
    Val any = LLVMBuildOr(c->builder, is_true(c, a), is_true(c, b), "");
    return truth(c, any, a);
}
static Val bin_xor(Code *c, Val a, Val b) {
    Val one = LLVMBuildXor(c->builder, is_true(c, a), is_true(c, b), "");
    return truth(c, one, a);
}

static const struct BinaryRow {
    const char *name;
    Binary *run;
} binary_rows[] = {
    {"add", float_add},       {"mul", float_mul},
    {"max", float_largest},   {"min", float_least},
    {"sub", float_sub},       {"div", float_div},
    {"mod", math_mod},        {"fmod", math_fmod},
    {"pow", math_pow},        {"prelu", bin_prelu},
    {"equal", bin_equal},     {"less", bin_less},
    {"greater", bin_greater}, {"less_equal", bin_less_equal},
    {"and", bin_and},         {"greater_equal", bin_greater_equal},
    {"or", bin_or},           {"xor", bin_xor},
};

Binary *binary_named(const char *name) {
    for (size_t i = 0; i < sizeof binary_rows / sizeof *binary_rows; i++)
        if (strcmp(binary_rows[i].name, name) == 0)
            return binary_rows[i].run;
    return NULL;
}
