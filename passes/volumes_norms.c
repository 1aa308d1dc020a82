/* volumes_norms.c - norms, softmax and sums over axes of views; see volumes.c.
 */
#include "passes/volumes.h"

#include <math.h>

/* ---- layernorm in parts: (x - mean) / sqrt(mean of squares + eps) ---- */

static const Node *maker(const Volumes *v, TensorId tensor) {
    return graph_node(v->g, graph_tensor(v->g, tensor)->producer);
}

static bool is_mean(const Node *node, TensorId of, uint32_t *axes) {
    *axes = node->attr.reduce.axes;
    return node->op == OP_REDUCE && node->attr.reduce.kind == REDUCE_MEAN &&
           node->act.kind == ACT_NONE && node->in[0].i == of.i;
}

static bool is_square(const Node *node, TensorId of) {
    return node->op == OP_ELTWISE && node->attr.elt.kind == ELT_MUL &&
           node->n_in == 2 && node->in[0].i == of.i && node->in[1].i == of.i &&
           node->act.kind == ACT_NONE;
}

/* What is normalised, along which axes, and epsilon. */
static bool norm_in_parts(Volumes *v, TensorId *x, uint32_t *axes,
                          double *eps) {
    const Node *sub = maker(v, v->node->in[0]);
    const Node *root = maker(v, v->node->in[1]);
    uint32_t second;
    if (sub->op != OP_ELTWISE || sub->attr.elt.kind != ELT_SUB ||
        root->op != OP_ACT || root->act.kind != ACT_SQRT)
        return false;
    const Node *plus = maker(v, root->in[0]);
    if (plus->op != OP_SCALE || plus->constant[CONST_BIAS].i == NONE)
        return false;
    const Const *bias = graph_const(v->g, plus->constant[CONST_BIAS]);
    uint32_t n = (uint32_t)shape_count(&bias->shape);
    double *b = ARENA_ARRAY(v->arena, double, n);
    double *a = ARENA_ARRAY(v->arena, double, n);
    const_read_f64(bias, b);
    for (uint32_t i = 0; i < n; i++)
        a[i] = 1;
    if (plus->constant[CONST_SCALE].i != NONE)
        const_read_f64(graph_const(v->g, plus->constant[CONST_SCALE]), a);
    const Node *mean = maker(v, plus->in[0]);
    if (mean->op != OP_REDUCE)
        return false;
    const Node *square = maker(v, mean->in[0]);
    *x = sub->in[0];
    *eps = b[0];
    return volumes_alike(b, n) && volumes_alike(a, n) && fabs(a[0] - 1) <= 0 &&
           is_mean(mean, square->out[0], &second) &&
           is_square(square, sub->out[0]) &&
           is_mean(maker(v, sub->in[1]), *x, axes) && *axes == second &&
           *eps >= 0;
}

/* ---- norms, softmax ---- */

/* Whether the axes make up groups of channels, one behind the other; how many.
 * 0: they do not. */
static uint32_t groups_of(Volumes *v, const View *view, uint32_t from,
                          uint32_t to) {
    ViewAxis own = view_merged(v->arena, view, from, to);
    uint32_t n = own.n, first = own.at[VIEW_C][0];
    bool *seen = ARENA_ARRAY(v->arena, bool, n);
    for (uint32_t i = 0; i < view->rank; i++) {
        bool inside = i >= from && i < to;
        if (view_moves(view, i) & MOVES_PIXELS && inside)
            return 0;
        for (uint32_t k = 0; k < view->axis[i].n && !inside; k++)
            if (view->axis[i].at[VIEW_C][k] % n)
                return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = own.at[VIEW_C][i] - first;
        if (first || at >= n || seen[at])
            return 0;
        seen[at] = true;
    }
    return view->size[VIEW_C] % n ? 0 : view->size[VIEW_C] / n;
}

static bool give_norm(Volumes *v, View view, uint32_t axis, double eps,
                      uint32_t rms) {
    if (!volumes_has(v, rms ? HW_OP_RMSNORM : HW_OP_LAYERNORM) ||
        volumes_has_act(v) || !volumes_compact(v, &view))
        return false;
    uint32_t groups = groups_of(v, &view, axis, view.rank);
    if (!groups)
        return false;
    Layer layer = layer_of(OP_NORM, "volume", view.base);
    layer.attr.norm.axis = layer.attr.norm.axes = 1;
    layer.attr.norm.groups = groups > 1 ? groups : 0;
    layer.attr.norm.eps = eps;
    layer.attr.norm.rms = rms;
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}

