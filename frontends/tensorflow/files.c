/* files.c - the three forms of a GraphDef, and a SavedModel, as one tree of
 * proto/proto.h.
 *
 * In: bytes. Out: the tree with the names of fields that the text form has.
 * JSON is proto3's: names in camel case, 64 bits as strings, bytes in base 64,
 * maps as objects; of tfjs the graph is under "modelTopology", and the weights
 * are beside it.
 */
#include "frontends/proto/protobin.h"
#include "frontends/proto/textformat.h"
#include "frontends/tensorflow/tf.h"

#include "base/vec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

/* tensorContent -> tensor_content */
static const char *snake(Arena *arena, const char *name) {
    char *out = arena_alloc(arena, 2 * strlen(name) + 1, 1);
    size_t n = 0;
    for (; *name; name++) {
        if (isupper((unsigned char)*name))
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)*name);
    }
    return out;
}

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq"
                                 "rstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c == '-'   ? '+'
                                        : c == '_' ? '/'
                                                   : c)
                       : NULL;
    return at ? (int)(at - digits) : -1;
}

static void set_base64(Arena *arena, ProtoField *field, const char *text) {
    char *out = arena_alloc(arena, strlen(text) + 1, 1);
    uint32_t bits = 0, held = 0;
    for (; *text && base64_digit(*text) >= 0; text++) {
        bits = bits << 6 | (uint32_t)base64_digit(*text);
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[field->len++] = (char)(bits >> held & 255);
        }
    }
    out[field->len] = '\0';
    field->kind = PROTO_STRING;
    field->text = out;
}

static void set_number(ProtoField *field, const char *text, double value) {
    char *end;
    field->kind = PROTO_NUMBER;
    field->text = text;
    field->len = strlen(text);
    field->number = value;
    field->integer = strtoll(text, &end, 10);
    field->whole = !*end;
}

/* Strings are bytes, numbers, words or text by the field that they stand in. */
static void set_string(Arena *arena, ProtoField *field, const char *text) {
    static const char *const bytes[] = {"s", "tensor_content"};
    static const char *const words[] = {"type", "dtype"};
    static const char *const numbers[] = {"i", "size",      "int64_val",
                                          "f", "float_val", "double_val"};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        if (!strcmp(field->name, bytes[i])) {
            set_base64(arena, field, text);
            return;
        }
    field->kind = PROTO_STRING;
    field->text = arena_strdup(arena, text);
    field->len = strlen(text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(field->name, words[i]))
            field->kind = PROTO_WORD;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(field->name, numbers[i]))
            set_number(field, field->text, strtod(text, NULL));
}

static ProtoMessage *message_of(const Tf *tf, const cJSON *json);

/* {"T": {...}} as messages of a key and a value. */
static ProtoMessage *entry_of(const Tf *tf, const cJSON *json) {
    Arena *arena = tf->net.arena;
    ProtoMessage *entry = ARENA_NEW(arena, ProtoMessage);
    entry->loc = tf->net.loc;
    entry->n = 2;
    entry->field = ARENA_ARRAY(arena, ProtoField, 2);
    entry->field[0] = (ProtoField){.name = "key",
                                   .kind = PROTO_STRING,
                                   .loc = tf->net.loc,
                                   .at = tf->net.loc,
                                   .text = arena_strdup(arena, json->string),
                                   .len = strlen(json->string)};
    entry->field[1] = (ProtoField){.name = "value",
                                   .kind = PROTO_MESSAGE,
                                   .loc = tf->net.loc,
                                   .at = tf->net.loc,
                                   .message = message_of(tf, json)};
    return entry;
}

static ProtoField field_of(const Tf *tf, const char *name, const cJSON *json) {
    Arena *arena = tf->net.arena;
    ProtoField field = {.name = name, .loc = tf->net.loc, .at = tf->net.loc};
    if (cJSON_IsString(json)) {
        set_string(arena, &field, json->valuestring);
    } else if (cJSON_IsNumber(json)) {
        set_number(&field, arena_printf(arena, "%.17g", json->valuedouble),
                   json->valuedouble);
    } else if (cJSON_IsObject(json)) {
        field.kind = PROTO_MESSAGE;
        field.message = message_of(tf, json);
    } else {
        field.kind = PROTO_WORD;
        field.text = cJSON_IsTrue(json) ? "true" : "false";
        field.len = strlen(field.text);
    }
    return field;
}

static ProtoMessage *message_of(const Tf *tf, const cJSON *json) {
    Arena *arena = tf->net.arena;
    ProtoMessage *message = ARENA_NEW(arena, ProtoMessage);
    VEC(ProtoField) fields = {0};
    const cJSON *item, *value;
    message->loc = tf->net.loc;
    cJSON_ArrayForEach(item, json) {
        const char *name = snake(arena, item->string ? item->string : "");
        bool map = !strcmp(name, "attr") && cJSON_IsObject(item);
        if (!map && !cJSON_IsArray(item)) {
            vec_push(arena, &fields, field_of(tf, name, item));
            continue;
        }
        cJSON_ArrayForEach(value, item) {
            ProtoField field = {.name = name,
                                .kind = PROTO_MESSAGE,
                                .loc = tf->net.loc,
                                .at = tf->net.loc};
            if (map)
                field.message = entry_of(tf, value);
            else
                field = field_of(tf, name, value);
            vec_push(arena, &fields, field);
        }
    }
    message->n = fields.n;
    message->field = fields.at;
    return message;
}

static const ProtoMessage *parse_json(Tf *tf, Bytes bytes) {
    cJSON *json = json_parse(tf->net.diag, tf->net.path, (const char *)bytes.at,
                             bytes.len);
    if (!json)
        return NULL;
    const cJSON *topology =
        cJSON_GetObjectItemCaseSensitive(json, "modelTopology");
    tf_read_manifest(tf, json);
    const ProtoMessage *graph = message_of(tf, topology ? topology : json);
    json_free(json);
    return diag_errors(tf->net.diag) ? NULL : graph;
}

/* ---- the three ---- */

const ProtoMessage *tf_parse(Tf *tf, Bytes bytes, const ProtoSchema *schema) {
    size_t at = 0;
    while (at < bytes.len && strchr(" \t\r\n", (char)bytes.at[at]) &&
           bytes.at[at])
        at++;
    if (at < bytes.len && bytes.at[at] == '{')
        return parse_json(tf, bytes);
    if (at < bytes.len && (bytes.at[at] == 'n' || bytes.at[at] == '#'))
        return textformat_parse(tf->net.arena, tf->net.diag, tf->net.path,
                                bytes);
    return protobin_parse(tf->net.arena, tf->net.diag, tf->net.path, bytes,
                          schema);
}
