/* diff_costs.c - two runs side by side; see diff.h.
 *
 * Input: what two listings cost. Output: their figures, and the layers whose
 * time differs most.
 */
#include "base/map.h"
#include "driver/commands.h"
#include "driver/diff.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_LAYERS = 10 };

/* ---- layer by layer ---- */

/* What is told of layers. */
typedef enum Measure { OF_TIME, OF_BYTES, OF_COUNT, MEASURES } Measure;
static const char *const measure_key[MEASURES] = {"us", "bytes",
                                                  "instructions"};

typedef struct Layer {
    const char *name;
    double value[MEASURES][DIFF_SIDES];
    uint32_t at;
} Layer;

typedef struct LayerTable {
    Arena *arena;
    Map *known;
    VEC(Layer) row;
} LayerTable;

/* Tiles of a layer, NAME#k, count for it. */
static Layer *layer_of(LayerTable *table, const char *name) {
    const char *layer = arena_strndup(table->arena, name, strcspn(name, "#"));
    uint32_t at = map_get(table->known, layer, UINT32_MAX);
    if (at == UINT32_MAX) {
        at = table->row.n;
        map_put(table->known, layer, at);
        Layer row = {.name = layer, .at = at};
        vec_push(table->arena, &table->row, row);
    }
    return &table->row.at[at];
}

static void add_side(LayerTable *table, uint32_t side, const DiffCosts *c) {
    double us = 1e6 / c->listing->spec->clock;
    for (uint32_t i = 0; i < c->sim->n_events; i++) {
        const SimEvent *event = &c->sim->event[i];
        Layer *layer = layer_of(table, event->name);
        layer->value[OF_TIME][side] += (double)event->cycles * us;
        layer->value[OF_BYTES][side] += (double)(event->read + event->written);
        layer->value[OF_COUNT][side] += 1;
    }
    for (uint32_t i = 0; i < c->sim->n_calls; i++) {
        const SimHostCall *call = &c->sim->call[i];
        layer_of(table, c->listing->image.host[call->layer].name)
            ->value[OF_TIME][side] += (double)call->cycles * us;
    }
}

static double difference(const Layer *row, Measure m) {
    double d = row->value[m][1] - row->value[m][0];
    return d < 0 ? -d : d;
}

