/* wire.c - protobuf's binary format in place; see wire.h. Rules: the public
 * "Encoding" page of protobuf. Every length is checked against what remains
 * before anything is read. */
#include "frontends/proto/wire.h"

#include "frontends/proto/proto.h"

#include <string.h>

enum { MAX_VARINT = 10, MAX_NUMBER = (1 << 29) - 1 };

WireReader wire_open(Bytes file) {
    static const uint8_t nothing;
    const uint8_t *at = file.len ? file.at : &nothing;
    return (WireReader){.file = at, .at = at, .end = at + file.len};
}

static bool fail(WireReader *reader, const uint8_t *where, const char *error) {
    reader->error = error;
    reader->where = where;
    reader->at = reader->end;
    return false;
}

WireReader wire_enter(const WireReader *outer, const WireField *field) {
    WireReader inner = wire_open(field->bytes);
    inner.file = outer->file;
    inner.depth = outer->depth + 1;
    if (inner.depth > PROTO_MAX_DEPTH)
        fail(&inner, inner.at, "messages are nested more than 100 deep");
    return inner;
}

static bool read_varint(WireReader *reader, uint64_t *value) {
    const uint8_t *start = reader->at;
    *value = 0;
    for (unsigned i = 0; i < MAX_VARINT; i++) {
        if (reader->at == reader->end)
            return fail(reader, start, "the data ends inside a number");
        uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80))
            return true;
    }
    return fail(reader, start, "a number of more than 10 bytes");
}

/* `n` bytes, little end first. */
static bool read_fixed(WireReader *reader, unsigned n, uint64_t *value) {
    if ((size_t)(reader->end - reader->at) < n)
        return fail(reader, reader->at, "the data ends inside a number");
    *value = 0;
    for (unsigned i = 0; i < n; i++)
        *value |= (uint64_t)*reader->at++ << (8 * i);
    return true;
}

static bool read_tag(WireReader *reader, WireField *field) {
    const uint8_t *start = reader->at;
    uint64_t tag;
    field->offset = (size_t)(start - reader->file);
    if (!read_varint(reader, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > MAX_NUMBER)
        return fail(reader, start, "not a field number");
    if ((tag & 7) > WIRE_FIXED32)
        return fail(reader, start, "not a wire type");
    field->number = (uint32_t)(tag >> 3);
    field->type = (WireType)(tag & 7);
    return true;
}

static bool read_value(WireReader *reader, WireField *field) {
    const uint8_t *start = reader->at;
    switch (field->type) {
    case WIRE_VARINT:
        return read_varint(reader, &field->value);
    case WIRE_FIXED64:
        return read_fixed(reader, 8, &field->value);
    case WIRE_FIXED32:
        return read_fixed(reader, 4, &field->value);
    case WIRE_BYTES:
        if (!read_varint(reader, &field->value))
            return false;
        if (field->value > (uint64_t)(reader->end - reader->at))
            return fail(reader, start, "a field is longer than what is left");
        field->bytes = (Bytes){reader->at, (size_t)field->value};
        reader->at += field->value;
        return true;
    default:
        return true;
    }
}

/* From behind the tag that opens group `number` to behind the one that closes
 * it. */
static bool skip_group(WireReader *reader, uint32_t number) {
    uint32_t open[PROTO_MAX_DEPTH];
    uint32_t depth = 0;
    open[depth++] = number;
    while (depth > 0) {
        const uint8_t *start = reader->at;
        WireField field;
        if (reader->at == reader->end)
            return fail(reader, start, "the data ends inside a group");
        if (!read_tag(reader, &field) || !read_value(reader, &field))
            return false;
        if (field.type == WIRE_GROUP && depth == PROTO_MAX_DEPTH)
            return fail(reader, start, "groups are nested more than 100 deep");
        if (field.type == WIRE_GROUP)
            open[depth++] = field.number;
        else if (field.type == WIRE_END_GROUP && open[--depth] != field.number)
            return fail(reader, start, "a group is closed that is not open");
    }
    return true;
}

bool wire_next(WireReader *reader, WireField *field) {
    while (reader->at < reader->end) {
        const uint8_t *start = reader->at;
        if (!read_tag(reader, field) || !read_value(reader, field))
            return false;
        if (field->type == WIRE_END_GROUP)
            return fail(reader, start, "a group is closed that is not open");
        if (field->type != WIRE_GROUP)
            return true;
        if (!skip_group(reader, field->number))
            return false;
    }
    return false;
}

void wire_report(const WireReader *reader, Diag *diag, const char *file) {
    size_t offset = (size_t)(reader->where - reader->file);
    uint32_t shown = offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset;
    diag_error(diag, (Loc){file, 0, shown}, "%s", reader->error);
}

WireScalars wire_scalars(const WireField *field, WireType type) {
    WireScalars scalars = {.type = type};
    if (field->type == WIRE_BYTES) {
        scalars.reader = wire_open(field->bytes);
    } else {
        scalars.reader = wire_open((Bytes){NULL, 0});
        scalars.single = field->type == type;
        scalars.value = field->value;
    }
    return scalars;
}

bool wire_scalar(WireScalars *scalars, uint64_t *value) {
    WireReader *reader = &scalars->reader;
    if (scalars->single) {
        scalars->single = false;
        *value = scalars->value;
        return true;
    }
    if (reader->at == reader->end)
        return false;
    if (scalars->type == WIRE_VARINT)
        return read_varint(reader, value);
    return read_fixed(reader, scalars->type == WIRE_FIXED32 ? 4 : 8, value);
}

bool wire_count(const WireField *field, WireType type, uint64_t *count) {
    size_t size = type == WIRE_FIXED32 ? 4 : type == WIRE_FIXED64 ? 8 : 1;
    *count = 1;
    if (field->type == type)
        return true;
    if (field->type != WIRE_BYTES || field->bytes.len % size)
        return false;
    *count = field->bytes.len / size;
    if (type != WIRE_VARINT)
        return true;
    *count = 0;
    for (size_t i = 0; i < field->bytes.len; i++)
        *count += !(field->bytes.at[i] & 0x80);
    return !field->bytes.len || !(field->bytes.at[field->bytes.len - 1] & 0x80);
}

float wire_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

double wire_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
