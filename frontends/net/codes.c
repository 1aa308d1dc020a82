/* codes.c - networks that say where values become codes, as layers on codes.
 *
 * In: a graph in which a layer "identity" from real numbers to a quantised
 * tensor stands for each place where the file rounds (QuantizeLinear), and in
 * which what the file turns back into numbers is read as it is. Out: the same
 * network, in which layers write codes themselves, bounds behind a layer and
 * slopes below 0 behind sums are its activation, what only moves codes reads
 * and writes them alike, and biases count in the unit of the products.
 *
 * Nothing changes its meaning: a layer that reads codes and writes codes
 * computes on real numbers and rounds once, unless graph/quant.h has a rule of
 * integers for it. Rounding goes before what moves or bounds numbers, because
 * it keeps their order.
 */
#include "frontends/net/net.h"
#include "graph/quant.h"

#include <math.h>
#include <string.h>

typedef struct Settle {
    Graph *g;
    Arena *scratch;
    uint32_t n_tensors; /* at first; those added later are read once */
    uint32_t *uses;
    VEC(NodeId) work; /* layers that write codes since the last look */
} Settle;

static Tensor *tensor_of(const Settle *s, TensorId id) {
    return graph_tensor(s->g, id);
}

static bool is_real(const Settle *s, TensorId id) {
    return tensor_of(s, id)->quant.type == QUANT_NONE;
}

/* Nobody but one layer sees it. */
static bool is_between(const Settle *s, TensorId id) {
    uint32_t uses = id.i < s->n_tensors ? s->uses[id.i] : 1;
    return uses == 1 && !graph_is_output(s->g, id);
}

/* May the layer that makes it write codes instead? */
static bool may_round(const Settle *s, TensorId id) {
    const Node *maker = graph_node(s->g, tensor_of(s, id)->producer);
    return is_real(s, id) && is_between(s, id) && maker->op != OP_INPUT &&
           maker->n_out == 1;
}

static void written(Settle *s, TensorId id, const Quant *q) {
    tensor_of(s, id)->quant = *q;
    vec_push(s->scratch, &s->work, tensor_of(s, id)->producer);
}

/* The layer behind `to`, which wrote `from`, is gone. */
static void take_over(Settle *s, TensorId to, TensorId from) {
    Node *gone = graph_node(s->g, tensor_of(s, from)->producer);
    Quant q = tensor_of(s, from)->quant;
    graph_take_over(s->g, to, from);
    if (to.i < s->n_tensors)
        s->uses[to.i] = from.i < s->n_tensors ? s->uses[from.i] : 1;
    gone->dead = true;
    written(s, to, &q);
}

/* ---- rounding, moved to where numbers are made ---- */

static bool is_rounding(const Settle *s, const Node *node) {
    return !node->dead && node->op == OP_IDENTITY && node->n_out == 1 &&
           node->act.kind == ACT_NONE && is_real(s, node->in[0]) &&
           !is_real(s, node->out[0]);
}

/* A layer from `in` to codes; readers of `in` stay as they are. */
static TensorId rounded(Settle *s, TensorId in, const Quant *q) {
    const Tensor *from = tensor_of(s, in);
    const char *name = arena_printf(s->scratch, "%s/codes", from->name);
    NodeId id =
        graph_add(s->g, OP_IDENTITY, name, tensor_of(s, in)->loc, 1, &in);
    TensorId out = graph_add_output(s->g, id, name);
    tensor_of(s, out)->shape = tensor_of(s, in)->shape;
    tensor_of(s, out)->quant = *q;
    return out;
}

static bool is_bound(const Act *act) {
    return act->kind == ACT_RELU || act->kind == ACT_RELU6 ||
           act->kind == ACT_CLIP;
}

static bool takes_act(const Node *node, const Act *act) {
    bool products =
        node->op == OP_CONV || node->op == OP_DECONV || node->op == OP_FC;
    bool bound = is_bound(act) && node->op == OP_ELTWISE;
    return (products || bound) && node->act.kind == ACT_NONE &&
           node->n_out == 1;
}

