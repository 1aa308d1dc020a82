/* volumes_ops.c - layers over views of volumes; see volumes.c. Each function
 * converts the node at hand, or says that it cannot. */
#include "passes/volumes.h"

#include <math.h>
#include <string.h>

/* ---- what moves nothing ---- */

bool convert_reshape(Volumes *v) {
    View view;
    if (volumes_has_act(v) || !volumes_see(v, 0, &view) ||
        !view_reshape(v->arena, &view, volumes_out(v)))
        return false;
    volumes_give(v, &view);
    return true;
}

bool convert_transpose(Volumes *v) {
    View view;
    if (volumes_has_act(v) || !volumes_see(v, 0, &view))
        return false;
    view_transpose(&view, &v->node->attr.perm);
    volumes_give(v, &view);
    return true;
}

bool convert_identity(Volumes *v) {
    View view;
    if (volumes_has_act(v) || volumes_plain(v, 0) || !volumes_see(v, 0, &view))
        return false;
    volumes_give(v, &view);
    return true;
}

static uint32_t *indices(Volumes *v, uint32_t n, uint32_t first) {
    uint32_t *index = ARENA_ARRAY(v->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        index[i] = first + i;
    return index;
}

/* Of channels of a volume, by itself, there are rules (rules_forms.c). */
bool convert_slice(Volumes *v) {
    View view;
    uint32_t axis = v->node->attr.slice.axis;
    uint32_t n = volumes_out(v)->dim[axis];
    if (volumes_has_act(v) || (volumes_plain(v, 0) && axis < 2) ||
        !volumes_see(v, 0, &view))
        return false;
    view_pick(v->arena, &view, axis, n,
              indices(v, n, v->node->attr.slice.begin));
    volumes_give(v, &view);
    return true;
}

bool convert_gather(Volumes *v) {
    View view;
    const Node *node = v->node;
    uint32_t n = node->attr.gather.n;
    double *index = ARENA_ARRAY(v->arena, double, n);
    double *factor = ARENA_ARRAY(v->arena, double, n);
    uint32_t *at = ARENA_ARRAY(v->arena, uint32_t, n);
    if (volumes_has_act(v) || node->attr.gather.taps != 1 ||
        (volumes_plain(v, 0) && node->attr.gather.axis < 2) ||
        node->constant[CONST_INDEX].i == NONE ||
        node->constant[CONST_VALUE].i == NONE || !volumes_see(v, 0, &view))
        return false;
    const_read_f64(graph_const(v->g, node->constant[CONST_INDEX]), index);
    const_read_f64(graph_const(v->g, node->constant[CONST_VALUE]), factor);
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (uint32_t)index[i];
        if (fabs(factor[i] - 1) > 0)
            return false;
    }
    view_pick(v->arena, &view, node->attr.gather.axis, n, at);
    volumes_give(v, &view);
    return true;
}

/* ---- element by element ---- */

/* Of parts of a volume that others see the rest of, just these. */
static void see_own_channels(Volumes *v, View *view) {
    Shape shape = view_shape(view);
    if (shape_count(&shape) <
        (uint64_t)view->size[VIEW_C] * view->size[VIEW_Y] * view->size[VIEW_X])
        volumes_compact(v, view);
}

bool convert_act(Volumes *v) {
    View view;
    if (v->node->act.kind == ACT_PRELU || volumes_plain(v, 0) ||
        !volumes_see(v, 0, &view))
        return false;
    see_own_channels(v, &view);
    Layer layer = layer_of(OP_ACT, "volume", view.base);
    layer.act = v->node->act;
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}

/* a * x + b of every element of the volume, or of what the view sees. */
typedef struct Line {
    double *a, *b; /* by channel */
} Line;

static Line line_new(Volumes *v, uint32_t c) {
    Line line = {ARENA_ARRAY(v->arena, double, c),
                 ARENA_ARRAY(v->arena, double, c)};
    for (uint32_t i = 0; i < c; i++)
        line.a[i] = 1;
    return line;
}

