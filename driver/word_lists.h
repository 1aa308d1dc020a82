/* word_lists.h - lists of words as files, beside the backing memory before they
 * run and a map of what lies where. */
#ifndef DRIVER_WORD_LISTS_H
#define DRIVER_WORD_LISTS_H

#include "base/diag.h"
#include "driver/options.h"

#include <cjson/cJSON.h>

/* Instructions [first, end) of a program as a file. */
typedef struct WordList {
    uint32_t first, end;
    const uint8_t *data;
    size_t len;
} WordList;

typedef struct WordLists {
    const char *stem, *ending; /* of names: STEM.ENDING, or STEM.N.ENDING */
    uint32_t n;
    const WordList *list;
    const uint8_t *image; /* the backing memory before */
    uint64_t bytes, constants;
} WordLists;

/* Adds the names of the files, instructions and bytes to a map. */
void word_lists_json(Arena *arena, const WordLists *lists, cJSON *map);
/* Writes the lists, STEM.before.bin and STEM.map.json into the folder of -o.
 * False after an error. The map is the callee's; --json prints it. */
bool word_lists_write(Arena *arena, Diag *diag, const Options *options,
                      const WordLists *lists, cJSON *map);
/* What was written, on stdout. */
void word_lists_say(Arena *arena, const Options *options,
                    const WordLists *lists);

#endif