/* What has a rule behind sums is part of their layer. */
static void fuse_act(Settle *s, const Node *act) {
    TensorId in = act->in[0];
    Node *maker = graph_node(s->g, tensor_of(s, in)->producer);
    if (!may_round(s, in) || !takes_act(maker, &act->act))
        return;
    maker->act = act->act;
    take_over(s, in, act->out[0]);
}

/* What a layer moves is rounded before. */
static void round_before(Settle *s, NodeId id) {
    Quant q = tensor_of(s, graph_node(s->g, id)->out[0])->quant;
    uint32_t n = graph_node(s->g, id)->n_in;
    for (uint32_t k = 0; k < n; k++) {
        TensorId in = graph_node(s->g, id)->in[k];
        if (may_round(s, in)) {
            written(s, in, &q);
        } else if (is_real(s, in) ||
                   (n > 1 && !quant_equal(&tensor_of(s, in)->quant, &q))) {
            TensorId codes = rounded(s, in, &q);
            graph_node(s->g, id)->in[k] = codes;
        }
    }
}

static void work_off(Settle *s) {
    while (s->work.n) {
        NodeId id = s->work.at[--s->work.n];
        const Node *node = graph_node(s->g, id);
        if (node->dead)
            continue;
        if (node->op == OP_ACT &&
            (is_bound(&node->act) || quant_bends(&node->act)))
            fuse_act(s, node);
        else if (node->n_in && node->op != OP_IDENTITY &&
                 quant_moves(s->g, node))
            round_before(s, id);
    }
}

/* Of the same numbers to the same codes, the first. */
static void merge_roundings(Settle *s) {
    uint32_t *first = ARENA_ARRAY(s->scratch, uint32_t, s->g->tensor.n);
    for (uint32_t i = 0; i < s->g->node.n; i++) {
        Node *node = &s->g->node.at[i];
        if (!is_rounding(s, node))
            continue;
        TensorId in = node->in[0], out = node->out[0];
        TensorId other = {first[in.i] - 1};
        if (!first[in.i])
            first[in.i] = out.i + 1;
        else if (!graph_is_output(s->g, out) &&
                 quant_equal(&tensor_of(s, other)->quant,
                             &tensor_of(s, out)->quant)) {
            s->uses[other.i] += s->uses[out.i];
            s->uses[in.i]--;
            graph_replace(s->g, out, other);
            node->dead = true;
        }
    }
}

static void settle_roundings(Settle *s) {
    uint32_t n = s->g->node.n;
    for (uint32_t i = 0; i < n; i++) {
        const Node *node = &s->g->node.at[i];
        if (is_rounding(s, node) && may_round(s, node->in[0]))
            take_over(s, node->in[0], node->out[0]);
        work_off(s);
    }
}

/* ---- codes that move on ---- */

/* Is each number that the layer makes one that a code stands for? */
static bool keeps_codes(const Node *node, const Quant *q) {
    if (node->act.kind != ACT_NONE && node->act.kind != ACT_RELU)
        return false;
    double value = node->op == OP_PAD ? node->attr.pad.value : 0;
    double kept = quant_real(q, quant_code(q, value));
    return (float)kept >= (float)value && (float)kept <= (float)value;
}

void net_move_codes(Graph *g, NodeId id) {
    const Node *node = graph_node(g, id);
    if (node->dead || !node->n_in || !quant_moves(g, node))
        return;
    const Quant *q = &graph_tensor(g, node->in[0])->quant;
    if (q->type == QUANT_NONE || !keeps_codes(node, q))
        return;
    for (uint32_t k = 1; k < node->n_in; k++)
        if (!quant_equal(q, &graph_tensor(g, node->in[k])->quant))
            return;
    for (uint32_t k = 0; k < node->n_out; k++)
        if (graph_tensor(g, node->out[k])->quant.type != QUANT_NONE ||
            graph_is_output(g, node->out[k]))
            return;
    for (uint32_t k = 0; k < node->n_out; k++)
        graph_tensor(g, node->out[k])->quant = *q;
}

