/* memory_state.h - what the memories hold while a plan is replayed; of the
 * judge.
 *
 * Every memory is a set of areas that do not overlap; an area is one volume at
 * one place and says which rows and channels of which tensors it holds. Areas
 * whose bytes another volume touches lose what lies there. Pixels of a ring, or
 * of a line buffer, overwrite those of the turns before. A concat along
 * channels counts as its members. Shares no code with the rest of alloc but
 * plan_volume.
 */
#ifndef PLAN_VERIFY_MEMORY_STATE_H
#define PLAN_VERIFY_MEMORY_STATE_H

#include "hwspec/address.h"
#include "plan/plan.h"

typedef struct Areas Areas;

Areas *areas_new(Arena *arena, const Graph *g, const HwSpec *spec);

/* Whether anything is left of the placement's volume, at its place. */
bool areas_find(Areas *areas, const Placement *p);
/* Rows and columns of a tensor. */
typedef struct Part {
    uint32_t row, rows, col, cols;
} Part;
/* Whether that part of all that the placement holds is there. */
bool areas_read(Areas *areas, const Placement *p, Part part);
/* It is, from now on; what else lies in the placement's bytes is lost. */
void areas_write(Areas *areas, const Placement *p, Part part);
/* The same of something that is no part of its tensor, such as sums. */
void areas_spoil(Areas *areas, const Placement *p, Part part);
/* Bytes of a memory, or other numbers. */
typedef struct Range {
    uint64_t first, end;
} Range;
static inline bool ranges_meet(Range a, Range b) {
    return a.first < b.end && b.first < a.end;
}

/* Everything in the bytes is lost. */
void areas_drop(Areas *areas, uint32_t memory, Range bytes);

/* The placement's own bytes: of its channels, in whole granules. */
Range areas_bytes(const Areas *areas, const Placement *p);
/* Whether parts of tensors in one place of a memory have a pixel in common. */
bool areas_parts_meet(const Areas *areas, const Placement *p, Part part,
                      const Placement *other, Part at);
bool areas_is_concat(const Areas *areas, TensorId t);

#endif
