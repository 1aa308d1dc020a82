/* blocks_least.c - the least memory that tensors and weights fit in.
 *
 * Input: a schedule for a machine with a queue. Output: a size that does not
 * depend on the memory's own, and how to plan for it.
 * Method: volumes are planned for many sizes, by themselves and leaving each
 * layer room for its smallest block. Beside each of these plans every
 * layer has a range that is free, so what it lacks for its smallest block is
 * known without a search; sizes next to the best one, or where none fits to the
 * one that lacks least, are looked at closely.
 */
#include "alloc/search/blocks.h"
#include "base/size_grid.h"

static bool needs_more(const Scarce *least, const Volumes *v) {
    return least->any ? v->need >= least->size : v->need > least->size;
}

static void note_near(Scarce *least, const Volumes *v) {
    if (least->near && v->need >= least->near_need)
        return;
    least->near = v->size;
    least->near_need = v->need;
}

static void try_blocks(const Staging *s, Scarce *least, Volumes *v) {
    Banded banded = banded_by(v, (StageWay){0});
    if (!v->need)
        v->need = blocks_need(&banded.plan, banded.room);
    note_near(least, v);
    if (needs_more(least, v))
        return;
    StageWay way;
    Arena *arena = arena_new("scarce");
    if (blocks_any(schedule_within(arena, s->schedule, v->need), v, &way) ==
        STAGED) {
        least->any = true;
        least->size = v->need;
        least->blocks = (Blocks){v, way, v->need};
    } else {
        v->need = UINT64_MAX;
    }
    arena_free(arena);
}

/* The height of the volumes, or 0. Those for which the search asked before are
 * kept, and the best: there are hundreds. */
static uint64_t try_volumes(Staging *s, Scarce *least, uint64_t within,
                            Aims aims) {
    const Volumes *known = volumes_known(s, within, 0, aims);
    if (known && known->need)
        note_near(least, known);
    if (known && (known->need ? needs_more(least, known) : !known->height))
        return known->height;
    Volumes *v = volumes_within(s, within, 0, aims);
    if (v->plan)
        try_blocks(s, least, v);
    if (!known && least->blocks.volumes != v)
        volumes_drop(v);
    return v->height;
}

/* Volumes within each of `octave` sizes between a power of two and the next,
 * from `end` down to `first`; those that are less than a plan takes, as others
 * are the same. */
static void try_sizes(Staging *s, Scarce *least, Aims aims, uint32_t octave,
                      uint64_t first, uint64_t end) {
    uint64_t height = UINT64_MAX;
    uint32_t low = grid_number(octave, first);
    for (uint32_t i = grid_number(octave, end) + 1; i-- > low && height;) {
        uint64_t within = grid_size(octave, i);
        if (within < height && within < least->size)
            height = try_volumes(s, least, within, aims);
    }
}

/* At sizes further and further apart less, next to the best. */
static void try_aims(Staging *s, Scarce *least, Aims aims, uint64_t most) {
    enum { FINER = 4, FINEST = STAGED_OCTAVE * FINER * FINER };
    uint64_t before = least->size;
    least->near = 0;
    try_sizes(s, least, aims, STAGED_OCTAVE, s->search.never, most);
    if (least->any && least->size == before && aims.blocks)
        return;
    for (uint32_t octave = STAGED_OCTAVE * FINER;
         octave <= FINEST && least->near; octave *= FINER) {
        uint64_t at = least->near, near = FINER * at / octave;
        try_sizes(s, least, aims, octave, at - near, at + near);
    }
}

Scarce scarce_find(Staging *s, uint64_t most) {
    Scarce least = {.size = most};
    try_aims(s, &least, (Aims){0}, most);
    if (s->beside[1])
        try_aims(s, &least, (Aims){.blocks = s->beside[1]}, least.size);
    return least;
}
