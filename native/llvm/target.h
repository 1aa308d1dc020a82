/* target.h - machines that LLVM knows, and what it makes of a module. */
#ifndef NATIVE_LLVM_TARGET_H
#define NATIVE_LLVM_TARGET_H

#include "native/program.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

typedef struct Machine {
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef layout;
    char *triple;              /* LLVM's */
    uint32_t lanes, registers; /* of vectors */
    /* of x86: sums of 32 bits that an instruction makes of pairs of products of
     * 16, and whether one makes them of four products of bytes */
    uint32_t pairs;
    bool dots;
} Machine;

/* False with an error if LLVM has no such target. */
bool machine_open(Diag *diag, const NativeTarget *target, Machine *out);
void machine_close(Machine *machine);

/* Optimises the module in place. */
void machine_optimise(const Machine *machine, LLVMModuleRef module);
/* RISC-V's convention for floats is part of the file's header, which LLVM fills
 * by it only from version 15 on. Our functions pass no floats, so that each of
 * them is kept: says the one of the target's registers. */
void object_name_abi(const NativeTarget *target, uint8_t *object, size_t len);
/* The object file; to be given back with LLVMDisposeMemoryBuffer. NULL with an
 * error. */
LLVMMemoryBufferRef machine_object(Diag *diag, const Machine *machine,
                                   LLVMModuleRef module);

#endif
