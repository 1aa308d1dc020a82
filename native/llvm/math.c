/* math.c - functions of numbers as polynomials; see math.h. */
#include "native/llvm/math.h"

#include <math.h>

/* coefficient[0] + coefficient[1] * x + ... */
static Val polynomial(Code *c, Val x, uint32_t n, const double *coefficient) {
    Val sum = code_float(x, coefficient[n - 1]);
    for (uint32_t i = n - 1; i-- > 0;)
        sum = float_fma(c, sum, x, code_float(x, coefficient[i]));
    return sum;
}

#define POLYNOMIAL(c, x, ...)                                                  \
    polynomial((c), (x),                                                       \
               sizeof((const double[]){__VA_ARGS__}) / sizeof(double),         \
               (const double[]){__VA_ARGS__})

static Val square(Code *c, Val x) {
    return float_mul(c, x, x);
}

/* x + x^3 * p, for odd functions that start like x. */
static Val odd(Code *c, Val x, Val square_of_x, Val p) {
    return float_fma(c, float_mul(c, x, square_of_x), p, x);
}

static Val add_number(Code *c, Val x, double number) {
    return float_add(c, x, code_float(x, number));
}

static Val times(Code *c, Val x, double number) {
    return float_mul(c, x, code_float(x, number));
}

/* ---- to whole numbers ---- */

/* Numbers from here on are whole ones. */
static const double whole_from = 8388608.0; /* 2^23 */

Val math_round(Code *c, Val x) {
    Val size = float_abs(c, x), shift = code_float(x, whole_from);
    Val near = float_sub(c, float_add(c, size, shift), shift);
    Val whole = float_copysign(c, near, x);
    return code_select(c, float_less(c, size, shift), whole, x);
}

/* The whole number by rounding, moved by `move` where it is on the wrong side.
 */
static Val corrected(Code *c, Val x, Val wrong, Val whole, double move) {
    Val moved = add_number(c, whole, move);
    return float_copysign(c, code_select(c, wrong, moved, whole), x);
}

Val math_floor(Code *c, Val x) {
    Val whole = math_round(c, x);
    return corrected(c, whole, float_less(c, x, whole), whole, -1);
}

Val math_ceil(Code *c, Val x) {
    Val whole = math_round(c, x);
    Val up = corrected(c, x, float_less(c, whole, x), whole, 1);
    return up;
}

Val math_trunc(Code *c, Val x) {
    return float_copysign(c, math_floor(c, float_abs(c, x)), x);
}

/* ---- remainders ---- */

Val math_fmod(Code *c, Val x, Val y) {
    Val whole = math_trunc(c, float_div(c, x, y));
    Val rest = float_fma(c, float_neg(c, whole), y, x);
    Val size = float_copysign(c, rest, float_mul(c, rest, x));
    Val step = float_abs(c, y), zero = code_float(x, 0);
    /* the quotient may have been rounded to the next whole number */
    size = code_select(c, float_less(c, size, zero), float_add(c, size, step),
                       size);
    size = code_select(c, float_less_equal(c, step, size),
                       float_sub(c, size, step), size);
    return float_copysign(c, size, x);
}

Val math_mod(Code *c, Val x, Val y) {
    Val rest = math_fmod(c, x, y), zero = code_float(x, 0);
    Val opposite = float_less(c, float_mul(c, rest, y), zero);
    return code_select(c, opposite, float_add(c, rest, y), rest);
}

/* ---- to fewer bits ---- */

/* Without the last `n` bits of the mantissa, rounded to the nearest, halves to
 * the even one. A no-number may become infinite. */
static Val shorter(Code *c, Val x, unsigned n) {
    Val bits = float_bits(c, x), one = code_int(bits, 1);
    Val last = LLVMBuildLShr(c->builder, bits, code_int(bits, n), "");
    last = LLVMBuildAnd(c->builder, last, one, "");
    Val up = int_add(c, last, code_int(bits, (INT64_C(1) << (n - 1)) - 1));
    Val mask = code_int(bits, -(INT64_C(1) << n));
    Val kept = LLVMBuildAnd(c->builder, int_add(c, bits, up), mask, "");
    return float_of_bits(c, kept, x);
}

Val math_to_brain(Code *c, Val x) {
    return code_select(c, float_equal(c, x, x), shorter(c, x, 16), x);
}

