/* host.c - layers of the host: from a listing's image to a program and its
 * header; see native.h.
 *
 * Input: what the image says of a layer: operands in the order of their
 * shapes, constants, attributes. Nothing of it is believed before the back end
 * has accepted the kernel.
 */
#include "native/native.h"

#include "base/text.h"
#include "base/vec.h"
#include "native/maker.h"

#include <string.h>

/* 1 GiB of floats: more weights than any network has. */
static const uint64_t most_weights = UINT64_C(1) << 28;
static const Quant real_numbers = {QUANT_NONE, 0, 0, QUANT_UP};

/* A layer and its constants in the image. */
typedef struct Layer {
    const HostLayer *host;
    VEC(const Blob *) blob;
} Layer;

static Layer layer_of(Arena *arena, const Image *image, uint32_t index) {
    Layer layer = {.host = &image->host[index]};
    for (uint32_t i = 0; i < image->n_blobs; i++)
        if (strcmp(image->blob[i].layer, layer.host->name) == 0)
            vec_push(arena, &layer.blob, &image->blob[i]);
    return layer;
}

/* ---- constants ---- */

/* A gather reads where its constant says: inside its axis, or not at all. */
static bool indices_fit(Arena *arena, const HostLayer *host,
                        const Const *index) {
    Kernel k = {.n_attrs = host->n_attrs, .attr = host->attr};
    uint32_t axis = kernel_count(&k, "axis", 0, 0);
    uint64_t n = shape_count(&index->shape);
    float size = (float)shape_dim(&host->in[0].shape, axis);
    float *value = ARENA_ARRAY(arena, float, n);
    const_read(index, value);
    for (uint64_t i = 0; i < n; i++)
        if (!(value[i] >= 0 && value[i] < size))
            return false;
    return true;
}

static bool constants_fit(Arena *arena, const Layer *layer, uint64_t values) {
    for (uint32_t i = 0; i < layer->blob.n; i++) {
        const Blob *blob = layer->blob.at[i];
        uint64_t n = shape_count(&blob->value.shape);
        if (n > most_weights - values)
            return false;
        values += n;
        if (strcmp(layer->host->kind, "gather") == 0 &&
            strcmp(blob->role, "index") == 0 &&
            !indices_fit(arena, layer->host, &blob->value))
            return false;
    }
    return true;
}

/* ---- kernels and calls ---- */

