/* sequence.c - Keras' layers over sequences, N x L x C: recurrent ones,
 * embeddings, and windows along L; see ops.c for the rest.
 *
 * Windows are those of an image of one row.
 */
#include "frontends/keras/keras.h"

#include <string.h>

/* ---- config ---- */

/* 3, or [3]. */
static uint32_t length(const cJSON *config, const char *key,
                       uint32_t fallback) {
    const cJSON *item = keras_get(config, key);
    if (cJSON_IsArray(item))
        item = item->child;
    return keras_size(item, fallback);
}

static Shape shape_of(Keras *k, TensorId in) {
    return in.i == NONE ? (Shape){0} : net_shape(&k->net, in);
}

/* A tensor of weights; without values they are seeded. */
static TensorId weights(Keras *k, const char *part, Shape shape,
                        const Const *value) {
    NodeId node = net_node(&k->net, OP_CONSTANT, part, 0, NULL);
    graph_node(k->net.g, node)->attr.reshape = shape;
    net_const(&k->net, node, CONST_VALUE, value);
    return net_out(&k->net, node);
}

/* ---- windows ---- */

/* As an image of one row, or back. */
static TensorId row(Keras *k, TensorId in) {
    Shape s = shape_of(k, in);
    if (in.i != NONE && s.rank != 3)
        return net_none(&k->net, "needs a sequence");
    return net_reshape(&k->net, "row", in,
                       (Shape){4, {s.dim[0], 1, s.dim[1], s.dim[2]}});
}

static TensorId unrow(Keras *k, TensorId in) {
    Shape s = shape_of(k, in);
    return net_reshape(&k->net, NULL, in,
                       (Shape){3, {s.dim[0], s.dim[2], s.dim[3]}});
}

static bool reads_channels_last(Keras *k) {
    const char *order = json_str(k->config, "data_format", "channels_last");
    return !strcmp(order, "channels_last") ||
           net_fail(&k->net, "sequences with channels first are not supported");
}

/* L x I x O, of depthwise ones L x C x M, as a kernel of one row. */
static const Const *row_kernel(Keras *k, const char *name) {
    const Const *w = keras_variable(k, name);
    if (!w || w->shape.rank != 3)
        return w;
    Const *turned = ARENA_NEW(k->net.arena, Const);
    *turned = net_permute(&k->net, w, w->shape, (uint32_t[]){2, 1, 0});
    return turned;
}

TensorId keras_conv_row(Keras *k, int kind) {
    TensorId in = row(k, k->in[0]);
    const char *padding = json_str(k->config, "padding", "valid");
    bool bias = keras_flag(k->config, "use_bias", true);
    (void)kind;
    if (in.i == NONE || !reads_channels_last(k))
        return NO_TENSOR;
    ConvAttr a = {.out_c = length(k->config, "filters", 0),
                  .groups = length(k->config, "groups", 1),
                  .kernel = {1, length(k->config, "kernel_size", 1)},
                  .stride = {1, length(k->config, "strides", 1)},
                  .dilation = {1, length(k->config, "dilation_rate", 1)}};
    if (!strcmp(padding, "same"))
        net_same_conv(&k->net, in, &a);
    else if (!strcmp(padding, "causal"))
        a.pad[1] = (a.kernel[1] - 1) * a.dilation[1];
    const Const *w = row_kernel(k, "kernel");
    const char *layer = k->net.layer;
    k->net.layer = arena_printf(k->net.arena, "%s/conv", k->name);
    TensorId out = net_conv(&k->net, OP_CONV, in, &a, w, bias,
                            bias ? keras_variable(k, "bias") : NULL);
    k->net.layer = layer;
    return keras_activate(k, "activation", unrow(k, out));
}

TensorId keras_pool_row(Keras *k, int kind) {
    TensorId in = row(k, k->in[0]);
    uint32_t size = length(k->config, "pool_size", 2);
    PoolAttr a = {.kind = (PoolKind)kind,
                  .kernel = {1, size},
                  .stride = {1, length(k->config, "strides", size)}};
    if (in.i == NONE || !reads_channels_last(k))
        return NO_TENSOR;
    if (!strcmp(json_str(k->config, "padding", "valid"), "same"))
        net_same_pool(&k->net, in, &a);
    const char *layer = k->net.layer;
    k->net.layer = arena_printf(k->net.arena, "%s/pool", k->name);
    TensorId out = net_pool(&k->net, in, &a);
    k->net.layer = layer;
    return unrow(k, out);
}

TensorId keras_pool_all(Keras *k, int kind) {
    int64_t axis = 1;
    return net_reduce_axes(&k->net, k->in[0], (ReduceKind)kind, 1, &axis,
                           keras_flag(k->config, "keepdims", false));
}

