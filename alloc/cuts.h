/* cuts.h - what plans move, whatever their order; private to alloc. */
#ifndef ALLOC_CUTS_H
#define ALLOC_CUTS_H

#include "alloc/leaves.h"

/* Bytes beyond the compulsory ones, of plans that compute nothing twice. */
double cuts_bound(const Work *w, const Leaves *leaves);

/* ---- paths.c: plans that may compute again ---- */

/* The same for all plans; 0 where the machine is none of those that it is known
 * for. */
double paths_bound(const Work *w);

#endif
