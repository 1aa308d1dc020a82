/* hostcode.c - layers of the host as native code; see hostcode.h. */
#include "driver/hostcode.h"

#include "base/file.h"
#include "driver/commands.h"

#include <string.h>

struct HostCode {
    const NativeBackend *backend;
    const NativeProgram *program;
    NativeCode *code;
    NativeEntry *const *entry;
    int32_t *function; /* by layer; -1: none */
};

static bool run_layer(void *context, uint32_t index, const float *const *in,
                      float *const *out) {
    const HostCode *code = context;
    int32_t function = code->function[index];
    if (function < 0)
        return false;
    code->entry[function](in, out, NULL, code->program->weights);
    return true;
}

static bool wants_native(const char *host, const Listing *listing) {
    if (host)
        return strcmp(host, "native") == 0;
    return native_built() && listing->image.n_hosts > 0;
}

bool hostcode_open(Arena *arena, Diag *diag, const char *host,
                   const Listing *listing, SimOptions *sim, HostCode **out) {
    *out = NULL;
    if (!wants_native(host, listing) || sim->memory_only)
        return true;
    HostCode *code = ARENA_NEW(arena, HostCode);
    code->backend = native_load(diag);
    if (!code->backend)
        return false;
    const uint32_t *layer;
    NativeTarget own = {0};
    code->program =
        native_host_program(arena, code->backend, listing, &own, &layer);
    code->function = ARENA_ARRAY(arena, int32_t, listing->image.n_hosts);
    for (uint32_t i = 0; i < listing->image.n_hosts; i++)
        code->function[i] = -1;
    for (uint32_t i = 0; i < code->program->n_functions; i++)
        code->function[layer[i]] = (int32_t)i;
    code->code = code->backend->load(arena, diag, code->program, &code->entry);
    if (!code->code)
        return false;
    sim->host = run_layer;
    sim->host_context = code;
    *out = code;
    return true;
}

void hostcode_close(HostCode *code) {
    if (code)
        code->backend->unload(code->code);
}

uint32_t hostcode_layers(const HostCode *code) {
    return code ? code->program->n_functions : 0;
}

/* `weights`: a file of their own; NULL: none. */
static bool write_code(Arena *arena, Diag *diag, const char *stem, Bytes object,
                       const char *header, const Bytes *weights,
                       const char *out[3]) {
    out[0] = arena_printf(arena, "%s.o", stem);
    out[1] = arena_printf(arena, "%s.h", stem);
    FilePart part[3] = {
        {.path = out[0], .data = object.at, .len = object.len},
        {.path = out[1], .data = header, .len = strlen(header)}};
    if (weights) {
        out[2] = arena_printf(arena, "%s.bin", stem);
        part[2] = (FilePart){
            .path = out[2], .data = weights->at, .len = weights->len};
    }
    return file_write_all(arena, diag, weights ? 3 : 2, part);
}

static const char *stem_of(Arena *arena, const char *path, const char *more) {
    return arena_printf(arena, "%s/%s%s", file_dir(arena, path),
                        file_stem(arena, path), more);
}

struct HostObject {
    const NativeBackend *backend;
    const NativeProgram *program;
    const char *header;
};

const HostObject *hostcode_make(Arena *arena, Diag *diag,
                                const Listing **listing) {
    const NativeBackend *backend = native_load(diag);
    if (!backend)
        return NULL;
    const uint32_t *layer;
    NativeTarget target = native_target((*listing)->spec);
    HostObject *made = ARENA_NEW(arena, HostObject);
    made->backend = backend;
    made->program =
        native_host_program(arena, backend, *listing, &target, &layer);
    made->header = native_host_header(arena, *listing, made->program, layer);
    *listing = listing_call(arena, *listing, made->program->n_functions, layer);
    return made;
}

bool hostcode_write(Arena *arena, Diag *diag, const HostObject *made,
                    const char *path, const char *out[3]) {
    Bytes object;
    return made->backend->object(arena, diag, made->program, false, &object.at,
                                 &object.len) &&
           write_code(arena, diag, stem_of(arena, path, ".host"), object,
                      made->header, NULL, out);
}

