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
#include "alloc/spill/spill.h"
#include "alloc/tile/tile.h"
#include "pack/memo.h"
#include "plan/cost.h"

/* ---- tensor_bytes.c: what nodes cost ---- */

/* Traffic.weights if each node reads its own once. */
uint64_t weights_once(const Work *w);
/* A byte over DDR counts as often as this the cycles that it takes: fewer bytes
 * are worth some time, but not any. */
enum { BYTE_PRICE = 10 };
uint64_t node_work(const Work *w, NodeId id);

/* ---- bank_spread.c: free memory for less waiting ---- */

/* Moves buffers of a placement apart. */
void spread(Work *w, Problem *problem, PlanResult *result);
/* Where sums read both operands at once, if they lie in two partitions: what
 * lies in a partition of the memory that it was placed in goes to the same one
 * of a larger memory, if all of it can. */
void partitions_keep(Work *w, const Problem *problem, PlanResult *result,
                     const HwMemory *real);

/* ---- lower.c ---- */

/* False, with an error, when an external memory is too small. */
bool actions_make(Work *w, Diag *diag, const Problem *problem,
                  const PlanResult *result, Plan *plan);

/* ---- refusal.c ---- */

/* Says why nothing fits. */
void explain(Diag *diag, Work *w, const Problem *problem,
             const PlanResult *result);
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

/* ---- ladder.c ---- */

/* Networks of more steps have fewer plans. */
enum { MANY_STEPS = 200 };

/* Whether plans for the machine are weighed by time beside bytes. */
bool time_counts(const Schedule *schedule, const PlanOptions *options);

/* ---- alloc.c ---- */

/* Whether there is any plan for the machine, of no more instructions than it
 * holds. `once`: as in work_new; `less`: bytes of its first memory in which
 * there is none, where tiles do not grow with that; or 0. */
bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Once *once, uint64_t less);
/* A plan of volumes alone, not judged; as plan_make. */
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
/* way.c: the machine with another size of its first memory; tile buffers are
 * fractions of it. */
const HwSpec *spec_within(Arena *arena, const HwSpec *spec, uint64_t size);
/* way.c: the schedule on the real machine, with tiles as they were planned. */
const Schedule *schedule_tiled(Arena *arena, const Schedule *schedule,
                               const HwSpec *real, const HwSpec *planned);
/* One level, else two. */
bool work_fit(Work *w, Problem *problem, PlanResult *result,
              const char **planner, bool *two_levels);

/* Layers in groups that may take `share` sixteenths of active memory; false if
 * there are none. */
bool work_choose_groups(Work *w, uint32_t share);
/* With these. */
bool work_fit_groups(Work *w, Problem *problem, PlanResult *result,
                     const char **planner);

#endif
