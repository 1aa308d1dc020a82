/* onnx.h - what the files of the ONNX front end share; no other room includes
 * it.
 *
 * A model goes through them in this order: reader.c reads the file (binary or
 * text, one tree: proto/proto.h), declares inputs and initializers, and goes
 * over the nodes; fold.c computes those whose inputs are constants; the
 * builders in ops_*.c, found in ops.def, make nodes of the graph.
 *
 * Values. Each name of the model is a value: a tensor of the graph or a
 * constant, with ONNX's own shape (a scalar has rank 0, a constant may be
 * empty). A tensor of the graph has rank 1 at least: a scalar is one of [1].
 * All elements are floats in the graph; integers and truth values too; but
 * codes are those of quantised tensors where the model says what they stand for
 * (codes.c).
 *
 * Names. A node is called after its layer, its tensors after their values;
 * nodes that a layer needs besides its last are called "layer/part".
 */
#ifndef FRONTENDS_ONNX_ONNX_H
#define FRONTENDS_ONNX_ONNX_H

#include "base/map.h"
#include "frontends/frontend.h"
#include "frontends/onnx/tensor.h"
#include "frontends/proto/proto.h"
#include "frontends/proto/protobin.h"

typedef enum OnnxState {
    ONNX_UNSET,
    ONNX_TENSOR,
    ONNX_CONST,
    ONNX_BROKEN /* its maker was refused: readers say nothing */
} OnnxState;

typedef struct OnnxValue {
    const char *name;
    OnnxState state;
    OnnxType type;
    Shape shape;
    Const constant;  /* ONNX_CONST; with `shape` */
    TensorId tensor; /* ONNX_TENSOR; of a constant once one was asked for */
    bool codes;      /* of a quantised tensor its codes are meant */
    TensorId plain;  /* these codes as numbers, once somebody asked for them */
    Quant quant;     /* ONNX_CONST: the codes that its numbers come from */
    bool used;       /* a node has read it */
    bool fixed;      /* ONNX_CONST by --fix, whatever makes it */
} OnnxValue;

typedef struct Onnx Onnx;
typedef struct OnnxNode OnnxNode;

/* Makes the node's outputs; false after errors. */
typedef bool OnnxBuild(Onnx *x, OnnxNode *n);
/* The same where all inputs are constants; false and no error where it leaves
 * that to the builder. */
typedef bool OnnxFold(Onnx *x, OnnxNode *n);

typedef struct OnnxOp {
    const char *name;
    uint32_t min_in, max_in, max_out;
    OnnxBuild *build;
    OnnxFold *fold;
    int kind; /* for builders that serve several operators */
} OnnxOp;

/* Where the nodes of a function of the model are read. */
typedef struct OnnxScope {
    const struct OnnxScope *up;
    Map *names;         /* formal names: values; ONNX_LEFT_OUT: none */
    const char *prefix; /* of all other names: the layer's */
    const OnnxNode *call;
    const ProtoMessage *function;
    bool sees_around; /* other names are those of `up`: a loop's body */
} OnnxScope;
#define ONNX_LEFT_OUT (NONE - 1)

struct OnnxNode {
    const ProtoMessage *message;
    const OnnxScope *scope;
    Loc loc;
    const char *name, *type, *domain;
    const OnnxOp *op;
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* values; NONE where left out */
    bool has_axis;      /* of its scales, whatever its attributes say */
    int64_t axis;
    OnnxType codes; /* what QuantizeLinear makes without a zero; 0: u8 */
};

/* Folds or builds a node as the operator called `type`, which the table must
 * have; false after errors. */
typedef bool OnnxRun(Onnx *x, OnnxNode *n, const char *type);

struct Onnx {
    Arena *arena;
    Diag *diag;
    const char *path;
    const ImportOptions *options;
    const ProtoMessage *model, *net;
    Graph *graph;
    int64_t opset;
    VEC(OnnxValue) value;
    Map *values;
    uint32_t first_new; /* tensors from here on are of the present node */
    OnnxRun *run;       /* for builders that use others: reader.c's */
    bool on_codes;      /* which reads codes as what they stand for */
    uint64_t numbers;   /* of constants, read and computed so far */
    Map *told;          /* value_info: name -> index in info */
    VEC(const ProtoMessage *) info;
    Map *functions; /* "domain:name" -> index in function */
    VEC(const ProtoMessage *) function;
    const OnnxScope *scope; /* of the nodes that are being read; NULL: the
                             * model's own */
    uint32_t steps;         /* of all loops */
    uint32_t nested;        /* functions and branches around them */
    void (*build)(Onnx *x, const ProtoField *node); /* a node, and all that it
                                                     * stands for */
    Map *needed; /* names, where a part is asked for; or NULL */
};

