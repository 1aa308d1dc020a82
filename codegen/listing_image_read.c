/* listing_image_read.c - the data image of a listing from JSON.
 *
 * Input: JSON that anybody may have written. Output: an Image of which every
 * shape is allowed, every place in the weights file exists, every memory is one
 * of the machine's, and every layer's instructions are instructions.
 */
#include "codegen/listing_parts.h"

#include <string.h>

enum { MAX_OUTPUTS = sizeof((HostLayer){0}.out) / sizeof(Region) };

typedef struct ImageReader {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    const char *file;
    Bytes weights;
    const char *what; /* the list we are in, and which item: for messages */
    uint32_t index;
    bool ok;
} ImageReader;

static void bad(ImageReader *r, const char *key, const char *wanted) {
    diag_error(r->diag, (Loc){r->file, 0, 0}, "amphora.image.%s[%u].%s %s",
               r->what, r->index, key, wanted);
    r->ok = false;
}

static const cJSON *get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* ---- values ---- */

static const char *text(ImageReader *r, const cJSON *object, const char *key) {
    const cJSON *item = get(object, key);
    if (!cJSON_IsString(item) && !cJSON_IsNull(item))
        bad(r, key, "is not a string");
    return cJSON_IsString(item) ? arena_strdup(r->arena, item->valuestring)
                                : NULL;
}

/* A name that others are compared with. */
static const char *name(ImageReader *r, const cJSON *object, const char *key) {
    const char *string = text(r, object, key);
    if (!string && r->ok)
        bad(r, key, "is missing");
    return string ? string : "";
}

static uint64_t whole(ImageReader *r, const cJSON *object, const char *key) {
    uint64_t value = 0;
    if (!number_to_u64(get(object, key), &value))
        bad(r, key, "is not a whole number");
    return value;
}

static uint32_t small(ImageReader *r, const cJSON *object, const char *key) {
    uint32_t value = 0;
    if (!number_to_u32(get(object, key), &value))
        bad(r, key, "is not a whole number below 2^32");
    return value;
}

static int32_t signed_small(ImageReader *r, const cJSON *object,
                            const char *key) {
    double value = 0;
    if (!number_to_double(get(object, key), &value) ||
        !(value >= INT32_MIN && value <= INT32_MAX))
        bad(r, key, "is not a number of 32 bits");
    else
        return (int32_t)value;
    return 0;
}

static double real(ImageReader *r, const cJSON *object, const char *key) {
    double value = 0;
    if (!number_to_double(get(object, key), &value))
        bad(r, key, "is not a number");
    return value;
}

/* A list of exactly n (or, counted in *found, at most n) small numbers. */
static bool numbers(const cJSON *list, uint32_t *out, uint32_t n,
                    uint32_t *found) {
    uint32_t i = 0;
    const cJSON *item;
    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list) {
        if (i == n || !number_to_u32(item, &out[i]))
            return false;
        i++;
    }
    if (found)
        *found = i;
    return found || i == n;
}

static Shape shape_of(ImageReader *r, const cJSON *object, const char *key) {
    Shape out = {0};
    bool ok = numbers(get(object, key), out.dim, SHAPE_MAX_RANK, &out.rank);
    for (uint32_t i = 0; i < out.rank && ok; i++)
        ok = out.dim[i] > 0;
    if (ok && shape_count(&out) != UINT64_MAX)
        return out;
    bad(r, key, "is not a list of at most 8 sizes of a tensor");
    return (Shape){0};
}

static Shape shape(ImageReader *r, const cJSON *object) {
    return shape_of(r, object, "shape");
}

/* `n` numbers, or NULL if the key is absent. */
static const double *factors(ImageReader *r, const cJSON *object,
                             const char *key, uint32_t n) {
    const cJSON *list = get(object, key), *item;
    if (!list)
        return NULL;
    if ((uint32_t)cJSON_GetArraySize(list) != n) {
        bad(r, key, "has not one number for each index");
        return NULL;
    }
    double *out = ARENA_ARRAY(r->arena, double, n);
    uint32_t i = 0;
    cJSON_ArrayForEach(item, list) if (!number_to_double(item, &out[i++]))
        bad(r, key, "holds something that is no number");
    return out;
}

/* ---- lists of items ---- */

typedef void ReadItem(ImageReader *r, const cJSON *item, void *out);

/* Every object of the list `key` through `read`, into an array of items of
 * `size` bytes. */
