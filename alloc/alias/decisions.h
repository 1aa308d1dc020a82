/* decisions.h - what is known, and chosen, while one plan is made; private.
 *
 * A *unit* is a set of tensors that share one buffer: one tensor, a chain of
 * results in place, or a concat with its members. Its *touches* are the steps
 * at which some node needs it; between two touches it stays in active memory,
 * or is evicted. A *segment* is a run of touches over which it stays.
 * A node's *mode* is how it runs: whole, by tiles, or in a *group* of nodes
 * that run depth first, by stripes. A *problem* is what planners are asked: a
 * *buffer* for each segment, plank, tile and relay; its *owner* tells which.
 *
 * Time has two phases a step: 2 s while nodes run, 2 s + 1 behind them.
 */
#ifndef ALLOC_ALIAS_DECISIONS_H
#define ALLOC_ALIAS_DECISIONS_H

#include "alloc/alloc.h"
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
    bool engine_reads;
    bool outside;    /* from engines, and the host or the user needs it */
    TensorId parent; /* the concat by placement that it is a member of */
    uint32_t part_c; /* its first channel in `parent` */
    uint32_t made;   /* step, NONE for network inputs */
    uint32_t last;   /* last step at which an engine reads it; NONE */
    Repl repl;       /* in memories that hold replicated volumes */
} Role;

typedef struct Touch {
    uint32_t step;
    uint32_t memories; /* bit (1 << memory): what its engines can reach */
    bool whole;        /* some node needs it resident */
    bool stream;       /* some node reads or writes it by tiles */
    bool by_rows;      /* these read rows, which an engine can copy from what
                        * is resident: the unit may stay */
    uint32_t behind;   /* concat: channels up to the last that is touched later
                        * than this */
    bool lands;        /* some node writes a member of a concat by parts, which
                        * are loaded into it behind the step */
    bool leaves;       /* evicted between this touch and the next whole one, */
    uint32_t keeps;    /* but for channels [0, keeps) of its volume, or as many
                        * at its end: Unit.keeps_end */
} Touch;

typedef struct Segment {
    uint32_t first, last; /* touches */
    uint32_t memories;
    uint32_t buf; /* in the problem */
} Segment;

typedef struct Unit {
    TensorId root; /* the tensor whose volume encloses the others */
    bool dead;     /* dissolved into other units */
    bool concat;
    bool as_filled;    /* concat: takes only what its members so far do, in
                        * buffers that move together, one behind the other; */
    bool as_needed;    /* ... and only up to the last that is needed later */
    bool keeps_end;    /* of its volume the last channels stay over gaps */
    uint32_t complete; /* concat: step at which all members are written */
    uint32_t n_tensors, n_touches, n_segments;
    TensorId *tensor; /* root first */
    Touch *touch;
    Segment *segment;
    uint64_t bytes[PLAN_MAX_POOLS]; /* 0: does not fit there */
} Unit;

typedef enum ModeKind {
    MODE_WHOLE,
    MODE_PLANKS,
    MODE_HARDWARE,
    MODE_GROUP, /* by stripes, with the nodes of its group */
    MODE_AHEAD, /* whole, its input through buffers of the engine */
    MODE_GIVES, /* by slabs, which the node of the next step */
    MODE_TAKES, /* ... uses up: channel_pairs.c */
    MODE_KINDS
} ModeKind;

enum { MAX_OPERANDS = 17 };

/* How a node runs. */
typedef struct Mode {
    ModeKind kind;
    bool streams_in, streams_out;
    uint32_t stays;    /* slabs: operands that are whole all the same: bits */
    bool early;        /* slabs that were tried before planks */
    uint32_t rows;     /* planks: rows of the output */
    uint32_t channels; /* planks: slabs of so many, of all rows; 0: none.
                        * couples: of these */
    uint32_t rank;     /* hardware: which of mode_style's rows */
    int32_t style;
    uint32_t tile_w, tile_h;
    Nest nest;
    Repl repl;          /* of input tiles */
    uint32_t first_buf; /* in the problem: planks of operands, output last */
    uint32_t group;     /* in Work */
    bool doubled;       /* planks, stripes: two sets of buffers take turns; */
    uint32_t twin;      /* the second is so many behind the first */
} Mode;

static inline bool mode_streams(const Mode *mode, uint32_t k) {
    return mode->streams_in && !(mode->stays >> k & 1);
}

/* Steps [first, end) that run depth first: all of them for each stripe of
 * `rows` rows of the last result. */
typedef struct Group {
    uint32_t first, end, rows;
    bool rolls; /* by rolling_rows.c: nothing twice; `rows` are then those of
                 * the highest result at a time */
    bool stays; /* rolls: what others need stays in active memory */
    bool ahead; /* rolls: what it loads comes one run of its last node
                 * before it is needed */
    uint32_t
        cols; /* rolls: by rolling_columns.c, with so many columns of the widest
               * result at a time, 1: as few as can be; 0: by rings */
    uint32_t first_buf; /* then, in the problem: its rings */
    uint32_t n_shared;  /* by stripes: what is loaded for several nodes */
    const TensorId *shared;
} Group;

/* A tensor that passes through active memory on its way from one external
 * place to another. */
typedef struct Relay {
    uint32_t step;
    TensorId tensor;
    uint32_t rows;
    uint32_t buf;
} Relay;

