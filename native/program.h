/* program.h - native code to be made, as data: kernels and who calls them.
 *
 * A Kernel is one operator on operands of known shapes and places; it knows
 * neither graph nor plan. A Program is a list of distinct kernels and of
 * functions; a function calls kernels in order on pointers that are known
 * relative to its inputs, outputs, workspace and weights. From a listing's
 * image (native.h: native_host_program) or a plan to a Program is plain C; from
 * a Program to machine code is the back end's part (native/llvm).
 *
 * A convolution whose volumes lie in channel blocks may have a second operand,
 * which is added to its result before the activation.
 *
 * Elements are floats, or codes of quantised tensors (base/quant.h). A kernel
 * on codes has the numbers of its rule, and constants that its node has not:
 *   "factor", "shift"  of rule SUMS, by output channel; where halves go to
 *                      even, "factor" is a float, and there are no shifts;
 *   "factor_below", "shift_below"  the same of sums below 0 where they differ;
 *   "tap_sum"          [channel][tap] weights summed over input channels, where
 *                      the packing is QUADS;
 *   "table"            of rule TABLE: the result of each code, from the least;
 *   "real0", "real1"   of rule REALS: the number that each code of an input of
 *                      8 bits stands for, from the least code on;
 *   "code"             the least number that becomes each code of the result.
 *
 * Units: elements unless said otherwise.
 */
#ifndef NATIVE_PROGRAM_H
#define NATIVE_PROGRAM_H

#include "base/const.h"
#include "base/diag.h"
#include "base/quant.h"

/* A tensor as C x H x W (shape_chw). Element (c, h, w) is at
 * c / block * c_step + h * h_step + w * w_step + c % block. */
typedef struct Operand {
    Shape shape;
    uint32_t block; /* channels side by side; 1: none */
    uint64_t c_step, h_step, w_step;
    uint32_t cell; /* bytes from an element to the next: its own or more */
    Quant quant;   /* of codes */
} Operand;

/* In the order of the shape, without gaps. */
Operand operand_dense(const Shape *shape, const Quant *quant);
/* Bytes of an element. */
uint32_t operand_size(const Operand *operand);
/* Do its channels fill vectors, one image of rows without gaps between pixels?
 * What is behind the last channel in its block belongs to it. */
bool operand_in_blocks(const Operand *operand);
/* Of one shape, do both lie alike? */
bool operand_alike(const Operand *a, const Operand *b);

typedef struct KernelConst {
    const char *role; /* "weight", "bias"...: as in graph.h, or see above */
    Shape shape;
    ConstKind kind; /* how its values are stored: F32, or whole numbers */
} KernelConst;

typedef struct Kernel {
    const char *kind; /* operator: "softmax" */
    uint32_t n_in, n_out, n_constants, n_attrs;
    const Operand *in, *out;
    const KernelConst *constant;
    const AttrPair *attr;
    const QuantLayer *quant; /* NULL: neither reads nor writes codes */
    int32_t over;  /* operand in whose place the first result is written, which
                    * only element by element is safe; -1: none */
    bool overlaps; /* the result may lie over what kernel_ahead lets it of the
                    * operand */
} Kernel;

const AttrPair *kernel_attr(const Kernel *kernel, const char *name);
double kernel_number(const Kernel *kernel, const char *name, uint32_t at,
                     double absent);
/* The same as a whole number in 0..2^24. */
uint32_t kernel_count(const Kernel *kernel, const char *name, uint32_t at,
                      uint32_t absent);
/* Is the attribute this word? */
bool kernel_is(const Kernel *kernel, const char *name, const char *word);
/* Its place among the constants; -1: it has none of that role. */
int32_t kernel_constant(const Kernel *kernel, const char *role);
/* How the kernel wants the constants, by where its operands lie: in channel
 * blocks of B = in[0].block = out[0].block. Of convolutions
 *   BLOCKS: weight [output block][input block][kh][kw][input in its block][B],
 *   the last input block as short as it is;
 *   of several groups, the input blocks are those of kernel_span;
 *   DEPTHWISE: weight [block][kh][kw][B];
 *   QUADS: of codes, weight [output block][input block][kh][kw][quad][B][4],
 *   the input channels of a block in fours, the last one filled with zeros.
 * CHANNELS: of what takes a block at once, each result of its own channel.
 * What there is of each channel is [block][B], a tap_sum [block][kh][kw][B].
 * The last output block is filled with zeros.
 */
typedef enum KernelPacking {
    PACKED_NOT,
    PACKED_BLOCKS,
    PACKED_DEPTHWISE,
    PACKED_QUADS,
    PACKED_CHANNELS
} KernelPacking;
KernelPacking kernel_packing(const Kernel *kernel);
/* What a block of output channels is made of: so many input channels, from
 * block o / every * step on; of one group, all. Where groups are parts of
 * blocks, weights between different ones are zeros. No channels: a block is
 * made of parts of blocks. */
