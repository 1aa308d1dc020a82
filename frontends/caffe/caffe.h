/* caffe.h - what the files of the Caffe front end share; no other room
 * includes it.
 *
 * A network goes through them in this order: reader.c reads the file,
 * phase.c picks the layers of the phase; link.c binds every bottom to the top
 * that makes it; inputs.c and the builders in ops_*.c, found in ops.def, make
 * nodes; weights.c finds their constants.
 *
 * Names. A node is called after its layer. The tensor of a blob that layers
 * change in place has several versions: the last is called after the blob, so
 * that the name means what the network's author sees; those before it are
 * called after the layers that make them (with "@1", "@2"... behind, the
 * version, where that is a blob's name). Nodes that a layer needs besides its
 * own are called "layer/part".
 */
#ifndef FRONTENDS_CAFFE_CAFFE_H
#define FRONTENDS_CAFFE_CAFFE_H

#include "base/map.h"
#include "frontends/frontend.h"
#include "frontends/proto/proto.h"
#include "frontends/proto/protobin.h"

typedef struct Caffe Caffe;
typedef struct CaffeLayer CaffeLayer;

/* Makes the layer's nodes and sets the tensors of its tops; false after
 * errors. */
typedef bool CaffeBuild(Caffe *c, CaffeLayer *layer);

typedef enum CaffeRole {
    CAFFE_BUILD,  /* becomes nodes */
    CAFFE_SOURCE, /* its tops come from outside: network inputs */
    CAFFE_LOSS,   /* reads labels too: only its first bottom is kept */
    CAFFE_DROP    /* serves training or evaluation alone */
} CaffeRole;

typedef struct CaffeType {
    const char *name; /* "Convolution" */
    const char *v1;   /* "CONVOLUTION": in networks with `layers` */
    uint32_t number;  /* of that in binary files; 0: it has none */
    CaffeRole role;
    uint32_t min_bottom, max_bottom, max_top;
    CaffeBuild *build;
} CaffeType;

typedef struct CaffeBottom {
    const char *blob;
    Loc loc;
    uint32_t layer, top; /* who makes it; layer NONE until it is known */
} CaffeBottom;

typedef struct CaffeTop {
    const char *blob;
    Loc loc;
    uint32_t version; /* of the blob, from 1 */
    bool last;        /* no later layer changes the blob in place */
    uint32_t readers;
    TensorId tensor; /* NO_TENSOR until it is built, and after errors */
} CaffeTop;

struct CaffeLayer {
    const char *name;
    Loc loc;
    const CaffeType *type;
    const ProtoMessage *message; /* NULL: an `input:` of the network */
    uint32_t input;              /* which of the `input:`s it then is */
    uint32_t n_bottom, n_top;
    CaffeBottom *bottom;
    CaffeTop *top;
    uint32_t n_blobs, used_blobs; /* weights, in order */
    const Bytes *blob;
};

/* The network's `input:` fields, and what says their shapes. */
typedef struct NetInputs {
    uint32_t n, n_dims, n_shapes;
    const ProtoField **dim, **shape;
} NetInputs;

struct Caffe {
    Arena *arena;
    Diag *diag;
    const char *path;
    const ImportOptions *options;
    const ProtoMessage *net;
    Graph *graph;
    VEC(CaffeLayer) layer;
    NetInputs inputs;
    Map *blobs;               /* names of blobs */
    const char *weights_file; /* where layers' blobs come from, or NULL */
    const uint8_t *weights_start;
};

/* ---- phase.c ---- */
typedef struct CaffeState {
    uint32_t phase; /* 0: TRAIN, 1: TEST */
    int64_t level;
    const ProtoMessage *message; /* its stages */
} CaffeState;
CaffeState caffe_state(Caffe *c);
bool caffe_is_included(Caffe *c, const CaffeState *state,
                       const ProtoMessage *layer);

/* ---- schema.c ---- */
extern const ProtoSchema caffe_schema;

/* ---- link.c ---- */

