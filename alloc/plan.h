/* plan.h - Schedule -> Plan: where every volume lies, when, and what moves.
 *
 * The Plan is an ordered list of actions over placements. A placement is a
 * tensor, or some of its rows, or some of its channels, in one memory at one
 * place; one tensor can have several. A volume that is part of a concat lies
 * inside its parent's volume.
 */
#ifndef ALLOC_PLAN_H
#define ALLOC_PLAN_H

#include "alloc/planner.h"
#include "base/budget.h"
#include "hwspec/lines.h"
#include "sched/sched.h"

typedef struct Placement {
    TensorId tensor;
    uint32_t row, rows;  /* rows [row, row + rows) of the tensor are held */
    uint32_t col, cols;  /* columns [col, col + cols) of these */
    uint32_t c, n_c;     /* channels [c, c + n_c) of it: what a move moves */
    bool ring;           /* row r is row r % whole.h of `whole`, not r - row */
    LineBuffer lines;    /* band > 0: `whole` is one row, of its pixels */
    uint32_t memory;     /* index in spec->memory */
    uint64_t offset;     /* bytes: start of `whole` in that memory */
    uint64_t later;      /* by so many more than in Plan.planned_in */
    Volume whole;        /* the enclosing volume: the tensor itself, a plank of
                          * it (h = rows), or the parent of a concat */
    uint32_t part_c;     /* where channel c of the tensor lies in `whole` */
    uint64_t bytes;      /* of `whole` */
    uint32_t buffer;     /* placements with the same number share their bytes
                          * on purpose (concat, in place); memories apart */
    uint32_t first, end; /* indices in schedule->step: half-open */
} Placement;

typedef enum ActionKind {
    ACTION_LOAD,   /* in[0] (backing or input memory) -> out (active) */
    ACTION_STORE,  /* in[0] (active) -> out (backing or output memory) */
    ACTION_RUN,    /* an engine computes `node`, or a tile of it */
    ACTION_COPY,   /* an engine copies rows of in[0] to out, a volume of just
                    * these, both active: max pooling of single pixels */
    ACTION_CONCAT, /* nothing moves: out is complete now */
    ACTION_HOST,   /* the host computes `node` in input/output/backing memory */
    ACTION_WEIGHTS /* block `weights` of `node` -> the first active memory */
} ActionKind;

/* Hardware tiles of channels, too: nest.c. */
typedef struct Nest {
    uint32_t c, in_c; /* channels of a tile; 0: it has all, and is no nest */
    bool weights_stay;
    uint64_t input[2], weights[2], sums; /* bytes in active memory */
    uint64_t over; /* 0, or the bytes of tiles that are too many */
} Nest;

/* Weights of a layer's output channels [c, c + n_c), `taps` of each, in the
 * first active memory, from one load on. */
typedef struct WeightBlock {
    NodeId node;
    uint32_t c, n_c, taps;
    uint64_t offset, bytes;
} WeightBlock;

typedef struct Action {
    ActionKind kind;
    uint32_t step; /* listing's step number, from 1 */
    NodeId node;   /* RUN, WEIGHTS, CONCAT, HOST; else NO_NODE */
    Legal legal;   /* RUN, COPY, HOST */
    uint32_t n_in;
    const uint32_t *in; /* placements */
    uint32_t out;       /* placement; WEIGHTS: of the layer's result */
    uint32_t weights;   /* WEIGHTS, RUN: 1 + number of the block; 0: none */
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
    uint32_t at;    /* index in schedule->step */
    /* hardware tiling */
    int32_t style; /* index in spec->tiling.style; -1: none */
    uint32_t tile_w, tile_h;
    Nest nest;
    Repl tile_repl; /* of the input tiles, on the way from `in` */
} Action;

