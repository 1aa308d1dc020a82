/* printed.h - what a Diag prints, as a string. */
#ifndef TESTS_BASE_PRINTED_H
#define TESTS_BASE_PRINTED_H

#include "base/diag.h"

#include <stdlib.h>

static inline const char *printed(Arena *arena, Diag *diag) {
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    diag_print(diag, to);
    fclose(to);
    const char *copy = arena_strndup(arena, text, len);
    free(text);
    return copy;
}

#endif
