/* fuse.h - which layers run together, depth first or in pairs; private. */
#ifndef ALLOC_FUSE_FUSE_H
#define ALLOC_FUSE_FUSE_H

#include "alloc/spill/spill.h"

/* ---- rolling_dp.c: what fits if only rows are kept ---- */

/* Whether all groups with rings cost what the search thought. */
bool groups_confirmed(const Decisions *d);
/* Without moves but those of inputs and outputs; only for machines with rings.
 */
bool fit_rolling(Attempt *a);
/* Cycles of all layers whole: no plan takes fewer, wherever transfers are. */
uint64_t network_cycles(const Facts *f);

/* ---- cascade_dp.c: which groups ---- */

/* Groups and their heights for few bytes over DDR, were `budget` bytes of
 * active memory theirs. Returns how many it has put into d->group. */
uint32_t groups_choose(Decisions *d, uint64_t budget);
/* The same for units as they were made, from what is known already. */
uint32_t groups_known(Decisions *d, uint64_t budget);
KnownGroups *known_groups_new(Arena *arena);
/* Whether steps [first, end) make something that nobody reads there, but for
 * the last. */
bool group_has_loose_end(const Decisions *d, uint32_t first, uint32_t end);
/* Sets the modes of their nodes; false if a concat stands in the way. */
bool groups_apply(Decisions *d);

/* ---- local_cascades.c: groups beside volumes that stay; config_low is set
 * ---- */

/* Groups that were applied get lower stripes where that lets volumes stay. */
void groups_lower(Decisions *d);
/* Groups where layers do not fit, applied; false if a concat stands in the way.
 */
bool groups_mend(Decisions *d);

/* ---- channel_pairs.c: a layer and its only reader, by slabs ---- */

/* Makes couples where active memory would hold too much. */
void couples_choose(Decisions *d);
/* The layer that could take what the node gives, were it the next; NO_NODE. */
NodeId couple_taker(const Decisions *d, NodeId giver);

/* ---- onthefly_replication.c ---- */

/* Nodes that read network inputs by tiles for more
 * copies; false if there are none. */
bool fly_choose(Decisions *d);
/* Whether some layer takes fewer steps of the array so; modes change. */
bool fly_hastens(Decisions *d);

/* stream_through.c: of a plan that fits, what is loaded for a layer alone, or
 * stored as soon as it is made, passes in the layer's tiles, where that moves
 * no more.
 */
void pass_through(Attempt *a);

#endif
