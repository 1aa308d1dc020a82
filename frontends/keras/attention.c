/* attention.c - Keras' layers of transformers: norms over the last axes,
 * attention of several heads, and layers that see each step by itself.
 *
 * Kernels of heads are inputs x heads x size, of what comes behind them heads x
 * size x outputs. Parts have weights of their own: "NAME/query/kernel".
 */
#include "frontends/keras/keras.h"

#include <math.h>
#include <string.h>

/* ---- norms ---- */

/* -1 or [-2, -1]: which axes of the graph, as the first and how many. */
static bool norm_axes(Keras *k, uint32_t *first, uint32_t *n) {
    const cJSON *list = keras_get(k->config, "axis"), *item;
    uint32_t axes = 0, axis;
    if (!cJSON_IsArray(list)) {
        int64_t only = cJSON_IsNumber(list) ? list->valueint : -1;
        if (!net_axis(&k->net, k->in[0], only, &axis))
            return false;
        axes = 1u << axis;
    }
    for (item = cJSON_IsArray(list) ? list->child : NULL; item;
         item = item->next) {
        if (!net_axis(&k->net, k->in[0], item->valueint, &axis))
            return false;
        axes |= 1u << axis;
    }
    for (*first = 0; axes && !(axes >> *first & 1);)
        ++*first;
    for (*n = 0; axes >> (*first + *n) & 1;)
        ++*n;
    return axes == ((1u << *n) - 1) << *first ||
           net_fail(&k->net, "axes with others between are not supported");
}

TensorId keras_layer_norm(Keras *k, int rms) {
    uint32_t first, n;
    if (!norm_axes(k, &first, &n))
        return NO_TENSOR;
    NodeId id = net_node(&k->net, OP_NORM, "norm", 1, k->in);
    Node *node = graph_node(k->net.g, id);
    node->attr.norm.axis = first;
    node->attr.norm.axes = n;
    node->attr.norm.eps = json_num(k->config, "epsilon", rms ? 1e-6 : 1e-3);
    node->attr.norm.rms = rms || keras_flag(k->config, "rms_scaling", false);
    TensorId out = net_out(&k->net, id);
    const Const *gamma = NULL, *beta = NULL;
    if (rms || keras_flag(k->config, "scale", true))
        gamma = keras_variable(k, rms ? "scale" : "gamma");
    if (!rms && keras_flag(k->config, "center", true))
        beta = keras_variable(k, "beta");
    if (gamma)
        out = net_elt_const(&k->net, ELT_MUL, out, gamma, false);
    return beta ? net_elt_const(&k->net, ELT_ADD, out, beta, false) : out;
}

/* ---- attention ---- */

typedef struct Heads {
    uint32_t heads, size, wide; /* of a key, of a value */
    bool bias;
} Heads;

/* Weights of the part from now on. */
static void at_part(Keras *k, const char *name, const char *slot,
                    const char *part, const char *dense) {
    k->name = arena_printf(k->net.arena, "%s/%s", name, part);
    k->slot = arena_printf(k->net.arena, "%s/%s", slot, dense);
    k->net.layer = k->name;
    k->next_var = 0;
}

/* A product with a kernel of which `rows` axes are those of the input. */
static TensorId projected(Keras *k, TensorId in, uint32_t out, uint32_t rows,
                          bool bias) {
    const Const *w = keras_variable(k, "kernel");
    const Const *b = bias ? keras_variable(k, "bias") : NULL;
    Dense dense = {.out = out, .has_bias = bias};
    Const turned, line;
    if (w && w->shape.rank == 3) {
        uint32_t from = 1;
        for (uint32_t i = 0; i < rows; i++)
            from *= w->shape.dim[i];
        Shape flat = {2, {from, (uint32_t)(shape_count(&w->shape) / from)}};
        if (flat.dim[1] != out)
            return net_none(&k->net, "a kernel has %u outputs, not %u",
                            flat.dim[1], out);
        turned = net_permute(&k->net, w, flat, (uint32_t[]){1, 0});
        dense.weight = &turned;
    }
    if (b && shape_count(&b->shape) == out) {
        line = const_reshaped(k->net.arena, b, &(Shape){1, {out}});
        dense.bias = &line;
    }
    return net_dense(&k->net, in, &dense);
}

/* N x T x (heads * size) as N x heads x T x size. */
static TensorId apart(Keras *k, TensorId in, uint32_t heads) {
    static const int64_t perm[] = {0, 2, 1, 3};
    if (in.i == NONE)
        return in;
    Shape s = net_shape(&k->net, in);
    TensorId out =
        net_reshape(&k->net, "heads", in,
                    (Shape){4, {s.dim[0], s.dim[1], heads, s.dim[2] / heads}});
    return net_permute_axes(&k->net, out, 4, perm);
}

static TensorId together(Keras *k, TensorId in) {
    static const int64_t perm[] = {0, 2, 1, 3};
    if (in.i == NONE)
        return in;
    TensorId out = net_permute_axes(&k->net, in, 4, perm);
    Shape s = net_shape(&k->net, out);
    return net_reshape(&k->net, "tokens", out,
                       (Shape){3, {s.dim[0], s.dim[1], s.dim[2] * s.dim[3]}});
}

