/* weights.c - weights as codes, to the nearest; see scheme.h. */
#include "quantise/scheme.h"

#include <math.h>

/* Where weight i of a channel lies in the constant. */
typedef struct Lie {
    uint32_t channels;
    size_t each, inner; /* weights a channel; behind the channel's axis */
    bool second;
} Lie;

static Lie lie_of(const Const *c, bool second) {
    Lie lie = {shape_dim(&c->shape, second), 0, 1, second};
    lie.each = shape_count(&c->shape) / lie.channels;
    for (uint32_t i = 2; i < c->shape.rank; i++)
        lie.inner *= c->shape.dim[i];
    return lie;
}

static size_t at(const Lie *lie, uint32_t channel, size_t i) {
    return lie->second
               ? (i / lie->inner * lie->channels + channel) * lie->inner +
                     i % lie->inner
               : channel * lie->each + i;
}

static double code_of(double value, double scale, int32_t most) {
    double code = nearbyint(value / scale);
    return code > most ? most : code < -most ? -most : code;
}

/* Sum of squares of what the codes of channels [first, end) leave. */
static double error_of(const Lie *lie, const double *value, uint32_t first,
                       uint32_t end, double scale, int32_t most) {
    double sum = 0;
    for (uint32_t c = first; c < end; c++)
        for (size_t i = 0; i < lie->each; i++) {
            double v = value[at(lie, c, i)];
            double error = code_of(v, scale, most) * scale - v;
            sum += error * error;
        }
    return sum;
}

static double most_of(const Lie *lie, const double *value, uint32_t first,
                      uint32_t end) {
    double most = 0;
    for (uint32_t c = first; c < end; c++)
        for (size_t i = 0; i < lie->each; i++)
            most = fmax(most, fabs(value[at(lie, c, i)]));
    return most;
}

/* One scale for channels [first, end). */
static double scale_of(const Lie *lie, const double *value, uint32_t first,
                       uint32_t end, uint32_t bits, const QuantiseOptions *o) {
    enum { STEPS = 24 };
    int32_t top = weights_most(bits);
    double full = most_of(lie, value, first, end) / top;
    if (!(full > 0x1p-120) || !isfinite(full))
        return 1;
    bool pow2 = o->numbers.pow2;
    double best = pow2 ? range_power(full) : full, least = INFINITY;
    if (o->method == METHOD_MINMAX)
        return best;
    for (int i = 0; i < (pow2 ? 4 : STEPS); i++) {
        double scale =
            pow2 ? ldexp(range_power(full), -i) : full * (1 - 0.7 * i / STEPS);
        double error = error_of(lie, value, first, end, scale, top);
        if (error < least) {
            least = error;
            best = scale;
        }
    }
    return best;
}

static double *values_of(Arena *arena, const Graph *g, const Node *node,
                         Lie *lie) {
    const Const *constant = graph_const(g, node->constant[CONST_WEIGHT]);
    *lie = lie_of(constant, node->op == OP_DECONV);
    double *value = ARENA_ARRAY(arena, double, lie->channels * lie->each);
    const_read_f64(constant, value);
    return value;
}

WeightCodes weights_by(Arena *arena, const Graph *g, const Node *node,
                       uint32_t bits, const double *scale) {
    Lie lie;
    const double *value = values_of(arena, g, node, &lie);
    int16_t *code = ARENA_ARRAY(arena, int16_t, lie.channels * lie.each);
    for (uint32_t c = 0; c < lie.channels; c++)
        for (size_t i = 0; i < lie.each; i++)
            code[at(&lie, c, i)] = (int16_t)code_of(
                value[at(&lie, c, i)], scale[c], weights_most(bits));
    double *bias = NULL;
    if (node->constant[CONST_BIAS].i != NONE) {
        bias = ARENA_ARRAY(arena, double, lie.channels);
        const_read_f64(graph_const(g, node->constant[CONST_BIAS]), bias);
    }
    return (WeightCodes){bits,       lie.channels, lie.each, lie.inner,
                         lie.second, code,         scale,    bias};
}

WeightCodes weights_code(Arena *arena, const Graph *g, const Node *node,
                         uint32_t bits, const QuantiseOptions *options) {
    Lie lie;
    const double *value = values_of(arena, g, node, &lie);
    double *scale = ARENA_ARRAY(arena, double, lie.channels);
    bool one = options->numbers.per_tensor;
    for (uint32_t c = 0; c < lie.channels; c++)
        scale[c] = one && c
                       ? scale[0]
                       : (double)(float)scale_of(&lie, value, c,
                                                 one ? lie.channels : c + 1,
                                                 bits, options);
    return weights_by(arena, g, node, bits, scale);
}
