/* am_map.c - volumes, constants and sums on chip over time; see am_map.h. */
#include "report/am_map.h"

#include "base/map.h"
#include "base/vec.h"
#include "report/moves.h"

bool am_draws(HwRole role) {
    return role == HW_ACTIVE || role == HW_WEIGHTS || role == HW_BIAS ||
           role == HW_SUMS;
}

static bool is_drawn(const Listing *listing, const SimSpan *span) {
    return span->at < span->end &&
           am_draws(listing->spec->memory[span->memory].role);
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
        AmVolume sums = {e, false, e->sums, e->start, end, layer};
        if (e->sums_stay) {
            sums.to = e->out_until;
            made.span = (SimSpan){0};
        }
        if (is_drawn(listing, &tiles.span))
            vec_push(arena, &volumes, tiles);
        if (is_drawn(listing, &made.span))
            vec_push(arena, &volumes, made);
        if (is_drawn(listing, &sums.span))
            vec_push(arena, &volumes, sums);
    }
    *out = volumes.at;
    return volumes.n;
}
