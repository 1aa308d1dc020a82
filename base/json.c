/* json.c - JSON in and out, on cJSON; see json.h. */
#include "base/json.h"

#include "base/plain.h"

#include <string.h>

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Line and column (in characters) of a byte. */
static Loc place(const char *file, const char *text, size_t offset) {
    Loc loc = {file, 1, 1};
    for (size_t i = 0; i < offset; i++) {
        loc.col += ((unsigned char)text[i] & 0xC0) != 0x80;
        if (text[i] == '\n') {
            loc.line++;
            loc.col = 1;
        }
    }
    return loc;
}

/* Lists and objects that are open behind byte `at`. */
static uint32_t depth_behind(const char *text, size_t at) {
    uint32_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i <= at; i++) {
        if (text[i] == '"')
            in_string = !in_string;
        else if (in_string)
            i += text[i] == '\\';
        else if (text[i] == '[' || text[i] == '{')
            depth++;
        else if (depth && (text[i] == ']' || text[i] == '}'))
            depth--;
    }
    return depth;
}

/* Why cJSON stopped at byte `at`: it tells no more than where. */
static const char *reason(const char *text, size_t at, size_t len) {
    if (depth_behind(text, at) > CJSON_NESTING_LIMIT)
        return "nested too deep";
    if (at + 1 >= len)
        return "this is not JSON, or not all of it";
    return "this is not JSON";
}

cJSON *json_parse(Diag *diag, const char *file, const char *text, size_t len) {
    diag_source(diag, file, text, len);
    if (!len) {
        diag_error(diag, (Loc){file, 0, 0}, "nothing is in it");
        return NULL;
    }
    /* Releases of cJSON before 1.7.18 can look one byte too far. */
    Arena *scratch = arena_new("JSON text");
    const char *copy = arena_strndup(scratch, text, len), *stop = copy;
    cJSON *json = cJSON_ParseWithLengthOpts(copy, len, &stop, false);
    size_t end = (size_t)(stop - copy);
    arena_free(scratch);
    if (!json) {
        diag_error(diag, place(file, text, end), "%s", reason(text, end, len));
        return NULL;
    }
    while (end < len && is_space(text[end]))
        end++;
    if (end == len)
        return json;
    diag_error(diag, place(file, text, end), "more text after the JSON value");
    cJSON_Delete(json);
    return NULL;
}

const char *json_print(Arena *arena, const cJSON *json, bool pretty) {
    char *text = pretty ? cJSON_Print(json) : cJSON_PrintUnformatted(json);
    if (!text)
        bug("cJSON cannot print a value");
    const char *copy = arena_strdup(arena, text);
    cJSON_free(text);
    return plain_json(arena, copy);
}

void json_free(cJSON *json) {
    cJSON_Delete(json);
}

const char *json_str(const cJSON *object, const char *key,
                     const char *fallback) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : fallback;
}

double json_num(const cJSON *object, const char *key, double fallback) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}
