/* listing_json.c - a listing as JSON: the tables of facts/xdnn.md 1.7, and
 * under "amphora" what reads back to the same listing.
 *
 * Input: a Listing. Output: text, one key a line. Every field of an instruction
 * is a string in `xdnn_kv`, under the name that the hwspec gives its token.
 */
#include "codegen/listing_parts.h"

#include <string.h>

/* The version of the recorded format whose keys these are. */
#define FORMAT_VERSION "2.2.1"

typedef struct Writer {
    Arena *arena;
    const Listing *listing;
    const HwSpec *spec;
} Writer;

static cJSON *add_strings(cJSON *object, const char *key,
                          const char *const *text, uint32_t n) {
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(text[i]));
    return list;
}

/* ---- instructions ---- */

static const char *line_of(const Writer *w, uint32_t insn) {
    return insn_print(w->arena, w->spec, &w->listing->insn[insn]);
}

static cJSON *key_values(const Writer *w, uint32_t index) {
    const HwInsn *insn = &w->listing->insn[index];
    const HwRow *row = &w->spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    cJSON *json = cJSON_CreateObject();
    if (row->comment)
        cJSON_AddStringToObject(json, "pound", "#");
    for (uint32_t i = 0; i < form->n; i++) {
        const HwToken *token = &form->token[i];
        if (token->name)
            cJSON_AddStringToObject(
                json, token->name,
                insn_token_text(w->arena, row, token, &insn->value[i]));
    }
    return json;
}

/* One instruction, or a list where the layer runs by tiles. */
static void add_instructions(const Writer *w, cJSON *item,
                             const ListingLayer *layer) {
    if (layer->n_insns == 1) {
        put_text(item, "xdnn_instr", line_of(w, layer->first_insn));
        cJSON_AddItemToObject(item, "xdnn_kv",
                              key_values(w, layer->first_insn));
        cJSON_AddNullToObject(item, "xdnn_list");
        return;
    }
    cJSON_AddNullToObject(item, "xdnn_instr");
    cJSON_AddObjectToObject(item, "xdnn_kv");
    cJSON *list = cJSON_AddArrayToObject(item, "xdnn_list");
    for (uint32_t i = 0; i < layer->n_insns; i++) {
        cJSON *one = cJSON_CreateObject();
        put_text(one, "xdnn_instr", line_of(w, layer->first_insn + i));
        cJSON_AddItemToObject(one, "xdnn_kv",
                              key_values(w, layer->first_insn + i));
        cJSON_AddItemToArray(list, one);
    }
}

/* ---- the network's table ---- */

static bool moves_only(const Writer *w, const ListingLayer *layer) {
    for (uint32_t i = 0; i < layer->n_insns; i++) {
        HwOp op = insn_op(w->spec, &w->listing->insn[layer->first_insn + i]);
        if (op != HW_OP_LOAD && op != HW_OP_STORE)
            return false;
    }
    return layer->n_insns > 0;
}

/* Has the layer an instruction that is more than a note? */
static bool is_active(const Writer *w, const ListingLayer *layer) {
    for (uint32_t i = 0; i < layer->n_insns; i++) {
        const HwInsn *insn = &w->listing->insn[layer->first_insn + i];
        if (!w->spec->insns->row[insn->row].comment)
            return true;
    }
    return false;
}

static cJSON *layer_json(const Writer *w, const ListingLayer *layer) {
    cJSON *item = cJSON_CreateObject();
    put_text(item, "name", layer->name);
    put_text(item, "type", layer->type);
    put_text(item, "layer",
             arena_printf(w->arena, "%s: type=%s, sched %u",
                          layer->name ? layer->name : "",
                          layer->type ? layer->type : "", layer->step));
    put_u64(item, "active", is_active(w, layer));
    add_strings(item, "bottoms", layer->bottom, layer->n_bottoms);
    add_strings(item, "merged", layer->merged, layer->n_merged);
    cJSON *shape = cJSON_AddArrayToObject(item, "outputshapes");
    for (uint32_t i = 0; i < layer->shape.rank; i++)
        cJSON_AddItemToArray(shape, number_from_u64(layer->shape.dim[i]));
    put_u64(item, "schedule", layer->step);
    put_text(item, "memory_description", layer->memory);
    put_u64(item, "ops", layer->ops);
    add_instructions(w, item, layer);
    return item;
}

/* Operations of the layers that compute; bytes of those that only move. */
static void add_totals(const Writer *w, cJSON *json) {
    const Image *image = &w->listing->image;
    uint64_t ops = 0, moved = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *layer = &image->layer[i];
        *(moves_only(w, layer) ? &moved : &ops) += layer->ops;
        last = layer->step > last ? layer->step : last;
    }
    put_u64(json, "ops", ops);
    put_u64(json, "moveops", moved);
    put_u64(json, "first_layer", 0);
    put_u64(json, "last_layer", last);
}

static void add_network(const Writer *w, cJSON *json) {
    const Image *image = &w->listing->image;
    cJSON *list = cJSON_AddArrayToObject(json, "network");
    for (uint32_t i = 0; i < image->n_layers; i++)
        cJSON_AddItemToArray(list, layer_json(w, &image->layer[i]));
}

/* ---- inputs and outputs ---- */

static bool reads(const ListingLayer *layer, const char *tensor) {
    for (uint32_t i = 0; i < layer->n_bottoms; i++)
        if (!strcmp(layer->bottom[i], tensor))
            return true;
    return false;
}

