/* cmd_explore.c - a sweep from its command line to tables and a page. */
#include "base/file.h"
#include "base/guard.h"
#include "base/vec.h"
#include "driver/explore.h"
#include "driver/goal.h"

#include <errno.h>
#include <string.h>

enum { MAX_SHOWN = 60 };

/* ---- while points come in ---- */

typedef struct Arrivals {
    Arena *arena;
    Diag *diag;
    PointSet *set;
    FILE *to; /* or NULL: points.jsonl of a run that may be killed */
    bool failed;
} Arrivals;

static void arrive(void *context, const char *line, size_t len) {
    Arrivals *a = context;
    a->failed |= !points_add(a->arena, a->diag, (Loc){"worker", 0, 0}, line,
                             len, a->set);
    if (a->to)
        a->failed |=
            fprintf(a->to, "%.*s\n", (int)len, line) < 0 || fflush(a->to) != 0;
}

/* Lines are added as points end, so that --resume finds them. */
static bool open_lines(Arena *arena, Diag *diag, const Options *o,
                       const PointSet *had, FILE **to) {
    *to = NULL;
    if (!o->out)
        return true;
    const char *path = arena_printf(arena, "%s/points.jsonl", o->out);
    if (!file_make_dir(arena, diag, o->out))
        return false;
    *to = fopen(path, "w");
    if (!*to)
        diag_error(diag, (Loc){path, 0, 0}, "cannot write: %s",
                   strerror(errno));
    for (uint32_t i = 0; *to && i < had->line.n; i++)
        fprintf(*to, "%s\n", had->line.at[i]);
    return *to != NULL;
}

/* ---- what is to be done ---- */

static bool is_same_point(const Point *a, const Point *b, const char *a_print,
                          const char *b_print) {
    return !strcmp(a->name, b->name) && !strcmp(a->network, b->network) &&
           !strcmp(a_print, b_print);
}

/* Points that --resume found and that belong to this sweep stay. */
static bool keep_known(Arena *arena, Diag *diag, const Sweep *s,
                       const char *path, uint8_t *known, PointSet *set) {
    PointSet had = {0};
    if (!path)
        return true;
    if (!points_read(arena, diag, path, &had) ||
        !points_unite(arena, diag, &had))
        return false;
    for (uint32_t i = 0; i < had.point.n; i++) {
        Point *p = &had.point.at[i];
        Point mine = {0};
        const char *print = "";
        if (p->index < s->n_points) {
            mine = sweep_point(arena, s, p->index);
            print = s->print[p->index / (s->n_points / s->n_files)];
        }
        if (!mine.name || !is_same_point(p, &mine, had.print.at[i], print)) {
            diag_error(diag, (Loc){path, 0, 0},
                       "point %u is `%s`, of another sweep or network",
                       p->index, p->name);
            return false;
        }
        known[p->index] = 1;
        vec_push(arena, &set->point, *p);
        vec_push(arena, &set->line, had.line.at[i]);
        vec_push(arena, &set->print, had.print.at[i]);
    }
    return true;
}

static uint32_t list_todo(Arena *arena, const Sweep *s, const uint8_t *known,
                          uint32_t **out) {
    VEC(uint32_t) todo = {0};
    for (uint32_t i = s->shard; i < s->n_points; i += s->n_shards)
        if (!known[i])
            vec_push(arena, &todo, i);
    *out = todo.at;
    return todo.n;
}

static bool run_sweep(Arena *arena, Diag *diag, const Options *o,
                      PointSet *set) {
    Sweep sweep;
    if (!sweep_make(arena, diag, o, &sweep))
        return false;
    const ExploreArgs *own = o->own;
    uint8_t *known = ARENA_ARRAY(arena, uint8_t, sweep.n_points + 1);
    uint32_t *todo;
    Arrivals a = {.arena = arena, .diag = diag, .set = set};
    if (!keep_known(arena, diag, &sweep, own->resume, known, set) ||
        !open_lines(arena, diag, o, set, &a.to))
        return false;
    uint32_t n = list_todo(arena, &sweep, known, &todo);
    bool ok = sweep_run(arena, diag, &sweep, n, todo, arrive, &a);
    if (a.to)
        a.failed |= fclose(a.to) != 0;
    if (a.failed)
        diag_error(diag, (Loc){0}, "points could not be written");
    return ok && !a.failed;
}

static bool merge(Arena *arena, Diag *diag, const Options *o, PointSet *set) {
    bool ok = true;
    for (uint32_t i = 0; i < o->n_files; i++)
        ok &= points_read(arena, diag, o->files[i], set);
    return ok;
}

/* ---- results ---- */

static bool write_named(Arena *arena, Diag *diag, const char *dir,
                        const char *name, const char *text) {
    return file_replace(arena, diag, arena_printf(arena, "%s/%s", dir, name),
                        text, strlen(text));
}

