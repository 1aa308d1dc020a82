/* contest.h - which of several ways to plan; private to alloc. */
#ifndef ALLOC_CONTEST_H
#define ALLOC_CONTEST_H

#include "alloc/work.h"
#include "base/vec.h"

/* A way to plan: within `size` bytes of the first active memory, of which
 * groups may take `share` sixteenths; 0: no groups. */
typedef struct Way {
    uint64_t size;
    uint32_t share;
    bool rolls;      /* groups with rings, nothing evicted */
    uint32_t runs;   /* rolls: as in Work */
    bool cuts;       /* as in Plan */
    bool wholes;     /* whole volumes leave first, even where parts would do */
    bool streams;    /* what never runs whole keeps nothing in active memory */
    uint32_t apart;  /* kinds of layers that are in no group: bits */
    uint32_t low;    /* as in Work */
    bool mends;      /* low: groups only where layers do not fit */
    uint64_t thrift; /* as in Work */
    double most;     /* bytes: plans that move more are of no use */
} Way;

/* What a plan costs; cycles: 0 where nobody counts them. */
typedef struct Timed {
    Traffic traffic;
    uint64_t cycles;
} Timed;

typedef struct Tried {
    uint32_t number;
    Way way;
    Timed timed;
} Tried;

typedef struct Contest {
    Arena *arena;
    const Schedule *schedule;
    const PlanOptions *options;
    const Once *once;
    KnownGroups *known;
    bool any, keeps_all;
    uint64_t height;  /* of the last plan; 0: there was none */
    uint64_t weights; /* bytes, if each layer reads its own once */
    bool enough;      /* any plan is as good as others */
    uint32_t kinds;   /* of layers that can be kept out of groups: bits */
    uint64_t never;   /* no plan in fewer bytes than this */
    Way best;
    Timed least;
    VEC(Timed) timed; /* all, each once */
    VEC(Tried) tried;
} Contest;

/* ---- way.c ---- */

/* NULL if it does not fit that way; *height: bytes that it takes, 0 if there
 * is no plan; *hopeless: it would move too much. `last`: it is the one that
 * was chosen. */
Plan *way_plan(Arena *arena, Diag *diag, const Contest *c, const Way *way,
               bool last, uint64_t *height, bool *hopeless);

/* ---- hide.c ---- */

/* The plan, or another that moves no more bytes and takes fewer cycles. */
Plan *plan_hidden(Arena *arena, const Contest *c, Plan *plan);

/* ---- contest.c ---- */

/* Finds the way that costs least: c->best, if there is any. `compulsory`: bytes
 * that every plan moves. */
void way_choose(Contest *c, uint64_t compulsory);

#endif
