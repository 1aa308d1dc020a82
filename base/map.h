/* map.h - from strings to 32-bit numbers. Iteration order is never exposed, so
 * no output can depend on hashing. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct Map Map;

Map *map_new(Arena *arena);

/* Sets key to value; the key is copied. Returns false if it was there already
 * (the old value is then overwritten). */
bool map_put(Map *map, const char *key, uint32_t value);

/* The value of `key`, or `missing`. */
uint32_t map_get(const Map *map, const char *key, uint32_t missing);

#endif
