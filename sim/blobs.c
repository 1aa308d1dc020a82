/* blobs.c - constants of layers; see blobs.h. Those asked for last are kept:
 * tiles of one layer follow each other, or those of the layers of a group. */
#include "sim/blobs.h"

#include "base/rng.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct BlobValues {
    const char *layer, *role;
    uint64_t n;
    float *value;
} BlobValues;

/* 1 GiB of floats: more weights than any layer has. */
static const uint64_t MAX_VALUES = UINT64_C(1) << 28;
/* No other layer's are kept beside more than these. */
static const uint64_t MAX_KEPT = UINT64_C(1) << 25;

const Blob *blob_find(const Run *run, const char *layer, const char *role) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; run->listing->has_image && i < image->n_blobs; i++)
        if (strcmp(image->blob[i].layer, layer) == 0 &&
            strcmp(image->blob[i].role, role) == 0)
            return &image->blob[i];
    return NULL;
}

const LayerAct *blob_act(const Run *run, const char *layer) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; run->listing->has_image && i < image->n_acts; i++)
        if (strcmp(image->act[i].layer, layer) == 0)
            return &image->act[i];
    return NULL;
}

const QuantLayer *blob_quant(const Run *run, const char *layer) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; run->listing->has_image && i < image->n_quants; i++)
        if (strcmp(image->quant[i].layer, layer) == 0)
            return &image->quant[i].numbers;
    return NULL;
}

double blob_spread(uint64_t fan_in) {
    return sqrt(6.0 / (double)(fan_in ? fan_in : 1));
}

/* What was handed out for one layer stays while that is asked for. */
static void keep_layer(BlobCache *cache, const char *layer) {
    if (cache->layer && strcmp(cache->layer, layer) == 0)
        return;
    if (!cache->layer || cache->n_kept > MAX_KEPT) {
        arena_reset(cache->arena);
        cache->held.at = NULL;
        cache->held.n = cache->held.cap = 0;
        cache->n_kept = 0;
    }
    cache->layer = arena_strdup(cache->arena, layer);
}

static const float *held_values(const BlobCache *cache, const char *role,
                                uint64_t n) {
    for (uint32_t i = cache->held.n; i-- > 0;) {
        const BlobValues *held = cache->held.at[i];
        if (held->n == n && strcmp(held->role, role) == 0 &&
            strcmp(held->layer, cache->layer) == 0)
            return held->value;
    }
    return NULL;
}

/* The constant to read, and false if there is none. */
static bool find_source(Run *run, const char *layer, const BlobWish *wish,
                        Const *out) {
    const Blob *blob = blob_find(run, layer, wish->role);
    if (blob) {
        *out = blob->value;
        if (shape_count(&out->shape) == shape_count(&wish->shape))
            return true;
        fault(run, "its %s is %s in the image, but must be %s", wish->role,
              shape_text(run->work, &out->shape),
              shape_text(run->work, &wish->shape));
        return false;
    }
    uint64_t salt = rng_seed(wish->role, run->options.seed);
    *out = (Const){.shape = wish->shape,
                   .kind = CONST_SEEDED,
                   .seed = rng_seed(layer, salt),
                   .mean = wish->mean,
                   .spread = wish->spread};
    return !run->listing->has_image;
}

const int32_t *blob_codes(Run *run, const char *layer, const char *role,
                          uint64_t n, uint32_t size) {
    const Blob *blob = blob_find(run, layer, role);
    if (!blob)
        return NULL;
    Const codes = const_codes(&blob->value);
    if (shape_count(&codes.shape) != n || n > MAX_VALUES ||
        !const_has_codes(&codes, size)) {
        fault(run, "its %s is not %" PRIu64 " codes of at most %u bytes", role,
              n, size);
        return NULL;
    }
    double *value = ARENA_ARRAY(run->work, double, n);
    int32_t *code = ARENA_ARRAY(run->work, int32_t, n);
    const_read_f64(&codes, value);
    for (uint64_t i = 0; i < n; i++)
        code[i] = (int32_t)value[i];
    return code;
}

const float *blob_values(Run *run, const char *layer, const BlobWish *wish) {
    uint64_t n = shape_count(&wish->shape);
    if (n > MAX_VALUES) {
        fault(run, "its %s of %s is too large", wish->role,
              shape_text(run->work, &wish->shape));
        return NULL;
    }
    BlobCache *cache = &run->blobs;
    keep_layer(cache, layer);
    const float *known = held_values(cache, wish->role, n);
    Const source;
    if (known || !find_source(run, layer, wish, &source))
        return known;
    BlobValues *made = ARENA_NEW(cache->arena, BlobValues);
    made->layer = cache->layer;
    made->role = arena_strdup(cache->arena, wish->role);
    made->n = n;
    made->value = ARENA_ARRAY(cache->arena, float, n);
    const_read(&source, made->value);
    vec_push(cache->arena, &cache->held, made);
    cache->n_kept += n;
    return made->value;
}
