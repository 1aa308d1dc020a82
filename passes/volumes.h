/* volumes.h - what the files of the pass `volumes` share. */
#ifndef PASSES_VOLUMES_H
#define PASSES_VOLUMES_H

#include "passes/passes_int.h"
#include "passes/view.h"

/* States that a recurrent layer has come to, as volumes [1, units, steps,
 * images] and [1, units, 1, images]. */
typedef struct Unrolled {
    NodeId node;
    TensorId all, state, cell;
} Unrolled;

typedef struct Volumes {
    Graph *g;
    PassContext *context;
    Arena *arena;           /* = context->scratch */
    uint32_t n;             /* tensors that there were before */
    View *view;             /* of each of them */
    TensorId *whole;        /* ... as a tensor of its own shape, once made */
    VEC(Unrolled) unrolled; /* so far */
    Node at;                /* the node at hand, as it was, */
    const Node *node;       /* = &at */
    NodeId id;
} Volumes;

/* As many as a sum can have. */
enum { VOLUMES_MOST_IN = 16 };

/* A layer over volumes; what it stands for has made it. */
typedef struct Layer {
    OpKind op;
    const char *suffix; /* of its name */
    uint32_t n_in;
    TensorId in[VOLUMES_MOST_IN];
    Attrs attr;
    Act act;
    ConstId constant[CONST_ROLES];
    bool no_bias;
} Layer;
Layer layer_of(OpKind op, const char *suffix, TensorId in);
/* A convolution of each pixel, head by head: groups of channels, each of which
 * becomes `out` of them. Its constants are the caller's. */
Layer layer_of_heads(TensorId in, uint32_t heads, uint32_t out);
TensorId volumes_add(Volumes *v, const Layer *layer);
/* Channels of any number of volumes side by side. */
TensorId volumes_join(Volumes *v, const char *suffix, uint32_t n,
                      const TensorId *in);
/* Of this many values; see Const. */
ConstId volumes_const(Volumes *v, Shape shape, const double *value);

bool volumes_has(const Volumes *v, HwOp op);
/* As it is known; base NO_TENSOR: it has none. */
const View *volumes_view(const Volumes *v, TensorId tensor);
static inline bool volumes_plain(const Volumes *v, uint32_t k) {
    return volumes_view(v, v->node->in[k])->base.i == NONE;
}
static inline const Shape *volumes_in(const Volumes *v, uint32_t k) {
    return &graph_tensor(v->g, v->node->in[k])->shape;
}
static inline const Shape *volumes_out(const Volumes *v) {
    return &graph_tensor(v->g, v->node->out[0])->shape;
}
static inline bool volumes_has_act(const Volumes *v) {
    return v->node->act.kind != ACT_NONE;
}
/* Whether all are one number. */
bool volumes_alike(const double *value, uint32_t n);
/* A view of input k, where there is one, or can be: a volume. */
bool volumes_see(Volumes *v, uint32_t k, View *out);
/* The same, of a tensor whose last axis are its channels. */
bool volumes_see_last(Volumes *v, uint32_t k, View *out);
/* Values of a constant operand; NULL: it is none. */
const Const *volumes_value(const Volumes *v, TensorId tensor);
/* volumes_norms.c. Whether axes [from, to) make up groups of channels, one
 * behind the other; how many. 0: they do not. */
uint32_t volumes_groups(Volumes *v, const View *view, uint32_t from,
                        uint32_t to);
/* Whether the axis moves along both channels and pixels; it as two, the second
 * of `n` indices, neither of which does. False: they do. */
bool volumes_mixes(const View *view, uint32_t axis);
bool volumes_split(Volumes *v, View *view, uint32_t axis, uint32_t n);
/* Heads of `n` channels have `wide` of them: axes go to the first of each. */
void volumes_widen(Volumes *v, View *view, uint32_t n, uint32_t wide);
/* Makes what the view sees of its volume a volume of its own; false where
 * channels and pixels mix. */
bool volumes_compact(Volumes *v, View *view);
/* The view as an image: channels and pixels in its order; false where it is
 * none.
 */
bool volumes_image(Volumes *v, const View *view, TensorId *out);
/* A tensor with another shape, or with its axes in another order. */
TensorId volumes_reshaped(Volumes *v, TensorId in, const Shape *shape);
TensorId volumes_turned(Volumes *v, TensorId in, const Shape *perm);
/* Some channels of a volume; pixels, as a plane of rows and columns. Each may
 * be there more than once. */
TensorId volumes_channels(Volumes *v, TensorId base, uint32_t n,
                          const uint32_t *channel);
TensorId volumes_pixels(Volumes *v, TensorId base, const uint32_t plane[2],
                        const uint32_t *pixel);
/* volumes_match.c. Channels become pixels and pixels channels; false where no
 * engine does that. */
bool volumes_swap(Volumes *v, View *view);
/* Axis 1 becomes channels where the tensor's elements lie in their order. */
bool volumes_lay(Volumes *v, View *view);
/* The tensor that the view sees, by at most one turn of three axes. */
bool volumes_in_order(Volumes *v, const View *view, TensorId *out);
/* ... element by element, as pixels of one channel. */
bool volumes_permuted(Volumes *v, const View *view, TensorId *out);
/* The view sees an image whose channels are this axis, and no other, and its
 * pixels all others. */
bool volumes_by_channel(Volumes *v, View *view, uint32_t axis);
/* ... whose channels lie between pixels, by two turns. */
bool volumes_shuffled(Volumes *v, const View *view, TensorId *out);
/* A view of input k, where there is none of an image [1, heads, tokens, d]:
 * tokens are its channels. */
bool volumes_see_heads(Volumes *v, uint32_t k, View *out);
/* The view sees its volume as `like` does, and repeats where that is larger. */
bool volumes_match(Volumes *v, const View *like, View *view);
/* Channels lie head by head, each those of axis `channel` in its order; heads
 * may repeat. */
bool volumes_heads(Volumes *v, View *view, uint32_t channel);
/* The result of the node at hand. */
void volumes_give(Volumes *v, const View *view);

/* Converts the node at hand. False: it cannot, and nothing has changed but that
 * layers may have been added which nobody reads. */
typedef bool Convert(Volumes *v);
/* volumes_ops.c */
Convert convert_reshape, convert_transpose, convert_slice, convert_gather,
    convert_identity, convert_act, convert_scale, convert_eltwise, convert_fc;
/* volumes_concat.c */
Convert convert_concat;
/* volumes_norms.c; the second: a division that is the last part of a norm */
Convert convert_norm, convert_norm_in_parts, convert_softmax;
/* volumes_reduce.c */
Convert convert_reduce;
/* volumes_lines.c */
Convert convert_conv, convert_pool, convert_pad, convert_taps;
/* volumes_mix.c */
Convert convert_matmul;
/* volumes_steps.c */
Convert convert_routine;

#endif
