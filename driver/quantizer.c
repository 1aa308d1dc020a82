/* quantizer.c - quantizer.json: thresholds, and a factor of 15 bits and a shift
 * for each output channel, as xfDNN reads them; see quantised.h.
 *
 * sum * scale / 2^postscale_shift is a code: scale / 2^postscale_shift is
 * sf_in * sf_params / sf_out, with 16384 <= scale <= 32767. A threshold is what
 * the code 127 stands for. There is no place for zero points.
 */
#include "driver/quantised.h"

#include <math.h>

static cJSON *numbers(uint32_t n, const double *value) {
    return cJSON_CreateDoubleArray(value, (int)n);
}

static cJSON *layer(Arena *arena, const Graph *g, const Node *node) {
    const Const *w = graph_const(g, node->constant[CONST_WEIGHT]);
    double in = graph_tensor(g, node->in[0])->quant.scale;
    double out = graph_tensor(g, node->out[0])->quant.scale;
    uint32_t n = w->shape.dim[0];
    double *th = ARENA_ARRAY(arena, double, n);
    double *sf = ARENA_ARRAY(arena, double, n);
    double *scale = ARENA_ARRAY(arena, double, n);
    double *shift = ARENA_ARRAY(arena, double, n);
    double *none = ARENA_ARRAY(arena, double, n);
    for (uint32_t c = 0; c < n; c++) {
        int exponent;
        sf[c] = w->mul0[c];
        th[c] = 127 * sf[c];
        double part = frexp(in * sf[c] / out, &exponent); /* 0.5 <= part < 1 */
        scale[c] = fmin(nearbyint(part * 0x1p15), 0x1p15 - 1);
        shift[c] = 15 - exponent;
    }
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", node->name);
    cJSON_AddNumberToObject(json, "bw_layer_in", 8);
    cJSON_AddNumberToObject(json, "bw_layer_out", 8);
    cJSON_AddNumberToObject(json, "bw_params", 8);
    cJSON_AddNumberToObject(json, "th_layer_in", 127 * in);
    cJSON_AddNumberToObject(json, "th_layer_out", 127 * out);
    cJSON_AddItemToObject(json, "th_params", numbers(n, th));
    cJSON_AddNumberToObject(json, "sf_layer_in", in);
    cJSON_AddNumberToObject(json, "sf_layer_out", out);
    cJSON_AddItemToObject(json, "sf_params", numbers(n, sf));
    cJSON_AddItemToObject(json, "prescale_shift", numbers(n, none));
    cJSON_AddItemToObject(json, "scale", numbers(n, scale));
    cJSON_AddItemToObject(json, "postscale_shift", numbers(n, shift));
    return json;
}

static bool on_codes(const Graph *g, const Node *node) {
    ConstId w = node->constant[CONST_WEIGHT];
    if ((node->op != OP_CONV && node->op != OP_FC) || w.i == NONE)
        return false;
    const Const *c = graph_const(g, w);
    return c->kind == CONST_I8 && c->mul0 &&
           graph_tensor(g, node->in[0])->quant.type == QUANT_I8 &&
           graph_tensor(g, node->out[0])->quant.type == QUANT_I8;
}

const char *quantizer_json(Arena *arena, const Graph *g) {
    for (uint32_t t = 0; t < g->tensor.n; t++)
        if (g->tensor.at[t].quant.zero)
            return NULL;
    cJSON *json = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(json, "network");
    for (uint32_t i = 0; i < g->node.n; i++)
        if (on_codes(g, &g->node.at[i]))
            cJSON_AddItemToArray(list, layer(arena, g, &g->node.at[i]));
    const char *text = json_print(arena, json, false);
    json_free(json);
    return text;
}
