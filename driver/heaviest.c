/* heaviest.c - sums over a layer's instructions; see heaviest.h. */
#include "driver/heaviest.h"

#include "base/map.h"
#include "report/moves.h"

Heavy heaviest(Arena *arena, const SimResult *sim) {
    Heavy heavy = {.all = sim->cycles};
    Map *map = map_new(arena);
    uint64_t *sums = ARENA_ARRAY(
        arena, uint64_t, (size_t)(sim->n_events + 1) * (SIM_COST_COUNT + 1));
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        const char *layer = event_layer(arena, e);
        uint32_t at = map_get(map, layer, n);
        n += at == n;
        map_put(map, layer, at);
        uint64_t *cost = &sums[(size_t)at * (SIM_COST_COUNT + 1)];
        cost[SIM_COST_COUNT] += e->cycles;
        for (int k = 0; k < SIM_COST_COUNT; k++)
            cost[k] += e->cost[k];
        if (cost[SIM_COST_COUNT] > heavy.cycles) {
            heavy.cycles = cost[SIM_COST_COUNT];
            heavy.layer = layer;
            heavy.bound = SIM_COMPUTE;
            for (int k = 1; k < SIM_COST_COUNT; k++)
                if (cost[k] > cost[heavy.bound])
                    heavy.bound = (SimCost)k;
        }
    }
    return heavy;
}
