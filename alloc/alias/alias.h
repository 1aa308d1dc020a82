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
uint32_t reach(const Work *w, NodeId node, HwOperand operand);
/* The same of a tensor that the node reads or makes: where all these operands
 * may lie. */
uint32_t reach_of(const Work *w, NodeId node, TensorId t);
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

/* ---- modes.c: what modes of nodes mean for tensors ---- */

/* Sets the modes of nodes on engines that work ahead: these read their inputs
 * from where they lie. */
void ahead_choose(Work *w);
bool runs_ahead(const Work *w, NodeId node);
/* Whether it may be written while other images are at work. */
bool made_ahead(const Work *w, TensorId t);
/* Whether the tensor passes from one of a pair of layers to the other. */
bool couple_passes(const Work *w, TensorId t);
/* The other node of the pair; NO_NODE if it is in none. */
NodeId couple_partner(const Work *w, NodeId node);
/* Bytes of active memory that the first channels of the unit's volume take:
 * whole granules. */
uint64_t kept_bytes(const Work *w, const Unit *unit, uint32_t channels);

#endif