/* The largest difference first; equal ones in the listing's order. */
static int by_difference(const Layer *x, const Layer *y, Measure m) {
    double dx = difference(x, m), dy = difference(y, m);
    return dx != dy ? (dx < dy ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static int by_time(const void *a, const void *b) {
    return by_difference(a, b, OF_TIME);
}

static int by_bytes(const void *a, const void *b) {
    return by_difference(a, b, OF_BYTES);
}

static LayerTable layer_table(Arena *arena, const DiffCosts cost[DIFF_SIDES]) {
    LayerTable table = {.arena = arena, .known = map_new(arena)};
    for (uint32_t side = 0; side < DIFF_SIDES; side++)
        add_side(&table, side, &cost[side]);
    return table;
}

static void layer_sort(LayerTable *table,
                       int (*order)(const void *, const void *)) {
    if (table->row.n)
        qsort(table->row.at, table->row.n, sizeof *table->row.at, order);
}

/* ---- figures ---- */

typedef struct Figure {
    const char *name;
    double value[DIFF_SIDES];
} Figure;
enum { FIGURES = 7 };

/* Costs that both hwspecs name. */
static uint32_t priced(const DiffCosts cost[DIFF_SIDES], Figure *out) {
    const Point *a = &cost[0].point, *b = &cost[1].point;
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_costs; i++) {
        const double *other = point_cost_of(b, a->cost_name[i]);
        if (other)
            out[n++] = (Figure){a->cost_name[i], {a->cost[i], *other}};
    }
    return n;
}

static uint32_t figures_of(Arena *arena, const DiffCosts cost[DIFF_SIDES],
                           const Figure **found) {
    Figure *out =
        ARENA_ARRAY(arena, Figure, (size_t)FIGURES + cost[0].point.n_costs);
    *found = out;
    static const char *const name[FIGURES] = {
        "ms",           "cycles",       "AM peak bytes", "DDR bytes",
        "weight bytes", "instructions", "host cycles"};
    for (int side = 0; side < DIFF_SIDES; side++) {
        const Point *p = &cost[side].point;
        const double value[FIGURES] = {p->ms,
                                       (double)p->cycles,
                                       (double)p->am_peak,
                                       (double)p->ddr,
                                       (double)p->weights,
                                       (double)p->instructions,
                                       (double)cost[side].sim->host_cycles};
        for (int i = 0; i < FIGURES; i++) {
            out[i].name = name[i];
            out[i].value[side] = value[i];
        }
    }
    return FIGURES + priced(cost, out + FIGURES);
}

/* "0.81": the second of the first. */
static const char *ratio(Arena *arena, const double value[DIFF_SIDES]) {
    return value[0] > 0   ? arena_printf(arena, "%.2f", value[1] / value[0])
           : value[1] > 0 ? "-"
                          : "1.00";
}

static void print_costs(Arena *arena, const DiffCosts cost[DIFF_SIDES]) {
    const Figure *figure;
    uint32_t n = figures_of(arena, cost, &figure);
    for (uint32_t i = 0; i < n; i++) {
        const double *v = figure[i].value;
        const char *text[DIFF_SIDES];
        for (int side = 0; side < DIFF_SIDES; side++)
            text[side] = i && i < FIGURES
                             ? with_commas(arena, (uint64_t)v[side])
                             : arena_printf(arena, "%.3f", v[side]);
        say("  %-14s %16s %16s %8s\n", figure[i].name, text[0], text[1],
            ratio(arena, v));
    }
}

static void print_layers(Arena *arena, const LayerTable *table, Measure m) {
    for (uint32_t i = 0; i < table->row.n && i < SHOWN_LAYERS; i++) {
        const Layer *row = &table->row.at[i];
        const char *text[DIFF_SIDES];
        if (difference(row, m) == 0)
            break;
        if (!i)
            say("  where they part most, in %s:\n", measure_key[m]);
        for (int side = 0; side < DIFF_SIDES; side++)
            text[side] = m == OF_BYTES
                             ? with_commas(arena, (uint64_t)row->value[m][side])
                             : arena_printf(arena, "%.1f", row->value[m][side]);
        say("    %-28s %12s %16s %8s\n", row->name, text[0], text[1],
            ratio(arena, row->value[m]));
    }
}

void diff_print(Arena *arena, const DiffCosts cost[DIFF_SIDES]) {
    print_costs(arena, cost);
    LayerTable table = layer_table(arena, cost);
    layer_sort(&table, by_time);
    print_layers(arena, &table, OF_TIME);
    layer_sort(&table, by_bytes);
    print_layers(arena, &table, OF_BYTES);
}

/* ---- for programs ---- */

static void add_pair(cJSON *to, const char *name,
                     const double value[DIFF_SIDES]) {
    cJSON_AddItemToObject(to, name, cJSON_CreateDoubleArray(value, DIFF_SIDES));
}

void diff_add_json(Arena *arena, cJSON *json,
                   const DiffCosts cost[DIFF_SIDES]) {
    const Figure *figure;
    uint32_t n = figures_of(arena, cost, &figure);
    cJSON *figures = cJSON_AddObjectToObject(json, "figures");
    for (uint32_t i = 0; i < n; i++)
        add_pair(figures, figure[i].name, figure[i].value);
    LayerTable table = layer_table(arena, cost);
    layer_sort(&table, by_time);
    cJSON *layers = cJSON_AddArrayToObject(json, "layers");
    for (uint32_t i = 0; i < table.row.n; i++) {
        cJSON *layer = cJSON_CreateObject();
        cJSON_AddStringToObject(layer, "layer", table.row.at[i].name);
        for (int m = 0; m < MEASURES; m++)
            add_pair(layer, measure_key[m], table.row.at[i].value[m]);
        cJSON_AddItemToArray(layers, layer);
    }
}
