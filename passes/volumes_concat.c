/* volumes_concat.c - views side by side; see volumes.c: parts of one volume,
 * channels of several, tokens that the network brings along. */
#include "passes/volumes.h"

static bool joins_views(Volumes *v) {
    View view, other;
    bool ok = volumes_see(v, 0, &view);
    for (uint32_t k = 1; ok && k < v->node->n_in; k++)
        ok = volumes_see(v, k, &other) &&
             view_append(v->arena, &view, &other, v->node->attr.axis.axis);
    if (ok)
        volumes_give(v, &view);
    return ok;
}

/* Channels of several volumes side by side; the axis is of channels alone, in
 * their order. */
static bool joins_channels(Volumes *v) {
    uint32_t axis = v->node->attr.axis.axis, n = v->node->n_in, sum = 0;
    TensorId *in = ARENA_ARRAY(v->arena, TensorId, n);
    View first = {0}, view;
    for (uint32_t k = 0; k < n; k++) {
        if (!volumes_see(v, k, &view) || !volumes_compact(v, &view))
            return false;
        const ViewAxis *a = &view.axis[axis];
        bool fits = a->n == view.size[VIEW_C];
        for (uint32_t i = 0; fits && i < a->n; i++)
            fits = a->at[VIEW_C][i] == i;
        in[k] = view.base;
        sum += a->n;
        view.axis[axis] = axis_of(v->arena, 1, VIEW_C, 0, 0);
        view.size[VIEW_C] = 1;
        if (!fits || (k && !view_same(&first, &view)))
            return false;
        first = view;
    }
    NodeId id = graph_add(
        v->g, OP_CONCAT, arena_printf(v->g->arena, "%s__volume", v->node->name),
        v->node->loc, n, in);
    graph_node(v->g, id)->attr.axis.axis = 1;
    TensorId out = graph_add_output(v->g, id, graph_node(v->g, id)->name);
    if (!graph_infer(v->g, id, v->context->diag))
        return false;
    first = view_over(&first, out, sum);
    first.axis[axis] = axis_of(v->arena, sum, VIEW_C, 0, 1);
    volumes_give(v, &first);
    return true;
}

/* Tokens that the network brings along beside those of a volume: zeros in their
 * place, to which constants are added. */
static bool joins_tokens(Volumes *v) {
    uint32_t axis = v->node->attr.axis.axis, n = v->node->n_in, own = NONE;
    View view = {0};
    for (uint32_t k = 0; k < n; k++)
        if (!volumes_value(v, v->node->in[k])) {
            if (own != NONE || !volumes_see(v, k, &view))
                return false;
            own = k;
        }
    if (own == NONE || !volumes_has(v, HW_OP_ADD_CONSTANTS) ||
        !volumes_compact(v, &view))
        return false;
    uint32_t c = view.size[VIEW_C],
             tokens = graph_tensor(v->g, v->node->out[0])->shape.dim[axis],
             at = 0;
    uint32_t channels = NONE;
    for (uint32_t i = 0; i < view.rank; i++)
        if (i != axis && view.axis[i].n > 1)
            channels = channels == NONE ? i : view.rank;
    if (channels >= view.rank || view.axis[channels].n != c)
        return false;
    double *index = ARENA_ARRAY(v->arena, double, tokens);
    double *value = ARENA_ARRAY(v->arena, double, (size_t)c *tokens);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t some = graph_tensor(v->g, v->node->in[k])->shape.dim[axis];
        const Const *fixed = volumes_value(v, v->node->in[k]);
        double *read = ARENA_ARRAY(v->arena, double, (size_t)c *some);
        if (fixed)
            const_read_f64(fixed, read);
        for (uint32_t i = 0; i < some; i++, at++) {
            index[at] = (double)view.size[VIEW_Y] * view.size[VIEW_X];
            if (!fixed)
                index[at] = view.axis[axis].at[VIEW_Y][i] * view.size[VIEW_X] +
                            view.axis[axis].at[VIEW_X][i];
            for (uint32_t j = 0; fixed && j < c; j++)
                value[view.axis[channels].at[VIEW_C][j] * (size_t)tokens + at] =
                    axis < channels ? read[(size_t)i * c + j]
                                    : read[(size_t)j * some + i];
        }
    }
    Layer pixels = layer_of(OP_PIXELS, "pixels", view.base);
    pixels.attr.plane[0] = tokens;
    pixels.attr.plane[1] = 1;
    pixels.constant[CONST_INDEX] = volumes_const(v, shape_of(tokens), index);
    Layer offset = layer_of(OP_OFFSET, "volume", volumes_add(v, &pixels));
    offset.attr.reshape = (Shape){3, {c, tokens, 1}};
    offset.constant[CONST_VALUE] = volumes_const(v, offset.attr.reshape, value);
    View made = view_over(&view, volumes_add(v, &offset), c);
    made.size[VIEW_Y] = tokens;
    made.size[VIEW_X] = 1;
    made.axis[axis] = axis_of(v->arena, tokens, VIEW_Y, 0, 1);
    volumes_give(v, &made);
    return true;
}

bool convert_concat(Volumes *v) {
    bool plain = true;
    for (uint32_t k = 0; k < v->node->n_in; k++)
        plain &= volumes_plain(v, k);
    return !plain && v->node->act.kind == ACT_NONE &&
           (joins_views(v) || joins_tokens(v) || joins_channels(v));
}
