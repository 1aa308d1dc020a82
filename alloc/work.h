/* work.h - what the files of alloc share while one plan is made; private.
 *
 * The values that they work on are in decisions.h; alias.h, tile.h, cascade.h
 * and spill.h tell what the files do with them, each a room of its own. Here is
 * what begins and ends a plan.
 */
#ifndef ALLOC_WORK_H
#define ALLOC_WORK_H

#include "alloc/alias/alias.h"
#include "alloc/alias/decisions.h"
#include "alloc/cascade/cascade.h"
#include "alloc/explain/advice.h"
#include "alloc/spill/spill.h"
#include "alloc/tile/tile.h"
#include "pack/memo.h"
#include "plan/cost.h"

/* ---- tensor_bytes.c: what nodes cost ---- */

/* A byte over DDR counts as often as this the cycles that it takes: fewer bytes
 * are worth some time, but not any. */
enum { BYTE_PRICE = 10 };
uint64_t node_work(const Work *w, NodeId id);

/* ---- bank_spread.c: free memory for less waiting ---- */

/* Moves buffers of a placement apart. */
void spread(Work *w, Problem *problem, PlanResult *result);

/* ---- lower.c ---- */

/* False, with an error, when an external memory is too small. */
bool actions_make(Work *w, Diag *diag, const Problem *problem,
                  const PlanResult *result, Plan *plan);

/* ---- refusal.c ---- */

/* Says why nothing fits. */
void explain(Diag *diag, Work *w, const Problem *problem,
             const PlanResult *result);
/* Sizes that a first active memory could have are multiples of this. */
uint64_t size_granule(const HwMemory *m);
/* "--set ... would do; ... would not", or as much of that as is known. */
void note_advice(Arena *arena, Diag *diag, const char *memory,
                 SizeAdvice advice);
/* Bytes that something takes, of a refusal: what lies highest need not end at a
 * multiple of the alignment, so no more than would do. */
uint64_t bytes_said(const Work *w, uint64_t bytes);
/* Says that the shortest listing is longer than the machine holds. */
void explain_length(Diag *diag, Work *w, uint32_t instructions);

/* ---- refusal_tiles.c ---- */

/* How a node takes the smallest memory, on a machine that tiles by itself. */
typedef struct LeastTile {
    Mode mode;      /* whole, by tiles or by slabs; what it needs of it */
    uint64_t bytes; /* of the first active memory */
    uint64_t tile;  /* of these for a tile of the input, with `sums` for all */
    uint64_t kept;  /* and for operands that stay whole */
} LeastTile;
LeastTile least_tile(const Work *w, NodeId node);
/* That no tile fits, and how large the smallest is. */
void note_least_tile(Diag *diag, const Work *w, NodeId node,
                     const LeastTile *least);

/* ---- refusal_lines.c ---- */

/* The fewest bytes of line buffers in which the step rolls, by itself or with
 * its neighbours; UINT64_MAX if it cannot. */
uint64_t lines_wanted(const Work *w, uint32_t step);
/* What these are. */
void note_lines(Diag *diag, const Work *w, uint32_t step);

/* ---- min_memory.c ---- */

/* Bytes of the first active memory without which some step cannot run; 0 where
 * nobody knows. */
uint64_t never_less(const Work *w);

/* ---- bound.c ---- */

/* Fills ddr_compulsory, ddr_bound, ddr_once and ddr_layers. */
void bound_make(const Work *w, Plan *plan);

/* Longer networks are searched less. */
enum { MANY_STEPS = 200 };

/* ---- alloc.c ---- */

/* Whether there seems to be any plan for the machine, of no more instructions
 * than it holds: none is made to the end. `once`: as in work_new. */
bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Once *once);
/* What plan_make was asked. */
typedef struct Asked {
    const Schedule *schedule;
    const PlanOptions *options;
} Asked;
/* Whether plan_make would make a plan of what was asked, in so many bytes of
 * the first memory: made to the end, and judged. False, too, where the budget,
 * which it uses, ran out. */
bool plan_would_do(const Asked *asked, Budget *budget, uint64_t size);
/* A plan of volumes alone; as plan_make. */
Plan *plan_volumes(Arena *arena, Diag *diag, const Schedule *schedule,
                   const PlanOptions *options, bool *does_not_fit);
/* The work of planning, ready for fit_*. `once`: of another Work of the same
 * schedule and machine, but for its first memory's size; or NULL. */
Work *work_new(Arena *arena, const Schedule *schedule, const HwSpec *spec,
               const PlanOptions *options, const Once *once);
/* The tiles with which layers start that never run whole; as in Work. */
typedef struct Start {
    bool streams_first, tiny;
    uint32_t price;
} Start;
Work *work_new_with(Arena *arena, const Schedule *schedule, const HwSpec *spec,
                    const PlanOptions *options, const Once *once, Start start);
/* trial.c: the machine with another size of its first memory; tile buffers are
 * fractions of it. */
const HwSpec *spec_within(Arena *arena, const HwSpec *spec, uint64_t size);
/* One level, else two. */
bool work_fit(Work *w, Problem *problem, PlanResult *result,
              const char **planner, bool *two_levels);

/* Layers in groups; false if there are none. */
bool work_choose_groups(Work *w);
/* With these. */
bool work_fit_groups(Work *w, Problem *problem, PlanResult *result,
                     const char **planner);

#endif
