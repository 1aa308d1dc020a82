/* expect.h - outputs of a network against values that others computed. */
#ifndef DRIVER_EXPECT_H
#define DRIVER_EXPECT_H

#include "driver/options.h"
#include "graph/graph.h"

/* How one set of outputs meets the --expect files. */
typedef struct Expectation {
    uint32_t outputs;   /* compared */
    double max_error;   /* as in compare.h: relative, or codes */
    const char *output; /* first beyond the tolerance; NULL: none */
    uint64_t at;        /* element of it */
    float expected, got;
} Expectation;

/* expected[i], got[i]: values of the i-th output, NULL where there are none. */
Expectation expect_compare(const Graph *graph, const float *const *expected,
                           const float *const *got, double tolerance);

/* One line about it; `who`: "reference", "listing". */
void expect_print(const char *who, const Expectation *e);

#endif
