/* const.c - shapes, and the values of constants; see const.h. */
#include "base/const.h"

#include "base/half.h"
#include "base/rng.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t shape_count(const Shape *shape) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] && count > SHAPE_MAX_COUNT / shape->dim[i])
            return UINT64_MAX;
        count *= shape->dim[i];
    }
    return count;
}

bool shape_equal(const Shape *a, const Shape *b) {
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

const char *shape_text(Arena *arena, const Shape *shape) {
    char text[SHAPE_MAX_RANK * 11 + 1] = "scalar";
    int len = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, i ? "x%u" : "%u",
                        shape->dim[i]);
    return arena_strdup(arena, text);
}

bool shape_parse(const char *text, Shape *out) {
    Shape shape = {0};
    for (;;) {
        char *end;
        if (*text < '0' || *text > '9' || shape.rank == SHAPE_MAX_RANK)
            return false;
        unsigned long long dim = strtoull(text, &end, 10);
        if (!dim || dim > INT32_MAX)
            return false;
        shape.dim[shape.rank++] = (uint32_t)dim;
        if (!*end)
            break;
        if (*end != 'x' && *end != ',')
            return false;
        text = end + 1;
    }
    *out = shape;
    return shape_count(out) != UINT64_MAX;
}

Shape shape_nchw(uint32_t n, uint32_t c, uint32_t h, uint32_t w) {
    return (Shape){4, {n, c, h, w}};
}

/* ---- constants ---- */

static const struct {
    const char *word;
    uint32_t bytes;
    bool code;
} kinds[CONST_KINDS] = {
#define KIND(NAME, word, bytes, code) [CONST_##NAME] = {word, bytes, code},
    CONST_KIND_ROWS(KIND)
#undef KIND
};

const char *const_kind_word(ConstKind kind) {
    return kinds[kind].word;
}

bool const_kind_find(const char *word, ConstKind *out) {
    for (uint32_t kind = 0; kind < CONST_KINDS; kind++)
        if (!strcmp(word, kinds[kind].word)) {
            *out = (ConstKind)kind;
            return true;
        }
    return false;
}

uint64_t const_data_bytes(const Const *c) {
    uint64_t count = shape_count(&c->shape);
    if (c->kind == CONST_SEEDED)
        return 0;
    return count == UINT64_MAX
               ? count
               : count / (c->groups > 1 ? c->groups : 1) * kinds[c->kind].bytes;
}

Const const_codes(const Const *c) {
    Const codes = *c;
    codes.mul0 = codes.mul1 = NULL;
    return codes;
}

bool const_has_codes(const Const *c, uint32_t size) {
    uint32_t bytes = kinds[c->kind].bytes;
    bool zero_fits = c->zero == 0 || (bytes <= 2 && c->zero >= INT16_MIN &&
                                      c->zero <= INT16_MAX);
    return kinds[c->kind].code && bytes <= size && zero_fits;
}

bool const_has_order(const Const *c) {
    /* Only of rank 0 and 1 is 0, 0, ... an order, and there it changes none. */
    for (uint32_t i = 0; i < SHAPE_MAX_RANK; i++)
        if (c->order[i])
            return true;
    return false;
}

bool const_order_valid(uint32_t rank, const uint32_t *order) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (order[i] >= rank)
            return false;
        seen |= UINT32_C(1) << order[i];
    }
    return seen == (UINT32_C(1) << rank) - 1;
}

void const_set_order(Const *c, const uint32_t *order) {
    assert(const_order_valid(c->shape.rank, order));
    for (uint32_t i = 0; i < c->shape.rank; i++)
        c->order[i] = (uint8_t)order[i];
}

/* Whether values stay where they are: only axes of one element pass others. */
static bool stays(const Shape *shape, const uint32_t *order) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1)
            continue;
        if (order[i] < last)
            return false;
        last = order[i];
    }
    return true;
}

Const const_permuted(const Const *c, const uint32_t *perm) {
    assert(!c->mul0 && !c->mul1 && c->groups < 2);
    Const out = *c;
    uint32_t order[SHAPE_MAX_RANK];
    bool ordered = const_has_order(c);
    for (uint32_t i = 0; i < c->shape.rank; i++) {
        out.shape.dim[i] = c->shape.dim[perm[i]];
        order[i] = ordered ? c->order[perm[i]] : perm[i];
    }
    memset(out.order, 0, sizeof out.order);
    bool alike = c->kind == CONST_SEEDED && c->spread == 0;
    if (!alike && !stays(&out.shape, order))
        const_set_order(&out, order);
    return out;
}