typedef struct Plan {
    const Schedule *schedule;
    uint32_t n_placements;
    const Placement *placement;
    uint32_t n_actions;
    const Action *action;
    uint32_t n_blocks;
    const WeightBlock *block;
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
    bool lends;                /* bytes of concats serve others until their
                                * members are written */
    const char *planner;       /* of the active memories */
    uint64_t am_planned;       /* bytes of the first active memory for which it
                                * was made, if that was a smaller one; else 0 */
    const HwMemory *planned_in; /* that memory, or NULL: what engines wait for,
                                 * they wait for in both */
    uint64_t am_height;        /* bytes, summed over active memories */
    uint64_t am_packed;        /* the same before volumes were moved apart */
    uint64_t am_live;          /* live peak, sizes rounded to their alignment,
                                * but no more than the height */
    uint64_t am_bound;         /* no placement is lower */
    bool am_proved;            /* am_packed is the least possible */
    uint64_t ddr_moved;        /* bytes loaded and stored, tiles included */
    uint64_t ddr_compulsory;   /* of these, what no plan can do without */
    uint64_t ddr_bound;        /* no plan in this order moves less: proved */
    uint64_t ddr_once;   /* none in any order that computes nothing twice */
    uint64_t ddr_again;  /* bytes of results that it computes again */
    uint64_t ddr_layers; /* the same of plans that complete each layer before
                          * the next begins, and compute nothing twice */
    uint64_t cycles;     /* by the plan's own clock, where transfers overlap
                          * layers; else 0 */
    uint32_t rejected;   /* plans that were to be the answer before this one,
                          * and that the judge found wrong: our mistakes */
    uint64_t memory_used[PLAN_MAX_POOLS * 2]; /* by memory: highest byte + 1 */
} Plan;

/* Cycles that a plan takes; UINT64_MAX: it breaks a rule. */
typedef uint64_t PlanCycles(void *context, const Plan *plan);
/* As plan_judge. */
typedef const char *PlanJudge(Arena *arena, const Plan *plan);

/* Where plans are looked for: among those for many sizes, of which the best is
 * taken; if that finds none, any for the memory's own size. */
typedef enum PlanWhere { PLAN_BOTH, PLAN_CHOSEN, PLAN_OWN } PlanWhere;

typedef struct PlanOptions {
    const char *planner;   /* "auto" */
    bool replication;      /* the rule of facts/xdnn.md 2.4, or none */
    bool layer_by_layer;   /* none run together by stripes */
    uint64_t aside;        /* bytes of the first memory that its size lacks, as
                            * weights must have them: */
    const char *aside_for; /* the layer whose smallest block is the largest */
    bool no_remedy; /* what does not fit asks for no size that would do */
    /* or NULL; by tensor id: how it is stored, all zero: by the rule */
    const Repl *chosen;
    /* or NULL; by node id: it is to read its input by tiles from backing
     * memory, with the copies that can be made on the way */
    const bool *fly;
    uint32_t images;    /* of the listing that this is the plan of one of; 0:
                         * just one */
    PlanCycles *cycles; /* or NULL: then bytes alone decide between plans */
    void *context;
    PlanJudge *judge; /* NULL: plan_judge */
    PlanWhere where;
    /* plan_make's own: what searches may still do, NULL: anything; what a
     * refusal's advice is for */
    Budget *budget;
    const struct Asked *asked;
} PlanOptions;

/* NULL after errors. When nothing fits: one error with the explanation
 * (step, volumes, bytes each, bytes short, the remedy if wanted), and
 * *does_not_fit. */
const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *real,
                      const PlanOptions *options, bool *does_not_fit);

/* The plan of one image so many times, over a schedule that sched_repeat has
 * made, on the same machine, which may hold more instructions; where transfers
 * run beside layers, those of one image beside layers of others. NULL after
 * errors; *does_not_fit: in memories, or as instructions. */
const Plan *plan_images(Arena *arena, Diag *diag, const Plan *one,
                        const Schedule *schedule, uint32_t images,
                        bool *does_not_fit);

/* The judge of whole plans, in release builds too: replays the actions over
 * byte ranges; every operand was written before it is read, and nothing alive
 * is overwritten. NULL if right, else a sentence. Shares no code with the
 * rest. */
const char *plan_judge(Arena *arena, const Plan *plan);

/* Text of the plan: placements, then actions. */
const char *plan_print(Arena *arena, const Plan *plan);

/* The highest bound of those that hold for the plan. */
typedef struct PlanBound {
    uint64_t bytes;
    const char *of; /* "no plan ... moves less" */
} PlanBound;
PlanBound plan_bound(const Plan *plan);

/* Of machines that load weights into active memory. */
typedef struct PlanWeights {
    uint32_t blocks; /* loads of weights; 0: there are none */
    uint64_t loaded; /* bytes, in all */
    uint64_t most;   /* that are loaded and not yet read for the last time */
    uint64_t end;    /* of the first memory: none lies beyond */
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

/* Whether it moves values between memories. */
static inline bool is_move(const Action *a) {
    return a->kind == ACTION_LOAD || a->kind == ACTION_STORE;
}

/* C x H x W of a tensor. */
static inline Volume plan_volume(const Graph *g, TensorId tensor) {
    Volume v = {0};
    shape_chw(&graph_tensor(g, tensor)->shape, &v.c, &v.h, &v.w);
    return v;
}

#endif
