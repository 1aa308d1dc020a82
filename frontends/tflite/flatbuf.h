/* flatbuf.h - FlatBuffers, read in place and with every offset checked.
 *
 * A table, vector or string is its place in the bytes; 0 is one that is absent,
 * which all functions accept and answer with defaults. An offset that leads
 * outside sets `bad`, and counts as absent: read all, then look at `bad`.
 */
#ifndef FRONTENDS_TFLITE_FLATBUF_H
#define FRONTENDS_TFLITE_FLATBUF_H

#include "base/file.h"

typedef struct Flat {
    const uint8_t *at;
    uint32_t len;
    bool bad;
} Flat;

typedef struct FlatVector {
    uint32_t at, n; /* of the first element; how many */
} FlatVector;

/* The root table. */
uint32_t flat_root(Flat *flat);
/* Scalars of a table by the number of the field. */
int32_t flat_i32(Flat *flat, uint32_t table, uint32_t field, int32_t missing);
uint8_t flat_u8(Flat *flat, uint32_t table, uint32_t field, uint8_t missing);
float flat_f32(Flat *flat, uint32_t table, uint32_t field, float missing);
uint32_t flat_table(Flat *flat, uint32_t table, uint32_t field);
/* Elements of `size` bytes; tables and strings are of 4. */
FlatVector flat_vector(Flat *flat, uint32_t table, uint32_t field,
                       uint32_t size);
/* Element i of a vector of tables. */
uint32_t flat_element(Flat *flat, FlatVector vector, uint32_t i);
/* A number at a place that a vector promised. */
int32_t flat_at_i32(const Flat *flat, FlatVector vector, uint32_t i);
int64_t flat_at_i64(const Flat *flat, FlatVector vector, uint32_t i);
float flat_at_f32(const Flat *flat, FlatVector vector, uint32_t i);
const char *flat_string(Arena *arena, Flat *flat, uint32_t table,
                        uint32_t field);

#endif