/* ---- bundles ---- */

const NativeBundle *bundle_make(Arena *arena, Diag *diag,
                                const BundleOptions *wanted, const Plan *plan,
                                const HwSpec *spec, bool *does_not_fit) {
    BundleOptions how = *wanted;
    if (!strcmp(how.planner, "auto"))
        how.planner = NULL;
    const NativeBackend *backend = native_load(diag);
    return backend ? native_bundle(arena, diag, backend, plan, spec, &how,
                                   does_not_fit)
                   : NULL;
}

bool bundle_write(Arena *arena, Diag *diag, const NativeBundle *bundle,
                  const char *path, const char *out[3]) {
    const NativeBackend *backend = native_load(diag);
    const NativeProgram *program = bundle->program;
    const char *header = native_bundle_header(arena, bundle);
    Bytes object, weights = {NULL, program->weights_bytes};
    if (!backend->object(arena, diag, program, true, &object.at, &object.len))
        return false;
    bool apart = program->where != WEIGHTS_INSIDE;
    if (apart) {
        weights.at = backend->weights(arena, diag, program);
        if (!weights.at)
            return false;
    }
    return write_code(arena, diag, stem_of(arena, path, ""), object, header,
                      apart ? &weights : NULL, out);
}

bool bundle_write_problem(Arena *arena, Diag *diag, const NativeBundle *bundle,
                          const char *path, const char **out) {
    const char *text = rooms_csv(bundle->rooms);
    *out = stem_of(arena, path, ".csv");
    return file_write(arena, diag, *out, text, strlen(text));
}

/* Constants that lie beside the object, and how they come. */
static const char *constants_words(Arena *arena, const NativeBundle *bundle) {
    static const char *const words[] = {
        [WEIGHTS_INSIDE] = "in the object file",
        [WEIGHTS_APART] = "in a file of their own",
        [WEIGHTS_LOADED] = "loaded when they are needed",
        [WEIGHTS_PLACED] = "in active memory throughout",
    };
    return arena_printf(arena, "%s bytes of constants, %s",
                        with_commas(arena, bundle->program->weights_bytes),
                        words[bundle->program->where]);
}

void print_bundle(Arena *arena, const NativeBundle *bundle) {
    const PackResult *result = rooms_result(bundle->rooms);
    uint64_t all = 0;
    for (uint32_t m = 0; m < bundle->spec->n_active; m++) {
        uint64_t bytes = rooms_bytes(bundle->rooms, m, bundle->images);
        all += bytes;
        if (m == 0 || bytes)
            say("pool    %s: %s of %s bytes\n", bundle->spec->memory[m].name,
                with_commas(arena, bytes),
                with_commas(arena, bundle->spec->memory[m].size));
    }
    say("bundle  %s bytes for %u buffers, bound %s (planner %s, %s)\n",
        with_commas(arena, all), rooms_count(bundle->rooms),
        with_commas(arena, result->bound), rooms_planner(bundle->rooms),
        result->proved ? "proved" : "not proved");
    say("        %s\n", constants_words(arena, bundle));
}

cJSON *bundle_json(const NativeBundle *bundle) {
    const PackResult *result = rooms_result(bundle->rooms);
    cJSON *json = cJSON_CreateObject();
    cJSON *pools = cJSON_AddObjectToObject(json, "pools");
    for (uint32_t m = 0; m < bundle->spec->n_active; m++)
        cJSON_AddNumberToObject(
            pools, bundle->spec->memory[m].name,
            (double)rooms_bytes(bundle->rooms, m, bundle->images));
    cJSON_AddNumberToObject(json, "buffers", rooms_count(bundle->rooms));
    cJSON_AddNumberToObject(json, "bound", (double)result->bound);
    cJSON_AddBoolToObject(json, "proved", result->proved);
    cJSON_AddStringToObject(json, "planner", rooms_planner(bundle->rooms));
    cJSON_AddNumberToObject(json, "constants",
                            (double)bundle->program->weights_bytes);
    return json;
}
