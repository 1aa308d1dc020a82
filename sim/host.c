/* host.c - layers of the host: from regions to regions; see host.h. */
#include "sim/host.h"
#include "sim/blobs.h"
#include "sim/engine.h"

#include <string.h>

bool region_place(Run *run, const Region *region, const char *what,
                  Place *out) {
    uint32_t c, h, w;
    shape_chw(&region->shape, &c, &h, &w);
    Volume whole = region->whole;
    bool part = whole.c != c || region->part_c != 0;
    if (!(run->spec->replication.memories >> region->memory & 1))
        whole.repl = (Repl){0};
    Spot spot = {.what = what,
                 .memory = region->memory,
                 .offset = region->offset,
                 .whole = whole,
                 .part_c = region->part_c,
                 .c = c,
                 .part = part};
    return place_make(run, &spot, out);
}

/* ---- attributes ---- */

const AttrPair *host_attr(const HostLayer *layer, const char *name) {
    return attr_find(layer->attr, layer->n_attrs, name);
}

double host_number(const HostLayer *layer, const char *name, uint32_t at,
                   double absent) {
    return attr_number(host_attr(layer, name), at, absent);
}

uint32_t host_count(const HostLayer *layer, const char *name, uint32_t at,
                    uint32_t absent) {
    return attr_count(host_attr(layer, name), at, absent);
}

bool host_is(const HostLayer *layer, const char *name, const char *word) {
    return attr_is(host_attr(layer, name), word);
}

const float *host_blob(const HostCall *call, const char *role, uint64_t n) {
    bool sane = n <= UINT32_MAX;
    BlobWish wish = {role, {1, {sane ? (uint32_t)n : 0}}, 0, 0};
    return sane ? blob_values(call->run, call->layer->name, &wish) : NULL;
}

Extent host_extent(const Region *region) {
    Extent e;
    shape_chw(&region->shape, &e.c, &e.h, &e.w);
    return e;
}

Channels host_channels(const Region *region) {
    uint64_t images = shape_dim(&region->shape, 0);
    uint64_t n = shape_dim(&region->shape, 1);
    if (region->shape.rank < 2) { /* as shapes without axis 1 are read */
        n = 1;
        images = 1;
    }
    return (Channels){images, n, shape_count(&region->shape) / images / n};
}

bool host_act(const HostCall *call, const Channels *size, float *value) {
    const HostLayer *layer = call->layer;
    const AttrPair *act = host_attr(layer, "act");
    ActTask task;
    if (!act || !act->word)
        return true;
    if (!act_named(act->word, host_number(layer, "alpha", 0, 0),
                   host_number(layer, "lo", 0, 0),
                   host_number(layer, "hi", 0, 0), &task)) {
        fault(call->run, "there is no activation \"%s\"", act->word);
        return false;
    }
    if (strcmp(act->word, "prelu") == 0) {
        task.slope = host_blob(call, "slope", size->n);
        if (!task.slope) {
            fault(call->run, "it has no slopes");
            return false;
        }
    }
    Extent image = {(uint32_t)size->n, 1, (uint32_t)size->plane};
    for (uint64_t i = 0; i < size->images; i++) {
        Patch patch = {image, whole_box(&image), value};
        act_run(&task, &patch);
        value += size->n * size->plane;
    }
    return true;
}

/* ---- running ---- */

const HostLayer *host_layer(const Run *run, const char *name) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; run->listing->has_image && i < image->n_hosts; i++)
        if (strcmp(image->host[i].name, name) == 0)
            return &image->host[i];
    return NULL;
}