typedef struct KernelSpan {
    uint32_t channels;
    uint32_t every, step;
} KernelSpan;
KernelSpan kernel_span(const Kernel *kernel);
/* Values of constant `index` as the kernel wants them. */
uint64_t kernel_packed_count(const Kernel *kernel, uint32_t index);
void kernel_pack(const Kernel *kernel, uint32_t index, const double *from,
                 double *to);
/* Is the upper half of each product all that its scales leave? */
bool quant_shifts_high(const QuantLayer *quant);
/* Are sums on its codes of 64 bits? Else of 32. */
bool kernel_is_wide(const Kernel *kernel);
/* Does it compute on codes as whole numbers? */
bool kernel_on_codes(const Kernel *kernel);

/* May a kernel of this kind be told that it `overlaps`? Its code then goes
 * over block after block of channels, row after row, and has done with the rows
 * above a window before it writes the next row: if the result starts at least
 * *bytes before the operand (they may be negative), nothing is overwritten
 * before it was read. */
bool kernel_ahead(const Kernel *kernel, int64_t *bytes);

/* Two kernels with the same text are the same code. */
const char *kernel_text(Arena *arena, const Kernel *kernel);

typedef enum NativeBase {
    NATIVE_IN,   /* input `index` of the function */
    NATIVE_OUT,  /* output `index` */
    NATIVE_ROOM, /* room `index` */
    NATIVE_WEIGHTS
} NativeBase;

typedef struct NativePointer {
    NativeBase base;
    uint32_t index;
    uint64_t offset; /* bytes */
    uint64_t image;  /* bytes from one image to the next */
    uint64_t piece;  /* bytes from one piece to the next */
} NativePointer;

/* Constants that are brought from `offset` of the weights. */
typedef struct NativeLoad {
    uint64_t offset, bytes;
    uint64_t piece; /* bytes from one piece to the next */
    NativePointer to;
} NativeLoad;

/* For each piece: what is loaded, then the kernel for each image. Pointers to
 * inputs, outputs, constants, in the kernel's order; none: no kernel. */
typedef struct NativeCall {
    uint32_t kernel;
    uint32_t n, n_loads, pieces;
    bool joined; /* each of its pieces is followed by one of the next call's */
    const NativePointer *pointer;
    const NativeLoad *load;
} NativeCall;

/* A room starts behind others: at least n * image + fixed bytes behind the
 * start of `room`, n being the number of images. */
typedef struct NativeAfter {
    uint32_t room;
    int64_t image, fixed;
} NativeAfter;

/* A part of a pool: `offset` bytes from its start, or, where the number of
 * images is only known as it runs, as low as `after` lets it. */
typedef struct NativeRoom {
    uint32_t pool;
    uint64_t offset;
    uint32_t n_after;
    const NativeAfter *after; /* rooms of smaller offset */
} NativeRoom;

typedef struct NativeFunction {
    const char *name; /* a C identifier */
    uint32_t n_in, n_out, n_pools, n_rooms, n_calls;
    uint32_t images; /* at most; 1: there is one */
    const NativeRoom *room;
    const NativeCall *call;
} NativeFunction;

/* No triple: this computer's, with all that it can do. An empty one: its, and
 * nothing that only some of its kind can do. No cpu or features: any. */
typedef struct NativeTarget {
    const char *triple, *cpu, *features;
    uint32_t lanes; /* floats of a vector register; 1: no vectors; 0: what the
                     * others imply */
} NativeTarget;

typedef enum NativeWeights {
    WEIGHTS_INSIDE, /* of the object file */
    WEIGHTS_APART,  /* where the caller says */
    WEIGHTS_LOADED, /* brought by a function of the caller */
    WEIGHTS_PLACED  /* in a room, put there by the caller */
} NativeWeights;

/* Constants of one size, from an offset to that of the next run. */
typedef struct NativeRun {
    uint64_t offset;
    uint32_t size; /* bytes of a value */
} NativeRun;

typedef struct NativeProgram {
    const char *name; /* a C identifier; its weights are NAME_weights */
    NativeTarget target;
    uint32_t n_kernels, n_functions;
    const Kernel *kernel;
    const NativeFunction *function;
    const uint8_t *weights; /* values as in this computer's memory */
    uint64_t weights_bytes;
    uint32_t n_runs;
    const NativeRun *run;  /* of the weights */
    NativeWeights where;   /* other than INSIDE: a bundle's */
    uint32_t weights_room; /* PLACED: of its one function */
} NativeProgram;

#endif
