/* graph.h - the one IR: nodes and tensors.
 *
 * A tensor is logical: shape, producer, origin. A node reads tensors and
 * constants and writes tensors. Nodes stand in an order in which every tensor
 * is produced before it is read (graph_verify checks it), unless a front end
 * says otherwise and calls graph_sort. Analyses live in side arrays indexed by
 * id, never here. Shapes are N x C x H x W, N outermost; everything downstream
 * of the host's layers works with N = 1.
 *
 * A Graph is built by a front end, rewritten by passes, then const. Weights
 * are slices of the mapped model file or recipes (ConstKind), read when used.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/const.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/quant.h"
#include "base/vec.h"
#include "routines/routine.h"

#define NONE UINT32_MAX

typedef struct NodeId {
    uint32_t i;
} NodeId;
typedef struct TensorId {
    uint32_t i;
} TensorId;
typedef struct ConstId {
    uint32_t i;
} ConstId;

#define NO_NODE ((NodeId){NONE})
#define NO_TENSOR ((TensorId){NONE})
#define NO_CONST ((ConstId){NONE})

typedef enum OpKind {
#define OP(NAME, name, min, max, doc) OP_##NAME,
#include "graph/ops.def"
#undef OP
    OP_COUNT
} OpKind;

typedef struct OpInfo {
    const char *name;
    uint32_t min_in, max_in;
    const char *doc;
} OpInfo;
extern const OpInfo op_info[OP_COUNT];

/* PRELU: slope by channel, constant `slope` of the node. */
typedef enum ActKind {
#define ACT(NAME, name) ACT_##NAME,
#include "base/acts.def"
#undef ACT
    ACT_COUNT
} ActKind;
extern const char *const act_name[ACT_COUNT + 1];

typedef struct Act {
    ActKind kind;
    double alpha, lo, hi;
} Act;

/* Index 0: height (top, bottom); 1: width (left, right). */
typedef struct ConvAttr {
    uint32_t out_c, groups;
    uint32_t kernel[2], stride[2], dilation[2];
    uint32_t pad[2], pad_end[2]; /* before, behind */
} ConvAttr;

typedef enum PoolKind { POOL_MAX, POOL_AVG, POOL_COUNT } PoolKind;
extern const char *const pool_name[POOL_COUNT + 1];
typedef struct PoolAttr {
    PoolKind kind;
    bool global;    /* kernel = the input's size; stride 1, no padding */
    bool ceil;      /* output size rounds up (Caffe) */
    bool count_pad; /* average: padding counts in the divisor */
    uint32_t kernel[2], stride[2];
    uint32_t pad[2], pad_end[2];
} PoolAttr;
/* Output sizes, Caffe's rule included: with `ceil`, a last window that would
 * start in the padding behind the input is dropped. An average divides by the
 * kernel clipped to the padded input (count_pad) or to the input. */

typedef enum EltKind {
#define ELT(NAME, text, value) ELT_##NAME,
#include "graph/elts.def"
#undef ELT
    ELT_COUNT
} EltKind;
extern const char *const elt_name[ELT_COUNT + 1];
/* Inputs have one shape, or 1 in some axes (broadcast). coeff: ELT_ADD only,
 * one an input, NULL for all 1. */
typedef struct EltAttr {
    EltKind kind;
    const double *coeff;
} EltAttr;

typedef enum ReduceKind {
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_SQUARES,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_ARGMAX, /* the index along the only axis: the first... */
    REDUCE_ARGMAX_LAST,
    REDUCE_ARGMIN,
    REDUCE_ARGMIN_LAST,
    REDUCE_COUNT
} ReduceKind;
extern const char *const reduce_name[REDUCE_COUNT + 1];

typedef struct LrnAttr {
    bool within_channel;
    uint32_t size;
    double alpha, beta, k; /* divisor: (k + alpha / n * sum)^beta */
} LrnAttr;