static void give_scaled(Volumes *v, const View *view, const Line *line) {
    uint32_t c = view->size[VIEW_C];
    bool biased = false;
    for (uint32_t i = 0; i < c; i++)
        biased |= fabs(line->b[i]) > 0;
    Layer layer = layer_of(OP_SCALE, "volume", view->base);
    layer.act = v->node->act;
    layer.no_bias = !biased;
    layer.constant[CONST_SCALE] = volumes_const(v, shape_of(c), line->a);
    if (biased)
        layer.constant[CONST_BIAS] = volumes_const(v, shape_of(c), line->b);
    View made = view_over(view, volumes_add(v, &layer), c);
    volumes_give(v, &made);
}

static double *numbers(Volumes *v, ConstRole role, uint32_t n, double absent) {
    double *value = ARENA_ARRAY(v->arena, double, n);
    ConstId id = v->node->constant[role];
    for (uint32_t i = 0; i < n; i++)
        value[i] = absent;
    if (id.i != NONE)
        const_read_f64(graph_const(v->g, id), value);
    return value;
}

/* a and b by axis 1 of the tensor, as numbers by channel of the volume. */
static bool by_channel(Volumes *v, const View *view, const double *a,
                       const double *b, Line *line) {
    uint32_t n = view->rank > 1 ? view->axis[1].n : 1;
    *line = line_new(v, view->size[VIEW_C]);
    if (volumes_alike(a, n) && volumes_alike(b, n)) {
        for (uint32_t i = 0; i < view->size[VIEW_C]; i++) {
            line->a[i] = a[0];
            line->b[i] = b[0];
        }
        return true;
    }
    for (uint32_t i = 0; i < view->rank; i++)
        if (i == 1 ? view_moves(view, i) & MOVES_PIXELS
                   : view_moves(view, i) & MOVES_CHANNELS)
            return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = view->axis[1].at[VIEW_C][i];
        line->a[c] = a[i];
        line->b[c] = b[i];
    }
    return true;
}

/* SCALE and BN. */
bool convert_scale(Volumes *v) {
    View view;
    Line line;
    if (v->node->act.kind == ACT_PRELU || volumes_plain(v, 0) ||
        !volumes_see(v, 0, &view))
        return false;
    see_own_channels(v, &view);
    uint32_t n = view.rank > 1 ? view.axis[1].n : 1;
    double *a, *b;
    if (v->node->op == OP_SCALE) {
        a = numbers(v, CONST_SCALE, n, 1);
        b = numbers(v, CONST_BIAS, n, 0);
    } else {
        b = numbers(v, CONST_MEAN, n, 0);
        a = numbers(v, CONST_VAR, n, 1);
        for (uint32_t i = 0; i < n; i++) {
            a[i] = 1 / sqrt(a[i] + v->node->attr.bn.eps);
            b[i] = -b[i] * a[i];
        }
    }
    if (!by_channel(v, &view, a, b, &line))
        return false;
    give_scaled(v, &view, &line);
    return true;
}

/* ---- constants over a view ---- */

/* Values of a constant at every element of the volume; what the view does not
 * see is `rest`. NULL: an element is seen twice. */
static double *spread(Volumes *v, const View *view, TensorId constant,
                      double rest) {
    const Const *c = volumes_value(v, constant);
    const Shape *own = &graph_tensor(v->g, constant)->shape;
    Shape shape = view_shape(view);
    size_t n = shape_count(&shape);
    size_t all = (size_t)view->size[0] * view->size[1] * view->size[2];
    double *read = ARENA_ARRAY(v->arena, double, shape_count(own));
    double *value = ARENA_ARRAY(v->arena, double, all);
    bool *seen = ARENA_ARRAY(v->arena, bool, all);
    const uint32_t *place = view_places(v->arena, view);
    const_read_f64(c, read);
    for (size_t i = 0; i < all; i++)
        value[i] = rest;
    if (own->rank > shape.rank)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0, left = i, step = 1;
        for (uint32_t k = own->rank; k-- > 0;) {
            uint32_t d = shape.dim[shape.rank - own->rank + k];
            at += own->dim[k] == 1 ? 0 : left % d * step;
            left /= d;
            step *= own->dim[k];
        }
        if (seen[place[i]])
            return NULL;
        seen[place[i]] = true;
        value[place[i]] = read[at];
    }
    return value;
}

