/* json_out.c - JSON written as it comes; see json_out.h.
 *
 * Input: objects and lists that are opened and closed, and values. Output: text
 * as cJSON formats it: a member a line behind a tab for each level, lists in
 * one line. cJSON prints a value as if it stood alone; the levels around it are
 * put behind its line ends.
 */
#include "base/json_out.h"

#include "base/plain.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

JsonOut json_out_new(Text *text) {
    return (JsonOut){.text = text};
}

static void tabs(JsonOut *out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        text_add_n(out->text, "\t", 1);
}

/* Bytes of a text that is written as it is; SIZE_MAX: it is not. */
static size_t plain_bytes(const char *text) {
    const char *at = text;
    for (size_t n; *at; at += n) {
        n = *at >= ' ' && *at <= '~' ? 1 : plain_length(at);
        if (!n || *at == '"' || *at == '\\')
            return SIZE_MAX;
    }
    return (size_t)(at - text);
}

static void add_printed(JsonOut *out, const cJSON *value) {
    char *text = cJSON_Print(value);
    if (!text)
        bug("cJSON cannot print a value");
    const char *safe = plain_json(out->text->arena, text);
    for (const char *at = safe, *end; *at; at = end) {
        end = strchr(at, '\n');
        end = end ? end + 1 : at + strlen(at);
        text_add_n(out->text, at, (size_t)(end - at));
        if (end[-1] == '\n')
            tabs(out, out->depth);
    }
    cJSON_free(text);
}

static void add_string(JsonOut *out, const char *string) {
    size_t n = plain_bytes(string);
    if (n < SIZE_MAX) {
        text_add_n(out->text, "\"", 1);
        text_add_n(out->text, string, n);
        text_add_n(out->text, "\"", 1);
        return;
    }
    cJSON *value = cJSON_CreateString(string);
    add_printed(out, value);
    json_free(value);
}

/* What stands before the next value. */
static void add_key(JsonOut *out, const char *key) {
    bool first = !out->depth || !out->any[out->depth - 1];
    bool member = out->depth && out->object[out->depth - 1];
    assert(member == (key != NULL));
    if (out->depth)
        out->any[out->depth - 1] = true;
    if (!first)
        text_add(out->text, member ? "," : ", ");
    if (!member)
        return;
    if (!out->compact) {
        text_add_n(out->text, "\n", 1);
        tabs(out, out->depth);
    }
    add_string(out, key);
    text_add(out->text, out->compact ? ":" : ":\t");
}

static void open_value(JsonOut *out, const char *key, bool object) {
    assert(out->depth < JSON_OUT_DEPTH);
    add_key(out, key);
    text_add_n(out->text, object ? "{" : "[", 1);
    out->object[out->depth] = object;
    out->any[out->depth++] = false;
}

void json_out_object(JsonOut *out, const char *key) {
    open_value(out, key, true);
}

void json_out_list(JsonOut *out, const char *key) {
    open_value(out, key, false);
}

void json_out_close(JsonOut *out) {
    bool object = out->object[--out->depth];
    if (object && !out->compact) {
        text_add_n(out->text, "\n", 1);
        tabs(out, out->depth);
    }
    text_add_n(out->text, object ? "}" : "]", 1);
}

/* Beyond 2^53 a string, as cJSON holds doubles. */
void json_out_number(JsonOut *out, const char *key, uint64_t value) {
    bool exact = value <= UINT64_C(1) << 53;
    add_key(out, key);
    text_addf(out->text, exact ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
}

void json_out_text(JsonOut *out, const char *key, const char *text) {
    add_key(out, key);
    if (text)
        add_string(out, text);
    else
        text_add(out->text, "null");
}

static void add_value(JsonOut *out, const char *key, const cJSON *value) {
    add_key(out, key);
    if (cJSON_IsString(value))
        add_string(out, value->valuestring);
    else if (cJSON_IsRaw(value))
        text_add(out->text, value->valuestring);
    else
        add_printed(out, value);
}

void json_out_value(JsonOut *out, const char *key, cJSON *value) {
    add_value(out, key, value);
    json_free(value);
}

void json_out_members(JsonOut *out, cJSON *object) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) add_value(out, item->string, item);
    json_free(object);
}