/* From 65520 on all is infinite; below 2^-14 the steps are 2^-24. */
Val math_to_half(Code *c, Val x) {
    Val size = float_abs(c, x), shift = code_float(x, 0.5);
    Val tiny = float_sub(c, float_add(c, size, shift), shift);
    Val value = shorter(c, size, 13);
    value = code_select(c, float_less(c, size, code_float(x, 6.103515625e-5)),
                        tiny, value);
    Val huge = float_less_equal(c, code_float(x, 65520), size);
    value = code_select(c, huge, code_float(x, INFINITY), value);
    value = float_copysign(c, value, x);
    return code_select(c, float_equal(c, x, x), value, x);
}

/* ---- exponentials ---- */

/* x to the nearest whole number, as a float and as an integer; |x| < 2^21. A
 * no-number gives some integer. */
static Val nearest(Code *c, Val x, Val *integer) {
    Val magic = code_float(x, 12582912.0); /* 1.5 * 2^23 */
    Val shifted = float_add(c, x, magic);
    *integer = int_sub(c, float_bits(c, shifted), float_bits(c, magic));
    return float_sub(c, shifted, magic);
}

/* 2^n as a float, -126 <= n <= 127. */
static Val power_of_two(Code *c, Val n, Val like) {
    Val biased = int_add(c, n, code_int(n, 127));
    Val bits = LLVMBuildShl(c->builder, biased, code_int(n, 23), "");
    return float_of_bits(c, bits, like);
}

/* x = n ln 2 + r: the two parts of ln 2, of which n times the first is exact.
 */
static const double ln2_high = 0.69287109375, ln2_low = 2.76086822851e-4;

static Val without_powers(Code *c, Val x, Val *n) {
    Val whole = nearest(c, times(c, x, 1.4426950408889634), n);
    Val minus = float_neg(c, whole);
    Val r = float_fma(c, minus, code_float(x, ln2_high), x);
    return float_fma(c, minus, code_float(x, ln2_low), r);
}

/* In two steps, since 2^n may be too large or too small for a float. */
static Val scale_by_power(Code *c, Val x, Val n) {
    Val half = LLVMBuildAShr(c->builder, n, code_int(n, 1), "");
    Val rest = int_sub(c, n, half);
    Val first = float_mul(c, x, power_of_two(c, half, x));
    return float_mul(c, first, power_of_two(c, rest, x));
}

Val math_exp(Code *c, Val x) {
    Val n;
    x = float_max(c, x, code_float(x, -110));
    x = float_min(c, x, code_float(x, 110));
    Val r = without_powers(c, x, &n);
    Val p = POLYNOMIAL(c, r, 0.5, 0.1666657703, 0.04166655466, 0.008363173075,
                       0.001392617612);
    Val value = float_fma(c, square(c, r), p, r);
    return scale_by_power(c, add_number(c, value, 1), n);
}

Val math_expm1(Code *c, Val x) {
    Val p = POLYNOMIAL(c, x, 0.5000000122, 0.166666668, 0.04166579123,
                       0.008333236134, 0.001398218605, 0.0001994487444);
    Val small = float_fma(c, square(c, x), p, x);
    Val large = add_number(c, math_exp(c, x), -1);
    Val is_small = float_less(c, float_abs(c, x), code_float(x, 0.5));
    return code_select(c, is_small, small, large);
}

/* ---- logarithms ---- */

/* x = 2^n * m, m in [sqrt 1/2, sqrt 2); returns m - 1. x: normal, positive. */
static Val mantissa(Code *c, Val x, Val *n) {
    Val bits = float_bits(c, x);
    Val over = int_sub(c, bits, code_int(bits, 0x3f3504f3));
    *n = LLVMBuildAShr(c->builder, over, code_int(bits, 23), "");
    Val shift = LLVMBuildShl(c->builder, *n, code_int(bits, 23), "");
    return add_number(c, float_of_bits(c, int_sub(c, bits, shift), x), -1);
}

/* log of a positive normal number. */
static Val log_normal(Code *c, Val x, Val more) {
    Val n, f = mantissa(c, x, &n);
    Val z = square(c, f), count = float_add(c, float_of_int(c, n, x), more);
    Val p = POLYNOMIAL(c, f, 0.3333333118, -0.2499999696, 0.2000071575,
                       -0.1666780232, 0.1424905765, -0.1242568733, 0.1168541992,
                       -0.1147973385, 0.06971611471);
    Val low = float_fma(c, z, code_float(x, -0.5),
                        float_mul(c, float_mul(c, f, z), p));
    low = float_fma(c, count, code_float(x, ln2_low), low);
    return float_fma(c, count, code_float(x, ln2_high), float_add(c, f, low));
}

