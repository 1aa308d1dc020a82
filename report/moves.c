/* moves.c - moves by volume, layers that run together, rows of tables; see
 * moves.h.
 *
 * Input: events of a simulation, in the order of the listing. Output: sums of
 * what the simulation counted for them; no number is estimated.
 */
#include "report/moves.h"

#include "base/map.h"
#include "base/vec.h"
#include "report/tables.h"

#include <string.h>

typedef VEC(VolumeMoves) Volumes;

/* A layer's tiles, by their places in the list of events. */
typedef struct Span {
    const char *layer;
    uint32_t first, last, tiles;
} Span;

typedef VEC(Span) Spans;

const char *event_layer(Arena *arena, const SimEvent *e) {
    const char *mark = strrchr(e->name, '#');
    return mark ? arena_strndup(arena, e->name, (size_t)(mark - e->name))
                : e->name;
}

/* Rows that an engine copies to where a stripe needs them: conv1#8..11. */
static bool is_copy(const SimEvent *e) {
    const char *mark = strrchr(e->name, '#');
    return mark && strstr(mark, "..");
}

static bool is_engine(const Listing *listing, const SimEvent *e) {
    return e->use < listing->spec->n_engines;
}

/* A layer and a volume may have one name. */
static VolumeMoves *volume_of(Arena *arena, Map *map, Volumes *volumes,
                              const char *name, bool by_tiles) {
    const char *key = arena_printf(arena, "%d%s", by_tiles, name);
    uint32_t at = map_get(map, key, volumes->n);
    if (at == volumes->n) {
        map_put(map, key, at);
        vec_push(arena, volumes, ((VolumeMoves){name, by_tiles, 0, 0, 0, 0}));
    }
    return &volumes->at[at];
}

uint32_t moves_by_volume(Arena *arena, const Listing *listing,
                         const SimResult *sim, const VolumeMoves **out) {
    Volumes volumes = {0};
    Map *map = map_new(arena);
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        if (!e->read && !e->written)
            continue;
        bool tiles = is_engine(listing, e);
        const char *name =
            tiles ? event_layer(arena, e) : event_name(listing, e);
        VolumeMoves *v = volume_of(arena, map, &volumes, name, tiles);
        v->loads += e->read > 0;
        v->stores += e->written > 0;
        v->read += e->read;
        v->written += e->written;
    }
    *out = volumes.at;
    return volumes.n;
}

/* In the order in which they begin. */
static Spans layer_spans(Arena *arena, const Listing *listing,
                         const SimResult *sim) {
    Spans spans = {0};
    Map *map = map_new(arena);
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        if (!is_engine(listing, e))
            continue;
        const char *layer = event_layer(arena, e);
        uint32_t at = map_get(map, layer, spans.n);
        if (at == spans.n) {
            map_put(map, layer, at);
            vec_push(arena, &spans, ((Span){layer, i, i, 0}));
        }
        spans.at[at].last = i;
        spans.at[at].tiles += !is_copy(e);
    }
    return spans;
}

static LayersTogether together(const SimResult *sim, const Span *span,
                               uint32_t n, uint32_t last) {
    LayersTogether t = {.first = span->layer,
                        .last = span[n - 1].layer,
                        .layers = n,
                        .from = sim->event[span->first].start};
    for (uint32_t i = 0; i < n; i++)
        t.tiles = span[i].tiles > t.tiles ? span[i].tiles : t.tiles;
    for (uint32_t i = span->first; i <= last; i++) {
        const SimEvent *e = &sim->event[i];
        uint64_t end = e->start + e->cycles;
        t.to = end > t.to ? end : t.to;
        t.read += e->read;
        t.written += e->written;
    }
    return t;
}

uint32_t moves_together(Arena *arena, const Listing *listing,
                        const SimResult *sim, const LayersTogether **out) {
    VEC(LayersTogether) groups = {0};
    Spans spans = layer_spans(arena, listing, sim);
    for (uint32_t i = 0, n; i < spans.n; i += n) {
        uint32_t last = spans.at[i].last;
        for (n = 1; i + n < spans.n && spans.at[i + n].first < last; n++)
            if (spans.at[i + n].last > last)
                last = spans.at[i + n].last;
        if (n > 1)
            vec_push(arena, &groups, together(sim, &spans.at[i], n, last));
    }
    *out = groups.at;
    return groups.n;
}

/* ---- few rows ---- */

static void add_event(SimEvent *sum, const SimEvent *e) {
    sum->cycles += e->cycles;
    for (int i = 0; i < SIM_COST_COUNT; i++)
        sum->cost[i] += e->cost[i];
    sum->busy += e->busy;
    sum->idle += e->idle;
    sum->read += e->read;
    sum->written += e->written;
    sum->least += e->least;
    sum->weights += e->weights;
    sum->macs += e->macs;
}

const SimResult *rows_of(Arena *arena, const Listing *listing,
                         const SimResult *sim) {
    enum { MOST = 5000 };
    if (sim->n_events <= MOST)
        return sim;
    VEC(SimEvent) rows = {0};
    Map *map = map_new(arena);
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        const char *name = is_engine(listing, e) ? event_layer(arena, e)
                                                 : event_name(listing, e);
        const char *key = arena_printf(arena, "%u %d %s", e->use, e->op, name);
        uint32_t at = map_get(map, key, rows.n);
        if (at < rows.n) {
            add_event(&rows.at[at], e);
            continue;
        }
        map_put(map, key, at);
        vec_push(arena, &rows, *e);
        rows.at[at].name = name;
    }
    SimResult *few = ARENA_NEW(arena, SimResult);
    *few = *sim;
    few->event = rows.at;
    few->n_events = rows.n;
    return few;
}
