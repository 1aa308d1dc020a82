/* parts.h - parts of volumes that stay while the rest is away; private. */
#ifndef ALLOC_SPILL_PARTS_H
#define ALLOC_SPILL_PARTS_H

#include "alloc/spill/spill.h"

/* ---- parts.c: which can stay ---- */

/* Whether members of a concat are still missing behind the use. */
static inline bool is_filling(const AliasClass *alias, uint32_t use) {
    return alias->concat && alias->use[use].step < alias->complete;
}
/* Channels up to the end of what is there; 0 if no part of it can stay. */
uint32_t channels_filled(const Facts *f, const AliasClass *alias, uint32_t use);
/* By channels: whether the first so many can stay, and the others leave. */
bool *cuts_of(const Facts *f, const AliasClass *alias);
/* The most channels of at most `bytes`, fewer than `end`; more take no less. */
uint32_t channels_below(const Facts *f, const AliasClass *alias, uint32_t end,
                        double bytes);
/* Whether what is moved from channel `c` on starts as any volume does, in
 * active memory; and has places by itself on both sides of it, in any. */
bool cut_is_aligned(const Facts *f, const AliasClass *alias,
                    const Volume *whole, uint32_t c);
bool cut_has_addresses(const Facts *f, const AliasClass *alias, uint32_t memory,
                       const Volume *whole, uint32_t c);

/* ---- spill_cost.c ---- */

/* Bytes of all of it. */
double alias_moved(const Facts *f, const AliasClass *alias);
/* Whether storing costs nothing: it lies outside anyway. */
bool is_outside(const Decisions *d, const AliasClass *alias);
/* How often what is away comes by, or back. */
uint32_t loads_of(const AliasClass *alias, const Away *away);

/* ---- rigid_place.c ---- */

/* As place_tied, in at most so many orders. */
bool place_in_orders(Decisions *d, const Buffers *p, uint32_t orders,
                     PackResult *result, Times *blocked);

#endif
