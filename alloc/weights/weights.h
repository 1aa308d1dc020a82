/* weights.h - weights in active memory, and loads ahead of the layers that need
 * them, on machines with a queue; private to alloc.
 */
#ifndef ALLOC_WEIGHTS_WEIGHTS_H
#define ALLOC_WEIGHTS_WEIGHTS_H

#include "alloc/overlap/overlap.h"
#include "plan/issue_queue.h"
#include "plan/placements.h"

/* ---- free_space.c: what volumes leave ---- */

/* Bytes that no volume has while an action is at work. */
typedef struct Room {
    uint64_t between; /* the longest range between volumes, or below them */
    uint64_t end;     /* above this all are free */
} Room;
/* By action, of a plan whose actions run one behind the other. */
const Room *rooms_of(Arena *arena, const Plan *plan);
/* The longest range in a memory of `size` bytes. */
static inline uint64_t room_longest(Room room, uint64_t size) {
    uint64_t above = size > room.end ? size - room.end : 0;
    return above > room.between ? above : room.between;
}

/* What goes by bands behind that which makes it: nothing, what is stored
 * behind its layer, or behind a tile of it, too. */
typedef enum BandStores {
    STORES_WHOLE,
    STORES_OF_LAYERS,
    STORES_OF_TILES
} BandStores;
/* How loads are brought forward. */
typedef struct StageWay {
    uint32_t bands; /* of bands_make; 0: none */
    BandStores stores;
    uint32_t share; /* of blocks_make */
    bool evicts;    /* blocks that are used again make room for loads ahead */
    bool fastest;   /* of homes_choose */
} StageWay;
/* ---- weight_blocks.c: layers by slices of output channels ---- */

/* The plan's actions, of which those that have weights run by slices: blocks
 * that have no place yet. */
typedef struct Sliced {
    uint32_t n_slices;
    const ConstantBlock *slice;
    const uint32_t *slice_of; /* by action: index in slice; NONE */
} Sliced;

/* Bytes of the smallest block that the node, on its engine, can run by. */
uint64_t block_least(const HwSpec *spec, const Graph *g, const Slot *slot);
/* Of a machine with a memory for weights: no block of the node is smaller. */
uint64_t block_floor(const HwSpec *spec, const Graph *g, const Slot *slot);
/* Bytes of a first memory in which each layer has room for its smallest block,
 * or, where weights lie elsewhere, that volumes take. */
uint64_t blocks_need(const Plan *plan, const Room *room);
/* Gives the plan sliced actions, in `arena`. `room`: by action; no block takes
 * more than `share` sixteenths of the longest free range beside the volumes of
 * its layer. False if one does not fit. */
bool blocks_make(Arena *arena, Plan *plan, const Room *room, StageWay way,
                 Sliced *out);

/* ---- weight_homes.c ---- */

/* Where each slice is loaded from; `fastest`: from the fastest memory that has
 * room, whatever else its wires do. False if some have no room there. */
bool homes_choose(Arena *arena, const Plan *plan, bool fastest, Sliced *sliced);

/* ---- row_bands.c ---- */

/* A plan of volumes whose transfers go by bands. */
typedef struct Banded {
    Budget *budget; /* of the search that it is for; or NULL */
    uint32_t n;     /* as in bands_make */
    BandStores stores;
    Plan plan;
    const Room *room; /* by action */
    uint64_t moved;   /* bytes */
} Banded;
/* What is loaded for the layer behind comes by n bands of rows, and `stores` go
 * by as many; layers and tiles run by them, where they can. */
Banded bands_make(Arena *arena, const Plan *plan, uint32_t n,
                  BandStores stores);

/* Whether the run may make any of its rows by themselves, in place. */
bool bands_may(const Plan *plan, const Action *run);
/* Whether its rows that read `need` can be: they read more than padding, and
 * nothing that it does not. */
bool band_reads_alone(Rows need, const Action *run);
/* The run that makes rows [row, row + rows) of it, and reads `need`. */
Action band_of_run(Arena *arena, Placements *all, const Action *run,
                   uint32_t row, uint32_t rows, Rows need);