typedef struct Attrs {
    union {
        struct {
            ConvAttr conv; /* CONV, DECONV, CONV_POOL */
            PoolAttr pool; /* POOL, CONV_POOL (its pool) */
        };
        struct {
            uint32_t out; /* FC */
        } fc;
        struct {
            double eps; /* BN */
        } bn;
        EltAttr elt;
        struct {
            uint32_t axis;   /* CONCAT, SOFTMAX */
            uint32_t groups; /* SOFTMAX: parts of the axis, each by itself;
                              * 0: 1 */
        } axis;
        struct {
            ReduceKind kind;
            uint32_t axes; /* bits: those that become 1 */
        } reduce;
        struct {
            uint32_t axis, n, taps; /* GATHER */
        } gather;
        struct {
            uint32_t axis;   /* NORM: the first that it is over */
            uint32_t axes;   /* how many; 0: up to the last */
            uint32_t groups; /* parts of the first, each by itself; 0: 1 */
            uint32_t rms;    /* 1: no mean is taken away */
            double eps;
        } norm;
        struct {
            uint32_t axis, begin, end; /* SLICE: [begin, end) */
        } slice;
        struct {
            uint32_t over_pixels; /* MIX: 1: sums over the window's pixels */
            uint32_t attends;     /* MIX: 1: both, and a softmax between */
            uint32_t groups;      /* of channels: heads */
            uint32_t windows[2];  /* so many, down and across */
            uint32_t shift[2];    /* the first begins here, and they wrap */
        } mix;
        uint32_t plane[2]; /* PIXELS: rows, columns of the result */
        LrnAttr lrn;
        struct {
            uint32_t factor[2]; /* UPSAMPLE */
        } up;
        struct {
            uint32_t before[2], behind[2]; /* PAD */
            double value;
        } pad;
        struct {
            Shape shape;      /* CALL: of its result */
            const char *what; /* the file's word for it */
            uint32_t result;  /* which of the operator's results it is */
        } call;
        struct {
            RoutineKind kind;
            double number[ROUTINE_NUMBERS];
        } routine; /* ROUTINE */
        struct {
            Shape period;   /* OFFSET: what repeats */
            uint32_t times; /* 1: factors */
        } offset;
        uint32_t state; /* INPUT: what this network output, 1 being the first,
                         * was in the call before; 0: the caller's */
        Shape reshape;  /* RESHAPE, CONSTANT: the output's shape */
        Shape perm;     /* TRANSPOSE: output's axis i is input's dim[i] */
    };
} Attrs;

/* Constants of a node by role. CONV/DECONV/FC: weight, bias. BN: mean, var
 * (already divided by Caffe's scale factor). SCALE: scale, bias. PRELU
 * (fused or alone): slope. CONSTANT: value. CALL: value, which
 * it is taken to compute. INPUT: value, that a state has in the first call;
 * none: zeros. GATHER: index, value (a factor
 * for each index), both [n, taps]. OFFSET: value. PIXELS: index, of a pixel, or
 * their number for a zero. Shapes: conv weight [out_c, in_c / groups,
 * kh, kw]; deconv weight [in_c, out_c / groups, kh, kw]; fc [out, in]; others
 * [c]. */
typedef enum ConstRole {
    CONST_WEIGHT,
    CONST_BIAS,
    CONST_SCALE,
    CONST_MEAN,
    CONST_VAR,
    CONST_SLOPE,
    CONST_VALUE,
    CONST_INDEX,
    CONST_ROLES
} ConstRole;
extern const char *const const_role_name[CONST_ROLES + 1];

typedef struct Tensor {
    const char *name; /* unique in the graph */
    Shape shape;
    Quant quant; /* QUANT_NONE: values are real numbers, else codes */
    NodeId producer;
    TensorId origin; /* the same values in the graph before all passes;
                      * NO_TENSOR until graph_mark_original */
    bool is_output;  /* it is in the graph's list of them */
    Loc loc;
} Tensor;

typedef struct Node {
    OpKind op;
    const char *name; /* layer; unique in the graph */
    Loc loc;
    uint32_t n_in, n_out; /* one output; IDENTITY may have more (split) */
    TensorId *in, *out;
    Attrs attr;
    Act act; /* OP_ACT: the activation; else one fused behind; in
              * CONV_POOL between convolution and pool */
    ConstId constant[CONST_ROLES]; /* NO_CONST where absent */
    bool no_bias; /* bias_term: false; graph_seed_constants adds none */
    const char *conv_name; /* CONV_POOL: layer of the convolution */
    uint32_t n_merged; /* layers that this node stands for, itself included */
    const char **merged;
    bool dead; /* removed by a rewrite; graph_compact drops it */
} Node;
/* Whose constants it has: a CONV_POOL's are its convolution's. */
static inline const char *node_constants_layer(const Node *node) {
    return node->conv_name ? node->conv_name : node->name;
}