Val math_log(Code *c, Val x) {
    Val zero = code_float(x, 0), infinity = code_float(x, INFINITY);
    Val tiny = float_less(c, x, code_float(x, 1.17549435e-38));
    Val scaled = code_select(c, tiny, times(c, x, 8388608.0), x);
    Val more = code_select(c, tiny, code_float(x, -23), zero);
    Val value = log_normal(c, scaled, more);
    value = code_select(c, float_equal(c, x, infinity), infinity, value);
    value =
        code_select(c, float_equal(c, x, zero), float_neg(c, infinity), value);
    Val good = float_less_equal(c, zero, x);
    return code_select(c, good, value, code_float(x, (double)NAN));
}

/* W. Kahan's: the error of 1 + x is taken back by the factor. */
Val math_log1p(Code *c, Val x) {
    Val sum = add_number(c, x, 1), kept = add_number(c, sum, -1);
    Val value = float_mul(c, math_log(c, sum), float_div(c, x, kept));
    Val same = float_equal(c, kept, code_float(x, 0));
    Val huge = float_less(c, code_float(x, 1e10), x);
    value = code_select(c, huge, math_log(c, x), value);
    return code_select(c, same, x, value);
}

static Val is_odd(Code *c, Val whole) {
    Val half = times(c, whole, 0.5);
    Val even = float_equal(c, math_floor(c, half), half);
    return LLVMBuildNot(c->builder, even, "");
}

Val math_pow(Code *c, Val x, Val y) {
    Val zero = code_float(x, 0), one = code_float(x, 1);
    Val size = math_exp(c, float_mul(c, y, math_log(c, float_abs(c, x))));
    Val whole = float_equal(c, math_floor(c, y), y);
    Val negative = code_select(c, is_odd(c, y), float_neg(c, size), size);
    negative = code_select(c, whole, negative, code_float(x, (double)NAN));
    Val value = code_select(c, float_less(c, x, zero), negative, size);
    Val always = LLVMBuildOr(c->builder, float_equal(c, y, zero),
                             float_equal(c, x, one), "");
    return code_select(c, always, one, value);
}

/* ---- with exponentials inside ---- */

Val math_tanh(Code *c, Val x) {
    Val z = square(c, x), size = float_abs(c, x), one = code_float(x, 1);
    Val p = POLYNOMIAL(c, z, -0.3333332843, 0.1333271885, -0.05384326318,
                       0.02096132911, -0.006045165097);
    Val e = add_number(c, math_exp(c, times(c, size, 2)), 1);
    Val large = float_sub(c, one, float_div(c, code_float(x, 2), e));
    large = float_copysign(c, large, x);
    Val is_small = float_less(c, size, code_float(x, 0.6));
    return code_select(c, is_small, odd(c, x, z, p), large);
}

Val math_sigmoid(Code *c, Val x) {
    Val e = math_exp(c, float_neg(c, float_abs(c, x)));
    Val above = float_div(c, code_float(x, 1), add_number(c, e, 1));
    Val positive = float_less_equal(c, code_float(x, 0), x);
    return code_select(c, positive, above, float_mul(c, e, above));
}

Val math_softplus(Code *c, Val x) {
    Val e = math_exp(c, float_neg(c, float_abs(c, x)));
    return float_add(c, float_max(c, x, code_float(x, 0)), math_log1p(c, e));
}

/* For x >= 0.5: exp(-x^2) / (1 + x / 2) * p(...); the part of x^2 that
 * rounding loses goes into the exponent too. */
static Val erfc_large(Code *c, Val x) {
    x = float_min(c, x, code_float(x, 11));
    Val one = code_float(x, 1);
    Val t = float_div(c, one, add_number(c, times(c, x, 0.5), 1));
    Val p = POLYNOMIAL(c, t, 0.2820812079, 0.2824589078, 0.2426532939,
                       0.2032000782, -0.02249160401, 0.2592079853,
                       -0.4529362632, 0.2548589109, -0.04892726929);
    /* x = high + low, high^2 exact */
    Val bits = float_bits(c, x);
    Val high = float_of_bits(
        c, LLVMBuildAnd(c->builder, bits, code_int(bits, -4096), ""), x);
    Val low = float_sub(c, x, high);
    Val rest = float_mul(c, float_neg(c, low), float_add(c, x, high));
    Val e = math_exp(c, float_neg(c, square(c, high)));
    e = float_mul(c, e, math_exp(c, rest));
    return float_mul(c, float_mul(c, e, t), p);
}

