/* verify.c - every invariant of a graph, each with its own sentence.
 *
 * In: a graph that a front end or a pass says is whole. Out: nothing, or the
 * first broken invariant; since no input can break one, that is our bug. Each
 * row of `rules` checks one node; tensors and outputs are checked after them.
 */
#include "graph/shape.h"

#include <string.h>

typedef struct Verify {
    Arena *arena;
    const Graph *g;
    Diag *diag;
    Map *names;    /* of nodes seen so far */
    bool *written; /* by tensor: some node so far has it as output */
    const Node *node;
    NodeId id;
} Verify;

/* The sentence of a broken rule, about the node. */
__attribute__((format(printf, 2, 3))) static const char *
broken(const Verify *v, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(v->arena, format, args);
    va_end(args);
    return arena_printf(v->arena, "node %u \"%s\" %s", v->id.i, v->node->name,
                        what);
}

static const char *check_name(Verify *v) {
    const Node *node = v->node;
    if (!node->name || !*node->name)
        return arena_printf(v->arena, "node %u has no name", v->id.i);
    if (!map_put(v->names, node->name, 1))
        return broken(v, "shares its name with another");
    if ((node->op == OP_CONV_POOL) != (node->conv_name != NULL))
        return broken(v, "%s the name of a convolution",
                      node->conv_name ? "must not have" : "lacks");
    return NULL;
}

static const char *check_merged(Verify *v) {
    for (uint32_t i = 0; i < v->node->n_merged; i++)
        if (!strcmp(v->node->merged[i], v->node->name))
            return NULL;
    return broken(v, "is not among its %u merged layers", v->node->n_merged);
}

static const char *check_inputs(Verify *v) {
    for (uint32_t k = 0; k < v->node->n_in; k++) {
        TensorId in = v->node->in[k];
        if (in.i >= v->g->tensor.n)
            return broken(v, "reads tensor %u, which does not exist", in.i);
        const Tensor *tensor = graph_tensor(v->g, in);
        if (tensor->producer.i >= v->g->node.n)
            return broken(v, "reads \"%s\", which has no producer",
                          tensor->name);
        if (graph_node(v->g, tensor->producer)->dead)
            return broken(v, "reads \"%s\" of a dead node", tensor->name);
        if (!v->written[in.i])
            return broken(v, "reads \"%s\" before it is produced",
                          tensor->name);
    }
    return NULL;
}

static const char *check_outputs(Verify *v) {
    const Node *node = v->node;
    if (!node->n_out || (node->n_out > 1 && node->op != OP_IDENTITY))
        return broken(v, "has %u outputs", node->n_out);
    for (uint32_t o = 0; o < node->n_out; o++) {
        TensorId out = node->out[o];
        if (out.i >= v->g->tensor.n)
            return broken(v, "writes tensor %u, which does not exist", out.i);
        if (graph_tensor(v->g, out)->producer.i != v->id.i)
            return broken(v, "writes \"%s\", which another node produces",
                          graph_tensor(v->g, out)->name);
        if (v->written[out.i])
            return broken(v, "writes \"%s\" twice",
                          graph_tensor(v->g, out)->name);
        v->written[out.i] = true;
    }
    return NULL;
}

static const char *check_quant(Verify *v) {
    const Node *node = v->node;
    for (uint32_t o = 0; o < node->n_out; o++) {
        const Tensor *out = graph_tensor(v->g, node->out[o]);
        if (!quant_sound(&out->quant))
            return broken(v, "writes \"%s\", whose quantisation is not sound",
                          out->name);
        if (!quant_equal(&out->quant, &graph_tensor(v->g, node->out[0])->quant))
            return broken(v, "writes tensors that are quantised differently");
    }
    return NULL;
}

static const char *check_const_ids(Verify *v) {
    for (int role = 0; role < CONST_ROLES; role++) {
        uint32_t id = v->node->constant[role].i;
        if (id != NONE && id >= v->g->constant.n)
            return broken(v, "has constant %u as %s, which does not exist", id,
                          const_role_name[role]);
    }
    return NULL;
}