static bool alike_in_planes(const View *view, const double *value) {
    size_t plane = (size_t)view->size[VIEW_Y] * view->size[VIEW_X];
    for (size_t i = 0; i < view->size[VIEW_C] * plane; i++)
        if (fabs(value[i] - value[i - i % plane]) > 0)
            return false;
    return true;
}

static bool repeats(const double *value, size_t outer, uint32_t n, size_t step,
                    uint32_t period) {
    for (size_t o = 0; o < outer; o++)
        for (uint32_t i = period; i < n; i++)
            if (memcmp(value + (o * n + i) * step,
                       value + (o * n + i % period) * step,
                       step * sizeof *value))
                return false;
    return true;
}

/* Along each axis the shortest part that repeats. */
static Shape periods(const View *view, const double *value) {
    Shape period = {3, {0}};
    size_t outer = 1;
    for (uint32_t d = 0; d < VIEW_DIMS; d++) {
        uint32_t n = view->size[d];
        size_t step = 1;
        for (uint32_t k = d + 1; k < VIEW_DIMS; k++)
            step *= view->size[k];
        for (uint32_t p = 1; p <= n && !period.dim[d]; p++)
            if (n % p == 0 && repeats(value, outer, n, step, p))
                period.dim[d] = p;
        outer *= n;
    }
    return period;
}

static bool add_constants(Volumes *v, const View *view, const double *value) {
    Shape period = periods(view, value);
    double *part = ARENA_ARRAY(v->arena, double, shape_count(&period));
    size_t i = 0;
    if (!volumes_has(v, HW_OP_ADD_CONSTANTS) || volumes_has_act(v))
        return false;
    for (uint32_t c = 0; c < period.dim[0]; c++)
        for (uint32_t y = 0; y < period.dim[1]; y++)
            for (uint32_t x = 0; x < period.dim[2]; x++)
                part[i++] = value[((size_t)c * view->size[VIEW_Y] + y) *
                                      view->size[VIEW_X] +
                                  x];
    Layer layer = layer_of(OP_OFFSET, "volume", view->base);
    layer.attr.reshape = period;
    layer.constant[CONST_VALUE] = volumes_const(v, period, part);
    View made = view_over(view, volumes_add(v, &layer), view->size[VIEW_C]);
    volumes_give(v, &made);
    return true;
}

static bool with_constant(Volumes *v, const View *view, uint32_t other) {
    EltKind kind = v->node->attr.elt.kind;
    bool adds = kind == ELT_ADD || kind == ELT_SUB;
    bool inverse = kind == ELT_SUB || kind == ELT_DIV;
    double *value = spread(v, view, v->node->in[other], adds ? 0 : 1);
    Shape shape = view_shape(view);
    if (!value || (inverse && other == 0) ||
        !shape_equal(&shape, volumes_out(v)) ||
        !(adds || kind == ELT_MUL || kind == ELT_DIV))
        return false;
    size_t all = (size_t)view->size[0] * view->size[1] * view->size[2];
    for (size_t i = 0; inverse && i < all; i++)
        value[i] = adds ? -value[i] : 1 / value[i];
    if (!alike_in_planes(view, value))
        return adds && add_constants(v, view, value);
    Line line = line_new(v, view->size[VIEW_C]);
    size_t plane = all / view->size[VIEW_C];
    for (uint32_t c = 0; c < view->size[VIEW_C]; c++)
        (adds ? line.b : line.a)[c] = value[c * plane];
    give_scaled(v, view, &line);
    return true;
}

/* ---- two operands ---- */

static bool by_constant(Volumes *v, View view, uint32_t k) {
    see_own_channels(v, &view);
    return with_constant(v, &view, k);
}

