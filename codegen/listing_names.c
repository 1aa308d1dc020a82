/* listing_names.c - names of the functions that compute layers of the host; see
 * listing.h. */
#include "codegen/listing.h"

#include "base/map.h"

#include <string.h>

const char *listing_identifier(Arena *arena, const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    bool digit = *name >= '0' && *name <= '9';
    char *out = arena_printf(arena, "%s%s", digit || !*name ? "_" : "", name);
    for (char *at = out; *at; at++)
        if (!strchr(allowed, *at))
            *at = '_';
    return out;
}

void listing_name_functions(Arena *arena, const char *network, uint32_t n,
                            HostLayer *host) {
    Map *taken = map_new(arena);
    for (uint32_t i = 0; i < n; i++) {
        const char *plain = listing_identifier(
            arena, arena_printf(arena, "%s_%s", network, host[i].name));
        const char *name = plain;
        for (uint32_t k = 2; !map_put(taken, name, i); k++)
            name = arena_printf(arena, "%s_%u", plain, k);
        host[i].function = name;
    }
}