bool convert_norm(Volumes *v) {
    View view;
    uint32_t axis = v->node->attr.norm.axis, rank = volumes_in(v, 0)->rank;
    bool last = !v->node->attr.norm.axes && !v->node->attr.norm.groups;
    if (!last || (volumes_plain(v, 0) && axis + 1 != rank) ||
        !volumes_see_last(v, 0, &view))
        return false;
    return give_norm(v, view, axis, v->node->attr.norm.eps,
                     v->node->attr.norm.rms);
}

bool convert_norm_in_parts(Volumes *v) {
    TensorId x;
    uint32_t axes, rank = volumes_out(v)->rank;
    double eps;
    if (!norm_in_parts(v, &x, &axes, &eps) || axes != 1u << (rank - 1))
        return false;
    Node node = *v->node;
    const Node *own = v->node;
    View view;
    node.in = &x;
    node.n_in = 1;
    v->node = &node;
    bool ok =
        volumes_see_last(v, 0, &view) && give_norm(v, view, rank - 1, eps, 0);
    v->node = own;
    return ok;
}

bool convert_softmax(Volumes *v) {
    View view;
    uint32_t axis = v->node->attr.axis.axis;
    bool line = axis + 1 == volumes_in(v, 0)->rank;
    if (volumes_plain(v, 0) || v->node->attr.axis.groups ||
        volumes_has_act(v) || !volumes_has(v, HW_OP_SOFTMAX) ||
        !(line ? volumes_see_last(v, 0, &view) : volumes_see(v, 0, &view)) ||
        !volumes_compact(v, &view))
        return false;
    uint32_t groups = groups_of(v, &view, axis, axis + 1);
    if (!groups)
        return false;
    Layer layer = layer_of(OP_SOFTMAX, "volume", view.base);
    layer.attr.axis.axis = 1;
    layer.attr.axis.groups = groups > 1 ? groups : 0;
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}

/* ---- sums over axes ---- */

static bool pools(Volumes *v, View *view, Layer *layer, uint32_t moves) {
    ReduceKind kind = v->node->attr.reduce.kind;
    if (moves != MOVES_PIXELS || kind == REDUCE_SUM)
        return false;
    *layer = layer_of(OP_POOL, "volume", view->base);
    layer->attr.pool.kind = kind == REDUCE_MEAN ? POOL_AVG : POOL_MAX;
    layer->attr.pool.global = true;
    layer->attr.pool.kernel[0] = layer->attr.pool.kernel[1] = 1;
    layer->attr.pool.stride[0] = layer->attr.pool.stride[1] = 1;
    view->size[VIEW_Y] = view->size[VIEW_X] = 1;
    return true;
}

static bool sums(View *view, Layer *layer, const Volumes *v, uint32_t moves) {
    *layer = layer_of(OP_REDUCE, "volume", view->base);
    layer->attr.reduce.kind = v->node->attr.reduce.kind;
    layer->attr.reduce.axes = 1u << 1;
    view->size[VIEW_C] = 1;
    return moves == MOVES_CHANNELS && volumes_has(v, HW_OP_REDUCE_MEAN);
}

bool convert_reduce(Volumes *v) {
    View view;
    Layer layer;
    uint32_t axes = v->node->attr.reduce.axes, moves = 0, kept = 0;
    ReduceKind kind = v->node->attr.reduce.kind;
    if (volumes_plain(v, 0) || volumes_has_act(v) ||
        (kind != REDUCE_MEAN && kind != REDUCE_SUM && kind != REDUCE_MAX) ||
        !volumes_see(v, 0, &view) || !volumes_compact(v, &view))
        return false;
    for (uint32_t i = 0; i < view.rank; i++)
        *(axes >> i & 1 ? &moves : &kept) |= view_moves(&view, i);
    if ((moves & kept) ||
        !(pools(v, &view, &layer, moves) || sums(&view, &layer, v, moves)))
        return false;
    for (uint32_t i = 0; i < view.rank; i++)
        if (axes >> i & 1)
            view.axis[i] = axis_of(v->arena, 1, VIEW_C, 0, 0);
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}
