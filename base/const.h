/* const.h - shapes, and constants as recipes whose values are made when read.
 *
 * A network's weights are slices of a mapped file, or seeded; rewrites scale
 * them. Keeping the recipe instead of the result makes rewriting free and a
 * data image of a seeded network small.
 */
#ifndef BASE_CONST_H
#define BASE_CONST_H

#include "base/arena.h"

#include <stdbool.h>

enum { SHAPE_MAX_RANK = 8 };
/* Elements of one tensor or constant: larger shapes are refused. */
#define SHAPE_MAX_COUNT (UINT64_C(1) << 31)

typedef struct Shape {
    uint32_t rank;
    uint32_t dim[SHAPE_MAX_RANK];
} Shape;

/* The dimension, 1 beyond the rank. */
static inline uint32_t shape_dim(const Shape *s, uint32_t axis) {
    return axis < s->rank ? s->dim[axis] : 1;
}
/* Elements (1 for rank 0); UINT64_MAX above SHAPE_MAX_COUNT. */
uint64_t shape_count(const Shape *shape);
bool shape_equal(const Shape *a, const Shape *b);
const char *shape_text(Arena *arena, const Shape *shape); /* "1x3x224x224" */
/* Parses "1x3x224x224"; false if malformed, a 0, or too large. */
bool shape_parse(const char *text, Shape *out);
Shape shape_nchw(uint32_t n, uint32_t c, uint32_t h, uint32_t w);

/* How a tensor of any rank lies as C x H x W: w is the last dimension of rank
 * 4 and up, h the one before it, c the product of the rest; of rank 3 h is the
 * last; of rank 2 and 1 all is c. Row-major order is kept, so values in the
 * order of the shape are values in the order c, h, w. */
static inline void shape_chw(const Shape *shape, uint32_t *c, uint32_t *h,
                             uint32_t *w) {
    uint32_t rank = shape->rank;
    uint32_t outer = rank >= 4 ? rank - 2 : rank == 3 ? 2 : rank;
    *c = 1;
    for (uint32_t i = 0; i < outer; i++)
        *c *= shape->dim[i];
    *h = rank >= 3 ? shape->dim[outer] : 1;
    *w = rank >= 4 ? shape->dim[outer + 1] : 1;
}

/* KIND(NAME, "word", bytes of a stored element, is it a code, from which `zero`
 * is taken). `data` of all but SEEDED: little-endian elements, perhaps
 * unaligned. SEEDED: mean + spread * rng_unit(seed, i). */
#define CONST_KIND_ROWS(KIND)                                                  \
    KIND(F32, "f32", 4, false)                                                 \
    KIND(F64, "f64", 8, false)                                                 \
    KIND(SEEDED, "seeded", 0, false)                                           \
    KIND(F16, "f16", 2, false)                                                 \
    KIND(BF16, "bf16", 2, false)                                               \
    KIND(I8, "i8", 1, true)                                                    \
    KIND(U8, "u8", 1, true)                                                    \
    KIND(I16, "i16", 2, true)                                                  \
    KIND(I32, "i32", 4, true)
/* For messages. */
#define CONST_KIND_WORDS "seeded, f32, f64, f16, bf16, i8, u8, i16 or i32"
typedef enum ConstKind {
#define KIND(NAME, word, bytes, code) CONST_##NAME,
    CONST_KIND_ROWS(KIND)
#undef KIND
        CONST_KINDS
} ConstKind;
const char *const_kind_word(ConstKind kind);
bool const_kind_find(const char *word, ConstKind *out);

/* The value at index (i0, i1, rest) is
 *     mul0[i0] * mul1[i1] * base(...)      (missing factors are 1)
 * where the base of a quantised constant is its code minus `zero`, and the
 * factors are its scales; computed in double and rounded to float once. With
 * groups > 1 the base has shape [d0, d1 / groups, ...] and values outside the
 * diagonal blocks are 0 (a grouped convolution written as a dense one). Where
 * an order is given, the base lies with its axes permuted: axis `order[i]` of
 * the base is axis i of that shape. So a transposed matrix of a mapped file
 * needs no copy. */
typedef struct Const {
    Shape shape;
    ConstKind kind;
    const void *data;
    int32_t zero; /* of codes */
    uint64_t seed;
    double mean, spread;
    const double *mul0, *mul1;     /* dim[0] and dim[1] of them, or NULL */
    uint32_t groups;               /* 0 or 1: none */
    uint8_t order[SHAPE_MAX_RANK]; /* all 0: none */
} Const;

/* What it has stored in `data`; 0 of a seeded one, UINT64_MAX of a shape with
 * too many elements. */
uint64_t const_data_bytes(const Const *c);
/* A quantised constant without its factors: its values are whole numbers. */
Const const_codes(const Const *c);
/* Is it one, of at most `size` bytes a code, whose codes less their zero are
 * whole numbers of 8 * size + 1 bits (of 32, if its zero is 0)? */
bool const_has_codes(const Const *c, uint32_t size);
/* All values, in the order of the shape: shape_count(&c->shape) of them. */
void const_read(const Const *c, float *out);
/* The same, not rounded. */
void const_read_f64(const Const *c, double *out);

/* Whether the base lies in another order than the shape's. */
bool const_has_order(const Const *c);
/* Whether these are the axes of a shape of `rank`, each once, out of order. */
bool const_order_valid(uint32_t rank, const uint32_t *order);
/* Sets it; valid. */
void const_set_order(Const *c, const uint32_t *order);
/* The same values with axes permuted: axis i is what perm[i] was. No value is
 * read. Only of constants without factors and groups. */
Const const_permuted(const Const *c, const uint32_t *perm);
/* The same values as plain f32, in `arena` where they are not yet. */
Const const_settled(Arena *arena, const Const *c);
/* Whether rows along axis 0 lie one behind the other, as stored. */
bool const_has_parts(const Const *c);
/* n values of an axis, from `first` on. Axis 0: a view of a constant that has
 * parts; 1: a copy, of one that is settled. */
Const const_part(Arena *arena, const Const *c, uint32_t axis, uint32_t first,
                 uint32_t n);
/* The same values, one behind the other, in another shape of as many elements.
 * They are copied, into `arena`, only where the base has an order. */
Const const_reshaped(Arena *arena, const Const *c, const Shape *shape);

/* A named attribute, in a form that text, JSON and a listing can carry. */
typedef struct AttrPair {
    const char *name; /* "kernel", "stride", "pad"... */
    uint32_t n;
    const double *value;
    const char *word; /* enumerations: "max"; then n is 0 */
} AttrPair;

/* The one of n that has the name; NULL if none has. */
const AttrPair *attr_find(const AttrPair *attr, uint32_t n, const char *name);
/* Its value `at`; `absent` where it is NULL or has no such value. */
double attr_number(const AttrPair *attr, uint32_t at, double absent);
/* The same as a count; `absent` where it is none up to 2^24. */
uint32_t attr_count(const AttrPair *attr, uint32_t at, uint32_t absent);
/* Whether it is there, and is this word. */
bool attr_is(const AttrPair *attr, const char *word);

#endif
