/* plain.h - names of others in texts of ours.
 *
 * Names come from models, listings and hwspecs. What steers a terminal, breaks
 * a line or turns the direction of writing never leaves raw: such bytes are
 * written \xHH, in JSON \uHHHH, in names of a listing %HH. Those are control
 * characters, also of eight bits and as code points 80 to 9f, bidirectional
 * ones, line and paragraph separators, and bytes that are no UTF-8.
 */
#ifndef BASE_PLAIN_H
#define BASE_PLAIN_H

#include "base/text.h"

#include <stdio.h>

/* Bytes of the character at `at`, which is not the end of the string; 0: its
 * first byte must not be written as it is. */
size_t plain_length(const char *at);

/* The string with \xHH for such bytes. */
void text_add_plain(Text *text, const char *string);
const char *plain_text(Arena *arena, const char *string);

/* JSON as it is printed, with \uHHHH for such characters in its strings. */
const char *plain_json(Arena *arena, const char *json);

/* As printf to where results go (guard.h), and to `to`, which may be NULL;
 * strings are written plain. Conversions are those of d i u x X c s e f g with
 * flags, widths and precisions, and l, ll, z in front of whole numbers. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_to(FILE *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A text of lines and tabs, all else in it plain. */
void say_lines(FILE *to, const char *text);

#endif
