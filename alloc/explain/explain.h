/* explain.h - why nothing fits, and what would do. */
#ifndef ALLOC_EXPLAIN_EXPLAIN_H
#define ALLOC_EXPLAIN_EXPLAIN_H

#include "alloc/explain/advice.h"
#include "alloc/search/search.h"

/* ---- refusal.c ---- */

/* Says why nothing fits. */
void explain(Diag *diag, Attempt *a);
/* Sizes that a first active memory could have are multiples of this. */
uint64_t size_granule(const HwMemory *m);
/* What the hwspec says of a memory of which each core has `part` bytes. */
uint64_t bytes_of_cores(const HwSpec *spec, uint32_t memory, uint64_t part);
/* "--set ... would do; ... would not", or as much of that as is known. */
void note_advice(Arena *arena, Diag *diag, const HwSpec *spec,
                 uint32_t memory, SizeAdvice advice);
/* Bytes that something takes, of a refusal: what lies highest need not end at a
 * multiple of the alignment, so no more than would do. */
uint64_t bytes_said(const Attempt *a, uint64_t bytes);
/* Says that the shortest listing is longer than the machine holds. */
void explain_length(Diag *diag, Attempt *a, uint32_t instructions);

/* ---- refusal_tiles.c ---- */

/* How a node takes the smallest memory, on a machine that tiles by itself. */
typedef struct LeastTile {
    Mode mode; /* whole, by tiles or by channel tiles; what it needs of it */
    uint64_t bytes; /* of the first active memory */
    uint64_t tile;  /* of these for a tile of the input, with `sums` for all */
    uint64_t kept;  /* and for operands that stay whole */
} LeastTile;
LeastTile least_tile(const Decisions *d, NodeId node);
/* That no tile fits, and how large the smallest is. */
void note_least_tile(Diag *diag, const Attempt *a, NodeId node,
                     const LeastTile *least);

/* Bytes of the part of the tensor that the owner holds, in the memory where it
 * takes the fewest of those where it may lie, even if that cannot hold it. */
uint64_t least_volume(const Facts *f, TensorId t, const Owner *o);
/* Bytes of the node's smallest box, with what it reads; UINT64_MAX if its
 * stripes are as small. */
uint64_t boxes_wanted(const Facts *f, NodeId node);
/* Whether boxes of the node are smaller than its stripes: how small. */
bool note_boxes(Diag *diag, const Attempt *a, NodeId node);

/* ---- refusal_lines.c ---- */

/* The fewest bytes of line buffers in which the step rolls, by itself or with
 * its neighbours; UINT64_MAX if it cannot. */
uint64_t lines_wanted(const Decisions *d, uint32_t step);
/* What these are. */
void note_lines(Diag *diag, const Decisions *d, uint32_t step);

/* ---- advice_weights.c ---- */

/* Sizes of the first memory of which the larger one would do for tensors and
 * weights. */
SizeAdvice size_staged(const Asked *asked);
/* Whether the memories that weights come from hold less than all of them. */
bool weights_outside_too_large(Arena *arena, Diag *diag,
                               const Schedule *schedule, bool says);

/* ---- small_roles.c ---- */

/* Whether a memory of role weights, bias or sums holds less than a layer takes
 * at the least; `says`: an error. */
bool roles_too_small(Arena *arena, Diag *diag, const Schedule *schedule,
                     const PlanOptions *options, bool says);
/* Which of them is too small where volumes by themselves fit. */
void explain_roles(Arena *arena, Diag *diag, const Schedule *schedule,
                   const PlanOptions *options);

#endif
