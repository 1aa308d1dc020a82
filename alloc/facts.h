/* facts.h - what is known before anything is decided; private.
 *
 * Of a network, in an order, on a machine. Const once facts_make has returned,
 * but for what is remembered so that it is not found twice.
 */
#ifndef ALLOC_FACTS_H
#define ALLOC_FACTS_H

#include "alloc/alloc.h"
#include "alloc/mode.h"
#include "base/memo.h"

typedef enum Origin {
    FROM_INPUT,  /* the network's input: in the input memory */
    FROM_HOST,   /* made by the host: in the input or output memory */
    FROM_ENGINE, /* made in active memory */
    FROM_PARTS   /* a concat by placement: complete when its members are */
} Origin;

/* Where a tensor comes from, and who needs it. */
typedef struct Role {
    Origin origin;
    bool engine_reads, host_reads;
    bool kept;       /* a state, or what it is in the next call, which lie in
                      * active memory at one place, throughout */
    bool outside;    /* from engines, and the host or the user needs it */
    TensorId parent; /* the concat by placement that it is a member of */
    uint32_t part_c; /* its first channel in `parent`, */
    uint32_t root_c; /* and in the outermost concat that it is a member of */
    uint32_t made;   /* step, NONE for network inputs */
    uint32_t last;   /* last step at which an engine reads it; NONE */
    Repl repl;       /* in memories that hold replicated volumes */
} Role;

/* What does not depend on the bytes that are planned with, found once for all
 * Facts of one plan. */
typedef struct RollCosts RollCosts;
typedef struct StripeCosts StripeCosts;
typedef struct FlowStep FlowStep;
typedef struct RowTileRows {
    uint32_t rows, in;
} RowTileRows;
/* loop_nest.c: the tiles of a style for `reserved` bytes, which end at `end`:
 * where there are fewer bytes they are the same, as long as they fit. */
typedef struct NestKnown {
    uint64_t reserved, end;
    uint64_t moved, cycles; /* moved UINT64_MAX: not even the smallest fit */
    Mode mode;
    struct NestKnown *older;
} NestKnown;
/* boxes.c: what fits into so many bytes. */
typedef struct BoxKnown {
    bool asked, doubled;
    uint64_t free, total, first; /* of all memories; the first one's size */
    Mode mode;                   /* whole: nothing does */
} BoxKnown;
typedef struct NestTable NestTable;
typedef struct KnownCascades KnownCascades;
typedef enum Truth { NOT_ASKED, IS_FALSE, IS_TRUE } Truth;
typedef struct Memo {
    Arena *arena;
    KnownCascades *cascades; /* cascade_dp.c: what it chose */
    RollCosts *rolls;     /* rolling_cost.c; NULL for machines without rings */
    FlowStep *flow;       /* dataflow.c: by step; likewise */
    StripeCosts *stripes; /* recompute_memo.c */
    NestKnown **nest;     /* by node, then style; NULL: not yet */
    NestTable **table;    /* the same, where time is weighed; or NULL */
    NestKnown **smallest; /* with it: the smallest tiles, in Mode.nest.over */
    RowTileRows *row_tiles;  /* rows.c: what was asked last */
    BoxKnown *boxes;         /* boxes.c: by node */
    uint32_t *channel_tile;  /* channels.c: by node: its quanta; 0: not yet */
    uint32_t *input_quantum; /* ... likewise */
    Truth *parts; /* by node, of concats: whether a cascade may hold it */
    MemoTable *memo_table; /* what was placed, and which shares leave */
} Memo;

typedef struct Facts {
    Arena *arena; /* of what is made while planning */
    const Schedule *schedule;
    const HwSpec *spec;
    const Graph *g;
    const PlanOptions *options;
    const Memo *memo;
    Uses uses;
    Legal *legal;   /* by node */
    Legal *copy;    /* by tensor: copy_legal; HW_OP_CONV: not asked yet */
    Role *role;     /* by tensor */
    uint64_t total; /* active bytes, with the last volume's alignment */
    uint64_t kept;  /* of these, bytes of states that stay there */
} Facts;

/* The node's inputs, and behind them its result. */
static inline TensorId node_operand(const Node *node, uint32_t i) {
    return i < node->n_in ? node->in[i] : node->out[0];
}

/* The volume that encloses the tensor, and how it lies. */
static inline TensorId enclosing(const Facts *f, TensorId t) {
    while (f->role[t.i].parent.i != NONE)
        t = f->role[t.i].parent;
    return t;
}

/* The node that is a step by itself; NO_NODE. */
static inline NodeId only_node(const Facts *f, uint32_t step) {
    const Step *s = &f->schedule->step[step];
    return s->n == 1 ? s->slot[0].node : NO_NODE;
}

/* Whether one of the node's operands, or its result, is a state that stays in
 * active memory: it runs whole. */
static inline bool node_keeps(const Facts *f, NodeId id) {
    const Node *node = graph_node(f->g, id);
    bool keeps = false;
    for (uint32_t i = 0; f->options->states && i <= node->n_in; i++)
        keeps |= f->role[node_operand(node, i).i].kept;
    return keeps;
}

/* A placement is asked of the packer: counts it. */
static inline void packing_count(const Facts *f) {
    if (f->options->spent)
        f->options->spent->packings++;
}

#endif
