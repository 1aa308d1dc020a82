/* volumes_match.c - volumes that lie otherwise than a layer needs them; see
 * volumes.c.
 *
 * In: views. Out: the same tensors as views of volumes in which channels and
 * pixels have changed places, or lie in another order, or repeat.
 */
#include "passes/volumes.h"

#include <string.h>

/* ---- channels as pixels ---- */

/* Whether element by element channels have become pixels and pixels channels.
 */
static bool is_swapped(Volumes *v, const View *from, const View *to) {
    Shape shape = view_shape(from);
    const uint32_t *a = view_places(v->arena, from);
    const uint32_t *b = view_places(v->arena, to);
    uint32_t plane = from->size[VIEW_Y] * from->size[VIEW_X];
    for (uint64_t i = 0; i < shape_count(&shape); i++)
        if (b[i] != a[i] % plane * from->size[VIEW_C] + a[i] / plane)
            return false;
    return true;
}

bool volumes_swap(Volumes *v, View *view) {
    static const Shape turns[] = {
        {4, {0, 2, 3, 1}}, {4, {0, 2, 1, 3}}, {4, {0, 3, 1, 2}}};
    uint32_t c = view->size[VIEW_C], h = view->size[VIEW_Y],
             w = view->size[VIEW_X];
    View made = *view;
    made.size[VIEW_C] = h * w;
    made.size[VIEW_Y] = c;
    made.size[VIEW_X] = 1;
    for (uint32_t i = 0; i < view->rank; i++) {
        const ViewAxis *own = &view->axis[i];
        made.axis[i] = axis_of(v->arena, own->n, VIEW_C, 0, 0);
        for (uint32_t k = 0; k < own->n; k++) {
            made.axis[i].at[VIEW_C][k] =
                own->at[VIEW_Y][k] * w + own->at[VIEW_X][k];
            made.axis[i].at[VIEW_Y][k] = own->at[VIEW_C][k];
        }
    }
    if (!volumes_has(v, HW_OP_TRANSPOSE) || !volumes_has(v, HW_OP_RESHAPE) ||
        !is_swapped(v, view, &made))
        return false;
    Shape lines = {4, {1, h * w, c, 1}};
    made.base = volumes_turned(v, view->base,
                               &turns[w == 1   ? 1
                                      : h == 1 ? 2
                                               : 0]);
    made.base = volumes_reshaped(v, made.base, &lines);
    *view = made;
    return true;
}

bool volumes_lay(Volumes *v, View *view) {
    Shape shape = view_shape(view);
    uint64_t n = shape_count(&shape);
    const uint32_t *at = view_places(v->arena, view);
    if (shape.rank < 3 || shape.rank > 4 || shape.dim[0] != 1 ||
        n != (uint64_t)view->size[0] * view->size[1] * view->size[2] ||
        !volumes_has(v, HW_OP_RESHAPE))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (at[i] != i)
            return false;
    Shape image = {4, {1, shape.dim[1], shape.dim[2], 1}};
    if (shape.rank == 4)
        image.dim[3] = shape.dim[3];
    View made = view_of_image(v->arena, volumes_reshaped(v, view->base, &image),
                              &image);
    made.rank = shape.rank;
    *view = made;
    return true;
}

bool volumes_see_heads(Volumes *v, uint32_t k, View *out) {
    static const Shape tokens = {4, {0, 2, 1, 3}};
    TensorId in = v->node->in[k];
    const Shape own = graph_tensor(v->g, in)->shape;
    if (volumes_see(v, k, out) && !volumes_plain(v, k))
        return true;
    if (own.rank != 4 || own.dim[0] != 1 || volumes_value(v, in) ||
        !volumes_has(v, HW_OP_TRANSPOSE) || !volumes_has(v, HW_OP_RESHAPE))
        return false;
    uint32_t heads = own.dim[1], n = own.dim[2], d = own.dim[3];
    Shape image = {4, {1, n, heads * d, 1}};
    TensorId made = volumes_reshaped(v, volumes_turned(v, in, &tokens), &image);
    View view = view_of_image(v->arena, made, &image);
    view.axis[1] = axis_of(v->arena, heads, VIEW_Y, 0, d);
    view.axis[2] = axis_of(v->arena, n, VIEW_C, 0, 1);
    view.axis[3] = axis_of(v->arena, d, VIEW_Y, 0, 1);
    *out = view;
    return true;
}

