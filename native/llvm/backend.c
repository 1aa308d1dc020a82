/* backend.c - what the module exports: object files and code in memory; see
 * native.h. */
#include "native/llvm/emit.h"
#include "native/native.h"

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm/Config/llvm-config.h>
#include <string.h>

/* Optimised code of the program; NULL with an error. */
static LLVMMemoryBufferRef build(Arena *arena, Diag *diag,
                                 const NativeProgram *program,
                                 EntryStyle style) {
    Machine machine;
    if (!machine_open(diag, &program->target, &machine))
        return NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module =
        emit_program(arena, context, &machine, program, style);
    machine_optimise(&machine, module);
    LLVMMemoryBufferRef object = machine_object(diag, &machine, module);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    machine_close(&machine);
    return object;
}

static bool make_object(Arena *arena, Diag *diag, const NativeProgram *program,
                        bool bundle, const uint8_t **out, size_t *len) {
    LLVMMemoryBufferRef object =
        build(arena, diag, program, bundle ? ENTRY_BUNDLE : ENTRY_ARGS);
    if (!object)
        return false;
    *len = LLVMGetBufferSize(object);
    uint8_t *copy = ARENA_COPY(
        arena, uint8_t, (const uint8_t *)LLVMGetBufferStart(object), *len);
    LLVMDisposeMemoryBuffer(object);
    object_name_abi(&program->target, copy, *len);
    *out = copy;
    return true;
}

static const uint8_t *make_weights(Arena *arena, Diag *diag,
                                   const NativeProgram *program) {
    Machine machine;
    if (!machine_open(diag, &program->target, &machine))
        return NULL;
    const char *bytes = emit_weight_bytes(arena, &machine, program);
    machine_close(&machine);
    return (const uint8_t *)bytes;
}

/* ---- in memory ---- */

struct NativeCode {
    Arena *arena;
    LLVMOrcLLJITRef jit;
};

static bool failed(Diag *diag, LLVMErrorRef error) {
    if (!error)
        return false;
    char *message = LLVMGetErrorMessage(error);
    diag_error(diag, (Loc){0}, "native code in memory: %s", message);
    LLVMDisposeErrorMessage(message);
    return true;
}

static bool find_entries(Diag *diag, Arena *arena, LLVMOrcLLJITRef jit,
                         uint32_t n, NativeEntry **entry) {
    for (uint32_t i = 0; i < n; i++) {
        LLVMOrcExecutorAddress address;
        const char *name = arena_printf(arena, "entry_%u", i);
        if (failed(diag, LLVMOrcLLJITLookup(jit, &address, name)))
            return false;
        uintptr_t place = (uintptr_t)address;
        memcpy(&entry[i], &place, sizeof place);
    }
    return true;
}

static void unload(NativeCode *code) {
    LLVMConsumeError(LLVMOrcDisposeLLJIT(code->jit));
    arena_free(code->arena);
}

static NativeCode *load(Arena *arena, Diag *diag, const NativeProgram *program,
                        NativeEntry *const **out) {
    LLVMMemoryBufferRef object = build(arena, diag, program, ENTRY_ARRAYS);
    if (!object)
        return NULL;
    Arena *own = arena_new("native code");
    NativeCode *code = ARENA_NEW(own, NativeCode);
    NativeEntry **entry = ARENA_ARRAY(own, NativeEntry *, program->n_functions);
    code->arena = own;
    if (failed(diag, LLVMOrcCreateLLJIT(&code->jit, NULL))) {
        LLVMDisposeMemoryBuffer(object);
        arena_free(own);
        return NULL;
    }
    LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(code->jit);
    if (failed(diag, LLVMOrcLLJITAddObjectFile(code->jit, library, object)) ||
        !find_entries(diag, own, code->jit, program->n_functions, entry)) {
        unload(code);
        return NULL;
    }
    *out = entry;
    return code;
}

const NativeBackend native_backend = {
    .version = LLVM_VERSION_STRING,
    .refuse = emit_refuse,
    .object = make_object,
    .weights = make_weights,
    .load = load,
    .unload = unload,
};