static void *items(ImageReader *r, const cJSON *object, const char *key,
                   ReadItem *read, size_t size, uint32_t *n) {
    const cJSON *list = get(object, key), *item;
    const char *what = r->what;
    uint32_t index = r->index;
    r->what = key;
    r->index = 0;
    *n = 0;
    if (!cJSON_IsArray(list)) {
        diag_error(r->diag, (Loc){r->file, 0, 0}, "`%s` is not a list", key);
        r->ok = false;
    }
    char *out = arena_calloc(r->arena, (size_t)cJSON_GetArraySize(list), size,
                             alignof(max_align_t));
    cJSON_ArrayForEach(item, list) {
        read(r, item, out + *n * size);
        r->index = ++*n;
    }
    r->what = what;
    r->index = index;
    return out;
}

/* ---- constants ---- */

static void read_data(ImageReader *r, const cJSON *item, Const *value) {
    uint64_t offset = whole(r, item, "offset");
    uint64_t bytes = const_data_bytes(value);
    if (offset > r->weights.len || bytes > r->weights.len - offset)
        bad(r, "offset", "leaves the weights file");
    else if (r->weights.at)
        value->data = r->weights.at + offset;
}

static void read_groups(ImageReader *r, const cJSON *item, Const *value) {
    if (!get(item, "groups"))
        return;
    uint32_t n = value->groups = small(r, item, "groups");
    if (n > 1 &&
        (shape_dim(&value->shape, 0) % n || shape_dim(&value->shape, 1) % n))
        bad(r, "groups", "does not divide the channels");
}

static void read_order(ImageReader *r, const cJSON *item, Const *value) {
    uint32_t order[SHAPE_MAX_RANK], rank = value->shape.rank;
    const cJSON *list = get(item, "order");
    if (!list)
        return;
    if (numbers(list, order, rank, NULL) && const_order_valid(rank, order))
        const_set_order(value, order);
    else
        bad(r, "order", "is not a list of each axis once");
}

static void read_blob(ImageReader *r, const cJSON *item, void *out) {
    Blob *blob = out;
    Const *value = &blob->value;
    const char *kind = name(r, item, "kind");
    blob->layer = name(r, item, "layer");
    blob->role = name(r, item, "role");
    value->shape = shape(r, item);
    read_groups(r, item, value);
    read_order(r, item, value);
    if (get(item, "zero"))
        value->zero = signed_small(r, item, "zero");
    if (!const_kind_find(kind, &value->kind)) {
        bad(r, "kind", "is none of: " CONST_KIND_WORDS);
    } else if (value->kind == CONST_SEEDED) {
        value->seed = whole(r, item, "seed");
        value->mean = real(r, item, "mean");
        value->spread = real(r, item, "spread");
    } else if (r->ok) {
        read_data(r, item, value);
    }
    value->mul0 = factors(r, item, "mul0", shape_dim(&value->shape, 0));
    value->mul1 = factors(r, item, "mul1", shape_dim(&value->shape, 1));
}

static void read_act(ImageReader *r, const cJSON *item, void *out) {
    *(LayerAct *)out = (LayerAct){.layer = name(r, item, "layer"),
                                  .kind = name(r, item, "kind"),
                                  .alpha = real(r, item, "alpha"),
                                  .lo = real(r, item, "lo"),
                                  .hi = real(r, item, "hi")};
}

/* ---- quantised layers ---- */

static const QuantScale *read_scales(ImageReader *r, const cJSON *factor,
                                     const cJSON *shift, uint32_t n) {
    uint32_t *number = ARENA_ARRAY(r->arena, uint32_t, n);
    uint32_t *by = ARENA_ARRAY(r->arena, uint32_t, n);
    QuantScale *scale = ARENA_ARRAY(r->arena, QuantScale, n);
    if (!numbers(factor, number, n, NULL) || !numbers(shift, by, n, NULL))
        bad(r, "factor", "and its shift are not lists of whole numbers");
    for (uint32_t i = 0; i < n; i++) {
        if (number[i] > INT32_MAX || by[i] < 1 || by[i] > 62)
            bad(r, "factor", "is above 2^31, or its shift is none of 1..62");
        scale[i] = (QuantScale){(int32_t)(number[i] & INT32_MAX), by[i]};
    }
    return scale;
}

static void read_all_scales(ImageReader *r, const cJSON *item, QuantLayer *q) {
    const cJSON *below = get(item, "factor_below");
    const cJSON *factor = get(item, "factor");
    q->n = (uint32_t)cJSON_GetArraySize(factor);
    q->scale = read_scales(r, factor, get(item, "shift"), q->n);
    if (below)
        q->below = read_scales(r, below, get(item, "shift_below"), q->n);
    if (below && q->rule < QUANT_RULE_COUNT && q->rule != QUANT_SUMS)
        bad(r, "factor_below", "is only of sums");
}

