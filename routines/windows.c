/* windows.c - windows over one to three axes: convolutions with computed
 * weights, places of maxima; see routine.h. */
#include "routines/kinds.h"

#include <math.h>
#include <string.h>

/* All windows are of three axes; those that a tensor lacks are of size 1. */
enum { AXES = 3 };
typedef struct Windows {
    uint32_t in[AXES], out[AXES], kernel[AXES], stride[AXES], dilation[AXES];
    int64_t pad[AXES];
} Windows;

/* ---- shapes ---- */

/* The axes behind the first two, as the last of three. */
static void last_axes(const Shape *shape, uint32_t size[AXES]) {
    for (uint32_t i = 0; i < AXES; i++) {
        uint32_t missing = AXES - (shape->rank - 2);
        size[i] = i < missing ? 1 : shape->dim[2 + i - missing];
    }
}

/* Reads all but the kernel, which is set. False: something is 0. */
static bool read_windows(const RoutineCall *call, Windows *w) {
    last_axes(&call->shape[0], w->in);
    bool good = true;
    for (uint32_t i = 0; i < AXES; i++) {
        w->stride[i] = routine_whole(call, "stride", i);
        w->dilation[i] = routine_whole(call, "dilation", i);
        w->pad[i] = routine_whole(call, "pad", i);
        good &= w->stride[i] && w->dilation[i] && w->kernel[i];
    }
    return good;
}

static uint32_t count_of(double count) {
    return count >= 1 && count <= 1 << 24 ? (uint32_t)count : 0;
}

