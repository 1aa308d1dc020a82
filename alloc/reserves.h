/* reserves.h - volumes and weights in one active memory; private to alloc. */
#ifndef ALLOC_RESERVES_H
#define ALLOC_RESERVES_H

#include "alloc/boxes.h"
#include "alloc/contest.h"
#include "alloc/stage.h"

/* Volumes within so many bytes. */
typedef struct Volumes {
    uint64_t size;
    Plan *plan; /* NULL: they do not fit */
} Volumes;

/* Sizes of active memory that are planned, for each power of two. */
enum { STAGED_OCTAVE = 16 };

/* How a plan with weights is made. */
typedef struct StagedOffer {
    const Plan *volumes;
    StageWay way;
    uint64_t size; /* of the memory that it is staged in */
} StagedOffer;

typedef struct Staging {
    Arena *arena;
    const Schedule *schedule; /* on the real machine */
    Contest contest;          /* of volumes by themselves */
    Plan bound;
    VEC(Volumes) volumes; /* that were planned */
    VEC(StagedOffer) offer;
} Staging;

/* ---- reserves.c ---- */

/* A search for the best plan in a memory of one size. */
typedef struct Search {
    Staging *s;
    const Schedule *schedule; /* on a machine with that memory */
    const Box *below, *above; /* what it has to be within; or NULL */
    bool any;                 /* one that fits is enough */
    uint32_t most;            /* as in StageWay */
    bool found;
    StagedOffer offer; /* the best so far */
    Price price;
    double cost;
    bool again; /* the last one loads a block more than once */
    bool least; /* the best does not, and keeps all volumes */
} Search;

Plan *volumes_within(Staging *s, uint64_t size);
/* Beside so many bytes volumes can be planned by themselves: every layer then
 * has room for its smallest block. */
uint64_t bytes_aside(const Schedule *schedule);
/* Makes the offer's plan. */
Staged offer_stage(Arena *arena, const Schedule *schedule, const StagedOffer *o,
                   Plan *plan);
void search_run(Search *n);

#endif