static void read_codes(ImageReader *r, const cJSON *item, const char *key,
                       int n, int16_t *out) {
    const cJSON *list = get(item, key), *code;
    if (cJSON_GetArraySize(list) != n) {
        bad(r, key, arena_printf(r->arena, "is not a list of %d numbers", n));
        return;
    }
    cJSON_ArrayForEach(code, list) {
        double value = 0;
        if (!number_to_double(code, &value) || !(value >= INT16_MIN) ||
            !(value <= INT16_MAX))
            bad(r, key, "holds something that is no code");
        else
            *out = (int16_t)value;
        out++;
    }
}

static void read_zeros(ImageReader *r, const cJSON *item, int32_t out[2]) {
    int16_t zero[2] = {0};
    read_codes(r, item, "zero_in", 2, zero);
    out[0] = zero[0];
    out[1] = zero[1];
}

/* Absent: halves go up. */
static QuantRound read_round(ImageReader *r, const cJSON *item) {
    if (!get(item, "round"))
        return QUANT_UP;
    QuantRound round = quant_round_named(name(r, item, "round"));
    if (round < QUANT_ROUND_COUNT)
        return round;
    bad(r, "round", "is no rule of rounding");
    return QUANT_UP;
}

static void read_layer_quant(ImageReader *r, const cJSON *item, void *out) {
    LayerQuant *layer = out;
    QuantLayer *q = &layer->numbers;
    const char *rule = name(r, item, "rule");
    layer->layer = name(r, item, "layer");
    while (q->rule < QUANT_RULE_COUNT && strcmp(quant_rule_name[q->rule], rule))
        q->rule++;
    if (q->rule == QUANT_RULE_COUNT)
        bad(r, "rule", "is no rule of quantised layers");
    read_zeros(r, item, q->zero_in);
    q->zero_out = signed_small(r, item, "zero_out");
    q->lo = signed_small(r, item, "lo");
    q->hi = signed_small(r, item, "hi");
    q->left = small(r, item, "left");
    if (q->left > 20)
        bad(r, "left", "is above 20");
    q->minus = cJSON_IsTrue(get(item, "minus"));
    q->round = read_round(r, item);
    read_all_scales(r, item, q);
    if (q->rule == QUANT_TABLE) {
        int16_t *table = ARENA_ARRAY(r->arena, int16_t, QUANT_TABLE_SIZE);
        read_codes(r, item, "table", QUANT_TABLE_SIZE, table);
        q->table = table;
    }
}

/* ---- regions and host layers ---- */

static Quant quant(ImageReader *r, const cJSON *json) {
    Quant q = {.type = quant_type_named(name(r, json, "type")),
               .zero = signed_small(r, json, "zero"),
               .scale = real(r, json, "scale"),
               .round = read_round(r, json)};
    if (q.type != QUANT_TYPE_COUNT && quant_sound(&q))
        return q;
    bad(r, "quant", "is no quantisation");
    return (Quant){0};
}

static uint32_t memory(ImageReader *r, const cJSON *item) {
    const char *wanted = name(r, item, "memory");
    for (uint32_t i = 0; i < r->spec->n_memories; i++)
        if (!strcmp(wanted, r->spec->memory[i].name))
            return i;
    bad(r, "memory", "is no memory of this machine");
    return 0;
}

static void read_region(ImageReader *r, const cJSON *item, void *out) {
    Region *region = out;
    uint32_t size[3] = {0}, repl[4] = {0};
    *region = (Region){.name = name(r, item, "name"),
                       .shape = shape(r, item),
                       .memory = memory(r, item),
                       .offset = whole(r, item, "offset"),
                       .part_c = small(r, item, "part_c")};
    if (get(item, "given"))
        region->given = shape_of(r, item, "given");
    if (region->given.rank &&
        shape_count(&region->given) != shape_count(&region->shape))
        bad(r, "given", "has another number of elements than the shape");
    if (get(item, "next"))
        region->next = name(r, item, "next");
    if (get(item, "quant"))
        region->quant = quant(r, get(item, "quant"));
    if (!numbers(get(item, "whole"), size, 3, NULL))
        bad(r, "whole", "is not a list of channels, height and width");
    if (!numbers(get(item, "repl"), repl, 4, NULL))
        bad(r, "repl", "is not a list of four numbers");
    region->whole = (Volume){
        size[0], size[1], size[2], {repl[0], repl[1], repl[2], repl[3]}};
}

static void read_attr(ImageReader *r, const cJSON *item, void *out) {
    AttrPair *attr = out;
    attr->name = name(r, item, "name");
    if (get(item, "word")) {
        attr->word = name(r, item, "word");
    } else if (get(item, "value")) {
        attr->n = (uint32_t)cJSON_GetArraySize(get(item, "value"));
        attr->value = factors(r, item, "value", attr->n);
    }
}