/* Is `to` the shape with axes of 1 behind it? */
static bool widens(const Shape *from, const Shape *to) {
    Shape front = *to;
    front.rank = from->rank;
    return from->rank <= to->rank && shape_equal(from, &front) &&
           shape_count(from) == shape_count(to);
}

Const const_reshaped(Arena *arena, const Const *c, const Shape *shape) {
    Const out = *c;
    out.shape = *shape;
    if (!const_has_order(c) || widens(&c->shape, shape)) {
        for (uint32_t i = c->shape.rank; i < shape->rank; i++)
            out.order[i] = const_has_order(c) ? (uint8_t)i : 0;
        return out;
    }
    uint64_t count = shape_count(shape);
    double *value = ARENA_ARRAY(arena, double, count);
    const_read_f64(c, value);
    return (Const){.shape = *shape, .kind = CONST_F64, .data = value};
}

static double base_value(const Const *c, uint64_t i) {
    float f32;
    double f64;
    uint16_t bits;
    int32_t wide;
    if (c->kind == CONST_SEEDED)
        return c->mean + c->spread * rng_unit(c->seed, i);
    const uint8_t *at = (const uint8_t *)c->data + i * kinds[c->kind].bytes;
    switch (c->kind) {
    case CONST_F32:
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    case CONST_F64:
        memcpy(&f64, at, sizeof f64);
        return f64;
    case CONST_F16:
        memcpy(&bits, at, sizeof bits);
        return (double)float_from_half(bits);
    case CONST_BF16:
        memcpy(&bits, at, sizeof bits);
        return (double)float_from_brain(bits);
    case CONST_I8:
        return (double)(int8_t)*at - c->zero;
    case CONST_U8:
        return (double)*at - c->zero;
    case CONST_I16:
        memcpy(&bits, at, sizeof bits);
        return (double)(int16_t)bits - c->zero;
    case CONST_I32:
        memcpy(&wide, at, sizeof wide);
        return (double)wide - c->zero;
    case CONST_SEEDED:
    case CONST_KINDS:
        break;
    }
    return 0;
}

/* Steps in the base from one value to the next along each axis. */
static void base_steps(const Const *c, uint64_t step[SHAPE_MAX_RANK]) {
    uint32_t rank = c->shape.rank, axis_at[SHAPE_MAX_RANK];
    bool ordered = const_has_order(c);
    for (uint32_t i = 0; i < rank; i++)
        axis_at[ordered ? c->order[i] : i] = i;
    uint64_t size = 1;
    for (uint32_t at = rank; at-- > 0;) {
        uint32_t axis = axis_at[at];
        step[axis] = size;
        size *= axis == 1 && c->groups > 1 ? c->shape.dim[1] / c->groups
                                           : c->shape.dim[axis];
    }
}

/* Where value k of those behind the first two axes lies. */
static uint64_t rest_place(const Shape *shape, const uint64_t *step,
                           uint64_t k) {
    uint64_t place = 0;
    for (uint32_t axis = shape->rank; axis-- > 2; k /= shape->dim[axis])
        place += k % shape->dim[axis] * step[axis];
    return place;
}

/* The first and the second axis (1 beyond the rank), the rest as one. */
typedef struct Walk {
    const Const *c;
    uint64_t d0, d1, rest;
    uint64_t in_group, out_group;
    uint64_t step[SHAPE_MAX_RANK];
    float *f32;
    double *f64;
} Walk;

static void put(const Walk *w, uint64_t at, double value) {
    if (w->f32)
        w->f32[at] = (float)value;
    else
        w->f64[at] = value;
}

static bool off_diagonal(const Walk *w, uint64_t i0, uint64_t i1) {
    return i1 / w->in_group != i0 / w->out_group;
}

static double factor(const Walk *w, uint64_t i0, uint64_t i1) {
    const Const *c = w->c;
    return (c->mul0 ? c->mul0[i0] : 1.0) * (c->mul1 ? c->mul1[i1] : 1.0);
}

/* A base in the order of the shape. */
static void walk_row(const Walk *w, uint64_t i0) {
    uint64_t at = i0 * w->d1 * w->rest;
    for (uint64_t i1 = 0; i1 < w->d1; i1++) {
        bool zero = off_diagonal(w, i0, i1);
        uint64_t from = (i0 * w->in_group + i1 % w->in_group) * w->rest;
        double mul = factor(w, i0, i1);
        for (uint64_t k = 0; k < w->rest; k++)
            put(w, at++, zero ? 0.0 : mul * base_value(w->c, from + k));
    }
}