/* N x C as N x n x C. */
TensorId keras_repeat(Keras *k, int kind) {
    uint32_t n = length(k->config, "n", 0);
    Shape s = shape_of(k, k->in[0]);
    (void)kind;
    if (!n || n > 1 << 16 || s.rank != 2)
        return net_none(&k->net, "repeats none, too many, or no vectors");
    TensorId one = net_reshape(&k->net, "one", k->in[0],
                               (Shape){3, {s.dim[0], 1, s.dim[1]}});
    TensorId *all = ARENA_ARRAY(k->net.arena, TensorId, n);
    for (uint32_t i = 0; i < n; i++)
        all[i] = one;
    return net_concat(&k->net, n, all, 1);
}

TensorId keras_embedding(Keras *k, int kind) {
    Shape table = {2,
                   {length(k->config, "input_dim", 0),
                    length(k->config, "output_dim", 0)}};
    (void)kind;
    TensorId in[] = {
        weights(k, "table", table, keras_variable(k, "embeddings")), k->in[0]};
    return net_routine_out(&k->net,
                           net_routine(&k->net, ROUTINE_TAKE, NULL, 2, in));
}

/* ---- recurrent layers ---- */

typedef struct Cell {
    const char *name, *word; /* Keras' class, and the routine's word */
    uint32_t gates;
    uint32_t at[4]; /* where Keras has the routine's gates */
} Cell;
static const Cell cells[] = {{"SimpleRNN", "rnn", 1, {0}},
                             {"GRU", "gru", 3, {0, 1, 2}},
                             {"LSTM", "lstm", 4, {0, 3, 1, 2}}};

typedef struct Layer {
    Keras *k;
    const cJSON *config;
    const Cell *cell;
    uint32_t units;
    bool reset_after;
} Layer;

/* I x (G * H) as (G * H) x I, the gates in the order of the routine. */
static TensorId gates(const Layer *l, const char *name, uint32_t inputs) {
    Keras *k = l->k;
    const Const *w = keras_variable(k, name);
    uint32_t wide = l->cell->gates * l->units;
    Shape shape = {2, {wide, inputs}};
    if (!w || shape_count(&w->shape) != shape_count(&shape))
        return weights(k, name, shape, w);
    float *in = ARENA_ARRAY(k->net.arena, float, shape_count(&shape));
    float *out = ARENA_ARRAY(k->net.arena, float, shape_count(&shape));
    const_read(w, in);
    for (uint32_t r = 0; r < wide; r++) {
        uint32_t from = l->cell->at[r / l->units] * l->units + r % l->units;
        for (uint32_t i = 0; i < inputs; i++)
            out[(uint64_t)r * inputs + i] = in[(uint64_t)i * wide + from];
    }
    Const turned = net_floats(&k->net, shape, out);
    return weights(k, name, shape, &turned);
}

/* That of the input, then that of the state, which only `reset_after` has. */
static TensorId bias(const Layer *l) {
    Keras *k = l->k;
    const Const *b = keras_variable(k, "bias");
    uint32_t wide = l->cell->gates * l->units;
    Shape shape = {1, {2 * wide}};
    uint32_t have = l->reset_after ? 2 : 1;
    float *out = ARENA_ARRAY(k->net.arena, float, 2 * (uint64_t)wide);
    if (b && shape_count(&b->shape) != (uint64_t)have * wide)
        return net_none(&k->net, "its bias does not fit");
    if (!b)
        return weights(k, "bias", shape, NULL);
    float *in = ARENA_ARRAY(k->net.arena, float, 2 * (uint64_t)wide);
    const_read(b, in);
    for (uint32_t r = 0; r < have * wide; r++) {
        uint32_t gate = r % wide / l->units;
        out[r] =
            in[r / wide * wide + l->cell->at[gate] * l->units + r % l->units];
    }
    Const turned = net_floats(&k->net, shape, out);
    return weights(k, "bias", shape, &turned);
}

static const char *act_of(const Layer *l, const char *key, const char *absent) {
    const cJSON *item = keras_get(l->config, key);
    const char *word = cJSON_IsString(item) ? item->valuestring
                       : item ? json_str(item, "class_name", absent)
                              : absent;
    return !strcmp(word, "linear") ? "affine" : word;
}

/* f is of gates, g and h are of states; a simple layer has f alone. */
static void set_acts(const Layer *l, NodeId node) {
    static const char *const slots[] = {"f", "g", "h"};
    double alpha[3], beta[3];
    for (uint32_t i = 0; i < 3; i++) {
        bool gate = i == 0 && l->cell->gates > 1;
        const char *word = gate ? act_of(l, "recurrent_activation", "sigmoid")
                                : act_of(l, "activation", "tanh");
        bool hard = !strcmp(word, "hard_sigmoid");
        alpha[i] = !hard ? 1 : l->k->third ? 1.0 / 6 : 0.2;
        beta[i] = hard ? 0.5 : 0;
        net_word_is(&l->k->net, node, slots[i], word);
    }
    net_numbers_are(&l->k->net, node, "alpha", 3, alpha);
    net_numbers_are(&l->k->net, node, "beta", 3, beta);
}