/* ---- tensors of three axes in another order ---- */

/* A tensor's elements as axes, outermost first, that move so far in the order
 * of the volume. */
enum { MOST_STRIDES = 3 };
typedef struct Strides {
    uint32_t n, size[MOST_STRIDES], step[MOST_STRIDES];
} Strides;

/* How many elements, each `stride` behind the other, go on as two do. */
static uint32_t run_of(const uint32_t *place, uint32_t count, uint32_t stride) {
    uint32_t step = place[stride] - place[0], run = 2;
    while ((uint64_t)run * stride < count && place[run * stride] == run * step)
        run++;
    return run;
}

static bool strides_of(const uint32_t *place, uint32_t count, Strides *out) {
    Strides s = {0};
    for (uint32_t stride = 1, run; stride < count; stride *= run) {
        run = run_of(place, count, stride);
        if (s.n == MOST_STRIDES || count / stride % run)
            return false;
        s.size[s.n] = run;
        s.step[s.n++] = place[stride] - place[0];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0, left = i;
        for (uint32_t k = 0; k < s.n; left /= s.size[k++])
            at += left % s.size[k] * s.step[k];
        if (place[i] != at)
            return false;
    }
    out->n = s.n;
    for (uint32_t k = 0; k < s.n; k++) {
        out->size[k] = s.size[s.n - 1 - k];
        out->step[k] = s.step[s.n - 1 - k];
    }
    return true;
}

bool volumes_in_order(Volumes *v, const View *view, TensorId *out) {
    Strides s;
    Shape shape = view_shape(view);
    Shape lies = {4, {1, 1, 1, 1}}, perm = {4, {0, 1, 2, 3}};
    uint64_t n = shape_count(&shape);
    if (!n || n != (uint64_t)view->size[0] * view->size[1] * view->size[2] ||
        !strides_of(view_places(v->arena, view), (uint32_t)n, &s))
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < s.n; k++)
            before += s.step[k] > s.step[i];
        lies.dim[1 + before] = s.size[i];
        perm.dim[1 + i] = 1 + before;
    }
    if (s.n == 2) { /* rows by themselves */
        lies = (Shape){4, {1, s.size[1], s.size[0], 1}};
        perm = (Shape){4, {0, 3, 2, 1}};
    }
    TensorId made = volumes_reshaped(v, view->base, &lies);
    if (s.n > 1 && !shape_equal(&perm, &(Shape){4, {0, 1, 2, 3}}))
        made = volumes_turned(v, made, &perm);
    *out = volumes_reshaped(v, made, &shape);
    return true;
}

bool volumes_permuted(Volumes *v, const View *view, TensorId *out) {
    Shape shape = view_shape(view);
    uint32_t n = (uint32_t)shape_count(&shape), w = view->size[VIEW_X];
    if (!n || !volumes_has(v, HW_OP_GATHER_PIXELS) ||
        !volumes_has(v, HW_OP_RESHAPE))
        return false;
    uint32_t plane[] = {n / shape.dim[shape.rank - 1],
                        shape.dim[shape.rank - 1]};
    Shape flat = {4, {1, 1, view->size[VIEW_C] * view->size[VIEW_Y], w}};
    TensorId made = volumes_reshaped(v, view->base, &flat);
    made = volumes_pixels(v, made, plane, view_places(v->arena, view));
    *out = volumes_reshaped(v, made, &shape);
    return true;
}

/* The axis first, the others behind it in their order. */
static Shape brought_first(uint32_t axis, uint32_t rank) {
    Shape perm = {rank, {axis}};
    for (uint32_t i = 0, k = 1; i < rank; i++)
        if (i != axis)
            perm.dim[k++] = i;
    return perm;
}

