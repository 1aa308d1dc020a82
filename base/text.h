/* text.h - building long texts: append, then take the whole. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

typedef struct Text {
    Arena *arena;
    char *at;
    size_t len, cap;
} Text;

Text text_new(Arena *arena);
void text_add(Text *text, const char *string);
void text_add_n(Text *text, const char *bytes, size_t len);
void text_addf(Text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 1234567 -> "1,234,567". */
const char *with_commas(Arena *arena, uint64_t value);

/* NUL-terminated; `len` does not count the NUL. */
const char *text_str(Text *text);

#endif