typedef struct Graph {
    Arena *arena;
    const char *name;
    VEC(Node) node;
    VEC(Tensor) tensor;
    VEC(Const) constant;
    VEC(TensorId) output; /* network outputs, in order */
    VEC(const char *)
    glossary;                       /* sentences: what names mean that no file
                                     * has, but passes made */
    Map *node_names, *tensor_names; /* taken names; see graph_add */
} Graph;

Graph *graph_new(Arena *arena, const char *name);

/* ---- building ---- */

/* A node with its outputs not yet made; inputs are copied. Default attributes
 * are zero except groups, strides and dilations, which are 1. Names that are
 * taken get "_2", "_3"...; an empty name is the operator's. */
NodeId graph_add(Graph *g, OpKind op, const char *name, Loc loc, uint32_t n_in,
                 const TensorId *in);
/* Other names for a node and its output, made unique in the same way. */
void graph_rename(Graph *g, TensorId tensor, const char *node,
                  const char *name);
/* The next output of a node. Shape: from graph_infer. */
TensorId graph_add_output(Graph *g, NodeId node, const char *name);
ConstId graph_add_const(Graph *g, Const value);
/* Adds a sentence to the glossary, if it is not there. */
void graph_gloss(Graph *g, const char *sentence);
/* Marks as network output (again is harmless). */
void graph_mark_output(Graph *g, TensorId tensor);
/* Declares this graph to be the one before all passes: from here on each
 * tensor's origin is its present id, whatever passes do to the graph. A front
 * end calls it last; tensors that passes add have no origin. */
void graph_mark_original(Graph *g);

static inline Node *graph_node(const Graph *g, NodeId id) {
    return &g->node.at[id.i];
}
static inline Tensor *graph_tensor(const Graph *g, TensorId id) {
    return &g->tensor.at[id.i];
}
static inline Const *graph_const(const Graph *g, ConstId id) {
    return &g->constant.at[id.i];
}
static inline bool same_tensor(TensorId a, TensorId b) {
    return a.i == b.i;
}
/* ---- shapes: shape.c ---- */

/* Computes the shapes of the node's outputs (and checks attributes, inputs and
 * constants against each other; missing constants are allowed). Errors name
 * the layer at its place. */
bool graph_infer(const Graph *g, NodeId node, Diag *diag);
/* All nodes in order. */
bool graph_infer_all(Graph *g, Diag *diag);
/* The shape that the constant of a role has, given the node's attributes and
 * its input's shape; false if the operator has no such constant. */
bool graph_const_shape(const Graph *g, NodeId node, ConstRole role, Shape *out);
/* Windows along one axis: 0 if none fits. */
uint32_t conv_out_size(uint32_t in, uint32_t kernel, uint32_t stride,
                       uint32_t dilation, uint32_t pad, uint32_t pad_end);
uint32_t pool_out_size(const PoolAttr *pool, uint32_t axis, uint32_t in);

/* Multiply-adds of a node, padding included: products.c. */
uint64_t graph_products(const Graph *g, const Node *node);

/* ---- structure: graph.c, verify.c ---- */

/* Whether a pixel of the node's result is made of the same pixel of its
 * operands, be it of all channels. */
bool node_goes_by_pixel(const Node *node);
/* Whether it slides a kernel of weights, be it in front of a pool; in several
 * groups of channels. */
bool node_convolves(const Node *node);
bool node_in_groups(const Node *node);
/* Whether any row of the result needs all of the tensor: keys and values. */
bool node_reads_whole(const Node *node, TensorId tensor);
/* Whether each pixel meets all of the other volume, in one window. */
bool node_mixes_all(const Node *node);
/* Whether a row of the result is made of the same row of the first operand, of
 * all of its pixels: of others maybe all rows. */
bool node_goes_by_row(const Node *node);

/* Puts nodes into topological order, keeping the present order where it can
 * (a stable sort: always the earliest node that is ready). A cycle is an error
 * that names its layers. Ids of nodes change. */
bool graph_sort(Graph *g, Diag *diag);
/* Puts node order[i] in place i. Ids of nodes change. */
void graph_reorder(Arena *scratch, Graph *g, const uint32_t *order);

/* Readers of every tensor, by id: uses.at[t].  A node that reads a tensor
 * twice is there twice. Network outputs are not uses. */
typedef struct Uses {
    uint32_t *start; /* readers of t: node[start[t]] to node[start[t + 1]] */
    NodeId *node;
} Uses;
Uses graph_uses(Arena *arena, const Graph *g);