bool volumes_by_channel(Volumes *v, View *view, uint32_t axis) {
    Shape perm = brought_first(axis, view->rank), back = {.rank = view->rank};
    View made = *view;
    TensorId image;
    view_transpose(&made, &perm);
    Shape turned = view_shape(&made), lines = {4, {1, turned.dim[0], 1, 1}};
    for (uint32_t i = 1; i < turned.rank; i++)
        lines.dim[2] *= turned.dim[i];
    for (uint32_t i = 0; i < perm.rank; i++)
        back.dim[perm.dim[i]] = i;
    if (!volumes_has(v, HW_OP_TRANSPOSE) || !volumes_has(v, HW_OP_RESHAPE) ||
        !view_reshape(v->arena, &made, &lines))
        return false;
    View part = made;
    volumes_compact(v, &part);
    if (!volumes_image(v, &made, &image) &&
        !volumes_in_order(v, &part, &image) &&
        !volumes_permuted(v, &part, &image))
        return false;
    made = view_of_image(v->arena, image, &lines);
    if (!view_reshape(v->arena, &made, &turned))
        return false;
    view_transpose(&made, &back);
    *view = made;
    return true;
}

/* ---- channels between pixels ---- */

/* Rows y % n[0] and columns x % n[1] of each channel of the tensor come from
 * one of the volume: which, in the order of rows, columns, channels. NULL: they
 * do not. */
static uint32_t *shuffle_of(Volumes *v, const View *view, uint32_t n[2]) {
    Shape s = view_shape(view);
    uint32_t h = view->size[VIEW_Y], w = view->size[VIEW_X];
    n[0] = s.dim[2] / h;
    n[1] = s.dim[3] / w;
    uint64_t all = (uint64_t)n[0] * n[1] * s.dim[1];
    if (s.dim[0] != 1 || s.dim[2] % h || s.dim[3] % w || n[0] * n[1] < 2 ||
        all != view->size[VIEW_C])
        return NULL;
    const uint32_t *place = view_places(v->arena, view);
    uint32_t *channel = ARENA_ARRAY(v->arena, uint32_t, all);
    for (uint64_t i = 0; i < shape_count(&s); i++) {
        uint32_t x = (uint32_t)(i % s.dim[3]);
        uint32_t y = (uint32_t)(i / s.dim[3] % s.dim[2]);
        uint32_t c = (uint32_t)(i / s.dim[3] / s.dim[2]);
        uint32_t *of = &channel[(y % n[0] * n[1] + x % n[1]) * s.dim[1] + c];
        if (y < n[0] && x < n[1])
            *of = place[i] / (h * w);
        if (place[i] != (*of * h + y / n[0]) * w + x / n[1])
            return NULL;
    }
    return channel;
}

bool volumes_shuffled(Volumes *v, const View *view, TensorId *out) {
    static const Shape columns = {4, {0, 1, 3, 2}}, rows = {4, {0, 2, 1, 3}};
    uint32_t n[2];
    if (view->rank != 4 || !volumes_has(v, HW_OP_TRANSPOSE) ||
        !volumes_has(v, HW_OP_RESHAPE))
        return false;
    const uint32_t *channel = shuffle_of(v, view, n);
    if (!channel)
        return false;
    Shape shape = view_shape(view);
    uint32_t lines = shape.dim[1] * view->size[VIEW_Y], w = view->size[VIEW_X];
    Shape parts = {4, {1, n[0], n[1], lines * w}};
    Shape between = {4, {1, n[0], lines, w * n[1]}};
    TensorId made =
        volumes_channels(v, view->base, view->size[VIEW_C], channel);
    made = volumes_turned(v, volumes_reshaped(v, made, &parts), &columns);
    made = volumes_turned(v, volumes_reshaped(v, made, &between), &rows);
    *out = volumes_reshaped(v, made, &shape);
    return true;
}

/* ---- another order ---- */

/* Which elements of the volume the axes of the set see, the others at 0. */
static ViewAxis along(Volumes *v, const View *view, uint32_t set) {
    View some = *view;
    for (uint32_t i = 0; i < view->rank; i++)
        if (!(set >> i & 1))
            view_pick(v->arena, &some, i, 1, (uint32_t[]){0});
    return view_merged(v->arena, &some, 0, some.rank);
}

static uint32_t place(const View *view, const ViewAxis *axis, uint32_t i,
                      bool pixels) {
    return pixels
               ? axis->at[VIEW_Y][i] * view->size[VIEW_X] + axis->at[VIEW_X][i]
               : axis->at[VIEW_C][i];
}

static uint32_t places(const View *view, bool pixels) {
    return pixels ? view->size[VIEW_Y] * view->size[VIEW_X]
                  : view->size[VIEW_C];
}

