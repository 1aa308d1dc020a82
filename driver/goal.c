/* goal.c - limits and an aim, from the command line; see goal.h.
 *
 * Input: 'ms(googlenet) <= 2, cost.bram <= 300'. Output: figures that can be
 * asked of points.
 */
#include "driver/goal.h"

#include "base/file.h"
#include "base/near.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures of points. */
static const struct {
    const char *name;
    FigureKind kind;
    size_t at;
} measure[] = {
    {"ms", OF_TIME, offsetof(Point, ms)},
    {"cycles", OF_TIME, offsetof(Point, cycles)},
    {"ddr_bytes", OF_BYTES, offsetof(Point, ddr)},
    {"weight_bytes", OF_PLANS, offsetof(Point, weights)},
    {"am_peak_bytes", OF_PLANS, offsetof(Point, am_peak)},
    {"instructions", OF_PLANS, offsetof(Point, instructions)},
    {"am_capacity_bytes", OF_MACHINES, offsetof(Point, am_capacity)},
};
enum { N_MEASURES = sizeof measure / sizeof *measure };

static const char cost_prefix[] = "cost.";

static int measure_of(const char *name) {
    for (int i = 0; i < N_MEASURES; i++)
        if (!strcmp(measure[i].name, name))
            return i;
    return -1;
}

static double value_of(const Figure *f, const Point *p) {
    if (!strncmp(f->measure, cost_prefix, sizeof cost_prefix - 1)) {
        const double *cost =
            point_cost_of(p, f->measure + sizeof cost_prefix - 1);
        return cost ? *cost : NAN;
    }
    int i = measure_of(f->measure);
    const void *at = (const char *)p + measure[i].at;
    return i == 0 ? *(const double *)at : (double)*(const uint64_t *)at;
}

double figure_value(const Figure *f, uint32_t n, const Point *point) {
    if (f->kind == OF_MACHINES)
        return value_of(f, &point[0]);
    if (f->network >= 0 || n == 1)
        return value_of(f, &point[n == 1 ? 0 : f->network]);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += log(value_of(f, &point[i]));
    return exp(sum / n);
}

/* ---- from text ---- */

typedef struct Source {
    Arena *arena;
    Diag *diag;
    const Sweep *sweep;
    const HwSpec *spec; /* the first machine: for names of costs */
} Source;

static bool find_network(const Source *s, const char *name, Figure *out) {
    Near near = near_to(name);
    for (uint32_t i = 0; i < s->sweep->n_files; i++) {
        const char *stem = file_stem(s->arena, s->sweep->file[i]);
        if (!strcmp(stem, name)) {
            out->network = (int32_t)i;
            return true;
        }
        near_look(&near, stem);
    }
    diag_error(s->diag, (Loc){0}, "no network `%s` is given%s%s", name,
               near.best ? "; did you mean " : "", near.best ? near.best : "");
    for (uint32_t i = 0; i < s->sweep->n_files; i++)
        diag_note(s->diag, (Loc){0}, "%s",
                  file_stem(s->arena, s->sweep->file[i]));
    return false;
}

static bool find_measure(const Source *s, const char *name, Figure *out) {
    Near near = near_to(name);
    out->measure = name;
    for (int i = 0; i < N_MEASURES; i++) {
        near_look(&near, measure[i].name);
        if (strcmp(measure[i].name, name))
            continue;
        out->kind = measure[i].kind;
        return true;
    }
    for (uint32_t i = 0; i < s->spec->n_costs; i++) {
        const char *cost =
            arena_printf(s->arena, "%s%s", cost_prefix, s->spec->cost[i].name);
        near_look(&near, cost);
        if (strcmp(cost, name))
            continue;
        out->kind =
            hwspec_cost_of_runs(&s->spec->cost[i]) ? OF_PLANS : OF_MACHINES;
        return true;
    }
    diag_error(s->diag, (Loc){0}, "there is no figure `%s`%s%s", name,
               near.best ? "; did you mean " : "", near.best ? near.best : "");
    for (int i = 0; i < N_MEASURES; i++)
        diag_note(s->diag, (Loc){0}, "%s", measure[i].name);
    for (uint32_t i = 0; i < s->spec->n_costs; i++)
        diag_note(s->diag, (Loc){0}, "cost.%s", s->spec->cost[i].name);
    if (!s->spec->n_costs)
        diag_note(s->diag, (Loc){0},
                  "cost.NAME: %s has no `costs`; docs/hwspec.md says how to "
                  "write some",
                  s->spec->machine);
    return false;
}

