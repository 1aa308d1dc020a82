/* compare.h - the simulated values of each kept layer against the reference
 * evaluation of the graph as it was before all passes. */
#ifndef DRIVER_COMPARE_H
#define DRIVER_COMPARE_H

#include "driver/pipeline.h"
#include "graph/halfway.h"
#include "sim/sim.h"

typedef struct Mismatch {
    const char *layer; /* NULL: none */
    uint32_t c, h, w;
    float expected, got;
    double error;
} Mismatch;

typedef struct Comparison {
    const Pipeline *pipeline;
    Values reference; /* by tensor of pipeline->original */
    Halfway halfway;  /* codes of the listing that the reference took */
    bool *known;      /* by tensor: it has values */
    double *largest;  /* by tensor: greatest absolute value; < 0: not yet */
    double *scale;    /* by tensor: scales_of, where a tensor needs it */
    bool scaled;      /* scale is there */
    double tolerance;
    uint32_t layers;    /* instructions compared... */
    uint32_t quantised; /* ...and how many of them wrote codes */
    uint32_t outputs;   /* of the network, compared */
    bool *seen;         /* by instruction: it was one of them */
    double max_error; /* of real numbers: |got - expected| / greatest |expected|
                       * of the tensor (beyond the tolerance: / its scale,
                       * terms.h), or / 1 where all is zero */
    double max_codes; /* of codes: |got - expected| */
    Mismatch first;   /* the first beyond the tolerance; any that is not the
                       * same code */
} Comparison;

Comparison compare_start(Arena *arena, const Pipeline *pipeline,
                         Values reference, double tolerance);

/* What the next call is compared with. */
void compare_next(Comparison *comparison, Values reference);

/* The instructions whose results should have been compared, but which made
 * none: how many; `names`, of the first few. */
enum { COMPARE_NAMES = 5 };
uint32_t compare_missing(const Comparison *c, const char *names[COMPARE_NAMES]);

/* A SimObserver; context is the Comparison. */
void compare_observe(void *context, uint32_t insn, const SimOutput *output);

/* What the listing leaves in the network's outputs, in their order. */
void compare_outputs(Comparison *c, const float *const *got);

#endif
