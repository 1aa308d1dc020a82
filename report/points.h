/* points.h - points of a sweep: what they are made of, which are the best.
 *
 * A point is one network on one machine with some settings. Points are plain
 * data here; the door makes them, this room orders and draws them.
 */
#ifndef REPORT_POINTS_H
#define REPORT_POINTS_H

#include "base/arena.h"

#include <stdbool.h>

typedef enum PointStatus {
    POINT_FITS,
    POINT_NO_FIT, /* reason: the first line of the explanation */
    POINT_WRONG   /* not a machine, not legal, or a rule broken: reason */
} PointStatus;
extern const char *const point_status_name[];

typedef struct Point {
    uint32_t index; /* in the whole sweep, from 0 */
    const char *network, *target;
    uint32_t n_settings;
    const char *const *path, *const *value; /* what was varied */
    const char *name;                       /* all of it in one line */
    PointStatus status;
    const char *reason; /* "" where it fits */
    uint64_t cycles, am_capacity, am_peak, ddr, compulsory, weights,
        instructions;
    double ms;        /* of one image */
    uint32_t n_costs; /* what the hwspec calls so, by name */
    const char *const *cost_name;
    const double *cost;
    const char *report;  /* link to its page; or NULL */
    const char *command; /* that makes it; or NULL */
} Point;

/* What cycles are weighed against. */
typedef enum PointAxis { AXIS_AM, AXIS_DDR, AXIS_COUNT } PointAxis;
extern const char *const point_axis_name[AXIS_COUNT];
uint64_t point_axis(const Point *point, PointAxis axis);

/* True where points run at different clocks, so that cycles do not compare. */
bool points_by_time(uint32_t n, const Point *point);
/* The cost of that name in the hwspec; NULL: it has none. */
const double *point_cost_of(const Point *point, const char *name);
/* What a point costs: nanoseconds, or cycles. */
uint64_t point_cost(const Point *point, bool by_time);

/* Of the points of one network those that fit and are beaten by none: no other
 * costs as few cycles (or as little time) and has as little of the axis, and
 * less of one of them; of points with the same of both, those with the smallest
 * active memory. */
bool *points_front(Arena *arena, uint32_t n, const Point *point,
                   PointAxis axis);

/* Among points that differ in one setting, and by it in the capacity of active
 * memory: the smallest capacity than which no larger one has one in a hundred
 * fewer cycles or DDR bytes. Behind it more memory stops paying. */
bool *points_enough(Arena *arena, uint32_t n, const Point *point);

/* One page: fronts, filters, comparisons, all points, reasons; needs nothing
 * from elsewhere. */
const char *points_page(Arena *arena, uint32_t n, const Point *point);
const char *points_csv(Arena *arena, uint32_t n, const Point *point);

#endif
