/* points_page.c - the page of a sweep; see points.h.
 *
 * Input: points, sorted by number. Output: data for report/web/explore.js, in
 * HTML.
 */
#include "base/map.h"
#include "base/vec.h"
#include "report/html.h"
#include "report/points.h"

static const struct {
    const char *key, *name;
    size_t at;
} number[] = {
    {"cycles", "cycles", offsetof(Point, cycles)},
    {"am_peak_bytes", "AM bytes in use", offsetof(Point, am_peak)},
    {"am_capacity_bytes", "AM capacity", offsetof(Point, am_capacity)},
    {"ddr_bytes", "DDR bytes", offsetof(Point, ddr)},
    {"ddr_compulsory_bytes", "compulsory bytes", offsetof(Point, compulsory)},
    {"weight_bytes", "weight bytes", offsetof(Point, weights)},
    {"instructions", "instructions", offsetof(Point, instructions)},
};
enum { N_NUMBERS = sizeof number / sizeof *number };

/* Different texts, in the order in which they come. */
typedef struct Names {
    Map *map;
    VEC(const char *) list;
} Names;

static uint32_t name_of(Arena *arena, Names *names, const char *text) {
    uint32_t at = map_get(names->map, text, names->list.n);
    if (at == names->list.n) {
        map_put(names->map, text, at);
        vec_push(arena, &names->list, text);
    }
    return at;
}

static void add_names(JsonOut *to, const char *key, uint32_t n,
                      const char *const *name) {
    json_out_list(to, key);
    for (uint32_t i = 0; i < n; i++)
        json_out_text(to, NULL, name[i]);
    json_out_close(to);
}

/* Costs that any of the points has. */
static Names costs_of(Arena *arena, uint32_t n, const Point *point) {
    Names costs = {.map = map_new(arena)};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < point[i].n_costs; k++)
            name_of(arena, &costs, point[i].cost_name[k]);
    return costs;
}

static void add_measures(JsonOut *to, const Names *costs) {
    json_out_list(to, "measures");
    json_out_text(to, NULL, "ms");
    for (int i = 0; i < N_NUMBERS; i++)
        json_out_text(to, NULL, number[i].name);
    for (uint32_t i = 0; i < costs->list.n; i++)
        json_out_text(to, NULL, costs->list.at[i]);
    json_out_close(to);
    json_out_list(to, "keys");
    json_out_text(to, NULL, "ms");
    for (int i = 0; i < N_NUMBERS; i++)
        json_out_text(to, NULL, number[i].key);
    for (uint32_t i = 0; i < costs->list.n; i++)
        json_out_text(to, NULL, costs->list.at[i]);
    json_out_close(to);
}

static void add_costs(JsonOut *to, const Names *costs, const Point *p) {
    for (uint32_t i = 0; i < costs->list.n; i++) {
        const double *cost = point_cost_of(p, costs->list.at[i]);
        if (cost)
            json_out_value(to, NULL, cJSON_CreateNumber(*cost));
        else
            json_out_text(to, NULL, NULL);
    }
}

static void add_values(JsonOut *to, const Names *costs, const Point *p) {
    json_out_list(to, "values");
    if (p->status == POINT_FITS) {
        json_out_value(to, NULL, cJSON_CreateNumber(p->ms));
        for (int i = 0; i < N_NUMBERS; i++)
            json_out_number(to, NULL,
                            *(const uint64_t *)(const void *)((const char *)p +
                                                              number[i].at));
        add_costs(to, costs, p);
    }
    json_out_close(to);
}

static void add_point(Arena *arena, JsonOut *to, Names *network, Names *target,
                      const Names *costs, const Point *p, bool enough) {
    json_out_object(to, NULL);
    json_out_number(to, "point", p->index);
    json_out_number(to, "network", name_of(arena, network, p->network));
    json_out_number(to, "target", name_of(arena, target, p->target));
    add_names(to, "settings", p->n_settings, p->value);
    json_out_text(to, "status", point_status_name[p->status]);
    if (p->status != POINT_FITS)
        json_out_text(to, "reason", p->reason);
    if (enough)
        json_out_number(to, "enough", 1);
    if (p->report)
        json_out_text(to, "report", p->report);
    if (p->command)
        json_out_text(to, "command", p->command);
    add_values(to, costs, p);
    json_out_close(to);
}

const char *points_page(Arena *arena, uint32_t n, const Point *point) {
    Names network = {.map = map_new(arena)}, target = {.map = map_new(arena)};
    Names costs = costs_of(arena, n, point);
    const bool *enough = points_enough(arena, n, point);
    const char *title = arena_printf(arena, "Sweep of %u points", n);
    Text json = text_new(arena);
    JsonOut out = json_out_new(&json);
    out.compact = true;
    json_out_object(&out, NULL);
    json_out_text(&out, "title", title);
    json_out_number(&out, "by_time", points_by_time(n, point));
    add_measures(&out, &costs);
    add_names(&out, "paths", n ? point[0].n_settings : 0,
              n ? point[0].path : NULL);
    json_out_list(&out, "points");
    for (uint32_t i = 0; i < n; i++)
        add_point(arena, &out, &network, &target, &costs, &point[i], enough[i]);
    json_out_close(&out);
    add_names(&out, "networks", network.list.n, network.list.at);
    add_names(&out, "targets", target.list.n, target.list.at);
    json_out_close(&out);
    return html_page(arena, title, text_str(&json), embedded_explore_js);
}
