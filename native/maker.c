/* maker.c - kernels, functions and constants of a program; see maker.h. */
#include "native/maker.h"

#include "base/map.h"
#include "base/vec.h"

enum { CACHE_LINE = 64 };

/* A constant among the weights; kernel: who wants it packed, or NULL. */
typedef struct Weights {
    Const value;
    uint64_t offset; /* bytes */
    const Kernel *kernel;
    uint32_t index;
} Weights;

struct Maker {
    Arena *arena;
    NativeProgram program;
    Map *kernels; /* text -> index */
    VEC(Kernel) kernel;
    VEC(NativeFunction) function;
    VEC(Weights) weights;
    uint64_t end; /* bytes of constants so far */
};

Maker *maker_new(Arena *arena, const char *name, const NativeTarget *target) {
    Maker *m = ARENA_NEW(arena, Maker);
    m->arena = arena;
    m->program.name = name;
    m->program.target = *target;
    m->kernels = map_new(arena);
    return m;
}

static NativePointer add_weights(Maker *m, const Weights *weights,
                                 uint64_t values) {
    vec_push(m->arena, &m->weights, *weights);
    m->end += values * sizeof(float);
    m->end += -m->end % CACHE_LINE;
    return (NativePointer){NATIVE_WEIGHTS, 0, weights->offset};
}

NativePointer maker_constant(Maker *m, const Const *value) {
    Weights weights = {.value = *value, .offset = m->end};
    return add_weights(m, &weights, shape_count(&value->shape));
}

NativePointer maker_packed(Maker *m, const Kernel *kernel, uint32_t index,
                           const Const *value) {
    Weights weights = {*value, m->end, kernel, index};
    return add_weights(m, &weights, kernel_packed_count(kernel, index));
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

static void read_weights(const Weights *w, float *to) {
    if (!w->kernel) {
        const_read(&w->value, to);
        return;
    }
    Arena *scratch = arena_new("weights");
    float *plain = ARENA_ARRAY(scratch, float, shape_count(&w->value.shape));
    const_read(&w->value, plain);
    kernel_pack(w->kernel, w->index, plain, to);
    arena_free(scratch);
}

static const uint8_t *read_constants(Maker *m) {
    uint8_t *bytes = arena_alloc(m->arena, m->end, CACHE_LINE);
    for (uint32_t i = 0; i < m->weights.n; i++) {
        const Weights *weights = &m->weights.at[i];
        read_weights(weights, (float *)(void *)(bytes + weights->offset));
    }
    return bytes;
}

void maker_weights_apart(Maker *m) {
    m->program.weights_apart = true;
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