/* ---- values by name: given.c ---- */

/* The value of the model called so, new where there is none. */
OnnxValue *onnx_value(Onnx *x, const char *name);
const ShapeSetting *onnx_setting(const Onnx *x, const char *name);
/* Reads value_info; then the tensor type that it has for a name, or NULL. */
void onnx_read_infos(Onnx *x);
const ProtoMessage *onnx_info(const Onnx *x, const char *name);

/* The value of that name, where the present scope has it; NONE: left out. */
uint32_t onnx_index(Onnx *x, const char *name);
bool onnx_read_initializers(Onnx *x, const ProtoMessage *graph);
/* What --shape or else the file says of a value's shape; false: nothing. */
bool onnx_told_shape(Onnx *x, const char *name, Shape *out);
/* The file of --fix NAME=FILE; NULL. And its values. */
const char *onnx_fixed_file(const Onnx *x, const char *name);
bool onnx_read_fixed(Onnx *x, const char *file, Const *out);

/* ---- nodes that stand for others: inline.c ---- */

void onnx_declare_functions(Onnx *x);
/* The function of the model that the node calls, or NULL. */
const ProtoMessage *onnx_function(Onnx *x, const OnnxNode *n);
void onnx_inline(Onnx *x, const OnnxNode *n, const ProtoMessage *function);
/* The graph that an attribute holds, or NULL. */
const ProtoMessage *onnx_branch(Onnx *x, const ProtoMessage *attribute);

/* ---- operators that are not known: call.c ---- */

/* Whether all shapes of its results are known; an error names --shape. */
bool onnx_call_is_told(Onnx *x, const OnnxNode *n);
bool onnx_call(Onnx *x, OnnxNode *n);

/* ---- a part of the model: cut.c ---- */

/* Before anything is read: what the part that is asked for needs. */
void onnx_find_needed(Onnx *x);
bool onnx_is_needed(const Onnx *x, const char *name);
bool onnx_makes_needed(const Onnx *x, const ProtoMessage *node);
/* Whether the part begins with this value. */
bool onnx_is_cut(const Onnx *x, const char *name);

/* ---- any constants: fold_graph.c ---- */

/* False and no error where it had better stay a node. */
bool onnx_fold_by_graph(Onnx *x, OnnxNode *n);

/* ops.c: what the node's type names; NULL if it is not known. */
const OnnxOp *onnx_find_op(const OnnxNode *n);

/* ---- errors: node.c ---- */

