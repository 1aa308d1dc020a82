/* access.h - which bytes an action reads and writes, and whether two actions
 * may be at work at the same time. */
#ifndef PLAN_ACCESS_H
#define PLAN_ACCESS_H

#include "plan/plan.h"

/* ---- access.c: may two actions be at work at the same time? ---- */

/* Bytes that an action reads or writes: rows of a volume's channels. */
typedef struct Access {
    const Placement *at;
    uint64_t first, end; /* bytes, one memory behind the other */
    uint64_t start;      /* of the placement, likewise */
    uint32_t row, rows;  /* of the volume at `at`, rows from 0 */
    bool exact;          /* else it may touch all of the bytes */
} Access;

/* Bytes, likewise. */
typedef struct Reach {
    uint64_t first, end;
} Reach;

static inline bool reaches_meet(Reach a, Reach b) {
    return a.first < b.end && b.first < a.end;
}

/* Bytes of active memory that hold values from an action to another. */
typedef struct HeldBytes {
    Reach bytes;
    uint32_t since, until; /* actions, the last included */
    uint32_t placement;    /* of what was written first */
} HeldBytes;

/* Of an action: its operands, the result last, if it makes one; a concat just
 * reads. */
typedef struct Accesses {
    uint32_t n, n_read;
    const Access *at;
    Reach active, outside; /* all bytes in active memory, and elsewhere, lie
                            * there; first >= end: none */
} Accesses;

/* Whether two placements are channels of one volume at one place. */
bool placements_share(const Placement *a, const Placement *b);
Accesses accesses_of(Arena *arena, const Plan *plan, const Action *a);
/* Whether both may touch the same element. */
bool access_meet(const Access *a, const Access *b);
/* The same of two actions, one of which writes it. */
bool accesses_meet(const Accesses *a, const Accesses *b);
/* A quick "no" to that. */
static inline bool accesses_apart(const Accesses *a, const Accesses *b) {
    return !reaches_meet(a->active, b->active) &&
           !reaches_meet(a->outside, b->outside);
}
static inline bool accesses_conflict(const Accesses *a, const Accesses *b) {
    return !accesses_apart(a, b) && accesses_meet(a, b);
}

/* ---- access_bytes.c: the same to the byte, which takes longer ---- */

bool accesses_touch(const HwSpec *spec, const Accesses *a, const Accesses *b);
/* Whether the access touches one of these bytes of the first memory. */
bool access_in(const HwSpec *spec, const Access *a, Reach bytes);

#endif
