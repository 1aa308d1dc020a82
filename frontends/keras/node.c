/* node.c - config, weights and activation of the layer that is being built; see
 * keras.h. */
#include "frontends/keras/keras.h"

#include <string.h>

const cJSON *keras_get(const cJSON *json, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* ---- weights ---- */

const Const *keras_variable(Keras *k, const char *name) {
    Arena *arena = k->net.arena;
    const char *keys[] = {
        arena_printf(arena, "%s/%s", k->name, name),
        arena_printf(arena, "%s/vars/%u", k->slot, k->next_var),
        arena_printf(arena, "layers/%s/vars/%u", k->name, k->next_var),
        arena_printf(arena, "%s/cell/vars/%u", k->slot, k->next_var),
    };
    k->next_var++;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t at = map_get(k->weights.names, keys[i], NONE);
        if (at != NONE && k->weights.value.at[at].data)
            return &k->weights.value.at[at];
        if (at != NONE)
            return NULL;
    }
    if (k->weights.file)
        diag_warning(k->net.diag, k->net.loc,
                     "layer \"%s\": no \"%s\" in %s; seeded values are used",
                     k->name, name, k->weights.file);
    return NULL;
}

/* ---- config ---- */

bool keras_flag(const cJSON *config, const char *key, bool fallback) {
    const cJSON *item = keras_get(config, key);
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : fallback;
}

uint32_t keras_size(const cJSON *item, uint32_t fallback) {
    double value = cJSON_IsNumber(item) ? item->valuedouble : fallback;
    return value >= 1 && value <= 1 << 20 ? (uint32_t)value : 0;
}

/* ---- arguments ---- */

/* Anywhere among the arguments. cJSON bounds the nesting. */
static bool tells(const cJSON *json, const char *argument) {
    const cJSON *item;
    bool told = cJSON_IsTrue(keras_get(json, argument));
    cJSON_ArrayForEach(item, json) {
        told = told || tells(item, argument);
    }
    return told;
}

bool keras_told(const Keras *k, const char *argument) {
    return tells(k->call, argument);
}

/* ---- activations ---- */

typedef struct Word {
    const char *name;
    Act act;
} Word;

static const Word words[] = {
    {"relu", {.kind = ACT_RELU}},
    {"relu6", {.kind = ACT_RELU6}},
    {"sigmoid", {.kind = ACT_SIGMOID}},
    {"tanh", {.kind = ACT_TANH}},
    {"elu", {.kind = ACT_ELU, .alpha = 1}},
    {"selu",
     {.kind = ACT_SELU, .alpha = 1.6732632423543772, .hi = 1.0507009873554805}},
    {"softplus", {.kind = ACT_SOFTPLUS}},
    {"softsign", {.kind = ACT_SOFTSIGN}},
    {"swish", {.kind = ACT_SILU}},
    {"silu", {.kind = ACT_SILU}},
    {"gelu", {.kind = ACT_GELU}},
    {"mish", {.kind = ACT_MISH}},
    {"exponential", {.kind = ACT_EXP}},
    {"hard_swish", {.kind = ACT_HARD_SWISH}},
    {"hard_silu", {.kind = ACT_HARD_SWISH}},
    {"hard_sigmoid", {.kind = ACT_HARD_SIGMOID, .alpha = 0.2, .lo = 0.5}},
    {"leaky_relu", {.kind = ACT_LEAKY, .alpha = 0.2}},
};

/* A word, or an object that names a class. */
static const char *activation_name(const Keras *k) {
    const cJSON *item = keras_get(k->config, "activation");
    if (cJSON_IsString(item))
        return item->valuestring;
    if (!item || cJSON_IsNull(item))
        return "linear";
    return json_str(item, "config", json_str(item, "class_name", "?"));
}

TensorId keras_activate(Keras *k, const char *part, TensorId in) {
    const char *name = activation_name(k);
    if (!strcmp(name, "linear"))
        return part ? in : net_identity(&k->net, in);
    if (!strcmp(name, "softmax")) {
        Net at = k->net;
        if (part)
            k->net.layer = arena_printf(k->net.arena, "%s/%s", k->name, part);
        TensorId out = net_softmax(&k->net, in, -1);
        k->net.layer = at.layer;
        return out;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].name, name)) {
            Act act = words[i].act;
            /* Version 3 has slopes of a sixth. */
            if (act.kind == ACT_HARD_SIGMOID && k->third)
                act.alpha = 1.0 / 6;
            return net_act(&k->net, part, in, act);
        }
    return net_none(&k->net, "activation %s is not supported", name);
}
