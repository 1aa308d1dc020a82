/* listing_image.c - the data image of a listing as JSON.
 *
 * Input: an Image. Output: the value of "image" in a listing's JSON. Constants
 * are recipes, or places in the weights file; memories are named, so that an
 * image is not read with a machine that lacks them. What the network's table
 * (facts/xdnn.md 1.7) says of layers is not repeated here.
 */
#include "codegen/listing_parts.h"

#include <stdlib.h>

static void add_double(cJSON *object, const char *key, double value) {
    cJSON_AddItemToObject(object, key, number_from_double(value));
}

static void add_numbers(cJSON *object, const char *key, const uint32_t *value,
                        uint32_t n) {
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, number_from_u64(value[i]));
}

static void add_doubles(cJSON *object, const char *key, const double *value,
                        uint32_t n) {
    if (value)
        cJSON_AddItemToObject(object, key, numbers_from_doubles(value, n));
}

static void add_order(cJSON *json, const Const *value) {
    uint32_t order[SHAPE_MAX_RANK];
    for (uint32_t i = 0; i < value->shape.rank; i++)
        order[i] = value->order[i];
    add_numbers(json, "order", order, value->shape.rank);
}

static cJSON *blob_json(const Blob *blob, uint64_t offset) {
    const Const *value = &blob->value;
    cJSON *json = cJSON_CreateObject();
    put_text(json, "layer", blob->layer);
    put_text(json, "role", blob->role);
    add_numbers(json, "shape", value->shape.dim, value->shape.rank);
    put_text(json, "kind", const_kind_word(value->kind));
    if (value->zero)
        cJSON_AddNumberToObject(json, "zero", value->zero);
    if (value->kind == CONST_SEEDED) {
        put_u64(json, "seed", value->seed);
        add_double(json, "mean", value->mean);
        add_double(json, "spread", value->spread);
    } else {
        put_u64(json, "offset", offset);
    }
    if (value->groups)
        put_u64(json, "groups", value->groups);
    if (const_has_order(value))
        add_order(json, value);
    add_doubles(json, "mul0", value->mul0, shape_dim(&value->shape, 0));
    add_doubles(json, "mul1", value->mul1, shape_dim(&value->shape, 1));
    return json;
}

typedef struct BlobData {
    const void *data;
    uint64_t bytes;
    uint32_t blob;
} BlobData;

static int by_data(const void *a, const void *b) {
    const BlobData *x = a, *y = b;
    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->blob < y->blob ? -1 : x->blob > y->blob;
}

/* By blob, the first with the same data. */
static uint32_t *first_blobs(Arena *arena, const Image *image) {
    uint32_t n = image->n_blobs, *first = ARENA_ARRAY(arena, uint32_t, n + 1);
    BlobData *by = ARENA_ARRAY(arena, BlobData, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const Const *value = &image->blob[i].value;
        by[i] = (BlobData){value->data, const_data_bytes(value), i};
    }
    qsort(by, n, sizeof *by, by_data);
    for (uint32_t i = 0, same = 0; i < n; i++) {
        if (by[i].data != by[same].data || by[i].bytes != by[same].bytes)
            same = i;
        first[by[i].blob] = by[same].blob;
    }
    return first;
}

BlobPlaces image_places(Arena *arena, const Image *image) {
    uint32_t n = image->n_blobs;
    BlobPlaces places = {ARENA_ARRAY(arena, uint64_t, n + 1),
                         ARENA_ARRAY(arena, bool, n + 1), 0};
    const uint32_t *first = first_blobs(arena, image);
    for (uint32_t i = 0; i < n; i++) {
        places.again[i] = first[i] != i;
        places.offset[i] =
            places.again[i] ? places.offset[first[i]] : places.bytes;
        if (!places.again[i])
            places.bytes += const_data_bytes(&image->blob[i].value);
    }
    return places;
}

static void add_blobs(cJSON *json, const Image *image,
                      const char *weights_file) {
    cJSON *list = cJSON_AddArrayToObject(json, "blobs");
    Arena *scratch = arena_new("blobs");
    BlobPlaces places = image_places(scratch, image);
    for (uint32_t i = 0; i < image->n_blobs; i++)
        cJSON_AddItemToArray(list,
                             blob_json(&image->blob[i], places.offset[i]));
    if (places.bytes)
        put_text(json, "weights", weights_file);
    arena_free(scratch);
}

