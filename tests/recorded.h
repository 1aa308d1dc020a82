/* recorded.h - what a program computes today, against a file of it in the tree.
 *
 * For answers of which many are right, but which must not change unless that
 * is meant: a program that is run with --write makes its file anew. Include
 * behind cmocka.h.
 */
#ifndef TESTS_RECORDED_H
#define TESTS_RECORDED_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* All of a file. */
static inline char *recorded_text(Arena *arena, const char *path) {
    enum { MOST = 1 << 20 };
    char *text = ARENA_ARRAY(arena, char, MOST);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, MOST - 1, file)] = 0;
    fclose(file);
    return text;
}

/* Fails with the first part that differs; parts end at ';' or with a line. */
static inline void recorded_compare(const char *path, const char *is) {
    Arena *arena = arena_new("recorded");
    const char *was = recorded_text(arena, path);
    size_t line = 0, from = 0, at = 0;
    for (; is[at] && is[at] == was[at]; at++) {
        line = is[at] == '\n' ? at + 1 : line;
        from = is[at] == '\n' || is[at] == ';' ? at + 1 : from;
    }
    if (is[at] || was[at])
        fail_msg("%s: %.*s:\n-%.*s\n+%.*s", path,
                 (int)strcspn(is + line, ";\n"), is + line,
                 (int)strcspn(was + from, ";\n"), was + from,
                 (int)strcspn(is + from, ";\n"), is + from);
    arena_free(arena);
}

static inline int recorded_write(const char *path, const char *is) {
    FILE *file = fopen(path, "wb");
    bool good = file && fputs(is, file) >= 0;
    return !(file && !fclose(file) && good);
}

#endif
