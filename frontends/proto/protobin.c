/* protobin.c - binary protobuf messages to trees; see protobin.h. */
#include "frontends/proto/protobin.h"

#include "base/vec.h"
#include "frontends/proto/wire.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

typedef struct Decoder {
    Arena *arena;
    Diag *diag;
    const char *file;
    uint32_t fields;
    VEC(ProtoField) open; /* fields of messages that are not closed yet */
} Decoder;

static Loc place(const Decoder *d, size_t offset) {
    return (Loc){d->file, 0,
                 offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset};
}

static bool push(Decoder *d, ProtoField field) {
    if (d->fields++ >= PROTO_MAX_FIELDS) {
        diag_error(d->diag, field.loc, "more than %d fields", PROTO_MAX_FIELDS);
        return false;
    }
    vec_push(d->arena, &d->open, field);
    return true;
}

static WireType wire_type(ProtoType type) {
    static const WireType of[] = {
        [PROTO_INT] = WIRE_VARINT,    [PROTO_BOOL] = WIRE_VARINT,
        [PROTO_FLOAT] = WIRE_FIXED32, [PROTO_DOUBLE] = WIRE_FIXED64,
        [PROTO_TEXT] = WIRE_BYTES,    [PROTO_RAW] = WIRE_BYTES,
        [PROTO_SUB] = WIRE_BYTES,
    };
    return of[type];
}

/* The shortest decimal that is this float. It is taken for the number that the
 * author wrote, so that text and binary files of a network agree. */
static const char *float_text(Arena *arena, float value) {
    const char *text = "";
    for (int digits = FLT_DIG; digits <= FLT_DECIMAL_DIG; digits++) {
        text = arena_printf(arena, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return text;
}

static void set_number(Decoder *d, ProtoField *field, ProtoType type,
                       uint64_t bits) {
    field->kind = PROTO_NUMBER;
    if (type == PROTO_FLOAT) {
        field->text = float_text(d->arena, wire_float(bits));
        field->number = strtod(field->text, NULL);
    } else if (type == PROTO_DOUBLE) {
        field->number = wire_double(bits);
        field->text = arena_printf(d->arena, "%.17g", field->number);
    } else {
        field->whole = true;
        field->integer = (int64_t)bits;
        field->number = (double)field->integer;
        field->text = arena_printf(d->arena, "%lld", (long long)bits);
    }
    field->len = strlen(field->text);
}

static bool read_scalars(Decoder *d, ProtoField field, ProtoType type,
                         const WireField *wire) {
    WireScalars scalars = wire_scalars(wire, wire_type(type));
    uint64_t bits;
    while (wire_scalar(&scalars, &bits)) {
        set_number(d, &field, type, bits);
        if (!push(d, field))
            return false;
    }
    if (!scalars.reader.error)
        return true;
    diag_error(d->diag, field.loc, "%s", scalars.reader.error);
    return false;
}

static bool read_message(Decoder *d, WireReader *reader,
                         const ProtoSchema *schema, ProtoMessage *out);

static bool read_field(Decoder *d, const WireReader *reader,
                       const WireField *wire, const ProtoRow *row,
                       ProtoField field) {
    if (wire_type(row->type) != WIRE_BYTES)
        return read_scalars(d, field, row->type, wire);
    field.kind = PROTO_STRING;
    field.text = (const char *)wire->bytes.at;
    field.len = wire->bytes.len;
    if (row->type == PROTO_TEXT)
        field.text = arena_strndup(d->arena, field.text, field.len);
    if (row->type == PROTO_SUB) {
        WireReader inner = wire_enter(reader, wire);
        field.kind = PROTO_MESSAGE;
        field.message = ARENA_NEW(d->arena, ProtoMessage);
        field.message->loc = field.loc;
        if (!read_message(d, &inner, row->sub, field.message))
            return false;
    }
    return push(d, field);
}

/* The row of a field; NULL if the schema lacks it, or has another type. */
static const ProtoRow *find_row(const ProtoSchema *schema,
                                const WireField *wire) {
    for (uint32_t i = 0; i < schema->n; i++) {
        const ProtoRow *row = &schema->row[i];
        WireType type = wire_type(row->type);
        if (row->number == wire->number)
            return wire->type == type || wire->type == WIRE_BYTES ? row : NULL;
    }
    return NULL;
}

static bool read_message(Decoder *d, WireReader *reader,
                         const ProtoSchema *schema, ProtoMessage *out) {
    uint32_t first = d->open.n;
    for (WireField wire; wire_next(reader, &wire);) {
        const ProtoRow *row = find_row(schema, &wire);
        ProtoField field = {.loc = place(d, wire.offset)};
        field.at = field.loc;
        if (!row) {
            field.name = arena_printf(d->arena, "#%u", wire.number);
            set_number(d, &field, PROTO_INT, wire.value);
            if (!push(d, field))
                return false;
        } else {
            field.name = row->name;
            if (!read_field(d, reader, &wire, row, field))
                return false;
        }
    }
    if (reader->error) {
        wire_report(reader, d->diag, d->file);
        return false;
    }
    out->n = d->open.n - first;
    if (out->n)
        out->field =
            ARENA_COPY(d->arena, ProtoField, d->open.at + first, out->n);
    d->open.n = first;
    return true;
}

ProtoMessage *protobin_parse(Arena *arena, Diag *diag, const char *file,
                             Bytes bytes, const ProtoSchema *schema) {
    Decoder d = {.arena = arena, .diag = diag, .file = file};
    WireReader reader = wire_open(bytes);
    ProtoMessage *root = ARENA_NEW(arena, ProtoMessage);
    root->loc = place(&d, 0);
    return read_message(&d, &reader, schema, root) ? root : NULL;
}