/* ---- free_space.c: where volumes lie, and when ---- */

typedef struct Stays {
    VEC(HeldBytes) at;
    uint32_t *of_load; /* by action: the stay that a load begins, or NONE */
    uint32_t *order;   /* of them by `since` */
} Stays;
/* Of a plan whose actions run one behind the other. */
Stays stays_of(Arena *arena, const Plan *plan);

/* ---- weight_cache.c: which block lies where ---- */

/* A block in memory. */
typedef struct Held {
    Reach bytes;
    uint32_t slice, block; /* index; 1 + number */
    uint32_t until; /* action: until it has run, the block has to stay; then it
                     * may, for a later use, */
    uint32_t again; /* by this action; NONE */
} Held;

typedef struct Holds {
    Arena *arena;
    const Plan *plan;
    Stays stays;
    VEC(uint32_t) order;       /* stays that nobody began early, by since */
    VEC(uint32_t) early;       /* the others */
    uint32_t passed;           /* so many of `order` are over */
    InUses near;               /* by stays from `front` to `use` */
    uint32_t front, use, seen; /* so many of `order` were there */
    VEC(Held) held;
    VEC(ConstantBlock) block;
} Holds;
void holds_open(Holds *h, Arena *arena, const Plan *plan);
/* A load is at work from action `front` on, not when it was planned. */
void holds_begin_early(Holds *h, uint32_t load, uint32_t front);
/* Whether bytes that it would write are those of a block that has to stay. */
bool holds_block(const Holds *h, Reach bytes, uint32_t front);
/* Volumes are written there: what lay there is gone. */
void holds_drop(Holds *h, Reach bytes);
/* The slice's block, if it is there and can stay for `use`: then it has to. */
uint32_t holds_find(Holds *h, uint32_t slice, uint32_t front, uint32_t use,
                    uint32_t again);
/* Where to load the slice for `use`, the actions before `front` being over but
 * for what `busy` bytes are still needed for. */
typedef struct Wanted {
    const ConstantBlock *slice;
    uint32_t number, use, again, front;
    uint32_t n_busy;
    const Reach *busy;
    bool evicts; /* blocks that are used again may go */
} Wanted;
/* Places are wanted from `front` to `use`, which never fall. */
void holds_reach(Holds *h, uint32_t front, uint32_t use);
/* There, or longer. */
bool holds_place(const Holds *h, const Wanted *w, const Queue *queue,
                 uint64_t now, Reach *out);
/* Puts it there; what lay there is gone. Its number + 1. */
uint32_t holds_put(Holds *h, const Wanted *w, Reach bytes);

/* ---- biases.c ---- */

/* Adds loads of biases to a plan whose weights are loaded. */
void biases_add(Arena *arena, Plan *plan);

/* ---- sums.c ---- */

/* Whether sums of so many channels of rows [row, row + rows) have room. */
bool sums_fit(const Plan *plan, const Action *a, uint32_t channels,
              uint32_t row, uint32_t rows);
/* Gives runs of a plan whose weights are loaded places for their sums; false if
 * those that others go on with have no room beside each other. */
bool sums_give(Arena *arena, Plan *plan);

/* ---- weight_schedule.c ---- */

/* Plans beyond that are of no use: it has to cost less by some objective. */
typedef struct StageMost {
    PlanCost cost[PLAN_OBJECTIVES];
} StageMost;
typedef enum Staged {
    STAGED,
    STAGE_DEAR,  /* it costs too much */
    STAGE_STUCK, /* blocks of this size do not fit */
    STAGE_FULL   /* nor do smaller ones */
} Staged;
/* Gives the plan loads of weights, and orders its transfers. `most`: NULL: it
 * may cost anything. */
Staged stage(Arena *arena, const Banded *banded, StageWay way,
             const StageMost *most, Plan *out);

/* The same of what that has left in Plan.sliced, or of several such plans, one
 * behind the other; of weights so many bytes stay from one to the next. */
Staged stage_again(Arena *arena, const Plan *plan, bool evicts, uint64_t keeps,
                   Plan *out);

#endif
