/* view.h - a tensor of any rank as elements of a volume, without a copy.
 *
 * Each axis of the tensor says, for each of its indices, how far it moves along
 * the volume's channels, rows and columns; these moves add up, and wrap. So
 * reshapes, transpositions, slices, rolls and windows are changes of a few
 * vectors, and move nothing.
 */
#ifndef PASSES_VIEW_H
#define PASSES_VIEW_H

#include "graph/graph.h"

enum { VIEW_C, VIEW_Y, VIEW_X, VIEW_DIMS };

typedef struct ViewAxis {
    uint32_t n;
    uint32_t *at[VIEW_DIMS]; /* [n] */
} ViewAxis;

typedef struct View {
    TensorId base; /* [1, c, h, w]; NO_TENSOR: there is none */
    uint32_t size[VIEW_DIMS];
    uint32_t rank;
    ViewAxis axis[SHAPE_MAX_RANK];
} View;

/* What an axis moves along. */
enum { MOVES_CHANNELS = 1, MOVES_PIXELS = 2 };

View view_of_image(Arena *arena, TensorId base, const Shape *shape);
/* The same vectors over another volume of the same planes. */
View view_over(const View *view, TensorId base, uint32_t channels);
Shape view_shape(const View *view);

/* Elements keep their order. False where the result is no such view. */
bool view_reshape(Arena *arena, View *view, const Shape *to);
void view_transpose(View *view, const Shape *perm);
/* Some indices of an axis. */
void view_pick(Arena *arena, View *view, uint32_t axis, uint32_t n,
               const uint32_t *index);
/* The other view's indices behind those of the axis; false where the other axes
 * or the volumes differ. */
bool view_append(Arena *arena, View *view, const View *other, uint32_t axis);
bool view_same(const View *a, const View *b);

/* MOVES_... of an axis. */
uint32_t view_moves(const View *view, uint32_t axis);
/* Axes [from, to) as one. */
ViewAxis view_merged(Arena *arena, const View *view, uint32_t from,
                     uint32_t to);
/* Place of every element, in the tensor's order, in the order of the volume. */
uint32_t *view_places(Arena *arena, const View *view);

/* A vector along `dim`: 0, step, 2 step... from `first` on. */
ViewAxis axis_of(Arena *arena, uint32_t n, uint32_t dim, uint32_t first,
                 uint32_t step);

#endif