/* For each place of the volume that `like` sees, which one of the other's; NULL
 * where the axes do not see each once. */
static uint32_t *order_like(Volumes *v, const View *like, const View *view,
                            uint32_t set, bool pixels) {
    ViewAxis to = along(v, like, set), from = along(v, view, set);
    uint32_t n = places(like, pixels);
    uint32_t *order = ARENA_ARRAY(v->arena, uint32_t, n);
    if (to.n != n)
        return NULL;
    memset(order, 0xff, n * sizeof *order);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = place(like, &to, i, pixels);
        if (order[at] != NONE)
            return NULL;
        order[at] = place(view, &from, i, pixels);
    }
    return order;
}

static bool is_all(const uint32_t *order, uint32_t n, uint32_t all) {
    bool same = n == all;
    for (uint32_t i = 0; i < n && same; i++)
        same = order[i] == i;
    return same;
}

/* Axes of one element before its own. */
static bool set_rank(Volumes *v, const View *like, View *view) {
    if (like->rank < view->rank)
        return false;
    uint32_t before = like->rank - view->rank;
    for (uint32_t i = like->rank; i-- > 0;)
        view->axis[i] = i < before ? axis_of(v->arena, 1, VIEW_C, 0, 0)
                                   : view->axis[i - before];
    view->rank = like->rank;
    return true;
}

/* Axes of the other are repeated where they have one element. */
static bool stretch(Volumes *v, const View *like, View *view) {
    View made = *view;
    if (!set_rank(v, like, &made))
        return false;
    for (uint32_t i = 0; i < like->rank; i++) {
        if (made.axis[i].n != like->axis[i].n && made.axis[i].n != 1)
            return false;
        if (made.axis[i].n != like->axis[i].n)
            view_pick(v->arena, &made, i, like->axis[i].n,
                      ARENA_ARRAY(v->arena, uint32_t, like->axis[i].n));
    }
    *view = made;
    return true;
}

/* Which axes move along channels, and which along pixels; false: one along
 * both. */
static bool sets_of(const View *view, uint32_t set[2]) {
    set[0] = set[1] = 0;
    for (uint32_t i = 0; i < view->rank; i++) {
        uint32_t moves = view_moves(view, i);
        if (moves == (MOVES_CHANNELS | MOVES_PIXELS))
            return false;
        set[0] |= (uint32_t)(moves == MOVES_CHANNELS) << i;
        set[1] |= (uint32_t)(moves == MOVES_PIXELS) << i;
    }
    return true;
}

/* How far the axis goes at its first step. */
static uint32_t first_step(const View *view, uint32_t axis) {
    const ViewAxis *a = &view->axis[axis];
    uint32_t at[2] = {0};
    for (uint32_t i = 0; i < 2 && i < a->n; i++)
        at[i] = (a->at[VIEW_C][i] * view->size[VIEW_Y] + a->at[VIEW_Y][i]) *
                    view->size[VIEW_X] +
                a->at[VIEW_X][i];
    return at[1] - at[0];
}

/* Axes in the order in which `like` goes along its volume: those that stand
 * still, those along channels, those along pixels. */
static Shape order_of_axes(const View *like, const uint32_t set[2]) {
    Shape perm = {.rank = like->rank};
    for (uint32_t i = 0; i < like->rank; i++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < like->rank; k++) {
            uint32_t x = first_step(like, i), y = first_step(like, k);
            x = (set[0] | set[1]) >> i & 1 ? x : UINT32_MAX;
            y = (set[0] | set[1]) >> k & 1 ? y : UINT32_MAX;
            at += y > x || (y == x && k < i);
        }
        perm.dim[at] = i;
    }
    return perm;
}

