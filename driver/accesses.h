/* accesses.h - simulate --accesses: what a listing touches, as a table. */
#ifndef DRIVER_ACCESSES_H
#define DRIVER_ACCESSES_H

#include "sim/sim.h"

/* As sim_run; where `path` is not NULL, each range of bytes that is read or
 * written becomes a line of the CSV there, as docs/listing.md says. */
const SimResult *accesses_run(Arena *arena, Diag *diag, const Listing *listing,
                              uint32_t n_inputs, const float *const *inputs,
                              const SimOptions *options, const char *path);

#endif
