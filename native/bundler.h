/* bundler.h - what the files of a bundle share while it is made; private. */
#ifndef NATIVE_BUNDLER_H
#define NATIVE_BUNDLER_H

#include "base/vec.h"
#include "native/maker.h"
#include "native/native.h"

/* Where what a buffer of the plan holds lies in the bundle. */
typedef struct Home {
    bool set;
    bool alone;    /* no other tensor shares the buffer */
    uint32_t last; /* action that uses it last */
    NativePointer pointer;
} Home;

typedef struct Bundler {
    Arena *arena;
    Diag *diag;
    const NativeBackend *backend;
    const Plan *plan;
    const Graph *g;
    const HwSpec *spec;
    NativeWeights where;
    uint64_t piece;   /* bytes of constants at a time, at most */
    uint64_t largest; /* of the pieces that there are */
    Maker *maker;
    Rooms *rooms;
    Home *home;              /* by the plan's buffers */
    NativePointer *in, *out; /* by input, output: caller's, or rooms */
    uint32_t n_in, n_out;    /* of the caller's */
    uint32_t at;             /* action */
    VEC(NativeCall) call;
} Bundler;

/* A layer on its operands; constants are yet to come. */
typedef struct Site {
    VEC(Operand) operand;
    VEC(NativePointer) pointer;
    VEC(NativeLoad) load;
} Site;

/* bundle_load.c: adds the calls of a layer whose constants are loaded. */
void bundle_load_layer(Bundler *b, Site *site, const Kernel *kernel,
                       const Const *value, const char *name);
/* A constant that is an operand. */
NativePointer bundle_load_operand(Bundler *b, Site *site, const Const *value,
                                  ConstKind kind, const char *name);

#endif