static void add_readers(const Writer *w, cJSON *item, const char *key,
                        const char *tensor) {
    const Image *image = &w->listing->image;
    cJSON *list = cJSON_AddArrayToObject(item, key);
    for (uint32_t i = 0; i < image->n_layers; i++)
        if (reads(&image->layer[i], tensor))
            cJSON_AddItemToArray(list,
                                 cJSON_CreateString(image->layer[i].name));
}

static uint64_t address_of(const Writer *w, const Region *region) {
    const HwMemory *memory = &w->spec->memory[region->memory];
    return memory->base + region->offset / memory->unit;
}

/* Bytes from the start of the memory to the end of its last region. */
static uint64_t bytes_used(const Writer *w, int32_t memory,
                           const Region *region, uint32_t n) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if ((int32_t)region[i].memory != memory)
            continue;
        const Layout *layout = w->spec->memory[memory].layout;
        uint64_t end =
            region[i].offset + layout_bytes(layout, &region[i].whole);
        used = end > used ? end : used;
    }
    return used;
}

static void add_inputs(const Writer *w, cJSON *json) {
    const Image *image = &w->listing->image;
    put_u64(json, "inputddr",
            bytes_used(w, w->spec->input, image->input, image->n_inputs));
    cJSON *list = cJSON_AddArrayToObject(json, "inputs");
    for (uint32_t i = 0; i < image->n_inputs; i++) {
        cJSON *item = cJSON_CreateObject();
        put_text(item, "input_name", image->input[i].name);
        put_u64(item, "input_address", address_of(w, &image->input[i]));
        add_readers(w, item, "next_layers", image->input[i].name);
        cJSON_AddItemToArray(list, item);
    }
}

/* The item of `network` that stores the tensor; NULL if the host makes it. */
static const ListingLayer *store_of(const Writer *w, const char *tensor) {
    const Image *image = &w->listing->image;
    const char *name = arena_printf(w->arena, "%s_output", tensor);
    for (uint32_t i = 0; i < image->n_layers; i++)
        if (image->layer[i].name && !strcmp(image->layer[i].name, name))
            return &image->layer[i];
    return NULL;
}

static void add_outputs(const Writer *w, cJSON *json) {
    const Image *image = &w->listing->image;
    put_u64(json, "outputddr",
            bytes_used(w, w->spec->output, image->output, image->n_outputs));
    cJSON *list = cJSON_AddArrayToObject(json, "outputs");
    for (uint32_t i = 0; i < image->n_outputs; i++) {
        const char *name = image->output[i].name;
        const char *const tensor[] = {name};
        const ListingLayer *store = store_of(w, name);
        cJSON *item = cJSON_CreateObject();
        put_text(item, "output_name", name);
        put_text(item, "output_name_2", name);
        put_u64(item, "output_address", address_of(w, &image->output[i]));
        add_strings(item, "previous_layers", store ? store->bottom : tensor,
                    store ? store->n_bottoms : 1);
        add_strings(item, "previous_tensors", tensor, 1);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_unsupported(const Writer *w, cJSON *json) {
    const Image *image = &w->listing->image;
    cJSON *object = cJSON_AddObjectToObject(json, "unsupported");
    put_u64(object, "count", image->n_hosts);
    cJSON *list = cJSON_AddObjectToObject(object, "list");
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        const char *const text[] = {
            host->reason ? host->reason : "",
            arena_printf(w->arena, "%s: type=%s", host->name, host->kind)};
        add_strings(list, host->name, text, 2);
    }
}

/* ---- the whole ---- */

static void add_arguments(const Writer *w, cJSON *json) {
    cJSON *object = cJSON_AddObjectToObject(json, "arguments");
    uint64_t active = 0;
    for (uint32_t i = 0; i < w->spec->n_active; i++)
        active += w->spec->memory[i].size;
    put_text(object, "generatefile", w->listing->network);
    put_text(object, "machine", w->spec->machine);
    put_u64(object, "bytesperpixels", w->spec->element);
    cJSON_AddItemToObject(object, "memory",
                          number_from_double((double)active / (1 << 20)));
}

static void add_own(const Writer *w, cJSON *json, const char *weights_file) {
    cJSON *own = cJSON_AddObjectToObject(json, "amphora");
    put_text(own, "machine", w->spec->machine);
    put_text(own, "network", w->listing->network);
    cJSON *lines = cJSON_AddArrayToObject(own, "instructions");
    for (uint32_t i = 0; i < w->listing->n; i++)
        cJSON_AddItemToArray(lines, cJSON_CreateString(line_of(w, i)));
    if (w->listing->has_image)
        cJSON_AddItemToObject(
            own, "image",
            image_write(&w->listing->image, w->spec, weights_file));
}

const char *listing_json(Arena *arena, const Listing *listing,
                         const char *weights_file) {
    Writer w = {arena, listing, listing->spec};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "version", FORMAT_VERSION);
    cJSON_AddItemToObject(json, "batchSize", number_from_u64(1));
    add_arguments(&w, json);
    add_inputs(&w, json);
    add_outputs(&w, json);
    add_unsupported(&w, json);
    add_totals(&w, json);
    add_network(&w, json);
    add_own(&w, json, weights_file);
    const char *text = json_print(arena, json, true);
    json_free(json);
    return text;
}
