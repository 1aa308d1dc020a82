/* filegen.h - a network as a file of a machine's own runtime.
 *
 * Graph -> Program: each layer becomes nodes of the machine's container
 * (hwspec/program.h), the engine's where it runs them, else the processor's.
 * Numbers of the arithmetic (multipliers, shifts, segments) are found from the
 * stages that the hwspec says; addresses come last, by live ranges. What a row
 * cannot say is refused, with the layer's name.
 *
 * Codes in files have no sign: a code of int8 is its value + 128.
 */
#ifndef FILEGEN_FILEGEN_H
#define FILEGEN_FILEGEN_H

#include "graph/graph.h"
#include "hwspec/program.h"

/* What placing found, by memory of the hwspec. */
typedef struct PlacedMemory {
    uint64_t height;    /* bytes up to the last that is used */
    uint64_t live_peak; /* most bytes alive at one node: no order of the same
                         * nodes needs less */
    uint32_t at;        /* that node */
} PlacedMemory;

/* Gives all ranges and volumes of the program new addresses, by who reads what
 * whom wrote. Those that lie beside each other, as some node reads them, stay
 * so. False, with an error at the node, if it reads bytes that nobody wrote, or
 * if a memory is too small; `*too_small` (if not NULL) is its index then.
 * `out`: n_memories of them. */
bool program_place(Arena *arena, Diag *diag, Program *program,
                   PlacedMemory *out, uint32_t *too_small);

/* A piece of a tensor that a node of the file writes, as codes: channels
 * [first, first + n) of its c, or all of its elements (n = 0). */
typedef struct FilePiece {
    TensorId tensor; /* NO_TENSOR: of no tensor alone */
    uint32_t first, n;
} FilePiece;

/* How the machine computes a layer; filegen/numbers.h. */
typedef struct FileLayer FileLayer;

typedef struct FileGen {
    const Program *program;
    const Graph *graph;
    const FilePiece *piece;   /* by node of the file */
    const FileLayer *layer;   /* by node of the graph */
    const PlacedMemory *used; /* by memory */
    uint32_t on_engine;       /* layers that engines run */
    uint32_t host_convs;      /* convolutions that the processor runs */
    uint32_t spilled; /* volumes that left active memory and came back */
} FileGen;

/* Has the machine what files need: a container, and memories of the roles
 * active, backing and constants? */
bool filegen_can(const HwSpec *spec);

/* Of a graph behind the passes. NULL after errors; `*no_fit`: for lack of
 * memory. */
const FileGen *filegen_run(Arena *arena, Diag *diag, const HwSpec *spec,
                           const Graph *graph, bool *no_fit);

/* Codes of all tensors as the machine's arithmetic makes them, from codes of
 * the inputs: by the graph and the numbers of the layers alone. NULL for what
 * is not computed. `input[i]`: bytes as the file's input i. */
typedef struct FileValues {
    const uint8_t *const *code; /* by tensor */
    const float *const *real;
} FileValues;
FileValues filegen_evaluate(Arena *arena, const FileGen *file,
                            uint32_t n_inputs, const uint8_t *const *input);

#endif
