/* code.h - a function under construction: loops, numbers, memory.
 *
 * A thin layer over LLVM-C that says what kernels say: loops over ranges,
 * variables, floats at indices. Only Build*2 calls and opaque use of pointers,
 * so that LLVM 14 to 19 compile it alike. Numbers are scalars or vectors; the
 * functions on them take both, as long as their operands agree.
 *
 * Indices are signed and as wide as a pointer.
 */
#ifndef NATIVE_LLVM_CODE_H
#define NATIVE_LLVM_CODE_H

#include "native/program.h"

#include <llvm-c/Core.h>

typedef LLVMValueRef Val;
typedef LLVMTypeRef Type;

typedef struct Code {
    Arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    Type f32, i32, index, pointer;
    uint32_t lanes;     /* floats of a vector register */
    uint32_t registers; /* vector registers */
    uint32_t pairs;     /* see Machine */
    bool dots;
    Val function;
    LLVMBasicBlockRef entry; /* of variables */
    uint32_t loops, reloads; /* so far */
} Code;

/* ---- constants ---- */

Val code_index(const Code *c, int64_t value);
Val code_scalar(const Code *c, double value);
/* A float, or a vector of them, of the type of `like`. */
Val code_float(Val like, double value);
Val code_int(Val like, int64_t value);
/* Integers of 32 bits, as many as there are floats in `like`. */
Type code_int_type(const Code *c, Val like);
Type code_vector(const Code *c, uint32_t lanes);

/* ---- loops and branches ---- */

typedef struct Loop {
    LLVMBasicBlockRef body, end;
    Val i, to, step;
    uint32_t loops, reloads; /* of the Code, before it */
} Loop;
/* for (i = from; i < to; i += step): the code up to loop_close, with loop->i.
 */
Val loop_open(Code *c, Loop *loop, Val from, Val to, int64_t step);
/* From 0 to `count`, by 1. */
Val loop_count(Code *c, Loop *loop, uint64_t count);
void loop_close(Code *c, Loop *loop);

typedef struct Branch {
    LLVMBasicBlockRef end;
} Branch;
/* The code up to branch_close runs if `condition`. */
void branch_open(Code *c, Branch *branch, Val condition);
void branch_close(Code *c, Branch *branch);

/* ---- variables and memory ---- */

/* A variable; it becomes a register. */
Val code_variable(Code *c, Val first);
Val code_get(Code *c, Type type, Val variable);
void code_set(Code *c, Val variable, Val value);

/* The address of float `index` behind `base`. */
Val code_at(Code *c, Val base, Val index);
/* The address `bytes` behind `base`, as one of floats. */
Val code_bytes_at(Code *c, Val base, Val bytes);
Val code_load(Code *c, Val base, Val index);
/* ... which this function has stored. */
Val code_reload(Code *c, Val base, Val index);
void code_store(Code *c, Val base, Val index, Val value);
/* What is `bytes` behind `base`, and on. */
Val code_load_type(Code *c, Val base, Val bytes, Type type);
void code_store_type(Code *c, Val base, Val bytes, Val value);
/* `lanes` floats in a row. */
Val code_load_vector(Code *c, Val base, Val index, uint32_t lanes);

/* ---- arithmetic on indices; they never overflow ---- */

Val index_add(Code *c, Val a, Val b);
Val index_sub(Code *c, Val a, Val b);
Val index_mul(Code *c, Val a, uint64_t by);
/* a * by + b */
Val index_step(Code *c, Val a, uint64_t by, Val b);
Val index_div(Code *c, Val a, uint64_t by); /* a >= 0 */
Val index_rem(Code *c, Val a, uint64_t by);
Val index_max(Code *c, Val a, Val b);
Val index_min(Code *c, Val a, Val b);
Val index_less(Code *c, Val a, Val b);

/* ---- floats ---- */

Val float_add(Code *c, Val a, Val b);
Val float_sub(Code *c, Val a, Val b);
Val float_mul(Code *c, Val a, Val b);
Val float_div(Code *c, Val a, Val b);
Val float_neg(Code *c, Val a);
/* a * b + d, rounded once where the machine can. */
Val float_fma(Code *c, Val a, Val b, Val d);
/* Comparisons: false if an operand is no number. */
Val float_less(Code *c, Val a, Val b);
Val float_less_equal(Code *c, Val a, Val b);
Val float_equal(Code *c, Val a, Val b);
Val code_select(Code *c, Val condition, Val a, Val b);
/* b where it is greater (smaller), else a; a no-number `a` stays. */
Val float_max(Code *c, Val a, Val b);
Val float_min(Code *c, Val a, Val b);
/* The greater (smaller); NaN if one is. */
Val float_largest(Code *c, Val a, Val b);
Val float_least(Code *c, Val a, Val b);
Val float_abs(Code *c, Val a);
Val float_sqrt(Code *c, Val a);
/* The sign of b, the rest of a. */
Val float_copysign(Code *c, Val a, Val b);
Val float_bits(Code *c, Val a);
Val float_of_bits(Code *c, Val bits, Val like);
Val float_of_int(Code *c, Val a, Val like);
Val float_of_index(Code *c, Val a);
/* 1 or 0. */
Val float_of_bool(Code *c, Val a, Val like);
/* A vector of a number. */
Val code_splat(Code *c, Val scalar, uint32_t lanes);
/* The sum of the lanes of a vector. */
Val float_sum(Code *c, Val vector);

/* ---- whole numbers, vectors of them too ---- */

Type int_type(const Code *c, uint32_t bits, uint32_t lanes);
/* As many numbers of `bits` as in `like`. */
Type int_like(const Code *c, Val like, uint32_t bits);
Val int_add(Code *c, Val a, Val b);
Val int_sub(Code *c, Val a, Val b);
Val int_mul(Code *c, Val a, Val b);
Val int_max(Code *c, Val a, Val b);
Val int_min(Code *c, Val a, Val b);
Val int_less(Code *c, Val a, Val b);
/* To numbers of more or fewer bits; they have signs. */
Val int_cast(Code *c, Val a, uint32_t bits);
/* Down, to the lower neighbour. */
Val int_shift(Code *c, Val a, Val by);
/* Lanes first, first + step... of a vector. */
Val int_every(Code *c, Val vector, uint32_t first, uint32_t step);

/* An intrinsic of LLVM that is overloaded on the type of its first operand. */
Val code_intrinsic(Code *c, const char *name, Val *args, unsigned n);
/* ... one that is not overloaded. */
Val code_intrinsic_plain(Code *c, const char *name, Val *args, unsigned n);

#endif
