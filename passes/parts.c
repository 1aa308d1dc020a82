/* parts.c - convolutions whose results are only taken apart.
 *
 * In: a fused graph. Where the result of a convolution takes more than half of
 * active memory, so that it does not fit beside what is taken from it, and all
 * that reads it are gathers of channels in a row, no two of the same, each of
 * these becomes the convolution that makes its channels. Products stay the
 * same; channels that nobody reads are not made.
 */
#include "passes/passes_int.h"

#include "graph/quant.h"

typedef struct Apart {
    Graph *g;
    PassContext *context;
    uint32_t *readers; /* by tensor; results of the network have one more */
} Apart;

/* Channels [first, first + n) that a gather takes. */
static bool range_of(const Apart *a, const Node *node, uint32_t *first) {
    uint32_t n = node->attr.gather.n;
    if (node->op != OP_GATHER || node->attr.gather.axis != 1 ||
        node->act.kind != ACT_NONE || !quant_picks(a->g, node) ||
        node->constant[CONST_INDEX].i == NONE)
        return false;
    double *index = ARENA_ARRAY(a->context->scratch, double, n);
    const_read_f64(graph_const(a->g, node->constant[CONST_INDEX]), index);
    *first = (uint32_t)index[0];
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)index[i] != *first + i)
            return false;
    return true;
}

static bool is_large(const Apart *a, TensorId tensor) {
    const HwMemory *memory = &a->context->spec->memory[0];
    const Shape *shape = &graph_tensor(a->g, tensor)->shape;
    Volume v = {.c = shape->dim[1], .h = shape->dim[2], .w = shape->dim[3]};
    return 2 * layout_bytes(memory->layout, &v) > memory->size;
}

static bool has_parts(const Apart *a, const Node *node) {
    for (int r = 0; r < CONST_ROLES; r++)
        if (node->constant[r].i != NONE &&
            !const_has_parts(graph_const(a->g, node->constant[r])))
            return false;
    return node->constant[CONST_WEIGHT].i != NONE;
}

static bool is_candidate(const Apart *a, const Node *node) {
    const Shape *shape = &graph_tensor(a->g, node->out[0])->shape;
    return node->op == OP_CONV && shape->rank == 4 && shape->dim[0] == 1 &&
           node->attr.conv.groups == 1 && node->act.kind != ACT_PRELU &&
           is_large(a, node->out[0]) && has_parts(a, node);
}

/* The gathers that read it; NULL: others do, too, or two the same channel. */
static NodeId *takers(const Apart *a, const Node *conv) {
    uint32_t n = a->readers[conv->out[0].i], found = 0, first = 0;
    NodeId *taker = ARENA_ARRAY(a->context->scratch, NodeId, n + 1);
    uint8_t *is = ARENA_ARRAY(a->context->scratch, uint8_t,
                              conv->attr.conv.out_c + (size_t)1);
    for (uint32_t i = 0; i < a->g->node.n && found < n; i++) {
        const Node *node = &a->g->node.at[i];
        if (!node->n_in || node->in[0].i != conv->out[0].i ||
            !range_of(a, node, &first))
            continue;
        for (uint32_t k = 0; k < node->attr.gather.n; k++)
            if (is[first + k]++)
                return NULL;
        taker[found++] = (NodeId){i};
    }
    return found && found == n ? taker : NULL;
}

static void take_apart(Apart *a, NodeId id) {
    const Node conv = *graph_node(a->g, id);
    if (!is_candidate(a, &conv))
        return;
    const NodeId *taker = takers(a, &conv);
    for (uint32_t i = 0; taker && i < a->readers[conv.out[0].i]; i++) {
        Node *node = graph_node(a->g, taker[i]);
        uint32_t first = 0, n = node->attr.gather.n;
        Attrs attr = conv.attr;
        range_of(a, node, &first);
        attr.conv.out_c = n;
        TensorId in = conv.in[0];
        node_become(a->g, node, OP_CONV, &attr, 1, &in);
        node->act = conv.act;
        node->no_bias = conv.no_bias;
        node_take_constants(a->g, taker[i], &conv, first, n);
    }
    if (taker)
        graph_node(a->g, id)->dead = true;
}

static void count_readers(Apart *a) {
    a->readers = ARENA_ARRAY(a->context->scratch, uint32_t, a->g->tensor.n + 1);
    for (uint32_t i = 0; i < a->g->node.n; i++) {
        const Node *node = &a->g->node.at[i];
        for (uint32_t k = 0; !node->dead && k < node->n_in; k++)
            a->readers[node->in[k].i]++;
    }
    for (TensorId t = {0}; t.i < a->g->tensor.n; t.i++)
        a->readers[t.i] += graph_is_output(a->g, t);
}

bool parts_run(Graph *g, PassContext *context) {
    Apart a = {.g = g, .context = context};
    if (!context->spec || context->spec->n_active != 1 ||
        hwspec_engine(context->spec, HW_OP_GATHER) < 0)
        return true;
    count_readers(&a);
    for (uint32_t i = 0; i < g->node.n; i++)
        take_apart(&a, (NodeId){i});
    graph_compact(g);
    return true;
}
