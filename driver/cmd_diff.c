/* cmd_diff.c - networks on two machines, side by side.
 *
 * Input: two hwspecs and networks. Output: the keys that differ; of each
 * network what it costs on both, and the layers whose time differs most.
 */
#include "base/map.h"
#include "driver/commands.h"
#include "driver/diff.h"
#include "driver/explore.h"

#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, SHOWN_KEYS = 40, SHOWN_LAYERS = 10 };

/* ---- what a network costs ---- */

/* Time of a layer on both machines, in microseconds. */
typedef struct LayerTimes {
    const char *name;
    double us[SIDES];
    uint32_t at;
} LayerTimes;

/* A network on a machine; `sim` and `listing` where it fits. */
typedef struct Costs {
    Point point;
    const SimResult *sim;
    const Listing *listing;
} Costs;

static bool fits(const Costs *c) {
    return c->point.status == POINT_FITS;
}

static Costs costs_of(Arena *arena, const Options *options, const char *target,
                      const char *file) {
    Costs c = {.point = {.network = file, .target = target, .reason = ""}};
    c.sim = point_run(arena, options, NULL, &c.point, &c.listing);
    return c;
}

/* Why it does not fit, or cannot be tried. */
static const char *reason_of(Arena *arena, const Point *p) {
    if (p->status != POINT_NO_FIT)
        return p->reason;
    return arena_printf(arena, "%s: %s", point_status_name[p->status],
                        p->reason);
}

/* ---- layer by layer ---- */

typedef struct LayerTable {
    Arena *arena;
    Map *known;
    VEC(LayerTimes) row;
} LayerTable;

/* Tiles of a layer, NAME#k, count for it. */
static void add_time(LayerTable *table, uint32_t side, const char *name,
                     double us) {
    const char *layer = arena_strndup(table->arena, name, strcspn(name, "#"));
    uint32_t at = map_get(table->known, layer, UINT32_MAX);
    if (at == UINT32_MAX) {
        at = table->row.n;
        map_put(table->known, layer, at);
        LayerTimes row = {.name = layer, .at = at};
        vec_push(table->arena, &table->row, row);
    }
    table->row.at[at].us[side] += us;
}

static void add_side(LayerTable *table, uint32_t side, const Costs *c) {
    double us = 1e6 / c->listing->spec->clock;
    for (uint32_t i = 0; i < c->sim->n_events; i++)
        add_time(table, side, c->sim->event[i].name,
                 (double)c->sim->event[i].cycles * us);
    for (uint32_t i = 0; i < c->sim->n_calls; i++) {
        const SimHostCall *call = &c->sim->call[i];
        add_time(table, side, c->listing->image.host[call->layer].name,
                 (double)call->cycles * us);
    }
}

static double difference(const LayerTimes *row) {
    double d = row->us[1] - row->us[0];
    return d < 0 ? -d : d;
}

