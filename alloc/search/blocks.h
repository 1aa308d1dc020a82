/* blocks.h - the search where weights share the first active memory with
 * tensors; private to alloc. */
#ifndef ALLOC_SEARCH_BLOCKS_H
#define ALLOC_SEARCH_BLOCKS_H

#include "alloc/search/search.h"
#include "alloc/weights/weights.h"

/* A plan of tensors alone, within so many bytes. */
typedef struct Volumes {
    Arena *arena;   /* of the plans; NULL: they were dropped */
    Budget *budget; /* of the search that they are for; or NULL */
    uint64_t size, aside;
    Aims aims;
    uint64_t height;      /* of the plan; 0: they do not fit */
    Plan *plan;           /* NULL: they do not fit, or were dropped */
    uint64_t need;        /* with the smallest blocks beside; 0: not asked */
    struct Volumes *next; /* the second best; or NULL */
    VEC(Banded) banded;   /* the same by bands, as far as it was asked */
} Volumes;

/* So many blocks of a layer's weights have room beside what it works on. */
enum { MOST_BESIDE = 2 };

/* Sizes of active memory that tensors are planned for, for each power of two.
 */
enum { STAGED_OCTAVE = 16 };

/* How a plan with weights is made. */
typedef struct Blocks {
    Volumes *volumes;
    StageWay way;
    uint64_t size; /* of the memory that it is made for */
} Blocks;

/* A plan with weights that is the best so far by an objective. */
typedef struct BestBlocks {
    bool found;
    Blocks best;
    PlanCost cost;
    bool again; /* it loads a block more than once */
    bool least; /* it does not, and keeps all tensors */
} BestBlocks;

typedef struct Staging {
    Arena *arena;
    const Schedule *schedule; /* on the real machine */
    const PlanOptions *options;
    bool one_size; /* fixed buffers: those of a smaller memory are others */
    Search search; /* of tensors by themselves */
    Plan bound;
    VEC(Volumes *) volumes;                  /* that were planned */
    const uint64_t *beside[MOST_BESIDE + 1]; /* Aims.blocks: of so many */
    Archive archive;
    bool judges; /* plans are verified before they are the best */
    Rejected rejected;
    bool clock_told, clock_errs; /* whether plans' own clock was compared with
                                  * the simulator, and counts otherwise */
    uint32_t number;             /* of plans */
    bool fitted;                 /* in a share there were plans, or only such
                                  * as cost more than those of other sizes */
    VEC(BestBlocks) made;        /* for one size, before any are refined */
    bool hiding_is_dear;         /* volumes that hide cost too much */
    bool refines;                /* others are tried beside the best of them */
    VEC(Blocks) tried;           /* in ways of try_others, for one size */
    BestBlocks own[PLAN_OBJECTIVES],
        all[PLAN_OBJECTIVES]; /* the best for one size, and of all: what is
                               * looked at does not depend on the objective, so
                               * no plan is beaten by that of another one */
} Staging;

/* `aside`: bytes that weights have beside them. */
Volumes *volumes_within(Staging *s, uint64_t size, uint64_t aside, Aims aims);
/* These, if they were planned before, and may have been dropped; or NULL. */
Volumes *volumes_known(const Staging *s, uint64_t size, uint64_t aside,
                       Aims aims);
/* Whoever asks for more than their height and need plans them again. */
void volumes_drop(Volumes *v);
Banded banded_by(Volumes *v, StageWay way);
/* Makes the plan; `most`: NULL: it may cost anything. */
Staged blocks_plan(Arena *arena, const Schedule *schedule, const Blocks *b,
                   const StageMost *most, Plan *plan);
/* With blocks of some size, as large as fit; STAGED: in `way`. */
Staged blocks_any(const Schedule *schedule, Volumes *volumes, StageWay *way);

/* Beside so many bytes tensors can be planned by themselves: every layer, the
 * worst of which is named, then has room for its smallest block. 0 and NULL
 * where weights lie in a memory of their own. */
uint64_t blocks_aside(const Schedule *schedule, const char **layer);

/* `s` and what it refers to live as long as `arena`. */
void staging_open(Staging *s, Arena *arena, const Schedule *schedule,
                  const PlanOptions *options);
/* The plan for `s->schedule`, which may be on a machine with another size of
 * its first memory than those before: volumes are planned once for all. NULL:
 * none fits, or the best is illegal. */
Plan *staging_find(Staging *s);
/* For plans that are asked for otherwise, with a budget of their own. */
void staging_serve(Staging *s, const PlanOptions *options);
/* What was planned is the caller's. */
void staging_close(Staging *s);

/* The plan that meets the objective best, tensors and weights sharing the first
 * memory; NULL if none fits. `rejected`: better ones that were illegal. `s` is
 * open from then on. */
Plan *plan_staged(Staging *s, Arena *arena, const Schedule *schedule,
                  const PlanOptions *options, Rejected *rejected);

/* ---- blocks_least.c ---- */

typedef struct Scarce {
    bool any;
    uint64_t size; /* `most` if there is none */
    Blocks blocks; /* that fit in it */
    uint64_t near; /* the size of the volumes that lack least, or nothing, by
                    * one aim; 0: none were planned */
    uint64_t near_need;
} Scarce;
/* The least size, up to `most`, for which there is a plan, however long. */
Scarce scarce_find(Staging *s, uint64_t most);

#endif