typedef enum OwnerKind {
    OWNER_SEGMENT,
    OWNER_KEPT, /* what stays of a unit between two segments */
    OWNER_PLANK,
    OWNER_TILE,
    OWNER_RELAY
} OwnerKind;

/* What a buffer of the problem holds. */
typedef struct Owner {
    OwnerKind kind;
    uint32_t unit; /* SEGMENT, KEPT */
    NodeId node;   /* PLANK, TILE */
    TensorId tensor;
    uint32_t rows;
    uint32_t channels; /* 0: all */
    uint64_t least; /* bytes in its cheapest pool; UINT64_MAX: none holds it */
} Owner;

/* Half-open. */
typedef struct Times {
    uint32_t first, end;
} Times;

typedef struct Problem {
    PlanProblem p;
    VEC(Buf) buf;
    VEC(Owner) owner;
    VEC(uint32_t) tied; /* by buffer: the first of those that move with it */
    VEC(Relation)
    relation;       /* of concat_holes.c: members inside their concats */
    uint64_t *live; /* by time: bytes */
    uint32_t n_times;
} Problem;

/* What does not depend on the bytes that are planned with, found once for all
 * Works of one plan. */
typedef struct RollCosts RollCosts;
typedef struct StripeCosts StripeCosts;
typedef struct FlowStep FlowStep;
typedef struct PlankRows {
    uint32_t rows, in;
} PlankRows;
/* loop_nest.c: the tiles of a style for `reserved` bytes, which end at `end`:
 * where there are fewer bytes they are the same, as long as they fit. */
typedef struct NestKnown {
    uint64_t reserved, end;
    uint64_t moved, cycles; /* moved UINT64_MAX: not even the smallest fit */
    Mode mode;
    struct NestKnown *older;
} NestKnown;
typedef struct NestTable NestTable;
typedef struct KnownGroups KnownGroups;
typedef struct Once {
    Arena *arena;
    KnownGroups *groups;  /* cascade_dp.c: what it chose */
    RollCosts *rolls;     /* rolling_cost.c; NULL for machines without rings */
    FlowStep *flow;       /* dataflow.c: by step; likewise */
    StripeCosts *stripes; /* recompute_memo.c */
    NestKnown **nest;     /* by node, then style; NULL: not yet */
    NestTable **table;    /* the same, where time is weighed; or NULL */
    NestKnown **smallest; /* with it: the smallest tiles, in Mode.nest.over */
    PlankRows *planks;    /* rows.c: what was asked last */
    uint32_t *slab;       /* channels.c: by node: its quanta; 0: not yet */
    Recall *recall;       /* what was placed, and which shares leave */
} Once;

typedef struct Work Work;
struct Work {
    Arena *arena;
    const Schedule *schedule;
    const HwSpec *spec;
    const Graph *g;
    const PlanOptions *options;
    const Once *once;
    Uses uses;
    Legal *legal;      /* by node */
    Legal *copy;       /* by tensor: copy_legal; HW_OP_CONV: not asked yet */
    Role *role;        /* by tensor */
    Mode *mode;        /* by node */
    uint32_t *unit_of; /* by tensor; NONE */
    bool *dissolved;   /* by concat: its members are units of their own */
    TensorId *over;    /* by tensor: the operand whose place it takes */
    VEC(Unit) unit;
    bool lends; /* concat_holes.c has done it */
    VEC(Relay) relay;
    VEC(Group) group;
    uint32_t *relay_rows; /* by tensor: rows that a relay takes at a time */
    uint64_t total;       /* active bytes, with the last volume's alignment */
    uint32_t stuck;       /* step at which nothing more can be done */
    uint8_t *given_up;    /* by step: it cannot run in what there is */
    uint32_t split;       /* step at which a unit must change memory; NONE */
    bool keeps_all;       /* of a plan: see there */
    uint32_t apart;       /* kinds of layers that are in no group: bits */
    uint64_t thrift;      /* bytes over DDR that an instruction of a group
                           * counts as much as */
    uint32_t haste;       /* products that a group computes again and that
                           * count as much as a byte over DDR; 0: none does */
    uint32_t price;       /* one of nest_prices, or 0: the last; */
    bool tiny;            /* but tiles of channels are as small as can be */
    bool wholes_first;    /* whole volumes leave, even where parts would do */
    uint32_t low;         /* volumes stay where rows of them are read, of which
                           * little is there at a time: of active memory one
                           * part in so many; 0: none stays */
    bool weights_count;   /* a byte of weights counts as one of a tensor */
    bool loose;           /* groups may have several results */
    uint32_t runs;        /* groups roll so that transfers hide behind so many
                           * runs of their layers; 0: not for that */
    bool settled;         /* modes_settle, when the Work was made */
    bool streams_first;   /* what never runs whole starts with its last way */
    double most;          /* bytes moved by a plan that is known already */
    bool hopeless;        /* more than that must move, however it goes on */
    bool by_parts;        /* what fit_around chose without wholes_first */
    bool brief;           /* a plan that is too long is of no use: it may end
                           * early, */
    bool gave_up;         /* and has: it was not placed, or lacks actions */
    bool explains;        /* all steps that cannot run are to be known */
    uint64_t would_do; /* bytes of the first memory: a refusal's; 0: unknown */
    /* whether, with these decisions, the listing is longer than the machine
     * holds wherever buffers lie: count_instructions.c */
    bool (*too_long)(Work *w, Problem *problem);
};

#endif
