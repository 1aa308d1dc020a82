/* model.c - a Sequential or Functional model, models within it included.
 *
 * In: the JSON of the model. Out: nodes. A layer is built once a call; calls
 * may stand in any order.
 */
#include "frontends/keras/keras.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_INPUTS = 4096 };

/* A call of a layer, and what it gave. */
typedef struct Call {
    const cJSON *layer, *inputs; /* one of its inbound nodes */
    const char *name, *slot;
    uint32_t index;        /* of the call, among those of its layer */
    uint32_t n_in, looked; /* looked: how many of `in` were gone to */
    const uint32_t *in;    /* calls; NONE: there is none */
    bool met, built;
    TensorId out;
} Call;

typedef struct Model {
    Keras *k;
    VEC(Call) call;
    Map *calls; /* "name:index" -> call */
} Model;

static const char *layer_name(const cJSON *layer) {
    const char *inner = json_str(keras_get(layer, "config"), "name", "layer");
    return json_str(layer, "name", inner);
}

/* "DepthwiseConv2D" -> "depthwise_conv2d", as Keras 3 does. */
static const char *snake(Arena *arena, const char *name) {
    char *out = arena_alloc(arena, 2 * strlen(name) + 1, 1);
    size_t n = 0;
    for (size_t i = 0; name[i]; i++) {
        bool upper = isupper((unsigned char)name[i]);
        bool lower_next = islower((unsigned char)name[i + 1]);
        bool before = i > 0 && !isupper((unsigned char)name[i - 1]) &&
                      !isdigit((unsigned char)name[i - 1]);
        if (upper && i > 0 && (lower_next || before) && name[i - 1] != '_')
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)name[i]);
    }
    return out;
}

/* ---- which tensors a call reads ---- */

typedef struct Found {
    uint32_t n;
    const cJSON *history[MAX_INPUTS]; /* [name, call, tensor] */
} Found;

static void find_inputs(const cJSON *json, Found *found);

/* Those that a call names, in their order; false: it names none. */
static bool find_operands(const cJSON *arguments, Found *found) {
    static const char *const names[] = {"query", "value", "key",
                                        "attention_mask"};
    uint32_t before = found->n;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (keras_get(arguments, names[i]))
            find_inputs(keras_get(arguments, names[i]), found);
    return found->n > before;
}

/* Version 2: lists that begin with a name; version 3: objects with a history.
 * cJSON bounds the nesting. */
static void find_inputs(const cJSON *json, Found *found) {
    const cJSON *history =
                    keras_get(keras_get(json, "config"), "keras_history"),
                *item;
    bool is_call = cJSON_IsArray(json) &&
                   cJSON_IsString(cJSON_GetArrayItem(json, 0)) &&
                   cJSON_IsNumber(cJSON_GetArrayItem(json, 1));
    if (found->n == MAX_INPUTS)
        return;
    if (history || is_call) {
        found->history[found->n++] = history ? history : json;
        find_operands(cJSON_GetArrayItem(is_call ? json : NULL, 3), found);
        return;
    }
    if (find_operands(json, found))
        return;
    cJSON_ArrayForEach(item, json) {
        find_inputs(item, found);
    }
}

static uint32_t find_call(const Model *m, const cJSON *history) {
    const cJSON *name = cJSON_GetArrayItem(history, 0);
    const cJSON *index = cJSON_GetArrayItem(history, 1);
    if (!cJSON_IsString(name) || !cJSON_IsNumber(index))
        return NONE;
    return map_get(m->calls,
                   arena_printf(m->k->net.arena, "%s:%d", name->valuestring,
                                index->valueint),
                   NONE);
}

/* ---- calls ---- */

static void add_call(Model *m, const cJSON *layer, const cJSON *inputs,
                     const char *slot, uint32_t index) {
    Arena *arena = m->k->net.arena;
    Call call = {.layer = layer,
                 .inputs = inputs,
                 .name = arena_strdup(arena, layer_name(layer)),
                 .slot = slot,
                 .index = index,
                 .out = NO_TENSOR};
    map_put(m->calls, arena_printf(arena, "%s:%u", call.name, index),
            m->call.n);
    vec_push(arena, &m->call, call);
}

/* One call for each inbound node; a list that holds the inputs of the only call
 * themselves is one. An input has none, but is called by the network. */
static void add_calls(Model *m, const cJSON *layer, const char *slot) {
    const cJSON *nodes = keras_get(layer, "inbound_nodes"), *item;
    bool flat =
        cJSON_IsString(cJSON_GetArrayItem(cJSON_GetArrayItem(nodes, 0), 0));
    uint32_t n = 0;
    if (flat || !nodes || !nodes->child) {
        add_call(m, layer, flat ? nodes : NULL, slot, 0);
        return;
    }
    cJSON_ArrayForEach(item, nodes) {
        add_call(m, layer, item, slot, n++);
    }
}