/* For |x| <= 1. */
static Val erf_small(Code *c, Val x) {
    Val p = POLYNOMIAL(c, square(c, x), 1.128379166, -0.3761262667,
                       0.1128359472, -0.02685421201, 0.005189087423,
                       -0.0008016864287, 7.875875063e-5);
    return float_mul(c, x, p);
}

Val math_erf(Code *c, Val x) {
    Val size = float_abs(c, x), one = code_float(x, 1);
    Val large = float_sub(c, one, erfc_large(c, size));
    Val is_small = float_less(c, size, code_float(x, 0.95));
    return code_select(c, is_small, erf_small(c, x),
                       float_copysign(c, large, x));
}

Val math_erfc(Code *c, Val x) {
    Val size = float_abs(c, x), zero = code_float(x, 0);
    Val large = erfc_large(c, size);
    Val below = float_sub(c, code_float(x, 2), large);
    large = code_select(c, float_less(c, x, zero), below, large);
    Val small = float_sub(c, code_float(x, 1), erf_small(c, x));
    Val is_small = float_less(c, size, code_float(x, 0.95));
    return code_select(c, is_small, small, large);
}

/* ---- circles ---- */

/* x = n pi / 2 + r; pi / 2 in three parts, of which n times the first two is
 * exact for n < 2^13. Of what is infinite r is NaN. */
static Val without_quarters(Code *c, Val x, Val *n) {
    Val most = code_float(x, 1e6), least = code_float(x, -1e6);
    Val near = float_max(c, float_min(c, x, most), least);
    Val whole = nearest(c, times(c, near, 0.6366197723675814), n);
    Val minus = float_neg(c, whole);
    Val r = float_fma(c, minus, code_float(x, 1.5703125), near);
    r = float_fma(c, minus, code_float(x, 4.837512969970703125e-4), r);
    r = float_fma(c, minus, code_float(x, 7.5497901264043e-8), r);
    return float_add(c, r, float_sub(c, x, x));
}

/* The sine of a quarter more for each `n`. */
static Val sine_of_quarter(Code *c, Val r, Val n) {
    Val z = square(c, r);
    Val s = odd(c, r, z,
                POLYNOMIAL(c, z, -0.1666666666, 0.008333331831,
                           -0.0001984006304, 2.724686872e-6));
    Val p = POLYNOMIAL(c, z, 0.04166666666, -0.001388888764, 2.48005806e-5,
                       -2.729840765e-7);
    Val cosine =
        float_fma(c, square(c, z), p,
                  float_fma(c, z, code_float(r, -0.5), code_float(r, 1)));
    Val one = code_int(n, 1), two = code_int(n, 2);
    Val uneven = LLVMBuildAnd(c->builder, n, one, "");
    Val below = LLVMBuildAnd(c->builder, n, two, "");
    uneven = LLVMBuildICmp(c->builder, LLVMIntEQ, uneven, one, "");
    below = LLVMBuildICmp(c->builder, LLVMIntEQ, below, two, "");
    Val value = code_select(c, uneven, cosine, s);
    return code_select(c, below, float_neg(c, value), value);
}

Val math_sin(Code *c, Val x) {
    Val n, r = without_quarters(c, x, &n);
    return sine_of_quarter(c, r, n);
}

Val math_cos(Code *c, Val x) {
    Val n, r = without_quarters(c, x, &n);
    return sine_of_quarter(c, r, int_add(c, n, code_int(n, 1)));
}

Val math_tan(Code *c, Val x) {
    Val n, r = without_quarters(c, x, &n);
    Val over = sine_of_quarter(c, r, n);
    return float_div(c, over,
                     sine_of_quarter(c, r, int_add(c, n, code_int(n, 1))));
}

static const double half_pi = 1.5707963267948966;

/* |x| <= 1/2 */
static Val asin_small(Code *c, Val x) {
    Val z = square(c, x);
    return odd(c, x, z,
               POLYNOMIAL(c, z, 0.1666666634, 0.07500094543, 0.04459940153,
                          0.03110066274, 0.01714923836, 0.0336908472));
}