static const Operand *operands_of(Arena *arena, const Region *region,
                                  uint32_t n) {
    Operand *out = ARENA_ARRAY(arena, Operand, n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = operand_dense(&region[i].shape, &real_numbers);
    return out;
}

static Kernel kernel_of(Arena *arena, const Layer *layer) {
    const HostLayer *host = layer->host;
    KernelConst *constant = ARENA_ARRAY(arena, KernelConst, layer->blob.n);
    for (uint32_t i = 0; i < layer->blob.n; i++)
        constant[i] = (KernelConst){layer->blob.at[i]->role,
                                    layer->blob.at[i]->value.shape, CONST_F32};
    return (Kernel){.kind = host->kind,
                    .n_in = host->n_in,
                    .n_out = host->n_out,
                    .n_constants = layer->blob.n,
                    .n_attrs = host->n_attrs,
                    .in = operands_of(arena, host->in, host->n_in),
                    .out = operands_of(arena, host->out, host->n_out),
                    .constant = constant,
                    .attr = host->attr,
                    .over = -1};
}

static NativeCall *call_of(Arena *arena, Maker *maker, const Layer *layer,
                           const Kernel *kernel) {
    uint32_t n = kernel->n_in + kernel->n_out + kernel->n_constants, at = 0;
    NativePointer *pointer = ARENA_ARRAY(arena, NativePointer, n);
    for (uint32_t i = 0; i < kernel->n_in; i++)
        pointer[at++] = (NativePointer){.base = NATIVE_IN, .index = i};
    for (uint32_t i = 0; i < kernel->n_out; i++)
        pointer[at++] = (NativePointer){.base = NATIVE_OUT, .index = i};
    for (uint32_t i = 0; i < layer->blob.n; i++)
        pointer[at++] =
            maker_constant(maker, &layer->blob.at[i]->value, CONST_F32);
    NativeCall *call = ARENA_NEW(arena, NativeCall);
    *call = (NativeCall){.kernel = maker_kernel(maker, kernel),
                         .n = n,
                         .pieces = 1,
                         .pointer = pointer};
    return call;
}

const NativeProgram *native_host_program(Arena *arena,
                                         const NativeBackend *backend,
                                         const Listing *listing,
                                         const NativeTarget *target,
                                         const uint32_t **layers) {
    const Image *image = &listing->image;
    const char *name = listing_identifier(arena, listing->network);
    Maker *maker = maker_new(arena, name, target);
    uint32_t *taken = ARENA_ARRAY(arena, uint32_t, image->n_hosts), n = 0;
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        Layer layer = layer_of(arena, image, i);
        Kernel kernel = kernel_of(arena, &layer);
        if (host_has_codes(layer.host) || backend->refuse(&kernel) ||
            !constants_fit(arena, &layer, maker_end(maker) / sizeof(float)))
            continue;
        NativeFunction function = {.name = layer.host->function,
                                   .n_in = kernel.n_in,
                                   .n_out = kernel.n_out,
                                   .n_calls = 1,
                                   .images = 1,
                                   .call =
                                       call_of(arena, maker, &layer, &kernel)};
        maker_function(maker, &function);
        taken[n++] = i;
    }
    *layers = taken;
    return maker_program(maker);
}

/* ---- the header ---- */

static const char header_top[] =
    "/* Layers of %s that its host computes, in the order of the listing.\n"
    " *\n"
    " * Each is to be called where its instruction stands: after its operands"
    "\n"
    " * were stored, before its results are loaded. Tensors are floats in the"
    "\n"
    " * order of their shapes, without gaps, and must not overlap. The "
    "functions"
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
        text_addf(text, " *   %s%u: %s, %s\n", name, i,
                  listing_comment(text->arena, region[i].name),
                  shape_text(text->arena, &region[i].shape));
}

static void add_arguments(Text *text, const HostLayer *layer) {
    for (uint32_t i = 0; i < layer->n_in; i++)
        text_addf(text, "const float *in%u, ", i);
    for (uint32_t i = 0; i < layer->n_out; i++)
        text_addf(text, "%sfloat *out%u", i ? ", " : "", i);
}

/* The operator of which there is no code: one that amphora does not know, as
 * the file calls it, or a routine; NULL: another. */
static const char *what_is_called(const HostLayer *layer) {
    const char *name = !strcmp(layer->kind, "call")      ? "what"
                       : !strcmp(layer->kind, "routine") ? "routine"
                                                         : NULL;
    const AttrPair *what =
        name ? attr_find(layer->attr, layer->n_attrs, name) : NULL;
    return what ? what->word : NULL;
}

static void add_function(Text *text, const HostLayer *layer) {
    const char *what = what_is_called(layer);
    text_addf(text, "\n/* Layer %s: %s.\n",
              listing_comment(text->arena, layer->name),
              what ? listing_comment(text->arena, what) : layer->kind);
    if (what)
        text_add(text, " * Not in the object file: it is yours to write.\n");
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
    text_addf(&text, header_top, listing_comment(arena, listing->network),
              program->name, program->name);
    for (uint32_t i = 0; i < program->n_functions; i++)
        add_function(&text, &listing->image.host[layer[i]]);
    for (uint32_t i = 0; i < listing->image.n_hosts; i++)
        if (what_is_called(&listing->image.host[i]))
            add_function(&text, &listing->image.host[i]);
    text_add(&text, header_bottom);
    return text_str(&text);
}
