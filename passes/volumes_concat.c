/* volumes_concat.c - views side by side; see volumes.c: parts of one volume,
 * channels or pixels of several, tokens that the network brings along. */
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

/* Whether channels of the view stay within their volume without wrapping. */
static bool stays_inside(const View *view) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < view->rank; i++) {
        uint32_t most = 0;
        for (uint32_t k = 0; k < view->axis[i].n; k++)
            if (view->axis[i].at[VIEW_C][k] > most)
                most = view->axis[i].at[VIEW_C][k];
        last += most;
    }
    return last < view->size[VIEW_C];
}

static ViewAxis shifted(Volumes *v, const ViewAxis *axis, uint32_t by) {
    ViewAxis made = axis_of(v->arena, axis->n, VIEW_C, 0, 0);
    for (uint32_t i = 0; i < axis->n; i++)
        made.at[VIEW_C][i] = axis->at[VIEW_C][i] + by;
    return made;
}

/* The same view with this axis, of so many channels. */
static View with_axis(Volumes *v, const View *view, uint32_t axis, uint32_t n,
                      uint32_t channels) {
    View made = *view;
    made.size[VIEW_C] = channels;
    made.axis[axis] = axis_of(v->arena, n, VIEW_C, 0, n > 1);
    return made;
}

/* The axis is all channels in their order, and no other moves along them. */
static bool is_channels(const View *view, uint32_t axis) {
    const ViewAxis *a = &view->axis[axis];
    bool same = a->n == view->size[VIEW_C];
    for (uint32_t i = 0; same && i < a->n; i++)
        same = a->at[VIEW_C][i] == i;
    return same;
}

/* Volumes side by side, of whose views the axis moves along channels alone. */
static bool join(Volumes *v, View *view, View *out) {
    uint32_t axis = v->node->attr.axis.axis, n = v->node->n_in, sum = 0;
    TensorId *in = ARENA_ARRAY(v->arena, TensorId, n);
    View rest = {0};
    ViewAxis all = {0};
    for (uint32_t k = 0; k < n; k++) {
        const ViewAxis *own = &view[k].axis[axis];
        View like = with_axis(v, &view[0], axis, own->n, own->n);
        if (view_moves(&view[k], axis) & MOVES_PIXELS ||
            !stays_inside(&view[k]))
            return false;
        View now = with_axis(v, &view[k], axis, 1, 1);
        if (k && !view_same(&rest, &now) &&
            !(is_channels(&view[0], axis) && volumes_match(v, &like, &view[k])))
            return false;
        rest = k ? rest : now;
        ViewAxis moved = shifted(v, &view[k].axis[axis], sum);
        View both = {.rank = 1, .axis = {all}};
        View more = {.rank = 1, .axis = {moved}};
        both.base = more.base = view[0].base;
        if (k && !view_append(v->arena, &both, &more, 0))
            return false;
        all = k ? both.axis[0] : moved;
        in[k] = view[k].base;
        sum += view[k].size[VIEW_C];
    }
    *out = view_over(&rest, volumes_join(v, "volume", n, in), sum);
    out->axis[axis] = all;
    return true;
}

/* Channels of several volumes, or their pixels, which are channels meanwhile.
 */
static bool joins_volumes(Volumes *v) {
    uint32_t axis = v->node->attr.axis.axis, n = v->node->n_in;
    View *view = ARENA_ARRAY(v->arena, View, n), made;
    bool heads = volumes_out(v)->rank == 4 && axis == 2;
    bool pixels = false;
    for (uint32_t k = 0; k < n; k++) {
        TensorId image;
        if (!(heads ? volumes_see_heads(v, k, &view[k])
                    : volumes_see(v, k, &view[k])))
            return false;
        if (axis == 1 && volumes_image(v, &view[k], &image))
            view[k] = view_of_image(v->arena, image,
                                    &graph_tensor(v->g, image)->shape);
        if (!volumes_compact(v, &view[k]))
            return false;
        if (axis == 1 && view_moves(&view[k], 1) == MOVES_PIXELS)
            volumes_lay(v, &view[k]);
        pixels |= view_moves(&view[k], axis) & MOVES_PIXELS;
    }
    for (uint32_t k = 0; k < n && (pixels || heads); k++)
        if (!(view_moves(&view[k], axis) == MOVES_CHANNELS ||
              volumes_swap(v, &view[k])))
            return false;
    if (!join(v, view, &made) || ((pixels || heads) && !volumes_swap(v, &made)))
        return false;
    volumes_give(v, &made);
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
    if (own == NONE || !volumes_compact(v, &view))
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
    offset.attr.offset.period = (Shape){3, {c, tokens, 1}};
    offset.constant[CONST_VALUE] =
        volumes_const(v, offset.attr.offset.period, value);
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
           (joins_views(v) || joins_tokens(v) || joins_volumes(v));
}
