/* wordgen.h - a network as words of a machine that runs lists of instructions.
 *
 * Graph -> Program: each layer that a way of the hwspec takes (hwspec/emit.h)
 * becomes instructions; operands, results and constants lie in the backing
 * memory. Layers that only give the same bytes another name cost nothing, nor
 * do concats whose members are written in place, nor slices of channels. All
 * others are the host's: it reads and writes the backing memory between words.
 */
#ifndef WORDGEN_WORDGEN_H
#define WORDGEN_WORDGEN_H

#include "wordgen/writer.h"

/* Where a tensor of codes lies: channels `first`... of a volume of `c` x h x
 * w at byte `at`. Of rank 4 these are its own axes, else the last axis is c,
 * the others are w. */
typedef struct EmitPlace {
    bool there;
    uint64_t at;
    uint32_t first, c, h, w;
    uint32_t own_c; /* channels of the tensor itself */
} EmitPlace;

/* A size that was chosen for a layer. */
typedef struct EmitChosen {
    const char *name;
    int64_t value;
} EmitChosen;

typedef struct EmitLayer {
    NodeId node;
    const char *way;   /* of the hwspec; NULL: no instructions, and */
    const char *why;   /* NULL: nothing to do; else why the host runs it */
    uint32_t first, n; /* instructions */
    uint32_t n_chosen;
    const EmitChosen *chosen;
} EmitLayer;

typedef struct Emitted {
    const Graph *graph;
    const Program *program;
    const EmitLayer *layer; /* by node of the graph */
    const EmitPlace *place; /* by tensor */
    const Layout *layout;   /* of the backing memory */
    const HwSpec *spec;
    uint8_t *image;     /* the backing memory before: constants */
    uint64_t bytes;     /* of it that are used */
    uint64_t constants; /* bytes of these */
} Emitted;

/* Of a graph behind the passes. NULL after errors; `*no_fit`: for lack of
 * memory. */
const Emitted *wordgen_network(Arena *arena, Diag *diag, const HwSpec *spec,
                               const Graph *graph, bool *no_fit);

/* Codes in the tensor's order to and from the backing memory. */
void wordgen_store(const Emitted *emitted, TensorId tensor, const float *codes,
                   uint8_t *memory);
void wordgen_load(const Emitted *emitted, TensorId tensor,
                  const uint8_t *memory, float *codes);

#endif