/* A base in an order of its own. Rows side by side: neighbours along the first
 * axis are neighbours in a transposed base, where one line of the cache serves
 * them all. */
static void walk_rows(const Walk *w, uint64_t from, uint64_t to) {
    for (uint64_t i1 = 0; i1 < w->d1; i1++)
        for (uint64_t k = 0; k < w->rest; k++) {
            uint64_t place = i1 % w->in_group * w->step[1] +
                             rest_place(&w->c->shape, w->step, k);
            for (uint64_t i0 = from; i0 < to; i0++) {
                double mul = factor(w, i0, i1);
                uint64_t at = (i0 * w->d1 + i1) * w->rest + k;
                bool zero = off_diagonal(w, i0, i1);
                put(w, at,
                    zero ? 0.0
                         : mul * base_value(w->c, place + i0 * w->step[0]));
            }
        }
}

enum { ROWS = 16 }; /* floats of a line of the cache */

static void read_values(const Const *c, float *f32, double *f64) {
    uint64_t groups = c->groups > 1 ? c->groups : 1;
    Walk w = {.c = c,
              .d0 = shape_dim(&c->shape, 0),
              .d1 = shape_dim(&c->shape, 1),
              .f32 = f32,
              .f64 = f64};
    w.rest = w.d0 && w.d1 ? shape_count(&c->shape) / w.d0 / w.d1 : 0;
    w.in_group = w.d1 / groups;
    w.out_group = w.d0 / groups;
    if (!w.rest) /* no elements, of however many rows */
        return;
    if (!const_has_order(c)) {
        for (uint64_t i0 = 0; i0 < w.d0; i0++)
            walk_row(&w, i0);
        return;
    }
    base_steps(c, w.step);
    for (uint64_t i0 = 0; i0 < w.d0; i0 += ROWS)
        walk_rows(&w, i0, w.d0 - i0 < ROWS ? w.d0 : i0 + ROWS);
}

static bool is_plain_f32(const Const *c) {
    return c->kind == CONST_F32 && !c->mul0 && !c->mul1 && c->groups < 2 &&
           !const_has_order(c);
}

void const_read(const Const *c, float *out) {
    if (is_plain_f32(c))
        memcpy(out, c->data, shape_count(&c->shape) * sizeof *out);
    else
        read_values(c, out, NULL);
}

void const_read_f64(const Const *c, double *out) {
    read_values(c, NULL, out);
}

bool const_has_parts(const Const *c) {
    return c->kind != CONST_SEEDED && c->groups < 2 && c->shape.rank &&
           c->order[0] == 0;
}

Const const_settled(Arena *arena, const Const *c) {
    if (is_plain_f32(c))
        return *c;
    float *all = ARENA_ARRAY(arena, float, shape_count(&c->shape));
    const_read(c, all);
    return (Const){.shape = c->shape, .kind = CONST_F32, .data = all};
}

Const const_part(Arena *arena, const Const *c, uint32_t axis, uint32_t first,
                 uint32_t n) {
    Const part = *c;
    part.shape.dim[axis] = n;
    if (!axis) {
        assert(const_has_parts(c));
        uint64_t row = const_data_bytes(c) / c->shape.dim[0];
        part.data = (const uint8_t *)c->data + row * first;
        part.mul0 = c->mul0 ? c->mul0 + first : NULL;
        return part;
    }
    assert(is_plain_f32(c));
    uint64_t bytes = shape_count(&c->shape) / c->shape.dim[0] /
                     c->shape.dim[1] * sizeof(float);
    uint64_t row = c->shape.dim[1] * bytes, some = n * bytes;
    const uint8_t *from = (const uint8_t *)c->data + first * bytes;
    uint8_t *to = ARENA_ARRAY(arena, uint8_t, c->shape.dim[0] * some);
    for (uint32_t i = 0; i < c->shape.dim[0]; i++)
        memcpy(to + i * some, from + i * row, some);
    part.data = to;
    return part;
}

/* ---- attributes ---- */

const AttrPair *attr_find(const AttrPair *attr, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(attr[i].name, name) == 0)
            return &attr[i];
    return NULL;
}

double attr_number(const AttrPair *attr, uint32_t at, double absent) {
    return attr && at < attr->n ? attr->value[at] : absent;
}

uint32_t attr_count(const AttrPair *attr, uint32_t at, uint32_t absent) {
    double value = attr_number(attr, at, absent);
    bool sane = value >= 0 && value <= 1 << 24;
    return sane ? (uint32_t)value : absent;
}

bool attr_is(const AttrPair *attr, const char *word) {
    return attr && attr->word && strcmp(attr->word, word) == 0;
}
