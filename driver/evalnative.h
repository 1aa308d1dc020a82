/* evalnative.h - what a network computes, by machine code for this computer. */
#ifndef DRIVER_EVALNATIVE_H
#define DRIVER_EVALNATIVE_H

#include "driver/options.h"
#include "graph/graph.h"

typedef struct NativeRunTimes {
    double made, run; /* milliseconds */
} NativeRunTimes;

/* Compiles the network of the options as a bundle, for options->target or for a
 * processor of this computer's kind, and runs it in memory. Inputs and outputs
 * are as graph_eval's: floats, or codes as floats. NULL after errors. */
const float *const *native_evaluate(Arena *arena, Diag *diag,
                                    const Options *options, const Graph *graph,
                                    const float *const *inputs,
                                    NativeRunTimes *times);

#endif
