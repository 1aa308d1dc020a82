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

/* Of inputs that are no states. */
static const float **stored_inputs(Arena *arena, const Graph *g,
                                   const float *const *inputs) {
    const float **in = ARENA_ARRAY(arena, const float *, g->node.n);
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        const float *given = inputs[k++];
        if (node->attr.state)
            continue;
        const Tensor *t = graph_tensor(g, node->out[0]);
        void *values = array_of(arena, t);
        store_codes(t->quant.type, given, shape_count(&t->shape), values);
        in[n++] = values;
    }
    return in;
}

struct NativeNetwork {
    const NativeBackend *backend;
    const NativeBundle *bundle;
    const Graph *g;
    NativeCode *code;
    NativeEntry *entry;
    char *workspace;
};

/* Where the output is when the function is through: an array of the caller's,
 * or, of a state, a place in the workspace. */
static void *place_of(Arena *arena, const NativeNetwork *net, TensorId output) {
    const Graph *g = net->g;
    NodeId state = graph_state_of(g, output);
    uint32_t k = 0;
    if (state.i == NONE)
        return array_of(arena, graph_tensor(g, output));
    for (uint32_t i = 0; i < state.i; i++)
        k += g->node.at[i].op == OP_INPUT;
    uint32_t room = net->bundle->in[k].index;
    return net->workspace + rooms_offset(net->bundle->rooms, room, 1);
}

const float *const *native_call(Arena *arena, NativeNetwork *net,
                                const float *const *inputs, double *ms) {
    const Graph *g = net->g;
    void **place = ARENA_ARRAY(arena, void *, g->output.n);
    float **out = ARENA_ARRAY(arena, float *, g->output.n);
    const float **read = ARENA_ARRAY(arena, const float *, g->output.n);
    uint32_t n_out = 0;
    for (uint32_t i = 0; i < g->output.n; i++) {
        place[i] = place_of(arena, net, g->output.at[i]);
        if (graph_state_of(g, g->output.at[i]).i == NONE)
            out[n_out++] = place[i];
    }
    const float **in = stored_inputs(arena, g, inputs);
    double start = now_ms();
    net->entry(in, out, net->workspace, net->bundle->program->weights);
    *ms += now_ms() - start;
    for (uint32_t i = 0; i < g->output.n; i++) {
        const Tensor *t = graph_tensor(g, g->output.at[i]);
        uint64_t n = shape_count(&t->shape);
        float *values = ARENA_ARRAY(arena, float, n);
        read_codes(t->quant.type, place[i], n, values);
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

NativeNetwork *native_open(Arena *arena, Diag *diag, const Options *options,
                           const Graph *graph, double *ms) {
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
    NativeNetwork *net = ARENA_NEW(arena, NativeNetwork);
    *net = (NativeNetwork){
        .backend = backend,
        .bundle = bundle,
        .g = graph,
        .code = code,
        .entry = entry[0],
        .workspace = arena_alloc(arena, rooms_bytes(bundle->rooms, 0, 1), 64)};
    const float **none = ARENA_ARRAY(arena, const float *, graph->node.n);
    float **nowhere = ARENA_ARRAY(arena, float *, graph->output.n);
    if (program.n_functions > 1) /* sets states to what they start with */
        entry[1](none, nowhere, net->workspace, program.weights);
    *ms = now_ms() - start;
    return net;
}

void native_close(NativeNetwork *net) {
    net->backend->unload(net->code);
}