/* The largest difference first; equal ones in the listing's order. */
static int by_difference(const void *a, const void *b) {
    const LayerTimes *x = a, *y = b;
    double dx = difference(x), dy = difference(y);
    return dx != dy ? (dx < dy ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static LayerTable layer_table(Arena *arena, const Costs cost[SIDES]) {
    LayerTable table = {.arena = arena, .known = map_new(arena)};
    for (uint32_t side = 0; side < SIDES; side++)
        add_side(&table, side, &cost[side]);
    if (table.row.n)
        qsort(table.row.at, table.row.n, sizeof *table.row.at, by_difference);
    return table;
}

/* ---- figures ---- */

typedef struct Figure {
    const char *name;
    double value[SIDES];
} Figure;
enum { FIGURES = 7 };

/* Costs that both hwspecs name. */
static uint32_t priced(const Costs cost[SIDES], Figure *out) {
    const Point *a = &cost[0].point, *b = &cost[1].point;
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_costs; i++) {
        const double *other = point_cost_of(b, a->cost_name[i]);
        if (other)
            out[n++] = (Figure){a->cost_name[i], {a->cost[i], *other}};
    }
    return n;
}

static uint32_t figures_of(Arena *arena, const Costs cost[SIDES],
                           const Figure **found) {
    Figure *out =
        ARENA_ARRAY(arena, Figure, (size_t)FIGURES + cost[0].point.n_costs);
    *found = out;
    static const char *const name[FIGURES] = {
        "ms",           "cycles",       "AM peak bytes", "DDR bytes",
        "weight bytes", "instructions", "host cycles"};
    for (int side = 0; side < SIDES; side++) {
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
static const char *ratio(Arena *arena, const double value[SIDES]) {
    return value[0] > 0   ? arena_printf(arena, "%.2f", value[1] / value[0])
           : value[1] > 0 ? "-"
                          : "1.00";
}

static void print_costs(Arena *arena, const Costs cost[SIDES]) {
    const Figure *figure;
    uint32_t n = figures_of(arena, cost, &figure);
    for (uint32_t i = 0; i < n; i++) {
        const double *v = figure[i].value;
        const char *text[SIDES];
        for (int side = 0; side < SIDES; side++)
            text[side] = i && i < FIGURES
                             ? with_commas(arena, (uint64_t)v[side])
                             : arena_printf(arena, "%.3f", v[side]);
        say("  %-14s %16s %16s %8s\n", figure[i].name, text[0], text[1],
            ratio(arena, v));
    }
}

static void print_layers(Arena *arena, const LayerTable *table) {
    uint32_t shown = 0;
    for (; shown < table->row.n && shown < SHOWN_LAYERS; shown++) {
        const LayerTimes *row = &table->row.at[shown];
        if (difference(row) == 0)
            break;
        if (!shown)
            say("  where they part most, in us:\n");
        say("    %-28s %12.1f %16.1f %8s\n", row->name, row->us[0], row->us[1],
            ratio(arena, row->us));
    }
}

static void print_network(Arena *arena, const Options *o, const char *file,
                          const Costs cost[SIDES]) {
    say("\n%s\n", file);
    for (int side = 0; side < SIDES; side++)
        if (!fits(&cost[side]))
            say("  %s: %s\n", o->files[side],
                reason_of(arena, &cost[side].point));
    if (!fits(&cost[0]) || !fits(&cost[1]))
        return;
    print_costs(arena, cost);
    LayerTable table = layer_table(arena, cost);
    print_layers(arena, &table);
}

static void print_keys(const Options *o, uint32_t n, const KeyChange *key) {
    say("a: %s\nb: %s\n\nkeys that differ: %u\n", o->files[0], o->files[1], n);
    for (uint32_t i = 0; i < n && i < SHOWN_KEYS; i++)
        say("  %s: %s -> %s\n", key[i].path, key[i].a ? key[i].a : "(none)",
            key[i].b ? key[i].b : "(none)");
    if (n > SHOWN_KEYS)
        say("  and %u more: --json has all\n", n - SHOWN_KEYS);
}

/* ---- for programs ---- */

static void add_pair(cJSON *to, const char *name, const double value[SIDES]) {
    cJSON_AddItemToObject(to, name, cJSON_CreateDoubleArray(value, SIDES));
}

static cJSON *network_json(Arena *arena, const char *file,
                           const Costs cost[SIDES]) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", file);
    cJSON *reasons = cJSON_AddArrayToObject(json, "reasons");
    for (int side = 0; side < SIDES; side++)
        cJSON_AddItemToArray(reasons, fits(&cost[side])
                                          ? cJSON_CreateNull()
                                          : cJSON_CreateString(reason_of(
                                                arena, &cost[side].point)));
    if (!fits(&cost[0]) || !fits(&cost[1]))
        return json;
    const Figure *figure;
    uint32_t n = figures_of(arena, cost, &figure);
    cJSON *figures = cJSON_AddObjectToObject(json, "figures");
    for (uint32_t i = 0; i < n; i++)
        add_pair(figures, figure[i].name, figure[i].value);
    LayerTable table = layer_table(arena, cost);
    cJSON *layers = cJSON_AddArrayToObject(json, "layers");
    for (uint32_t i = 0; i < table.row.n; i++) {
        cJSON *layer = cJSON_CreateObject();
        cJSON_AddStringToObject(layer, "layer", table.row.at[i].name);
        add_pair(layer, "us", table.row.at[i].us);
        cJSON_AddItemToArray(layers, layer);
    }
    return json;
}

static cJSON *string_or_null(const char *text) {
    return text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

static cJSON *keys_json(uint32_t n, const KeyChange *key) {
    cJSON *keys = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "key", key[i].path);
        cJSON_AddItemToObject(row, "a", string_or_null(key[i].a));
        cJSON_AddItemToObject(row, "b", string_or_null(key[i].b));
        cJSON_AddItemToArray(keys, row);
    }
    return keys;
}

/* ---- the command ---- */

/* Both hwspecs are right, or all that is wrong with them is said. */
static bool compare_specs(Arena *arena, Diag *diag, const Options *o,
                          uint32_t *n, const KeyChange **key) {
    const YamlNode *tree[SIDES];
    bool ok = true;
    for (int side = 0; side < SIDES; side++) {
        ok &= hwspec_load(arena, diag, o->files[side], o->settings.n,
                          o->settings.at) != NULL;
        tree[side] = ok ? hwspec_tree(arena, diag, o->files[side],
                                      o->settings.n, o->settings.at)
                        : NULL;
    }
    *n = ok ? diff_keys(arena, tree[0], tree[1], key) : 0;
    return ok;
}

/* What cannot be read, or breaks a rule, is worse than what does not fit. */
static ExitCode worse(ExitCode code, const Costs *cost) {
    if (code == EXIT_BAD_INPUT || cost->point.status == POINT_WRONG)
        return EXIT_BAD_INPUT;
    return fits(cost) ? code : EXIT_NO_FIT;
}

ExitCode cmd_diff(Arena *arena, Diag *diag, const Options *o) {
    uint32_t n_keys;
    const KeyChange *key = NULL;
    if (o->n_files < SIDES) {
        diag_error(diag, (Loc){0}, "diff: two machines are needed");
        return EXIT_BAD_USAGE;
    }
    if (!compare_specs(arena, diag, o, &n_keys, &key))
        return EXIT_BAD_INPUT;
    if (!o->json)
        print_keys(o, n_keys, key);
    cJSON *networks = cJSON_CreateArray();
    ExitCode code = EXIT_FINE;
    for (uint32_t i = SIDES; i < o->n_files; i++) {
        Costs cost[SIDES];
        for (int side = 0; side < SIDES; side++) {
            cost[side] = costs_of(arena, o, o->files[side], o->files[i]);
            code = worse(code, &cost[side]);
        }
        if (o->json)
            cJSON_AddItemToArray(networks,
                                 network_json(arena, o->files[i], cost));
        else
            print_network(arena, o, o->files[i], cost);
    }
    if (!o->json) {
        cJSON_Delete(networks);
        return code;
    }
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "a", o->files[0]);
    cJSON_AddStringToObject(json, "b", o->files[1]);
    cJSON_AddItemToObject(json, "keys", keys_json(n_keys, key));
    cJSON_AddItemToObject(json, "networks", networks);
    print_json(arena, o, json);
    return code;
}
