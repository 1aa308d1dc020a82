/* maker.c - kernels, functions and constants of a program; see maker.h. */
#include "native/maker.h"

#include "base/map.h"
#include "base/vec.h"

enum { CACHE_LINE = 64 };

/* A constant among the weights; kernel: who wants it packed, or NULL. */
typedef struct Weights {
    const Const *value;
    uint64_t offset; /* bytes */
    const Kernel *kernel;
    uint32_t index, first;
    ConstKind kind; /* as which they are stored */
} Weights;

struct Maker {
    Arena *arena;
    NativeProgram program;
    Map *kernels; /* text -> index */
    VEC(Kernel) kernel;
    VEC(NativeFunction) function;
    VEC(Weights) weights;
    VEC(NativeRun) run;
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

uint32_t maker_size(ConstKind kind) {
    switch (kind) {
    case CONST_I8:
    case CONST_U8:
        return 1;
    case CONST_I16:
        return 2;
    default:
        return 4;
    }
}

static NativePointer add_weights(Maker *m, const Weights *weights,
                                 uint64_t values) {
    NativeRun run = {m->end, maker_size(weights->kind)};
    vec_push(m->arena, &m->weights, *weights);
    vec_push(m->arena, &m->run, run);
    m->end += values * run.size;
    m->end += -m->end % CACHE_LINE;
    return (NativePointer){.base = NATIVE_WEIGHTS, .offset = weights->offset};
}

NativePointer maker_constant(Maker *m, const Const *value, ConstKind kind) {
    Weights weights = {.value = value, .offset = m->end, .kind = kind};
    return add_weights(m, &weights, shape_count(&value->shape));
}

NativePointer maker_packed(Maker *m, const Kernel *kernel, uint32_t index,
                           const Const *value, uint32_t first) {
    Weights weights = {value, m->end, kernel,
                       index, first,  kernel->constant[index].kind};
    return add_weights(m, &weights, kernel_packed_count(kernel, index));
}

uint64_t maker_end(const Maker *m) {
    return m->end;
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

/* ---- values ---- */

/* The values of a few constants: those of a layer are read piece by piece, one
 * after the other. */
enum { KEPT = 8 };
typedef struct Plain {
    const Const *value;
    Arena *arena;
    const double *at;
} Plain;
typedef struct Plains {
    Plain kept[KEPT];
    uint32_t next;
} Plains;

static const double *plain_values(Plains *plains, const Const *value) {
    for (uint32_t i = 0; i < KEPT; i++)
        if (plains->kept[i].value == value)
            return plains->kept[i].at;
    Plain *plain = &plains->kept[plains->next++ % KEPT];
    if (plain->arena)
        arena_free(plain->arena);
    plain->arena = arena_new("weights");
    double *at = ARENA_ARRAY(plain->arena, double, shape_count(&value->shape));
    const_read_f64(value, at);
    plain->value = value;
    plain->at = at;
    return at;
}

void maker_store(ConstKind kind, const double *from, uint64_t n, void *to) {
    for (uint64_t i = 0; i < n; i++)
        switch (kind) {
        case CONST_I8:
            ((int8_t *)to)[i] = (int8_t)from[i];
            break;
        case CONST_U8:
            ((uint8_t *)to)[i] = (uint8_t)from[i];
            break;
        case CONST_I16:
            ((int16_t *)to)[i] = (int16_t)from[i];
            break;
        case CONST_I32:
            ((int32_t *)to)[i] = (int32_t)from[i];
            break;
        default:
            ((float *)to)[i] = (float)from[i];
        }
}

static void read_weights(const Weights *w, Plains *plains, void *to) {
    const Shape *shape = &w->value->shape;
    const double *plain = plain_values(plains, w->value);
    if (!w->kernel) {
        maker_store(w->kind, plain, shape_count(shape), to);
        return;
    }
    Arena *scratch = arena_new("packed");
    uint64_t slice = shape_count(shape) / shape_dim(shape, 0);
    uint64_t n = kernel_packed_count(w->kernel, w->index);
    double *packed = ARENA_ARRAY(scratch, double, n);
    kernel_pack(w->kernel, w->index, plain + w->first * slice, packed);
    maker_store(w->kind, packed, n, to);
    arena_free(scratch);
}

static const uint8_t *read_constants(Maker *m) {
    uint8_t *bytes = arena_alloc(m->arena, m->end, CACHE_LINE);
    Plains plains = {0};
    for (uint32_t i = 0; i < m->weights.n; i++) {
        const Weights *weights = &m->weights.at[i];
        read_weights(weights, &plains, bytes + weights->offset);
    }
    for (uint32_t i = 0; i < KEPT; i++)
        if (plains.kept[i].arena)
            arena_free(plains.kept[i].arena);
    return bytes;
}

void maker_weights(Maker *m, NativeWeights where, uint32_t room) {
    m->program.where = where;
    m->program.weights_room = room;
}

const NativeProgram *maker_program(Maker *m) {
    m->program.n_kernels = m->kernel.n;
    m->program.kernel = m->kernel.at;
    m->program.n_functions = m->function.n;
    m->program.function = m->function.at;
    m->program.weights = read_constants(m);
    m->program.weights_bytes = m->end;
    m->program.n_runs = m->run.n;
    m->program.run = m->run.at;
    return &m->program;
}
