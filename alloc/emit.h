/* emit.h - what the files that write actions share; private to alloc. */
#ifndef ALLOC_EMIT_H
#define ALLOC_EMIT_H

#include "alloc/regions.h"

enum { FIRST_STEP = 1 }; /* of the listing */

typedef struct Emit {
    Work *w;
    Arena *arena;
    const Problem *problem;
    const PlanResult *result;
    Regions regions;
    VEC(Placement) placement;
    VEC(uint32_t) region_of; /* by placement; NONE in active memory */
    VEC(Action) action;
    uint32_t *present; /* by tensor: its placement in active memory, or NONE */
    uint32_t *copy;    /* by tensor: a placement that can be loaded, or NONE */
    uint32_t *output;  /* by tensor: its placement in the output memory */
    uint32_t *stored;  /* by tensor: how many of its last channels are home */
    uint32_t *home;    /* by tensor: its region in backing memory, or NONE */
    uint32_t step, number;
} Emit;

/* Rows of a tensor in a buffer of their own, for this step. */
uint32_t emit_plank(Emit *e, uint32_t buf, TensorId t, uint32_t row,
                    uint32_t rows);
/* The same within rows of the concat `root`, from its channel `c` on. */
uint32_t emit_part(Emit *e, uint32_t buf, TensorId t, TensorId root, uint32_t c,
                   uint32_t row, uint32_t rows);
/* The first buffer of the planks of that tile: two sets take turns. */
uint32_t emit_first_buf(const Mode *mode, uint32_t tile);
/* The rows of the plank: copied from what is resident of the tensor, loaded
 * what is not. Returns the place from which they are loaded, or NONE. */
uint32_t emit_rows_into(Emit *e, uint32_t plank);
void emit_move(Emit *e, ActionKind kind, uint32_t from, uint32_t to,
               uint32_t row, uint32_t rows);
/* All rows of the placement `to`. */
void emit_move_all(Emit *e, ActionKind kind, uint32_t from, uint32_t to);
/* A run of the node over whole operands, not added yet. */
Action emit_run_new(Emit *e, NodeId id, const uint32_t *in, uint32_t out);
void emit_action(Emit *e, Action a);
/* A placement outside from which the tensor can be read; it is stored if there
 * is none. */
uint32_t emit_readable(Emit *e, TensorId t);
/* Where a result that streams must go: at most two placements. *home: that in
 * backing memory, or NONE. */
uint32_t emit_targets(Emit *e, TensorId t, uint32_t to[2], uint32_t *home);

/* Rows of a tensor that is there: of its volume, as if that were a ring. */
uint32_t emit_view(Emit *e, TensorId t, uint32_t row, uint32_t rows);
/* Makes the tensor present; a group fills it. */
void emit_made(Emit *e, TensorId t);

/* A placement in a buffer, `at` bytes from its start; of all channels. */
uint32_t emit_place(Emit *e, uint32_t buf, uint64_t at, Placement p);
/* An engine copies the rows of the placement `to`. */
void emit_copy(Emit *e, uint32_t from, uint32_t to);
/* The pixels of the placement `from`. */
void emit_move_from(Emit *e, ActionKind kind, uint32_t from, uint32_t to);

/* Channels [c, end) of what a placement holds. */
uint32_t emit_channels(Emit *e, uint32_t placement, uint32_t c, uint32_t end);
/* The node's result in active memory, whole: present from now on. */
uint32_t emit_result(Emit *e, NodeId id);

/* emit_slabs.c: a node by slabs; a couple, by its second node. */
void emit_slabs(Emit *e, NodeId id);
void emit_couple(Emit *e, NodeId id);

/* emit_group.c: all that others read of a concat its members bring to its
 * place; where else it goes is left. */
void emit_drop_home(uint32_t to[2], uint32_t *n, uint32_t home);

/* emit_rings.c: where a result of a group that rolls is stored. */
typedef struct Target {
    uint32_t to[2], n, home;
} Target;
/* By node; makes present what is kept whole. */
Target *emit_roll_targets(Emit *e, const Group *g);
/* What was stored can be read from there. */
void emit_roll_done(Emit *e, const Group *g, const Target *target);

/* emit_group.c: the placement's region is in use while any of the group is. */
void emit_use_throughout(Emit *e, const Group *g, uint32_t placement);
/* emit_rings.c: all stripes of a group with rings. */
void emit_rings(Emit *e, const Group *group);
/* emit_lines.c: all tiles of a group with line buffers. */
void emit_lines(Emit *e, const Group *group);
/* emit_group.c: all stripes of the group. */
void emit_group(Emit *e, const Group *group);

#endif