/* Attributes, constants and shapes: what inference would say of them now. */
static const char *check_shape(Verify *v) {
    Shape shape;
    if (!shape_infer(v->g, v->node, v->diag, &shape))
        return broken(v, "is not sound: %s",
                      diag_at(v->diag, diag_count(v->diag) - 1)->text);
    for (uint32_t o = 0; o < v->node->n_out; o++) {
        const Tensor *out = graph_tensor(v->g, v->node->out[o]);
        if (!shape_equal(&out->shape, &shape))
            return broken(v, "writes \"%s\" of shape %s, but infers %s",
                          out->name, shape_text(v->arena, &out->shape),
                          shape_text(v->arena, &shape));
    }
    return NULL;
}

static const char *(*const rules[])(Verify *) = {
    check_name,  check_merged,    check_inputs, check_outputs,
    check_quant, check_const_ids, check_shape,
};

static const char *check_node(Verify *v) {
    const char *sentence = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !sentence; i++)
        sentence = rules[i](v);
    return sentence;
}

/* Tensors of dead nodes may stand about, but not under a living one's name. */
static const char *check_tensors(const Verify *v) {
    Map *names = map_new(v->arena);
    for (uint32_t t = 0; t < v->g->tensor.n; t++) {
        const Tensor *tensor = &v->g->tensor.at[t];
        if (!tensor->name || !*tensor->name)
            return arena_printf(v->arena, "tensor %u has no name", t);
        if (!map_put(names, tensor->name, 1))
            return arena_printf(v->arena, "tensors share the name \"%s\"",
                                tensor->name);
        if (tensor->producer.i >= v->g->node.n)
            return arena_printf(v->arena, "tensor \"%s\" has no producer",
                                tensor->name);
        if (!v->written[t] && !graph_node(v->g, tensor->producer)->dead)
            return arena_printf(v->arena,
                                "tensor \"%s\" is not among the "
                                "outputs of its producer",
                                tensor->name);
    }
    return NULL;
}

static const char *check_network_outputs(const Verify *v) {
    bool *seen = ARENA_ARRAY(v->arena, bool, v->g->tensor.n);
    for (uint32_t i = 0; i < v->g->output.n; i++) {
        uint32_t t = v->g->output.at[i].i;
        if (t >= v->g->tensor.n || !v->written[t])
            return arena_printf(v->arena,
                                "network output %u is written by no "
                                "living node",
                                i);
        if (seen[t])
            return arena_printf(v->arena, "network output %u is there twice",
                                i);
        seen[t] = true;
    }
    return NULL;
}

/* Each output becomes one input at most, of its shape. */
static const char *check_states(const Verify *v) {
    bool *seen = ARENA_ARRAY(v->arena, bool, v->g->output.n + 1);
    for (uint32_t i = 0; i < v->g->node.n; i++) {
        const Node *node = &v->g->node.at[i];
        uint32_t state = node->op == OP_INPUT ? node->attr.state : 0;
        if (node->dead || !state)
            continue;
        if (state > v->g->output.n || seen[state])
            return arena_printf(v->arena,
                                "input \"%s\" is the state of output %u, "
                                "which is not there, or another's",
                                node->name, state);
        seen[state] = true;
        const Tensor *in = graph_tensor(v->g, node->out[0]);
        const Tensor *out = graph_tensor(v->g, v->g->output.at[state - 1]);
        if (!shape_equal(&in->shape, &out->shape) ||
            !quant_equal(&in->quant, &out->quant))
            return arena_printf(v->arena,
                                "state \"%s\" and output \"%s\" have not "
                                "one shape and type",
                                in->name, out->name);
    }
    return NULL;
}

const char *graph_broken(Arena *arena, const Graph *g) {
    Verify v = {
        .arena = arena,
        .g = g,
        .diag = diag_new(arena),
        .names = map_new(arena),
        .written = ARENA_ARRAY(arena, bool, g->tensor.n),
    };
    for (uint32_t i = 0; i < g->node.n; i++) {
        v.node = &g->node.at[i];
        v.id.i = i;
        const char *sentence = v.node->dead ? NULL : check_node(&v);
        if (sentence)
            return sentence;
    }
    const char *sentence = check_tensors(&v);
    if (!sentence)
        sentence = check_network_outputs(&v);
    return sentence ? sentence : check_states(&v);
}

void graph_verify(const Graph *g, const char *after) {
    Arena *scratch = arena_new("graph_verify");
    const char *sentence = graph_broken(scratch, g);
    if (sentence)
        bug("after %s: %s", after, sentence);
    arena_free(scratch);
}
