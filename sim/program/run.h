/* run.h - the inside of program.h: memories, operands, layers. */
#ifndef SIM_PROGRAM_RUN_H
#define SIM_PROGRAM_RUN_H

#include "base/vec.h"
#include "sim/program.h"

/* Who wrote cells, and as what. */
typedef struct BankWriter {
    const char *name; /* "node 3 (PAD)", "input 0" */
    bool shaped;      /* as a volume of an engine, else as bytes */
    uint64_t start, n;
    uint32_t images; /* volumes by the memory's layout from `start` on; 0: the
                      * n bytes there */
    Volume volume;
} BankWriter;

/* A memory. */
typedef struct Bank {
    const HwMemory *memory;
    uint64_t size; /* bytes that the file says it uses, or that there are */
    uint64_t touched;
    uint8_t *byte;     /* NULL before the first use, as the two others */
    uint32_t *writer;  /* 1 + index in ProgramRun.writer; 0: never written */
    uint32_t *element; /* shaped: (c * h + row) * w + column in its volume */
} Bank;

typedef struct ProgramRun {
    Arena *arena; /* of the result */
    Arena *work;  /* of a node */
    const Program *program;
    const HwSpec *spec;
    uint32_t node; /* that runs */
    Bank *bank;    /* by memory */
    VEC(BankWriter) writers;
    VEC(const char *) faults;
    uint32_t n_faults;
} ProgramRun;

#if defined(__GNUC__)
#define FAULT_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define FAULT_FORMAT
#endif
/* Reports what is wrong with the node that runs; false. */
bool prog_fault(ProgramRun *run, const char *format, ...) FAULT_FORMAT;

/* ---- banks.c: bytes of memories ---- */

/* Bytes of a memory in the order of their elements. */
typedef struct Cells {
    const char *what; /* "in": for messages */
    uint32_t bank;
    uint64_t start, end; /* that they lie in */
    uint64_t n;
    const uint32_t *at; /* NULL: start, start + 1... */
    uint32_t images;    /* at != NULL: of this volume */
    Volume volume;
    bool shaped; /* its rows and columns count */
} Cells;

/* False, with a fault, if they leave the memory. */
bool cells_flat(ProgramRun *run, const char *what, uint32_t bank,
                uint64_t start, uint64_t n, Cells *out);
/* Images one behind the other, each a volume by the memory's layout. */
bool cells_volume(ProgramRun *run, const char *what, uint32_t bank,
                  uint64_t start, uint32_t images, const Volume *volume,
                  Cells *out);
/* Of an image. */
uint64_t cells_bytes(const ProgramRun *run, uint32_t bank,
                     const Volume *volume);
/* Faults of reading are told once a kind; the values are there anyway. */
uint8_t *cells_read(ProgramRun *run, const Cells *cells);
void cells_write(ProgramRun *run, const Cells *cells, const char *writer,
                 const uint8_t *from);
/* A fault if the result lies over the operand. */
void cells_apart(ProgramRun *run, const Cells *in, const Cells *out);
/* Bytes from start on as they are. */
uint32_t cells_crc(const ProgramRun *run, uint32_t bank, uint64_t start,
                   uint64_t n);

/* ---- operand.c: what nodes say of their operands ---- */

/* A range of a memory, and the shape of what lies there. */
typedef struct Operand {
    const char *what;
    uint32_t bank;
    bool reals;
    uint64_t start, size; /* bytes */
} Operand;

/* `NAME.memory`, `.type`, `.start`, `.size`; with `i` of vectors of these.
 * False, with a fault, where there are none or they leave their memory. */
bool operand_of(ProgramRun *run, const ProgScope *scope, const char *name,
                Operand *out);
bool operand_at(ProgramRun *run, const ProgScope *scope, const char *name,
                uint32_t i, Operand *out);
static inline uint32_t operand_unit(const Operand *o) {
    return o->reals ? 4 : 1;
}
/* Elements that it has room for. */
static inline uint64_t operand_count(const Operand *o) {
    return o->size / operand_unit(o);
}

/* n, c, h, w. */
typedef struct Dims {
    uint32_t at[4];
} Dims;
static inline uint64_t dims_count(const Dims *d) {
    return (uint64_t)d->at[0] * d->at[1] * d->at[2] * d->at[3];
}
/* `NAME.n` to `NAME.w`, each 1 to 2^16. */
bool dims_of(ProgramRun *run, const char *name, Dims *out);
/* A fault unless the operand has just room for them. */
bool dims_fill(ProgramRun *run, const Dims *dims, const Operand *operand);

/* A meaning of the node that runs, in lo..hi; else a fault. */
bool node_num(ProgramRun *run, const char *name, int64_t lo, int64_t hi,
              int64_t *out);
/* The same; `absent` where the row has none. */
bool node_opt(ProgramRun *run, const char *name, int64_t lo, int64_t hi,
              int64_t absent, int64_t *out);
float node_real(ProgramRun *run, const char *name);
/* `n` elements of a vector; a fault and NULL if there are others. */
const int64_t *node_nums(ProgramRun *run, const char *name, uint64_t n);
const float *node_reals(ProgramRun *run, const char *name, uint64_t n);
/* The word that a meaning stands for; "" if there is none. */
const char *node_word(ProgramRun *run, const char *name);
const ProgScope *node_scope(const ProgramRun *run);

/* The values of an operand that lies in bytes; reals: NULL, with a fault, if
 * it has codes. */
uint8_t *operand_bytes(ProgramRun *run, const Operand *o);
float *operand_reals(ProgramRun *run, const Operand *o);
bool result_write(ProgramRun *run, const Operand *o, const void *from);

/* ---- layers ---- */

/* What a node left: a volume's codes, or a range. */
typedef struct Made {
    const char *text;
    uint32_t crc;
} Made;

/* engine.c: convolution, requantisation and pool in one. */
bool engine_conv(ProgramRun *run, Made *made);
/* pool.c: of one channel's codes; h x w are those behind the convolution. */
typedef struct PoolKind {
    const char *kind; /* max, mean, sample */
    const char *edge; /* inside, repeat, ignore */
    uint32_t kernel[2], stride[2], phase;
} PoolKind;
/* Of the rows and columns behind it: how many there are. */
uint32_t pool_extent(const PoolKind *pool, int axis, uint32_t extent);
void pool_codes(const PoolKind *pool, uint32_t h, uint32_t w, const int32_t *in,
                int32_t *out);

/* host*.c: by the name of the operator; NULL at the end. */
typedef bool ProgramHost(ProgramRun *run);
typedef struct ProgramHostRow {
    const char *op;
    ProgramHost *run;
} ProgramHostRow;
extern const ProgramHostRow prog_moves[], prog_codes[], prog_reals[];

#endif
