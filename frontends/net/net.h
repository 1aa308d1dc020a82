/* net.h - what readers of several formats have in common: layers of a
 * network as nodes of a graph.
 *
 * A reader says which layer of the file it is at (net_at); nodes take their
 * names and places from there, and errors name it. Functions that make nodes
 * return their tensor, or NO_TENSOR after an error, which they accept as input
 * too (and pass on): a chain of them needs one check at its end.
 *
 * Images are N x C x H x W in the graph. In a file with `nhwc` every tensor of
 * four dimensions is N x H x W x C; shapes and axes "of the file" below are
 * translated, other ranks are the same on both sides.
 */
#ifndef FRONTENDS_NET_NET_H
#define FRONTENDS_NET_NET_H

#include "frontends/frontend.h"

typedef struct Net {
    Arena *arena;
    Diag *diag;
    const char *path;
    const ImportOptions *options;
    Graph *g;
    bool nhwc;
    /* the layer that is being built */
    const char *layer, *kind;
    Loc loc;
} Net;

Net net_open(Arena *arena, Diag *diag, const char *path,
             const ImportOptions *options, bool nhwc);
void net_at(Net *net, const char *layer, const char *kind, Loc loc);

/* An error: layer "conv1" (Convolution): ... False, to be returned. */
bool net_fail(const Net *net, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for functions that return a tensor. */
#define net_none(...) (net_fail(__VA_ARGS__), NO_TENSOR)

/* ---- nodes ---- */

/* A node called like the layer, or layer/part; attributes and constants are
 * set before net_out makes its output and infers the shape. An input that is
 * NO_TENSOR gives NO_NODE, which net_out passes on. */
NodeId net_node(Net *net, OpKind op, const char *part, uint32_t n,
                const TensorId *in);
TensorId net_out(Net *net, NodeId node);

/* A constant with as many values as the role has, whatever its shape; NULL
 * leaves it to seeding. */
void net_const(Net *net, NodeId node, ConstRole role, const Const *value);
void net_fill(Net *net, NodeId node, ConstRole role, double value);
/* Values in another order: axis i of the result is axis perm[i] of `value`
 * seen as `view`. Recipes keep theirs. What has factors is copied, unless they
 * are of an axis that stays the first. */
Const net_permute(Net *net, const Const *value, Shape view,
                  const uint32_t *perm);
Const net_floats(Net *net, Shape shape, const float *values);
/* One number. */
Const net_number(Net *net, double value);
/* Numbers of a constant that has few (2 * SHAPE_MAX_RANK at most), as whole
 * ones; how many. Those that are out of range: INT32_MAX. */
int net_whole_numbers(const Const *value, int64_t *out);
/* The shape that n numbers are; n < 0: an error that was told. */
bool net_shape_of(const Net *net, int n, const int64_t *dim, Shape *out);

/* ---- shapes ---- */

/* Of a tensor, in the order of the file. */
Shape net_shape(const Net *net, TensorId tensor);
/* An axis of the file (negative: from the end) as one of the graph. */
bool net_axis(const Net *net, TensorId tensor, int64_t axis, uint32_t *out);
/* Padding so that the output has ceil(in / stride) windows, as TensorFlow's
 * SAME: the odd one goes behind. */
void same_padding(uint32_t in, uint32_t kernel, uint32_t stride,
                  uint32_t dilation, uint32_t *pad, uint32_t *pad_end);
/* For height and width of an image. */
void net_same_conv(const Net *net, TensorId in, ConvAttr *conv);
void net_same_pool(const Net *net, TensorId in, PoolAttr *pool);

/* ---- layers ---- */

/* A network input. `shape` is the file's, 0 where it says nothing (rank 0: says
 * nothing at all); --shape (N x C x H x W, as all that amphora prints) and
 * --batch win over it. */
TensorId net_input(Net *net, const Shape *shape);
/* weight: [out_c, in_c / groups, kh, kw], or NULL. */
TensorId net_conv(Net *net, OpKind op, TensorId in, const ConvAttr *attr,
                  const Const *weight, bool has_bias, const Const *bias);
/* weight: [out, in], columns in the order of the file. */
TensorId net_fc(Net *net, TensorId in, uint32_t out, const Const *weight,
                bool has_bias, const Const *bias);
/* The same over the last axis alone: of an image of a file with `nhwc` a
 * convolution of one pixel. */
typedef struct Dense {
    uint32_t out;
    const Const *weight, *bias;
    bool has_bias;
} Dense;
TensorId net_dense(Net *net, TensorId in, const Dense *dense);
typedef struct Norm {
    double eps;
    bool has_gamma, has_beta;
    const Const *gamma, *beta, *mean, *var;
} Norm;
TensorId net_norm(Net *net, TensorId in, const Norm *norm);
/* With statistics along an axis of the file other than the channels. */
TensorId net_norm_along(Net *net, TensorId in, int64_t axis, const Norm *norm);
TensorId net_act(Net *net, const char *part, TensorId in, Act act);
TensorId net_pool(Net *net, TensorId in, const PoolAttr *attr);
/* Tensors of lower rank get leading ones, as numpy does. */
TensorId net_elt(Net *net, const char *part, EltKind kind, uint32_t n,
                 const TensorId *in);
/* a * x + b. */
TensorId net_affine(Net *net, const char *part, TensorId in, double a,
                    double b);
TensorId net_concat(Net *net, uint32_t n, const TensorId *in, int64_t axis);
/* Products of matrices, the last two axes of the file, either of which may have
 * to be transposed first. */
TensorId net_matmul(Net *net, const TensorId in[2], const bool turned[2]);
TensorId net_softmax(Net *net, TensorId in, int64_t axis);
TensorId net_slice(Net *net, const char *part, TensorId in, uint32_t axis,
                   uint32_t begin, uint32_t end);
/* axes: bits, of the graph. Dimensions stay, as 1. */
TensorId net_reduce(Net *net, const char *part, TensorId in, ReduceKind kind,
                    uint32_t axes);
TensorId net_pad(Net *net, TensorId in, const uint32_t before[2],
                 const uint32_t behind[2], double value);
TensorId net_identity(Net *net, TensorId in);
/* To a shape of the file. */
TensorId net_reshape(Net *net, const char *part, TensorId in, Shape to);
/* Without those axes of the file (bits); 0: all of one element. */
TensorId net_squeeze(Net *net, TensorId in, uint32_t axes);
/* All but the first dimension become one. */
TensorId net_flatten(Net *net, TensorId in);
/* perm: of the graph. */
TensorId net_transpose(Net *net, const char *part, TensorId in, Shape perm);
/* Values of the file as a tensor. */
TensorId net_constant(Net *net, const char *part, const Const *value);

/* ---- routine.c ---- */

/* A routine of the host on tensors as they lie in the file, whose axes its
 * attributes count. Set these, then net_routine_out. */
NodeId net_routine(Net *net, RoutineKind kind, const char *part, uint32_t n,
                   const TensorId *in);
void net_number_is(Net *net, NodeId node, const char *attr, double value);
void net_numbers_are(Net *net, NodeId node, const char *attr, uint32_t n,
                     const double *value);
void net_word_is(Net *net, NodeId node, const char *attr, const char *word);
TensorId net_routine_out(Net *net, NodeId node);
/* The shape of a tensor, of the graph: what --shape says, or the file (NULL:
 * nothing). */
bool net_told_shape(const Net *net, const char *name, const Shape *file,
                    Shape *out);
/* Result `result` of a layer that is not known, as a call of a function of the
 * user's; its values are those of --fix NAME=, or made up. */
TensorId net_call(Net *net, const char *name, uint32_t result, uint32_t n,
                  const TensorId *in, const Shape *shape);

/* ---- axes.c ---- */

/* A function of a tensor and values of the file; `first`: these come first. */
TensorId net_elt_const(Net *net, EltKind kind, TensorId in, const Const *value,
                       bool first);
/* Reduces axes of the file; without `keep` they are gone. */
TensorId net_reduce_axes(Net *net, TensorId in, ReduceKind kind, uint32_t n,
                         const int64_t *axis, bool keep);
/* An image in another size; which source pixels, as TensorFlow's three ways
 * say: align_corners, half_pixel_centers, or neither. */
typedef struct Resize {
    uint32_t out[2];
    bool bilinear, align_corners, half_pixel;
} Resize;
TensorId net_resize(Net *net, TensorId in, const Resize *resize);
/* Blocks of pixels into channels (block's row, column, channel), or back. */
TensorId net_space_to_depth(Net *net, TensorId in, uint32_t block);
TensorId net_depth_to_space(Net *net, TensorId in, uint32_t block);
/* Axes of the file in another order. */
TensorId net_permute_axes(Net *net, TensorId in, uint32_t n,
                          const int64_t *perm);

/* ---- parts.c ---- */

/* Part of every axis of the file: [begin, end). */
TensorId net_window(Net *net, TensorId in, const int64_t *begin,
                    const int64_t *end);
/* A slice of an axis of the file by Python's rules. */
typedef struct Cut {
    int64_t begin, end, step;
    bool from_edge, to_edge; /* no begin, no end */
    bool one;                /* the element at `begin`; the axis is gone */
} Cut;
/* The first element of `size`, and how many. */
bool net_cut_range(const Net *net, const Cut *cut, uint32_t size,
                   int64_t *first, uint32_t *n);
/* cut: one for each axis. */
TensorId net_cut(Net *net, TensorId in, const Cut *cut);
/* Parts of an axis of the file, side by side; size: NULL for equal ones, -1
 * for what is left. */
void net_split(Net *net, TensorId in, int64_t axis, uint32_t n, int64_t *size,
               TensorId *out);
/* Tensors along a new axis, or parts without the axis. */
TensorId net_stack(Net *net, uint32_t n, const TensorId *in, int64_t axis);
void net_unstack(Net *net, TensorId in, int64_t axis, uint32_t n,
                 TensorId *out);
/* Along an axis of the graph: element i of the result is the sum of elements
 * index[i][k] times factor[i][k]; shape: [elements, taps]; NULL: 1. */
TensorId net_gather(Net *net, const char *part, TensorId in, uint32_t axis,
                    Shape shape, const float *index, const float *factor);
/* Elements around the axes of the file: a value (of height and width, others
 * get 0 only), or the nearest, or those of a mirror on the last element or
 * behind it. amount: before and behind by axis, n numbers. */
typedef enum PadWay { PAD_ZERO, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC } PadWay;
TensorId net_pads(Net *net, TensorId in, uint32_t n, const int64_t *amount,
                  PadWay way, double value);
/* Blocks of pixels (rows, columns) into images of a batch, or back; pad and
 * crop: top, bottom, left, right. */
TensorId net_space_to_batch(Net *net, TensorId in, const int64_t block[2],
                            const int64_t pad[4]);
TensorId net_batch_to_space(Net *net, TensorId in, const int64_t block[2],
                            const int64_t crop[4]);

/* ---- functions.c: of TensorFlow's operators ---- */

/* Slices along an axis of the file, by index; the first axes, `batch` of them,
 * are of both. `one`: of one index without axes, which takes the axis away. */
TensorId net_take(Net *net, const TensorId in[2], int64_t axis, int64_t batch,
                  bool one);
TensorId net_gather_nd(Net *net, const TensorId in[2], int64_t batch);
/* Zeros, and sums of slices where rows of indices say. */
TensorId net_scatter_nd(Net *net, TensorId index, TensorId update, Shape to);
/* The k greatest of the last axis, and where they are. */
void net_top_k(Net *net, TensorId in, int64_t k, TensorId out[2]);
TensorId net_cumulate(Net *net, TensorId in, int64_t axis, bool exclusive,
                      bool reverse);
/* So many times along each axis of the file; to a shape; backwards. */
TensorId net_tile(Net *net, TensorId in, uint32_t n, const int64_t *times);
TensorId net_broadcast(Net *net, TensorId in, Shape to);
TensorId net_reverse(Net *net, TensorId in, uint32_t n, const int64_t *axis);
TensorId net_not(Net *net, const char *part, TensorId in);
/* Whether it is not 0. */
TensorId net_truth(Net *net, TensorId in);
TensorId net_unequal(Net *net, const TensorId in[2]);
TensorId net_floor_div(Net *net, const TensorId in[2]);
/* By a truth value the first or the second; known: constants among them. */
TensorId net_select(Net *net, const TensorId in[3],
                    const Const *const known[3]);
TensorId net_log_softmax(Net *net, TensorId in);
TensorId net_squared_difference(Net *net, const TensorId in[2]);
/* Numbers from the first by the last of `at` up to the second, `most` of them.
 */
bool net_range(Net *net, const double at[3], uint32_t most, Const *out);
TensorId net_one_hot(Net *net, TensorId index, int64_t depth, double on,
                     double off);

/* ---- aside.c ---- */

/* A layer whose inputs are constants is built in a graph of its own, between
 * these two; the second gives the values of its results, in the order of the
 * file, by the reference evaluation. False: there are none, or it would take
 * long. */
Graph *net_aside(Net *net);
bool net_back(Net *net, Graph *whole, uint32_t n, const TensorId *out,
              Const *value);

/* ---- codes: codes.c ---- */

/* A graph in which each rounding to codes is a layer "identity" of its own, as
 * one in which layers write codes; see codes.c. Nodes may be out of order
 * then. */
void net_settle_codes(Graph *g);
/* Where a layer only moves codes, that are all alike: it writes the same. */
void net_move_codes(Graph *g, NodeId node);

#endif
