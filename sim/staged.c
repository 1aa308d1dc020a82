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

static bool lies_inside(Run *run, uint32_t memory, uint64_t at,
                        uint64_t cells) {
    const HwMemory *m = &run->spec->memory[memory];
    uint64_t bytes = cells * m->layout->element;
    const char *what = memory == run->spec->weights ? "weights" : "biases";
    if (at > m->size || bytes > m->size - at) {
        fault(run, "%s at %s take %" PRIu64 " bytes, more than there are", what,
              address_text(run, memory, at), bytes);
        return false;
    }
    if (at % m->align == 0)
        return true;
    fault(run, "%s at %s are not aligned to %u bytes", what,
          address_text(run, memory, at), m->align);
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

bool staged_place(Run *run, const char *layer, uint32_t memory, uint64_t at,
                  uint32_t first, uint32_t n, uint32_t taps, Place *out) {
    if (!lies_inside(run, memory, at, (uint64_t)n * taps))
        return false;
    uint32_t element = run->spec->memory[memory].layout->element;
    uint64_t start = at / element, cells = (uint64_t)n * taps;
    *out = (Place){.memory = memory,
                   .weights_of = owner_of(run, layer),
                   .role = memory == run->spec->weights ? "weights" : "bias",
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

/* Of which output channels of a layer how much was loaded. */
struct StagedLayer {
    const char *layer;
    uint32_t n;
    uint64_t *upto; /* by channel: so many of its weights, in their order */
    bool deconv;
};

/* Pixels that the layer reads of an input channel, if it is an inner product;
 * else 0. */
static uint32_t pixels_of(Run *run, const char *layer) {
    const Listing *listing = run->listing;
    bool listed = run->products != NULL;
    if (!listed)
        run->products = map_new(run->hold);
    for (uint32_t i = 0; i < listing->n && !listed; i++) {
        HwFields f;
        if (insn_op(run->spec, &listing->insn[i]) != HW_OP_FC)
            continue;
        insn_fields(run->spec, &listing->insn[i], &f);
        int64_t w = f.set[HW_F_IN_W] ? f.num[HW_F_IN_W] : 1;
        int64_t h = f.set[HW_F_IN_H] ? f.num[HW_F_IN_H] : w;
        bool may = w > 0 && h > 0 && w <= UINT16_MAX && h <= UINT16_MAX;
        map_put(run->products, work_layer(run, &listing->insn[i], HW_OP_FC),
                may ? (uint32_t)(w * h) : 0);
    }
    return map_get(run->products, layer, 0);
}

static bool is_deconv(Run *run, const char *layer) {
    const Listing *listing = run->listing;
    bool listed = run->deconvs != NULL;
    if (!listed)
        run->deconvs = map_new(run->hold);
    for (uint32_t i = 0; i < listing->n && !listed; i++)
        if (insn_op(run->spec, &listing->insn[i]) == HW_OP_DECONV)
            map_put(run->deconvs,
                    work_layer(run, &listing->insn[i], HW_OP_DECONV), 1);
    return map_get(run->deconvs, layer, 0);
}

static bool deconv_known(Run *run, const char *layer) {
    for (uint32_t i = 0; i < run->staged.n; i++)
        if (strcmp(run->staged.at[i]->layer, layer) == 0)
            return run->staged.at[i]->deconv;
    return is_deconv(run, layer);
}

static struct StagedLayer *layer_known(Run *run, const char *layer,
                                       uint32_t n) {
    const char *key = arena_printf(run->work, "%u %s", n, layer);
    if (!run->staged_at)
        run->staged_at = map_new(run->hold);
    uint32_t at = map_get(run->staged_at, key, UINT32_MAX);
    if (at != UINT32_MAX)
        return run->staged.at[at];
    map_put(run->staged_at, key, run->staged.n);
    struct StagedLayer *made = ARENA_NEW(run->hold, struct StagedLayer);
    made->layer = arena_strdup(run->hold, layer);
    made->n = n;
    made->upto = ARENA_ARRAY(run->hold, uint64_t, n + 1);
    made->deconv = deconv_known(run, layer);
    vec_push(run->hold, &run->staged, made);
    return made;
}

/* Weights of an output channel behind each other: all of them, and those of one
 * input channel, of which a block has some. */
typedef struct Row {
    uint64_t all, each, first, some;
} Row;

/* What an instruction says of taps is what it has of each input channel. */
static Row row_of(Run *run, const Work *w) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    const Shape *shape = blob ? &blob->value.shape : NULL;
    uint64_t own = w->weights_at.w;
    if (!shape || !shape_dim(shape, 0) || !w->partial ||
        deconv_known(run, w->layer))
        return (Row){own, 1, 0, 1};
    uint64_t each = 1;
    for (uint32_t i = 2; i < shape->rank; i++)
        each *= shape_dim(shape, i);
    uint64_t all = shape_count(shape) / shape_dim(shape, 0);
    uint32_t pixels = shape->rank == 2 ? pixels_of(run, w->layer) : 0;
    each = pixels && all % pixels == 0 ? pixels : each;
    bool told = w->weights_at.taps.n;
    return (Row){all, each, told ? w->weights_at.taps.first : 0,
                 told ? w->weights_at.taps.n : each};
}

static void count_once(Run *run, const Work *w, uint32_t channels) {
    struct StagedLayer *known =
        layer_known(run, w->weights_at.weights_of, channels);
    Row row = row_of(run, w);
    uint64_t inputs = w->weights_at.w / row.some;
    uint64_t from = w->first_in * row.each + row.first * inputs;
    uint64_t end = from + w->weights_at.w;
    for (uint32_t c = w->first_c; c < w->first_c + w->weights_at.c; c++)
        if (known->upto[c] >= from && known->upto[c] < end) {
            run->staged_once += end - known->upto[c];
            known->upto[c] = end;
        }
}

uint64_t staged_once(const Run *run) {
    return run->staged_once * run->spec->element;
}

uint32_t staged_channels(Run *run, const Work *w) {
    const Blob *blob = blob_find(run, w->layer, "weight");
    uint64_t taps = row_of(run, w).all;
    uint64_t n = blob ? shape_count(&blob->value.shape) / taps
                      : (uint64_t)w->first_c + w->weights_at.c;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Weights of all of the layer's channels; a quantised layer's are codes. */
static const float *layer_weights(Run *run, const Work *w, uint32_t channels) {
    uint32_t taps = (uint32_t)row_of(run, w).all;
    uint64_t n = (uint64_t)channels * taps;
    BlobWish wish = {"weight", {2, {channels, taps}}, 0, blob_spread(taps)};
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

/* Of all weights those of the block. */
static const float *block_of(Run *run, const Work *w, const float *all) {
    const Place *place = &w->weights_at;
    Row row = row_of(run, w);
    all += w->first_c * row.all + w->first_in * row.each + row.first;
    if (row.all == place->w)
        return all;
    float *out = ARENA_ARRAY(run->work, float, (uint64_t)place->c * place->w);
    for (uint64_t c = 0; c < place->c; c++)
        for (uint64_t i = 0; i < place->w / row.some; i++)
            memcpy(out + c * place->w + i * row.some,
                   all + c * row.all + i * row.each, row.some * sizeof *out);
    return out;
}

static bool inputs_exist(Run *run, const Work *w) {
    Row row = row_of(run, w);
    uint64_t n = w->weights_at.w / row.some;
    if (row.first + row.some > row.each) {
        fault(run,
              "loads weights of taps %u to %u; the kernel of %s has %" PRIu64,
              w->taps.first, w->taps.first + w->taps.n - 1, w->layer, row.each);
        return false;
    }
    if (w->weights_at.w % row.some == 0 &&
        (w->first_in + n) * row.each <= row.all)
        return true;
    fault(run,
          "loads %u weights a channel from input channel %u on; %s has "
          "%" PRIu64,
          w->weights_at.w, w->first_in, w->layer, row.all);
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
        values = block_of(run, w, values);
    }
    uint32_t writer = memory_writer(run, place, w->name, WRITER_ENGINE);
    memory_write(run, place, place_box(place), writer, values);
    return true;
}

static bool write_biases(Run *run, const Work *w) {
    const Place *place = &w->bias_at;
    const Blob *blob = blob_find(run, w->layer, "bias");
    uint64_t n = blob ? shape_count(&blob->value.shape) : 0;
    if (blob ? w->first_c >= n || place->c > n - w->first_c
             : run->listing->has_image) {
        fault(run, "loads biases of channels %u to %u; %s has %" PRIu64,
              w->first_c, w->first_c + place->c - 1, w->layer, n);
        return false;
    }
    float *none = NULL; /* layers take them from the image */
    if (!run->options.memory_only)
        none = ARENA_ARRAY(run->work, float, place->c);
    uint32_t writer = memory_writer(run, place, w->name, WRITER_ENGINE);
    memory_write(run, place, place_box(place), writer, none);
    return true;
}

static void count_load(Run *run, const Work *w, const Place *place,
                       uint64_t elements) {
    uint64_t bytes = elements * run->spec->element;
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
}

static bool load_biases(Run *run, const Work *w) {
    uint64_t elements = hwspec_bias_elements(run->spec, w->bias_at.c);
    if (!write_biases(run, w))
        return false;
    run->staged_once += elements;
    count_load(run, w, &w->bias_at, elements);
    return true;
}

bool staged_load(Run *run, const Work *w) {
    if (w->op == HW_OP_LOAD_BIAS)
        return load_biases(run, w);
    const Place *place = &w->weights_at;
    uint32_t channels = staged_channels(run, w);
    if (!channels_exist(run, w, channels) || !inputs_exist(run, w) ||
        !write_block(run, w, channels))
        return false;
    uint64_t elements = box_count(place, place_box(place));
    count_once(run, w, channels);
    count_load(run, w, place, elements);
    return true;
}

/* ---- what is read ---- */

static bool read_biases(Run *run, const Place *place) {
    Box box = place_box(place);
    float *values = NULL;
    if (!memory_holds(run, place, box, "biases"))
        return false;
    if (!run->options.memory_only)
        values = ARENA_ARRAY(run->work, float, box_count(place, box));
    memory_read(run, place, box, "biases", values);
    return true;
}

bool staged_read(Run *run, const Work *w, const float **out) {
    const Place *place = &w->weights_at;
    Box box = place_box(place);
    *out = NULL;
    if (!memory_holds(run, place, box, "weights"))
        return false;
    if (w->reads_bias && !read_biases(run, &w->bias_at))
        return false;
    float *values = NULL;
    if (!run->options.memory_only)
        values = ARENA_ARRAY(run->work, float, box_count(place, box));
    memory_read(run, place, box, "weights", values);
    *out = values;
    return true;
}
