/* weights.c - weights of a description: numbers in a .npy, and a JSON that says
 * where those of each layer are. */
#include "lanes/lanes.h"

#include "base/file.h"
#include "base/json.h"
#include "lanes/kernels.h"

#include <math.h>
#include <string.h>

typedef struct WeightsFile {
    Arena *arena;
    Diag *diag;
    const char *path;
    const int8_t *all;
    uint64_t n;
} WeightsFile;

/* {offset, shape: [...]}: where they begin; NULL after an error. */
static const int8_t *slice(const WeightsFile *f, const cJSON *json,
                           uint64_t shape[4]) {
    const cJSON *dims = cJSON_GetObjectItem(json, "shape"), *one;
    double offset = json_num(json, "offset", -1);
    uint64_t size = 1, rank = 0;
    cJSON_ArrayForEach(one, dims) {
        bool fine = rank < 4 && cJSON_IsNumber(one) && one->valuedouble >= 1 &&
                    one->valuedouble <= 1 << 20;
        if (!fine)
            goto wrong;
        shape[rank++] = (uint64_t)one->valuedouble;
        size *= shape[rank - 1];
        if (size > f->n)
            goto wrong;
    }
    if (rank && offset >= 0 && offset + (double)size <= (double)f->n)
        return f->all + (uint64_t)offset;
wrong:
    diag_error(f->diag, (Loc){f->path, 0, 0},
               "offset and shape of weights are not within the %llu that "
               "there are",
               (unsigned long long)f->n);
    return NULL;
}

static bool read_one(const WeightsFile *f, const cJSON *json, LaneLayer *l) {
    const cJSON *weights = cJSON_GetObjectItem(json, "weights");
    const cJSON *bias = cJSON_GetObjectItem(json, "bias");
    uint64_t shape[4] = {1, 1, 1, 1}, biases[4] = {1, 1, 1, 1};
    double shift = json_num(json, "total_shift", 0);
    double bits = json_num(json, "weight_bits", 8);
    l->weight = slice(f, weights, shape);
    if (!l->weight)
        return false;
    if (cJSON_IsObject(bias) && !(l->bias = slice(f, bias, biases)))
        return false;
    if (shift < -32 || shift > 32 ||
        (bits != 1 && bits != 2 && bits != 4 && bits != 8)) {
        diag_error(f->diag, (Loc){f->path, 0, 0},
                   "total_shift is at most 32, weight_bits 1, 2, 4 or 8");
        return false;
    }
    if (l->says_bits && l->bits != (uint32_t)bits) {
        diag_error(f->diag, l->loc,
                   "quantization is %u, and %s says weight_bits %u", l->bits,
                   f->path, (uint32_t)bits);
        return false;
    }
    l->bits = (uint32_t)bits;
    l->shift =
        l->says_shift ? l->out_shift + 8 - (int32_t)l->bits : (int32_t)shift;
    l->out_c = (uint32_t)shape[0];
    l->in_c = (uint32_t)shape[1]; /* of all taps where it flattens */
    l->n_bias = l->bias ? (uint32_t)biases[0] : 0;
    bool same = l->op == LANE_LINEAR ||
                (shape[2] == l->kernel[0] && shape[3] == l->kernel[1]);
    if (!same || (l->bias && l->n_bias != l->out_c))
        diag_error(f->diag, l->loc,
                   "weights have %llux%llu taps and %u biases, the layer %ux%u "
                   "and %u results",
                   (unsigned long long)shape[2], (unsigned long long)shape[3],
                   l->n_bias, l->kernel[0], l->kernel[1], l->out_c);
    bool fits = same && (!l->bias || l->n_bias == l->out_c);
    if (fits && l->bias)
        kernels_set_bias(l, l->bias, l->n_bias);
    return fits;
}

const int8_t *lanes_codes(Arena *arena, Diag *diag, const char *path,
                          Npy *npy) {
    if (!npy_read(arena, diag, path, npy))
        return NULL;
    int8_t *out = ARENA_ARRAY(arena, int8_t, npy->count + 1);
    for (uint64_t i = 0; i < npy->count; i++) {
        float value = npy->data[i];
        if (!(value >= -128 && value <= 127 && value == truncf(value))) {
            diag_error(diag, (Loc){path, 0, 0}, "%g is no code of 8 bits",
                       (double)value);
            return NULL;
        }
        out[i] = (int8_t)value;
    }
    return out;
}

static bool assign(const WeightsFile *f, const cJSON *layers, LaneNet *net) {
    const cJSON *one = NULL;
    uint32_t at = 0, n = 0;
    cJSON_ArrayForEach(one, layers) {
        if (!cJSON_IsObject(cJSON_GetObjectItem(one, "weights")))
            continue;
        while (at < net->n && net->layer[at].op == LANE_PASS)
            at++;
        if (at == net->n) {
            diag_error(f->diag, (Loc){f->path, 0, 0},
                       "weights of more layers than the network has");
            return false;
        }
        if (!read_one(f, one, &net->layer[at++]))
            return false;
        n++;
    }
    while (at < net->n && net->layer[at].op == LANE_PASS)
        at++;
    if (at < net->n)
        diag_error(f->diag, net->layer[at].loc,
                   "layer %u has no weights: %s has those of %u layers", at,
                   f->path, n);
    return at == net->n;
}

bool lanes_weights(Arena *arena, Diag *diag, const char *path, LaneNet *net) {
    Bytes text;
    Npy npy;
    if (!file_read(arena, diag, path, &text))
        return false;
    cJSON *json = json_parse(diag, path, (const char *)text.at, text.len);
    if (!json)
        return false;
    const char *name = json_str(json, "weights", "weights.npy");
    const char *data =
        arena_printf(arena, "%s/%s", file_dir(arena, path), name);
    const int8_t *all = lanes_codes(arena, diag, data, &npy);
    WeightsFile f = {arena, diag, path, all, all ? npy.count : 0};
    bool ok = all && assign(&f, cJSON_GetObjectItem(json, "layers"), net);
    json_free(json);
    kernels_stream(arena, net);
    return ok;
}
