/* bound.h - what plans move, whatever their order; private to alloc. */
#ifndef ALLOC_BOUND_BOUND_H
#define ALLOC_BOUND_BOUND_H

#include "alloc/alias/base_tensors.h"

/* Bytes beyond the compulsory ones, of plans that compute nothing twice. */
double cuts_bound(const Facts *f, const Leaves *leaves);

/* ---- recompute_paths.c: plans that may compute again ---- */

/* The same for all plans; 0 where the machine is none of those that it is known
 * for. */
double paths_bound(const Decisions *d);

#endif
