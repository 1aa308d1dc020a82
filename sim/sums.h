/* sums.h - sums that one instruction leaves for the next.
 *
 * Input: convolutions that add up some of their input channels. Output: sums,
 * as exact as the layer's arithmetic, and cells where the result will lie, or
 * of the memory of sums, that hold nothing else. Invariants: blocks of input
 * channels follow each other from the first to the last, over the same box of
 * the result in the same place, and nobody writes there in between; what reads
 * such cells as values is a violation.
 */
#ifndef SIM_SUMS_H
#define SIM_SUMS_H

#include "sim/compute.h"

struct PartSums {
    bool serves; /* somebody goes on with it */
    const char *layer;
    Place place, out;        /* theirs and the result's; tables are not kept */
    uint32_t first_c;        /* of the layer's output channels */
    uint32_t first_in, n_in; /* the last input channels that are in it, */
    uint32_t end_tap;        /* up to this tap of their kernel; 0: with all */
    uint64_t n, room;        /* sums */
    bool begins, stays;      /* of the instruction at work */
    float *real;
    int64_t *code;
};

/* Those that the work leaves or goes on with: NULL where it does neither.
 * False, with a violation, if they are not there. */
bool sums_open(Run *run, const Work *work, PartSums **out);

/* Real sums: adds those that are there, and keeps the whole where it stays.
 * Whether it does. */
bool sums_add(PartSums *sums, Patch *patch);

/* Where the work's sums lie, as theirs: where its result will, or in their
 * memory. */
Place sums_place(const Work *work);
/* False, with a violation, if they do not lie in one buffer of it. */
bool sums_in_buffer(Run *run, const Place *place);

#endif
