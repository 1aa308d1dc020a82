/* explore_file.c - points as lines of JSON; see explore.h.
 *
 * Input, output: points.jsonl, one point a line, in any order. Invariants: a
 * line alone tells all about its point; the text of a line depends on nothing
 * but the point, so that lines of the same point can be compared.
 */
#include "base/file.h"
#include "base/vec.h"
#include "driver/explore.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of a point by name; one table for both ways. */
static const struct {
    const char *key;
    size_t at;
} number[] = {
    {"cycles", offsetof(Point, cycles)},
    {"am_capacity_bytes", offsetof(Point, am_capacity)},
    {"am_peak_bytes", offsetof(Point, am_peak)},
    {"ddr_bytes", offsetof(Point, ddr)},
    {"ddr_compulsory_bytes", offsetof(Point, compulsory)},
    {"weight_bytes", offsetof(Point, weights)},
    {"instructions", offsetof(Point, instructions)},
};
enum { N_NUMBERS = sizeof number / sizeof *number };

const char *point_line(Arena *arena, const Point *p, const char *print) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "point", p->index);
    cJSON_AddStringToObject(json, "name", p->name);
    cJSON_AddStringToObject(json, "network", p->network);
    cJSON_AddStringToObject(json, "network_fnv1a", print);
    cJSON_AddStringToObject(json, "target", p->target);
    cJSON *settings = cJSON_AddObjectToObject(json, "settings");
    for (uint32_t i = 0; i < p->n_settings; i++)
        cJSON_AddStringToObject(settings, p->path[i], p->value[i]);
    cJSON_AddStringToObject(json, "status", point_status_name[p->status]);
    if (p->status != POINT_FITS)
        cJSON_AddStringToObject(json, "reason", p->reason);
    for (int i = 0; p->status == POINT_FITS && i < N_NUMBERS; i++) {
        const void *at = (const char *)p + number[i].at;
        cJSON_AddNumberToObject(json, number[i].key,
                                (double)*(const uint64_t *)at);
    }
    if (p->status == POINT_FITS)
        cJSON_AddNumberToObject(json, "ms", p->ms);
    cJSON *costs = p->n_costs && p->status == POINT_FITS
                       ? cJSON_AddObjectToObject(json, "costs")
                       : NULL;
    for (uint32_t i = 0; costs && i < p->n_costs; i++)
        cJSON_AddNumberToObject(costs, p->cost_name[i], p->cost[i]);
    const char *line = json_print(arena, json, false);
    json_free(json);
    return line;
}

static void read_settings(Arena *arena, const cJSON *json, Point *p) {
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(json, "settings");
    int n = cJSON_IsObject(settings) ? cJSON_GetArraySize(settings) : 0;
    const char **path = ARENA_ARRAY(arena, const char *, (size_t)n);
    const char **value = ARENA_ARRAY(arena, const char *, (size_t)n);
    const cJSON *item = n ? settings->child : NULL;
    for (int i = 0; i < n; i++, item = item->next) {
        path[i] = arena_strdup(arena, item->string);
        value[i] =
            arena_strdup(arena, cJSON_IsString(item) ? item->valuestring : "");
    }
    p->n_settings = (uint32_t)n;
    p->path = path;
    p->value = value;
}

static void read_costs(Arena *arena, const cJSON *json, Point *p) {
    const cJSON *costs = cJSON_GetObjectItemCaseSensitive(json, "costs"), *item;
    int n = cJSON_IsObject(costs) ? cJSON_GetArraySize(costs) : 0;
    const char **name = ARENA_ARRAY(arena, const char *, (size_t)n + 1);
    double *cost = ARENA_ARRAY(arena, double, (size_t)n + 1);
    p->cost_name = name;
    p->cost = cost;
    cJSON_ArrayForEach(item, costs) if (n && cJSON_IsNumber(item)) {
        name[p->n_costs] = arena_strdup(arena, item->string);
        cost[p->n_costs++] = item->valuedouble;
    }
}

static bool read_status(const cJSON *json, Point *p) {
    const char *status = json_str(json, "status", "");
    for (int i = POINT_FITS; i <= POINT_WRONG; i++)
        if (!strcmp(status, point_status_name[i])) {
            p->status = (PointStatus)i;
            return true;
        }
    return false;
}

static bool read_numbers(const cJSON *json, Point *p) {
    double index = json_num(json, "point", -1);
    if (!(index >= 0 && index < MAX_POINTS))
        return false;
    p->index = (uint32_t)index;
    for (int i = 0; p->status == POINT_FITS && i < N_NUMBERS; i++) {
        double value = json_num(json, number[i].key, -1);
        if (!(value >= 0 && value < 9e15))
            return false;
        void *at = (char *)p + number[i].at;
        *(uint64_t *)at = (uint64_t)value;
    }
    p->ms = json_num(json, "ms", 0);
    return true;
}

bool points_add(Arena *arena, Diag *diag, Loc loc, const char *line, size_t len,
                PointSet *set) {
    Diag *quiet = diag_new(arena);
    cJSON *json = json_parse(quiet, loc.file, line, len);
    Point p = {0};
    if (!json || !read_status(json, &p) || !read_numbers(json, &p)) {
        json_free(json);
        diag_error(diag, loc, "this is not a point of a sweep");
        return false;
    }
    p.name = arena_strdup(arena, json_str(json, "name", ""));
    p.network = arena_strdup(arena, json_str(json, "network", ""));
    p.target = arena_strdup(arena, json_str(json, "target", ""));
    p.reason = arena_strdup(arena, json_str(json, "reason", ""));
    read_settings(arena, json, &p);
    read_costs(arena, json, &p);
    const char *print =
        arena_strdup(arena, json_str(json, "network_fnv1a", ""));
    json_free(json);
    vec_push(arena, &set->point, p);
    vec_push(arena, &set->line, arena_strndup(arena, line, len));
    vec_push(arena, &set->print, print);
    return true;
}

bool points_read(Arena *arena, Diag *diag, const char *path, PointSet *set) {
    Bytes bytes;
    if (!file_read(arena, diag, path, &bytes))
        return false;
    const char *at = (const char *)bytes.at, *end = at + bytes.len;
    bool ok = true;
    for (uint32_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) /* torn: the run that wrote it was killed */
            return ok;
        ok &= points_add(arena, diag, (Loc){path, line, 1}, at,
                         (size_t)(stop - at), set);
        at = stop + 1;
    }
    return ok;
}

typedef struct Ranked {
    uint32_t index, at;
} Ranked;

static int by_index(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

bool points_unite(Arena *arena, Diag *diag, PointSet *set) {
    uint32_t n = set->point.n;
    Ranked *rank = ARENA_ARRAY(arena, Ranked, n + 1);
    PointSet sorted = {0};
    for (uint32_t i = 0; i < n; i++)
        rank[i] = (Ranked){set->point.at[i].index, i};
    qsort(rank, n, sizeof *rank, by_index);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = rank[i].at, last = sorted.point.n;
        if (i && rank[i - 1].index == rank[i].index) {
            if (!strcmp(sorted.line.at[last - 1], set->line.at[at]))
                continue;
            diag_error(diag, (Loc){0}, "two lines for point %u: `%s` and `%s`",
                       rank[i].index, sorted.line.at[last - 1],
                       set->line.at[at]);
            return false;
        }
        vec_push(arena, &sorted.point, set->point.at[at]);
        vec_push(arena, &sorted.line, set->line.at[at]);
        vec_push(arena, &sorted.print, set->print.at[at]);
    }
    *set = sorted;
    return true;
}
