/* explore.h - a sweep: every network on every machine with every combination
 * of the varied settings. */
#ifndef DRIVER_EXPLORE_H
#define DRIVER_EXPLORE_H

#include "base/text.h"
#include "base/vec.h"
#include "driver/commands.h"
#include "driver/pipeline.h"
#include "report/points.h"

enum { MAX_POINTS = 1000000 };

/* --vary PATH=...: the values in order. */
typedef struct Vary {
    const char *path;
    uint32_t n;
    const char *const *value;
} Vary;

typedef struct Sweep {
    const Options *options;
    uint32_t n_files, n_targets, n_varies, n_points;
    const char *const *file, *const *target;
    const Vary *vary;
    const char *const *print; /* by file: of what is in it */
    uint32_t shard, n_shards; /* points with index % n_shards == shard */
} Sweep;

/* explore_grid.c: the points, numbered; the last --vary varies fastest.
 * All values are checked against the machines. False after errors. */
bool sweep_make(Arena *arena, Diag *diag, const Options *options, Sweep *out);
/* Whether a varied path is an option of the compiler, not of the hwspec. */
bool is_compiler_option(const char *path);
/* The point without its results. */
Point sweep_point(Arena *arena, const Sweep *sweep, uint32_t index);

/* explore_run.c: compiles and simulates the points todo[0..n) on all cores;
 * `done` is called with a line of each, as soon as it is there. False if a
 * worker died. */
typedef void SweepDone(void *context, const char *line, size_t len);
bool sweep_run(Arena *arena, Diag *diag, const Sweep *sweep, uint32_t n,
               uint32_t *todo, SweepDone *done, void *context);

/* explore_group.c: points that differ in the size of the first memory alone.
 * Those of a group, one behind the other, read the network once and share what
 * their plans found out; all zero: none is entered. */
typedef struct PointGroup {
    Arena *arena;
    uint32_t number;
    Shared shared;
    bool opened, fine; /* `first` was tried; is there */
    Pipeline first;    /* up to the schedule */
} PointGroup;

/* Sorts todo[0..n) so that the points of a group stand together, by size. */
void sweep_sort(const Sweep *sweep, uint32_t n, uint32_t *todo);
/* The group is that of the point `index` from here on. */
void group_enter(PointGroup *group, const Sweep *sweep, uint32_t index);
void group_leave(PointGroup *group);
/* From the file to the listing of a point in the group, or in none (NULL). */
ExitCode group_run(PointGroup *group, Arena *arena, Diag *diag,
                   const Options *options, const Point *point, Pipeline *out);

/* Fills the results of a point with those of a run, and the cycles of an image
 * with its layers of the host. */
void point_take(Arena *arena, Point *point, const HwSpec *spec,
                const SimResult *sim, uint64_t cycles);
/* Compiles and simulates one point, and fills its results, which are the same
 * in a group or by itself (NULL). NULL where it does not fit or is wrong. */
const SimResult *point_run(Arena *arena, const Options *options,
                           PointGroup *group, Point *point,
                           const Listing **listing);

/* The costs that the hwspec names; `sim` NULL: of the machine alone. */
void point_costs(Arena *arena, const HwSpec *spec, const SimResult *sim,
                 Point *point);

/* explore_submit.c: gives shards to Slurm or GNU parallel, as a command of
 * its own. */
ExitCode sweep_submit(Arena *arena, Diag *diag, const Options *options,
                      uint32_t n_points);

/* explore_report.c: the page of each point that options->reports names, as
 * DIR/reports/NUMBER.html, and the points' links to them. A point that does
 * not come out as its line says gets none, and a note. */
bool sweep_report(Arena *arena, Diag *diag, const Options *options,
                  const char *dir, uint32_t n, Point *point);

/* explore_file.c: a line of points.jsonl, without the line's end. `print` is
 * of the network's file, so that results of another one are not taken over. */
const char *point_line(Arena *arena, const Point *point, const char *print);

/* Points as read from files, by index; a later line of the same point must
 * say the same. */
typedef struct PointSet {
    VEC(Point) point;
    VEC(const char *) line; /* beside point */
    VEC(const char *) print;
} PointSet;
/* Adds the lines of a file; a torn last one is passed over. */
bool points_read(Arena *arena, Diag *diag, const char *path, PointSet *set);
bool points_add(Arena *arena, Diag *diag, Loc loc, const char *line, size_t len,
                PointSet *set);
/* Sorts by index and drops what is there twice; an error where two lines of
 * one point differ. */
bool points_unite(Arena *arena, Diag *diag, PointSet *set);

#endif
