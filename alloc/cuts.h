/* cuts.h - what plans move that compute nothing twice; private to alloc. */
#ifndef ALLOC_CUTS_H
#define ALLOC_CUTS_H

#include "alloc/leaves.h"

/* Bytes beyond the compulsory ones. */
double cuts_bound(const Work *w, const Leaves *leaves);

#endif