static const HostRow *find_kind(const char *name) {
    const HostRow *const tables[] = {host_windows, host_shapes, host_tensors,
                                     host_numbers};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const HostRow *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

/* Without arithmetic nobody looks into it. */
static float *region_buffer(Run *run, const Region *region) {
    if (run->options.memory_only)
        return ARENA_NEW(run->work, float);
    Extent e = host_extent(region);
    return patch_new(run->work, e, whole_box(&e)).at;
}

static const float *read_region(Run *run, const Region *region) {
    Place place;
    if (!region_place(run, region, "operand", &place) ||
        !memory_holds(run, &place, place_box(&place), "operand"))
        return NULL;
    float *value = region_buffer(run, region);
    bool values = !run->options.memory_only;
    memory_read(run, &place, place_box(&place), "operand",
                values ? value : NULL);
    return value;
}

static void write_region(Run *run, const Region *region, const char *name,
                         const float *value) {
    Place place;
    if (!region_place(run, region, "result", &place))
        return;
    bool values = !run->options.memory_only;
    uint32_t writer = memory_writer(run, &place, name, WRITER_HOST);
    memory_write(run, &place, place_box(&place), writer, values ? value : NULL);
    if (!values)
        return;
    Extent size = {place.c, place.h, place.w};
    show_result(run, name, &size, value);
}

/* The same layer for each image by itself. */
static bool plain_images(const HostRow *kind, const HostCall *call,
                         uint32_t images) {
    HostLayer one = *call->layer;
    Region in = one.in[0];
    uint64_t in_step = shape_count(&in.shape) / images;
    uint64_t out_step = shape_count(&one.out[0].shape) / images;
    in.shape.dim[0] = one.out[0].shape.dim[0] = 1;
    one.in = &in;
    bool good = true;
    for (uint32_t i = 0; good && i < images; i++) {
        const float *from = call->in[0] + i * in_step;
        float *to = call->out[0] + i * out_step;
        HostCall image = {call->run, &one, call->quant, &from, &to};
        good = kind->run(&image);
    }
    return good;
}

bool host_plain(const HostRow *kind, const HostCall *call) {
    const HostLayer *layer = call->layer;
    uint32_t images = layer->n_in ? shape_dim(&layer->in[0].shape, 0) : 1;
    bool split = (kind->style & HOST_BY_IMAGE) && images > 1 &&
                 layer->in[0].shape.rank == 4 &&
                 shape_dim(&layer->out[0].shape, 0) == images;
    return split ? plain_images(kind, call, images) : kind->run(call);
}

bool host_reals(const HostRow *kind, const HostCall *call) {
    Channels size = host_channels(&call->layer->out[0]);
    return host_plain(kind, call) &&
           ((kind->style & HOST_ACTS) || host_act(call, &size, call->out[0]));
}

static bool compute_outside(const HostCall *call) {
    const SimOptions *options = &call->run->options;
    uint32_t index = (uint32_t)(call->layer - call->run->listing->image.host);
    return options->host &&
           options->host(options->host_context, index, call->in, call->out);
}

static bool compute(const HostRow *kind, const HostCall *call) {
    return host_has_codes(call->layer) ? host_codes(kind, call)
                                       : host_reals(kind, call);
}

static void run_layer(Run *run, const HostLayer *layer) {
    const float **in = ARENA_ARRAY(run->work, const float *, layer->n_in);
    float **out = ARENA_ARRAY(run->work, float *, layer->n_out);
    const HostRow *kind = find_kind(layer->kind);
    if (!kind || layer->n_in < kind->n_in || layer->n_out == 0) {
        fault(run, "the host knows no layer of kind \"%s\" with %u operands",
              layer->kind, layer->n_in);
        return;
    }
    for (uint32_t i = 0; i < layer->n_in; i++)
        if (!(in[i] = read_region(run, &layer->in[i])))
            return;
    for (uint32_t i = 0; i < layer->n_out; i++)
        out[i] = region_buffer(run, &layer->out[i]);
    HostCall call = {run, layer, NULL, in, out};
    if (!run->options.memory_only && !compute_outside(&call) &&
        !compute(kind, &call))
        return;
    for (uint32_t i = 0; i < layer->n_out; i++)
        write_region(run, &layer->out[i],
                     layer->n_out == 1 ? layer->name : layer->out[i].name,
                     out[i]);
}

void host_run(Run *run, const Work *work) {
    const HostLayer *layer = host_layer(run, work->name);
    if (!layer && run->listing->has_image) {
        fault(run, "the image has no host layer of this name");
    } else if (!layer) {
        note(run, "host layer %s skipped: its operands are not known",
             work->name);
    } else {
        run->on_host = true;
        run_layer(run, layer);
        run->on_host = false;
    }
    run->use[run->spec->n_engines + 1].instructions++;
}
