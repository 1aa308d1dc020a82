/* native.h - machine code for layers: what the rest of amphora sees of it.
 *
 * LLVM costs every start of a program that is linked with it more than ten
 * milliseconds, so the back end is a module of its own that is loaded when
 * code is asked for (native_load).
 */
#ifndef NATIVE_NATIVE_H
#define NATIVE_NATIVE_H

#include "alloc/plan.h"
#include "codegen/listing.h"
#include "graph/graph.h"
#include "native/program.h"

/* Code in memory. */
typedef struct NativeCode NativeCode;
/* in[], out[]: as the NativeFunction says. */
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
     * *workspace)`, IO being a structure of those pointers and, where weights
     * are apart, one to them. */
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

/* A node on operands that lie as told; its constants are those that the node
 * has, in the order of their roles. */
Kernel native_kernel(Arena *arena, const Graph *g, NodeId node,
                     const Operand *in, const Operand *out);

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

typedef struct NativeBundle {
    const NativeProgram *program; /* its one function runs the plan */
    uint64_t workspace_bytes, workspace_align;
} NativeBundle;

/* The plan's actions as one function. NULL with an error where the plan needs
 * more than a processor with one memory beside inputs and outputs. */
const NativeBundle *native_bundle(Arena *arena, Diag *diag,
                                  const NativeBackend *backend,
                                  const Plan *plan);
/* NET.h. */
const char *native_bundle_header(Arena *arena, const Plan *plan,
                                 const NativeBundle *bundle);

#endif
