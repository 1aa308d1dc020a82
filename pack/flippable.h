/* flippable.h - placing volumes whose bytes differ over time; private to alloc.
 *
 * A body is a set of boxes, bytes by time, that move together: a volume of
 * which a part leaves and comes back. Which part stays meanwhile can be a
 * choice: that at its lower end, or as many bytes at the upper one.
 */
#ifndef PACK_FLIPPABLE_H
#define PACK_FLIPPABLE_H

#include "base/memo.h"
#include "base/vec.h"

#include <stdbool.h>

/* Bytes [low, high) of a body, alive in [first, end). */
typedef struct Box {
    uint32_t first, end;
    uint64_t low, high;
    bool turns; /* of a body that is turned it is as far from the upper end */
} Box;

typedef struct RigidGroup {
    uint32_t first_box, n_boxes;
    uint32_t first, end;    /* while any of its boxes is alive */
    uint64_t bytes, weight; /* weight: bytes by time, summed */
    uint64_t offset;
    bool pinned; /* `offset` is given */
    bool turns;  /* it may be turned */
    bool turned;
} RigidGroup;

/* Offsets between these, without them. */
typedef struct Taken {
    int64_t low, high;
} Taken;

typedef struct RigidGroups {
    Arena *arena;
    MemoTable *memo_table; /* of what was placed before; NULL: none */
    uint64_t size, align;  /* of the memory */
    VEC(Box) box;          /* of all bodies, one behind the other */
    VEC(RigidGroup) body;
    uint32_t failed; /* the body that most often lay too high */
    uint32_t *until; /* by box: the last end of its body's boxes up to it */
    uint32_t *near;  /* bodies that share time with body i: */
    uint32_t *start; /* ... from start[i] to start[i + 1] */
    uint32_t *there; /* those that are placed of the neighbours at hand */
    Taken *taken;    /* what the body at hand cannot have */
    uint32_t n_taken;
} RigidGroups;

/* A body without boxes yet; returns its number. Its boxes must be added before
 * the next body is. */
uint32_t body_add(RigidGroups *b, uint64_t bytes);
void body_box(RigidGroups *b, Box box);

/* Offsets of all bodies, in the first of `orders` orders that fits. False, with
 * `failed`, if none does. */
bool bodies_place(RigidGroups *b, uint32_t orders);

#endif