/* acos x = 2 asin sqrt((1 - x) / 2), for x >= 1/2 */
static Val acos_large(Code *c, Val x) {
    Val half = times(c, float_sub(c, code_float(x, 1), x), 0.5);
    return times(c, asin_small(c, float_sqrt(c, half)), 2);
}

Val math_asin(Code *c, Val x) {
    Val size = float_abs(c, x);
    Val large = float_sub(c, code_float(x, half_pi), acos_large(c, size));
    Val is_small = float_less_equal(c, size, code_float(x, 0.5));
    return code_select(c, is_small, asin_small(c, x),
                       float_copysign(c, large, x));
}

Val math_acos(Code *c, Val x) {
    Val size = float_abs(c, x), large = acos_large(c, size);
    Val below = float_sub(c, code_float(x, 2 * half_pi), large);
    large = code_select(c, float_less(c, x, code_float(x, 0)), below, large);
    Val small = float_sub(c, code_float(x, half_pi), asin_small(c, x));
    Val is_small = float_less_equal(c, size, code_float(x, 0.5));
    return code_select(c, is_small, small, large);
}

/* Beyond tan(pi / 8): atan x = pi/4 + atan((x - 1) / (x + 1)); beyond
 * tan(3 pi / 8): pi/2 - atan(1 / x). */
Val math_atan(Code *c, Val x) {
    Val size = float_abs(c, x), one = code_float(x, 1), zero = code_float(x, 0);
    Val middle = float_less(c, code_float(x, 0.41421356), size);
    Val far = float_less(c, code_float(x, 2.41421356), size);
    Val over = code_select(c, middle, add_number(c, size, -1), size);
    Val under = code_select(c, middle, add_number(c, size, 1), one);
    over = code_select(c, far, code_float(x, -1), over);
    under = code_select(c, far, size, under);
    Val base = code_select(c, middle, code_float(x, half_pi / 2), zero);
    base = code_select(c, far, code_float(x, half_pi), base);
    Val t = float_div(c, over, under), z = square(c, t);
    Val p = POLYNOMIAL(c, z, -0.3333333176, 0.1999954048, -0.142639556,
                       0.1074373149, -0.06451928208);
    return float_copysign(c, float_add(c, base, odd(c, t, z, p)), x);
}

/* ---- hyperbolas ---- */

/* exp(|x|) / 2 as the product of two, since exp(|x|) may be too large. */
static Val half_exp(Code *c, Val size) {
    Val root = math_exp(c, times(c, size, 0.5));
    return float_mul(c, times(c, root, 0.5), root);
}

Val math_sinh(Code *c, Val x) {
    Val size = float_abs(c, x), z = square(c, x), half = half_exp(c, size);
    Val p = POLYNOMIAL(c, z, 0.1666666665, 0.008333339676, 0.0001983810197,
                       2.806280258e-6);
    Val large = float_sub(c, half, float_div(c, code_float(x, 0.25), half));
    Val is_small = float_less(c, size, code_float(x, 1));
    return code_select(c, is_small, odd(c, x, z, p),
                       float_copysign(c, large, x));
}

Val math_cosh(Code *c, Val x) {
    Val half = half_exp(c, float_abs(c, x));
    return float_add(c, half, float_div(c, code_float(x, 0.25), half));
}

/* log(2 x), of large x. */
static Val log_twice(Code *c, Val x) {
    return add_number(c, math_log(c, x), 0.6931471805599453);
}

Val math_asinh(Code *c, Val x) {
    Val size = float_abs(c, x), z = square(c, x);
    Val root = float_sqrt(c, add_number(c, z, 1));
    Val more = float_div(c, z, add_number(c, root, 1));
    Val value = math_log1p(c, float_add(c, size, more));
    Val huge = float_less(c, code_float(x, 1e9), size);
    value = code_select(c, huge, log_twice(c, size), value);
    return float_copysign(c, value, x);
}

Val math_acosh(Code *c, Val x) {
    Val over = add_number(c, x, -1);
    Val root = float_sqrt(c, float_mul(c, over, add_number(c, x, 1)));
    Val value = math_log1p(c, float_add(c, over, root));
    Val huge = float_less(c, code_float(x, 1e9), x);
    return code_select(c, huge, log_twice(c, x), value);
}

Val math_atanh(Code *c, Val x) {
    Val size = float_abs(c, x);
    Val t =
        float_div(c, times(c, size, 2), float_sub(c, code_float(x, 1), size));
    return float_copysign(c, times(c, math_log1p(c, t), 0.5), x);
}
