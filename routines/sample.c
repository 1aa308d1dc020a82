/* sample.c - pixels between pixels: grids and boxes; see routine.h. */
#include "routines/kinds.h"

#include <math.h>

/* ---- grids ---- */

/* How a grid is read. */
typedef struct Sampler {
    uint32_t mode, outside;
    bool align;
    int64_t h, w;
} Sampler;

const char *grid_sample_shape(const RoutineCall *call, Shape *out) {
    const Shape *in = &call->shape[0], *grid = &call->shape[1];
    if (in->rank != 4 || grid->rank != 4 || grid->dim[3] != 2 ||
        grid->dim[0] != in->dim[0])
        return routine_misfit(call, 0, 1);
    *out = shape_nchw(in->dim[0], in->dim[1], grid->dim[1], grid->dim[2]);
    return NULL;
}

/* -1 to 1 as a place among `size` pixels. */
static double unscaled(const Sampler *s, double x, int64_t size) {
    double n = (double)size;
    return s->align ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
}

/* A place outside, seen in mirrors at the first and the last pixel, or at their
 * edges. */
static double reflected(const Sampler *s, double x, int64_t size) {
    double lo = s->align ? 0 : -0.5;
    double span = (double)(s->align ? size - 1 : size);
    if (!(span > 0) || !isfinite(x))
        return 0;
    double at = fmod(fabs(x - lo), 2 * span);
    return lo + (at > span ? 2 * span - at : at);
}

static double settled(const Sampler *s, double x, int64_t size) {
    if (s->outside == SAMPLE_zeros)
        return x;
    if (s->outside == SAMPLE_reflection)
        x = reflected(s, x, size);
    double last = (double)(size - 1);
    return x > 0 ? (x < last ? x : last) : 0;
}

static double pixel(const Sampler *s, const float *plane, double y, double x) {
    bool inside = y >= 0 && x >= 0 && y < (double)s->h && x < (double)s->w;
    return inside ? (double)plane[(int64_t)y * s->w + (int64_t)x] : 0;
}

static double bilinear(const Sampler *s, const float *plane, double y,
                       double x) {
    double top = floor(y), left = floor(x), dy = y - top, dx = x - left;
    return (1 - dy) * ((1 - dx) * pixel(s, plane, top, left) +
                       dx * pixel(s, plane, top, left + 1)) +
           dy * ((1 - dx) * pixel(s, plane, top + 1, left) +
                 dx * pixel(s, plane, top + 1, left + 1));
}

