/* prepare.c - the network in a form whose layers have rules of integers; see
 * scheme.h.
 *
 * A layer whose activation is more than a bound, or a slope of sums below 0,
 * would be one on real numbers as a whole: the activation becomes a layer of
 * its own behind it. A factor and a shift by channel become a convolution of
 * one channel each, and so does a mean where a machine has only sums.
 */
#include "quantise/scheme.h"

#include "graph/quant.h"
#include "passes/legal.h"

/* What a rule of integers has: a bound, or of sums a slope below 0, where the
 * machine's sums have it too. */
static bool has_rule(const Graph *g, NodeId id,
                     const QuantiseNumbers *numbers) {
    const Node *node = graph_node(g, id);
    bool sums =
        node->op == OP_CONV || node->op == OP_DECONV || node->op == OP_FC;
    return quant_clamps(&node->act) ||
           (sums && quant_bends(&node->act) &&
            !(numbers->straight >> legal_op(g, id) & 1));
}

static bool has_sums(const Node *node) {
    return node->op == OP_CONV || node->op == OP_DECONV || node->op == OP_FC ||
           node->op == OP_ELTWISE || node->op == OP_POOL ||
           node->op == OP_REDUCE;
}

static void split_act(Graph *g, NodeId id) {
    TensorId from = graph_node(g, id)->out[0];
    const Node node = *graph_node(g, id);
    NodeId act = graph_add(g, OP_ACT, node.name, node.loc, 1, &from);
    TensorId to = graph_add_output(g, act, graph_tensor(g, from)->name);
    graph_tensor(g, to)->shape = graph_tensor(g, from)->shape;
    graph_tensor(g, to)->loc = graph_tensor(g, from)->loc;
    graph_take_over(g, to, from);
    graph_node(g, act)->in[0] = from;
    graph_node(g, act)->act = node.act;
    graph_node(g, act)->constant[CONST_SLOPE] = node.constant[CONST_SLOPE];
    graph_node(g, id)->act = (Act){.kind = ACT_NONE};
    graph_node(g, id)->constant[CONST_SLOPE] = NO_CONST;
}

static void scale_to_conv(Graph *g, Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    ConstId scale = node->constant[CONST_SCALE];
    if (in->rank != 4 || scale.i == NONE || !quant_clamps(&node->act))
        return;
    Const weight = *graph_const(g, scale);
    if (shape_count(&weight.shape) != in->dim[1])
        return;
    double *value = ARENA_ARRAY(g->arena, double, in->dim[1]);
    const_read_f64(&weight, value);
    node->op = OP_CONV;
    node->attr = (Attrs){
        .conv = {in->dim[1], in->dim[1], {1, 1}, {1, 1}, {1, 1}, {0}, {0}}};
    node->constant[CONST_SCALE] = NO_CONST;
    node->constant[CONST_WEIGHT] =
        graph_add_const(g, (Const){.shape = shape_nchw(in->dim[1], 1, 1, 1),
                                   .kind = CONST_F64,
                                   .data = value});
}

/* A mean over whole planes is one kind of layer, however it was written. */
static void mean_to_pool(const Graph *g, Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    const PoolAttr *pool = &node->attr.pool;
    bool mean = node->op == OP_REDUCE && in->rank == 4 &&
                node->attr.reduce.kind == REDUCE_MEAN &&
                node->attr.reduce.axes == (1u << 2 | 1u << 3);
    bool whole = node->op == OP_POOL && pool->kind == POOL_AVG &&
                 pool->kernel[0] == in->dim[2] &&
                 pool->kernel[1] == in->dim[3] && !pool->pad[0] &&
                 !pool->pad[1] && !pool->pad_end[0] && !pool->pad_end[1];
    if (!mean && !whole)
        return;
    node->op = OP_POOL;
    node->attr = (Attrs){.pool = {.kind = POOL_AVG,
                                  .global = true,
                                  .kernel = {in->dim[2], in->dim[3]},
                                  .stride = {1, 1}}};
}

/* Are all windows of the pool whole? */
static bool windows_whole(const Graph *g, const Node *node) {
    const PoolAttr *p = &node->attr.pool;
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    const Shape *out = &graph_tensor(g, node->out[0])->shape;
    for (uint32_t k = 0; k < 2; k++)
        if (p->pad[k] || p->pad_end[k] ||
            (out->dim[2 + k] - 1) * p->stride[k] + p->kernel[k] >
                in->dim[2 + k])
            return false;
    return true;
}

/* A mean as a convolution of one channel each, by equal weights. */
static void pool_to_conv(Graph *g, Node *node) {
    const Shape *in = &graph_tensor(g, node->in[0])->shape;
    PoolAttr p = node->attr.pool;
    if (node->op != OP_POOL || p.kind != POOL_AVG || in->rank != 4 ||
        (!p.global && !windows_whole(g, node)))
        return;
    const uint32_t c = in->dim[1];
    for (uint32_t k = 0; p.global && k < 2; k++) {
        p.kernel[k] = in->dim[2 + k];
        p.stride[k] = 1;
    }
    size_t each = (size_t)p.kernel[0] * p.kernel[1];
    double *value = ARENA_ARRAY(g->arena, double, c *each);
    for (size_t i = 0; i < c * each; i++)
        value[i] = 1 / (double)each;
    node->op = OP_CONV;
    node->attr = (Attrs){.conv = {.out_c = c,
                                  .groups = c,
                                  .kernel = {p.kernel[0], p.kernel[1]},
                                  .stride = {p.stride[0], p.stride[1]},
                                  .dilation = {1, 1}}};
    node->no_bias = true;
    node->constant[CONST_WEIGHT] = graph_add_const(
        g, (Const){.shape = shape_nchw(c, 1, p.kernel[0], p.kernel[1]),
                   .kind = CONST_F64,
                   .data = value});
}

Graph *prepare_graph(Arena *arena, Diag *diag, const Graph *from,
                     const QuantiseNumbers *numbers) {
    Graph *g = graph_clone(arena, from);
    graph_compact(g);
    for (uint32_t i = 0, n = g->node.n; i < n; i++) {
        if (g->node.at[i].op == OP_SCALE)
            scale_to_conv(g, &g->node.at[i]);
        if (g->node.at[i].n_in)
            mean_to_pool(g, &g->node.at[i]);
        if (numbers->means_weigh)
            pool_to_conv(g, &g->node.at[i]);
        const Node *node = &g->node.at[i];
        if (has_sums(node) && node->n_out == 1 &&
            !has_rule(g, (NodeId){i}, numbers))
            split_act(g, (NodeId){i});
    }
    if (!graph_sort(g, diag) || !graph_infer_all(g, diag))
        return NULL;
    graph_verify(g, "quantise");
    return g;
}
