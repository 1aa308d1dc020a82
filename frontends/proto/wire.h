/* wire.h - protobuf's binary format, read in place.
 *
 * In: bytes. Out: one field after the other; strings, bytes and messages are
 * slices of the input, nothing is copied or allocated. Groups (an obsolete
 * form) are skipped whole. The first error stops a reader for good.
 *
 *     WireReader r = wire_open(bytes);
 *     for (WireField f; wire_next(&r, &f);) ...
 *     if (r.error) wire_report(&r, diag, file);
 */
#ifndef FRONTENDS_PROTO_WIRE_H
#define FRONTENDS_PROTO_WIRE_H

#include "base/file.h"

typedef enum WireType {
    WIRE_VARINT,
    WIRE_FIXED64,
    WIRE_BYTES,
    WIRE_GROUP,
    WIRE_END_GROUP,
    WIRE_FIXED32
} WireType;

typedef struct WireReader {
    const uint8_t *file, *at, *end;
    uint32_t depth;       /* messages around this one */
    const char *error;    /* NULL while all is well */
    const uint8_t *where; /* of the error */
} WireReader;

typedef struct WireField {
    uint32_t number;
    WireType type;  /* WIRE_VARINT, _FIXED32, _FIXED64 or _BYTES */
    uint64_t value; /* scalars, as their bits */
    Bytes bytes;    /* WIRE_BYTES */
    size_t offset;  /* of the field in the file */
} WireField;

WireReader wire_open(Bytes file);

/* The message inside `field`; one that is nested too deep gives an error. */
WireReader wire_enter(const WireReader *outer, const WireField *field);

/* The next field; false at the end and after errors. */
bool wire_next(WireReader *reader, WireField *field);

/* The error as "file: byte N: error: ...". */
void wire_report(const WireReader *reader, Diag *diag, const char *file);

/* How many scalars of a repeated field stand in this one occurrence of it:
 * several where they are packed (`type` is that of one scalar). False where
 * the bytes are not a whole number of them. */
bool wire_count(const WireField *field, WireType type, uint64_t *count);

/* Reads scalar after scalar of one occurrence, packed or not. */
typedef struct WireScalars {
    WireReader reader;
    WireType type;
    bool single; /* not packed, and not yet read */
    uint64_t value;
} WireScalars;
WireScalars wire_scalars(const WireField *field, WireType type);
bool wire_scalar(WireScalars *scalars, uint64_t *value);

/* The float or double with these bits. */
float wire_float(uint64_t bits);
double wire_double(uint64_t bits);

#endif
