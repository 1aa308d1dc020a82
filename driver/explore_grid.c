/* explore_grid.c - the points of a sweep; see explore.h.
 *
 * Input: networks, machines, --vary PATH=a,b,c and PATH=lo:hi:step. Output:
 * numbered points. Invariant: a point's number depends on the command line
 * alone, so shards and resumed runs agree about it.
 */
#include "base/file.h"
#include "base/vec.h"
#include "driver/explore.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

typedef VEC(const char *) ValueList;

/* Suffixes of sizes, and what the hwspec calls them. */
static const struct {
    const char *suffix, *unit;
    double factor;
} scale[] = {{"", "", 1},
             {"K", "KiB", 1024},
             {"M", "MiB", 1048576},
             {"G", "GiB", 1 << 30}};
enum { N_SCALES = sizeof scale / sizeof *scale };

/* A number and what follows it: "2MiB" -> 2, "MiB". */
static bool read_number(const char *text, double *value, const char **unit) {
    char *end;
    *value = strtod(text, &end);
    *unit = end;
    return end != text && isfinite(*value);
}

/* "M" stands for "MiB", as in the field; other units for themselves. */
static const char *full_unit(const char *unit) {
    for (int i = 1; i < N_SCALES; i++)
        if (!strcmp(unit, scale[i].suffix))
            return scale[i].unit;
    return unit;
}

/* The suffix's row; -1: none of them. */
static int scale_of(const char *unit) {
    for (int i = 0; i < N_SCALES; i++)
        if (!strcmp(unit, scale[i].suffix) || !strcmp(unit, scale[i].unit))
            return i;
    return -1;
}

/* lo:hi[:step]; sizes may each have their own suffix, other units must agree.
 * On success v is in *unit, the largest in which all are whole. */
static bool read_range(Arena *arena, const char *text, double v[3],
                       const char **unit) {
    int largest = N_SCALES - 1, n = 0;
    *unit = "";
    for (const char *at = text; at && n < 3; n++) {
        const char *colon = strchr(at, ':'), *own;
        size_t len = colon ? (size_t)(colon - at) : strlen(at);
        if (!read_number(arena_strndup(arena, at, len), &v[n], &own))
            return false;
        int i = scale_of(own);
        if (i < 0 && **unit && strcmp(*unit, own))
            return false;
        if (i < 0)
            *unit = own;
        v[n] *= i < 0 ? 1 : scale[i].factor;
        at = colon ? colon + 1 : NULL;
    }
    for (; **unit == '\0' && largest > 0; largest--)
        if (fmod(v[0], scale[largest].factor) == 0 &&
            fmod(v[2], scale[largest].factor) == 0)
            break;
    if (**unit == '\0') {
        *unit = scale[largest].unit;
        for (int i = 0; i < 3; i++)
            v[i] /= scale[largest].factor;
    }
    return n > 1;
}

static bool add_range(Arena *arena, const char *text, ValueList *out) {
    double v[3] = {0, 0, 1};
    const char *unit;
    if (!read_range(arena, text, v, &unit) || v[2] <= 0 || v[1] < v[0] ||
        (v[1] - v[0]) / v[2] > MAX_POINTS)
        return false;
    uint32_t n = (uint32_t)floor((v[1] - v[0]) / v[2] + 1e-9) + 1;
    for (uint32_t i = 0; i < n; i++)
        vec_push(arena, out,
                 arena_printf(arena, "%.10g%s", v[0] + i * v[2], unit));
    return true;
}

static void add_list(Arena *arena, const char *text, ValueList *out) {
    for (;;) {
        size_t len = strcspn(text, ",");
        const char *value = arena_strndup(arena, text, len), *unit;
        double number;
        bool sized = read_number(value, &number, &unit) &&
                     strcmp(full_unit(unit), unit) != 0;
        if (sized)
            value = arena_printf(arena, "%.*s%s", (int)(unit - value), value,
                                 full_unit(unit));
        vec_push(arena, out, value);
        if (!text[len])
            return;
        text += len + 1;
    }
}

static bool read_vary(Arena *arena, Diag *diag, const HwSetting *given,
                      Vary *out) {
    ValueList values = {0};
    bool range = strchr(given->value, ':') && !strchr(given->value, ',');
    if (range ? !add_range(arena, given->value, &values) : !*given->value) {
        diag_error(diag, (Loc){0},
                   "--vary %s=%s: values are a,b,c or lo:hi:step", given->path,
                   given->value);
        return false;
    }
    if (!range)
        add_list(arena, given->value, &values);
    *out = (Vary){given->path, values.n, values.at};
    return true;
}

/* ---- checks before anything runs ---- */

