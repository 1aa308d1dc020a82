/* staged.c - weights as operands in active memory; see staged.h. */
#include "sim/staged.h"

#include "base/const.h"
#include "hwspec/cost.h"
#include "sim/blobs.h"
#include "sim/engine.h"

#include <inttypes.h>
#include <string.h>

/* ---- whose they are ---- */

static bool same_factors(const double *a, const double *b, uint32_t n) {
    return a == b || (a && b && memcmp(a, b, n * sizeof *a) == 0);
}

static bool same_weights(const Const *a, const Const *b) {
    const Shape *shape = &a->shape;
    if (a->kind != b->kind || a->data != b->data || a->zero != b->zero ||
        a->seed != b->seed || a->mean != b->mean || a->spread != b->spread ||
        a->groups != b->groups || shape->rank != b->shape.rank ||
        memcmp(a->order, b->order, sizeof a->order) != 0)
        return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dim[i] != b->shape.dim[i])
            return false;
    return same_factors(a->mul0, b->mul0, shape_dim(shape, 0)) &&
           same_factors(a->mul1, b->mul1, shape_dim(shape, 1));
}

/* The first layer that has the same weights: those of several images do. */
static const char *owner_of(Run *run, const char *layer) {
    const Image *image = &run->listing->image;
    const Blob *own = blob_find(run, layer, "weight");
    for (uint32_t i = 0; own && i < image->n_blobs; i++) {
        const Blob *blob = &image->blob[i];
        if (strcmp(blob->role, "weight") == 0 &&
            same_weights(&blob->value, &own->value))
            return blob->layer;
    }
    return layer;
}

/* ---- where they lie ---- */

static bool lies_inside(Run *run, uint64_t at, uint32_t n, uint32_t taps) {
    const HwMemory *m = &run->spec->memory[run->spec->weights];
    uint64_t bytes = (uint64_t)n * taps * m->layout->element;
    if (at > m->size || bytes > m->size - at) {
        fault(run, "weights at %s take %" PRIu64 " bytes, more than there are",
              address_text(run, run->spec->weights, at), bytes);
        return false;
    }
    if (at % m->align == 0)
        return true;
    fault(run, "weights at %s are not aligned to %u bytes",
          address_text(run, run->spec->weights, at), m->align);
    return false;
}

static const uint64_t *multiples(Run *run, uint32_t n, uint64_t step) {
    uint64_t *at = ARENA_ARRAY(run->work, uint64_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        at[i] = i * step;
    return at;
}

static const uint32_t *single_copies(Run *run, uint32_t n) {
    uint32_t *copies = ARENA_ARRAY(run->work, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        copies[i] = 1;
    return copies;
}

bool staged_place(Run *run, const char *layer, uint64_t at, uint32_t first,
                  uint32_t n, uint32_t taps, Place *out) {
    if (!lies_inside(run, at, n, taps))
        return false;
    uint32_t memory = run->spec->weights;
    uint32_t element = run->spec->memory[memory].layout->element;
    uint64_t start = at / element, cells = (uint64_t)n * taps;
    *out = (Place){.memory = memory,
                   .weights_of = owner_of(run, layer),
                   .row = first,
                   .c = n,
                   .h = 1,
                   .w = taps,
                   .first = start,
                   .end = start + cells,
                   .start = start,
                   .c_at = multiples(run, n, taps),
                   .h_at = multiples(run, 1, 0),
                   .w_at = multiples(run, taps, 1),
                   .copies = single_copies(run, n)};
    Cells *held = &run->cells[memory];
    if (at + cells * element > held->touched)
        held->touched = at + cells * element;
    return true;
}

/* ---- what is loaded ---- */

/* Output channels of a layer of which weights were loaded. */
struct StagedLayer {
    const char *layer;
    uint32_t n;
    uint64_t *bits; /* by channel */
    bool deconv;
};

static bool is_deconv(Run *run, const char *layer) {
    const Listing *listing = run->listing;
    for (uint32_t i = 0; i < listing->n; i++)
        if (work_makes(run, &listing->insn[i], HW_OP_DECONV, layer))
            return true;
    return false;
}

static struct StagedLayer *layer_known(Run *run, const char *layer,
                                       uint32_t n) {
    for (uint32_t i = 0; i < run->staged.n; i++) {
        struct StagedLayer *known = run->staged.at[i];
        if (known->n == n && strcmp(known->layer, layer) == 0)
            return known;
    }
    struct StagedLayer *made = ARENA_NEW(run->hold, struct StagedLayer);
    made->layer = arena_strdup(run->hold, layer);
    made->n = n;
    made->bits = ARENA_ARRAY(run->hold, uint64_t, n / 64 + 1);
    made->deconv = is_deconv(run, layer);
    vec_push(run->hold, &run->staged, made);
    return made;
}

static void count_once(Run *run, const Work *w, uint32_t channels) {
    struct StagedLayer *known =
        layer_known(run, w->weights_at.weights_of, channels);
    for (uint32_t c = w->first_c; c < w->first_c + w->weights_at.c; c++) {
        uint64_t bit = UINT64_C(1) << c % 64;
        if (!(known->bits[c / 64] & bit))
            run->staged_once += w->weights_at.w;
        known->bits[c / 64] |= bit;
    }
}

uint64_t staged_once(const Run *run) {
    return run->staged_once * run->spec->element;
}

uint32_t staged_channels(Run *run, const Work *w) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    uint64_t taps = w->weights_at.w;
    uint64_t n = blob ? shape_count(&blob->value.shape) / taps
                      : (uint64_t)w->first_c + w->weights_at.c;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Weights of all of the layer's channels; a quantised layer's are codes. */
static const float *layer_weights(Run *run, const Work *w, uint32_t channels) {
    uint32_t taps = w->weights_at.w;
    uint64_t n = (uint64_t)channels * taps;
    BlobWish wish = {
        "weight", {2, {channels, taps}}, 0, blob_spread(w->weights_at.w)};
    if (!blob_quant(run, w->layer)) {
        BlobCache own = run->blobs;
        run->blobs = run->staged_blobs;
        const float *values = blob_values(run, w->layer, &wish);
        run->staged_blobs = run->blobs;
        run->blobs = own;
        return values;
    }
    const int32_t *code = blob_codes(run, w->layer, "weight", n, 2);
    float *values = code ? ARENA_ARRAY(run->work, float, n) : NULL;
    for (uint64_t i = 0; code && i < n; i++)
        values[i] = (float)code[i];
    return values;
}

/* Of [groups][from][to] filters of `taps` weights those of [to][from]. */
static const float *exchanged(Run *run, const float *in, uint32_t groups,
                              uint32_t from, uint32_t to, uint32_t taps) {
    size_t n = (size_t)from * to * taps;
    float *out = ARENA_ARRAY(run->work, float, groups *n);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t i = 0; i < from; i++)
            for (uint32_t k = 0; k < to; k++)
                memcpy(out + g * n + ((size_t)k * from + i) * taps,
                       in + g * n + ((size_t)i * to + k) * taps,
                       taps * sizeof *out);
    return out;
}

const float *staged_as_stored(Run *run, const Work *w, const float *loaded) {
    uint32_t groups = work_groups(run, w);
    return exchanged(run, loaded, groups, w->out.c / groups, w->in.c / groups,
                     w->conv[ROWS].kernel * w->conv[COLS].kernel);
}

/* A transposed convolution's are [in][out of a group][taps] in the image. */
static const float *by_output(Run *run, const Work *w, const float *values) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    const Shape *shape = blob ? &blob->value.shape : NULL;
    if (!shape || shape->rank != 4)
        return values;
    uint32_t in_c = shape_dim(shape, 0);
    uint32_t taps = shape_dim(shape, 2) * shape_dim(shape, 3);
    uint32_t of_group = w->weights_at.w / taps;
    if (!of_group || w->weights_at.w % taps || in_c % of_group)
        return values;
    return exchanged(run, values, in_c / of_group, of_group,
                     shape_dim(shape, 1), taps);
}