static bool write_files(Arena *arena, Diag *diag, const Options *o,
                        PointSet *set) {
    const char *dir = o->out;
    Text lines = text_new(arena);
    for (uint32_t i = 0; i < set->line.n; i++)
        text_addf(&lines, "%s\n", set->line.at[i]);
    uint32_t n = set->point.n;
    Point *point = set->point.at;
    return file_make_dir(arena, diag, dir) &&
           sweep_report(arena, diag, o, dir, n, point) &&
           write_named(arena, diag, dir, "points.jsonl", text_str(&lines)) &&
           write_named(arena, diag, dir, "points.csv",
                       points_csv(arena, n, point)) &&
           write_named(arena, diag, dir, "index.html",
                       points_page(arena, n, point));
}

static void print_point(Arena *arena, const Point *p, const char *marks) {
    if (p->status != POINT_FITS) {
        say("%6u %14s %12s %12s  %s\n       %s: %s\n", p->index, "-", "-", "-",
            p->name, point_status_name[p->status], p->reason);
        return;
    }
    say("%6u %14s %12s %12s  %s%s\n", p->index, with_commas(arena, p->cycles),
        with_commas(arena, p->am_peak), with_commas(arena, p->ddr), p->name,
        marks);
}

/* Few points are printed all; of many the fronts. */
static void print_points(Arena *arena, const PointSet *set) {
    uint32_t n = set->point.n, fits = 0, shown = 0;
    const Point *point = set->point.at;
    bool *am = points_front(arena, n, point, AXIS_AM);
    bool *ddr = points_front(arena, n, point, AXIS_DDR);
    bool *enough = points_enough(arena, n, point);
    say("%6s %14s %12s %12s\n", "point", "cycles", "AM bytes", "DDR bytes");
    for (uint32_t i = 0; i < n; i++) {
        fits += point[i].status == POINT_FITS;
        if (n > MAX_SHOWN && !am[i] && !ddr[i])
            continue;
        shown++;
        print_point(arena, &point[i],
                    arena_printf(arena, "%s%s%s", am[i] ? "  [front AM]" : "",
                                 ddr[i] ? "  [front DDR]" : "",
                                 enough[i] ? "  [enough AM]" : ""));
    }
    say("%u points, %u fit", n, fits);
    if (shown < n)
        say("; only the fronts are shown");
    say("\n");
}

static void print_points_json(Arena *arena, const Options *o,
                              const PointSet *set) {
    Text text = text_new(arena);
    text_add(&text, "{\"points\":[");
    for (uint32_t i = 0; i < set->line.n; i++)
        text_addf(&text, "%s%s", i ? "," : "", set->line.at[i]);
    text_add(&text, "]}");
    if (o->said) {
        *o->said = text_str(&text);
        return;
    }
    say_lines(guard_out(), text_str(&text));
    say("\n");
}

/* The points that were compiled are written as those of a sweep. */
static ExitCode search(Arena *arena, Diag *diag, const Options *o,
                       PointSet *set) {
    const ExploreArgs *own = o->own;
    if (own->merge || own->shard || own->resume) {
        diag_error(diag, (Loc){0},
                   "--goal searches by itself: no --merge, "
                   "--shard, --resume");
        return EXIT_BAD_USAGE;
    }
    ExitCode code = goal_search(arena, diag, o, set);
    if ((code != EXIT_FINE && code != EXIT_NO_FIT) || !o->out)
        return code;
    return points_unite(arena, diag, set) && write_files(arena, diag, o, set)
               ? code
               : EXIT_BAD_INPUT;
}

static ExitCode submit(Arena *arena, Diag *diag, const Options *o) {
    Sweep sweep;
    return sweep_make(arena, diag, o, &sweep)
               ? sweep_submit(arena, diag, o, sweep.n_points)
               : EXIT_BAD_INPUT;
}

ExitCode cmd_explore(Arena *arena, Diag *diag, const Options *o) {
    const ExploreArgs *own = o->own;
    PointSet set = {0};
    if (!own->merge && !o->targets.n) {
        pipeline_spec(arena, diag, o);
        return EXIT_BAD_USAGE;
    }
    if (!own->goal && (own->minimise || own->maximise || own->risings.n)) {
        diag_error(diag, (Loc){0},
                   "--minimise, --maximise and --rising are "
                   "about a search: --goal (it may be '')");
        return EXIT_BAD_USAGE;
    }
    if (own->goal)
        return search(arena, diag, o, &set);
    if (!own->merge && own->submit && strcmp(own->submit, "none") != 0)
        return submit(arena, diag, o);
    bool ok = own->merge ? merge(arena, diag, o, &set)
                         : run_sweep(arena, diag, o, &set);
    if (!ok || !points_unite(arena, diag, &set))
        return EXIT_BAD_INPUT;
    if (o->out && !write_files(arena, diag, o, &set))
        return EXIT_BAD_INPUT;
    if (o->json)
        print_points_json(arena, o, &set);
    else
        print_points(arena, &set);
    return EXIT_FINE;
}