/* Keras 3 numbers layers of a class in the order of the model. */
static const char *next_slot(Keras *k, Map *counts, const cJSON *layer) {
    const char *kind =
        snake(k->net.arena, json_str(layer, "class_name", "layer"));
    uint32_t n = map_get(counts, kind, 0);
    map_put(counts, kind, n + 1);
    return n ? arena_printf(k->net.arena, "%slayers/%s_%u", k->prefix, kind, n)
             : arena_printf(k->net.arena, "%slayers/%s", k->prefix, kind);
}

/* ---- building ---- */

static bool is_model(const char *kind) {
    return !strcmp(kind, "Functional") || !strcmp(kind, "Model") ||
           !strcmp(kind, "Sequential");
}

/* A shape whose first dimension is the batch. */
static bool read_shape(const cJSON *list, Shape *out) {
    const cJSON *item;
    *out = (Shape){0};
    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list) {
        double dim = cJSON_IsNumber(item) ? item->valuedouble : 0;
        if (out->rank == SHAPE_MAX_RANK)
            return false;
        out->dim[out->rank++] = dim > 0 && dim < INT32_MAX ? (uint32_t)dim : 0;
    }
    return true;
}

static TensorId build_input(Keras *k, const cJSON *config) {
    static const char *const keys[] = {"batch_input_shape", "batch_shape",
                                       "batchInputShape", "build_input_shape"};
    Shape shape = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (read_shape(keras_get(config, keys[i]), &shape))
            break;
    return net_input(&k->net, &shape);
}

static TensorId build_layer(Keras *k, const cJSON *layer, const char *slot,
                            uint32_t n, const TensorId *in) {
    const char *kind = json_str(layer, "class_name", "");
    const KerasLayer *known = keras_find_layer(kind);
    if (is_model(kind)) {
        const char *prefix = k->prefix;
        k->prefix = arena_printf(k->net.arena, "%s/", slot);
        TensorId out = keras_model(k, layer, n, in);
        k->prefix = prefix;
        return out;
    }
    k->name = arena_strdup(k->net.arena, layer_name(layer));
    net_at(&k->net, k->name, arena_strdup(k->net.arena, kind),
           (Loc){k->net.path, 0, 0});
    k->config = keras_get(layer, "config");
    k->slot = slot;
    k->next_var = 0;
    k->n_in = n;
    k->in = in;
    Shape shape;
    if (!known && !net_told_shape(&k->net, k->name, NULL, &shape))
        return net_none(&k->net,
                        "this kind of layer is not supported; --shape "
                        "%s=1x... makes it a call of a function of yours",
                        k->name);
    for (uint32_t i = 0; i < n; i++)
        if (in[i].i == NONE)
            return NO_TENSOR;
    if (!n)
        return net_none(&k->net, "has no input");
    if (!known)
        return net_call(&k->net, k->name, 0, n, in, &shape);
    return known->build(k, known->kind);
}

static TensorId build_inner(Keras *k, const cJSON *layer, TensorId in) {
    const char *kind = json_str(layer, "class_name", "");
    const char *name = layer_name(layer), *slot = k->slot;
    const KerasLayer *known = keras_find_layer(kind);
    TensorId *only = ARENA_COPY(k->net.arena, TensorId, &in, 1), out;
    k->slot = arena_printf(k->net.arena, "%s/layer", slot);
    if (is_model(kind)) {
        out = build_layer(k, layer, k->slot, 1, only);
    } else if (!known || in.i == NONE) {
        out = in.i == NONE ? in
                           : net_none(&k->net, "%s in it is not supported",
                                      arena_strdup(k->net.arena, kind));
    } else {
        k->config = keras_get(layer, "config");
        k->next_var = 0;
        k->n_in = 1;
        k->in = only;
        k->net.layer = arena_printf(k->net.arena, "%s/%s", k->name, name);
        out = known->build(k, known->kind);
    }
    k->slot = slot;
    return out;
}

static void link_calls(Model *m) {
    Arena *arena = m->k->net.arena, *scratch = arena_new("keras inputs");
    Found *found = ARENA_NEW(scratch, Found);
    for (uint32_t i = 0; i < m->call.n; i++) {
        Call *call = &m->call.at[i];
        found->n = 0;
        find_inputs(call->inputs, found);
        uint32_t *in = ARENA_ARRAY(arena, uint32_t, found->n);
        for (uint32_t k = 0; k < found->n; k++)
            in[k] = find_call(m, found->history[k]);
        call->n_in = found->n;
        call->in = in;
    }
    arena_free(scratch);
}

/* Nothing where one of its inputs is not built. */
static void build_call(Model *m, Call *call) {
    Keras *k = m->k;
    TensorId *in = ARENA_ARRAY(k->net.arena, TensorId, call->n_in);
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in[i] == NONE || !m->call.at[call->in[i]].built)
            return;
        in[i] = m->call.at[call->in[i]].out;
    }
    call->built = true;
    k->call = call->inputs;
    call->out = build_layer(k, call->layer, call->slot, call->n_in, in);
}

