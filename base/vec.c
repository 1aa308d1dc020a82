/* vec.c - growing arrays; see vec.h. */
#include "base/vec.h"

#include <string.h>

void *vec_room(Arena *arena, void *at, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap)
        return at;
    uint32_t bigger = *cap ? *cap * 2 : 8;
    void *room = arena_alloc_raw(arena, (size_t)bigger * size, 16);
    if (n)
        memcpy(room, at, (size_t)n * size);
    *cap = bigger;
    return room;
}
