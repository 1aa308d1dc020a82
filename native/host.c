/* host.c - layers of the host: from a listing's image to a program and its
 * header; see native.h.
 *
 * Input: what the image says of a layer: operands in the order of their
 * shapes, constants, attributes. Nothing of it is believed before the back end
 * has accepted the kernel.
 */
#include "native/native.h"

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

#include <string.h>

/* 1 GiB of floats: more weights than any network has. */
static const uint64_t most_weights = UINT64_C(1) << 28;
enum { CACHE_LINE = 64 };

typedef struct Maker {
    Arena *arena;
    const NativeBackend *backend;
    const Listing *listing;
    Map *kernels; /* text -> index */
    VEC(Kernel) kernel;
    VEC(NativeFunction) function;
    VEC(uint32_t) layer;
    VEC(Const) constant;
    VEC(uint64_t) offset; /* bytes: of each constant */
    uint64_t end;         /* bytes of constants so far */
} Maker;

/* ---- constants ---- */

/* A gather reads where its constant says: inside its axis, or not at all. */
static bool indices_fit(Maker *m, const HostLayer *layer, const Const *index) {
    Kernel k = {.n_attrs = layer->n_attrs, .attr = layer->attr};
    uint32_t axis = kernel_count(&k, "axis", 0, 0);
    uint64_t n = shape_count(&index->shape);
    float size = (float)shape_dim(&layer->in[0].shape, axis);
    float *value = ARENA_ARRAY(m->arena, float, n);
    const_read(index, value);
    for (uint64_t i = 0; i < n; i++)
        if (!(value[i] >= 0 && value[i] < size))
            return false;
    return true;
}

static uint64_t add_constant(Maker *m, const Const *value) {
    uint64_t at = m->end;
    vec_push(m->arena, &m->constant, *value);
    vec_push(m->arena, &m->offset, at);
    m->end += shape_count(&value->shape) * sizeof(float);
    m->end += -m->end % CACHE_LINE;
    return at;
}

static const uint8_t *read_constants(Maker *m) {
    uint8_t *bytes = arena_alloc(m->arena, m->end, CACHE_LINE);
    for (uint32_t i = 0; i < m->constant.n; i++)
        const_read(&m->constant.at[i],
                   (float *)(void *)(bytes + m->offset.at[i]));
    return bytes;
}

/* ---- kernels ---- */