static void read_host(ImageReader *r, const cJSON *item, void *out) {
    HostLayer *host = out;
    host->name = name(r, item, "name");
    host->kind = name(r, item, "kind");
    host->reason = text(r, item, "reason");
    if (cJSON_GetArraySize(get(item, "out")) > MAX_OUTPUTS) {
        bad(r, "out", "has more than 8 tensors");
        return;
    }
    host->in = items(r, item, "in", read_region, sizeof(Region), &host->n_in);
    const Region *region =
        items(r, item, "out", read_region, sizeof(Region), &host->n_out);
    for (uint32_t i = 0; i < host->n_out; i++)
        host->out[i] = region[i];
    host->attr =
        items(r, item, "attrs", read_attr, sizeof(AttrPair), &host->n_attrs);
}

/* ---- layers: half in `network`, half here ---- */

static const char *const *names(ImageReader *r, const cJSON *object,
                                const char *key, uint32_t *n) {
    const cJSON *list = get(object, key), *item;
    const char **out =
        ARENA_ARRAY(r->arena, const char *, (size_t)cJSON_GetArraySize(list));
    *n = 0;
    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item)) out[(*n)++] =
        arena_strdup(r->arena, item->valuestring);
    else bad(r, key, "holds something that is no string");
    return out;
}

static void read_layer(ImageReader *r, const cJSON *item, void *out) {
    ListingLayer *layer = out;
    Shape size = {0};
    layer->name = text(r, item, "name");
    layer->type = text(r, item, "type");
    layer->memory = text(r, item, "memory_description");
    layer->bottom = names(r, item, "bottoms", &layer->n_bottoms);
    layer->merged = names(r, item, "merged", &layer->n_merged);
    layer->step = small(r, item, "schedule");
    layer->ops = whole(r, item, "ops");
    if (numbers(get(item, "outputshapes"), size.dim, SHAPE_MAX_RANK,
                &size.rank))
        layer->shape = size;
    else
        bad(r, "outputshapes", "is not a list of at most 8 sizes");
}

static void read_layers(ImageReader *r, const cJSON *json, const cJSON *root,
                        uint32_t n_insns, Image *out) {
    ListingLayer *layer = items(r, root, "network", read_layer,
                                sizeof(ListingLayer), &out->n_layers);
    const cJSON *item;
    uint32_t i = 0, span[2];
    r->what = "layers";
    cJSON_ArrayForEach(item, get(json, "layers")) {
        r->index = i;
        if (i == out->n_layers || !numbers(item, span, 2, NULL) ||
            span[0] > n_insns || span[1] > n_insns - span[0]) {
            bad(r, "instructions", "are not [first, how many] of a layer");
            break;
        }
        layer[i].first_insn = span[0];
        layer[i++].n_insns = span[1];
    }
    out->layer = layer;
}

static bool read_weights(ImageReader *r, const cJSON *json) {
    const cJSON *item = get(json, "weights");
    if (!item)
        return true;
    const char *base = cJSON_IsString(item) ? item->valuestring : "";
    if (!*base || strchr(base, '/')) {
        diag_error(r->diag, (Loc){r->file, 0, 0},
                   "amphora.image.weights is not the name of a file beside "
                   "this one");
        return false;
    }
    const char *path =
        arena_printf(r->arena, "%s/%s", file_dir(r->arena, r->file), base);
    return file_read(r->arena, r->diag, path, &r->weights);
}

bool image_read(Arena *arena, Diag *diag, const HwSpec *spec, const char *file,
                const char *network, const cJSON *json, const cJSON *root,
                uint32_t n_insns, Image *out) {
    ImageReader r = {.arena = arena,
                     .diag = diag,
                     .spec = spec,
                     .file = file,
                     .what = "",
                     .ok = true};
    if (!read_weights(&r, json))
        return false;
    out->blob =
        items(&r, json, "blobs", read_blob, sizeof(Blob), &out->n_blobs);
    out->act =
        items(&r, json, "acts", read_act, sizeof(LayerAct), &out->n_acts);
    if (get(json, "quants"))
        out->quant = items(&r, json, "quants", read_layer_quant,
                           sizeof(LayerQuant), &out->n_quants);
    out->input =
        items(&r, json, "inputs", read_region, sizeof(Region), &out->n_inputs);
    out->output = items(&r, json, "outputs", read_region, sizeof(Region),
                        &out->n_outputs);
    HostLayer *host =
        items(&r, json, "hosts", read_host, sizeof(HostLayer), &out->n_hosts);
    listing_name_functions(arena, network, out->n_hosts, host);
    if (r.ok)
        listing_count_hosts(arena, spec, out->n_hosts, host, out->n_blobs,
                            out->blob);
    out->host = host;
    read_layers(&r, json, root, n_insns, out);
    const cJSON *element = get(get(root, "arguments"), "bytesperpixels");
    if (!number_to_u32(element, &out->element))
        out->element = 0;
    return r.ok;
}
