/* emit.h - from a program to a module of LLVM. */
#ifndef NATIVE_LLVM_EMIT_H
#define NATIVE_LLVM_EMIT_H

#include "native/llvm/ops.h"
#include "native/llvm/target.h"

/* How a function of the program is called. */
typedef enum EntryStyle {
    ENTRY_ARRAYS, /* entry_I(in, out, workspace, weights): NativeEntry */
    ENTRY_ARGS,   /* NAME(in0, ..., out0, ...); the weights are its own */
    ENTRY_BUNDLE  /* int NAME(io, workspace); the same */
} EntryStyle;

/* Why no code can be made for the kernel; NULL: it can. */
const char *emit_refuse(const Kernel *kernel);

LLVMModuleRef emit_program(Arena *arena, LLVMContextRef context,
                           const Machine *machine, const NativeProgram *program,
                           EntryStyle style);

/* The weights as the target has numbers in memory. */
const char *emit_weight_bytes(Arena *arena, const Machine *machine,
                              const NativeProgram *program);

#endif
