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

/* out = in * times + plus, by channel. */
static void affine(const HostCall *call, const Channels *size,
                   const double *times, const double *plus) {
    const float *in = call->in[0];
    float *out = call->out[0];
    uint64_t count = size->images * size->n * size->plane;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t c = i / size->plane % size->n;
        out[i] = (float)((double)in[i] * times[c] + plus[c]);
    }
}

static bool run_bn(const HostCall *call) {
    Channels size = host_channels(&call->layer->in[0]);
    double eps = host_number(call->layer, "eps", 0, 0);
    const float *mean = host_blob(call, "mean", size.n);
    const float *var = host_blob(call, "var", size.n);
    if (!same_size(call))
        return false;
    if (!mean || !var) {
        fault(call->run, "it has no mean and variance");
        return false;
    }
    double *times = ARENA_ARRAY(call->run->work, double, size.n);
    double *plus = ARENA_ARRAY(call->run->work, double, size.n);
    for (uint64_t c = 0; c < size.n; c++) {
        times[c] = 1 / sqrt((double)var[c] + eps);
        plus[c] = -(double)mean[c] * times[c];
    }
    affine(call, &size, times, plus);
    return true;
}

static bool run_scale(const HostCall *call) {
    Channels size = host_channels(&call->layer->in[0]);
    const float *scale = host_blob(call, "scale", size.n);
    const float *bias = host_blob(call, "bias", size.n);
    if (!same_size(call))
        return false;
    double *times = ARENA_ARRAY(call->run->work, double, size.n);
    double *plus = ARENA_ARRAY(call->run->work, double, size.n);
    for (uint64_t c = 0; c < size.n; c++) {
        times[c] = scale ? (double)scale[c] : 1.0;
        plus[c] = bias ? (double)bias[c] : 0.0;
    }
    affine(call, &size, times, plus);
    return true;
}

/* ---- functions of two numbers, with broadcast ---- */

static float op_add(float a, float b) {
    return a + b;
}
static float op_mul(float a, float b) {
    return a * b;
}
static float op_max(float a, float b) {
    return b > a || isnan(b) ? b : a;
}
static float op_min(float a, float b) {
    return b < a || isnan(b) ? b : a;
}
static float op_sub(float a, float b) {
    return a - b;
}
static float op_div(float a, float b) {
    return a / b;
}
static float op_prelu(float a, float b) {
    return a >= 0 ? a : a * b;
}
/* b times the whole part is taken off exactly: fmod has no rounding. */
static float op_mod(float a, float b) {
    float rest = fmodf(a, b);
    return (rest < 0) != (b < 0) && (rest < 0 || rest > 0) ? rest + b : rest;
}
static float op_equal(float a, float b) {
    return a == b;
}
static float op_less(float a, float b) {
    return a < b;
}
static float op_less_equal(float a, float b) {
    return a <= b;
}
static float op_greater(float a, float b) {
    return b < a;
}
static float op_greater_equal(float a, float b) {
    return b <= a;
}
static float op_and(float a, float b) {
    return (a != 0) & (b != 0);
}
static float op_or(float a, float b) {
    return (a != 0) | (b != 0);
}
static float op_xor(float a, float b) {
    return (a != 0) ^ (b != 0);
}

static const struct EltRow {
    const char *name;
    float (*run)(float a, float b);
} elt_rows[] = {
    {"add", op_add},         {"mul", op_mul},
    {"max", op_max},         {"min", op_min},
    {"sub", op_sub},         {"div", op_div},
    {"pow", powf},           {"prelu", op_prelu},
    {"equal", op_equal},     {"less", op_less},
    {"greater", op_greater}, {"less_equal", op_less_equal},
    {"and", op_and},         {"greater_equal", op_greater_equal},
    {"or", op_or},           {"xor", op_xor},
    {"mod", op_mod},         {"fmod", fmodf},
};

static const struct EltRow *find_elt(const HostLayer *layer) {
    for (size_t i = 0; i < sizeof elt_rows / sizeof *elt_rows; i++)
        if (host_is(layer, "kind", elt_rows[i].name))
            return &elt_rows[i];
    return NULL;
}

static void blend_into(const HostCall *call, const struct EltRow *row,
                       uint32_t operand, float *out) {
    const Shape *in = &call->layer->in[operand].shape;
    const Shape *to = &call->layer->out[0].shape;
    const float *from = call->in[operand];
    const AttrPair *coeffs = host_attr(call->layer, "coeff");
    float coeff =
        coeffs ? (float)host_number(call->layer, "coeff", operand, 1) : 1.0f;
    bool plain = shape_equal(in, to);
    for (uint64_t i = 0, n = shape_count(to); i < n; i++) {
        float x = coeff * from[plain ? i : host_broadcast(in, to, i)];
        out[i] = operand ? row->run(out[i], x) : x;
    }
}

static bool run_eltwise(const HostCall *call) {
    const HostLayer *layer = call->layer;
    const struct EltRow *row = find_elt(layer);
    if (!row)
        return misfit(call);
    for (uint32_t i = 0; i < layer->n_in; i++)
        if (!host_broadcasts(&layer->in[i].shape, &layer->out[0].shape))
            return misfit(call);
    if (call->quant && call->quant->rule != QUANT_MOVES)
        return host_eltwise_codes(call);
    for (uint32_t i = 0; i < layer->n_in; i++)
        blend_into(call, row, i, call->out[0]);
    return true;
}

/* ---- norms ---- */

static bool run_softmax(const HostCall *call) {
    Lines lines;
    if (!same_size(call) ||
        !host_lines(call, host_count(call->layer, "axis", 0, 1), 1, &lines))
        return false;
    lines_softmax(&lines, call->in[0], call->out[0]);
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
    {"bn", 1, run_bn, HOST_PLAIN},
    {"scale", 1, run_scale, HOST_PLAIN},
    {"eltwise", 1, run_eltwise, HOST_TWO},
    {"softmax", 1, run_softmax, HOST_PLAIN},
    {"lrn", 1, run_lrn, HOST_BY_IMAGE},
    {NULL, 0, NULL, HOST_PLAIN},
};
