/* volumes_norms.c - norms and softmax of views; see volumes.c. */
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

/* The numbers are one, by which a SCALE multiplies, or which it adds. */
static bool one_number(Volumes *v, ConstId id, double absent, double *out) {
    *out = absent;
    if (id.i == NONE)
        return true;
    const Const *c = graph_const(v->g, id);
    uint32_t n = (uint32_t)shape_count(&c->shape);
    double *value = ARENA_ARRAY(v->arena, double, n + 1);
    const_read_f64(c, value);
    *out = value[0];
    return n && volumes_alike(value, n);
}

/* sqrt(mean of squares of x + eps). */
static bool is_root_mean(Volumes *v, TensorId root, TensorId x, uint32_t *axes,
                         double *eps) {
    double factor;
    const Node *sqrt_of = maker(v, root);
    if (sqrt_of->op != OP_ACT || sqrt_of->act.kind != ACT_SQRT)
        return false;
    const Node *plus = maker(v, sqrt_of->in[0]);
    if (plus->op != OP_SCALE || plus->act.kind != ACT_NONE ||
        !one_number(v, plus->constant[CONST_SCALE], 1, &factor) ||
        !one_number(v, plus->constant[CONST_BIAS], 0, eps))
        return false;
    const Node *mean = maker(v, plus->in[0]);
    return mean->op == OP_REDUCE && fabs(factor - 1) <= 0 && *eps >= 0 &&
           is_square(maker(v, mean->in[0]), x) &&
           is_mean(mean, mean->in[0], axes);
}

/* 1 / root, by which x is multiplied; NO_TENSOR: it is none. */
static TensorId inverse_of(Volumes *v, TensorId tensor) {
    const Node *node = maker(v, tensor);
    if (node->op == OP_ACT && node->act.kind == ACT_RECIPROCAL)
        return node->in[0];
    if (node->op != OP_ELTWISE || node->attr.elt.kind != ELT_DIV ||
        node->n_in != 2 || node->act.kind != ACT_NONE)
        return NO_TENSOR;
    const Const *one = volumes_value(v, node->in[0]);
    double value = 0;
    if (one && shape_count(&one->shape) == 1)
        const_read_f64(one, &value);
    return fabs(value - 1) <= 0 ? node->in[1] : NO_TENSOR;
}

/* (x - mean) / root: what is normalised, along which axes, and epsilon. */
static bool norm_in_parts(Volumes *v, TensorId *x, uint32_t *axes,
                          double *eps) {
    const Node *sub = maker(v, v->node->in[0]);
    uint32_t second;
    if (v->node->attr.elt.kind != ELT_DIV || sub->op != OP_ELTWISE ||
        sub->attr.elt.kind != ELT_SUB || sub->n_in != 2)
        return false;
    *x = sub->in[0];
    return is_mean(maker(v, sub->in[1]), *x, axes) &&
           is_root_mean(v, v->node->in[1], sub->out[0], &second, eps) &&
           *axes == second;
}

/* x / root, x * (1 / root). */
static bool rms_in_parts(Volumes *v, TensorId *x, uint32_t *axes, double *eps) {
    const Node *node = v->node;
    if (node->attr.elt.kind == ELT_DIV) {
        *x = node->in[0];
        return is_root_mean(v, node->in[1], *x, axes, eps);
    }
    for (uint32_t k = 0; k < 2 && node->attr.elt.kind == ELT_MUL; k++) {
        TensorId root = inverse_of(v, node->in[k]);
        *x = node->in[1 - k];
        if (root.i != NONE && is_root_mean(v, root, *x, axes, eps))
            return true;
    }
    return false;
}

/* ---- norms, softmax ---- */

uint32_t volumes_groups(Volumes *v, const View *view, uint32_t from,
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
    if (volumes_has_act(v) || !volumes_compact(v, &view))
        return false;
    uint32_t groups = volumes_groups(v, &view, axis, view.rank);
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

/* Groups of channels, each with all its pixels, in the volume's order: group
 * and instance norms. */
static bool give_group_norm(Volumes *v) {
    View view;
    uint32_t axis = v->node->attr.norm.axis;
    if (axis != 2 || v->node->attr.norm.rms || volumes_has_act(v) ||
        !volumes_see(v, 0, &view))
        return false;
    Shape shape = view_shape(&view);
    uint64_t n = shape_count(&shape);
    const uint32_t *at = view_places(v->arena, &view);
    if (n != (uint64_t)view.size[0] * view.size[1] * view.size[2] ||
        shape.dim[0] != 1 || view.size[VIEW_C] % shape.dim[1])
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (at[i] != i)
            return false;
    Layer layer = layer_of(OP_NORM, "volume", view.base);
    layer.attr.norm.axis = 1;
    layer.attr.norm.groups = shape.dim[1];
    layer.attr.norm.eps = v->node->attr.norm.eps;
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}

bool convert_norm(Volumes *v) {
    View view;
    uint32_t axis = v->node->attr.norm.axis, rank = volumes_in(v, 0)->rank;
    bool last = !v->node->attr.norm.axes && !v->node->attr.norm.groups;
    if (last && give_group_norm(v))
        return true;
    HwOp op = v->node->attr.norm.rms ? HW_OP_RMSNORM : HW_OP_LAYERNORM;
    bool plain = volumes_plain(v, 0);
    if (!last || (plain && (axis + 1 != rank || !volumes_has(v, op))) ||
        !volumes_see_last(v, 0, &view))
        return false;
    return give_norm(v, view, axis, v->node->attr.norm.eps,
                     v->node->attr.norm.rms);
}

bool convert_norm_in_parts(Volumes *v) {
    TensorId x;
    uint32_t axes, rank = volumes_out(v)->rank;
    double eps;
    bool rms = false;
    if (!norm_in_parts(v, &x, &axes, &eps)) {
        rms = true;
        if (!rms_in_parts(v, &x, &axes, &eps))
            return false;
    }
    if (axes != 1u << (rank - 1) || volumes_has_act(v))
        return false;
    Node node = *v->node;
    const Node *own = v->node;
    View view;
    node.in = &x;
    node.n_in = 1;
    v->node = &node;
    bool ok =
        volumes_see_last(v, 0, &view) && give_norm(v, view, rank - 1, eps, rms);
    v->node = own;
    return ok;
}

/* What engines take as it is, or one number a pixel. */
static bool stays_softmax(const Volumes *v, uint32_t axis) {
    const Shape *in = volumes_in(v, 0);
    return volumes_plain(v, 0) &&
           (!volumes_has(v, HW_OP_SOFTMAX) || in->rank < 3 ||
            (in->rank == 4 && in->dim[0] == 1 && axis == 1));
}

bool convert_softmax(Volumes *v) {
    View view, part;
    uint32_t axis = v->node->attr.axis.axis;
    bool line = axis + 1 == volumes_in(v, 0)->rank;
    if (stays_softmax(v, axis) || v->node->attr.axis.groups ||
        volumes_has_act(v) ||
        !(line || volumes_plain(v, 0) ? volumes_see_last(v, 0, &view)
                                      : volumes_see(v, 0, &view)))
        return false;
    part = view;
    uint32_t groups = volumes_compact(v, &part)
                          ? volumes_groups(v, &part, axis, axis + 1)
                          : 0;
    if (groups)
        view = part;
    else if (!volumes_by_channel(v, &view, axis))
        return false;
    Layer layer = layer_of(OP_SOFTMAX, "volume", view.base);
    layer.attr.axis.axis = 1;
    layer.attr.axis.groups = groups > 1 ? groups : 0;
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}