/* In the order of the file, each behind what it reads. */
static void build_calls(Model *m) {
    uint32_t *way = ARENA_ARRAY(m->k->net.arena, uint32_t, m->call.n + 1);
    for (uint32_t i = 0, n = 0; i < m->call.n; i++) {
        for (way[n++] = i; n;) {
            Call *call = &m->call.at[way[n - 1]];
            call->met = true;
            if (!call->built && call->looked < call->n_in) {
                uint32_t in = call->in[call->looked++];
                if (in != NONE && !m->call.at[in].met)
                    way[n++] = in;
                continue;
            }
            n--;
            if (!call->built)
                build_call(m, call);
        }
    }
    for (uint32_t i = 0; i < m->call.n; i++)
        if (!m->call.at[i].built)
            diag_error(m->k->net.diag, (Loc){m->k->net.path, 0, 0},
                       "layer \"%s\" reads a layer that does not exist, or "
                       "waits for itself",
                       m->call.at[i].name);
}

/* The outer model's inputs are made here; those of one within it are given. */
static void place_inputs(Model *m, uint32_t n, const TensorId *in) {
    Keras *k = m->k;
    uint32_t next = 0;
    for (uint32_t i = 0; i < m->call.n; i++) {
        Call *call = &m->call.at[i];
        if (strcmp(json_str(call->layer, "class_name", ""), "InputLayer"))
            continue;
        net_at(&k->net, call->name, "InputLayer", (Loc){k->net.path, 0, 0});
        call->built = true;
        call->out = next < n ? in[next]
                    : n      ? net_none(&k->net, "is not given by the call")
                             : build_input(k, keras_get(call->layer, "config"));
        next++;
    }
}

/* The tensors that `output_layers` names; the first is the result. */
static TensorId find_outputs(Model *m, const cJSON *config) {
    const cJSON *list = keras_get(config, "output_layers");
    Arena *scratch = arena_new("keras outputs");
    Found *found = ARENA_NEW(scratch, Found);
    TensorId first = NO_TENSOR;
    find_inputs(list, found);
    for (uint32_t i = 0; i < found->n; i++) {
        uint32_t call = find_call(m, found->history[i]);
        TensorId out = call == NONE ? NO_TENSOR : m->call.at[call].out;
        if (i == 0)
            first = out;
        if (out.i != NONE && m->k->depth == 1)
            graph_mark_output(m->k->net.g, out);
    }
    arena_free(scratch);
    return first;
}

static TensorId build_functional(Keras *k, const cJSON *config, uint32_t n,
                                 const TensorId *in) {
    Model m = {.k = k, .calls = map_new(k->net.arena)};
    Map *counts = map_new(k->net.arena);
    const cJSON *layer;
    cJSON_ArrayForEach(layer, keras_get(config, "layers")) {
        add_calls(&m, layer, next_slot(k, counts, layer));
    }
    place_inputs(&m, n, in);
    link_calls(&m);
    build_calls(&m);
    return find_outputs(&m, config);
}

/* The shape of the input is in its own layer, the first layer, or the model. */
static TensorId sequential_input(Keras *k, const cJSON *config,
                                 const cJSON *first) {
    const cJSON *of_layer = keras_get(first, "config");
    bool told = keras_get(of_layer, "batch_input_shape") ||
                keras_get(of_layer, "batch_shape") ||
                keras_get(of_layer, "batchInputShape");
    bool own = !strcmp(json_str(first, "class_name", ""), "InputLayer");
    const char *name =
        own ? layer_name(first)
            : arena_printf(k->net.arena, "%s_input", layer_name(first));
    net_at(&k->net, arena_strdup(k->net.arena, name), "InputLayer",
           (Loc){k->net.path, 0, 0});
    return build_input(k, told ? of_layer : config);
}

static TensorId build_sequential(Keras *k, const cJSON *config, uint32_t n,
                                 const TensorId *in) {
    const cJSON *layers =
        cJSON_IsArray(config) ? config : keras_get(config, "layers");
    const cJSON *layer;
    Map *counts = map_new(k->net.arena);
    TensorId at = n ? in[0] : sequential_input(k, config, layers->child);
    cJSON_ArrayForEach(layer, layers) {
        const char *slot = next_slot(k, counts, layer);
        TensorId *before = ARENA_COPY(k->net.arena, TensorId, &at, 1);
        if (strcmp(json_str(layer, "class_name", ""), "InputLayer"))
            at = build_layer(k, layer, slot, 1, before);
    }
    if (k->depth == 1 && at.i != NONE)
        graph_mark_output(k->net.g, at);
    return at;
}

TensorId keras_model(Keras *k, const cJSON *json, uint32_t n,
                     const TensorId *in) {
    const cJSON *config = keras_get(json, "config");
    const cJSON *layers =
        cJSON_IsArray(config) ? config : keras_get(config, "layers");
    bool sequential = !strcmp(json_str(json, "class_name", ""), "Sequential");
    TensorId out = NO_TENSOR;
    k->inner = build_inner;
    if (k->depth == MAX_DEPTH || !cJSON_IsArray(layers) || !layers->child) {
        diag_error(k->net.diag, (Loc){k->net.path, 0, 0},
                   k->depth == MAX_DEPTH ? "models are nested too deep"
                                         : "a model has no layers");
        return out;
    }
    k->depth++;
    out = sequential ? build_sequential(k, config, n, in)
                     : build_functional(k, config, n, in);
    k->depth--;
    return out;
}
