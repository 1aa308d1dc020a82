/* terms.h - what errors of values go with. */
#ifndef DRIVER_TERMS_H
#define DRIVER_TERMS_H

#include "graph/graph.h"

/* By tensor, its scale: the greatest absolute value, and of sums at least a
 * thousandth of the largest sum of |terms|, each operand being as large as its
 * scale: where terms cancel, what is left is their roundings. Of what hands on
 * elements, or activations of them, at least that of these. 0: it has no
 * values. */
void scales_of(const Graph *g, Values value, double *scale);

#endif
