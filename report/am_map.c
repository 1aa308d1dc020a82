/* am_map.c - volumes of active memory over time; see am_map.h. */
#include "report/am_map.h"

#include "base/vec.h"

static bool is_active(const Listing *listing, const SimSpan *span) {
    return span->at < span->end &&
           listing->spec->memory[span->memory].role == HW_ACTIVE;
}

uint32_t am_map(Arena *arena, const Listing *listing, const SimResult *sim,
                const AmVolume **out) {
    VEC(AmVolume) volumes = {0};
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        AmVolume tiles = {e, true, e->tiles, e->start, e->start + e->cycles};
        AmVolume made = {e, false, e->out, e->start, e->out_until};
        if (is_active(listing, &tiles.span))
            vec_push(arena, &volumes, tiles);
        if (is_active(listing, &made.span))
            vec_push(arena, &volumes, made);
    }
    *out = volumes.at;
    return volumes.n;
}
