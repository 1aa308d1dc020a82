/* volumes_ops.c - layers over views of volumes; see volumes.c. Each function
 * converts the node at hand, or says that it cannot. */
#include "passes/legal.h"
#include "passes/volumes.h"

#include <math.h>
#include <string.h>

/* ---- what moves nothing ---- */

/* Where its channels or pixels lie in no such order, an image that does. */
static bool reshape_image(Volumes *v, View *view) {
    TensorId image;
    if (!volumes_image(v, view, &image))
        return false;
    *view = view_of_image(v->arena, image, &graph_tensor(v->g, image)->shape);
    return view_reshape(v->arena, view, volumes_out(v));
}

bool convert_reshape(Volumes *v) {
    View view;
    if (volumes_has_act(v) || !volumes_see(v, 0, &view) ||
        !(view_reshape(v->arena, &view, volumes_out(v)) ||
          reshape_image(v, &view)))
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

/* What is cut; of a tensor that is neither view nor volume, the last axis as
 * channels and the others as pixels. Of channels of a volume, by itself, there
 * are rules (rules_forms.c). */
static bool see_sliced(Volumes *v, uint32_t axis, View *out) {
    const Shape *in = volumes_in(v, 0);
    uint32_t c = in->dim[in->rank - 1];
    bool last = axis + 1 == in->rank;
    if (!volumes_plain(v, 0) || (in->rank == 4 && in->dim[0] == 1))
        return (!volumes_plain(v, 0) || axis > 1) && volumes_see(v, 0, out);
    return volumes_has(v, last ? HW_OP_GATHER : HW_OP_GATHER_PIXELS) &&
           volumes_has(v, HW_OP_RESHAPE) &&
           (shape_count(in) == c || volumes_has(v, HW_OP_TRANSPOSE)) &&
           volumes_see_last(v, 0, out);
}

bool convert_slice(Volumes *v) {
    View view;
    uint32_t axis = v->node->attr.slice.axis;
    uint32_t n = volumes_out(v)->dim[axis];
    if (volumes_has_act(v) || !see_sliced(v, axis, &view))
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
    if (node->attr.gather.taps != 1)
        return convert_taps(v);
    if (volumes_has_act(v) ||
        (volumes_plain(v, 0) && (node->attr.gather.axis == 1 ||
                                 (node->attr.gather.axis == 0 && n == 1))) ||
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

static TensorId scaled(Volumes *v, TensorId base, uint32_t c, const Line *line,
                       Act act) {
    bool biased = false;
    for (uint32_t i = 0; i < c; i++)
        biased |= fabs(line->b[i]) > 0;
    Layer layer = layer_of(OP_SCALE, "volume", base);
    layer.act = act;
    layer.no_bias = !biased;
    layer.constant[CONST_SCALE] = volumes_const(v, shape_of(c), line->a);
    if (biased)
        layer.constant[CONST_BIAS] = volumes_const(v, shape_of(c), line->b);
    return volumes_add(v, &layer);
}

/* Scores times a number are those of queries times that, which go into weights;
 * and nothing stands between scores and their softmax. */
static bool scales_queries(Volumes *v, const View *view, const Line *line) {
    const Node *mix =
        graph_node(v->g, graph_tensor(v->g, view->base)->producer);
    uint32_t c = view->size[VIEW_C];
    if (mix->op != OP_MIX || mix->attr.mix.over_pixels ||
        mix->attr.mix.attends || volumes_has_act(v) ||
        !volumes_alike(line->a, c) || !volumes_alike(line->b, c) ||
        fabs(line->b[0]) > 0)
        return false;
    Layer layer = layer_of(OP_MIX, "volume", mix->in[0]);
    layer.attr = mix->attr;
    layer.n_in = 2;
    layer.in[1] = mix->in[1];
    uint32_t wide = graph_tensor(v->g, mix->in[0])->shape.dim[1];
    Line same = line_new(v, wide);
    for (uint32_t i = 0; i < wide; i++)
        same.a[i] = line->a[0];
    layer.in[0] = scaled(v, mix->in[0], wide, &same, (Act){0});
    View made = view_over(view, volumes_add(v, &layer), c);
    volumes_give(v, &made);
    return true;
}

static void give_scaled(Volumes *v, const View *view, const Line *line) {
    uint32_t c = view->size[VIEW_C];
    if (scales_queries(v, view, line))
        return;
    View made =
        view_over(view, scaled(v, view->base, c, line, v->node->act), c);
    volumes_give(v, &made);
}

/* The view of the negative of its volume. */
static void negate(Volumes *v, View *view) {
    Line line = line_new(v, view->size[VIEW_C]);
    for (uint32_t i = 0; i < view->size[VIEW_C]; i++)
        line.a[i] = -1;
    view->base = scaled(v, view->base, view->size[VIEW_C], &line, (Act){0});
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

bool convert_act(Volumes *v) {
    View view;
    if (v->node->act.kind == ACT_PRELU || volumes_plain(v, 0) ||
        !volumes_see(v, 0, &view))
        return false;
    see_own_channels(v, &view);
    if (v->node->act.kind == ACT_NEG) {
        negate(v, &view);
        volumes_give(v, &view);
        return true;
    }
    Layer layer = layer_of(OP_ACT, "volume", view.base);
    layer.act = v->node->act;
    view = view_over(&view, volumes_add(v, &layer), view.size[VIEW_C]);
    volumes_give(v, &view);
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

/* Plus constants, or times. */
static bool by_constants(Volumes *v, const View *view, bool adds,
                         const double *value) {
    Shape period = periods(view, value);
    double *part = ARENA_ARRAY(v->arena, double, shape_count(&period));
    size_t i = 0;
    if (volumes_has_act(v))
        return false;
    for (uint32_t c = 0; c < period.dim[0]; c++)
        for (uint32_t y = 0; y < period.dim[1]; y++)
            for (uint32_t x = 0; x < period.dim[2]; x++)
                part[i++] = value[((size_t)c * view->size[VIEW_Y] + y) *
                                      view->size[VIEW_X] +
                                  x];
    Layer layer = layer_of(OP_OFFSET, "volume", view->base);
    layer.attr.offset.period = period;
    layer.attr.offset.times = !adds;
    layer.constant[CONST_VALUE] = volumes_const(v, period, part);
    View made = view_over(view, volumes_add(v, &layer), view->size[VIEW_C]);
    volumes_give(v, &made);
    return true;
}

static bool with_constant(Volumes *v, View view, uint32_t other) {
    EltKind kind = v->node->attr.elt.kind;
    bool adds = kind == ELT_ADD || kind == ELT_SUB;
    bool inverse = kind == ELT_DIV || (kind == ELT_SUB && other == 1);
    see_own_channels(v, &view);
    double *value = spread(v, &view, v->node->in[other], adds ? 0 : 1);
    Shape shape = view_shape(&view);
    if (!value || (kind == ELT_DIV && other == 0) ||
        !shape_equal(&shape, volumes_out(v)) ||
        !(adds || kind == ELT_MUL || kind == ELT_DIV))
        return false;
    size_t all = (size_t)view.size[0] * view.size[1] * view.size[2];
    for (size_t i = 0; inverse && i < all; i++)
        value[i] = adds ? -value[i] : 1 / value[i];
    if (kind == ELT_SUB && other == 0)
        negate(v, &view);
    if (!alike_in_planes(&view, value))
        return by_constants(v, &view, adds, value);
    Line line = line_new(v, view.size[VIEW_C]);
    size_t plane = all / view.size[VIEW_C];
    for (uint32_t c = 0; c < view.size[VIEW_C]; c++)
        (adds ? line.b : line.a)[c] = value[c * plane];
    give_scaled(v, &view, &line);
    return true;
}

/* ---- several operands ---- */

static bool is_image(const Shape *shape) {
    return shape->rank == 4 && shape->dim[0] == 1;
}

/* Operand k; what is no view yet, in the order of the leading one. */
static bool see_beside(Volumes *v, uint32_t k, const View *lead, View *out) {
    bool volume =
        volumes_plain(v, k) && is_image(volumes_in(v, k)) && lead->rank == 4 &&
        !(view_moves(lead, 1) & MOVES_PIXELS) &&
        !((view_moves(lead, 2) | view_moves(lead, 3)) & MOVES_CHANNELS);
    return volume ? volumes_see(v, k, out) : volumes_see_last(v, k, out);
}

/* The operand whose view others follow: a view before an image, and of the
 * result's shape. */
static bool see_lead(Volumes *v, View *out) {
    for (uint32_t plain = 0; plain < 2; plain++)
        for (uint32_t k = 0; k < v->node->n_in; k++)
            if (volumes_plain(v, k) == plain &&
                shape_equal(volumes_in(v, k), volumes_out(v)) &&
                volumes_see(v, k, out))
                return true;
    return false;
}

/* What engines do with an operand that is one number by channel, or with images
 * of one shape, needs no view. */
static bool is_plain_work(const Volumes *v) {
    const Node *node = v->node;
    bool plain = true, same = true;
    for (uint32_t k = 0; k < node->n_in; k++) {
        const Shape *in = volumes_in(v, k), *out = volumes_out(v);
        plain &= volumes_plain(v, k);
        same &= shape_equal(in, out);
        if (is_image(in) && is_image(out) && in->dim[1] == out->dim[1] &&
            shape_count(in) == in->dim[1] && shape_count(out) > in->dim[1] &&
            node->n_in == 2 && shape_equal(volumes_in(v, !k), out))
            return true;
    }
    return plain && ((same && node->attr.elt.kind != ELT_SUB) ||
                     !is_image(volumes_out(v)) || node->n_in != 2);
}

static bool all_alike(Volumes *v, const View *lead, View *view) {
    for (uint32_t k = 0; k < v->node->n_in; k++)
        if (!see_beside(v, k, lead, &view[k]) || !view_same(lead, &view[k]))
            return false;
    return true;
}

static bool all_matched(Volumes *v, View *lead, View *view) {
    if (!volumes_compact(v, lead))
        return false;
    for (uint32_t k = 0; k < v->node->n_in; k++) {
        if (!see_beside(v, k, lead, &view[k]))
            return false;
        if (!view_same(lead, &view[k]))
            (void)volumes_compact(v, &view[k]); /* or it repeats some */
        if (!volumes_match(v, lead, &view[k]))
            return false;
    }
    return true;
}

/* Where no operand has the result's shape: the largest, as often as there. */
static bool spread_lead(Volumes *v, View *out) {
    const Shape *shape = volumes_out(v);
    uint32_t largest = 0;
    View view;
    if (v->node->n_in != 2 || !is_image(shape) ||
        !volumes_has(v, HW_OP_GATHER) || !volumes_has(v, HW_OP_GATHER_PIXELS))
        return false;
    if (shape_count(volumes_in(v, 1)) > shape_count(volumes_in(v, 0)))
        largest = 1;
    *out = view_of_image(v->arena, NO_TENSOR, shape);
    if (!volumes_see(v, largest, &view) || !volumes_match(v, out, &view))
        return false;
    *out = view;
    return true;
}

/* One number by channel where that stands for it at every pixel, and an engine
 * takes it so beside the other operand. */
static TensorId number_by_channel(const Volumes *v, TensorId tensor) {
    EltKind kind = v->node->attr.elt.kind;
    const Node *node = graph_node(v->g, graph_tensor(v->g, tensor)->producer);
    bool adds = kind == ELT_ADD || kind == ELT_SUB;
    if (node->op != OP_PIXELS || v->node->n_in != 2 ||
        v->node->attr.elt.coeff ||
        !(adds || kind == ELT_MUL || kind == ELT_DIV) ||
        !volumes_has(v, adds ? HW_OP_ADD_CHANNELS : HW_OP_MUL_CHANNELS))
        return tensor;
    const Shape *in = &graph_tensor(v->g, node->in[0])->shape;
    return in->dim[2] * in->dim[3] == 1 ? node->in[0] : tensor;
}

static bool join_views(Volumes *v) {
    View lead, view[VOLUMES_MOST_IN];
    const Node *node = v->node;
    if (node->n_in > VOLUMES_MOST_IN || is_plain_work(v) ||
        !(see_lead(v, &lead) || spread_lead(v, &lead)) ||
        !(all_alike(v, &lead, view) || all_matched(v, &lead, view)))
        return false;
    for (uint32_t k = 0; k < node->n_in; k++) {
        TensorId other = view[!k].base;
        TensorId by_channel = number_by_channel(v, view[k].base);
        if (other.i == number_by_channel(v, other).i)
            view[k].base = by_channel;
    }
    Layer layer = layer_of(OP_ELTWISE, "volume", lead.base);
    layer.attr.elt = node->attr.elt;
    if (node->n_in == 2 && node->attr.elt.kind == ELT_SUB &&
        volumes_has(v, HW_OP_ADD) && volumes_has(v, HW_OP_SCALE)) {
        negate(v, &view[1]);
        layer.attr.elt.kind = ELT_ADD;
    }
    for (uint32_t k = 0; k < node->n_in; k++)
        layer.in[k] = view[k].base;
    layer.n_in = node->n_in;
    layer.act = node->act;
    lead = view_over(&lead, volumes_add(v, &layer), lead.size[VIEW_C]);
    volumes_give(v, &lead);
    return true;
}

bool convert_eltwise(Volumes *v) {
    View view;
    const Node *node = v->node;
    if (node->act.kind == ACT_PRELU)
        return false;
    if (node->n_in == 2 && convert_norm_in_parts(v))
        return true;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (volumes_value(v, node->in[k]))
            return node->n_in == 2 && !node->attr.elt.coeff &&
                   !volumes_plain(v, 1 - k) && volumes_see(v, 1 - k, &view) &&
                   with_constant(v, view, k);
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

/* Of a network over tokens that sees one at a time: what reads the product has
 * an axis of tokens. */
static bool is_token(const Volumes *v) {
    TensorId out = v->node->out[0];
    bool token = false;
    for (NodeId id = {0}; id.i < v->g->node.n; id.i++) {
        const Node *node = graph_node(v->g, id);
        bool reads = !node->dead && node->n_in == 1 && node->n_out == 1 &&
                     node->in[0].i == out.i;
        token |= reads && node->op == OP_RESHAPE &&
                 graph_tensor(v->g, node->out[0])->shape.rank > 2;
    }
    return token;
}

/* Fewer are images of a batch: not worth the transpositions. */
enum { FEWEST_ROWS = 4 };

/* Of a tensor that is no view: does it stay an inner product? */
static bool stays_fc(const Volumes *v, bool token) {
    const Shape *in = volumes_in(v, 0);
    return volumes_plain(v, 0) &&
           (in->rank != 2 ||
            (!token &&
             (in->dim[0] < FEWEST_ROWS ||
              legal_check(v->arena, v->context->spec, v->g, v->id).engine >=
                  0)));
}

/* Rows of input 0 as pixels, and its columns as channels. */
static bool see_rows(Volumes *v, View *out) {
    View view;
    if (!volumes_see_last(v, 0, &view))
        return false;
    *out = view;
    return (volumes_compact(v, out) &&
            (view_moves(out, 0) != MOVES_CHANNELS || volumes_swap(v, out)) &&
            !(view_moves(out, 0) & MOVES_CHANNELS) &&
            !(view_moves(out, 1) & MOVES_PIXELS) &&
            out->axis[1].n == out->size[VIEW_C]) ||
           (*out = view, volumes_by_channel(v, out, 1));
}

bool convert_fc(Volumes *v) {
    View view;
    const Node *node = v->node;
    const Shape *in = volumes_in(v, 0);
    bool token = is_token(v);
    if (stays_fc(v, token) || node->constant[CONST_WEIGHT].i == NONE ||
        node->act.kind == ACT_PRELU || in->rank != 2 || !see_rows(v, &view))
        return false;
    uint32_t k = view.size[VIEW_C], out = node->attr.fc.out;
    bool one = view.axis[0].n == 1 && !token, same = true;
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
