/* evalnative.h - what a network computes, by machine code for this computer. */
#ifndef DRIVER_EVALNATIVE_H
#define DRIVER_EVALNATIVE_H

#include "driver/options.h"
#include "graph/graph.h"

typedef struct NativeNetwork NativeNetwork;

/* Compiles the network of the options as a bundle, for options->target or for a
 * processor of this computer's kind, and loads it. *ms: what that took. NULL
 * after errors. */
NativeNetwork *native_open(Arena *arena, Diag *diag, const Options *options,
                           const Graph *graph, double *ms);
/* One call. Inputs and outputs are as graph_eval's: floats, or codes as floats;
 * adds the milliseconds to *ms. */
const float *const *native_call(Arena *arena, NativeNetwork *net,
                                const float *const *inputs, double *ms);
void native_close(NativeNetwork *net);

#endif
