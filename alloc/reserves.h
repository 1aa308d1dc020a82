/* reserves.h - volumes and weights in one active memory; private to alloc. */
#ifndef ALLOC_RESERVES_H
#define ALLOC_RESERVES_H

#include "alloc/boxes.h"
#include "alloc/contest.h"
#include "alloc/stage.h"

/* Volumes within so many bytes. */
typedef struct Volumes {
    Arena *arena;
    Budget *budget;
    uint64_t size;
    Plan *plan;         /* NULL: they do not fit */
    VEC(Banded) banded; /* the same by bands, as far as it was asked */
} Volumes;

/* Sizes of active memory that are planned, for each power of two. */
enum { STAGED_OCTAVE = 16 };

/* How a plan with weights is made. */
typedef struct StagedOffer {
    Volumes *volumes;
    StageWay way;
    uint64_t size; /* of the memory that it is staged in */
} StagedOffer;

typedef struct Staging {
    Arena *arena;
    const Schedule *schedule; /* on the real machine */
    Contest contest;          /* of volumes by themselves */
    Plan bound;
    VEC(Volumes *) volumes; /* that were planned */
    VEC(StagedOffer) offer;
    PlanJudge *judge;  /* of each plan; or NULL: just of the answer */
    uint32_t rejected; /* plans that it found wrong */
} Staging;

/* ---- scarce.c: the least memory ---- */

typedef struct Scarce {
    bool any;
    uint64_t size;     /* `most` if there is none */
    StagedOffer offer; /* that fits in it */
} Scarce;
/* The least size, up to `most`, for which there is a plan, however long. */
Scarce scarce_find(Staging *s, uint64_t most);

/* ---- reserves.c ---- */

/* A search for the best plan in a memory of one size. */
typedef struct Search {
    Staging *s;
    const Schedule *schedule; /* on a machine with that memory */
    const Box *below, *above; /* what it has to be within; or NULL */
    bool any;                 /* one that fits is enough */
    uint32_t most;            /* actions, as in StageMost */
    const StagedOffer *first; /* what is tried before all others; or NULL */
    bool found;
    StagedOffer offer; /* the best so far */
    Price price;
    double cost;
    uint32_t actions; /* before weights are loaded */
    bool again;       /* it loads a block more than once */
    bool least;       /* it does not, and keeps all volumes */
} Search;

Volumes *volumes_within(Staging *s, uint64_t size);
Banded banded_by(Volumes *v, StageWay way);
/* Beside so many bytes volumes can be planned by themselves: every layer then
 * has room for its smallest block. */
uint64_t bytes_aside(const Schedule *schedule);
/* Makes the offer's plan; NULL: it may cost anything. */
Staged offer_stage(Arena *arena, const Schedule *schedule, const StagedOffer *o,
                   const StageMost *most, Plan *plan);
void search_run(Search *n);
/* With blocks of some size, as large as fit; STAGED: in `way`. */
Staged blocks_stage(const Schedule *schedule, Volumes *volumes, StageWay *way);

#endif
