/* alias.h - what is known of tensors and nodes, and which tensors share a
 * buffer; private.
 */
#ifndef ALLOC_ALIAS_ALIAS_H
#define ALLOC_ALIAS_ALIAS_H

#include "alloc/decisions.h"

/* ---- facts.c ---- */

const Facts *facts_make(Arena *arena, const Schedule *schedule,
                        const HwSpec *spec, const PlanOptions *options,
                        const Memo *memo);
/* The same on another machine, where bytes and tiles are as they were. */
const Facts *facts_on(const Facts *f, const HwSpec *spec);

/* ---- decisions.c ---- */

/* No alias classes yet, no uses. */
Decisions decisions_make(const Facts *f, const Config *config);
/* What it holds is its own, but for the tensors of alias classes. */
Decisions decisions_copy(Arena *arena, const Decisions *d);

/* ---- alias.c: who shares a buffer ---- */

/* Fills the roles of tensors. */
void roles_make(Facts *f);
/* Which results take the place of an operand; of a state that stays in active
 * memory what it is in the next call takes the place. */
void in_place_make(Decisions *d);
/* Makes the state's next value take its place, in a chain of results in place
 * or once the state is not needed any more. False if it cannot. */
bool state_follows(Decisions *d, NodeId input);
/* Bytes that it takes of active memory; UINT64_MAX: no memory holds it. */
uint64_t state_bytes(const Facts *f, TensorId state);
void aliases_make(Decisions *d);
/* Whether the node's result, of the operand's shape, may take its place, were
 * nobody else to read it. */
bool takes_in_place(const Facts *f, NodeId id, TensorId operand);
/* The result takes the place of another operand than this; false if it cannot.
 */
bool place_instead(Decisions *d, NodeId id, TensorId operand);
/* The tensor's first channel in its alias class's volume. */
uint32_t channel_in_alias(const Facts *f, const AliasClass *alias, TensorId t);
/* Members become alias classes of their own. False if the memories cannot hold
 * parts of the volume. */
bool alias_dissolve(Decisions *d, uint32_t alias);
/* The outermost dissolved concat that the tensor is part of, or itself; *c is
 * its first channel there. */
TensorId home_of(const Decisions *d, TensorId tensor, uint32_t *c);

/* A part of `n` channels from channel `c` on starts at a granule of its own, at
 * an address that the listing can write, and lies as a volume of its own. */
bool part_has_address(const HwMemory *memory, const Volume *whole, uint32_t c,
                      uint32_t n);
/* It does, and starts as volumes of active memories do. */
bool part_is_volume(const HwMemory *memory, const Volume *whole, uint32_t c,
                    uint32_t n);
/* Whether an operand of an instruction can be those channels. */
bool part_told(const Facts *f, const HwMemory *memory, const Volume *whole,
               uint32_t c, uint32_t n);
/* Parts of the whole volume, of `q` channels each, have that in every active
 * memory, and start aligned there. */
bool volume_cuts(const Facts *f, TensorId t, uint32_t q);

/* ---- modes.c: what modes of nodes mean for tensors ---- */

/* Sets the modes of nodes on engines that work ahead: these read their inputs
 * from where they lie. */
void ahead_choose(Decisions *d);
bool runs_ahead(const Facts *f, NodeId node);
/* Whether it may be written while other images are at work. */
bool made_ahead(const Facts *f, TensorId t);
/* Whether the tensor passes from one of a pair of layers to the other. */
bool pair_passes(const Decisions *d, TensorId t);
/* The other node of the pair; NO_NODE if it is in none. */
NodeId pair_partner(const Decisions *d, NodeId node);
/* Bytes of active memory that the first channels of the alias class's volume
 * take: whole granules. */
uint64_t kept_bytes(const Facts *f, const AliasClass *alias, uint32_t channels);

#endif