/* Of views that see their volumes alike; the first that is one leads. */
static bool join_views(Volumes *v) {
    View first, view;
    const Node *node = v->node;
    uint32_t lead = 0;
    Layer layer = layer_of(OP_ELTWISE, "volume", node->in[0]);
    while (lead < node->n_in && volumes_plain(v, lead))
        lead++;
    if (lead == node->n_in || node->n_in > VOLUMES_MOST_IN ||
        !volumes_see_last(v, lead, &first))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        if (!volumes_see_last(v, k, &view))
            return false;
        if (!view_same(&first, &view) &&
            !(volumes_compact(v, &view) && view_same(&first, &view)))
            return false;
        layer.in[k] = view.base;
    }
    layer.n_in = node->n_in;
    layer.attr.elt.kind = node->attr.elt.kind;
    layer.attr.elt.coeff = node->attr.elt.coeff;
    layer.act = node->act;
    view = view_over(&first, volumes_add(v, &layer), first.size[VIEW_C]);
    volumes_give(v, &view);
    return true;
}

bool convert_eltwise(Volumes *v) {
    View view;
    const Node *node = v->node;
    if (node->act.kind == ACT_PRELU)
        return false;
    if (node->n_in == 2 && node->attr.elt.kind == ELT_DIV &&
        convert_norm_in_parts(v))
        return true;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (volumes_value(v, node->in[k]))
            return node->n_in == 2 && !node->attr.elt.coeff &&
                   !volumes_plain(v, 1 - k) && volumes_see(v, 1 - k, &view) &&
                   by_constant(v, view, k);
    return join_views(v);
}

/* ---- inner products ---- */

/* Columns of the weights in the order of the volume's channels. */
static ConstId turned_weights(Volumes *v, const uint32_t *channel, uint32_t k,
                              uint32_t out, const Shape *shape) {
    const Const *weight = graph_const(v->g, v->node->constant[CONST_WEIGHT]);
    bool same = true;
    for (uint32_t i = 0; i < k; i++)
        same &= channel[i] == i;
    if (same)
        return graph_add_const(v->g,
                               const_reshaped(v->g->arena, weight, shape));
    double *read = ARENA_ARRAY(v->arena, double, (size_t)k *out);
    double *made = ARENA_ARRAY(v->arena, double, (size_t)k *out);
    const_read_f64(weight, read);
    for (size_t o = 0; o < out; o++)
        for (uint32_t i = 0; i < k; i++)
            made[o * k + channel[i]] = read[o * k + i];
    return volumes_const(v, *shape, made);
}

bool convert_fc(Volumes *v) {
    View view;
    const Node *node = v->node;
    const Shape *in = volumes_in(v, 0);
    bool lines = volumes_plain(v, 0) && (in->rank != 2 || in->dim[0] < 2);
    if (lines || node->constant[CONST_WEIGHT].i == NONE ||
        node->act.kind == ACT_PRELU || in->rank != 2 ||
        !volumes_see_last(v, 0, &view) || !volumes_compact(v, &view) ||
        view_moves(&view, 0) & MOVES_CHANNELS ||
        view_moves(&view, 1) & MOVES_PIXELS ||
        view.axis[1].n != view.size[VIEW_C])
        return false;
    uint32_t k = view.size[VIEW_C], out = node->attr.fc.out;
    bool one = view.axis[0].n == 1, same = true;
    for (uint32_t i = 0; i < k; i++)
        same &= view.axis[1].at[VIEW_C][i] == i;
    if (one && same) /* it flattens by itself (rules_clean.c) */
        return false;
    Layer layer = layer_of(one ? OP_FC : OP_CONV, "volume", view.base);
    Shape shape = one ? (Shape){2, {out, k}} : shape_nchw(out, k, 1, 1);
    layer.constant[CONST_WEIGHT] =
        turned_weights(v, view.axis[1].at[VIEW_C], k, out, &shape);
    layer.constant[CONST_BIAS] = node->constant[CONST_BIAS];
    layer.no_bias = node->no_bias;
    layer.act = node->act;
    if (one)
        layer.attr.fc.out = out;
    else
        layer.attr.conv = (ConvAttr){.out_c = out,
                                     .groups = 1,
                                     .kernel = {1, 1},
                                     .stride = {1, 1},
                                     .dilation = {1, 1}};
    TensorId made = volumes_add(v, &layer);
    if (one) {
        graph_replace(v->g, node->out[0], made);
        return false;
    }
    view = view_over(&view, made, out);
    view.axis[1] = axis_of(v->arena, out, VIEW_C, 0, 1);
    volumes_give(v, &view);
    return true;
}
