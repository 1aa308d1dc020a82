/* jsonlook.c - keys of a JSON text by one walk over its bytes: depth is counted
 * at brackets outside strings, and a key is a string with a colon behind it.
 * No memory is taken and nesting is free, so any input may be looked at. */
#include "base/jsonlook.h"

#include <string.h>

typedef struct Look {
    const char *at, *end;
    size_t depth;
} Look;

static void skip_space(Look *look) {
    while (look->at < look->end && *look->at && strchr(" \t\r\n", *look->at))
        look->at++;
}

/* The string at `at`, without its quotes. */
static Bytes take_string(Look *look) {
    const char *start = ++look->at;
    while (look->at < look->end && *look->at != '"')
        look->at += *look->at == '\\' && look->end - look->at > 1 ? 2 : 1;
    Bytes string = {(const uint8_t *)start, (size_t)(look->at - start)};
    look->at += look->at < look->end;
    return string;
}

/* The next key, at any depth. */
static bool next_key(Look *look, Bytes *key) {
    while (look->at < look->end) {
        char c = *look->at;
        if (c == '"') {
            *key = take_string(look);
            skip_space(look);
            if (look->at < look->end && *look->at == ':')
                return true;
            continue;
        }
        if (c == '{' || c == '[')
            look->depth++;
        else if ((c == '}' || c == ']') && look->depth)
            look->depth--;
        look->at++;
    }
    return false;
}

static bool is(Bytes key, const char *want) {
    return key.len == strlen(want) && !memcmp(key.at, want, key.len);
}

bool json_has_inner_key(Bytes bytes, const char *key, const char *inner) {
    const char *text = (const char *)bytes.at;
    Look look = {text, text + bytes.len, 0};
    Bytes found;
    bool inside = false;
    skip_space(&look);
    if (look.at == look.end || *look.at != '{')
        return false;
    while (next_key(&look, &found)) {
        if (look.depth == 1)
            inside = is(found, key);
        if (inside &&
            (inner ? look.depth == 2 && is(found, inner) : look.depth == 1))
            return true;
    }
    return false;
}

bool json_has_key(Bytes bytes, const char *key) {
    return json_has_inner_key(bytes, key, NULL);
}
