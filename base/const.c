/* const.c - shapes, and the values of constants; see const.h. */
#include "base/const.h"

#include "base/rng.h"

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

static double base_value(const Const *c, uint64_t i) {
    float f32;
    double f64;
    switch (c->kind) {
    case CONST_F32:
        memcpy(&f32, (const char *)c->data + i * sizeof f32, sizeof f32);
        return (double)f32;
    case CONST_F64:
        memcpy(&f64, (const char *)c->data + i * sizeof f64, sizeof f64);
        return f64;
    case CONST_SEEDED:
        return c->mean + c->spread * rng_unit(c->seed, i);
    }
    return 0;
}

/* Walks [d0, d1, rest]; `groups` > 1 leaves the off-diagonal blocks zero. */
static void read_values(const Const *c, float *f32, double *f64) {
    uint64_t d0 = shape_dim(&c->shape, 0), d1 = shape_dim(&c->shape, 1);
    uint64_t rest = d0 && d1 ? shape_count(&c->shape) / d0 / d1 : 0;
    uint64_t groups = c->groups > 1 ? c->groups : 1;
    uint64_t in_group = d1 / groups, out_group = d0 / groups;
    for (uint64_t i0 = 0, at = 0; i0 < d0; i0++)
        for (uint64_t i1 = 0; i1 < d1; i1++) {
            bool zero = i1 / in_group != i0 / out_group;
            uint64_t from = (i0 * in_group + i1 % in_group) * rest;
            double mul =
                (c->mul0 ? c->mul0[i0] : 1.0) * (c->mul1 ? c->mul1[i1] : 1.0);
            for (uint64_t k = 0; k < rest; k++, at++) {
                double value = zero ? 0.0 : mul * base_value(c, from + k);
                if (f32)
                    f32[at] = (float)value;
                else
                    f64[at] = value;
            }
        }
}

void const_read(const Const *c, float *out) {
    bool plain = c->kind == CONST_F32 && !c->mul0 && !c->mul1 && c->groups < 2;
    if (plain)
        memcpy(out, c->data, shape_count(&c->shape) * sizeof *out);
    else
        read_values(c, out, NULL);
}

void const_read_f64(const Const *c, double *out) {
    read_values(c, NULL, out);
}