static void add_acts(cJSON *json, const Image *image) {
    cJSON *list = cJSON_AddArrayToObject(json, "acts");
    for (uint32_t i = 0; i < image->n_acts; i++) {
        const LayerAct *act = &image->act[i];
        cJSON *item = cJSON_CreateObject();
        put_text(item, "layer", act->layer);
        put_text(item, "kind", act->kind);
        add_double(item, "alpha", act->alpha);
        add_double(item, "lo", act->lo);
        add_double(item, "hi", act->hi);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_scales(cJSON *json, const char *factors, const char *shifts,
                       uint32_t n, const QuantScale *scale) {
    cJSON *factor = cJSON_AddArrayToObject(json, factors);
    cJSON *shift = cJSON_AddArrayToObject(json, shifts);
    for (uint32_t i = 0; i < n; i++) {
        cJSON_AddItemToArray(factor,
                             number_from_u64((uint64_t)scale[i].factor));
        cJSON_AddItemToArray(shift, number_from_u64(scale[i].shift));
    }
}

static void add_table(cJSON *json, const int16_t *table) {
    cJSON *list = cJSON_AddArrayToObject(json, "table");
    for (int i = 0; i < QUANT_TABLE_SIZE; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(table[i]));
}

static void add_quants(cJSON *json, const Image *image) {
    cJSON *list = cJSON_AddArrayToObject(json, "quants");
    for (uint32_t i = 0; i < image->n_quants; i++) {
        const QuantLayer *q = &image->quant[i].numbers;
        cJSON *item = cJSON_CreateObject();
        put_text(item, "layer", image->quant[i].layer);
        put_text(item, "rule", quant_rule_name[q->rule]);
        if (q->round != QUANT_UP)
            put_text(item, "round", quant_round_name[q->round]);
        cJSON_AddItemToObject(item, "zero_in",
                              cJSON_CreateIntArray(q->zero_in, 2));
        cJSON_AddNumberToObject(item, "zero_out", q->zero_out);
        cJSON_AddNumberToObject(item, "lo", q->lo);
        cJSON_AddNumberToObject(item, "hi", q->hi);
        put_u64(item, "left", q->left);
        cJSON_AddBoolToObject(item, "minus", q->minus);
        add_scales(item, "factor", "shift", q->n, q->scale);
        if (q->table)
            add_table(item, q->table);
        if (q->below)
            add_scales(item, "factor_below", "shift_below", q->n, q->below);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_quant(cJSON *json, const Quant *q) {
    if (q->type == QUANT_NONE)
        return;
    cJSON *quant = cJSON_AddObjectToObject(json, "quant");
    put_text(quant, "type", quant_type[q->type].name);
    add_double(quant, "scale", q->scale);
    cJSON_AddNumberToObject(quant, "zero", q->zero);
    if (q->round != QUANT_UP)
        put_text(quant, "round", quant_round_name[q->round]);
}

static cJSON *region_json(const Region *region, const HwSpec *spec) {
    const Volume *whole = &region->whole;
    const uint32_t size[] = {whole->c, whole->h, whole->w};
    const uint32_t repl[] = {whole->repl.full, whole->repl.sections,
                             whole->repl.units, whole->repl.width};
    cJSON *json = cJSON_CreateObject();
    put_text(json, "name", region->name);
    add_numbers(json, "shape", region->shape.dim, region->shape.rank);
    if (region->given.rank)
        add_numbers(json, "given", region->given.dim, region->given.rank);
    put_text(json, "memory", spec->memory[region->memory].name);
    put_u64(json, "offset", region->offset);
    add_numbers(json, "whole", size, 3);
    add_numbers(json, "repl", repl, 4);
    put_u64(json, "part_c", region->part_c);
    if (region->next)
        put_text(json, "next", region->next);
    add_quant(json, &region->quant);
    return json;
}

static void add_regions(cJSON *json, const char *key, const Region *region,
                        uint32_t n, const HwSpec *spec) {
    cJSON *list = cJSON_AddArrayToObject(json, key);
    for (uint32_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, region_json(&region[i], spec));
}

static void add_attrs(cJSON *json, const HostLayer *host) {
    cJSON *list = cJSON_AddArrayToObject(json, "attrs");
    for (uint32_t i = 0; i < host->n_attrs; i++) {
        const AttrPair *attr = &host->attr[i];
        cJSON *item = cJSON_CreateObject();
        put_text(item, "name", attr->name);
        if (attr->word)
            put_text(item, "word", attr->word);
        else if (attr->value)
            add_doubles(item, "value", attr->value, attr->n);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_hosts(cJSON *json, const Image *image, const HwSpec *spec) {
    cJSON *list = cJSON_AddArrayToObject(json, "hosts");
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        cJSON *item = cJSON_CreateObject();
        put_text(item, "name", host->name);
        put_text(item, "kind", host->kind);
        put_text(item, "function", host->function);
        put_text(item, "reason", host->reason);
        add_regions(item, "in", host->in, host->n_in, spec);
        add_regions(item, "out", host->out, host->n_out, spec);
        add_attrs(item, host);
        cJSON_AddItemToArray(list, item);
    }
}

/* Of each item of `network`, its instructions: [first, how many]. */
static void write_layers(JsonOut *out, const Image *image) {
    json_out_list(out, "layers");
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *layer = &image->layer[i];
        json_out_list(out, NULL);
        json_out_value(out, NULL, number_from_u64(layer->first_insn));
        json_out_value(out, NULL, number_from_u64(layer->n_insns));
        json_out_close(out);
    }
    json_out_close(out);
}

void image_write(JsonOut *out, const Image *image, const HwSpec *spec,
                 const char *weights_file) {
    cJSON *json = cJSON_CreateObject();
    add_blobs(json, image, weights_file);
    add_acts(json, image);
    add_quants(json, image);
    add_regions(json, "inputs", image->input, image->n_inputs, spec);
    add_regions(json, "outputs", image->output, image->n_outputs, spec);
    add_hosts(json, image, spec);
    json_out_object(out, "image");
    json_out_members(out, json);
    write_layers(out, image);
    json_out_close(out);
}