/* An image of the other's elements in the order of `like`. */
static bool lay_like(Volumes *v, const View *like, View *view) {
    uint32_t set[2];
    View made = *view;
    if (!sets_of(like, set) || !set_rank(v, like, &made) ||
        !volumes_has(v, HW_OP_RESHAPE) || !volumes_has(v, HW_OP_TRANSPOSE))
        return false;
    Shape perm = order_of_axes(like, set), back = {.rank = perm.rank};
    Shape image = {4, {1, 1, 1, 1}};
    for (uint32_t i = 0; i < perm.rank; i++) {
        back.dim[perm.dim[i]] = i;
        image.dim[1 + (set[1] >> i & 1)] *= made.axis[i].n;
    }
    view_transpose(&made, &perm);
    Shape turned = view_shape(&made);
    TensorId base;
    if (!view_reshape(v->arena, &made, &image) ||
        (!volumes_in_order(v, &made, &base) &&
         (!volumes_compact(v, &made) || !volumes_in_order(v, &made, &base))))
        return false;
    made = view_of_image(v->arena, base, &image);
    if (!view_reshape(v->arena, &made, &turned))
        return false;
    view_transpose(&made, &back);
    *view = made;
    return true;
}

static bool match(Volumes *v, const View *like, View *view) {
    uint32_t set[2], own[2], *order[2];
    View made = *view;
    if (view_same(like, view))
        return true;
    if (!stretch(v, like, &made) || !sets_of(like, set) || !sets_of(&made, own))
        return false;
    if ((own[0] & set[1] || own[1] & set[0]) &&
        (!volumes_swap(v, &made) || !sets_of(&made, own) || own[0] & set[1] ||
         own[1] & set[0]))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        order[i] = order_like(v, like, &made, set[i], i);
        if (!order[i])
            return false;
    }
    uint32_t c = like->size[VIEW_C], n = places(like, true);
    bool channels = !is_all(order[0], c, made.size[VIEW_C]);
    bool pixels = !is_all(order[1], n, places(&made, true));
    bool narrows = c < made.size[VIEW_C];
    TensorId base = made.base;
    if (channels && narrows)
        base = volumes_channels(v, base, c, order[0]);
    if (pixels)
        base = volumes_pixels(v, base, &like->size[VIEW_Y], order[1]);
    if (channels && !narrows)
        base = volumes_channels(v, base, c, order[0]);
    if (!pixels)
        base = volumes_reshaped(
            v, base,
            &(Shape){4, {1, c, like->size[VIEW_Y], like->size[VIEW_X]}});
    *view = view_over(like, base, c);
    return true;
}

bool volumes_match(Volumes *v, const View *like, View *view) {
    View laid = *view;
    if (match(v, like, view))
        return true;
    if (!lay_like(v, like, &laid) || !match(v, like, &laid))
        return false;
    *view = laid;
    return true;
}

/* ---- heads ---- */

/* The axis goes along channels by steps; along pixels as before. */
static void see_steps(Volumes *v, ViewAxis *axis, uint32_t step) {
    axis->at[VIEW_C] = axis_of(v->arena, axis->n, VIEW_C, 0, step).at[VIEW_C];
}

bool volumes_heads(Volumes *v, View *view, uint32_t channel) {
    uint32_t set = 0, n = 1;
    View made = *view;
    for (uint32_t i = 0; i < view->rank; i++) {
        uint32_t moves = view_moves(view, i);
        bool tokens = i + 2 >= view->rank && i != channel;
        if (moves == (MOVES_CHANNELS | MOVES_PIXELS) ||
            (moves == MOVES_CHANNELS && tokens))
            return false;
        set |= (uint32_t)(moves != MOVES_PIXELS && !tokens) << i;
    }
    if (!(set >> channel & 1))
        return false;
    ViewAxis all = along(v, view, set & ~(1u << channel));
    const ViewAxis *own = &view->axis[channel];
    uint32_t *index = ARENA_ARRAY(v->arena, uint32_t, (size_t)all.n * own->n);
    for (uint32_t i = 0; i < all.n; i++)
        for (uint32_t k = 0; k < own->n; k++)
            index[i * own->n + k] = (all.at[VIEW_C][i] + own->at[VIEW_C][k] +
                                     view->size[VIEW_C] - own->at[VIEW_C][0]) %
                                    view->size[VIEW_C];
    for (uint32_t i = view->rank; i-- > 0;)
        if (set >> i & 1 && i != channel) {
            see_steps(v, &made.axis[i], n * own->n);
            n *= view->axis[i].n;
        }
    see_steps(v, &made.axis[channel], 1);
    made.size[VIEW_C] = all.n * own->n;
    if (!is_all(index, made.size[VIEW_C], view->size[VIEW_C]))
        made.base = volumes_channels(v, view->base, made.size[VIEW_C], index);
    *view = made;
    return true;
}
