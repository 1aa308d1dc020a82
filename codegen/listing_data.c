/* listing_data.c - constants as bytes, and the manifest that says what they
 * are: docs/listing.md.
 *
 * Input: a listing with its image. Output: NET.data, one constant behind the
 * other, each from a multiple of 64 bytes on, and NET.data.json. Constants are
 * made while they are written, so no more than one of them is in memory.
 * Invariants: weights lie output channel by output channel, as machines that
 * load them into active memory have them; codes are as the network has them,
 * what is quantised comes with its factors and shifts, all else is float.
 */
#include "base/file.h"
#include "base/vec.h"
#include "codegen/listing_parts.h"

#include <string.h>

enum { ALIGN = 64 };

typedef enum DataType {
    DATA_F32,
    DATA_I8,
    DATA_U8,
    DATA_I16,
    DATA_I32
} DataType;
static const struct {
    const char *name;
    uint32_t size;
} data_type[] = {
    {"float32", 4}, {"int8", 1}, {"uint8", 1}, {"int16", 2}, {"int32", 4}};

/* A blob, or the scales of a quantised layer. */
typedef struct Item {
    const char *layer, *role;
    const Blob *blob;        /* or NULL: */
    const QuantScale *scale; /* ... of these the factors or the shifts */
    bool shifts;
    const int16_t *table; /* ... or, of rule TABLE, these */
    DataType type;
    uint64_t offset, count;
} Item;

typedef struct Data {
    const Listing *listing;
    const char *file;
    VEC(Item) item;
    uint64_t bytes;
} Data;

static const LayerQuant *quant_of(const Image *image, const char *layer) {
    for (uint32_t i = 0; i < image->n_quants; i++)
        if (!strcmp(image->quant[i].layer, layer))
            return &image->quant[i];
    return NULL;
}

/* As codes where the layer computes on them, else as floats. */
static DataType type_of(const Image *image, const Blob *blob) {
    if (!quant_of(image, blob->layer))
        return DATA_F32;
    switch (blob->value.kind) {
    case CONST_I8:
        return DATA_I8;
    case CONST_U8:
        return DATA_U8;
    case CONST_I16:
        return DATA_I16;
    case CONST_I32:
        return DATA_I32;
    default:
        return DATA_F32;
    }
}

static void add(Arena *arena, Data *data, Item item) {
    item.offset = data->bytes;
    data->bytes += item.count * data_type[item.type].size;
    data->bytes += (ALIGN - data->bytes % ALIGN) % ALIGN;
    vec_push(arena, &data->item, item);
}

static void add_scales(Arena *arena, Data *data, const LayerQuant *q,
                       const QuantScale *scale, const char *const role[2]) {
    for (int k = 0; q->numbers.n && k < 2; k++)
        add(arena, data,
            (Item){.layer = q->layer,
                   .role = role[k],
                   .scale = scale,
                   .shifts = k == 1,
                   .type = DATA_I32,
                   .count = q->numbers.n});
}

static void add_all(Arena *arena, Data *data) {
    static const char *const scale_role[] = {"multiplier", "shift"};
    static const char *const below_role[] = {"multiplier_below", "shift_below"};
    const Image *image = &data->listing->image;
    for (uint32_t i = 0; i < image->n_blobs; i++) {
        const Blob *blob = &image->blob[i];
        add(arena, data,
            (Item){.layer = blob->layer,
                   .role = blob->role,
                   .blob = blob,
                   .type = type_of(image, blob),
                   .count = shape_count(&blob->value.shape)});
    }
    for (uint32_t i = 0; i < image->n_quants; i++) {
        const LayerQuant *q = &image->quant[i];
        add_scales(arena, data, q, q->numbers.scale, scale_role);
        if (q->numbers.below)
            add_scales(arena, data, q, q->numbers.below, below_role);
        if (q->numbers.table)
            add(arena, data,
                (Item){.layer = q->layer,
                       .role = "table",
                       .table = q->numbers.table,
                       .type = DATA_I16,
                       .count = QUANT_TABLE_SIZE});
    }
}

/* ---- bytes ---- */

static void put_bytes(Text *out, uint64_t value, uint32_t size) {
    char bytes[8];
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (char)(value >> 8 * i & 0xFF);
    text_add_n(out, bytes, size);
}

static void put_float(Text *out, double value) {
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    put_bytes(out, bits, sizeof bits);
}

static void put_blob(Text *out, Arena *scratch, const Item *item) {
    Const value = item->blob->value;
    if (item->type != DATA_F32)
        value = const_codes(&value);
    double *at = ARENA_ARRAY(scratch, double, item->count + 1);
    const_read_f64(&value, at);
    for (uint64_t i = 0; i < item->count; i++)
        if (item->type == DATA_F32)
            put_float(out, at[i]);
        else
            put_bytes(out, (uint64_t)((int64_t)at[i] + value.zero),
                      data_type[item->type].size);
}