/* Keys' kernel with a slope of -0.75. */
static double cubic(double distance) {
    const double a = -0.75;
    double x = fabs(distance);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static double bicubic(const Sampler *s, const float *plane, double y,
                      double x) {
    double top = floor(y), left = floor(x), sum = 0;
    for (int i = -1; i <= 2; i++)
        for (int j = -1; j <= 2; j++)
            sum += cubic(y - top - i) * cubic(x - left - j) *
                   pixel(s, plane, settled(s, top + i, s->h),
                         settled(s, left + j, s->w));
    return sum;
}

static double sampled(const Sampler *s, const float *plane, double y,
                      double x) {
    if (!isfinite(x) || !isfinite(y))
        return 0;
    if (s->mode == SAMPLE_bicubic)
        return bicubic(s, plane, y, x);
    y = settled(s, y, s->h);
    x = settled(s, x, s->w);
    if (s->mode == SAMPLE_nearest)
        return pixel(s, plane, nearbyint(y), nearbyint(x));
    return bilinear(s, plane, y, x);
}

void grid_sample_run(const RoutineCall *call) {
    const Shape *in = &call->shape[0], *out = &call->out_shape;
    Sampler s = {routine_whole(call, "mode", 0),
                 routine_whole(call, "outside", 0),
                 routine_whole(call, "align", 0) != 0, in->dim[2], in->dim[3]};
    uint64_t points = (uint64_t)out->dim[2] * out->dim[3];
    uint64_t plane = (uint64_t)in->dim[2] * in->dim[3];
    float *to = call->out;
    for (uint32_t n = 0; n < in->dim[0]; n++)
        for (uint32_t c = 0; c < in->dim[1]; c++) {
            const float *from = call->in[0] + (n * in->dim[1] + c) * plane;
            const float *at = call->in[1] + n * points * 2;
            for (uint64_t i = 0; i < points; i++, at += 2)
                *to++ =
                    (float)sampled(&s, from, unscaled(&s, (double)at[1], s.h),
                                   unscaled(&s, (double)at[0], s.w));
        }
}

/* ---- boxes ---- */

enum { MOST_SAMPLES = 256 };

const char *roi_align_shape(const RoutineCall *call, Shape *out) {
    const Shape *in = &call->shape[0], *box = &call->shape[1];
    if (in->rank != 4 || box->rank != 2 || box->dim[1] != 4)
        return routine_misfit(call, 0, 1);
    if (shape_count(&call->shape[2]) != box->dim[0])
        return routine_misfit(call, 1, 2);
    if (routine_whole(call, "samples", 0) > MOST_SAMPLES)
        return "asks for too many samples";
    *out = shape_nchw(box->dim[0], in->dim[1], routine_whole(call, "size", 0),
                      routine_whole(call, "size", 1));
    return NULL;
}

/* Between the four around it; 0 more than a pixel outside. */
static double in_box(const Sampler *s, const float *plane, double y, double x) {
    if (!(y >= -1 && x >= -1 && y <= (double)s->h && x <= (double)s->w))
        return 0;
    double bottom = (double)(s->h - 1), right = (double)(s->w - 1);
    y = y < 0 ? 0 : y > bottom ? bottom : y;
    x = x < 0 ? 0 : x > right ? right : x;
    return bilinear(s, plane, y, x);
}

/* One box along one axis: where its bins begin, and how many samples each has.
 */
typedef struct Bins {
    double start, size;
    uint32_t samples;
} Bins;

static Bins bins_of(const RoutineCall *call, const float *box, uint32_t axis) {
    double scale = routine_real(call, "scale", 0);
    bool half = routine_whole(call, "half_pixel", 0) != 0;
    double start = (double)box[axis ? 0 : 1] * scale - (half ? 0.5 : 0);
    double end = (double)box[axis ? 2 : 3] * scale - (half ? 0.5 : 0);
    double length = half ? end - start : fmax(end - start, 1);
    Bins bins = {start, length / routine_whole(call, "size", axis),
                 routine_whole(call, "samples", 0)};
    if (!bins.samples) {
        double own = ceil(bins.size);
        bins.samples = !(own >= 1)          ? 0
                       : own > MOST_SAMPLES ? (uint32_t)MOST_SAMPLES
                                            : (uint32_t)own;
    }
    return bins;
}

static double mean_of_bin(const Sampler *s, const float *plane, const Bins *b,
                          uint32_t row, uint32_t column) {
    double sum = 0;
    for (uint32_t i = 0; i < b[0].samples; i++)
        for (uint32_t j = 0; j < b[1].samples; j++) {
            double y =
                b[0].start + b[0].size * (row + (i + 0.5) / b[0].samples);
            double x =
                b[1].start + b[1].size * (column + (j + 0.5) / b[1].samples);
            sum += in_box(s, plane, y, x);
        }
    double n = (double)b[0].samples * b[1].samples;
    return n > 0 ? sum / n : 0;
}

void roi_align_run(const RoutineCall *call) {
    const Shape *in = &call->shape[0], *out = &call->out_shape;
    Sampler s = {.h = in->dim[2], .w = in->dim[3]};
    uint64_t plane = (uint64_t)in->dim[2] * in->dim[3];
    float *to = call->out;
    for (uint32_t r = 0; r < out->dim[0]; r++) {
        const float *box = call->in[1] + (uint64_t)r * 4;
        Bins bins[2] = {bins_of(call, box, 0), bins_of(call, box, 1)};
        int64_t image = routine_place(call->in[2][r], in->dim[0]);
        for (uint32_t c = 0; c < out->dim[1]; c++)
            for (uint32_t i = 0; i < out->dim[2]; i++)
                for (uint32_t j = 0; j < out->dim[3]; j++)
                    *to++ = image < 0
                                ? 0
                                : (float)mean_of_bin(
                                      &s,
                                      call->in[0] +
                                          ((uint64_t)image * in->dim[1] + c) *
                                              plane,
                                      bins, i, j);
    }
}
