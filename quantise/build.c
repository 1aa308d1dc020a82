/* build.c - the graph on codes that a scheme describes; see scheme.h. */
#include "quantise/scheme.h"

#include <math.h>
#include <string.h>

/* No code of a bias is further from 0. */
static const double most_bias = 0x1p30;

/* Scales of the layer's weights, the larger where codes of the bias would not
 * fit: channels of tiny weights. */
static double *sound_scales(Arena *arena, const WeightCodes *w, double in,
                            const QuantiseNumbers *numbers) {
    double *scale = ARENA_COPY(arena, double, w->scale, w->channels);
    double least = 0;
    for (uint32_t c = 0; w->bias && c < w->channels; c++) {
        double wanted = fabs(w->bias[c]) / (most_bias * in);
        int exponent;
        if (wanted <= scale[c])
            continue;
        frexp(wanted, &exponent);
        scale[c] = numbers->pow2 ? ldexp(1, exponent) : (double)(float)wanted;
        least = fmax(least, scale[c]);
    }
    for (uint32_t c = 0; numbers->per_tensor && c < w->channels; c++)
        scale[c] = fmax(scale[c], least);
    return scale;
}

static uint32_t channel_of(const WeightCodes *w, size_t i) {
    return (uint32_t)(w->along_second ? i / w->inner % w->channels
                                      : i / w->each);
}

/* Codes in the type that they are stored in. */
static Const stored(Arena *arena, const WeightCodes *w, const double *scale,
                    bool as_unsigned) {
    size_t n = w->channels * w->each;
    bool wide = w->bits > 8;
    int32_t most = weights_most(w->bits);
    int8_t *narrow = wide ? NULL : ARENA_ARRAY(arena, int8_t, n);
    int16_t *broad = wide ? ARENA_ARRAY(arena, int16_t, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = channel_of(w, i);
        double code = w->code[i];
        if (scale[c] > w->scale[c])
            code = nearbyint(code * w->scale[c] / scale[c]);
        code = fmin(fmax(code, -most), most);
        if (wide)
            broad[i] = (int16_t)code;
        else if (as_unsigned)
            ((uint8_t *)narrow)[i] = (uint8_t)(code + 128);
        else
            narrow[i] = (int8_t)code;
    }
    bool shifted = as_unsigned && !wide;
    return (Const){.kind = wide      ? CONST_I16
                           : shifted ? CONST_U8
                                     : CONST_I8,
                   .zero = shifted ? 128 : 0,
                   .data = wide ? (const void *)broad : narrow};
}

/* To numbers of so many bits, all times the least power of two that does. */
static void round_biases(int32_t *code, uint32_t n, uint32_t bits) {
    double most = 0, unit = 1;
    if (!bits)
        return;
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)code[i]));
    while (nearbyint(most / unit) > weights_most(bits))
        unit *= 2;
    for (uint32_t i = 0; i < n; i++)
        code[i] = (int32_t)(nearbyint(code[i] / unit) * unit);
}

void scheme_weigh(Graph *g, Node *node, const WeightCodes *w,
                  const QuantiseNumbers *numbers) {
    Arena *arena = g->arena;
    double in = graph_tensor(g, node->in[0])->quant.scale;
    double *scale = sound_scales(arena, w, in, numbers);
    Const c = stored(arena, w, scale, numbers->unsigned_weights);
    c.shape = graph_const(g, node->constant[CONST_WEIGHT])->shape;
    if (w->along_second)
        c.mul1 = scale;
    else
        c.mul0 = scale;
    node->constant[CONST_WEIGHT] = graph_add_const(g, c);
    if (!w->bias)
        return;
    int32_t *code = ARENA_ARRAY(arena, int32_t, w->channels);
    double *unit = ARENA_ARRAY(arena, double, w->channels);
    for (uint32_t i = 0; i < w->channels; i++) {
        unit[i] = (double)((float)in * (float)scale[i]);
        double value = nearbyint(w->bias[i] / unit[i]);
        code[i] = isnan(value)
                      ? 0
                      : (int32_t)fmin(fmax(value, -most_bias), most_bias);
    }
    round_biases(code, w->channels, numbers->bias_bits);
    node->no_bias = false;
    node->constant[CONST_BIAS] =
        graph_add_const(g, (Const){.shape = {1, {w->channels}},
                                   .kind = CONST_I32,
                                   .data = code,
                                   .mul0 = unit});
}

Graph *scheme_graph(Arena *arena, const Scheme *scheme,
                    const QuantiseNumbers *numbers) {
    Graph *g = graph_clone(arena, scheme->g);
    for (uint32_t t = 0; t < g->tensor.n; t++)
        g->tensor.at[t].quant = scheme->quant[t];
    for (uint32_t i = 0; i < g->node.n; i++)
        if (scheme->weight[i].code)
            scheme_weigh(g, &g->node.at[i], &scheme->weight[i], numbers);
    return g;
}
