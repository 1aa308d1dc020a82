/* overlap.h - loads and stores in the steps of layers; private to alloc. */
#ifndef ALLOC_OVERLAP_OVERLAP_H
#define ALLOC_OVERLAP_OVERLAP_H

#include "alloc/live/phases.h"
#include "alloc/spill/spill.h"
#include "plan/access.h"
#include "plan/cost.h"
#include "plan/placements.h"

/* hoist_host.c: moves layers of the host up, where other layers then lie
 * between them and their operands' stores, or their results' loads. False:
 * none. */
bool hoist_hosts(Arena *arena, Plan *plan);

/* ---- list_schedule.c ---- */

/* Orders the actions anew: loads early, stores late, both in the steps of
 * layers with which they do not conflict, in pieces where that fills them.
 * Placements stay where they are. Fills plan->cycles. */
void overlap(Arena *arena, Plan *plan);
/* The same of several images, between which layers of the host can move up. */
void overlap_images(Arena *arena, Plan *plan);
/* How many more instructions a listing may have, within reason. */
uint32_t overlap_spare(const Plan *plan);
/* How often the plan may be ordered again, of `most` times: the longer, the
 * fewer. 0: it is too long to be ordered at all. */
uint32_t overlap_tries(const Plan *plan, uint32_t most);

/* repack_images.c: finds other places for what each of several images loads in
 * front of its first layer and stores behind its last one. Volumes that share
 * bytes in other ways than by their buffer may then be wrong. */
void repack_images(Arena *arena, Plan *plan, uint32_t images);

/* row_slices.c: lets layers run by slices of rows, where that hides transfers
 * and the machine names rows; once if `quick`. Of a plan that is overlapped; it
 * stays so. */
void slices(Arena *arena, Plan *plan);
/* interleave.c: slices of layers run as soon as they can, before those of
 * layers in front of theirs. False: none can. */
bool interleave(Arena *arena, Plan *plan);

/* ---- prefetch.c, double_buffer.c, local_repack.c: room for transfers ---- */

/* A placement of n buffers, with offsets of its own; whether two are the same.
 */
static inline PackResult result_copy(Arena *arena, uint32_t n,
                                     const PackResult *result) {
    PackResult copy = *result;
    copy.offset = ARENA_COPY(arena, uint64_t, result->offset, n);
    copy.pool = ARENA_COPY(arena, int32_t, result->pool, n);
    return copy;
}
static inline bool result_same(uint32_t n, const PackResult *a,
                               const PackResult *b) {
    bool same = true;
    for (uint32_t i = 0; i < n && same; i++)
        same = a->pool[i] == b->pool[i] && a->offset[i] == b->offset[i];
    return same;
}

/* A transfer that nothing hides. */
typedef struct Request {
    uint32_t buf;
    bool load;
    bool outer; /* not between two turns */
    TensorId tensor;
    uint64_t cycles;
} Request;

typedef struct Prefetch {
    Attempt *a;
    Arena *arena;
    Diag *diag;
    Buffers *buffers;
    PackResult *result;
    Plan *plan;              /* with these */
    const PackResult *tried; /* last, by prefetch_try; NULL */
    Lives *lives;            /* of the problem */
    uint64_t *time;          /* by step of the schedule: cycles of its layers */
    uint64_t cycles;         /* of the plan */
    uint32_t instructions;   /* that the listing has room for */
    VEC(Request) request;
} Prefetch;

/* Lists what the plan does not hide, the longest first. */
void prefetch_requests(Prefetch *s);
/* The plan for these lives and places, whose modes are those of all tries. True
 * if it takes fewer cycles; then it
 * stays. */
bool prefetch_try(Prefetch *s, Lives *lives, const PackResult *result);

/* double_buffer.c: gives row tiles and stripes two sets of buffers, by turns,
 * where that hides what they load and store. */
void turns_double(Prefetch *s);

/* local_repack.c: finds new places for the buffers that are alive in the phases
 * and at no other time; those that move together, or are pinned, stay where
 * they are. False, and nothing is changed, if it finds none. */
bool window_place(const Lives *lives, Steps phases, PackResult *result);

/* Overlaps the plan. */
void prefetch_quickly(const Facts *f, Plan *plan);
/* Lets buffers of a plan that was overlapped so live longer where that hides
 * more transfers; all are placed anew then. */
void prefetch(Attempt *a, Diag *diag, Buffers *buffers, PackResult *result,
              Plan *plan);

#endif
