/* codes.h - elements of operands, be they numbers or codes of numbers.
 *
 * Inside a kernel whose rule is one of whole numbers an element is its code, an
 * integer of 32 bits; in all others it is a float, which codes are turned into
 * when they are read, and back when they are written.
 */
#ifndef NATIVE_LLVM_CODES_H
#define NATIVE_LLVM_CODES_H

#include "native/llvm/ops.h"

/* Where all operands lie in blocks of channels of one size, and constants are
 * packed alike: the same, a block at once. Else as it is. */
Emit emit_lanes(const Emit *e);
/* A loop over the first channel of each of these. */
Val loop_lanes(const Emit *e, Loop *loop, uint64_t channels);

/* Element `at` of an operand, and those behind it. */
Val emit_get(const Emit *e, uint32_t operand, Val at);
/* x as element `at` of the first result: through the activation, in a channel
 * of its constants, or through what is last in the rules "moves", "adds" and
 * "product". */
void emit_put(const Emit *e, Val at, Val x, Val channel);
/* x as it is. */
void emit_set(const Emit *e, Val at, Val x);
/* A number as elements are; infinities are beyond all codes. */
Val emit_number(const Emit *e, double value);
Val emit_max(const Emit *e, Val a, Val b);
Val emit_min(const Emit *e, Val a, Val b);
/* Are there tables for what is to be turned? */
bool codes_have_tables(const Kernel *kernel);

/* ---- arithmetic on codes ---- */

/* A factor of 31 bits, or where halves go to even a float without a shift;
 * scalars or vectors of 32 bits. */
typedef struct Factor {
    Val factor, shift;
    bool high; /* shift is above 32 */
    bool even;
} Factor;
/* Of as many lanes as `like`. */
Factor codes_factor(const Emit *e, const QuantScale *scale, Val like);
/* [x] of graph/quant.h; of as many bits as x has, or 64. */
Val codes_scaled(Code *c, const Factor *factor, Val x);
/* [sum] of channel `channel`, or of `lanes` channels from value `channel` of
 * the packed constants on. */
Val codes_channel_scaled(const Emit *e, Val channel, uint32_t lanes, Val sum);
/* n codes side by side, from element `at` of the operand on, as narrow as they
 * are; of several each has a cell of the operand's, of which they are the
 * lowest bits. */
Val codes_load(Code *c, const Operand *operand, Val base, Val at, uint32_t n);
/* From integers of any width. */
void codes_store(Code *c, const Operand *operand, Val base, Val at, Val codes,
                 uint32_t n);
/* Does the kernel compute on codes with floats, halves to even? */
bool codes_even(const Kernel *kernel);
/* A scale as a float, of as many lanes as `like`. */
Val codes_float(Code *c, const QuantScale *scale, Val like);
/* A whole number as a float. */
Val codes_to_float(Code *c, Val x);
/* A float as a whole number, halves to even; far beyond all codes cut. */
Val codes_nearest(Code *c, Val x);
/* A result before its zero is added, as a code of 32 bits. */
Val codes_finish(const Emit *e, Val x);
/* As many bits as the kernel's sums have, 32 or 64. */
Val codes_sum(const Emit *e, Val x);
/* Code `at` of an operand less its zero. */
Val codes_get(const Emit *e, uint32_t operand, Val at);
/* Value `at` of a constant of whole numbers; of 32 bits. */
Val codes_constant(const Emit *e, const char *role, Val at);

#endif
