/* flatbuf.c - FlatBuffers, read in place; see flatbuf.h. The format: a table
 * begins with the distance back to its vtable, which holds its own size, the
 * table's, and for each field the place in the table, 0 where it is absent;
 * what is not a scalar is a distance forward. */
#include "frontends/tflite/flatbuf.h"

#include <string.h>

static bool inside(Flat *flat, uint64_t at, uint64_t len) {
    bool good = at <= flat->len && len <= flat->len - at;
    flat->bad |= !good;
    return good;
}

static uint64_t load(const Flat *flat, uint32_t at, uint32_t bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)flat->at[at + i] << (8 * i);
    return value;
}

/* Where the offset at `at` leads; 0 if outside. */
static uint32_t follow(Flat *flat, uint32_t at) {
    if (!inside(flat, at, 4))
        return 0;
    uint64_t to = at + load(flat, at, 4);
    return inside(flat, to, 4) ? (uint32_t)to : 0;
}

uint32_t flat_root(Flat *flat) {
    return follow(flat, 0);
}

/* The place of a field of `size` bytes; 0 if it is absent. */
static uint32_t field_at(Flat *flat, uint32_t table, uint32_t field,
                         uint32_t size) {
    if (!table || !inside(flat, table, 4))
        return 0;
    int64_t vtable = (int64_t)table - (int32_t)load(flat, table, 4);
    if (vtable < 0 || !inside(flat, (uint64_t)vtable, 4)) {
        flat->bad = true;
        return 0;
    }
    uint32_t bytes = (uint32_t)load(flat, (uint32_t)vtable, 2);
    uint32_t entry = 4 + 2 * field;
    if (entry + 2 > bytes || !inside(flat, (uint64_t)vtable, entry + 2))
        return 0;
    uint32_t at = (uint32_t)load(flat, (uint32_t)vtable + entry, 2);
    return at && inside(flat, (uint64_t)table + at, size) ? table + at : 0;
}

int32_t flat_i32(Flat *flat, uint32_t table, uint32_t field, int32_t missing) {
    uint32_t at = field_at(flat, table, field, 4);
    return at ? (int32_t)load(flat, at, 4) : missing;
}

uint8_t flat_u8(Flat *flat, uint32_t table, uint32_t field, uint8_t missing) {
    uint32_t at = field_at(flat, table, field, 1);
    return at ? flat->at[at] : missing;
}

float flat_f32(Flat *flat, uint32_t table, uint32_t field, float missing) {
    uint32_t at = field_at(flat, table, field, 4);
    return at ? flat_at_f32(flat, (FlatVector){at, 1}, 0) : missing;
}

uint32_t flat_table(Flat *flat, uint32_t table, uint32_t field) {
    uint32_t at = field_at(flat, table, field, 4);
    return at ? follow(flat, at) : 0;
}

FlatVector flat_vector(Flat *flat, uint32_t table, uint32_t field,
                       uint32_t size) {
    uint32_t at = flat_table(flat, table, field);
    if (!at)
        return (FlatVector){0, 0};
    uint32_t n = (uint32_t)load(flat, at, 4);
    if (!inside(flat, (uint64_t)at + 4, (uint64_t)n * size))
        return (FlatVector){0, 0};
    return (FlatVector){at + 4, n};
}

uint32_t flat_element(Flat *flat, FlatVector vector, uint32_t i) {
    return i < vector.n ? follow(flat, vector.at + 4 * i) : 0;
}

int32_t flat_at_i32(const Flat *flat, FlatVector vector, uint32_t i) {
    return i < vector.n ? (int32_t)load(flat, vector.at + 4 * i, 4) : 0;
}

int64_t flat_at_i64(const Flat *flat, FlatVector vector, uint32_t i) {
    return i < vector.n ? (int64_t)load(flat, vector.at + 8 * i, 8) : 0;
}

float flat_at_f32(const Flat *flat, FlatVector vector, uint32_t i) {
    uint32_t bits = (uint32_t)flat_at_i32(flat, vector, i);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const char *flat_string(Arena *arena, Flat *flat, uint32_t table,
                        uint32_t field) {
    FlatVector bytes = flat_vector(flat, table, field, 1);
    return arena_strndup(arena, (const char *)flat->at + bytes.at, bytes.n);
}
