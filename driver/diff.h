/* diff.h - two machines side by side. */
#ifndef DRIVER_DIFF_H
#define DRIVER_DIFF_H

#include "base/yaml.h"

/* A key that two hwspecs do not say the same of; NULL: one that has it not. */
typedef struct KeyChange {
    const char *path, *a, *b;
} KeyChange;

/* diff_keys.c: in the order of `a`, then of `b`; `extends` aside, whose keys
 * are in the tree. */
uint32_t diff_keys(Arena *arena, const YamlNode *a, const YamlNode *b,
                   const KeyChange **out);

#endif
