/* live.h - decisions -> buffers with live ranges. */
#ifndef ALLOC_LIVE_LIVE_H
#define ALLOC_LIVE_LIVE_H

#include "alloc/alias/alias.h"

typedef struct Segment {
    uint32_t first, last; /* touches of the unit, over which it stays */
    uint32_t memories;
    uint32_t buf; /* in the problem */
} Segment;
typedef VEC(Segment) Segments;

/* A tensor that passes through active memory on its way from one external
 * place to another. */
typedef struct Relay {
    uint32_t step;
    TensorId tensor;
    uint32_t rows;
    uint32_t buf;
} Relay;

typedef enum OwnerKind {
    OWNER_SEGMENT,
    OWNER_KEPT, /* what stays of a unit between two segments */
    OWNER_PLANK,
    OWNER_TILE,
    OWNER_RELAY
} OwnerKind;

/* What a buffer of the problem holds. */
typedef struct Owner {
    OwnerKind kind;
    uint32_t unit; /* SEGMENT, KEPT */
    NodeId node;   /* PLANK, TILE */
    TensorId tensor;
    uint32_t rows;
    uint32_t channels; /* 0: all */
    uint64_t least; /* bytes in its cheapest pool; UINT64_MAX: none holds it */
} Owner;

/* Half-open. */
typedef struct Times {
    uint32_t first, end;
} Times;

typedef struct Problem {
    PlanProblem p;
    VEC(Buf) buf;
    VEC(Owner) owner;
    VEC(uint32_t) tied; /* by buffer: the first of those that move with it */
    VEC(Relation)
    relation;       /* of concat_holes.c: members inside their concats */
    uint64_t *live; /* by time: bytes */
    uint32_t n_times;
    uint32_t n_units;
    Segments *stays;     /* by unit */
    uint32_t *first_buf; /* by node: planks of operands, output last; by the
                          * first node of a group that rolls: its rings */
    uint32_t *twin;      /* by node: the second set is so many behind that */
    VEC(Relay) relay;
    uint32_t split; /* step at which a unit must change memory; NONE */
} Problem;

/* Of a unit; none of one that is newer than the problem. */
static inline const Segments *segments_of(const Problem *p, uint32_t unit) {
    static const Segments none;
    return unit < p->n_units ? &p->stays[unit] : &none;
}

/* ---- buffers.c: touches and lifetimes -> problem ---- */

/* Of units that have none yet. */
void touches_make(Decisions *d);
/* Whether the node takes the operand by rows that may be copied from a volume
 * that stays. */
bool takes_rows(const Decisions *d, NodeId node, TensorId in);
/* Whether what the node writes by parts is to be loaded into the concat that it
 * is part of. */
bool result_lands(const Decisions *d, NodeId node);
/* From a whole touch to the next one, or to the last that reads rows. */
typedef struct Away {
    uint32_t next;      /* touch: the next whole one, or n_touches */
    uint32_t n_by_rows; /* touches on the way */
    uint32_t end;       /* time at which it ends */
} Away;
/* False if the unit has to leave before any of them. */
bool away_find(const Decisions *d, const Unit *unit, uint32_t touch,
               Away *away);
/* After modes of nodes at the step have changed. */
void touches_refresh(Decisions *d, uint32_t step);
/* The same of all units. */
void touches_refill(Decisions *d, uint32_t step);
/* A touch of the unit at a step at which it has none; touches_refill fills it.
 */
void touch_insert(const Facts *f, Unit *unit, uint32_t step);
void problem_make(const Decisions *d, Problem *out);
/* Corrects the problem's `live`, and no more, after a gap of the unit leaves;
 * false if it could not. problem_make must follow. */
bool live_follow(const Decisions *d, Problem *p, uint32_t unit);
/* Adds to the problem's `live` what the unit has as it is now, or takes it
 * away; false if no memory holds a part of that. problem_make must follow. */
bool live_unit(const Decisions *d, Problem *p, uint32_t unit, bool add);
/* Whether it is a concat of which all is alive at the time, though not all of
 * it is written. */
bool waits_empty(const Decisions *d, const Problem *p, uint32_t unit,
                 uint32_t time);
/* The same though not all of it is needed any more. */
bool waits_for_part(const Decisions *d, const Problem *p, uint32_t unit,
                    uint32_t time);
/* Channels of the unit up to the last that is there behind the touch and
 * touched later. */
uint32_t wanted_behind(const Facts *f, const Unit *unit, uint32_t touch);
/* Sums `live` again, after buffers have changed. */
void live_make(Problem *problem);
/* Where a tensor's values must go as soon as they are there; `streamed`: they
 * are written by tiles, not kept in active memory. */
typedef struct Dests {
    bool home;   /* its place in backing memory */
    bool output; /* its region in the output memory */
} Dests;
Dests dests_of(const Decisions *d, TensorId tensor, bool streamed);
/* Both run whole again, if it is one of a pair of layers. */
void couple_part(Decisions *d, NodeId node);

#endif
