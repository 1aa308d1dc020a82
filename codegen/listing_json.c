/* listing_json.c - a listing as JSON: the tables of facts/xdnn.md 1.7, and
 * under "amphora" what reads back to the same listing.
 *
 * Input: a Listing. Output: text, one key a line, written as it comes: a
 * listing can have a million instructions. Every field of an instruction is a
 * string in `xdnn_kv`, under the name that the hwspec gives its token.
 */
#include "codegen/listing_parts.h"

#include <string.h>

/* The version of the recorded format whose keys these are. */
#define FORMAT_VERSION "2.2.1"

typedef struct Writer {
    Arena *scratch; /* given back behind each instruction, and each layer */
    const Listing *listing;
    const HwSpec *spec;
    JsonOut *out;
} Writer;

static void put_strings(const Writer *w, const char *key,
                        const char *const *text, uint32_t n) {
    json_out_list(w->out, key);
    for (uint32_t i = 0; i < n; i++)
        json_out_text(w->out, NULL, text[i]);
    json_out_close(w->out);
}

static void put_number(const Writer *w, const char *key, uint64_t value) {
    json_out_value(w->out, key, number_from_u64(value));
}

/* ---- instructions ---- */

static void put_line(const Writer *w, const char *key, uint32_t insn) {
    json_out_text(w->out, key,
                  insn_print(w->scratch, w->spec, &w->listing->insn[insn]));
    arena_reset(w->scratch);
}

static void put_key_values(const Writer *w, uint32_t index) {
    const HwInsn *insn = &w->listing->insn[index];
    const HwRow *row = &w->spec->insns->row[insn->row];
    const HwForm *form = &row->form[insn->form];
    json_out_object(w->out, "xdnn_kv");
    if (row->comment)
        json_out_text(w->out, "pound", "#");
    for (uint32_t i = 0; i < form->n; i++) {
        const HwToken *token = &form->token[i];
        if (token->name)
            json_out_text(
                w->out, token->name,
                insn_token_text(w->scratch, row, token, &insn->value[i]));
    }
    json_out_close(w->out);
    arena_reset(w->scratch);
}

/* One instruction, or a list where the layer runs by tiles. */
static void put_instructions(const Writer *w, const ListingLayer *layer) {
    if (layer->n_insns == 1) {
        put_line(w, "xdnn_instr", layer->first_insn);
        put_key_values(w, layer->first_insn);
        json_out_text(w->out, "xdnn_list", NULL);
        return;
    }
    json_out_text(w->out, "xdnn_instr", NULL);
    json_out_object(w->out, "xdnn_kv");
    json_out_close(w->out);
    json_out_list(w->out, "xdnn_list");
    for (uint32_t i = 0; i < layer->n_insns; i++) {
        json_out_object(w->out, NULL);
        put_line(w, "xdnn_instr", layer->first_insn + i);
        put_key_values(w, layer->first_insn + i);
        json_out_close(w->out);
    }
    json_out_close(w->out);
}

/* ---- the network's table ---- */

