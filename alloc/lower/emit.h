/* emit.h - the actions of a plan, while they are written; private to alloc. */
#ifndef ALLOC_LOWER_EMIT_H
#define ALLOC_LOWER_EMIT_H

#include "alloc/lower/dram_layout.h"
#include "alloc/spill/spill.h"
#include "plan/placements.h"

enum { FIRST_STEP = 1 }; /* of the listing */

typedef struct Emit {
    const Facts *f;
    const Decisions *d;
    Attempt *a; /* may be given up */
    Arena *arena;
    const Buffers *buffers;
    const PackResult *result;
    Regions regions;
    Placements placement;
    VEC(uint32_t) region_of; /* by placement; NONE in active memory */
    VEC(Action) action;
    uint32_t *present; /* by tensor: its placement in active memory, or NONE */
    uint32_t *copy;    /* by tensor: a placement that can be loaded, or NONE */
    uint32_t *output;  /* by tensor: its placement in the output memory */
    uint32_t *stored;  /* by tensor: how many of its last channels are home, or
                        * of its first: Alias class.retains_end */
    uint32_t *home;    /* by tensor: its region in backing memory, or NONE */
    bool lost;         /* it cannot be made as was decided */
    uint32_t step, number;
} Emit;

/* ---- emit.c: placements, and actions over them ---- */

/* In a region; the tensor's first channel there is `part_c`. */
uint32_t emit_outside(Emit *e, TensorId t, uint32_t region, uint32_t part_c);
/* In a buffer, `at` bytes from its start; of all channels. */
uint32_t emit_place(Emit *e, uint32_t buf, uint64_t at, Placement p);
/* Rows of a tensor in a buffer of their own, for this step. */
uint32_t emit_row_tile(Emit *e, uint32_t buf, TensorId t, uint32_t row,
                       uint32_t rows);
/* Where rows of a tensor lie: from channel `c` of rows of `root` on, which is
 * the tensor or a concat. */
typedef struct RowTile {
    uint32_t buf, c;
    TensorId root;
} RowTile;
/* The same there. */
uint32_t emit_part(Emit *e, RowTile at, TensorId t, uint32_t row,
                   uint32_t rows);
/* Channels [c, end) of what a placement holds. */
uint32_t emit_channels(Emit *e, uint32_t placement, uint32_t c, uint32_t end);
/* The tensor's alias class; the alias class's residency interval at this step,
 * or NULL; the tensor's place in a residency interval, and in the one at this
 * step. */
AliasClass *emit_alias(const Emit *e, TensorId t);
const Residencies *emit_stays(const Emit *e, const AliasClass *alias);
const Residency *emit_residency(const Emit *e, const AliasClass *alias);
uint32_t emit_in_residency(Emit *e, TensorId t, const Residency *s);
uint32_t emit_resident(Emit *e, TensorId t);
/* Rows of a tensor that is there: of its volume, as if that were a ring. */
uint32_t emit_view(Emit *e, TensorId t, uint32_t row, uint32_t rows);

/* An action over all of the result, not added yet. */
Action emit_new(const Emit *e, ActionKind kind, uint32_t n_in,
                const uint32_t *in, uint32_t out);
void emit_action(Emit *e, Action a);
/* Whether there are too many actions for anybody to want them: concats and
 * layers of the host may not be in the listing. */
bool emit_gives_up(Emit *e);
void emit_move(Emit *e, ActionKind kind, uint32_t from, uint32_t to,
               uint32_t row, uint32_t rows);
/* All rows of the placement `to`; the pixels of the placement `from`. */
void emit_move_all(Emit *e, ActionKind kind, uint32_t from, uint32_t to);
void emit_move_from(Emit *e, ActionKind kind, uint32_t from, uint32_t to);
/* An engine copies the rows of the placement `to`. */
void emit_copy(Emit *e, uint32_t from, uint32_t to);

/* ---- value_locations.c: where values are ---- */

