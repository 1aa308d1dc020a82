/* evalnative.c - a network as machine code, made and run in memory; see
 * evalnative.h. */
#include "driver/evalnative.h"

#include "driver/hostcode.h"
#include "driver/pipeline.h"

#include <string.h>
#include <sys/utsname.h>

/* The first shipped machine whose code is for a computer like this one. */
static const char *own_machine(Arena *arena, Diag *diag) {
    struct utsname own;
    size_t len = uname(&own) ? 0 : strlen(own.machine);
    const char *const *name = hwspec_targets(arena);
    for (; name && *name && len; name++) {
        const HwSpec *spec = hwspec_load(arena, diag, *name, 0, NULL);
        const char *triple = spec ? spec->native.triple : NULL;
        if (triple && strncmp(triple, own.machine, len) == 0 &&
            triple[len] == '-')
            return *name;
    }
    diag_error(diag, (Loc){0},
               "--native: no shipped machine is like this computer; give one "
               "with -t TARGET");
    return NULL;
}

/* ---- codes and floats ---- */

static void store_codes(QuantType type, const float *from, uint64_t n,
                        void *to) {
    switch (type) {
#define TYPE(NAME, text, type, lo, hi)                                         \
    case QUANT_##NAME:                                                         \
        for (uint64_t i = 0; i < n; i++)                                       \
            ((type *)to)[i] = (type)from[i];                                   \
        return;
        QUANT_TYPES
#undef TYPE
    default:
        memcpy(to, from, n * sizeof *from);
    }
}

static void read_codes(QuantType type, const void *from, uint64_t n,
                       float *to) {
    switch (type) {
#define TYPE(NAME, text, type, lo, hi)                                         \
    case QUANT_##NAME:                                                         \
        for (uint64_t i = 0; i < n; i++)                                       \
            to[i] = (float)((const type *)from)[i];                            \
        return;
        QUANT_TYPES
#undef TYPE
    default:
        memcpy(to, from, n * sizeof *to);
    }
}

/* ---- a bundle in memory ---- */

/* Room for the values of the tensor, as code has them. */
static void *array_of(Arena *arena, const Tensor *t) {
    return arena_alloc(
        arena, shape_count(&t->shape) * quant_type[t->quant.type].size, 64);
}

static const float **stored_inputs(Arena *arena, const Graph *g,
                                   const float *const *inputs) {
    const float **in = ARENA_ARRAY(arena, const float *, g->node.n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        const Tensor *t = graph_tensor(g, node->out[0]);
        void *values = array_of(arena, t);
        store_codes(t->quant.type, inputs[n], shape_count(&t->shape), values);
        in[n++] = values;
    }
    return in;
}

/* Runs the bundle's function once. */
static const float *const *run(Arena *arena, const NativeBundle *bundle,
                               NativeEntry *entry, const Graph *g,
                               const float *const *inputs, double *ms) {
    const NativeProgram *program = bundle->program;
    float **out = ARENA_ARRAY(arena, float *, g->output.n);
    const float **read = ARENA_ARRAY(arena, const float *, g->output.n);
    for (uint32_t i = 0; i < g->output.n; i++)
        out[i] = array_of(arena, graph_tensor(g, g->output.at[i]));
    const float **in = stored_inputs(arena, g, inputs);
    void *workspace = arena_alloc(arena, rooms_bytes(bundle->rooms, 0, 1), 64);
    double start = now_ms();
    entry(in, out, workspace, program->weights);
    *ms = now_ms() - start;
    for (uint32_t i = 0; i < g->output.n; i++) {
        const Tensor *t = graph_tensor(g, g->output.at[i]);
        uint64_t n = shape_count(&t->shape);
        float *values = ARENA_ARRAY(arena, float, n);
        read_codes(t->quant.type, out[i], n, values);
        read[i] = values;
    }
    return read;
}

static const NativeBundle *make(Arena *arena, Diag *diag,
                                const Options *options) {
    Options own = *options;
    Pipeline p;
    bool does_not_fit;
    if (!own.target && !(own.target = own_machine(arena, diag)))
        return NULL;
    own.emit = "bundle";
    if (pipeline_run(arena, diag, &own, STAGE_ALLOC, &p) != EXIT_FINE)
        return NULL;
    const BundleOptions how = {
        .images = 1, .planner = own.planner, .io = "separate"};
    return bundle_make(arena, diag, &how, p.plan, p.machine, &does_not_fit);
}

static bool has_one_memory(Diag *diag, const NativeBundle *bundle) {
    if (bundle->program->where == WEIGHTS_INSIDE && bundle->spec->n_active == 1)
        return true;
    diag_error(diag, bundle->spec->loc,
               "--native: %s has more memories than a workspace",
               bundle->spec->machine);
    return false;
}

const float *const *native_evaluate(Arena *arena, Diag *diag,
                                    const Options *options, const Graph *graph,
                                    const float *const *inputs,
                                    NativeRunTimes *times) {
    double start = now_ms();
    const NativeBackend *backend = native_load(diag);
    const NativeBundle *bundle = backend ? make(arena, diag, options) : NULL;
    if (!bundle || !has_one_memory(diag, bundle))
        return NULL;
    NativeProgram program = *bundle->program;
    program.target = (NativeTarget){0};
    NativeEntry *const *entry;
    NativeCode *code = backend->load(arena, diag, &program, &entry);
    if (!code)
        return NULL;
    times->made = now_ms() - start;
    const float *const *out =
        run(arena, bundle, entry[0], graph, inputs, &times->run);
    backend->unload(code);
    return out;
}