/* Binds bottoms to tops and puts layers into an order in which blobs are made
 * before they are read. False after errors. */
bool caffe_link(Caffe *c);

/* ---- inputs.c ---- */
CaffeBuild caffe_inputs;
/* The dims of a BlobShape. False where there is none, or after errors. */
bool caffe_shape(Caffe *c, const CaffeLayer *layer, const ProtoMessage *message,
                 Shape *out);

/* ---- weights.c ---- */

/* Finds the blobs of every layer: in the file of weights, else in the network
 * itself where that is binary. False after errors. */
bool caffe_find_weights(Caffe *c, Bytes file);
/* Blob `i` of the layer with its own shape. False where the layer has no blobs
 * at all (no error), and after errors. */
bool caffe_blob(Caffe *c, CaffeLayer *layer, uint32_t i, Const *out);
/* Gives the node blob `i` as a constant; without blobs does nothing. False
 * after errors. */
bool caffe_use_blob(Caffe *c, CaffeLayer *layer, NodeId node, ConstRole role,
                    uint32_t i);

/* ---- what builders use: node.c ---- */

#define caffe_error(c, layer, ...)                                             \
    caffe_error_at((c), (layer), (layer)->loc, __VA_ARGS__)
/* `layer "its name": ...`; returns false. */
bool caffe_error_at(Caffe *c, const CaffeLayer *layer, Loc loc,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The name for the tensor of a top. */
const char *caffe_tensor_name(Caffe *c, const CaffeLayer *layer, uint32_t top);
/* The layer's message of parameters, or NULL. */
const ProtoMessage *caffe_param(Caffe *c, const CaffeLayer *layer,
                                const char *name);
/* The tensor of a bottom, and its shape. */
TensorId caffe_in(const Caffe *c, const CaffeLayer *layer, uint32_t bottom);
const Shape *caffe_in_shape(const Caffe *c, const CaffeLayer *layer,
                            uint32_t bottom);
/* The node that makes the layer's first top, reading all its bottoms; set its
 * attributes, then caffe_finish. */
NodeId caffe_node(Caffe *c, const CaffeLayer *layer, OpKind op);
/* Infers the shape of the node as the maker of top `top`. */
bool caffe_finish(Caffe *c, CaffeLayer *layer, NodeId node, uint32_t top);
/* A node besides: "layer/part". Set attributes, then caffe_inner. */
NodeId caffe_part(Caffe *c, const CaffeLayer *layer, OpKind op,
                  const char *part, uint32_t n_in, const TensorId *in);
/* Infers a node whose tensor no blob names; NO_TENSOR after errors. */
TensorId caffe_inner(Caffe *c, NodeId node);
/* The field `name` as an axis of a shape, from the end where negative; `axis`
 * keeps what it is where the field is absent. */
bool caffe_axis(Caffe *c, const CaffeLayer *layer, const ProtoMessage *param,
                const char *name, uint32_t rank, uint32_t *axis);
/* Height and width from `both` (once or twice) or `h` and `w`. */
bool caffe_pair(Caffe *c, const CaffeLayer *layer, const ProtoMessage *param,
                const char *both, const char *h, const char *w,
                uint32_t out[2]);
/* A constant of one value. */
ConstId caffe_fill(Caffe *c, NodeId node, ConstRole role, double value);

/* ---- ops_detect.c ---- */

/* What --shape says of a blob; `out` NULL: only whether it does. */
bool caffe_told_shape(const Caffe *c, const char *top, Shape *out);

/* ---- ops.c ---- */

/* A type by its name, or as a `layers` field gives it: word or number; NULL if
 * it is not known. */
const CaffeType *caffe_find_type(const ProtoField *field);
/* Takes the place of a type that is not supported, so that layers behind it
 * are not reported too. */
extern const CaffeType caffe_unsupported;

#define TYPE(name, v1, number, role, min, max, tops, build) CaffeBuild build;
#include "frontends/caffe/ops.def"
#undef TYPE

#endif
