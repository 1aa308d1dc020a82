/* math.h - functions of numbers without a library: polynomials in float.
 *
 * For scalars and vectors alike, without branches, so that loops of them become
 * vector code. Coefficients are our own Chebyshev fits. Within a few units in
 * the last place of the rounded true value (tests/native/test_math.c says how
 * many); sin, cos and tan up to |x| = 10000, beyond which they fade.
 */
#ifndef NATIVE_LLVM_MATH_H
#define NATIVE_LLVM_MATH_H

#include "native/llvm/code.h"

Val math_exp(Code *c, Val x);
Val math_expm1(Code *c, Val x);
Val math_log(Code *c, Val x);
Val math_log1p(Code *c, Val x); /* x >= 0 */
Val math_pow(Code *c, Val x, Val y);
/* What is left of x after whole multiples of y, with the sign of x, or of y. As
 * exact as there are bits for the multiple: x / y below 2^24. */
Val math_fmod(Code *c, Val x, Val y);
Val math_mod(Code *c, Val x, Val y);
Val math_tanh(Code *c, Val x);
Val math_sigmoid(Code *c, Val x);
Val math_softplus(Code *c, Val x);
Val math_erf(Code *c, Val x);
Val math_erfc(Code *c, Val x);
Val math_sin(Code *c, Val x);
Val math_cos(Code *c, Val x);
Val math_tan(Code *c, Val x);
Val math_asin(Code *c, Val x);
Val math_acos(Code *c, Val x);
Val math_atan(Code *c, Val x);
Val math_sinh(Code *c, Val x);
Val math_cosh(Code *c, Val x);
Val math_asinh(Code *c, Val x);
Val math_acosh(Code *c, Val x);
Val math_atanh(Code *c, Val x);
Val math_trunc(Code *c, Val x);
Val math_floor(Code *c, Val x);
Val math_ceil(Code *c, Val x);
Val math_round(Code *c, Val x); /* halves to the even neighbour */
/* The nearest number of fewer bits: IEEE's of 16, and bfloat16. */
Val math_to_half(Code *c, Val x);
Val math_to_brain(Code *c, Val x);

#endif
