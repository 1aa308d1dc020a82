/* maker.h - putting a NativeProgram together. */
#ifndef NATIVE_MAKER_H
#define NATIVE_MAKER_H

#include "native/program.h"

typedef struct Maker Maker;

Maker *maker_new(Arena *arena, const char *name, const NativeTarget *target);
/* Where the constant will be among the weights, in bytes, its values stored as
 * `kind`. They are read once, by maker_program. */
NativePointer maker_constant(Maker *maker, const Const *value, ConstKind kind);
/* The same for constant `index` of a kernel, packed as that wants it: as many
 * slices of the value's first axis as the kernel knows, from `first` on. Value
 * and kernel stay alive until maker_program. */
NativePointer maker_packed(Maker *maker, const Kernel *kernel, uint32_t index,
                           const Const *value, uint32_t first);
/* The next constant starts behind so many bytes at least. */
uint64_t maker_end(const Maker *maker);
/* The kernel's index; equal ones are one. */
uint32_t maker_kernel(Maker *maker, const Kernel *kernel);
/* Bytes of a value. */
uint32_t maker_size(ConstKind kind);
/* Where the weights are; inside, if it is not said. room: where they are
 * placed. */
void maker_weights(Maker *maker, NativeWeights where, uint32_t room);
void maker_function(Maker *maker, const NativeFunction *function);
const NativeProgram *maker_program(Maker *maker);
/* Values as elements of the kind: floats, or whole numbers. */
void maker_store(ConstKind kind, const double *from, uint64_t n, void *to);

#endif