/* `node "its name" (Type): ...`; returns false. */
bool onnx_error(Onnx *x, const OnnxNode *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- inputs and outputs of a node: node.c ---- */

/* NULL where it is left out. */
OnnxValue *onnx_in(const Onnx *x, const OnnxNode *n, uint32_t i);
OnnxValue *onnx_out(const Onnx *x, const OnnxNode *n, uint32_t i);
/* Whether something may read output `i`. */
bool onnx_wants(const OnnxNode *n, uint32_t i);
/* The value as a tensor of the graph. */
TensorId onnx_tensor(Onnx *x, OnnxValue *value);
TensorId onnx_tensor_in(Onnx *x, const OnnxNode *n, uint32_t i);
/* An input that must be a constant: NULL after the error. */
const OnnxValue *onnx_const_in(Onnx *x, const OnnxNode *n, uint32_t i);
/* All values of a constant, in the arena; NULL if there are too many, of this
 * one or of all that were read and computed. */
double *onnx_numbers(Onnx *x, const OnnxValue *value);
/* A constant input as a list of whole numbers; false after the error, and
 * `*n_out` 0 where the input is left out. */
bool onnx_list_in(Onnx *x, const OnnxNode *n, uint32_t i, uint32_t *n_out,
                  int64_t **out);
/* The same from input `i`, or from attribute `name`, which took its place in
 * older operator sets. */
bool onnx_list(Onnx *x, const OnnxNode *n, uint32_t i, const char *name,
               uint32_t *n_out, int64_t **out);

/* Output `i` is this tensor, which gets its name. `shape`: what ONNX calls its
 * shape, NULL: the tensor's. False if the tensor is none (NO_TENSOR). */
bool onnx_set(Onnx *x, const OnnxNode *n, uint32_t i, TensorId tensor,
              const Shape *shape);
/* Output `i` is a constant. */
bool onnx_set_const(Onnx *x, const OnnxNode *n, uint32_t i, OnnxType type,
                    Const constant);
/* Output `i` has these computed values. */
bool onnx_set_numbers(Onnx *x, const OnnxNode *n, uint32_t i, OnnxType type,
                      Shape shape, const double *value);

/* ---- attributes: node.c ---- */

const ProtoMessage *onnx_attr(const OnnxNode *n, const char *name);
int64_t onnx_int(Onnx *x, const OnnxNode *n, const char *name, int64_t absent);
double onnx_float(Onnx *x, const OnnxNode *n, const char *name, double absent);
const char *onnx_word(Onnx *x, const OnnxNode *n, const char *name,
                      const char *absent);
/* How many; 0 where absent. */
uint32_t onnx_ints(Onnx *x, const OnnxNode *n, const char *name, int64_t **out);
/* An axis, from the end where negative. */
bool onnx_axis(Onnx *x, const OnnxNode *n, int64_t axis, uint32_t rank,
               uint32_t *out);
/* As bits; `all` where the list is empty. */
bool onnx_axes(Onnx *x, const OnnxNode *n, uint32_t count, const int64_t *axes,
               uint32_t rank, uint32_t all, uint32_t *out);

/* ---- making nodes: make.c ---- */

/* A node "layer/part": set attributes, then onnx_end. */
NodeId onnx_add(Onnx *x, const OnnxNode *n, OpKind op, const char *part,
                uint32_t n_in, const TensorId *in);
/* Infers it; its tensor, or NO_TENSOR after errors. The makers below give
 * NO_TENSOR too where one of theirs is none. */
TensorId onnx_end(Onnx *x, NodeId id);
const Shape *onnx_shape(const Onnx *x, TensorId tensor);
TensorId onnx_reshape(Onnx *x, const OnnxNode *n, TensorId in, Shape shape);
TensorId onnx_act(Onnx *x, const OnnxNode *n, TensorId in, Act act);
TensorId onnx_binary(Onnx *x, const OnnxNode *n, EltKind kind, TensorId a,
                     TensorId b);
TensorId onnx_transpose(Onnx *x, const OnnxNode *n, TensorId in,
                        const uint32_t *perm);
TensorId onnx_reduce(Onnx *x, const OnnxNode *n, TensorId in, ReduceKind kind,
                     uint32_t axes);
TensorId onnx_slice(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                    uint32_t begin, uint32_t end);
/* Sums of `taps` elements each with factors (NULL: 1). */
TensorId onnx_gather(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                     uint32_t count, uint32_t taps, const double *index,
                     const double *factor);
TensorId onnx_pad(Onnx *x, const OnnxNode *n, TensorId in,
                  const uint32_t *before, const uint32_t *behind, double value);
/* a * in + b by channel; NULL: 1 and 0. */
TensorId onnx_scale(Onnx *x, const OnnxNode *n, TensorId in, const Const *a,
                    const Const *b);
TensorId onnx_norm(Onnx *x, const OnnxNode *n, TensorId in, uint32_t axis,
                   double eps);
/* A tensor of these values. */
TensorId onnx_constant(Onnx *x, const OnnxNode *n, Const constant);
/* The codes of a value, as a tensor of numbers. */
TensorId onnx_plain(Onnx *x, OnnxValue *value);
/* A routine of the host: set attributes, then onnx_end. False after errors. */
NodeId onnx_routine(Onnx *x, const OnnxNode *n, RoutineKind kind, uint32_t n_in,
                    const TensorId *in);
bool onnx_number_is(Onnx *x, const OnnxNode *n, NodeId id, const char *attr,
                    double value);
bool onnx_numbers_are(Onnx *x, const OnnxNode *n, NodeId id, const char *attr,
                      uint32_t count, const double *value);
bool onnx_word_is(Onnx *x, const OnnxNode *n, NodeId id, const char *attr,
                  const char *word);
/* Constants. */
Const onnx_fill(Shape shape, double value);
Const onnx_values(Shape shape, const double *value);
void onnx_give(Onnx *x, NodeId id, ConstRole role, Const constant);

/* The shape of `a` and `b` together; false if they do not go together. */
bool onnx_broadcast(const Shape *a, const Shape *b, Shape *out);
/* Which element of an operand is element `i` of what it is broadcast to. */
uint64_t onnx_index_in(const Shape *operand, const Shape *whole, uint64_t i);
/* `shape` with ones before it up to `rank`. */
Shape onnx_rank(const Shape *shape, uint32_t rank);

/* ---- folding: fold.c ---- */

/* The shape that Reshape makes of `from`. */
bool onnx_reshaped(Onnx *x, const OnnxNode *n, const Shape *from,
                   uint32_t count, const int64_t *dims, Shape *out);
/* Start, and step of at least 1 away from 0; how many elements. */
typedef struct OnnxRange {
    uint32_t axis, count;
    int64_t start, step;
} OnnxRange;
/* The ranges of a Slice; at most one an axis. */
bool onnx_ranges(Onnx *x, const OnnxNode *n, const Shape *shape,
                 uint32_t *n_out, OnnxRange *out);
/* Transpose's order of axes. */
bool onnx_perm(Onnx *x, const OnnxNode *n, uint32_t rank, uint32_t *perm);
/* The shape of Squeeze's and Unsqueeze's output. */
bool onnx_squeezed(Onnx *x, const OnnxNode *n, const Shape *from, Shape *out);
/* The lengths of Split's outputs. */
bool onnx_parts(Onnx *x, const OnnxNode *n, uint32_t size, uint32_t *length);

/* ---- codes: codes.c ---- */

/* A constant whose factors, if all are alike, lie along this axis (0 or 1). */
Const onnx_weight(Onnx *x, const Const *value, uint32_t axis);
/* The same as const_permuted and const_reshaped, of any constant. */
Const onnx_permuted(Onnx *x, const Const *value, const uint32_t *perm);
Const onnx_const_reshaped(Onnx *x, const Const *value, const Shape *shape);
/* The value as an output of the network: numbers are floats there. */
TensorId onnx_result(Onnx *x, OnnxValue *value);
/* Does the node move codes, all alike, and nothing else? */
bool onnx_on_codes(Onnx *x, const OnnxNode *n);
/* What it made of them are codes again; its first node. */
void onnx_give_codes(Onnx *x, const OnnxNode *n, uint32_t first_node);
/* Does the node make codes from several ones? onnxruntime cuts what lies
 * between two codes; what the node made becomes that. */
bool onnx_blends_codes(const Onnx *x, const OnnxNode *n);
void onnx_cut_codes(Onnx *x, const OnnxNode *n);
/* Value `out` is the numbers of in[0], which in[1] and in[2] (NONE: 0) scale:
 * DequantizeLinear; the codes of in[0], of type `like` where in[2] is NONE:
 * QuantizeLinear. `axis`: where
 * a list of scales lies. False after errors. */
bool onnx_scaled(Onnx *x, const OnnxNode *n, const uint32_t in[3], int64_t axis,
                 uint32_t out);
bool onnx_rounded(Onnx *x, const OnnxNode *n, const uint32_t in[3],
                  OnnxType like, uint32_t out);
/* Output 0 is input 0, whatever that is. */
bool onnx_same_codes(Onnx *x, OnnxNode *n);

/* ---- windows: ops_window.c ---- */

/* Reads kernel, strides, dilations and pads of a layer of `n_axes` windows
 * over sizes `in`, auto_pad included. */
enum { ONNX_MAX_AXES = 3 };
typedef struct OnnxWindow {
    uint32_t n;
    uint32_t kernel[ONNX_MAX_AXES], stride[ONNX_MAX_AXES];
    uint32_t dilation[ONNX_MAX_AXES];
    int64_t pad[ONNX_MAX_AXES], pad_end[ONNX_MAX_AXES];
    bool same, lower; /* auto_pad */
} OnnxWindow;
bool onnx_window(Onnx *x, const OnnxNode *n, uint32_t n_axes,
                 const uint32_t *kernel, OnnxWindow *out);
/* Pads so that outputs are inputs divided by strides, rounded up. */
void onnx_pad_same(OnnxWindow *w, const uint32_t *in);
/* Windows over columns only become windows over rows of one. */
void onnx_window_plane(OnnxWindow *w);
/* N x C x L as N x C x 1 x L; others as they are. */
Shape onnx_plane(const Shape *in);
/* The same of a routine: ops_routine.c. */
bool onnx_set_windows(Onnx *x, OnnxNode *n, NodeId id, const OnnxWindow *w);
/* An attribute of three axes, of which the windows have the last; the others
 * get 1, or 0 where it is `pad`. */
bool onnx_three(Onnx *x, OnnxNode *n, NodeId id, const char *attr,
                const OnnxWindow *w, const uint32_t *value, const int64_t *pad);
/* Gather where the index is data. */
bool onnx_take_by(Onnx *x, OnnxNode *n);
/* ops_volume.c: convolutions over three axes, and by computed weights. */
bool onnx_conv_volume(Onnx *x, OnnxNode *n, const OnnxWindow *w);
bool onnx_convolve(Onnx *x, OnnxNode *n, const OnnxWindow *w, bool transposed);
/* Back from it, where it was a line. */
TensorId onnx_line(Onnx *x, const OnnxNode *n, TensorId in, bool line);

#define OP(name, min, max, outs, build, fold, kind) OnnxBuild build;
#include "frontends/onnx/ops.def"
#undef OP
#define OP(name, min, max, outs, build, fold, kind) OnnxFold fold;
#include "frontends/onnx/ops.def"
#undef OP

#endif