/* A placement from which the tensor can be loaded: its own, or its part of a
 * concat's; NONE if there is none. */
uint32_t emit_source(Emit *e, TensorId t);
/* The same; it is stored if there is none. */
uint32_t emit_readable(Emit *e, TensorId t);
/* Its place in backing memory; in the output memory. */
uint32_t emit_home(Emit *e, TensorId t);
uint32_t emit_output(Emit *e, TensorId t);
/* Where a result that streams must go: at most two placements. *home: that in
 * backing memory, or NONE. */
uint32_t emit_targets(Emit *e, TensorId t, uint32_t to[2], uint32_t *home);
/* Stores what is there wherever it must go as soon as it is. */
void emit_store(Emit *e, TensorId t);
/* The rows of the row tile: copied from what is resident of the tensor, loaded
 * what is not. Returns the place from which they are loaded, or NONE. */
uint32_t emit_rows_into(Emit *e, uint32_t row_tile);
/* A unit of which channels have stayed is whole again as soon as it is
 * touched. */
void emit_return(Emit *e, TensorId t);
/* Loads the tensor if it is not there. */
void emit_load(Emit *e, TensorId t);
/* What was written by parts is brought to its place in a concat. */
void emit_land(Emit *e, TensorId t);
/* Makes the tensor present; a cascade fills it. */
void emit_made(Emit *e, TensorId t);
/* The node's result in active memory, whole: present from now on. */
uint32_t emit_result(Emit *e, NodeId id);
/* Of an alias class whose residency interval ends here: stores what is needed
 * again. */
void emit_leave(Emit *e, TensorId t);

/* ---- redundant_moves.c ---- */

/* All are written: without those that move what is there already. */
void emit_drop_needless(Emit *e);

/* ---- channels.c ---- */

/* All are written: gives each region its memory, where there are several
 * backing ones. */
void emit_spread(Emit *e);

/* ---- runs.c: nodes ---- */

/* A run of the node over whole operands, not added yet. */
Action emit_run_new(Emit *e, NodeId id, const uint32_t *in, uint32_t out);
/* The first buffer of a cascade that rolls. */
uint32_t cascade_first_buf(const Emit *e, const Cascade *g);
/* The first buffer of the row tiles of that tile: two sets take turns. */
uint32_t emit_first_buf(const Emit *e, NodeId node, uint32_t tile);
/* All runs of the node, by its mode. */
void emit_run(Emit *e, NodeId id);

/* ---- channel_tiles.c ---- */

/* A node by channel tiles; a fused pair, by its second node. */
void emit_channel_tiles(Emit *e, NodeId id);
void emit_pair(Emit *e, NodeId id);

/* ---- boxes.c ---- */

/* A node by boxes. */
void emit_boxes(Emit *e, NodeId id);

/* ---- cascades.c: cascades, whose nodes take turns ---- */

/* Where a result is stored. */
typedef struct Target {
    uint32_t to[2], n, home; /* home: that of `to` from which it can be read */
} Target;
typedef struct CascadeRuns {
    Emit *e;
    const Cascade *g;
    uint32_t *done, *all; /* by node: runs so far, and in all */
    Target *target;       /* by node */
} CascadeRuns;
/* Makes present what is kept whole; `all` is left to be filled. */
CascadeRuns emit_cascade_begin(Emit *e, const Cascade *g);
/* The next run of node i, and the stores of what it makes. */
void emit_cascade_run(CascadeRuns *runs, uint32_t i, Action a);
/* What was stored can be read from there. */
void emit_cascade_end(CascadeRuns *runs);
/* The placement's region is in use while any of the cascade is. */
void emit_use_throughout(Emit *e, const Cascade *g, uint32_t placement);
void emit_cascade(Emit *e, const Cascade *cascade);
/* rolling_rows.c, rolling_columns.c: cascades with rings; with line buffers. */
void emit_rings(Emit *e, const Cascade *cascade);
void emit_lines(Emit *e, const Cascade *cascade);

#endif