static bool moves_only(const Writer *w, const ListingLayer *layer) {
    for (uint32_t i = 0; i < layer->n_insns; i++) {
        HwOp op = insn_op(w->spec, &w->listing->insn[layer->first_insn + i]);
        if (!hw_is_among(op, HW_TRANSFERS))
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

static void put_layer(const Writer *w, const ListingLayer *layer) {
    JsonOut *out = w->out;
    json_out_object(out, NULL);
    json_out_text(out, "name", layer->name);
    json_out_text(out, "type", layer->type);
    json_out_text(out, "layer",
                  arena_printf(w->scratch, "%s: type=%s, sched %u",
                               layer->name ? layer->name : "",
                               layer->type ? layer->type : "", layer->step));
    put_number(w, "active", is_active(w, layer));
    put_strings(w, "bottoms", layer->bottom, layer->n_bottoms);
    put_strings(w, "merged", layer->merged, layer->n_merged);
    json_out_list(out, "outputshapes");
    for (uint32_t i = 0; i < layer->shape.rank; i++)
        put_number(w, NULL, layer->shape.dim[i]);
    json_out_close(out);
    put_number(w, "schedule", layer->step);
    json_out_text(out, "memory_description", layer->memory);
    put_number(w, "ops", layer->ops);
    put_instructions(w, layer);
    json_out_close(out);
    arena_reset(w->scratch);
}

/* Operations of the layers that compute; bytes of those that only move. */
static void put_totals(const Writer *w) {
    const Image *image = &w->listing->image;
    uint64_t ops = 0, moved = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *layer = &image->layer[i];
        *(moves_only(w, layer) ? &moved : &ops) += layer->ops;
        last = layer->step > last ? layer->step : last;
    }
    put_number(w, "ops", ops);
    put_number(w, "moveops", moved);
    put_number(w, "first_layer", 0);
    put_number(w, "last_layer", last);
}

static void put_network(const Writer *w) {
    const Image *image = &w->listing->image;
    json_out_list(w->out, "network");
    for (uint32_t i = 0; i < image->n_layers; i++)
        put_layer(w, &image->layer[i]);
    json_out_close(w->out);
}

/* ---- inputs and outputs ---- */

static bool reads(const ListingLayer *layer, const char *tensor) {
    for (uint32_t i = 0; i < layer->n_bottoms; i++)
        if (!strcmp(layer->bottom[i], tensor))
            return true;
    return false;
}

static void put_readers(const Writer *w, const char *key, const char *tensor) {
    const Image *image = &w->listing->image;
    json_out_list(w->out, key);
    for (uint32_t i = 0; i < image->n_layers; i++)
        if (reads(&image->layer[i], tensor))
            json_out_text(w->out, NULL, image->layer[i].name);
    json_out_close(w->out);
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

static void put_inputs(const Writer *w) {
    const Image *image = &w->listing->image;
    put_number(w, "inputddr",
               bytes_used(w, w->spec->input, image->input, image->n_inputs));
    json_out_list(w->out, "inputs");
    for (uint32_t i = 0; i < image->n_inputs; i++) {
        json_out_object(w->out, NULL);
        json_out_text(w->out, "input_name", image->input[i].name);
        put_number(w, "input_address", address_of(w, &image->input[i]));
        put_readers(w, "next_layers", image->input[i].name);
        json_out_close(w->out);
    }
    json_out_close(w->out);
}

/* The item of `network` that stores the tensor; NULL if the host makes it. */
static const ListingLayer *store_of(const Writer *w, const char *tensor) {
    const Image *image = &w->listing->image;
    const char *name = arena_printf(w->scratch, "%s_output", tensor);
    for (uint32_t i = 0; i < image->n_layers; i++)
        if (image->layer[i].name && !strcmp(image->layer[i].name, name))
            return &image->layer[i];
    return NULL;
}

static void put_outputs(const Writer *w) {
    const Image *image = &w->listing->image;
    put_number(w, "outputddr",
               bytes_used(w, w->spec->output, image->output, image->n_outputs));
    json_out_list(w->out, "outputs");
    for (uint32_t i = 0; i < image->n_outputs; i++) {
        const char *name = image->output[i].name;
        const char *const tensor[] = {name};
        const ListingLayer *store = store_of(w, name);
        json_out_object(w->out, NULL);
        json_out_text(w->out, "output_name", name);
        json_out_text(w->out, "output_name_2", name);
        put_number(w, "output_address", address_of(w, &image->output[i]));
        put_strings(w, "previous_layers", store ? store->bottom : tensor,
                    store ? store->n_bottoms : 1);
        put_strings(w, "previous_tensors", tensor, 1);
        json_out_close(w->out);
    }
    json_out_close(w->out);
}

static void put_unsupported(const Writer *w) {
    const Image *image = &w->listing->image;
    json_out_object(w->out, "unsupported");
    put_number(w, "count", image->n_hosts);
    json_out_object(w->out, "list");
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        const char *const text[] = {
            host->reason ? host->reason : "",
            arena_printf(w->scratch, "%s: type=%s", host->name, host->kind)};
        put_strings(w, host->name, text, 2);
    }
    json_out_close(w->out);
    json_out_close(w->out);
}

/* ---- the whole ---- */

static void put_arguments(const Writer *w) {
    uint64_t active = 0;
    for (uint32_t i = 0; i < w->spec->n_active; i++)
        active += w->spec->memory[i].size;
    json_out_object(w->out, "arguments");
    json_out_text(w->out, "generatefile", w->listing->network);
    json_out_text(w->out, "machine", w->spec->machine);
    put_number(w, "bytesperpixels", w->spec->element);
    json_out_value(w->out, "memory",
                   number_from_double((double)active / (1 << 20)));
    json_out_close(w->out);
}

/* Where parts of the listing begin that the machine holds by themselves. */
static void put_parts(const Writer *w) {
    if (w->listing->n_parts < 2)
        return;
    json_out_list(w->out, "parts");
    for (uint32_t i = 0; i < w->listing->n_parts; i++)
        json_out_number(w->out, NULL, w->listing->part[i]);
    json_out_close(w->out);
}

static void put_own(const Writer *w, const char *weights_file) {
    json_out_object(w->out, "amphora");
    json_out_text(w->out, "format", "amphora listing");
    put_number(w, "version", LISTING_VERSION);
    json_out_text(w->out, "machine", w->spec->machine);
    json_out_text(w->out, "network", w->listing->network);
    json_out_list(w->out, "instructions");
    for (uint32_t i = 0; i < w->listing->n; i++)
        put_line(w, NULL, i);
    json_out_close(w->out);
    machine_write(w->out, w->spec);
    put_parts(w);
    if (w->listing->record)
        records_write(w->out, w->listing);
    if (w->listing->has_image)
        image_write(w->out, &w->listing->image, w->spec, weights_file);
    json_out_close(w->out);
}

void listing_json_write(Text *text, const Listing *listing,
                        const char *weights_file) {
    JsonOut out = json_out_new(text);
    Arena *scratch = arena_new("listing");
    const Writer w = {scratch, listing, listing->spec, &out};
    json_out_object(&out, NULL);
    json_out_text(&out, "version", FORMAT_VERSION);
    put_number(&w, "batchSize", 1);
    put_arguments(&w);
    put_inputs(&w);
    put_outputs(&w);
    put_unsupported(&w);
    put_totals(&w);
    put_network(&w);
    put_own(&w, weights_file);
    json_out_close(&out);
    arena_free(scratch);
}

const char *listing_json(Arena *arena, const Listing *listing,
                         const char *weights_file) {
    Text text = text_new(arena);
    listing_json_write(&text, listing, weights_file);
    return text_str(&text);
}
