/* ops.h - one function an operator: what it checks, what code it emits.
 *
 * Input: a kernel whose shapes and attributes may come from anywhere; an
 * operator's `check` tells whether they fit together, and the code is only
 * asked for if they do. Pointers do not overlap. Output: code that reads and
 * writes nothing outside of its operands and constants.
 */
#ifndef NATIVE_LLVM_OPS_H
#define NATIVE_LLVM_OPS_H

#include "native/llvm/act.h"

/* A kernel and the pointers to its operands, as arguments of the function. */
typedef struct Emit {
    Code *c;
    const Kernel *k;
    Epilogue act;
    const Val *in, *out, *constant;
    uint32_t lanes; /* elements at once, of channels that follow each other */
} Emit;

typedef bool OpCheck(const Kernel *kernel);
typedef void OpEmit(const Emit *e);

typedef struct OpRow {
    const char *name;
    uint32_t n_in; /* operands that it needs at least */
    OpCheck *check;
    OpEmit *emit;
} OpRow;
/* NULL name at the end. */
extern const OpRow ops_window[], ops_point[], ops_move[], ops_tensor[],
    ops_tokens[];
/* Those of the rules "sums" and "means". */
extern const OpRow ops_codes[];
/* NULL: there is none for it. */
const OpRow *op_of(const Kernel *kernel);

/* ---- constants ---- */

/* NULL: the kernel has none of that role. */
Val emit_constant(const Emit *e, const char *role);
/* Does the kernel have the constant, of `n` values? */
bool has_constant(const Kernel *kernel, const char *role, uint64_t n);
/* ... or none of that role at all? */
bool fits_constant(const Kernel *kernel, const char *role, uint64_t n);

/* ---- operands ---- */

typedef struct Extent {
    uint32_t c, h, w;
} Extent;
Extent operand_extent(const Operand *operand);

/* A tensor as images x channels x plane: axis 0, axis 1, all others. */
typedef struct Channels {
    uint64_t images, n, plane;
} Channels;
Channels operand_channels(const Operand *operand);

/* In the order of the shape, without gaps. */
bool operand_is_dense(const Operand *operand);

/* Where element (c, h, w) is. */
Val operand_at(Code *c, const Operand *operand, Val channel, Val row,
               Val column);
/* Where element `i` in the order of the shape is. */
Val operand_linear(Code *c, const Operand *operand, Val i);

/* Loops over all elements of a shape, image by image, channel by channel:
 * `channel` counts them as constants do, `i` is the place in the order of the
 * shape. */
typedef struct Walk {
    Loop image, line, plane;
    Val channel, i;
} Walk;
void walk_open(Code *c, Walk *walk, const Channels *size);
void walk_close(Code *c, Walk *walk);

/* Loops over the axes of a shape, the last innermost. */
typedef struct Axes {
    uint32_t n;
    Loop loop[SHAPE_MAX_RANK];
    Val i[SHAPE_MAX_RANK];
} Axes;
void axes_open(Code *c, Axes *axes, const Shape *shape);
void axes_close(Code *c, Axes *axes);
/* Where the element at these indices is, one an axis of the operand. */
Val operand_index(Code *c, const Operand *operand, const Val *i);

/* A tensor along one axis: outer x n x inner elements. */
typedef struct Along {
    uint64_t outer, n, inner;
} Along;
Along along(const Shape *shape, uint32_t axis);

/* What a constant has of a channel, or of `lanes` of them from it on. */
Val emit_channel(const Emit *e, Val constant, Val channel);
/* x through the kernel's activation, in a channel of its constants. */
Val emit_act(const Emit *e, Val x, Val channel);

/* ---- sums ---- */

/* A sum that keeps what rounding loses (Kahan, Neumaier). */
typedef struct Sum {
    Val total, lost; /* variables */
} Sum;
Sum sum_open(Code *c);
void sum_add(Code *c, const Sum *sum, Val x);
Val sum_value(Code *c, const Sum *sum);

#endif