bool graph_is_output(const Graph *g, TensorId tensor);

/* Every invariant, each with its own message; bug() if one is broken, since a
 * front end or a pass made the graph. `after` names who. */
void graph_verify(const Graph *g, const char *after);
/* The same as a sentence in `arena`, or NULL when all is well. */
const char *graph_broken(Arena *arena, const Graph *g);

/* A deep copy in another arena (constants' data shared). */
Graph *graph_clone(Arena *arena, const Graph *g);

/* The graph so many times, one behind the other: node and tensor i of image k
 * are k * n + i. Image 0 keeps its names; those of the others end in @2, @3...
 * All share the constants. Origins are in a graph of `n_origins` tensors that
 * was repeated, too. */
Graph *graph_repeat(Arena *arena, const Graph *g, uint32_t images,
                    uint32_t n_origins);

/* ---- states: inputs that an output was in the call before; state.c ---- */

/* The output that the input is in the next call, or NO_TENSOR. */
TensorId graph_state_next(const Graph *g, const Node *input);
/* The input that the tensor is in the next call, or NO_NODE. */
NodeId graph_state_of(const Graph *g, TensorId output);
uint32_t graph_states(const Graph *g);
/* Its values in the first call: real numbers, or codes. */
const float *graph_state_start(Arena *arena, const Graph *g, const Node *input);

/* ---- rewriting, for passes ---- */

/* All readers of `from`, and the list of outputs, use `to` instead. */
void graph_replace(Graph *g, TensorId from, TensorId to);
/* `to` takes over from `from` as the tensor that the outside knows: name,
 * origin, readers, output; for a node fused into the one before it. */
void graph_take_over(Graph *g, TensorId to, TensorId from);
/* Adds the layers merged into `from` to those of `into`. */
void graph_merge_names(Graph *g, NodeId into, NodeId from);
/* Drops dead nodes, nodes on which no network output depends (network inputs
 * stay), their tensors, and constants that no node has; renumbers. */
void graph_compact(Graph *g);

/* ---- constants: const.c (values: const_read in base/const.h) ---- */

/* Gives seeded constants to nodes that lack theirs, scaled by fan-in so that
 * activations stay finite (biases small, variances in [0.5, 1.5)); values
 * depend on seed and layer name only. A layer that has its weights but no bias
 * gets none. Returns how many nodes got some. */
uint32_t graph_seed_constants(Graph *g, uint64_t seed);

/* ---- text form: text.c ---- */

/* One node a line; graph_read reads it back to the same graph. Seeded constants
 * are told whole, F32 and F64 data as a checksum comment only: those constants
 * are absent from the graph that is read. The form is described in text.c. */
const char *graph_print(Arena *arena, const Graph *g);
Graph *graph_read(Arena *arena, Diag *diag, const char *file, const char *text,
                  size_t len);

/* Attributes of a node as name/value pairs, for text, JSON and the listing's
 * host layers; the table is attrs.def, one row an attribute. A fused or lone
 * activation is the pairs "act", "alpha", "lo", "hi". */
uint32_t graph_attr_pairs(Arena *arena, const Graph *g, NodeId node,
                          const AttrPair **out);

/* Sets the attribute that `pair` names. NULL, or what is wrong with it, to be
 * put behind its name. "act" must come before the attributes of activations. */
const char *graph_set_attr(Graph *g, NodeId node, const AttrPair *pair);

/* ---- reference evaluation: eval.c ---- */

/* Values of every tensor by id; NULL for those not asked for. Of quantised
 * tensors these are codes. Heavy arithmetic is OpenBLAS's. inputs[i]: values of
 * the i-th OP_INPUT in order. */
typedef struct Values {
    float **at; /* by tensor id */
} Values;
Values graph_eval(Arena *arena, const Graph *g, uint32_t n_inputs,
                  const float *const *inputs);
/* One node that is no input: from the values that it reads, those of its first
 * output. */
void graph_eval_node(Arena *scratch, const Graph *g, const Node *node,
                     const float *const *in, float *out);
/* Of one whose codes are rounded from real numbers (the rule `reals`), these
 * numbers; false: it is none. */
bool graph_eval_numbers(Arena *scratch, const Graph *g, const Node *node,
                        const float *const *in, float *out);
/* Seeded values for the network's inputs: in [-1, 1), or any codes. */
const float *const *graph_seed_inputs(Arena *arena, const Graph *g,
                                      uint64_t seed, uint32_t *n);

#endif
