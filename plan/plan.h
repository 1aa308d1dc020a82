/* plan.h - Schedule -> Plan: where every volume lies, when, and what moves.
 *
 * The Plan is an ordered list of actions over placements. A placement is a
 * tensor, or some of its rows, or some of its channels, in one memory at one
 * place; one tensor can have several. A volume that is part of a concat lies
 * inside its parent's volume.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "geometry/geometry.h"
#include "hwspec/lines.h"
#include "pack/pack.h"
#include "plan/objective.h"
#include "sched/sched.h"

typedef struct Placement {
    TensorId tensor;
    uint32_t row, rows;   /* rows [row, row + rows) of the tensor are held */
    uint32_t col, cols;   /* columns [col, col + cols) of these */
    uint32_t c, n_c;      /* channels [c, c + n_c) of it: what a move moves */
    bool ring;            /* row r is row r % whole.h of `whole`, not r - row */
    LineBuffer lines;     /* band > 0: `whole` is one row, of its pixels: */
    uint32_t left, pitch; /* ... of columns [left, left + pitch) of the tensor,
                           * a strip; pitch 0: of all */
    uint32_t memory;      /* index in spec->memory */
    uint64_t offset;      /* bytes: start of `whole` in that memory */
    Volume whole;         /* the enclosing volume: the tensor itself, a plank of
                           * it (h = rows), or the parent of a concat */
    uint32_t part_c;      /* where channel c of the tensor lies in `whole` */
    uint64_t bytes;       /* of `whole` */
    uint32_t buffer;      /* placements with the same number share their bytes
                           * on purpose (concat, in place); memories apart */
    uint32_t first, end;  /* indices in schedule->step: half-open */
} Placement;

typedef enum ActionKind {
    ACTION_LOAD,   /* in[0] (backing or input memory) -> out (active) */
    ACTION_STORE,  /* in[0] (active) -> out (backing or output memory) */
    ACTION_RUN,    /* an engine computes `node`, or a tile of it */
    ACTION_COPY,   /* an engine copies rows of in[0] to out, a volume of just
                    * these, both active: max pooling of single pixels */
    ACTION_CONCAT, /* nothing moves: out is complete now */
    ACTION_HOST,   /* the host computes `node` in input/output/backing memory */
    ACTION_WEIGHTS, /* block `weights` of `node` -> its memory */
    ACTION_BIAS     /* block `bias` of `node` -> its memory */
} ActionKind;

/* Taps of a kernel, row by row: whole rows, or some of one row. */
typedef struct KernelTaps {
    uint32_t first, n;
} KernelTaps;

/* Constants of a layer's output channels [c, c + n_c) in their memory, from one
 * load on. Weights: `taps` of each, which are those of some of its input
 * channels and taps; biases: an element of their memory each. */
typedef struct ConstantBlock {
    NodeId node;
    uint32_t c, n_c, taps;
    uint32_t in_c; /* the first of their input channels */
    KernelTaps kernel;
    uint32_t from; /* memory that it is loaded from */
    uint64_t offset, bytes;
} ConstantBlock;

/* Of an instruction at work, and until the last that goes on with them. */
typedef struct SumsPlace {
    uint64_t offset, bytes;
    Volume volume; /* those of the result, or in front of its pool */
} SumsPlace;

typedef struct Action {
    ActionKind kind;
    uint32_t step; /* listing's step number, from 1 */
    NodeId node;   /* RUN, WEIGHTS, CONCAT, HOST; else NO_NODE */
    Legal legal;   /* RUN, COPY, HOST */
    uint32_t n_in;
    const uint32_t *in; /* placements */
    uint32_t out;       /* placement; WEIGHTS: of the layer's result */
    uint32_t weights;   /* WEIGHTS, RUN: 1 + number of the block; 0: none */
    uint32_t bias;      /* BIAS, RUN: likewise */
    uint32_t sums;      /* RUN: 1 + number of a place in the memory of sums */
    KernelTaps kernel;  /* RUN: those that it adds up; n 0: all */
    /* LOAD, STORE, COPY: rows moved, in the whole tensor. RUN: rows of the
     * output that this tile computes; the whole height for a whole node. */
    uint32_t row, rows;
    /* RUN by planks: input rows read (of the whole tensor) and the padding on
     * top that this tile needs. Whole nodes: all rows, the node's padding. */
    uint32_t in_row, in_rows, pad_top;
    uint32_t pool_pad_top; /* CONV_POOL: the pool's; pad_top is the conv's */
    uint32_t col, cols;    /* the same of columns: moved, or computed, */
    uint32_t in_col, in_cols, pad_left; /* and read */
    uint32_t tile, n_tiles;             /* 0 of 1 for a whole node */
    uint32_t again; /* RUN: of `rows`, the first that the tile before has
                     * computed too */
    uint32_t fresh, strip_end; /* RUN by strips: up to column `strip_end`; the
                                * strip before has computed the columns before
                                * `fresh` too. strip_end 0: no strips */
    uint32_t at;               /* index in schedule->step */
    /* hardware tiling */
    int32_t style; /* index in spec->tiling.tiles.style; -1: none */
    uint32_t tile_w, tile_h;
    Nest nest;
    Repl tile_repl; /* of the input tiles, on the way from `in` */
} Action;

