/* flatwrite.h - FlatBuffers, written front to back: a table behind its vtable,
 * what it refers to behind itself. */
#ifndef FRONTENDS_TFLITE_FLATWRITE_H
#define FRONTENDS_TFLITE_FLATWRITE_H

#include "base/text.h"

typedef enum FlatKind {
    FLAT_ABSENT,
    FLAT_I8,
    FLAT_I32,
    FLAT_F32,
    FLAT_REF
} FlatKind;

/* A field of a table, by its number in a list. */
typedef struct FlatField {
    FlatKind kind;
    int32_t value;
    float real;
    size_t place; /* of FLAT_REF, once the table is written */
} FlatField;

/* Writes the table and sets the places of its references; where it begins. */
size_t flat_put_table(Text *to, uint32_t n, FlatField *field);
/* A vector of elements; where it begins. `align` of the elements. */
size_t flat_put_vector(Text *to, uint32_t n, uint32_t size, uint32_t align,
                       const void *elements);
size_t flat_put_string(Text *to, const char *string);
/* A vector of `n` references, which are to be set: element i is at the result
 * plus 4 + 4 * i. */
size_t flat_put_refs(Text *to, uint32_t n);
/* The reference at `place` is to what begins at `at`. */
void flat_refer(Text *to, size_t place, size_t at);

/* Fields of numbers. */
static inline FlatField flat_whole(int32_t value) {
    return (FlatField){.kind = FLAT_I32, .value = value};
}

static inline FlatField flat_byte(int32_t value) {
    return (FlatField){.kind = FLAT_I8, .value = value};
}

#endif
