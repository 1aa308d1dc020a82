/* goal.h - what a search of machines is to find: --goal, --minimise. */
#ifndef DRIVER_GOAL_H
#define DRIVER_GOAL_H

#include "driver/explore.h"

/* A figure of a machine: of one network, or over all of them the geometric
 * mean; costs of the machine alone are the same for all. */
typedef enum FigureKind {
    OF_PLANS,
    OF_TIME,
    OF_BYTES,
    OF_MACHINES /* known without a compilation */
} FigureKind;

typedef struct Figure {
    const char *text;    /* as it was given */
    const char *measure; /* "ms", "cost.bram" */
    int32_t network;     /* -1: all */
    FigureKind kind;
    bool falls; /* plans are chosen for it: more of a rising value makes it no
                   larger */
} Figure;

typedef struct Limit {
    Figure figure;
    bool least; /* figure >= value, not <= */
    double value;
} Limit;

typedef struct Goal {
    uint32_t n_limits;
    Limit *limit;
    Figure aim;
    bool maximise;
    const char *objective; /* what plans are chosen for */
} Goal;

/* False after an error: what is wrong, and what there is. */
bool goal_read(Arena *arena, Diag *diag, const Sweep *sweep, Goal *out);

/* Of the machine whose points are point[0..n_files), which all fit; or of its
 * hwspec alone, in point[0], where that is enough. */
double figure_value(const Figure *figure, uint32_t n, const Point *point);

/* explore_goal.c: the best machine of the sweep, by as few compilations as can
 * be; points that were compiled go to `set`. */
ExitCode goal_search(Arena *arena, Diag *diag, const Options *options,
                     PointSet *set);

#endif
