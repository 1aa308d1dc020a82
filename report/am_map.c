/* am_map.c - volumes and weights on chip over time; see am_map.h. */
#include "report/am_map.h"

#include "base/map.h"
#include "base/vec.h"
#include "report/moves.h"

static bool is_drawn(const Listing *listing, const SimSpan *span) {
    HwRole role = listing->spec->memory[span->memory].role;
    return span->at < span->end && (role == HW_ACTIVE || role == HW_WEIGHTS);
}

static uint32_t layer_number(Arena *arena, Map *map, uint32_t *n,
                             const SimEvent *e) {
    const char *layer = event_layer(arena, e);
    uint32_t number = map_get(map, layer, *n);
    if (number == *n)
        map_put(map, layer, (*n)++);
    return number;
}

uint32_t am_map(Arena *arena, const Listing *listing, const SimResult *sim,
                const AmVolume **out) {
    VEC(AmVolume) volumes = {0};
    Map *layers = map_new(arena);
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        uint32_t layer = layer_number(arena, layers, &n, e);
        uint64_t end = e->start + e->cycles;
        AmVolume tiles = {e, true, e->tiles, e->start, end, layer};
        AmVolume made = {e, false, e->out, e->start, e->out_until, layer};
        if (is_drawn(listing, &tiles.span))
            vec_push(arena, &volumes, tiles);
        if (is_drawn(listing, &made.span))
            vec_push(arena, &volumes, made);
    }
    *out = volumes.at;
    return volumes.n;
}
