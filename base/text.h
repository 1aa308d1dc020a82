/* text.h - building long texts: append, then take the whole; or have it handed
 * on piece by piece as it comes, so that it is never there as a whole. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

/* Where a text goes. */
typedef void TextSink(void *context, const char *bytes, size_t len);

typedef struct Text {
    Arena *arena;
    char *at;
    size_t len, cap;
    TextSink *sink; /* or NULL */
    void *context;  /* of sink */
} Text;

Text text_new(Arena *arena);
/* A text that is handed on, some thousand bytes at a time; the rest of it by
 * text_end. It has no text_str. */
Text text_into(Arena *arena, TextSink *sink, void *context);
void text_end(Text *text);
void text_add(Text *text, const char *string);
void text_add_n(Text *text, const char *bytes, size_t len);
void text_addf(Text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 1234567 -> "1,234,567". */
const char *with_commas(Arena *arena, uint64_t value);
/* The number and the noun, in the plural if it is not 1: "1 layer",
 * "2,000 layers". */
const char *with_noun(Arena *arena, uint64_t n, const char *noun);

/* NUL-terminated; `len` does not count the NUL. */
const char *text_str(Text *text);

#endif