/* All states, L x N x H, of a sequence L x N x C. */
static TensorId run(const Layer *l, TensorId in, bool backwards) {
    Keras *k = l->k;
    bool has_bias = keras_flag(l->config, "use_bias", true);
    uint32_t inputs = shape_of(k, in).dim[2];
    TensorId all[4] = {in, gates(l, "kernel", inputs),
                       gates(l, "recurrent_kernel", l->units)};
    if (has_bias)
        all[3] = bias(l);
    NodeId node = net_routine(&k->net, ROUTINE_RECURRENT, "states",
                              has_bias ? 4 : 3, all);
    net_word_is(&k->net, node, "cell", l->cell->word);
    net_number_is(&k->net, node, "given", has_bias ? 15 : 7);
    net_number_is(&k->net, node, "reverse", backwards);
    net_number_is(&k->net, node, "reset_after", l->reset_after);
    set_acts(l, node);
    return net_routine_out(&k->net, node);
}

/* The last of all states, or all of them as N x L x H. */
static TensorId states(Keras *k, TensorId all, bool backwards, bool sequences) {
    Shape s = shape_of(k, all);
    if (all.i == NONE)
        return all;
    if (sequences)
        return net_transpose(&k->net, "sequence", all, (Shape){3, {1, 0, 2}});
    uint32_t at = backwards ? 0 : s.dim[0] - 1;
    all = net_slice(&k->net, "last", all, 0, at, at + 1);
    return net_reshape(&k->net, "state", all, (Shape){2, {s.dim[1], s.dim[2]}});
}

static bool open_layer(Keras *k, const char *kind, const cJSON *config,
                       Layer *l) {
    *l = (Layer){.k = k,
                 .config = config,
                 .units = length(config, "units", 0),
                 .reset_after = keras_flag(config, "reset_after", false)};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (!strcmp(cells[i].name, kind))
            l->cell = &cells[i];
    l->reset_after &= l->cell && l->cell->gates == 3;
    if (!l->cell || !l->units)
        return net_fail(&k->net, "a layer %s is not supported in it", kind);
    if (keras_flag(config, "return_state", false) ||
        keras_flag(config, "stateful", false))
        return net_fail(&k->net, "a state that is handed on is not supported");
    return true;
}

static TensorId steps(Keras *k) {
    if (shape_of(k, k->in[0]).rank != 3)
        return net_none(&k->net, "needs a sequence");
    return net_transpose(&k->net, "steps", k->in[0], (Shape){3, {1, 0, 2}});
}

/* All states in the order in which they were made. */
static TensorId turned_round(Keras *k, TensorId all) {
    Shape s = shape_of(k, all);
    if (all.i == NONE)
        return all;
    float *index = ARENA_ARRAY(k->net.arena, float, s.dim[0]);
    for (uint32_t i = 0; i < s.dim[0]; i++)
        index[i] = (float)(s.dim[0] - 1 - i);
    return net_gather(&k->net, "backwards", all, 0, (Shape){2, {s.dim[0], 1}},
                      index, NULL);
}

TensorId keras_recurrent(Keras *k, int kind) {
    Layer l;
    TensorId in = steps(k);
    bool sequences = keras_flag(k->config, "return_sequences", false);
    bool backwards = keras_flag(k->config, "go_backwards", false);
    if (in.i == NONE || !open_layer(k, cells[kind].name, k->config, &l))
        return NO_TENSOR;
    TensorId all = run(&l, in, backwards);
    if (backwards && sequences)
        all = turned_round(k, all);
    return net_identity(&k->net, states(k, all, backwards, sequences));
}

/* One layer in both directions. */
TensorId keras_both_ways(Keras *k, int kind) {
    const cJSON *inner = keras_get(k->config, "layer");
    const cJSON *config = keras_get(inner, "config");
    const char *mode = json_str(k->config, "merge_mode", "concat");
    const char *name = k->name, *slot = k->slot;
    bool sequences = keras_flag(config, "return_sequences", false);
    TensorId in = steps(k), out[2];
    Layer l;
    (void)kind;
    if (in.i == NONE ||
        !open_layer(k, json_str(inner, "class_name", "?"), config, &l))
        return NO_TENSOR;
    for (int way = 0; way < 2; way++) {
        const char *word = way ? "backward" : "forward";
        k->name = arena_printf(k->net.arena, "%s_%s", word,
                               json_str(config, "name", "layer"));
        k->slot = arena_printf(k->net.arena, "%s/%s_layer", slot, word);
        k->net.layer = arena_printf(k->net.arena, "%s/%s", name, word);
        k->next_var = 0;
        out[way] = states(k, run(&l, in, way == 1), way == 1, sequences);
    }
    k->name = k->net.layer = name;
    k->slot = slot;
    if (!strcmp(mode, "concat"))
        return net_concat(&k->net, 2, out, -1);
    if (!strcmp(mode, "sum"))
        return net_elt(&k->net, NULL, ELT_ADD, 2, out);
    if (!strcmp(mode, "mul"))
        return net_elt(&k->net, NULL, ELT_MUL, 2, out);
    if (!strcmp(mode, "ave"))
        return net_affine(&k->net, NULL,
                          net_elt(&k->net, "sum", ELT_ADD, 2, out), 0.5, 0);
    return net_none(&k->net, "merge_mode %s is not supported", mode);
}
