/* program.h - runs a machine's file and judges it.
 *
 * Input: a Program (hwspec/program.h) and the bytes of its inputs. Output: what
 * each node wrote, as a checksum, the outputs, and what is wrong. The machine's
 * arithmetic, layouts and memories are those of the hwspec; operators are known
 * by name, machines are not.
 *
 * Meanings that nodes are run by stand in docs/hwspec.md, "Running a file".
 *
 * Memories are held byte by byte: who wrote each, and as which element. Bytes
 * that nobody wrote are 0, and reading them is a fault, as are: what lies
 * outside of a memory, a result over an operand of its node, a volume read
 * otherwise than it was written, and bytes that another node has overwritten.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "hwspec/program.h"

typedef struct ProgramBytes {
    const uint8_t *at;
    uint64_t n;
} ProgramBytes;

typedef struct ProgramStep {
    const char *row;    /* of the hwspec: "KPU" */
    const char *result; /* "1x16x120x160", or "20640 bytes at 0 of main" */
    uint32_t crc; /* of volumes of engines: of their codes, image by image in
                   * the order c, h, w; else of the bytes of the range */
    bool ran;     /* false: it has faults that left nothing to compute */
    bool priced;
    double seconds; /* where it has prices */
} ProgramStep;

typedef struct ProgramOutput {
    ProgramBytes bytes;
    bool reals; /* floats of 32 bits, else codes */
} ProgramOutput;

typedef struct ProgramResult {
    uint32_t n_steps;
    const ProgramStep *step;
    uint32_t n_outputs;
    const ProgramOutput *output;
    uint32_t n_faults;        /* all of them */
    const char *const *fault; /* the first PROGRAM_FAULTS */
    uint32_t n_priced;        /* nodes */
    double seconds;           /* of all of them */
    uint32_t n_memories;
    const uint64_t *touched; /* by memory of the hwspec: bytes up to the last
                              * one that was written or read */
} ProgramResult;

enum { PROGRAM_FAULTS = 64 };

/* What input `i` is: elements, bytes of each, and whether they are reals. */
typedef struct ProgramInput {
    uint32_t n, c, h, w;
    bool reals;
} ProgramInput;
uint32_t program_inputs(const Program *program);
ProgramInput program_input(const Program *program, uint32_t i);

/* Runs all nodes. `input` by input: elements in the order n, c, h, w, floats as
 * little endian. NULL, with errors, if the inputs do not fit. */
const ProgramResult *program_run(Arena *arena, Diag *diag,
                                 const Program *program, uint32_t n_inputs,
                                 const ProgramBytes *input);

/* A file whose instructions stand in queues (`issue`), run by tokens alone: no
 * value is computed. */
typedef struct ProgramReplay {
    uint32_t nodes[PROG_QUEUES];               /* by queue */
    uint32_t tokens[PROG_QUEUES][PROG_QUEUES]; /* taken: from, to */
    uint32_t n_faults;        /* deadlocks, tokens that are left, races */
    const char *const *fault; /* the first PROGRAM_FAULTS */
} ProgramReplay;
#define PROGRAM_COMPARED UINT64_C(1 << 28) /* pairs of touches, at most */
/* NULL after an error: a touch that has no value. */
const ProgramReplay *program_replay(Arena *arena, Diag *diag,
                                    const Program *program);

#endif
