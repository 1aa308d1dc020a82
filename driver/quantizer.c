/* quantizer.c - quantizer.json: thresholds, and a factor of 15 bits and a shift
 * for each output channel, as xfDNN reads them; written, and read in place of
 * samples; see quantised.h.
 *
 * sum * scale / 2^postscale_shift is a code: scale / 2^postscale_shift is
 * sf_in * sf_params / sf_out, with 16384 <= scale <= 32767. A threshold is what
 * the code 127 stands for. There is no place for zero points.
 */
#include "driver/quantised.h"

#include <math.h>
#include <string.h>

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

/* ---- read ---- */

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *path;
    const char *layer; /* being read */
    bool ok;
} Reader;

static void wrong(Reader *r, const char *key, const char *what) {
    if (r->ok)
        diag_error(r->diag, (Loc){r->path, 0, 0}, "layer \"%s\": %s %s",
                   r->layer, key, what);
    r->ok = false;
}

/* 0 where it is not there; sums have lists, of which none is taken. */
static double positive(Reader *r, const cJSON *row, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);
    if (!item || cJSON_IsArray(item))
        return 0;
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!(value > 0x1p-100 && value < 0x1p100))
        wrong(r, key, "must be a number above 0");
    return value;
}

/* Of the list's length, which is `n` where that is not 0; NULL: none. */
static double *list_of(Reader *r, const cJSON *row, const char *key, double lo,
                       uint32_t *n) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(row, key), *item;
    uint32_t count = (uint32_t)cJSON_GetArraySize(list), i = 0;
    if (!cJSON_IsArray(list) || !count)
        return NULL;
    if (*n && count != *n)
        wrong(r, key, "has another length than the scales");
    double *value = ARENA_ARRAY(r->arena, double, count);
    cJSON_ArrayForEach(item, list) {
        value[i] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
        if (!(value[i] >= lo && value[i] < 0x1p100))
            wrong(r, key, "has what is no such number");
        i++;
    }
    *n = count;
    return value;
}

static uint32_t bits_of(Reader *r, const cJSON *row, const char *key) {
    double bits = json_num(row, key, 8);
    if (!(bits >= 2 && bits <= 16 && floor(bits) >= bits))
        wrong(r, key, "must be 2 to 16 bits");
    return r->ok ? (uint32_t)bits : 8;
}

static double most_of(uint32_t bits) {
    return ldexp(1, (int)bits - 1) - 1;
}

/* "sf_KEY", or "th_KEY", which the greatest code stands for. */
static double scale_of(Reader *r, const cJSON *row, const char *key,
                       uint32_t bits) {
    double sf = positive(r, row, arena_printf(r->arena, "sf_%s", key));
    double th = positive(r, row, arena_printf(r->arena, "th_%s", key));
    return sf > 0 ? sf : th / most_of(bits);
}

static const double *factors_of(Reader *r, const cJSON *row, uint32_t n) {
    double *scale = list_of(r, row, "scale", 0, &n);
    double *before = list_of(r, row, "prescale_shift", 0, &n);
    double *behind = list_of(r, row, "postscale_shift", 0, &n);
    double *factor = ARENA_ARRAY(r->arena, double, n);
    for (uint32_t c = 0; r->ok && scale && c < n; c++) {
        double shift = (before ? before[c] : 0) + (behind ? behind[c] : 0);
        factor[c] = ldexp(scale[c], -(int)fmin(shift, 200));
    }
    return factor;
}

static QuantiseGiven row_of(Reader *r, const cJSON *row) {
    QuantiseGiven out = {.layer = json_str(row, "name", "")};
    out.layer = r->layer = arena_strdup(r->arena, out.layer);
    if (!*out.layer)
        wrong(r, "name", "is missing");
    uint32_t wide = bits_of(r, row, "bw_layer_out");
    out.bits = bits_of(r, row, "bw_params");
    out.in = scale_of(r, row, "layer_in", bits_of(r, row, "bw_layer_in"));
    out.out = scale_of(r, row, "layer_out", wide);
    out.wide = wide > 8;
    double *sf = list_of(r, row, "sf_params", 0x1p-100, &out.n);
    double *th = sf ? NULL : list_of(r, row, "th_params", 0x1p-100, &out.n);
    for (uint32_t c = 0; th && c < out.n; c++)
        th[c] /= most_of(out.bits);
    out.weight = sf ? sf : th;
    out.factor = factors_of(r, row, out.n);
    return out;
}

bool quantizer_read(Arena *arena, Diag *diag, const char *path,
                    QuantiseOptions *out) {
    Reader r = {arena, diag, path, "", true};
    Bytes file;
    if (!file_read(arena, diag, path, &file))
        return false;
    cJSON *json = json_parse(diag, path, (const char *)file.at, file.len);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "network"), *row;
    QuantiseGiven *given =
        ARENA_ARRAY(arena, QuantiseGiven, (size_t)cJSON_GetArraySize(list));
    cJSON_ArrayForEach(row, list) {
        given[out->n_given++] = row_of(&r, row);
    }
    if (json && !out->n_given)
        diag_error(diag, (Loc){path, 0, 0},
                   "\"network\" must be a list of layers");
    out->given = given;
    json_free(json);
    return r.ok && out->n_given > 0;
}
