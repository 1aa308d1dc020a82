/* alias.h - volumes, who shares a buffer, and when it is alive; private.
 *
 * From roles of tensors to units, from units and modes to the problem that the
 * planners are asked.
 */
#ifndef ALLOC_ALIAS_ALIAS_H
#define ALLOC_ALIAS_ALIAS_H

#include "alloc/alias/decisions.h"
#include "base/arith.h"

/* ---- tensor_bytes.c: geometry ---- */

/* The tensor's volume as it lies in a memory. */
Volume volume_in(const Work *w, TensorId tensor, uint32_t memory);
/* Rows of it. */
Volume plank_in(const Work *w, TensorId tensor, uint32_t rows, uint32_t memory);
/* Bytes for a volume in each pool, rounded up to whole buffers where the
 * memory has such; 0 where it cannot lie. `spans`: may take several. */
void pool_bytes(const Work *w, TensorId tensor, uint32_t rows, bool spans,
                uint64_t bytes[PLAN_MAX_POOLS]);
/* The same of any volume, where buffers of one are not spanned. */
void volume_pool_bytes(const Work *w, Volume v, uint64_t bytes[PLAN_MAX_POOLS]);
/* The least of them that is allowed, aligned; UINT64_MAX if none is. */
uint64_t least_bytes(const Work *w, const uint64_t bytes[PLAN_MAX_POOLS],
                     uint32_t memories);
Pool pool_of(const HwMemory *memory);
uint64_t active_bytes(const Work *w); /* what whole buffers leave of them */
/* Active memories that the node's engine reaches: bits. */
uint32_t reach(const Work *w, NodeId node);
bool on_engine(const Work *w, NodeId node); /* runs there: no concat */
bool is_placed(const Work *w, NodeId node); /* a concat by placement */
/* Fills repl of every role. */
void replication_choose(Work *w);

/* Whether no engine makes it. */
static inline bool from_outside(const Work *w, TensorId t) {
    Origin origin = w->role[t.i].origin;
    return origin == FROM_INPUT || origin == FROM_HOST;
}

/* ---- alias.c: who shares a buffer ---- */

void roles_make(Work *w);
void units_make(Work *w);
/* Whether the node's result, of the operand's shape, may take its place, were
 * nobody else to read it. */
bool takes_in_place(const Work *w, NodeId id, TensorId operand);
/* The result takes the place of another operand than this; false if it cannot.
 */
bool place_instead(Work *w, NodeId id, TensorId operand);
/* The tensor's first channel in its unit's volume. */
uint32_t channel_in_unit(const Work *w, const Unit *unit, TensorId t);
/* Members become units of their own. False if the memories cannot hold parts
 * of the volume. */
bool unit_dissolve(Work *w, uint32_t unit);
/* The outermost dissolved concat that the tensor is part of, or itself; *c is
 * its first channel there. */
TensorId home_of(const Work *w, TensorId tensor, uint32_t *c);

/* A part of `n` channels from channel `c` on starts at a granule of its own, at
 * an address that the listing can write, and lies as a volume of its own. */
bool part_has_address(const HwMemory *memory, const Volume *whole, uint32_t c,
                      uint32_t n);
/* It does, and starts as volumes of active memories do. */
bool part_is_volume(const HwMemory *memory, const Volume *whole, uint32_t c,
                    uint32_t n);
/* Parts of the whole volume, of `q` channels each, have that in every active
 * memory, and start aligned there. */
bool volume_cuts(const Work *w, TensorId t, uint32_t q);

/* ---- buffers.c: touches and lifetimes -> problem ---- */

typedef struct Times {
    uint32_t first, end;
} Times;

void touches_make(Work *w, Unit *unit);
/* Whether the node takes the operand by rows that may be copied from a volume
 * that stays. */
bool takes_rows(const Work *w, NodeId node, TensorId in);
/* Whether what the node writes by parts is to be loaded into the concat that it
 * is part of. */
bool result_lands(const Work *w, NodeId node);
/* From a whole touch to the next one, or to the last that reads rows. */
typedef struct Away {
    uint32_t next;      /* touch: the next whole one, or n_touches */
    uint32_t n_by_rows; /* touches on the way */
    uint32_t end;       /* time at which it ends */
} Away;
/* False if the unit has to leave before any of them. */
bool away_find(const Work *w, const Unit *unit, uint32_t touch, Away *away);
/* After modes of nodes at the step have changed. */
void touches_refresh(Work *w, uint32_t step);
/* The same of all units. */
void touches_refill(Work *w, uint32_t step);
/* A touch of the unit at a step at which it has none; touches_refill fills it.
 */
void touch_insert(Work *w, Unit *unit, uint32_t step);
void problem_make(Work *w, Problem *out);
/* Corrects the problem's `live`, and no more, after a gap of the unit leaves;
 * false if it could not. problem_make must follow. */
bool live_follow(Work *w, Problem *p, uint32_t unit);
/* Adds to the problem's `live` what the unit has as it is now, or takes it
 * away; false if no memory holds a part of that. problem_make must follow. */
bool live_unit(Work *w, Problem *p, uint32_t unit, bool add);
/* Whether it is a concat of which all is alive at the time, though not all of
 * it is written. */
bool waits_empty(const Unit *unit, uint32_t time);
/* The same though not all of it is needed any more. */
bool waits_for_part(const Work *w, const Unit *unit, uint32_t time);
/* Channels of the unit up to the last that is there behind the touch and
 * touched later. */
uint32_t wanted_behind(const Work *w, const Unit *unit, uint32_t touch);
/* Sums `live` again, after buffers have changed. */
void live_make(Problem *problem);
/* Where a tensor's values must go as soon as they are there; `streamed`: they
 * are written by tiles, not kept in active memory. */
typedef struct Dests {
    bool home;   /* its place in backing memory */
    bool output; /* its region in the output memory */
} Dests;
Dests dests_of(const Work *w, TensorId tensor, bool streamed);

#endif
