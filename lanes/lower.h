/* lower.h - what the files that lower a graph share. */
#ifndef LANES_LOWER_H
#define LANES_LOWER_H

#include "lanes/inside.h"

#include "graph/quant.h"

/* What a tensor is to the layers that read it. */
typedef struct Value {
    LaneLayer front; /* what the next layer does to its input first */
    uint32_t c, size[2];
    bool set;
} Value;

typedef struct Lower {
    Arena *arena;
    Diag *diag;
    const LaneMachine *m;
    Graph *g;
    LaneNet *net;
    LaneLowered *out;
    Value *value;   /* by tensor */
    uint32_t *uses; /* by tensor */
    bool turned;    /* rows of one pixel's height are columns */
} Lower;

static inline const Quant *quant_of(const Lower *l, TensorId t) {
    return &graph_tensor(l->g, t)->quant;
}

static inline bool pools(const LaneLayer *front) {
    return front->pooled || front->pool_stride > 1;
}
static inline bool is_one(const LaneLayer *front) {
    return !pools(front) && front->n_sources == 1;
}

/* Says why; false. */
bool low_refuse(const Lower *l, const Node *node, const char *why);
/* Less their zero, are codes -128 to 127? */
bool low_is_plain(const Quant *q);
/* A layer that does nothing to its source yet. */
LaneLayer low_fresh(const Node *node, int32_t source);
/* The tensor is what `front` makes; its size is that of the graph. */
void low_set(Lower *l, TensorId t, const LaneLayer *front);
/* The layer makes the tensor. */
void low_make(Lower *l, const Node *node, const LaneLayer *layer, TensorId t);
/* A layer of its own for what stands in front, if anything does. */
bool low_settle(Lower *l, const Node *node, TensorId t);
/* Layers that many read are made once. */
bool low_share(Lower *l, const Node *node, TensorId t);
/* The activation of a layer whose results are cut as the numbers say. */
bool low_cut(Lower *l, const Node *node, const QuantLayer *q, LaneLayer *layer);
/* The same volume: its size stays that of the input. */
void low_rename(Lower *l, TensorId from, TensorId to);

/* Sums and differences of two volumes. */
bool low_elt(Lower *l, const Node *node);
bool low_concat(Lower *l, const Node *node);
/* One input's codes on another scale, or cut. */
bool low_move(Lower *l, const Node *node, TensorId in, LaneAct act);
/* ReLU of the codes that a layer has just made, or a layer of its own. */
bool low_act(Lower *l, const Node *node);

#endif