/* ---- biases ---- */

/* In the unit of the products; false if one is no number of 32 bits. */
static bool count_bias(Graph *g, const Node *node, Const *bias) {
    const Const *weight = graph_const(g, node->constant[CONST_WEIGHT]);
    const double *by = node->op == OP_DECONV ? weight->mul1 : weight->mul0;
    double in = graph_tensor(g, node->in[0])->quant.scale;
    uint32_t n = (uint32_t)shape_count(&bias->shape);
    double *value = ARENA_ARRAY(g->arena, double, n);
    double *unit = ARENA_ARRAY(g->arena, double, n);
    int32_t *code = ARENA_ARRAY(g->arena, int32_t, n);
    const_read_f64(bias, value);
    for (uint32_t c = 0; c < n; c++) {
        unit[c] = in * (by ? by[c] : 1);
        double units = rint(value[c] / unit[c]);
        if (!(fabs(units) < 0x1p31))
            return false;
        code[c] = (int32_t)units;
    }
    Shape shape = bias->shape;
    *bias =
        (Const){.shape = shape, .kind = CONST_I32, .data = code, .mul0 = unit};
    return true;
}

/* Are its codes in that unit already? A sum of their products with a factor
 * that is off by less than this is off by less than a code. */
static bool counts(const Graph *g, const Node *node, const Const *bias) {
    const double near = 1e-6;
    const Const *weight = graph_const(g, node->constant[CONST_WEIGHT]);
    const double *by = node->op == OP_DECONV ? weight->mul1 : weight->mul0;
    double in = graph_tensor(g, node->in[0])->quant.scale;
    bool same = const_has_codes(bias, 4) && bias->mul0 && !bias->mul1;
    for (uint32_t c = 0; same && c < shape_dim(&bias->shape, 0); c++) {
        double unit = in * (by ? by[c] : 1);
        same = fabs(bias->mul0[c] - unit) <= near * unit;
    }
    return same;
}

static void settle_bias(Graph *g, const Node *node) {
    ConstId w = node->constant[CONST_WEIGHT], b = node->constant[CONST_BIAS];
    bool sums =
        node->op == OP_CONV || node->op == OP_DECONV || node->op == OP_FC;
    if (node->dead || !sums || w.i == NONE || b.i == NONE ||
        graph_tensor(g, node->in[0])->quant.type == QUANT_NONE ||
        graph_tensor(g, node->out[0])->quant.type == QUANT_NONE ||
        !const_has_codes(graph_const(g, w), 2) ||
        counts(g, node, graph_const(g, b)))
        return;
    Const bias = *graph_const(g, b);
    if (count_bias(g, node, &bias))
        *graph_const(g, b) = bias;
}

/* ---- all of it ---- */

static void count_uses(Settle *s) {
    Uses uses = graph_uses(s->scratch, s->g);
    s->n_tensors = s->g->tensor.n;
    s->uses = ARENA_ARRAY(s->scratch, uint32_t, s->n_tensors);
    for (uint32_t i = 0; i < s->n_tensors; i++)
        s->uses[i] = uses.start[i + 1] - uses.start[i];
}

void net_settle_codes(Graph *g) {
    Settle s = {.g = g, .scratch = arena_new("codes")};
    bool any = false;
    for (uint32_t i = 0; i < g->tensor.n; i++)
        any |= g->tensor.at[i].quant.type != QUANT_NONE;
    if (any) {
        count_uses(&s);
        merge_roundings(&s);
        settle_roundings(&s);
        for (uint32_t i = 0; i < g->node.n; i++)
            net_move_codes(g, (NodeId){i});
        for (uint32_t i = 0; i < g->node.n; i++)
            settle_bias(g, &g->node.at[i]);
    }
    arena_free(s.scratch);
}
