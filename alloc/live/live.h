/* live.h - decisions -> buffers with live ranges. */
#ifndef ALLOC_LIVE_LIVE_H
#define ALLOC_LIVE_LIVE_H

#include "alloc/alias/alias.h"

typedef struct Residency {
    uint32_t first, last; /* uses of the alias class, over which it stays */
    uint32_t memories;
    uint32_t buf; /* in the problem */
} Residency;
typedef VEC(Residency) Residencies;

/* A tensor that passes through active memory on its way from one external
 * place to another. */
typedef struct Bounce {
    uint32_t step;
    TensorId tensor;
    uint32_t rows;
    uint32_t buf;
} Bounce;

typedef enum OwnerKind {
    OWNER_RESIDENT,
    OWNER_KEPT, /* what stays of an alias class between two residency intervals
                 */
    OWNER_ROW_TILE,
    OWNER_HARDWARE_TILE,
    OWNER_WEIGHTS, /* what Aims.blocks leaves free */
    OWNER_BOUNCE
} OwnerKind;

/* What a buffer of the problem holds. */
typedef struct Owner {
    OwnerKind kind;
    uint32_t alias; /* SEGMENT, KEPT */
    NodeId node;    /* ROW_TILE, TILE */
    TensorId tensor;
    uint32_t rows;
    uint32_t channels; /* 0: all */
    uint32_t cols;     /* 0: all */
    uint64_t least; /* bytes in its cheapest pool; UINT64_MAX: none holds it */
} Owner;

/* Half-open. */
typedef struct Times {
    uint32_t first, end;
} Times;

typedef struct Buffers {
    PackProblem p;
    VEC(Buffer) buf;
    VEC(Owner) owner;
    VEC(uint32_t) tied; /* by buffer: the first of those that move with it */
    VEC(Relation)
    relation;       /* of concat_holes.c: members inside their concats */
    uint64_t *live; /* by time: bytes */
    uint32_t n_times;
    uint32_t n_aliases;
    Residencies *stays;   /* by alias class */
    uint32_t *first_buf;  /* by node: row tiles of operands, output last; by the
                           * first node of a cascade that rolls: its rings */
    uint32_t *second_set; /* by node: the second set is so many behind that */
    VEC(Bounce) bounce;
    uint32_t split; /* step at which an alias class must change memory; NONE */
    struct Buffers *one; /* room for those of one alias class */
} Buffers;

/* Of an alias class; none of one that is newer than the problem. */
static inline const Residencies *residencies_of(const Buffers *p,
                                                uint32_t alias) {
    static const Residencies none;
    return alias < p->n_aliases ? &p->stays[alias] : &none;
}

/* ---- buffers.c: uses and lifetimes -> problem ---- */

/* Of alias classes that have none yet. */
void uses_make(Decisions *d);
/* Whether the node takes the operand by rows that may be copied from a volume
 * that stays. */
bool takes_rows(const Decisions *d, NodeId node, TensorId in);
/* Whether what the node writes by parts is to be loaded into the concat that it
 * is part of. */
bool result_lands(const Decisions *d, NodeId node);
/* From a whole touch to the next one, or to the last that reads rows. */
typedef struct Away {
    uint32_t next;      /* touch: the next whole one, or n_uses */
    uint32_t n_by_rows; /* uses on the way */
    uint32_t end;       /* time at which it ends */
} Away;
/* False if the alias class has to leave before any of them. */
bool away_find(const Decisions *d, const AliasClass *alias, uint32_t use,
               Away *away);
/* After modes of nodes at the step have changed. */
void uses_refresh(Decisions *d, uint32_t step);
/* The same of all alias classes. */
void uses_refill(Decisions *d, uint32_t step);
/* A touch of the alias class at a step at which it has none; uses_refill fills
 * it.
 */
void use_insert(const Facts *f, AliasClass *alias, uint32_t step);
void buffers_make(const Decisions *d, Buffers *out);
/* Corrects the problem's `live`, and no more, after a gap of the alias class
 * leaves; false if it could not. buffers_make must follow. */
bool live_follow(const Decisions *d, Buffers *p, uint32_t alias);
/* Adds to the problem's `live` what the alias class has as it is now, or takes
 * it away; false if no memory holds a part of that. buffers_make must follow.
 */
bool live_alias(const Decisions *d, Buffers *p, uint32_t alias, bool add);
/* Whether it is a concat of which all is alive at the time, though not all of
 * it is written. */
bool waits_empty(const Decisions *d, const Buffers *p, uint32_t alias,
                 uint32_t time);
/* The same though not all of it is needed any more. */
bool waits_for_part(const Decisions *d, const Buffers *p, uint32_t alias,
                    uint32_t time);
/* Channels of the alias class up to the last that is there behind the touch and
 * touched later. */
uint32_t wanted_behind(const Facts *f, const AliasClass *alias, uint32_t use);
/* Sums `live` again, after buffers have changed. */
void live_make(Buffers *buffers);
/* Where a tensor's values must go as soon as they are there; `streamed`: they
 * are written by tiles, not kept in active memory. */
typedef struct Dests {
    bool home;   /* its place in backing memory */
    bool output; /* its region in the output memory */
} Dests;
Dests dests_of(const Decisions *d, TensorId tensor, bool streamed);
/* Both run whole again, if it is one of a pair of layers. */
void pair_part(Decisions *d, NodeId node);

#endif
