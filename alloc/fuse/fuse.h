/* fuse.h - which layers run together, depth first or in pairs; private. */
#ifndef ALLOC_FUSE_FUSE_H
#define ALLOC_FUSE_FUSE_H

#include "alloc/spill/spill.h"

/* ---- rolling_dp.c: what fits if only rows are kept ---- */

/* Whether all cascades with rings cost what the search thought. */
bool cascades_confirmed(const Decisions *d);
/* Without moves but those of inputs and outputs; only for machines with rings.
 */
bool fit_rolling(Attempt *a);

/* ---- cascade_dp.c: which cascades ---- */

/* Cascades and their heights for few bytes over DDR, were `budget` bytes of
 * active memory theirs, for alias classes as they were made. Returns how many
 * it has put into d->cascade. */
uint32_t cascades_known(Decisions *d, uint64_t budget);
KnownCascades *known_cascades_new(Arena *arena);
/* Whether steps [first, end) make something that nobody reads there, but for
 * the last. */
bool cascade_has_loose_end(const Decisions *d, uint32_t first, uint32_t end);
/* Sets the modes of their nodes; false if a concat stands in the way. */
bool cascades_apply(Decisions *d);
/* Of the nodes of one. */
void cascade_modes(Decisions *d, uint32_t index);
/* Uses at steps of cascades follow their nodes' modes. */
void cascades_refresh(Decisions *d);

/* ---- local_cascades.c: cascades beside volumes that stay; config_low is set
 * ---- */

/* Cascades that were applied get lower stripes where that lets volumes stay. */
void cascades_lower(Decisions *d);
/* Cascades where layers do not fit, applied; false if a concat stands in the
 * way.
 */
bool cascades_repair(Decisions *d);

/* ---- channel_pairs.c: a layer and its only reader, by channel tiles ---- */

/* Makes fused pairs where active memory would hold too much. */
void pairs_choose(Decisions *d);

/* ---- onthefly_replication.c ---- */

/* Nodes that read network inputs by tiles for more
 * copies; false if there are none. */
bool on_the_fly_choose(Decisions *d);
/* Whether some layer takes fewer steps of the array so; modes change. */
bool on_the_fly_hastens(Decisions *d);

/* stream_through.c: of a plan that fits, what is loaded for a layer alone, or
 * stored as soon as it is made, passes in the layer's tiles, where that moves
 * no more. Whether anything does.
 */
bool pass_through(Attempt *a);

#endif
