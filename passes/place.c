/* place.c - the pass `place-concats`: copies for members that cannot be
 * written in place.
 *
 * In: a graph and a machine. Out: each concat of channels either has all its
 * members in place, or is left whole to the host (legal_check says why). A
 * copy is an identity convolution 1x1 or, where that does not suit, an
 * identity SCALE, named after its tensor: `<member>__bridge`.
 */
#include "passes/passes_int.h"

#include "passes/insert.h"

/* Of a copy's kernel, c x c: its shape must stay a legal one. */
enum { COPY_CHANNELS_MOST = 1 << 15 };

typedef struct Placer {
    Graph *g;
    PassContext *context;
    ConcatView view;
    Insertions insertions;
    NodeId concat; /* the one at hand */
} Placer;

static Node *the_concat(const Placer *placer) {
    return graph_node(placer->g, placer->concat);
}

static uint32_t channels(const Placer *placer, TensorId tensor) {
    return shape_dim(&graph_tensor(placer->g, tensor)->shape, 1);
}

/* ---- which copy ---- */

static Attrs copy_attributes(OpKind op, uint32_t c) {
    Attrs attr = {0};
    if (op == OP_CONV)
        attr.conv = (ConvAttr){
            .out_c = c,
            .groups = 1,
            .kernel = {1, 1},
            .stride = {1, 1},
            .dilation = {1, 1},
        };
    return attr;
}

static bool copies_to(const Placer *placer, OpKind op, TensorId member,
                      uint32_t start) {
    const HwSpec *spec = placer->context->spec;
    uint32_t c = channels(placer, member);
    bool codes = graph_tensor(placer->g, member)->quant.type != QUANT_NONE;
    if (codes || (op == OP_CONV && c > COPY_CHANNELS_MOST))
        return false;
    Node node = {.op = op,
                 .name = "copy",
                 .n_in = 1,
                 .in = &member,
                 .n_out = 1,
                 .out = &member,
                 .attr = copy_attributes(op, c)};
    int32_t e = legal_engine(spec, placer->g, &node);
    if (e < 0)
        return false;
    uint32_t step = spec->engine[e].part_align;
    HwOp as = legal_candidate(spec, placer->g, &node).op;
    const Shape *shape = &graph_tensor(placer->g, member)->shape;
    return (step < 2 || start % step == 0) && concat_told(spec, as, start, c) &&
           concat_aligned(spec, as, shape, start);
}

/* OP_COUNT: none. */
static OpKind choose_copy(const Placer *placer, TensorId member,
                          uint32_t start) {
    static const OpKind choice[] = {OP_CONV, OP_SCALE};
    for (size_t i = 0; i < sizeof choice / sizeof *choice; i++)
        if (copies_to(placer, choice[i], member, start))
            return choice[i];
    return OP_COUNT;
}

/* ---- making it ---- */

static void add_weights(Graph *g, NodeId id, uint32_t c) {
    Shape kernel = shape_nchw(c, c, 1, 1);
    bool conv = graph_node(g, id)->op == OP_CONV;
    ConstRole role = conv ? CONST_WEIGHT : CONST_SCALE;
    ConstId one = conv ? constant_of(g, kernel, 1.0, c)
                       : constant_of(g, shape_of(c), 1.0, 0);
    graph_node(g, id)->constant[role] = one;
}

static void add_copy(Placer *placer, uint32_t k, OpKind op) {
    Graph *g = placer->g;
    TensorId member = the_concat(placer)->in[k];
    uint32_t c = channels(placer, member);
    const char *name =
        arena_printf(g->arena, "%s__bridge", graph_tensor(g, member)->name);
    NodeId id = graph_add(g, op, name, the_concat(placer)->loc, 1, &member);
    graph_gloss(g, "X__bridge is a copy of X in a concat, where X itself "
                   "cannot be written");
    graph_node(g, id)->attr = copy_attributes(op, c);
    graph_node(g, id)->no_bias = true;
    add_weights(g, id, c);
    TensorId out = graph_add_output(g, id, name);
    graph_tensor(g, out)->shape = graph_tensor(g, member)->shape;
    graph_tensor(g, out)->origin = graph_tensor(g, member)->origin;
    the_concat(placer)->in[k] = out;
    insert_before(placer->context->scratch, &placer->insertions, id,
                  placer->concat);
    if (placer->context->log)
        fprintf(placer->context->log, "place-concats: %s for %s\n", name,
                the_concat(placer)->name);
}

/* ---- which members ---- */

static bool comes_from_engine(const Placer *placer, TensorId member) {
    NodeId id = graph_tensor(placer->g, member)->producer;
    const Node *producer = graph_node(placer->g, id);
    if (producer->op == OP_CONCAT)
        return !concat_refuses_any(NULL, &placer->view, id);
    return legal_engine(placer->context->spec, placer->g, producer) >= 0;
}

/* For each member the copy it needs, OP_CONCAT for none; false if the host
 * had better do the whole: a member can neither be in place nor be copied
 * there, or all come from the host anyway. */
static bool plan_copies(const Placer *placer, OpKind *copy) {
    const Node *node = the_concat(placer);
    uint32_t start = 0;
    bool any_engine = false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        TensorId member = node->in[k];
        any_engine = any_engine || comes_from_engine(placer, member);
        copy[k] = OP_CONCAT;
        if (concat_refuses_member(NULL, &placer->view, placer->concat, k,
                                  start))
            copy[k] = choose_copy(placer, member, start);
        if (copy[k] == OP_COUNT)
            return false;
        start += channels(placer, member);
    }
    return any_engine;
}

static void place_concat(Placer *placer) {
    Arena *scratch = placer->context->scratch;
    uint32_t n = the_concat(placer)->n_in;
    OpKind *copy = ARENA_ARRAY(scratch, OpKind, n);
    if (concat_refuses(NULL, &placer->view, the_concat(placer)) ||
        !plan_copies(placer, copy))
        return;
    bool any = false;
    for (uint32_t k = 0; k < n; k++)
        if (copy[k] != OP_CONCAT) {
            add_copy(placer, k, copy[k]);
            any = true;
        }
    if (any)
        placer->view = concat_view(scratch, placer->context->spec, placer->g);
}

bool place_concats(Graph *g, PassContext *context) {
    Placer placer = {.g = g, .context = context};
    uint32_t n = g->node.n;
    if (!context->spec)
        return true;
    placer.view = concat_view(context->scratch, context->spec, g);
    for (uint32_t i = 0; i < n; i++)
        if (g->node.at[i].op == OP_CONCAT) {
            placer.concat.i = i;
            place_concat(&placer);
        }
    insert_finish(context->scratch, g, &placer.insertions);
    return true;
}
