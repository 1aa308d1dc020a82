/* view.c - see view.h. Sizes are those of tensors: what is built here is no
 * larger than they are. */
#include "passes/view.h"

#include <string.h>

static ViewAxis axis_new(Arena *arena, uint32_t n) {
    ViewAxis axis = {.n = n};
    for (uint32_t d = 0; d < VIEW_DIMS; d++)
        axis.at[d] = ARENA_ARRAY(arena, uint32_t, n);
    return axis;
}

ViewAxis axis_of(Arena *arena, uint32_t n, uint32_t dim, uint32_t first,
                 uint32_t step) {
    ViewAxis axis = axis_new(arena, n);
    for (uint32_t i = 0; i < n; i++)
        axis.at[dim][i] = first + i * step;
    return axis;
}

View view_of_image(Arena *arena, TensorId base, const Shape *shape) {
    View view = {.base = base, .rank = 4, .axis = {axis_new(arena, 1)}};
    for (uint32_t d = 0; d < VIEW_DIMS; d++) {
        view.size[d] = shape->dim[1 + d];
        view.axis[1 + d] = axis_of(arena, view.size[d], d, 0, 1);
    }
    return view;
}

View view_over(const View *view, TensorId base, uint32_t channels) {
    View over = *view;
    over.base = base;
    over.size[VIEW_C] = channels;
    return over;
}

Shape view_shape(const View *view) {
    Shape shape = {.rank = view->rank};
    for (uint32_t i = 0; i < view->rank; i++)
        shape.dim[i] = view->axis[i].n;
    return shape;
}

/* ---- merging and splitting ---- */

static ViewAxis merged(Arena *arena, const View *view, const ViewAxis *a,
                       const ViewAxis *b) {
    ViewAxis both = axis_new(arena, a->n * b->n);
    for (uint32_t d = 0; d < VIEW_DIMS; d++)
        for (uint32_t i = 0; i < a->n; i++)
            for (uint32_t j = 0; j < b->n; j++)
                both.at[d][i * b->n + j] =
                    (a->at[d][i] + b->at[d][j]) % view->size[d];
    return both;
}

ViewAxis view_merged(Arena *arena, const View *view, uint32_t from,
                     uint32_t to) {
    ViewAxis all = axis_new(arena, 1);
    for (uint32_t i = from; i < to; i++)
        all = merged(arena, view, &all, &view->axis[i]);
    return all;
}

/* An axis as `outer` of `inner`; false where it is none. */
static bool halves(Arena *arena, const View *view, ViewAxis axis, uint32_t n,
                   ViewAxis *outer, ViewAxis *inner) {
    *outer = axis_new(arena, n);
    *inner = axis_new(arena, axis.n / n);
    for (uint32_t d = 0; d < VIEW_DIMS; d++) {
        const uint32_t *at = axis.at[d];
        uint32_t size = view->size[d];
        for (uint32_t i = 0; i < n; i++)
            outer->at[d][i] = at[i * inner->n];
        for (uint32_t j = 0; j < inner->n; j++)
            inner->at[d][j] = (at[j] + size - at[0]) % size;
        for (uint32_t i = 0; i < axis.n; i++)
            if (at[i] !=
                (outer->at[d][i / inner->n] + inner->at[d][i % inner->n]) %
                    size)
                return false;
    }
    return true;
}

bool view_reshape(Arena *arena, View *view, const Shape *to) {
    View made = *view;
    ViewAxis rest = axis_new(arena, 1);
    uint32_t next = 0;
    made.rank = to->rank;
    for (uint32_t i = 0; i < to->rank; i++) {
        while (rest.n < to->dim[i] && next < view->rank)
            rest = merged(arena, view, &rest, &view->axis[next++]);
        if (rest.n % to->dim[i] != 0 ||
            !halves(arena, view, rest, to->dim[i], &made.axis[i], &rest))
            return false;
    }
    while (next < view->rank) /* axes of one element, which may move it */
        rest = merged(arena, view, &rest, &view->axis[next++]);
    if (rest.n != 1 || !to->rank)
        return false;
    made.axis[to->rank - 1] =
        merged(arena, view, &made.axis[to->rank - 1], &rest);
    *view = made;
    return true;
}

void view_transpose(View *view, const Shape *perm) {
    View made = *view;
    for (uint32_t i = 0; i < view->rank; i++)
        made.axis[i] = view->axis[perm->dim[i]];
    *view = made;
}

void view_pick(Arena *arena, View *view, uint32_t axis, uint32_t n,
               const uint32_t *index) {
    ViewAxis some = axis_new(arena, n);
    for (uint32_t d = 0; d < VIEW_DIMS; d++)
        for (uint32_t i = 0; i < n; i++)
            some.at[d][i] = view->axis[axis].at[d][index[i]];
    view->axis[axis] = some;
}

static bool same_axis(const ViewAxis *a, const ViewAxis *b) {
    bool same = a->n == b->n;
    for (uint32_t d = 0; same && d < VIEW_DIMS; d++)
        same = !memcmp(a->at[d], b->at[d], a->n * sizeof *a->at[d]);
    return same;
}

bool view_append(Arena *arena, View *view, const View *other, uint32_t axis) {
    bool fits = view->base.i == other->base.i && view->rank == other->rank;
    for (uint32_t i = 0; fits && i < view->rank; i++)
        fits = i == axis || same_axis(&view->axis[i], &other->axis[i]);
    if (!fits)
        return false;
    const ViewAxis *a = &view->axis[axis], *b = &other->axis[axis];
    ViewAxis both = axis_new(arena, a->n + b->n);
    for (uint32_t d = 0; d < VIEW_DIMS; d++)
        for (uint32_t i = 0; i < both.n; i++)
            both.at[d][i] = i < a->n ? a->at[d][i] : b->at[d][i - a->n];
    view->axis[axis] = both;
    return true;
}

bool view_same(const View *a, const View *b) {
    bool same = a->rank == b->rank && !memcmp(a->size, b->size, sizeof a->size);
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = same_axis(&a->axis[i], &b->axis[i]);
    return same;
}

uint32_t view_moves(const View *view, uint32_t axis) {
    const ViewAxis *a = &view->axis[axis];
    uint32_t moves = 0;
    for (uint32_t d = 0; d < VIEW_DIMS; d++)
        for (uint32_t i = 1; i < a->n; i++)
            if (a->at[d][i] != a->at[d][0])
                moves |= d == VIEW_C ? MOVES_CHANNELS : MOVES_PIXELS;
    return moves;
}

uint32_t *view_places(Arena *arena, const View *view) {
    ViewAxis all = view_merged(arena, view, 0, view->rank);
    for (uint32_t i = 0; i < all.n; i++)
        all.at[VIEW_C][i] =
            (all.at[VIEW_C][i] * view->size[VIEW_Y] + all.at[VIEW_Y][i]) *
                view->size[VIEW_X] +
            all.at[VIEW_X][i];
    return all.at[VIEW_C];
}