static const Operand *operands_of(Maker *m, const Region *region, uint32_t n) {
    Operand *out = ARENA_ARRAY(m->arena, Operand, n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = operand_dense(&region[i].shape);
    return out;
}

static bool is_of(const Blob *blob, const HostLayer *layer) {
    return strcmp(blob->layer, layer->name) == 0;
}

static uint32_t count_constants(const Maker *m, const HostLayer *layer) {
    const Image *image = &m->listing->image;
    uint32_t n = 0;
    for (uint32_t i = 0; i < image->n_blobs; i++)
        n += is_of(&image->blob[i], layer);
    return n;
}

static Kernel kernel_of(Maker *m, const HostLayer *layer) {
    const Image *image = &m->listing->image;
    KernelConst *constant =
        ARENA_ARRAY(m->arena, KernelConst, count_constants(m, layer));
    uint32_t n = 0;
    for (uint32_t i = 0; i < image->n_blobs; i++)
        if (is_of(&image->blob[i], layer))
            constant[n++] = (KernelConst){image->blob[i].role,
                                          image->blob[i].value.shape};
    return (Kernel){.kind = layer->kind,
                    .n_in = layer->n_in,
                    .n_out = layer->n_out,
                    .n_constants = n,
                    .n_attrs = layer->n_attrs,
                    .in = operands_of(m, layer->in, layer->n_in),
                    .out = operands_of(m, layer->out, layer->n_out),
                    .constant = constant,
                    .attr = layer->attr};
}

/* The kernel's index; equal ones are one. */
static uint32_t add_kernel(Maker *m, const Kernel *kernel) {
    const char *text = kernel_text(m->arena, kernel);
    uint32_t known = map_get(m->kernels, text, UINT32_MAX);
    if (known != UINT32_MAX)
        return known;
    map_put(m->kernels, text, m->kernel.n);
    vec_push(m->arena, &m->kernel, *kernel);
    return m->kernel.n - 1;
}

/* ---- functions ---- */

static bool constants_fit(Maker *m, const HostLayer *layer) {
    const Image *image = &m->listing->image;
    uint64_t values = m->end / sizeof(float);
    for (uint32_t i = 0; i < image->n_blobs; i++) {
        const Blob *blob = &image->blob[i];
        if (!is_of(blob, layer))
            continue;
        uint64_t n = shape_count(&blob->value.shape);
        if (n > most_weights - values)
            return false;
        values += n;
        if (strcmp(layer->kind, "gather") == 0 &&
            strcmp(blob->role, "index") == 0 &&
            !indices_fit(m, layer, &blob->value))
            return false;
    }
    return true;
}

static NativeCall call_of(Maker *m, const HostLayer *layer,
                          const Kernel *kernel) {
    const Image *image = &m->listing->image;
    uint32_t n = kernel->n_in + kernel->n_out + kernel->n_constants, at = 0;
    NativePointer *pointer = ARENA_ARRAY(m->arena, NativePointer, n);
    for (uint32_t i = 0; i < kernel->n_in; i++)
        pointer[at++] = (NativePointer){NATIVE_IN, i, 0};
    for (uint32_t i = 0; i < kernel->n_out; i++)
        pointer[at++] = (NativePointer){NATIVE_OUT, i, 0};
    for (uint32_t i = 0; i < image->n_blobs; i++)
        if (is_of(&image->blob[i], layer))
            pointer[at++] = (NativePointer){
                NATIVE_WEIGHTS, 0, add_constant(m, &image->blob[i].value)};
    return (NativeCall){add_kernel(m, kernel), n, pointer};
}

static void add_layer(Maker *m, uint32_t index) {
    const HostLayer *layer = &m->listing->image.host[index];
    Kernel kernel = kernel_of(m, layer);
    if (m->backend->refuse(&kernel) || !constants_fit(m, layer))
        return;
    NativeCall *call = ARENA_NEW(m->arena, NativeCall);
    *call = call_of(m, layer, &kernel);
    NativeFunction function = {.name = layer->function,
                               .n_in = layer->n_in,
                               .n_out = layer->n_out,
                               .n_calls = 1,
                               .call = call};
    vec_push(m->arena, &m->function, function);
    vec_push(m->arena, &m->layer, index);
}

const NativeProgram *native_host_program(Arena *arena,
                                         const NativeBackend *backend,
                                         const Listing *listing,
                                         const NativeTarget *target,
                                         const uint32_t **layer) {
    Maker m = {.arena = arena,
               .backend = backend,
               .listing = listing,
               .kernels = map_new(arena)};
    for (uint32_t i = 0; i < listing->image.n_hosts; i++)
        add_layer(&m, i);
    NativeProgram *program = ARENA_NEW(arena, NativeProgram);
    *program = (NativeProgram){
        .name = listing_identifier(arena, listing->network),
        .target = *target,
        .n_kernels = m.kernel.n,
        .n_functions = m.function.n,
        .kernel = m.kernel.at,
        .function = m.function.at,
        .weights = read_constants(&m),
        .weights_bytes = m.end,
    };
    *layer = m.layer.at;
    return program;
}

/* ---- the header ---- */

static const char header_top[] =
    "/* Layers of %s that its host computes, in the order of the listing.\n"
    " *\n"
    " * Each is to be called where its instruction stands: after its operands"
    "\n"
    " * were stored, before its results are loaded. Tensors are floats in the"
    "\n"
    " * order of their shapes, without gaps, and must not overlap. The functions"
    "\n"
    " * keep nothing, allocate nothing and call nothing; the constants are in\n"
    " * the object file. */\n"
    "#ifndef %s_HOST_H\n#define %s_HOST_H\n\n"
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
static const char header_bottom[] =
    "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";

static void add_operands(Text *text, const char *name, uint32_t n,
                         const Region *region) {
    for (uint32_t i = 0; i < n; i++)
        text_addf(text, " *   %s%u: %s, %s\n", name, i, region[i].name,
                  shape_text(text->arena, &region[i].shape));
}

static void add_arguments(Text *text, const HostLayer *layer) {
    for (uint32_t i = 0; i < layer->n_in; i++)
        text_addf(text, "const float *in%u, ", i);
    for (uint32_t i = 0; i < layer->n_out; i++)
        text_addf(text, "%sfloat *out%u", i ? ", " : "", i);
}

static void add_function(Text *text, const HostLayer *layer) {
    text_addf(text, "\n/* Layer %s: %s.\n", layer->name, layer->kind);
    add_operands(text, "in", layer->n_in, layer->in);
    add_operands(text, "out", layer->n_out, layer->out);
    text_addf(text, " */\nvoid %s(", layer->function);
    add_arguments(text, layer);
    text_add(text, ");\n");
}

const char *native_host_header(Arena *arena, const Listing *listing,
                               const NativeProgram *program,
                               const uint32_t *layer) {
    Text text = text_new(arena);
    text_addf(&text, header_top, listing->network, program->name,
              program->name);
    for (uint32_t i = 0; i < program->n_functions; i++)
        add_function(&text, &listing->image.host[layer[i]]);
    text_add(&text, header_bottom);
    return text_str(&text);
}
