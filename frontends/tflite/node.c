/* node.c - inputs and options of the operator that is being built; see
 * tflite.h.
 */
#include "frontends/tflite/tflite.h"

#include "graph/quant.h"

/* ---- inputs ---- */

TflTensor *tfl_tensor(Tfl *t, uint32_t i) {
    if (i >= t->in.n)
        return NULL;
    int32_t id = flat_at_i32(&t->flat, t->in, i);
    return id >= 0 && (uint32_t)id < t->n ? &t->tensor[id] : NULL;
}

bool tfl_known(const TflTensor *tensor) {
    return tensor->data.at || tensor->has_value;
}

const Const *tfl_maybe(Tfl *t, uint32_t i) {
    TflTensor *tensor = tfl_tensor(t, i);
    return tensor && tfl_known(tensor) && tfl_values(t, tensor) ? &tensor->value
                                                                : NULL;
}

const Const *tfl_const(Tfl *t, uint32_t i) {
    const TflTensor *tensor = tfl_tensor(t, i);
    if (!tensor || !tfl_known(tensor))
        net_fail(&t->net, "its input %u must be a constant", i);
    return tfl_maybe(t, i);
}

void tfl_set_quant(Tfl *t, uint32_t known, TensorId made, const Quant *quant) {
    Graph *g = t->net.g;
    graph_tensor(g, made)->quant = *quant;
    for (;;) {
        const Node *node = graph_node(g, graph_tensor(g, made)->producer);
        if (node->n_in != 1 || node->in[0].i < known || !quant_moves(g, node))
            return;
        made = node->in[0];
        if (graph_tensor(g, made)->quant.type == QUANT_NONE)
            graph_tensor(g, made)->quant = *quant;
    }
}

TensorId tfl_in(Tfl *t, uint32_t i) {
    TflTensor *tensor = tfl_tensor(t, i);
    if (!tensor)
        return net_none(&t->net, "its input %u is missing", i);
    if (tensor->made.i != NONE || !tfl_known(tensor))
        return tensor->made;
    uint32_t known = t->net.g->tensor.n;
    const Const *value = tfl_const(t, i);
    TensorId made =
        value ? net_constant(&t->net, "constant", value) : NO_TENSOR;
    if (made.i != NONE)
        tfl_set_quant(t, known, made, &tensor->quant);
    if (!t->aside)
        tensor->made = made;
    return made;
}

/* Of constants that the graph has computed. */
static int ints_of(Tfl *t, const Const *c, uint32_t max, int64_t *out) {
    uint64_t n = shape_count(&c->shape);
    if (n > max || n > 2 * SHAPE_MAX_RANK) {
        net_fail(&t->net, "has more than %u numbers where they must be few",
                 max);
        return -1;
    }
    return net_whole_numbers(c, out);
}

int tfl_ints(Tfl *t, uint32_t i, uint32_t max, int64_t *out) {
    const TflTensor *tensor = tfl_tensor(t, i);
    bool wide = tensor && tensor->type == 4;
    if (tensor && !tensor->data.at && tensor->has_value)
        return ints_of(t, &tensor->value, max, out);
    if (!tensor || !tensor->data.at || (tensor->type != 2 && !wide)) {
        net_fail(&t->net, "its input %u must be constant whole numbers", i);
        return -1;
    }
    uint64_t n = tensor->data.len / (wide ? 8 : 4);
    FlatVector all = {(uint32_t)(tensor->data.at - t->flat.at), (uint32_t)n};
    if (n > max) {
        net_fail(&t->net, "its input %u has more than %u numbers", i, max);
        return -1;
    }
    for (uint32_t k = 0; k < n; k++)
        out[k] = wide ? flat_at_i64(&t->flat, all, k)
                      : flat_at_i32(&t->flat, all, k);
    return (int)n;
}

bool tfl_shape_in(Tfl *t, uint32_t i, Shape *out) {
    int64_t dim[SHAPE_MAX_RANK];
    int n = tfl_ints(t, i, SHAPE_MAX_RANK, dim);
    return net_shape_of(&t->net, n, dim, out);
}

bool tfl_codes(Tfl *t, uint32_t i, Const *out) {
    TflTensor *tensor = tfl_tensor(t, i);
    if (tensor && tensor->data.at && tfl_coded(t, tensor, out))
        return true;
    const Const *value = tfl_const(t, i);
    if (value)
        *out = *value;
    return value != NULL;
}

/* ---- options ---- */

int32_t tfl_option(Tfl *t, uint32_t field, int32_t missing) {
    return flat_i32(&t->flat, t->options, field, missing);
}

static const Act fused_acts[] = {
    {.kind = ACT_NONE},
    {.kind = ACT_RELU},
    {.kind = ACT_CLIP, .lo = -1, .hi = 1},
    {.kind = ACT_RELU6},
    {.kind = ACT_TANH},
};
enum { FUSED_ACTS = sizeof fused_acts / sizeof *fused_acts };

bool tfl_is_quantised(const Tfl *t) {
    int32_t id = flat_at_i32(&t->flat, t->out, 0);
    return t->tensor[id].quant.type != QUANT_NONE;
}

TensorId tfl_fused(Tfl *t, uint32_t field, TensorId in) {
    uint8_t kind = flat_u8(&t->flat, t->options, field, 0);
    if (kind >= FUSED_ACTS)
        return net_none(&t->net, "fused activation %u is not supported", kind);
    if (kind && in.i != NONE && tfl_is_quantised(t)) {
        Graph *g = t->net.g;
        graph_node(g, graph_tensor(g, in)->producer)->act = fused_acts[kind];
        return in;
    }
    return kind ? net_act(&t->net, "act", in, fused_acts[kind]) : in;
}
