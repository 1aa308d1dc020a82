/* host_numbers.c - layers of the host that are sums, scales and norms; see
 * host.h. */
#include "sim/host.h"

#include <math.h>

static bool misfit(const HostCall *call) {
    fault(call->run, "its operands and results do not fit together");
    return false;
}

static bool same_size(const HostCall *call) {
    return shape_count(&call->layer->in[0].shape) ==
               shape_count(&call->layer->out[0].shape) ||
           misfit(call);
}

static bool run_bn(const HostCall *call) {
    Extent e = host_extent(&call->layer->in[0]);
    double eps = host_number(call->layer, "eps", 0, 0);
    const float *mean = host_blob(call, "mean", e.c);
    const float *var = host_blob(call, "var", e.c);
    if (!same_size(call))
        return false;
    if (!mean || !var) {
        fault(call->run, "it has no mean and variance");
        return false;
    }
    uint64_t plane = (uint64_t)e.h * e.w;
    for (uint64_t c = 0; c < e.c; c++) {
        double by = 1 / sqrt((double)var[c] + eps);
        for (uint64_t i = c * plane; i < (c + 1) * plane; i++)
            call->out[0][i] =
                (float)(((double)call->in[0][i] - (double)mean[c]) * by);
    }
    return true;
}

static bool run_scale(const HostCall *call) {
    Extent e = host_extent(&call->layer->in[0]);
    const float *scale = host_blob(call, "scale", e.c);
    const float *bias = host_blob(call, "bias", e.c);
    if (!same_size(call))
        return false;
    uint64_t plane = (uint64_t)e.h * e.w;
    for (uint64_t c = 0; c < e.c; c++) {
        float a = scale ? scale[c] : 1.0f, b = bias ? bias[c] : 0.0f;
        for (uint64_t i = c * plane; i < (c + 1) * plane; i++)
            call->out[0][i] = a * call->in[0][i] + b;
    }
    return true;
}

/* ---- sums, products, maxima, with broadcast ---- */

/* Index in an operand of element i of the result; axes of size 1 repeat.
 * Shapes of lower rank stand at the right. */
static uint64_t broadcast_index(const Shape *in, const Shape *out, uint64_t i) {
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

static bool broadcasts(const Shape *in, const Shape *out) {
    if (in->rank > out->rank)
        return false;
    for (uint32_t i = 0; i < in->rank; i++) {
        uint32_t to = out->dim[out->rank - in->rank + i];
        if (in->dim[i] != to && in->dim[i] != 1)
            return false;
    }
    return true;
}

static void blend_into(const HostCall *call, uint32_t operand, float *out) {
    const HostLayer *layer = call->layer;
    const Shape *in = &layer->in[operand].shape, *to = &layer->out[0].shape;
    const float *from = call->in[operand];
    bool mul = host_is(layer, "kind", "mul"),
         max = host_is(layer, "kind", "max");
    float coeff = (float)host_number(layer, "coeff", operand, 1);
    bool plain = shape_equal(in, to);
    for (uint64_t i = 0, n = shape_count(to); i < n; i++) {
        float x = from[plain ? i : broadcast_index(in, to, i)];
        if (operand == 0)
            out[i] = mul || max ? x : coeff * x;
        else if (mul)
            out[i] *= x;
        else if (max)
            out[i] = x > out[i] ? x : out[i];
        else
            out[i] += coeff * x;
    }
}

static bool run_eltwise(const HostCall *call) {
    const HostLayer *layer = call->layer;
    for (uint32_t i = 0; i < layer->n_in; i++)
        if (!broadcasts(&layer->in[i].shape, &layer->out[0].shape))
            return misfit(call);
    for (uint32_t i = 0; i < layer->n_in; i++)
        blend_into(call, i, call->out[0]);
    return true;
}

/* ---- norms ---- */

static void softmax(const float *in, float *out, uint64_t n, uint64_t step) {
    float most = in[0];
    for (uint64_t i = 1; i < n; i++)
        most = in[i * step] > most ? in[i * step] : most;
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += exp((double)in[i * step] - (double)most);
    for (uint64_t i = 0; i < n; i++)
        out[i * step] = (float)(exp((double)in[i * step] - (double)most) / sum);
}

static bool run_softmax(const HostCall *call) {
    const Shape *shape = &call->layer->in[0].shape;
    uint32_t axis = host_count(call->layer, "axis", 0, 1);
    if (!same_size(call))
        return false;
    uint64_t outer = 1, inner = 1, n = shape_dim(shape, axis);
    for (uint32_t i = 0; i < shape->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : shape->dim[i];
    for (uint64_t o = 0; o < outer; o++)
        for (uint64_t i = 0; i < inner; i++) {
            uint64_t at = o * n * inner + i;
            softmax(call->in[0] + at, call->out[0] + at, n, inner);
        }
    return true;
}

/* Sum of squares around element i of a line, `half` to each side. */
static double squares(const float *line, uint64_t i, uint64_t n, uint64_t step,
                      uint64_t half) {
    uint64_t from = i < half ? 0 : i - half;
    uint64_t to = i + half < n - 1 ? i + half : n - 1;
    double sum = 0;
    for (uint64_t k = from; k <= to; k++)
        sum += (double)line[k * step] * (double)line[k * step];
    return sum;
}

static double squares_around(const float *plane, const Extent *e, uint64_t h,
                             uint64_t w, uint64_t half) {
    uint64_t from = h < half ? 0 : h - half;
    uint64_t to = h + half < e->h - 1 ? h + half : e->h - 1;
    double sum = 0;
    for (uint64_t y = from; y <= to; y++)
        sum += squares(plane + y * e->w, w, e->w, 1, half);
    return sum;
}

static bool run_lrn(const HostCall *call) {
    const HostLayer *layer = call->layer;
    Extent e = host_extent(&layer->in[0]);
    bool within = host_count(layer, "within_channel", 0, 0) != 0;
    uint32_t size = host_count(layer, "size", 0, 5);
    double n = within ? (double)size * size : size;
    double alpha = host_number(layer, "alpha", 0, 1) / (n > 0 ? n : 1);
    double beta = host_number(layer, "beta", 0, 0.75);
    double k = host_number(layer, "k", 0, 1);
    uint64_t half = size / 2, plane = (uint64_t)e.h * e.w;
    if (!same_size(call))
        return false;
    if (size > 1 << 10) {
        fault(call->run, "a norm over %u is more than can be simulated", size);
        return false;
    }
    for (uint64_t c = 0, at = 0; c < e.c; c++)
        for (uint64_t h = 0; h < e.h; h++)
            for (uint64_t w = 0; w < e.w; w++, at++) {
                const float *in = call->in[0];
                double sum =
                    within ? squares_around(in + c * plane, &e, h, w, half)
                           : squares(in + h * e.w + w, c, e.c, plane, half);
                call->out[0][at] =
                    (float)((double)in[at] / pow(k + alpha * sum, beta));
            }
    return true;
}

const HostRow host_numbers[] = {
    {"bn", 1, run_bn, false},           {"scale", 1, run_scale, false},
    {"eltwise", 1, run_eltwise, false}, {"softmax", 1, run_softmax, false},
    {"lrn", 1, run_lrn, false},         {NULL, 0, NULL, false},
};
