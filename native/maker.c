/* maker.c - kernels, functions and constants of a program; see maker.h. */
#include "native/maker.h"

#include "base/map.h"
#include "base/vec.h"

enum { CACHE_LINE = 64 };

struct Maker {
    Arena *arena;
    NativeProgram program;
    Map *kernels; /* text -> index */
    VEC(Kernel) kernel;
    VEC(NativeFunction) function;
    VEC(Const) constant;
    VEC(uint64_t) offset; /* bytes: of each constant */
    uint64_t end;         /* bytes of constants so far */
};

Maker *maker_new(Arena *arena, const char *name, const NativeTarget *target) {
    Maker *m = ARENA_NEW(arena, Maker);
    m->arena = arena;
    m->program.name = name;
    m->program.target = *target;
    m->kernels = map_new(arena);
    return m;
}

NativePointer maker_constant(Maker *m, const Const *value) {
    uint64_t at = m->end;
    vec_push(m->arena, &m->constant, *value);
    vec_push(m->arena, &m->offset, at);
    m->end += shape_count(&value->shape) * sizeof(float);
    m->end += -m->end % CACHE_LINE;
    return (NativePointer){NATIVE_WEIGHTS, 0, at};
}

uint64_t maker_values(const Maker *m) {
    return m->end / sizeof(float);
}

uint32_t maker_kernel(Maker *m, const Kernel *kernel) {
    const char *text = kernel_text(m->arena, kernel);
    uint32_t known = map_get(m->kernels, text, UINT32_MAX);
    if (known != UINT32_MAX)
        return known;
    map_put(m->kernels, text, m->kernel.n);
    vec_push(m->arena, &m->kernel, *kernel);
    return m->kernel.n - 1;
}

void maker_function(Maker *m, const NativeFunction *function) {
    vec_push(m->arena, &m->function, *function);
}

static const uint8_t *read_constants(Maker *m) {
    uint8_t *bytes = arena_alloc(m->arena, m->end, CACHE_LINE);
    for (uint32_t i = 0; i < m->constant.n; i++)
        const_read(&m->constant.at[i],
                   (float *)(void *)(bytes + m->offset.at[i]));
    return bytes;
}

const NativeProgram *maker_program(Maker *m) {
    m->program.n_kernels = m->kernel.n;
    m->program.kernel = m->kernel.at;
    m->program.n_functions = m->function.n;
    m->program.function = m->function.at;
    m->program.weights = read_constants(m);
    m->program.weights_bytes = m->end;
    return &m->program;
}
