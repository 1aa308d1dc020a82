/* chart.h - points in a plane: two axes with ticks and titles, in SVG. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include "base/text.h"

#include <stdbool.h>

typedef struct Scale {
    uint64_t low, high;
    double at, pixels; /* of low; may go down */
} Scale;

typedef struct Chart {
    Text *to;
    const char *x_title, *y_title; /* with the unit */
    Scale x, y;
} Chart;

Chart chart_new(Text *to, const char *x_title, const char *y_title);
/* Makes room for a point; all of them before chart_open. */
void chart_widen(Chart *chart, uint64_t x, uint64_t y);
/* The frame, ticks and titles; false, and nothing, where there is no point. */
bool chart_open(Chart *chart);
void chart_close(Chart *chart);
/* Pixels of a value. */
double chart_x(const Chart *chart, uint64_t value);
double chart_y(const Chart *chart, uint64_t value);
/* A dashed line at a value of x that is in the picture. */
void chart_mark(Chart *chart, uint64_t x, const char *name);

#endif
