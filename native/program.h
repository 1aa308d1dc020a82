/* program.h - native code to be made, as data: kernels and who calls them.
 *
 * A Kernel is one operator on operands of known shapes and places; it knows
 * neither graph nor plan. A Program is a list of distinct kernels and of
 * functions; a function calls kernels in order on pointers that are known
 * relative to its inputs, outputs, workspace and weights. From a listing's
 * image (native.h: native_host_program) or a plan to a Program is plain C; from
 * a Program to machine code is the back end's part (native/llvm).
 *
 * Units: elements of 4 bytes (float) unless said otherwise.
 */
#ifndef NATIVE_PROGRAM_H
#define NATIVE_PROGRAM_H

#include "base/const.h"
#include "base/diag.h"

/* A tensor as C x H x W (shape_chw). Element (c, h, w) is at
 * c / block * c_step + h * h_step + w * w_step + c % block. */
typedef struct Operand {
    Shape shape;
    uint32_t block; /* channels side by side; 1: none */
    uint64_t c_step, h_step, w_step;
} Operand;

/* In the order of the shape. */
Operand operand_dense(const Shape *shape);

typedef struct KernelConst {
    const char *role; /* "weight", "bias"...: as in graph.h */
    Shape shape;
} KernelConst;

typedef struct Kernel {
    const char *kind; /* operator: "softmax" */
    uint32_t n_in, n_out, n_constants, n_attrs;
    const Operand *in, *out;
    const KernelConst *constant;
    const AttrPair *attr;
    int32_t over; /* operand in whose place the first result is written, which
                   * only element by element is safe; -1: none */
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
/* How the kernel wants the constants of a convolution, by where its operands
 * lie: in channel blocks of B = in[0].block = out[0].block.
 *   BLOCKS: weight [output block][input block][kh][kw][input in its block][B],
 *   the last input block as short as it is;
 *   DEPTHWISE: weight [block][kh][kw][B].
 * The last output block, of weights, biases and slopes, is filled with zeros.
 */
typedef enum KernelPacking {
    PACKED_NOT,
    PACKED_BLOCKS,
    PACKED_DEPTHWISE
} KernelPacking;
KernelPacking kernel_packing(const Kernel *kernel);
/* Values of constant `index` as the kernel wants them. */
uint64_t kernel_packed_count(const Kernel *kernel, uint32_t index);
void kernel_pack(const Kernel *kernel, uint32_t index, const float *from,
                 float *to);

/* Two kernels with the same text are the same code. */
const char *kernel_text(Arena *arena, const Kernel *kernel);

typedef enum NativeBase {
    NATIVE_IN,  /* input `index` of the function */
    NATIVE_OUT, /* output `index` */
    NATIVE_WORKSPACE,
    NATIVE_WEIGHTS
} NativeBase;

typedef struct NativePointer {
    NativeBase base;
    uint32_t index;
    uint64_t offset; /* bytes */
} NativePointer;

/* Pointers to inputs, outputs, constants, in the kernel's order. */
typedef struct NativeCall {
    uint32_t kernel;
    uint32_t n;
    const NativePointer *pointer;
} NativeCall;

typedef struct NativeFunction {
    const char *name; /* a C identifier */
    uint32_t n_in, n_out, n_calls;
    const NativeCall *call;
} NativeFunction;

/* No triple: this computer's, with all that it can do. An empty one: its, and
 * nothing that only some of its kind can do. No cpu or features: any. */
typedef struct NativeTarget {
    const char *triple, *cpu, *features;
    uint32_t lanes; /* floats of a vector register; 1: no vectors; 0: what the
                     * others imply */
} NativeTarget;

typedef struct NativeProgram {
    const char *name; /* a C identifier; its weights are NAME_weights */
    NativeTarget target;
    uint32_t n_kernels, n_functions;
    const Kernel *kernel;
    const NativeFunction *function;
    const uint8_t *weights; /* floats as in this computer's memory */
    uint64_t weights_bytes;
    bool weights_apart; /* a bundle's; the last pointer of its IO */
} NativeProgram;

#endif
