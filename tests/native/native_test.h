/* native_test.h - kernels run by themselves; to be included once. */
#ifndef TESTS_NATIVE_NATIVE_TEST_H
#define TESTS_NATIVE_NATIVE_TEST_H

#include "native/maker.h"
#include "native/native.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const Quant real_numbers = {QUANT_NONE, 0, 0, QUANT_UP};

typedef struct Bench {
    Arena *arena;
    Diag *diag;
    const NativeBackend *backend;
} Bench;

/* Without LLVM there is nothing to test: the test is skipped. */
static inline Bench bench_open(void) {
    Bench b = {.arena = arena_new("test")};
    b.diag = diag_new(b.arena);
    if (!native_built())
        skip();
    b.backend = native_load(b.diag);
    diag_print(b.diag, stderr);
    assert_non_null(b.backend);
    return b;
}

static inline void bench_close(Bench *b) {
    arena_free(b->arena);
}

/* Runs one kernel on this computer; constants as the kernel has them. */
static inline void bench_run(Bench *b, const Kernel *kernel,
                             const Const *constant, const float *const *in,
                             float *const *out) {
    assert_null(b->backend->refuse(kernel));
    NativeTarget own = {0};
    Maker *maker = maker_new(b->arena, "test", &own);
    uint32_t n = kernel->n_in + kernel->n_out + kernel->n_constants, at = 0;
    NativePointer *pointer = ARENA_ARRAY(b->arena, NativePointer, n);
    for (uint32_t i = 0; i < kernel->n_in; i++)
        pointer[at++] = (NativePointer){.base = NATIVE_IN, .index = i};
    for (uint32_t i = 0; i < kernel->n_out; i++)
        pointer[at++] = (NativePointer){.base = NATIVE_OUT, .index = i};
    for (uint32_t i = 0; i < kernel->n_constants; i++)
        pointer[at++] = maker_packed(maker, kernel, i, &constant[i], 0);
    NativeCall call = {.kernel = maker_kernel(maker, kernel),
                       .n = n,
                       .pieces = 1,
                       .pointer = pointer};
    NativeFunction function = {.name = "run",
                               .n_in = kernel->n_in,
                               .n_out = kernel->n_out,
                               .n_calls = 1,
                               .images = 1,
                               .call = &call};
    maker_function(maker, &function);
    const NativeProgram *program = maker_program(maker);
    NativeEntry *const *entry;
    NativeCode *code = b->backend->load(b->arena, b->diag, program, &entry);
    diag_print(b->diag, stderr);
    assert_non_null(code);
    entry[0](in, out, NULL, program->weights);
    b->backend->unload(code);
}

#endif
