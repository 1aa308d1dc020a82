/* text.c - building long texts; see text.h. */
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 16 }; /* bytes that are handed on at once, or more */

Text text_new(Arena *arena) {
    return (Text){.arena = arena};
}

Text text_into(Arena *arena, TextSink *sink, void *context) {
    return (Text){.arena = arena, .sink = sink, .context = context};
}

void text_end(Text *text) {
    if (text->len)
        text->sink(text->context, text->at, text->len);
    text->len = 0;
}

static void reserve(Text *text, size_t more) {
    if (text->sink && text->len >= PIECE)
        text_end(text);
    if (text->cap - text->len > more)
        return;
    size_t cap = text->cap ? text->cap : 256;
    while (cap - text->len <= more)
        cap *= 2;
    char *at = arena_alloc(text->arena, cap, 1);
    if (text->len)
        memcpy(at, text->at, text->len);
    text->at = at;
    text->cap = cap;
}

void text_add_n(Text *text, const char *bytes, size_t len) {
    if (text->sink && len >= PIECE) {
        text_end(text);
        text->sink(text->context, bytes, len);
        return;
    }
    reserve(text, len);
    if (len)
        memcpy(text->at + text->len, bytes, len);
    text->len += len;
}

void text_add(Text *text, const char *string) {
    text_add_n(text, string, strlen(string));
}

void text_addf(Text *text, const char *format, ...) {
    enum { MOSTLY = 64 }; /* bytes that are enough for most */
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    reserve(text, MOSTLY);
    size_t room = text->cap - text->len;
    int len = vsnprintf(text->at + text->len, room, format, args);
    va_end(args);
    if (len > 0 && (size_t)len >= room) {
        reserve(text, (size_t)len);
        vsnprintf(text->at + text->len, (size_t)len + 1, format, again);
    }
    text->len += len > 0 ? (size_t)len : 0;
    va_end(again);
}

const char *text_str(Text *text) {
    assert(!text->sink);
    reserve(text, 0);
    text->at[text->len] = '\0';
    return text->at;
}

const char *with_commas(Arena *arena, uint64_t value) {
    const char *digits = arena_printf(arena, "%llu", (unsigned long long)value);
    size_t len = strlen(digits), at = 0;
    char *text = ARENA_ARRAY(arena, char, len + len / 3 + 1);
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    return text;
}

const char *with_noun(Arena *arena, uint64_t n, const char *noun) {
    return arena_printf(arena, "%s %s%s", with_commas(arena, n), noun,
                        n == 1 ? "" : "s");
}
