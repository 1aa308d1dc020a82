/* json.h - JSON in and out, on cJSON.
 *
 * cJSON keeps numbers as doubles: 64-bit values that may exceed 2^53 are
 * written as strings. Objects are freed with json_free.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/diag.h"

#include <cjson/cJSON.h>

/* Parses a whole text; an error has line and column. NULL after an error.
 * Nesting is capped by cJSON at 1000. */
cJSON *json_parse(Diag *diag, const char *file, const char *text, size_t len);

/* Prints into the arena: `pretty` with one key a line, else without space. */
const char *json_print(Arena *arena, const cJSON *json, bool pretty);

void json_free(cJSON *json);

/* Getters with a fallback: wrong kind or absent gives the fallback. */
const char *json_str(const cJSON *object, const char *key,
                     const char *fallback);
double json_num(const cJSON *object, const char *key, double fallback);

#endif