/* What a search took, the same on every machine. */
typedef struct PlanEffort {
    uint64_t configurations; /* tried */
    uint64_t packings;       /* placements asked of the packer */
    uint64_t steps, budget;  /* of BUDGET_PLAN: taken, and given */
    uint64_t too_long;       /* tried, of more instructions than there may be */
} PlanEffort;

/* Bytes that no plan of a kind moves less than; what it assumes is in its name.
 * All assume that layers are those of the network, on the units that they are
 * on. */
#define PLAN_BOUND_ROWS(BOUND)                                                 \
    BOUND(ANY, "ddr_bound_bytes", "no listing moves less")                     \
    BOUND(ORDER, "ddr_order_bound_bytes", "no plan in this order moves less")  \
    BOUND(APART, "ddr_apart_bound_bytes",                                      \
          "no plan moves less that puts no rows together in AM")               \
    BOUND(ONCE, "ddr_once_bound_bytes",                                        \
          "no plan that computes nothing twice moves less")                    \
    BOUND(LAYERS, "ddr_layers_bound_bytes",                                    \
          "no plan layer by layer in this order moves less")
typedef enum PlanBoundKind {
#define BOUND(NAME, key, words) PLAN_BOUND_##NAME,
    PLAN_BOUND_ROWS(BOUND)
#undef BOUND
        PLAN_BOUNDS
} PlanBoundKind;
extern const char *const plan_bound_key[PLAN_BOUNDS];

typedef struct Plan {
    const Schedule *schedule;
    uint32_t n_placements;
    const Placement *placement;
    uint32_t n_actions;
    const Action *action;
    uint32_t n_blocks;
    const ConstantBlock *block;
    uint32_t n_biases;
    const ConstantBlock *bias;
    uint32_t n_sums;
    const SumsPlace *sums;
    const Repl *repl;          /* by tensor id: how it is replicated in AM */
    bool replicated;           /* options->replication */
    bool two_levels;           /* something is spilled or tiled */
    bool keeps_all;            /* nothing is, but for what is replicated on the
                                * fly */
    bool by_parts;             /* parts of volumes leave, chosen first */
    bool cuts;                 /* transfers are cut between rows, and where a
                                * later layer hides the pieces */
    uint32_t images;           /* one behind the other; 0: one */
    const struct Plan *serial; /* or NULL: its actions and placements before
                                * transfers were put beside layers */
    const struct Plan *sliced; /* or NULL: its actions and placements before
                                * weights were loaded; blocks are slices */
    bool fills_holes;          /* bytes of concats serve others until their
                                * members are written */
    const char *planner;       /* of the active memories */
    uint64_t am_planned;       /* bytes of the first active memory for which it
                                * was made, if that was a smaller; else 0 */
    uint64_t am_height;        /* bytes, summed over active memories */
    uint64_t am_packed;        /* the same before volumes were moved apart */
    uint64_t am_live;          /* live peak, sizes rounded to their alignment,
                                * but no more than the height */
    uint64_t am_bound;         /* no placement is lower */
    bool am_proved;            /* am_packed is the least possible */
    uint64_t ddr_moved;        /* bytes loaded and stored, tiles included */
    uint64_t ddr_again;        /* bytes of results that it computes again */
    uint64_t
        ddr_bound[PLAN_BOUNDS]; /* no plan of the kind moves less: proved */
    uint64_t cycles; /* by the plan's own clock, where transfers overlap
                      * layers; else 0 */
    uint64_t memory_used[PACK_MAX_POOLS * 2]; /* by memory: highest byte + 1 */
    PlanCost cost;                            /* what it was chosen by */
    uint32_t n_front;
    const PlanCost *front; /* what was found and nothing beats; fewest bytes
                            * first */
    PlanEffort effort;
    uint32_t rejected; /* better ones that the verifier found illegal: our
                        * mistakes */
} Plan;

