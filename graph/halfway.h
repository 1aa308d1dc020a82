/* halfway.h - codes that lie halfway between two, as far as floats can tell.
 *
 * A layer on real numbers between codes (the rule `reals`) is rounded to a code
 * at its end. Where its result lies within a float's rounding of halfway,
 * another order of its sums gives the other code, and either is right.
 * In: values of the reference; codes that a listing made. Out: the reference's
 * values, with the listing's codes where these are as right, and what builds on
 * them computed again.
 */
#ifndef GRAPH_HALFWAY_H
#define GRAPH_HALFWAY_H

#include "graph/graph.h"

typedef struct Halfway {
    const Graph *g;
    Values reference;
    bool *stale; /* by tensor: computed before the listing's codes were taken */
    bool any;    /* is stale */
    uint64_t codes; /* that were taken, of all references */
} Halfway;

/* A part of a tensor: elements `at[i]` of it are `got[i]`. */
typedef struct MadeCodes {
    TensorId tensor;
    uint64_t n;
    const uint64_t *at;
    const float *got;
} MadeCodes;

Halfway halfway_start(Arena *arena, const Graph *g);
/* From now on of these values. */
void halfway_next(Halfway *h, Values reference);
/* The tensor is as it follows from what was taken. True: it has changed. */
bool halfway_refresh(Halfway *h, TensorId tensor);
/* Takes such of the codes as are as right as the reference's. */
void halfway_take(Halfway *h, const MadeCodes *made);

#endif