static bool channels_exist(Run *run, const Work *w, uint32_t channels) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    if (!blob && run->listing->has_image) {
        fault(run, "the image has no weights of %s", w->layer);
        return false;
    }
    if (w->weights_at.c <= channels && w->first_c <= channels - w->weights_at.c)
        return true;
    fault(run, "loads weights of channels %u to %u; %s has %u", w->first_c,
          w->first_c + w->weights_at.c - 1, w->layer, channels);
    return false;
}

static bool write_block(Run *run, const Work *w, uint32_t channels) {
    const Place *place = &w->weights_at;
    const float *values = NULL;
    if (!run->options.memory_only) {
        values = layer_weights(run, w, channels);
        if (!values)
            return false;
        if (layer_known(run, w->layer, channels)->deconv)
            values = by_output(run, w, values);
        values += (size_t)w->first_c * place->w;
    }
    uint32_t writer = memory_writer(run, place, w->name, WRITER_ENGINE);
    memory_write(run, place, place_box(place), writer, values);
    return true;
}

bool staged_load(Run *run, const Work *w) {
    const Place *place = &w->weights_at;
    uint32_t channels = staged_channels(run, w);
    if (!channels_exist(run, w, channels) || !write_block(run, w, channels))
        return false;
    uint64_t elements = box_count(place, place_box(place));
    uint64_t bytes = elements * run->spec->element;
    count_once(run, w, channels);
    run->result->backing_read += bytes;
    run->read[w->from] += bytes;
    SimEvent event = {.op = w->op,
                      .read = bytes,
                      .least = bytes,
                      .weights = bytes,
                      .outside = w->from,
                      .out = span_of(run, place)};
    event.cycles =
        hwspec_staged_cycles(run->spec, &run->spec->memory[w->from], elements);
    event.cost[SIM_TRANSFER] = event.cycles;
    timeline_add(run, unit_that_moves(run, w), &event);
    return true;
}

/* ---- what is read ---- */

bool staged_read(Run *run, const Work *w, const float **out) {
    const Place *place = &w->weights_at;
    Box box = place_box(place);
    *out = NULL;
    if (!memory_holds(run, place, box, "weights"))
        return false;
    float *values = NULL;
    if (!run->options.memory_only)
        values = ARENA_ARRAY(run->work, float, box_count(place, box));
    memory_read(run, place, box, "weights", values);
    *out = values;
    return true;
}
