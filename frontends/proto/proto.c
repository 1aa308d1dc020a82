/* proto.c - getters over trees of protobuf messages; see proto.h. */
#include "frontends/proto/proto.h"

#include "base/map.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

ProtoField *proto_next(const ProtoMessage *message, const char *name,
                       const ProtoField *after) {
    if (!message)
        return NULL;
    uint32_t i = after ? (uint32_t)(after - message->field) + 1 : 0;
    for (; i < message->n; i++)
        if (!strcmp(message->field[i].name, name)) {
            message->field[i].used = true;
            return &message->field[i];
        }
    return NULL;
}

ProtoField *proto_last(const ProtoMessage *message, const char *name) {
    ProtoField *last = NULL;
    for (ProtoField *f = proto_next(message, name, NULL); f;
         f = proto_next(message, name, f))
        last = f;
    return last;
}

uint32_t proto_count(const ProtoMessage *message, const char *name) {
    uint32_t n = 0;
    for (const ProtoField *f = proto_next(message, name, NULL); f;
         f = proto_next(message, name, f))
        n++;
    return n;
}

/* What a field holds, for messages. */
static const char *shown(const ProtoField *field) {
    return field->kind == PROTO_MESSAGE ? "a message" : field->text;
}

static bool expected(Diag *diag, const ProtoField *field, const char *what) {
    diag_error(diag, field->at, "'%s' must be %s, not %.60s", field->name, what,
               shown(field));
    return false;
}

/* All messages called `name` in one; `n` fields in all. */
static ProtoMessage *merge(Arena *arena, const ProtoMessage *message,
                           const char *name, uint32_t n) {
    ProtoMessage *merged = ARENA_NEW(arena, ProtoMessage);
    merged->field = ARENA_ARRAY(arena, ProtoField, n);
    for (const ProtoField *f = proto_next(message, name, NULL); f;
         f = proto_next(message, name, f)) {
        if (f->kind != PROTO_MESSAGE)
            continue;
        merged->loc = f->message->loc;
        for (uint32_t i = 0; i < f->message->n; i++)
            merged->field[merged->n++] = f->message->field[i];
        proto_use_all(f->message);
    }
    return merged;
}

const ProtoMessage *proto_message(Arena *arena, Diag *diag,
                                  const ProtoMessage *message,
                                  const char *name) {
    const ProtoMessage *only = NULL;
    uint32_t messages = 0, fields = 0;
    for (const ProtoField *f = proto_next(message, name, NULL); f;
         f = proto_next(message, name, f)) {
        if (f->kind != PROTO_MESSAGE) {
            expected(diag, f, "a message");
            continue;
        }
        only = f->message;
        messages++;
        fields += f->message->n;
    }
    return messages > 1 ? merge(arena, message, name, fields) : only;
}

bool proto_get_str(Diag *diag, const ProtoField *field, const char **out) {
    if (field->kind != PROTO_STRING)
        return expected(diag, field, "a string in quotes");
    if (strlen(field->text) != field->len)
        return expected(diag, field, "a string without NUL bytes");
    *out = field->text;
    return true;
}

bool proto_get_bool(Diag *diag, const ProtoField *field, bool *out) {
    static const char *const yes[] = {"true", "True", "t", "1"};
    static const char *const no[] = {"false", "False", "f", "0"};
    if (field->kind == PROTO_WORD || field->kind == PROTO_NUMBER)
        for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
            if (!strcmp(field->text, yes[i]) || !strcmp(field->text, no[i])) {
                *out = !strcmp(field->text, yes[i]);
                return true;
            }
    return expected(diag, field, "true or false");
}

bool proto_get_i64(Diag *diag, const ProtoField *field, int64_t *out) {
    if (field->kind != PROTO_NUMBER || !field->whole)
        return expected(diag, field, "a whole number");
    *out = field->integer;
    return true;
}

bool proto_get_u32(Diag *diag, const ProtoField *field, uint32_t *out) {
    if (field->kind != PROTO_NUMBER || !field->whole || field->integer < 0 ||
        field->integer > UINT32_MAX)
        return expected(diag, field, "a whole number from 0 to 4294967295");
    *out = (uint32_t)field->integer;
    return true;
}

bool proto_get_f64(Diag *diag, const ProtoField *field, double *out) {
    if (field->kind == PROTO_NUMBER) {
        *out = field->number;
        return true;
    }
    static const char *const word[] = {"inf", "infinity", "nan"};
    if (field->kind == PROTO_WORD)
        for (size_t i = 0; i < sizeof word / sizeof *word; i++)
            if (!strcmp(field->text, word[i])) {
                *out = i < 2 ? (double)INFINITY : (double)NAN;
                return true;
            }
    return expected(diag, field, "a number");
}

static bool expected_word(Diag *diag, const ProtoField *field,
                          const char *const *names) {
    Arena *arena = arena_new("proto");
    Text list = text_new(arena);
    for (uint32_t i = 0; names[i]; i++)
        text_addf(&list, "%s%s", i ? ", " : "one of ", names[i]);
    expected(diag, field, text_str(&list));
    arena_free(arena);
    return false;
}

bool proto_get_enum(Diag *diag, const ProtoField *field,
                    const char *const *names, uint32_t *out) {
    for (uint32_t i = 0; names[i]; i++)
        if (field->kind == PROTO_NUMBER
                ? field->whole && field->integer == i
                : field->kind == PROTO_WORD && !strcmp(field->text, names[i])) {
            *out = i;
            return true;
        }
    return expected_word(diag, field, names);
}

#define LAST_OF(name_of, T)                                                    \
    bool proto_##name_of(Diag *diag, const ProtoMessage *message,              \
                         const char *name, T *out) {                           \
        const ProtoField *field = proto_last(message, name);                   \
        return field && proto_get_##name_of(diag, field, out);                 \
    }
LAST_OF(str, const char *)
LAST_OF(bool, bool)
LAST_OF(i64, int64_t)
LAST_OF(u32, uint32_t)
LAST_OF(f64, double)
#undef LAST_OF

bool proto_enum(Diag *diag, const ProtoMessage *message, const char *name,
                const char *const *names, uint32_t *out) {
    const ProtoField *field = proto_last(message, name);
    return field && proto_get_enum(diag, field, names, out);
}

void proto_use_all(const ProtoMessage *message) {
    for (uint32_t i = 0; message && i < message->n; i++) {
        message->field[i].used = true;
        proto_use_all(message->field[i].message);
    }
}

static bool is_among(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return false;
}

static void warn_unused(Map *seen, Diag *diag, const ProtoMessage *message,
                        const char *const *ignored) {
    for (uint32_t i = 0; i < message->n; i++) {
        const ProtoField *field = &message->field[i];
        if (is_among(field->name, ignored))
            continue;
        if (field->used && field->message)
            warn_unused(seen, diag, field->message, ignored);
        else if (!field->used && map_put(seen, field->name, 0))
            diag_warning(diag, field->loc, "unknown field '%s' is ignored",
                         field->name);
    }
}

void proto_warn_unused(Arena *arena, Diag *diag, const ProtoMessage *message,
                       const char *const *ignored) {
    warn_unused(map_new(arena), diag, message, ignored);
}
