/* host_shapes.c - layers of the host that only move elements; see host.h.
 *
 * A tensor along one axis is outer x n x inner elements. */
#include "sim/host.h"
#include "sim/quant.h"

#include <string.h>

typedef struct Along {
    uint64_t outer, n, inner;
} Along;

static Along along(const Shape *shape, uint32_t axis) {
    Along a = {1, shape_dim(shape, axis), 1};
    for (uint32_t i = 0; i < shape->rank; i++)
        if (i < axis)
            a.outer *= shape->dim[i];
        else if (i > axis)
            a.inner *= shape->dim[i];
    return a;
}

static bool misfit(const HostCall *call) {
    fault(call->run, "its operands and results do not fit together");
    return false;
}

static bool run_concat(const HostCall *call) {
    const HostLayer *layer = call->layer;
    uint32_t axis = host_count(layer, "axis", 0, 1);
    Along whole = along(&layer->out[0].shape, axis);
    uint64_t at = 0;
    for (uint32_t i = 0; i < layer->n_in; i++) {
        Along part = along(&layer->in[i].shape, axis);
        if (part.outer != whole.outer || part.inner != whole.inner ||
            part.n > whole.n - at)
            return misfit(call);
        uint64_t run = part.n * part.inner;
        for (uint64_t o = 0; o < part.outer; o++)
            memcpy(call->out[0] + (o * whole.n + at) * whole.inner,
                   call->in[i] + o * run, run * sizeof(float));
        at += part.n;
    }
    return at == whole.n || misfit(call);
}

static bool run_slice(const HostCall *call) {
    const HostLayer *layer = call->layer;
    uint32_t axis = host_count(layer, "axis", 0, 1);
    uint64_t begin = host_count(layer, "begin", 0, 0);
    Along whole = along(&layer->in[0].shape, axis);
    Along part = along(&layer->out[0].shape, axis);
    if (part.outer != whole.outer || part.inner != whole.inner ||
        begin > whole.n || part.n > whole.n - begin)
        return misfit(call);
    uint64_t run = part.n * part.inner;
    for (uint64_t o = 0; o < part.outer; o++)
        memcpy(call->out[0] + o * run,
               call->in[0] + (o * whole.n + begin) * whole.inner,
               run * sizeof(float));
    return true;
}

/* The same elements in the same order, for each result. */
static bool run_copy(const HostCall *call) {
    const HostLayer *layer = call->layer;
    uint64_t n = shape_count(&layer->in[0].shape);
    for (uint32_t i = 0; i < layer->n_out; i++) {
        if (shape_count(&layer->out[i].shape) != n)
            return misfit(call);
        memcpy(call->out[i], call->in[0], n * sizeof(float));
    }
    return true;
}

static bool run_pad(const HostCall *call) {
    const HostLayer *layer = call->layer;
    Extent in = host_extent(&layer->in[0]), out = host_extent(&layer->out[0]);
    uint32_t top = host_count(layer, "before", ROWS, 0);
    uint32_t left = host_count(layer, "before", COLS, 0);
    double real = host_number(layer, "value", 0, 0);
    float value =
        call->quant ? quant_from_real(&layer->in[0].quant, real) : (float)real;
    if (in.c != out.c || (uint64_t)in.h + top > out.h ||
        (uint64_t)in.w + left > out.w)
        return misfit(call);
    for (uint64_t i = 0, n = extent_count(&out); i < n; i++)
        call->out[0][i] = value;
    for (uint64_t c = 0; c < in.c; c++)
        for (uint64_t h = 0; h < in.h; h++)
            memcpy(call->out[0] + (c * out.h + top + h) * out.w + left,
                   call->in[0] + (c * in.h + h) * in.w, in.w * sizeof(float));
    return true;
}

static bool run_upsample(const HostCall *call) {
    const HostLayer *layer = call->layer;
    Extent in = host_extent(&layer->in[0]), out = host_extent(&layer->out[0]);
    uint32_t factor[2] = {host_count(layer, "factor", ROWS, 1),
                          host_count(layer, "factor", COLS, 1)};
    if (in.c != out.c || (uint64_t)in.h * factor[ROWS] != out.h ||
        (uint64_t)in.w * factor[COLS] != out.w)
        return misfit(call);
    Patch from = patch_new(call->run->work, in, whole_box(&in));
    memcpy(from.at, call->in[0], extent_count(&in) * sizeof(float));
    Patch to = {out, whole_box(&out), call->out[0]};
    upsample_run(factor, false, &from, &to);
    return true;
}

const HostRow host_shapes[] = {
    {"concat", 1, run_concat, HOST_PLAIN},
    {"slice", 1, run_slice, HOST_PLAIN},
    {"act", 1, run_copy,
     HOST_PLAIN | HOST_TABLE}, /* the activation comes behind it */
    {"reshape", 1, run_copy, HOST_PLAIN},
    {"identity", 1, run_copy, HOST_PLAIN},
    {"pad", 1, run_pad, HOST_BY_IMAGE},
    {"upsample", 1, run_upsample, HOST_BY_IMAGE},
    {NULL, 0, NULL, HOST_PLAIN},
};
