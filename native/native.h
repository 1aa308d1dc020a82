/* native.h - machine code for layers: what the rest of amphora sees of it.
 *
 * LLVM costs every start of a program that is linked with it more than ten
 * milliseconds, so the back end is a module of its own that is loaded when
 * code is asked for (native_load).
 */
#ifndef NATIVE_NATIVE_H
#define NATIVE_NATIVE_H

#include "plan/plan.h"
#include "codegen/listing.h"
#include "graph/graph.h"
#include "native/program.h"
#include "native/rooms.h"

/* Code in memory. */
typedef struct NativeCode NativeCode;
/* in[], out[]: as the NativeFunction says; of codes, not of floats, where
 * tensors are quantised. */
typedef void NativeEntry(const float *const *in, float *const *out,
                         void *workspace, const void *weights);

/* What the module exports. Errors go to `diag`. */
typedef struct NativeBackend {
    const char *version; /* of LLVM */
    /* Why no code can be made for a kernel; NULL: it can. Everything else
     * here needs kernels that were asked about. */
    const char *(*refuse)(const Kernel *kernel);
    /* An object file. Its functions: `void NAME(const float *in0, ...,
     * float *out0, ...)`; of a bundle, `int NAME(const IO *io, void
     * *workspace)`, IO being a structure of those pointers, then, as wanted, of
     * a pointer to weights, or a function that loads them, of pointers to the
     * pools but the first, and the number of images. */
    bool (*object)(Arena *arena, Diag *diag, const NativeProgram *program,
                   bool bundle, const uint8_t **out, size_t *len);
    /* The program's weights as the target has them in memory; NULL after
     * errors. */
    const uint8_t *(*weights)(Arena *arena, Diag *diag,
                              const NativeProgram *program);
    /* The functions in memory, by index in the program; NULL after errors. */
    NativeCode *(*load)(Arena *arena, Diag *diag, const NativeProgram *program,
                        NativeEntry *const **entry);
    void (*unload)(NativeCode *code);
} NativeBackend;
extern const NativeBackend native_backend; /* the module's */

/* Loads the module. NULL with an error: this amphora was built without LLVM,
 * or its module is not where it was built or installed. */
const NativeBackend *native_load(Diag *diag);
/* Is there a module to load? */
bool native_built(void);

/* A node on operands that lie as told; `constant`: the values of the kernel's,
 * in its order. */
Kernel native_kernel(Arena *arena, const Graph *g, NodeId node,
                     const Operand *in, const Operand *out,
                     const Const **constant);

/* ---- layers of the host ---- */

/* One function for each host layer of the image that the back end does not
 * refuse; layer[i] tells which (index in image.host) function i is. */
const NativeProgram *native_host_program(Arena *arena,
                                         const NativeBackend *backend,
                                         const Listing *listing,
                                         const NativeTarget *target,
                                         const uint32_t **layer);

/* What the hwspec says that code is for. */
NativeTarget native_target(const HwSpec *spec);

/* NET.host.h. */
const char *native_host_header(Arena *arena, const Listing *listing,
                               const NativeProgram *program,
                               const uint32_t *layer);

/* ---- a whole network ---- */

enum { NATIVE_MOST_IMAGES = 4096 };
typedef struct BundleOptions {
    uint32_t images;     /* of one run at most; 1: always one */
    const char *planner; /* NULL: the hwspec's */
    const char *io;      /* "shared": inputs and outputs among the rest,
                          * "separate"; NULL: as the hwspec says */
} BundleOptions;

typedef struct NativeBundle {
    const NativeProgram *program; /* its one function runs the plan */
    const Plan *plan;
    const HwSpec *spec;
    const Rooms *rooms;
    uint32_t images;
    const NativePointer *in, *out; /* by input and output of the graph */
} NativeBundle;

/* The machine as a bundle's plan sees it: with as much active memory as it
 * needs, since the bundle places its buffers itself. */
const HwSpec *native_roomy(Arena *arena, const HwSpec *spec);

/* The plan's actions as one function, its buffers placed in the memories of
 * `spec`. NULL with an error where the plan needs more than a processor with
 * memory beside inputs and outputs, or (*does_not_fit) than there is. */
const NativeBundle *native_bundle(Arena *arena, Diag *diag,
                                  const NativeBackend *backend,
                                  const Plan *plan, const HwSpec *spec,
                                  const BundleOptions *options,
                                  bool *does_not_fit);
/* NET.h. */
const char *native_bundle_header(Arena *arena, const NativeBundle *bundle);
/* Its buffers, and what each layer needs: tables as text. */
const char *native_bundle_table(Arena *arena, const NativeBundle *bundle);

#endif