static const char *trimmed(Arena *arena, const char *text, size_t len) {
    while (len && isspace((unsigned char)*text))
        text++, len--;
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return arena_strndup(arena, text, len);
}

/* MEASURE or MEASURE(NETWORK). */
static bool read_figure(const Source *s, const char *text, Figure *out) {
    size_t n = strlen(text), open = strcspn(text, "(");
    bool closed = n && text[n - 1] == ')';
    *out = (Figure){.text = text, .network = -1};
    if ((open < n) != closed) {
        diag_error(s->diag, (Loc){0}, "`%s` is no figure: ms, or ms(NETWORK)",
                   text);
        return false;
    }
    const char *name = trimmed(s->arena, text, open);
    if (closed &&
        !find_network(s, trimmed(s->arena, text + open + 1, n - open - 2), out))
        return false;
    return find_measure(s, name, out);
}

static bool read_limit(const Source *s, const char *text, Limit *out) {
    const char *sign = strpbrk(text, "<>");
    char *end;
    if (!sign || sign[1] != '=') {
        diag_error(s->diag, (Loc){0},
                   "`%s` is no limit: FIGURE <= NUMBER, or >=", text);
        return false;
    }
    out->least = *sign == '>';
    out->value = strtod(sign + 2, &end);
    const char *rest = trimmed(s->arena, end, strlen(end));
    if (end == sign + 2 || *rest || !isfinite(out->value)) {
        diag_error(s->diag, (Loc){0}, "`%s` ends in no number", text);
        return false;
    }
    return read_figure(s, trimmed(s->arena, text, (size_t)(sign - text)),
                       &out->figure);
}

static bool read_limits(const Source *s, const char *text, Goal *out) {
    VEC(Limit) list = {0};
    while (text && *text) {
        size_t len = strcspn(text, ",");
        Limit limit = {0};
        if (!read_limit(s, trimmed(s->arena, text, len), &limit))
            return false;
        vec_push(s->arena, &list, limit);
        text += len + (text[len] == ',');
    }
    out->limit = list.at;
    out->n_limits = list.n;
    return true;
}

/* ---- what plans are chosen for ---- */

static bool is_varied(const Sweep *sweep, const char *path) {
    for (uint32_t i = 0; i < sweep->n_varies; i++)
        if (!strcmp(sweep->vary[i].path, path))
            return true;
    return false;
}

static bool asks(const Goal *goal, FigureKind kind) {
    bool any = goal->aim.kind == kind;
    for (uint32_t i = 0; i < goal->n_limits; i++)
        any |= goal->limit[i].figure.kind == kind;
    return any;
}

/* What plans are chosen for falls where a machine has more, which can do all
 * that the one with less does. What they are not chosen for may rise: where
 * time counts alone, a faster memory moves more bytes. So `balanced`, of which
 * neither falls, becomes what the goal asks for. */
static void choose_objective(const Sweep *sweep, Goal *goal) {
    const char *given = sweep->options->objective;
    bool open = !strcmp(given, "balanced");
    goal->objective = open && asks(goal, OF_TIME)    ? "time"
                      : open && asks(goal, OF_BYTES) ? "bytes"
                                                     : given;
    FigureKind falls = !strcmp(goal->objective, "bytes")  ? OF_BYTES
                       : !strcmp(goal->objective, "time") ? OF_TIME
                                                          : OF_PLANS;
    bool varied = is_varied(sweep, "objective");
    for (uint32_t i = 0; i < goal->n_limits; i++) {
        Figure *f = &goal->limit[i].figure;
        f->falls = !varied && f->kind == falls && falls != OF_PLANS;
    }
    goal->aim.falls = !varied && goal->aim.kind == falls && falls != OF_PLANS;
}

bool goal_read(Arena *arena, Diag *diag, const Sweep *sweep, Goal *out) {
    const Options *o = sweep->options;
    const ExploreArgs *own = o->own;
    const char *aim = own->minimise ? own->minimise : own->maximise;
    *out = (Goal){.maximise = !own->minimise};
    if (!aim || (own->minimise && own->maximise)) {
        diag_error(diag, (Loc){0},
                   "a search needs one of --minimise and --maximise");
        return false;
    }
    Source s = {arena, diag, sweep, NULL};
    s.spec = hwspec_load(arena, diag, sweep->target[0], o->settings.n,
                         o->settings.at);
    if (!s.spec || !read_limits(&s, own->goal, out) ||
        !read_figure(&s, aim, &out->aim))
        return false;
    choose_objective(sweep, out);
    return true;
}
