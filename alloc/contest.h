/* contest.h - which of several ways to plan; private to alloc. */
#ifndef ALLOC_CONTEST_H
#define ALLOC_CONTEST_H

#include "alloc/work.h"
#include "base/vec.h"

/* What a plan that could take fewer cycles is to take: up to `most`; if that is
 * less than `least`, as little more than that as can be. 0: what it takes. */
typedef struct Slow {
    uint64_t least, most;
} Slow;

/* A way to plan: as if the first active memory ended at `size` bytes, of which
 * groups may take `share` sixteenths; 0: no groups. */
typedef struct Way {
    uint64_t size;
    uint64_t others; /* bytes of each other active memory, at most; 0: all */
    uint32_t share;
    bool rolls;      /* groups with rings, nothing evicted */
    uint32_t runs;   /* rolls: as in Work */
    uint32_t narrow; /* likewise */
    bool cuts;       /* as in Plan */
    bool wholes;     /* whole volumes leave first, even where parts would do */
    bool streams;    /* what never runs whole keeps nothing in active memory */
    bool loose;      /* not as low as can be: that takes time */
    bool brief;      /* as in Work, until it is placed */
    Slow slow;       /* finished to take more cycles than it could */
    bool quick;      /* no buffers live longer to hide transfers: the same */
    bool tight;      /* finished within the height that it takes */
    bool within;     /* finished for a memory that ends there, to time it */
    bool falls;      /* planned for more, it has to lie in the real memory */
    uint32_t apart;  /* kinds of layers that are in no group: bits */
    uint32_t low;    /* as in Work */
    bool mends;      /* low: groups only where layers do not fit */
    uint64_t thrift; /* as in Work */
    uint32_t haste;  /* as in Work */
    uint32_t price;  /* as in Work */
    bool tiny;       /* the smallest tiles: does anything fit? */
    double most;     /* bytes: plans that move more are of no use */
    uint64_t cycles; /* the same of plans that take as many, or more; or 0 */
} Way;

/* What a plan costs; cycles: 0 where nobody counts them. */
typedef struct Timed {
    Traffic traffic;
    uint64_t cycles;
} Timed;

/* ---- paces.c ---- */

/* Bandwidths for which transfers are ordered. */
typedef struct Pace {
    const HwSpec *spec;
    Plan *known;          /* the fastest so far, on `spec`; or NULL, and then */
    const HwSpec *faster; /* a machine on which others may not take fewer */
    uint64_t least;       /* cycles than this */
} Pace;

/* Whether the plan may stand beside those that are known: it moves as many
 * bytes, and faster machines miss nothing. Without a pace: true. */
bool pace_admits(const Pace *pace, const Plan *plan);

/* Finishes a plan at the pace; NULL if it does not fit. */
typedef Plan *FinishPlan(void *context, Diag *diag, const Pace *pace);

/* The plan for the real machine: finished for the bandwidths that plans are
 * chosen for, or for lower ones, as long as the budget lasts. */
Plan *plan_at_pace(Arena *arena, Diag *diag, const Schedule *real,
                   const Budget *budget, FinishPlan *finish, void *context);

/* ---- the contest ---- */

typedef struct Contest {
    Arena *arena;
    const Schedule *schedule; /* its machine is the one to plan for */
    const Pace *pace;         /* that plans are finished at; NULL: the same */
    const PlanOptions *options;
    const Once *once;
    KnownGroups *known;
    bool any;
    uint64_t weights;    /* bytes, if each layer reads its own once */
    uint64_t compulsory; /* bytes that every plan moves */
    uint64_t kept;       /* bytes that are there at once, if everything stays */
    bool enough;         /* any plan is as good as others */
    bool exact;          /* plans say how many cycles they take */
    uint32_t kinds;      /* of layers that can be kept out of groups: bits */
    uint64_t never;      /* no plan in fewer bytes than this */
    Way best;
    Timed least;
} Contest;

/* ---- plan.c ---- */

/* Fills in what is known of its schedule, and gives `bound` its bounds; the
 * first of its works. */
Work *contest_open(Contest *c, Plan *bound);

/* ---- way.c ---- */

/* A plan in the making. */
typedef struct Attempt {
    Arena *arena;
    Way way;
    Schedule *schedule; /* on the machine with way.size */
    Work *w;
    Problem problem;
    PlanResult result;
    Plan *plan;
    Traffic traffic; /* contest.c */
    uint64_t height; /* bytes that it takes; 0: it does not fit */
    bool hopeless;   /* it would move more than way.most */
    bool too_long;   /* so it was not placed: way.brief */
} Attempt;

/* Begins, in `arena`: chooses groups. */
void way_open(Arena *arena, const Contest *c, const Way *way, Attempt *a);
/* Places everything; false if it does not fit that way. */
bool way_settle(const Contest *c, Attempt *a);
/* Both. */
bool way_place(Arena *arena, const Contest *c, const Way *way, Attempt *a);
/* Gives what was placed its actions, as good as suffices to compare bytes.
 * False, with an error, when an external memory is too small. */
bool way_act(Attempt *a, Diag *diag);
/* The same as good as it gets, which takes time, for the real machine. It is
 * the same for all that are larger than it is planned for. */
bool way_finish(Attempt *a, Diag *diag, const Contest *c);
/* All of it; NULL if it does not fit that way. */
Plan *way_plan(Arena *arena, Diag *diag, const Contest *c, const Way *way);

/* The schedule on a machine with a first memory of `size` bytes. */
const Schedule *schedule_within(Arena *arena, const Schedule *real,
                                uint64_t size);

/* ---- heat.c ---- */

/* A way, and what became of it. */
typedef struct Tried {
    Way way;
    const Group *groups; /* as in Work */
    bool by_parts, too_long;
    uint64_t height; /* 0: it does not fit */
} Tried;

/* Plans for one size. */
typedef struct Heat {
    const Contest *c;
    bool loose, tight, falls; /* as in Way */
    bool fewest;              /* only those with fewer bytes than all before */
    bool places;              /* whether one fits is all that is asked */
    double most;              /* bytes: plans that move more are of no use */
    uint64_t others;          /* as in Way */
    uint64_t height;  /* of the way that was tried last; 0: it does not fit */
    bool fits, stops; /* one that is short enough was found */
    VEC(Attempt *) entry;
    VEC(Tried) tried;
} Heat;

void heat_way(Heat *h, Way way);
/* Without those that it asks for. */
void heat_alone(Heat *h, Way way);
/* All ways that there are; `beside`: those that take longest, too. */
void heat_ways(Heat *h, uint64_t size, bool beside);
/* An entry is of no use any more; the others keep their numbers. */
void heat_drop(Heat *h, uint32_t entry);
void heat_free(Heat *h);

/* ---- ladder.c ---- */

/* Whether time counts beside bytes. */
bool weighs_time(const Contest *c);
/* Whether each plan takes long, so that fewer ways are tried for time. */
bool has_many_steps(const Contest *c);
/* Whether no layer would be faster if it read from outside what is kept, nor
 * does what is kept depend on tiles. */
bool kept_is_fastest(const Contest *c);
/* Finds the way to take for a machine on which it does. */
void ladder_climb(Contest *c);

/* ---- hide.c ---- */

/* The plan, or another that moves no more bytes and takes fewer cycles. */
Plan *plan_hidden(Arena *arena, const Contest *c, Plan *plan);

/* ---- contest.c ---- */

/* Finds the way that is best: c->best, if there is any. */
void way_choose(Contest *c);

#endif