/* How many windows lie in a padded axis. */
static uint32_t windows_along(const Windows *w, uint32_t i, int64_t pad_end,
                              bool up) {
    int64_t reach = (int64_t)w->dilation[i] * (w->kernel[i] - 1) + 1;
    int64_t room = w->in[i] + w->pad[i] + pad_end - reach;
    if (room < 0)
        return 0;
    int64_t n = (room + (up ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
    if (up && (n - 1) * w->stride[i] >= w->in[i] + w->pad[i])
        n--; /* it would begin behind the input */
    return count_of((double)n);
}

/* The result: N x C x those of the three axes that the input has. */
static Shape result_of(const RoutineCall *call, uint32_t channels,
                       const uint32_t size[AXES]) {
    Shape out = call->shape[0];
    out.dim[1] = channels;
    for (uint32_t i = 2; i < out.rank; i++)
        out.dim[i] = size[AXES - out.rank + i];
    return out;
}

/* ---- places of maxima ---- */

static bool max_windows(const RoutineCall *call, Windows *w) {
    for (uint32_t i = 0; i < AXES; i++)
        w->kernel[i] = routine_whole(call, "kernel", i);
    if (!read_windows(call, w))
        return false;
    for (uint32_t i = 0; i < AXES; i++)
        w->out[i] =
            windows_along(w, i, (int64_t)routine_real(call, "pad_end", i),
                          routine_whole(call, "ceil", 0) != 0);
    return true;
}

const char *max_index_shape(const RoutineCall *call, Shape *out) {
    const Shape *in = &call->shape[0];
    Windows w;
    if (in->rank < 3 || in->rank > 5 || !max_windows(call, &w))
        return "has windows that do not go with its input";
    if (shape_count(in) > 1 << 24)
        return "has more than 2^24 elements, whose places are no floats";
    *out = result_of(call, in->dim[1], w.out);
    return NULL;
}

/* Where the greatest of a window at `window` of a volume is; 0 if none is. */
static uint64_t greatest(const Windows *w, const float *in,
                         const uint32_t window[AXES]) {
    uint64_t best = 0;
    float most = -INFINITY;
    uint32_t tap[AXES];
    for (tap[0] = 0; tap[0] < w->kernel[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < w->kernel[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < w->kernel[2]; tap[2]++) {
                int64_t place = 0;
                for (uint32_t i = 0; i < AXES && place >= 0; i++) {
                    int64_t at = (int64_t)window[i] * w->stride[i] +
                                 (int64_t)tap[i] * w->dilation[i] - w->pad[i];
                    place =
                        at < 0 || at >= w->in[i] ? -1 : place * w->in[i] + at;
                }
                if (place >= 0 && in[place] > most) {
                    most = in[place];
                    best = (uint64_t)place;
                }
            }
    return best;
}

/* The same place where the first of the axes counts first. */
static uint64_t by_columns(const Windows *w, uint64_t place) {
    uint64_t x = place % w->in[2], y = place / w->in[2] % w->in[1];
    uint64_t z = place / w->in[2] / w->in[1];
    return (x * w->in[1] + y) * w->in[0] + z;
}

void max_index_run(const RoutineCall *call) {
    Windows w;
    max_windows(call, &w);
    bool columns = routine_whole(call, "columns", 0) != 0;
    const Shape *in = &call->shape[0];
    uint64_t volume = (uint64_t)w.in[0] * w.in[1] * w.in[2];
    float *to = call->out;
    for (uint64_t v = 0; v < (uint64_t)in->dim[0] * in->dim[1]; v++) {
        uint32_t at[AXES];
        for (at[0] = 0; at[0] < w.out[0]; at[0]++)
            for (at[1] = 0; at[1] < w.out[1]; at[1]++)
                for (at[2] = 0; at[2] < w.out[2]; at[2]++) {
                    uint64_t place = greatest(&w, call->in[0] + v * volume, at);
                    place = columns ? by_columns(&w, place) : place;
                    *to++ = (float)(v * volume + place);
                }
    }
}

const char *unpool_shape(const RoutineCall *call, Shape *out) {
    uint32_t size[AXES];
    const Shape *in = &call->shape[0];
    for (uint32_t i = 0; i < AXES; i++)
        size[i] = routine_whole(call, "size", i);
    if (in->rank < 3 || in->rank > 5 || !shape_equal(in, &call->shape[1]))
        return routine_misfit(call, 0, 1);
    *out = result_of(call, in->dim[1], size);
    return NULL;
}

void unpool_run(const RoutineCall *call) {
    uint64_t n = shape_count(&call->out_shape);
    memset(call->out, 0, n * sizeof *call->out);
    for (uint64_t i = 0, count = shape_count(&call->shape[0]); i < count; i++) {
        int64_t at = routine_place(call->in[1][i], (uint32_t)n);
        if (at >= 0)
            call->out[at] = call->in[0][i];
    }
}

/* ---- convolutions ---- */

typedef struct Convolution {
    Windows w;
    bool transposed;
    uint32_t groups, in_c, out_c; /* channels of all groups */
} Convolution;

static bool open_convolution(const RoutineCall *call, Convolution *c) {
    const Shape *in = &call->shape[0], *weight = &call->shape[1];
    c->groups = routine_whole(call, "groups", 0);
    c->transposed = routine_whole(call, "transposed", 0) != 0;
    if (in->rank < 3 || in->rank > 5 || weight->rank != in->rank || !c->groups)
        return false;
    last_axes(weight, c->w.kernel);
    c->in_c = in->dim[1];
    uint64_t out_c =
        (uint64_t)weight->dim[c->transposed] * (c->transposed ? c->groups : 1);
    uint64_t in_c =
        (uint64_t)weight->dim[!c->transposed] * (c->transposed ? 1 : c->groups);
    if (!read_windows(call, &c->w) || in_c != c->in_c || out_c > 1 << 24 ||
        out_c % c->groups || in_c % c->groups)
        return false;
    c->out_c = (uint32_t)out_c;
    for (uint32_t i = 0; i < AXES; i++) {
        int64_t end = (int64_t)routine_real(call, "pad_end", i);
        int64_t reach = (int64_t)c->w.dilation[i] * (c->w.kernel[i] - 1) + 1;
        double grown = (double)(c->w.in[i] - 1) * c->w.stride[i] +
                       (double)(reach - c->w.pad[i] - end);
        c->w.out[i] = c->transposed ? count_of(grown)
                                    : windows_along(&c->w, i, end, false);
    }
    return true;
}

const char *convolve_shape(const RoutineCall *call, Shape *out) {
    Convolution c;
    if (!open_convolution(call, &c))
        return routine_misfit(call, 0, 1);
    if (call->n_in > 2 && shape_count(&call->shape[2]) != c.out_c)
        return routine_misfit(call, 1, 2);
    *out = result_of(call, c.out_c, c.w.out);
    return NULL;
}

uint64_t convolve_products(const RoutineCall *call) {
    const Shape *in = &call->shape[0];
    Convolution c;
    Shape out;
    if (convolve_shape(call, &out) || !open_convolution(call, &c))
        return 0;
    const Shape *by = c.transposed ? in : &out;
    return shape_count(&call->shape[1]) * by->dim[0] *
           routine_product(by, 2, by->rank);
}

/* Along an axis, the element of the wide side (input, or a transposed one's
 * output) that a tap at a window of the other side meets; -1: padding. */
static int64_t met(const Windows *w, uint32_t i, uint32_t window, uint32_t tap,
                   uint32_t size) {
    int64_t at = (int64_t)window * w->stride[i] +
                 (int64_t)tap * w->dilation[i] - w->pad[i];
    return at >= 0 && at < size ? at : -1;
}

/* Adds weight times input for one tap of one pair of channels. */
static void add_tap(const Convolution *c, const uint32_t tap[AXES],
                    float weight, const float *in, float *out) {
    const Windows *w = &c->w;
    const uint32_t *narrow = c->transposed ? w->in : w->out;
    const uint32_t *wide = c->transposed ? w->out : w->in;
    for (uint32_t z = 0; z < narrow[0]; z++)
        for (uint32_t y = 0; y < narrow[1]; y++) {
            int64_t at_z = met(w, 0, z, tap[0], wide[0]);
            int64_t at_y = met(w, 1, y, tap[1], wide[1]);
            if (at_z < 0 || at_y < 0)
                continue;
            uint64_t row = ((uint64_t)z * narrow[1] + y) * narrow[2];
            uint64_t line =
                ((uint64_t)at_z * wide[1] + (uint64_t)at_y) * wide[2];
            for (uint32_t x = 0; x < narrow[2]; x++) {
                int64_t at = met(w, 2, x, tap[2], wide[2]);
                if (at < 0)
                    continue;
                if (c->transposed)
                    out[line + (uint64_t)at] += weight * in[row + x];
                else
                    out[row + x] += weight * in[line + (uint64_t)at];
            }
        }
}

/* Adds what one channel of the input gives to one of the result. */
static void add_channel(const Convolution *c, const float *weight,
                        const float *in, float *out) {
    uint32_t tap[AXES];
    for (tap[0] = 0; tap[0] < c->w.kernel[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < c->w.kernel[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < c->w.kernel[2]; tap[2]++)
                add_tap(c, tap, *weight++, in, out);
}

void convolve_run(const RoutineCall *call) {
    Convolution c;
    open_convolution(call, &c);
    const Windows *w = &c.w;
    uint64_t in_size = (uint64_t)w->in[0] * w->in[1] * w->in[2];
    uint64_t out_size = (uint64_t)w->out[0] * w->out[1] * w->out[2];
    uint64_t taps = (uint64_t)w->kernel[0] * w->kernel[1] * w->kernel[2];
    uint32_t ins = c.in_c / c.groups, outs = c.out_c / c.groups;
    float *out = call->out;
    for (uint32_t n = 0; n < call->shape[0].dim[0]; n++)
        for (uint32_t o = 0; o < c.out_c; o++, out += out_size) {
            float bias = call->n_in > 2 ? call->in[2][o] : 0;
            for (uint64_t i = 0; i < out_size; i++)
                out[i] = bias;
            for (uint32_t i = 0; i < ins; i++) {
                uint32_t from = o / outs * ins + i;
                uint64_t kernel = c.transposed
                                      ? (uint64_t)from * outs + o % outs
                                      : (uint64_t)o * ins + i;
                add_channel(
                    &c, call->in[1] + kernel * taps,
                    call->in[0] + ((uint64_t)n * c.in_c + from) * in_size, out);
            }
        }
}
