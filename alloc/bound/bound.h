/* bound.h - what plans move at least; private to alloc. */
#ifndef ALLOC_BOUND_BOUND_H
#define ALLOC_BOUND_BOUND_H

#include "alloc/alias/base_tensors.h"
#include "alloc/decisions.h"

/* ---- bound.c ---- */

/* Fills ddr_bound. */
void bound_make(const Decisions *d, Plan *plan);
/* What active memories hold, in bytes as they are counted when they move: an
 * element that lies there may be smaller. */
double active_moved(const Facts *f);

/* ---- compulsory.c ---- */

/* Bytes that every listing moves, of volumes. */
uint64_t maps_compulsory(const Facts *f);
/* The same of weights, where they are loaded into active memory. */
uint64_t weights_bound(Arena *arena, const Schedule *schedule);

/* ---- min_memory.c ---- */

/* Bytes of the first active memory without which some step cannot run; 0 where
 * nobody knows. */
uint64_t memory_bound(const Decisions *d);

/* ---- single_compute_cuts.c ---- */

/* Bytes beyond the compulsory ones, of plans that compute nothing twice. */
double cuts_bound(const Facts *f, const BaseTensors *bases);

/* ---- recompute_paths.c: plans that may compute again ---- */

/* The same for plans whose instructions find all rows that they read of a
 * channel where one instruction wrote them, or transfers; 0 where the machine
 * is none of those that it is known for. */
double paths_bound(const Decisions *d);

#endif