bool is_compiler_option(const char *path) {
    return !strcmp(path, "replication") || !strcmp(path, "mode") ||
           !strcmp(path, "order") || !strcmp(path, "planner") ||
           !strcmp(path, "side-by-side") || !strcmp(path, "objective") ||
           !strcmp(path, "effort") || !strcmp(path, "recompute");
}

/* A value that no machine takes is a mistake in the command; one that some
 * machines do not take makes points that say so. */
static bool path_exists(Arena *arena, Diag *diag, const Sweep *s,
                        const Vary *vary) {
    const Options *o = s->options;
    HwSetting *settings = ARENA_ARRAY(arena, HwSetting, o->settings.n + 1);
    for (uint32_t i = 0; i < o->settings.n; i++)
        settings[i] = o->settings.at[i];
    for (uint32_t t = 0; t < s->n_targets; t++)
        for (uint32_t v = 0; v < vary->n; v++) {
            Diag *quiet = diag_new(arena);
            bool last = t + 1 == s->n_targets && v + 1 == vary->n;
            settings[o->settings.n] = (HwSetting){vary->path, vary->value[v]};
            if (hwspec_load(arena, last ? diag : quiet, s->target[t],
                            o->settings.n + 1, settings))
                return true;
        }
    return false;
}

static bool count_points(Diag *diag, Sweep *s) {
    uint64_t n = (uint64_t)s->n_files * s->n_targets;
    for (uint32_t i = 0; i < s->n_varies && n <= MAX_POINTS; i++)
        n *= s->vary[i].n;
    if (n > MAX_POINTS)
        diag_error(diag, (Loc){0}, "more than %d points", MAX_POINTS);
    s->n_points = (uint32_t)n;
    return n <= MAX_POINTS;
}

/* FNV-1a of a file, 64 bits in hexadecimal. */
static bool file_print(Arena *arena, Diag *diag, const char *path,
                       const char **out) {
    Bytes bytes;
    if (!file_read(arena, diag, path, &bytes))
        return false;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.at[i]) * UINT64_C(1099511628211);
    *out = arena_printf(arena, "%016llx", (unsigned long long)hash);
    return true;
}

static bool read_shard(Diag *diag, const char *text, Sweep *s) {
    unsigned i, n;
    char rest;
    s->n_shards = 1;
    if (!text)
        return true;
    if (sscanf(text, "%u/%u%c", &i, &n, &rest) != 2 || !i || i > n) {
        diag_error(diag, (Loc){0}, "--shard takes i/n with 1 <= i <= n, not %s",
                   text);
        return false;
    }
    s->shard = i - 1;
    s->n_shards = n;
    return true;
}

bool sweep_make(Arena *arena, Diag *diag, const Options *o, Sweep *s) {
    const ExploreArgs *own = o->own;
    *s = (Sweep){.options = o,
                 .n_files = o->n_files,
                 .file = o->files,
                 .n_targets = o->targets.n,
                 .target = o->targets.at,
                 .n_varies = own->varies.n};
    Vary *vary = ARENA_ARRAY(arena, Vary, own->varies.n);
    const char **print = ARENA_ARRAY(arena, const char *, o->n_files);
    s->vary = vary;
    s->print = print;
    bool ok = read_shard(diag, own->shard, s);
    for (uint32_t i = 0; i < o->n_files; i++)
        ok &= file_print(arena, diag, o->files[i], &print[i]);
    for (uint32_t i = 0; i < own->varies.n; i++)
        ok &= read_vary(arena, diag, &own->varies.at[i], &vary[i]) &&
              (is_compiler_option(vary[i].path) ||
               path_exists(arena, diag, s, &vary[i]));
    return ok && count_points(diag, s);
}

/* ---- one point ---- */

Point sweep_point(Arena *arena, const Sweep *s, uint32_t index) {
    const char **path = ARENA_ARRAY(arena, const char *, s->n_varies);
    const char **value = ARENA_ARRAY(arena, const char *, s->n_varies);
    uint32_t rest = index;
    const char *name = "";
    for (uint32_t i = s->n_varies; i-- > 0;) {
        path[i] = s->vary[i].path;
        value[i] = s->vary[i].value[rest % s->vary[i].n];
        rest /= s->vary[i].n;
        name = arena_printf(arena, " %s=%s%s", path[i], value[i], name);
    }
    const char *target = s->target[rest % s->n_targets];
    const char *file = s->file[rest / s->n_targets];
    return (Point){.index = index,
                   .network = file,
                   .target = target,
                   .n_settings = s->n_varies,
                   .path = path,
                   .value = value,
                   .reason = "",
                   .name = arena_printf(arena, "%s %s%s",
                                        file_stem(arena, file), target, name)};
}
