/* host_call.c - what the layers of the host ask of a call; see host.h. */
#include "sim/blobs.h"
#include "sim/host.h"

#include <string.h>

const HostLayer *host_layer(const Run *run, const char *name) {
    const Image *image = &run->listing->image;
    for (uint32_t i = 0; run->listing->has_image && i < image->n_hosts; i++)
        if (strcmp(image->host[i].name, name) == 0)
            return &image->host[i];
    return NULL;
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

bool host_lines(const HostCall *call, uint32_t axis, uint32_t axes,
                Lines *out) {
    const Shape *shape = &call->layer->in[0].shape;
    uint32_t groups = host_count(call->layer, "groups", 0, 1);
    *out = (Lines){1, 1, 1};
    for (uint32_t i = 0; i < shape->rank; i++)
        *(i < axis          ? &out->outer
          : i - axis < axes ? &out->n
                            : &out->step) *= shape->dim[i];
    if (axis >= shape->rank || !groups || shape->dim[axis] % groups ||
        shape_count(shape) != shape_count(&call->layer->out[0].shape))
        return false;
    out->outer *= groups;
    out->n /= groups;
    return true;
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

/* ---- shapes ---- */

uint64_t host_broadcast(const Shape *in, const Shape *out, uint64_t i) {
    uint64_t index = 0, stride = 1;
    uint32_t shift = out->rank - in->rank;
    for (uint32_t axis = out->rank; axis-- > 0; i /= out->dim[axis])
        if (axis >= shift) {
            uint64_t dim = in->dim[axis - shift];
            index += (dim == 1 ? 0 : i % out->dim[axis]) * stride;
            stride *= dim;
        }
    return index;
}

bool host_broadcasts(const Shape *in, const Shape *out) {
    if (in->rank > out->rank)
        return false;
    for (uint32_t i = 0; i < in->rank; i++) {
        uint32_t to = out->dim[out->rank - in->rank + i];
        if (in->dim[i] != to && in->dim[i] != 1)
            return false;
    }
    return true;
}

/* ---- a kind, called ---- */

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