static void put_scales(Text *out, const Item *item) {
    for (uint32_t i = 0; i < item->count; i++) {
        QuantScale scale = item->scale[i];
        put_bytes(out,
                  item->shifts ? scale.shift : (uint64_t)(int64_t)scale.factor,
                  4);
    }
}

static void put_table(Text *out, const Item *item) {
    for (uint32_t i = 0; i < item->count; i++)
        put_bytes(out, (uint64_t)(int64_t)item->table[i],
                  data_type[item->type].size);
}

static void write_data(Text *out, const void *context) {
    const Data *data = context;
    Arena *scratch = arena_new("constants");
    uint64_t at = 0;
    for (uint32_t i = 0; i < data->item.n; i++) {
        const Item *item = &data->item.at[i];
        for (; at < item->offset; at++)
            put_bytes(out, 0, 1);
        if (item->blob)
            put_blob(out, scratch, item);
        else if (item->table)
            put_table(out, item);
        else
            put_scales(out, item);
        at += item->count * data_type[item->type].size;
        arena_reset(scratch);
    }
    for (; at < data->bytes; at++)
        put_bytes(out, 0, 1);
    arena_free(scratch);
}

/* ---- the manifest ---- */

static void put_shape(JsonOut *out, const Item *item) {
    json_out_list(out, "shape");
    for (uint32_t i = 0; item->blob && i < item->blob->value.shape.rank; i++)
        json_out_number(out, NULL, item->blob->value.shape.dim[i]);
    if (!item->blob)
        json_out_number(out, NULL, item->count);
    json_out_close(out);
}

static void put_signed(JsonOut *out, const char *key, int64_t value) {
    json_out_value(out, key, number_from_double((double)value));
}

static void put_item(JsonOut *out, const Item *item) {
    json_out_object(out, NULL);
    json_out_text(out, "layer", item->layer);
    json_out_text(out, "role", item->role);
    json_out_text(out, "type", data_type[item->type].name);
    put_shape(out, item);
    json_out_number(out, "offset", item->offset);
    json_out_number(out, "bytes", item->count * data_type[item->type].size);
    if (item->blob && item->type != DATA_F32)
        put_signed(out, "zero", item->blob->value.zero);
    json_out_close(out);
}

static void put_layer(JsonOut *out, const LayerQuant *layer) {
    const QuantLayer *q = &layer->numbers;
    json_out_object(out, NULL);
    json_out_text(out, "layer", layer->layer);
    json_out_text(out, "rule", quant_rule_name[q->rule]);
    json_out_text(out, "round", quant_round_name[q->round]);
    json_out_list(out, "zero_in");
    put_signed(out, NULL, q->zero_in[0]);
    put_signed(out, NULL, q->zero_in[1]);
    json_out_close(out);
    put_signed(out, "zero_out", q->zero_out);
    put_signed(out, "least", q->lo);
    put_signed(out, "most", q->hi);
    json_out_number(out, "left", q->left);
    put_signed(out, "minus", q->minus);
    json_out_close(out);
}

static void write_manifest(Text *text, const void *context) {
    const Data *data = context;
    const Image *image = &data->listing->image;
    JsonOut out = json_out_new(text);
    json_out_object(&out, NULL);
    json_out_text(&out, "format", "amphora constants");
    json_out_number(&out, "version", LISTING_VERSION);
    json_out_text(&out, "network", data->listing->network);
    json_out_text(&out, "machine", data->listing->spec->machine);
    json_out_text(&out, "file", data->file);
    json_out_number(&out, "bytes", data->bytes);
    out.compact = true;
    json_out_list(&out, "constants");
    for (uint32_t i = 0; i < data->item.n; i++) {
        text_add(text, i ? "\n" : "");
        put_item(&out, &data->item.at[i]);
    }
    json_out_close(&out);
    text_add(text, "\n");
    json_out_list(&out, "layers");
    for (uint32_t i = 0; i < image->n_quants; i++)
        put_layer(&out, &image->quant[i]);
    json_out_close(&out);
    out.compact = false;
    json_out_close(&out);
    text_add(text, "\n");
}

bool listing_materialise(Arena *arena, Diag *diag, const Listing *listing,
                         const char *dir, const char **out) {
    const char *name = listing_file_name(arena, listing->network);
    Data data = {.listing = listing,
                 .file = arena_printf(arena, "%s.data", name)};
    add_all(arena, &data);
    out[0] = arena_printf(arena, "%s/%s", dir, data.file);
    out[1] = arena_printf(arena, "%s.json", out[0]);
    FilePart part[] = {
        {.path = out[0], .write = write_data, .context = &data},
        {.path = out[1], .write = write_manifest, .context = &data}};
    return file_make_dir(arena, diag, dir) &&
           file_write_all(arena, diag, 2, part);
}