/* The judge of whole plans, in release builds too: replays the actions over
 * byte ranges; every operand was written before it is read, and nothing alive
 * is overwritten. NULL if right, else a sentence. Shares no code with the
 * rest. */
const char *plan_judge(Arena *arena, const Plan *plan);

/* Text of the plan: placements, then actions. */
const char *plan_print(Arena *arena, const Plan *plan);

/* The highest bound of those that hold for the plan; of equal ones that which
 * assumes least. */
PlanBoundKind plan_bound(const Plan *plan);
/* Bytes that cross to and from DDR in any plan; an instruction of a listing can
 * read more than it needs. */
uint64_t plan_compulsory(const Plan *plan);
/* "no listing moves less" */
const char *plan_bound_words(const Plan *plan, PlanBoundKind kind);
/* Adds to all bounds. */
void plan_bounds_add(Plan *plan, int64_t bytes);

/* Of machines that load weights into active memory. */
typedef struct PlanWeights {
    uint32_t blocks; /* loads of weights; 0: there are none */
    uint64_t loaded; /* bytes, in all */
    uint64_t most;   /* that are loaded and not yet read for the last time */
    uint64_t end;    /* of their memory: none lies beyond */
} PlanWeights;
PlanWeights plan_weights(const Plan *plan);

/* One line a volume: where it is, and why there; then what moves. */
const char *plan_explain(Arena *arena, const Plan *plan);

/* Where loads and stores share steps with layers: which do not, and why. Else
 * "". */
const char *plan_explain_time(Arena *arena, const Plan *plan);

/* What `show -t` prints: for each step the volumes alive in active memory,
 * their bytes, the sum, the largest. */
typedef struct PlanStepUse {
    uint32_t step; /* index in schedule->step */
    uint64_t bytes;
    uint32_t n;
    const uint32_t *placement; /* alive in active memory, largest first */
} PlanStepUse;
uint32_t plan_step_use(Arena *arena, const Plan *plan, const PlanStepUse **out);

/* Input channels that a run adds up, of those that its node has; and taps of
 * each, of those of its kernel. */
typedef struct Addends {
    uint32_t first, n, all;
    KernelTaps kernel;
    uint32_t area;
} Addends;
static inline Addends action_addends(const Plan *plan, const Action *a) {
    const Graph *g = plan->schedule->graph;
    const Node *node = graph_node(g, a->node);
    const Placement *in = &plan->placement[a->in[0]];
    uint32_t all = plan_volume(g, node->in[0]).c;
    bool some = (node->op == OP_CONV && node->attr.conv.groups < 2) ||
                node->op == OP_FC;
    uint32_t area = kernel_area(g, node);
    Addends x = {0, all, all, {0, area}, area};
    if (some) {
        x.first = in->c;
        x.n = in->n_c;
    }
    if (a->kernel.n)
        x.kernel = a->kernel;
    return x;
}
static inline bool addends_begin(Addends x) {
    return x.first == 0 && x.kernel.first == 0;
}
static inline bool addends_end(Addends x) {
    return x.first + x.n == x.all && x.kernel.first + x.kernel.n == x.area;
}
/* Whether they are those behind `x`: taps of the same channels, then others. */
static inline bool addends_follow(Addends x, Addends then) {
    uint32_t tap = x.kernel.first + x.kernel.n;
    return tap == x.area ? then.kernel.first == 0 && then.first == x.first + x.n
                         : then.kernel.first == tap && then.first == x.first &&
                               then.n == x.n;
}
/* Of so many products of whole channels those that it makes. */
static inline uint64_t addends_share(Addends x, uint64_t products) {
    uint64_t some = products / x.all * x.n + products % x.all * x.n / x.all;
    return some / x.area * x.kernel.n + some % x.area * x.kernel.n / x.area;
}

/* Sums of a run on an engine that keeps them in a memory of their own: with so
 * many channels, for rows [row, row + rows) of its result. */
Volume action_sums(const Plan *plan, const Action *a, uint32_t channels,
                   uint32_t row, uint32_t rows);
/* Whether it leaves sums there for the next run, and no result. */
bool keeps_for_next(const Plan *plan, const Action *a);

/* Whether it moves values between memories. */
static inline bool is_move(const Action *a) {
    return a->kind == ACTION_LOAD || a->kind == ACTION_STORE;
}

/* Whether it brings weights or biases. */
static inline bool loads_constants(const Action *a) {
    return a->kind == ACTION_WEIGHTS || a->kind == ACTION_BIAS;
}

#endif
