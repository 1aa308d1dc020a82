/* params.c - arrays by name from MXNet's .params files.
 *
 * In: a list of arrays, each with its own header, then as many names. Out: a
 * Const for each. Four ages of headers: V0 begins with the rank itself and has
 * dimensions of 32 bits, V1 to V3 begin with a magic number and have 64 bits,
 * V2 and V3 have a kind of storage before the shape. Values stay in the file.
 */
#include "base/halves.h"
#include "frontends/mxnet/mxnet.h"

#include <string.h>

enum { LIST_MAGIC = 0x112, KINDS = 7 };
static const uint32_t magic_v1 = 0xF993FAC8, magic_v2 = 0xF993FAC9,
                      magic_v3 = 0xF993FACA;

typedef struct Cursor {
    const uint8_t *start, *at, *end;
    const char *wrong; /* NULL while all is well */
} Cursor;

static const uint8_t *take(Cursor *c, uint64_t n) {
    const uint8_t *at = c->at;
    if (c->wrong || n > (uint64_t)(c->end - c->at)) {
        c->wrong = c->wrong ? c->wrong : "the file ends too early";
        return NULL;
    }
    c->at += n;
    return at;
}

static uint64_t number(Cursor *c, uint32_t bytes) {
    const uint8_t *at = take(c, bytes);
    uint64_t value = 0;
    for (uint32_t i = 0; at && i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void read_shape(Cursor *c, uint64_t rank, uint32_t width, Shape *out) {
    *out = (Shape){.rank = (uint32_t)rank};
    if (rank > SHAPE_MAX_RANK) {
        c->wrong = "an array has too many dimensions";
        return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = number(c, width);
        if (dim > INT32_MAX)
            c->wrong = "an array is too large";
        out->dim[i] = (uint32_t)dim;
    }
    if (!c->wrong && shape_count(out) >= SHAPE_MAX_COUNT)
        c->wrong = "an array is too large";
}

static void read_header(Cursor *c, Shape *shape) {
    uint32_t magic = (uint32_t)number(c, 4), width = 8;
    uint64_t rank;
    if (magic == magic_v2 || magic == magic_v3) {
        if (number(c, 4) != 0 && !c->wrong)
            c->wrong = "a sparse array is not supported";
        rank = number(c, 4);
    } else if (magic == magic_v1) {
        rank = number(c, 4);
    } else {
        rank = magic;
        width = 4;
    }
    read_shape(c, rank, width, shape);
}

static void read_values(Mx *mx, Cursor *c, uint64_t kind, Const *out) {
    static const uint8_t size[KINDS] = {4, 8, 2, 1, 4, 1, 8};
    uint64_t count = shape_count(&out->shape);
    if (kind >= KINDS)
        c->wrong = "an array has an unknown type of elements";
    const uint8_t *data = c->wrong ? NULL : take(c, count * size[kind]);
    static const ConstKind kinds[KINDS] = {CONST_F32, CONST_F64, CONST_F32,
                                           CONST_U8,  CONST_I32, CONST_I8};
    if (kind < KINDS)
        out->kind = kinds[kind];
    out->data = data;
    if (kind == 2 && data)
        out->data = floats_from_halves(mx->net.arena, data, count);
    else if (kind == KINDS - 1) /* kept for its place in the list only */
        out->data = NULL;
}

static void read_array(Mx *mx, Cursor *c) {
    Const value = {0};
    read_header(c, &value.shape);
    if (value.shape.rank) {         /* none: an empty array, without more */
        number(c, 4), number(c, 4); /* device */
        uint64_t kind = number(c, 4);
        if (!c->wrong)
            read_values(mx, c, kind, &value);
    }
    if (!c->wrong)
        vec_push(mx->net.arena, &mx->param, value);
}

static void read_name(Mx *mx, Cursor *c, uint32_t i) {
    uint64_t len = number(c, 8);
    const char *bytes = (const char *)take(c, len);
    if (!bytes)
        return;
    const char *name = arena_strndup(mx->net.arena, bytes, len);
    if (!strncmp(name, "arg:", 4) || !strncmp(name, "aux:", 4))
        name += 4;
    if (mx->param.at[i].data)
        map_put(mx->param_names, name, i);
}

bool mx_read_params(Mx *mx, const char *path) {
    Bytes file;
    if (!file_read(mx->net.arena, mx->net.diag, path, &file))
        return false;
    Cursor c = {file.at, file.at, file.at + file.len, NULL};
    if (number(&c, 8) != LIST_MAGIC && !c.wrong)
        c.wrong = "this is not a .params file of MXNet";
    number(&c, 8);
    uint64_t n = number(&c, 8);
    for (uint64_t i = 0; i < n && !c.wrong; i++)
        read_array(mx, &c);
    uint64_t names = number(&c, 8);
    if (!c.wrong && names && names != n)
        c.wrong = "it has another number of names than of arrays";
    for (uint64_t i = 0; i < names && !c.wrong; i++)
        read_name(mx, &c, (uint32_t)i);
    if (!c.wrong)
        return true;
    diag_error(
        mx->net.diag,
        (Loc){path, 0, (uint32_t)((size_t)(c.at - c.start) & UINT32_MAX)}, "%s",
        c.wrong);
    return false;
}
