/* give_way.h - what gives way where active memory would hold too much; private.
 */
#ifndef ALLOC_SPILL_GIVE_WAY_H
#define ALLOC_SPILL_GIVE_WAY_H

#include "alloc/spill/spill.h"

/* Whether the interval behind use i may be evicted. */
bool interval_may_leave(const AliasClass *alias, uint32_t i);
/* Evicts at the time; the alias class that leaves, NONE if there is none. */
uint32_t evict_at(Decisions *d, const Buffers *p, uint32_t time);
/* The concat's members become alias classes of their own, with their uses. */
bool dissolve(Decisions *d, uint32_t alias);
/* As operand_freed, for those that the mode reads, or gives, in tiles. */
bool operands_freed(Decisions *d, NodeId id, const Mode *mode);
/* Whether the node reads or makes some of the alias class. */
bool is_operand(const Decisions *d, const Node *node, uint32_t alias);
/* The node's next way to run that is possible. */
bool tile_more(Decisions *d, const Buffers *p, NodeId id);
bool bounce_shrink(Decisions *d, TensorId t);
/* A concat need not have what is not written yet. */
bool fill_at(Decisions *d, const Buffers *p, uint32_t time);
/* What waits at the time takes less; what runs takes less. */
bool make_room(Decisions *d, const Buffers *p, uint32_t time);
bool run_smaller(Decisions *d, const Buffers *p, uint32_t time);

#endif