/* Keys behind a query count as nothing. */
static TensorId without_later(Keras *k, TensorId scores) {
    Shape s = net_shape(&k->net, scores);
    uint32_t rows = s.dim[2], columns = s.dim[3];
    float *mask = ARENA_ARRAY(k->net.arena, float, (size_t)rows *columns);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = i + 1; j < columns; j++)
            mask[(size_t)i * columns + j] = -1e9f;
    Const value = net_floats(&k->net, (Shape){2, {rows, columns}}, mask);
    return net_elt_const(&k->net, ELT_ADD, scores, &value, false);
}

static bool reads_tokens(Keras *k) {
    for (uint32_t i = 0; i < k->n_in; i++)
        if (net_shape(&k->net, k->in[i]).rank != 3)
            return net_fail(&k->net, "attends to other than N x T x C");
    const cJSON *axes = keras_get(k->config, "attention_axes");
    return (k->n_in <= 3 ||
            net_fail(&k->net, "a mask of attention is not supported")) &&
           (!axes || cJSON_IsNull(axes) || cJSON_GetArraySize(axes) <= 1 ||
            net_fail(&k->net, "several attention_axes are not supported"));
}

/* Query, value, key; the key is the value where it is not given. */
TensorId keras_attention(Keras *k, int kind) {
    static const bool plain[] = {false, false}, turned[] = {false, true};
    const char *name = k->name, *slot = k->slot;
    Heads h = {.heads = keras_size(keras_get(k->config, "num_heads"), 0),
               .size = keras_size(keras_get(k->config, "key_dim"), 0),
               .bias = keras_flag(k->config, "use_bias", true)};
    h.wide = keras_size(keras_get(k->config, "value_dim"), h.size);
    (void)kind;
    if (!h.heads || !h.size || !h.wide || !reads_tokens(k))
        return h.heads && h.size && h.wide
                   ? NO_TENSOR
                   : net_none(&k->net, "has no heads, or no size of keys");
    TensorId value = k->n_in > 1 ? k->in[1] : k->in[0];
    TensorId key = k->n_in > 2 ? k->in[2] : value;
    Shape to = net_shape(&k->net, k->in[0]);
    at_part(k, name, slot, "query", "query_dense");
    TensorId q = projected(k, k->in[0], h.heads * h.size, 1, h.bias);
    q = apart(k, net_affine(&k->net, "scaled", q, 1 / sqrt(h.size), 0),
              h.heads);
    at_part(k, name, slot, "key", "key_dense");
    TensorId keys =
        apart(k, projected(k, key, h.heads * h.size, 1, h.bias), h.heads);
    at_part(k, name, slot, "value", "value_dense");
    TensorId values =
        apart(k, projected(k, value, h.heads * h.wide, 1, h.bias), h.heads);
    at_part(k, name, slot, "scores", "scores");
    if (q.i == NONE || keys.i == NONE || values.i == NONE)
        return NO_TENSOR;
    TensorId scores = net_matmul(&k->net, (TensorId[]){q, keys}, turned);
    if (keras_told(k, "use_causal_mask"))
        scores = without_later(k, scores);
    scores = net_softmax(&k->net, scores, -1);
    at_part(k, name, slot, "weighed", "weighed");
    TensorId out = net_matmul(&k->net, (TensorId[]){scores, values}, plain);
    out = together(k, out);
    at_part(k, name, slot, "attention_output", "output_dense");
    out = projected(k, out, to.dim[2], 2, h.bias);
    k->name = k->net.layer = name;
    k->slot = slot;
    return out;
}

/* ---- each step by itself ---- */

TensorId keras_each_step(Keras *k, int kind) {
    const cJSON *inner = keras_get(k->config, "layer");
    Shape s = net_shape(&k->net, k->in[0]);
    const char *name = k->name;
    (void)kind;
    if (s.rank < 3)
        return net_none(&k->net, "needs N x T x ...");
    Shape flat = {.rank = s.rank - 1};
    flat.dim[0] = s.dim[0] * s.dim[1];
    memcpy(flat.dim + 1, s.dim + 2, (s.rank - 2) * sizeof *flat.dim);
    TensorId in = net_reshape(&k->net, "steps", k->in[0], flat);
    const cJSON *config = k->config;
    TensorId out = k->inner(k, inner, in);
    k->config = config;
    k->name = name;
    if (out.i == NONE)
        return out;
    net_at(&k->net, name, "TimeDistributed", k->net.loc);
    Shape made = net_shape(&k->net, out), whole_shape = {.rank = made.rank + 1};
    if (whole_shape.rank > SHAPE_MAX_RANK || made.dim[0] != flat.dim[0])
        return net_none(&k->net, "its layer changes the number of steps");
    whole_shape.dim[0] = s.dim[0];
    whole_shape.dim[1] = s.dim[1];
    memcpy(whole_shape.dim + 2, made.dim + 1,
           (made.rank - 1) * sizeof *made.dim);
    return net_reshape(&k->net, "sequence", out, whole_shape);
}
