/* map.c - open addressing with linear probing; see map.h. */
#include "base/map.h"

#include "base/rng.h"

#include <string.h>

typedef struct Entry {
    const char *key;
    uint32_t value;
} Entry;

struct Map {
    Arena *arena;
    Entry *entry;
    uint32_t n, cap; /* cap is a power of two, at most 3/4 full */
};

Map *map_new(Arena *arena) {
    Map *map = ARENA_NEW(arena, Map);
    map->arena = arena;
    map->cap = 16;
    map->entry = ARENA_ARRAY(arena, Entry, map->cap);
    return map;
}

static Entry *find(const Map *map, const char *key) {
    uint32_t i = (uint32_t)rng_seed(key, 0) & (map->cap - 1);
    while (map->entry[i].key && strcmp(map->entry[i].key, key))
        i = (i + 1) & (map->cap - 1);
    return &map->entry[i];
}

static void grow(Map *map) {
    Map bigger = {.arena = map->arena, .n = map->n, .cap = map->cap * 2};
    bigger.entry = ARENA_ARRAY(map->arena, Entry, bigger.cap);
    for (uint32_t i = 0; i < map->cap; i++)
        if (map->entry[i].key)
            *find(&bigger, map->entry[i].key) = map->entry[i];
    *map = bigger;
}

bool map_put(Map *map, const char *key, uint32_t value) {
    Entry *entry = find(map, key);
    bool is_new = !entry->key;
    if (is_new && map->n >= map->cap / 4 * 3) {
        grow(map);
        entry = find(map, key);
    }
    if (is_new) {
        entry->key = arena_strdup(map->arena, key);
        map->n++;
    }
    entry->value = value;
    return is_new;
}

uint32_t map_get(const Map *map, const char *key, uint32_t missing) {
    const Entry *entry = find(map, key);
    return entry->key ? entry->value : missing;
}
