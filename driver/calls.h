/* calls.h - a network called several times, one behind the other: the values
 * of its inputs, and of its outputs. */
#ifndef DRIVER_CALLS_H
#define DRIVER_CALLS_H

#include "driver/expect.h"
#include "driver/options.h"
#include "graph/graph.h"

typedef struct Calls {
    uint32_t n;
    const Graph *g;
    uint64_t seed;
    const float *const *given;  /* by input that is no state: of all calls, or
                                 * NULL: seeded */
    const float *const *expect; /* by output: of all calls, or NULL */
    float **output;             /* by output: of all calls */
} Calls;

/* Reads --input and --expect. False after errors. */
bool calls_read(Arena *arena, Diag *diag, const Options *options,
                const Texts *expects, const Graph *graph, Calls *out);
uint32_t calls_asked(const Options *options);
/* Values of all inputs in the call; states are what the outputs were that were
 * kept of the call before. */
const float *const *calls_inputs(Arena *arena, const Calls *calls,
                                 uint32_t call);
/* Keeps the outputs of a call. */
void calls_keep(const Calls *calls, uint32_t call, const float *const *outputs);
/* The call's outputs against --expect. */
Expectation calls_compare(Arena *arena, const Calls *calls, uint32_t call,
                          const float *const *outputs, double tolerance);
/* All calls of the two together. */
Expectation expect_join(Expectation a, Expectation b);
/* A shape, one behind the other for each call. */
Shape calls_shape(uint32_t calls, const Shape *shape);
bool calls_write(Arena *arena, Diag *diag, const Calls *calls, const char *dir);

#endif
