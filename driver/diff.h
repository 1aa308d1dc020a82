/* diff.h - two machines, or two listings of one, side by side. */
#ifndef DRIVER_DIFF_H
#define DRIVER_DIFF_H

#include "base/yaml.h"
#include "driver/explore.h"

#include <cjson/cJSON.h>

enum { DIFF_SIDES = 2 };

/* A key that two hwspecs do not say the same of; NULL: one that has it not. */
typedef struct KeyChange {
    const char *path, *a, *b;
} KeyChange;

/* diff_keys.c: in the order of `a`, then of `b`; `extends` aside, whose keys
 * are in the tree. */
uint32_t diff_keys(Arena *arena, const YamlNode *a, const YamlNode *b,
                   const KeyChange **out);

/* What a listing costs; `sim` and `listing` where there is one. */
typedef struct DiffCosts {
    Point point;
    const SimResult *sim;
    const Listing *listing;
} DiffCosts;

/* diff_costs.c. Both have a listing. */
void diff_print(Arena *arena, const DiffCosts cost[DIFF_SIDES]);
/* Adds "figures" and "layers". */
void diff_add_json(Arena *arena, cJSON *json, const DiffCosts cost[DIFF_SIDES]);

#endif
