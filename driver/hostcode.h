/* hostcode.h - layers of the host as native code: in memory for the simulator,
 * in files for users. */
#ifndef DRIVER_HOSTCODE_H
#define DRIVER_HOSTCODE_H

#include "base/json.h"
#include "driver/options.h"
#include "native/native.h"
#include "sim/sim.h"

typedef struct HostCode HostCode;

/* Gives the simulation of the listing native code, as --host says: by default
 * where this amphora has it and a layer is left to the host. *out: NULL where
 * the simulator interprets. False after errors. */
bool hostcode_open(Arena *arena, Diag *diag, const char *host,
                   const Listing *listing, SimOptions *sim, HostCode **out);
void hostcode_close(HostCode *code);
/* Layers that run natively; 0 for NULL. */
uint32_t hostcode_layers(const HostCode *code);

/* Code to be written for layers of the host. */
typedef struct HostObject HostObject;

/* Functions for the layers of the host; *listing becomes the one that says
 * where they are called. NULL after errors. */
const HostObject *hostcode_make(Arena *arena, Diag *diag,
                                const Listing **listing);
/* Writes NET.host.o and NET.host.h beside the listing `path`; their paths go to
 * out. */
bool hostcode_write(Arena *arena, Diag *diag, const HostObject *made,
                    const char *path, const char *out[3]);

/* The whole plan as a function, its buffers in the memories of `spec`, placed
 * by the planner wanted or, of "auto", the usual one. NULL after errors. */
const NativeBundle *bundle_make(Arena *arena, Diag *diag,
                                const BundleOptions *wanted, const Plan *plan,
                                const HwSpec *spec, bool *does_not_fit);
/* Writes NET.o and NET.h, and NET.bin where the weights are not the object's.
 */
bool bundle_write(Arena *arena, Diag *diag, const NativeBundle *bundle,
                  const char *path, const char *out[3]);
/* Pools: bytes, bound, planner. */
void print_bundle(Arena *arena, const NativeBundle *bundle);
cJSON *bundle_json(const NativeBundle *bundle);
/* Writes NET.csv, the buffers. */
bool bundle_write_problem(Arena *arena, Diag *diag, const NativeBundle *bundle,
                          const char *path, const char **out);

#endif
