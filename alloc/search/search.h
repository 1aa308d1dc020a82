/* search.h - the search for the best plan; private to alloc. */
#ifndef ALLOC_SEARCH_SEARCH_H
#define ALLOC_SEARCH_SEARCH_H

#include "alloc/alloc.h"
#include "alloc/overlap/overlap.h"
#include "alloc/search/archive.h"
#include "alloc/spill/spill.h"
#include "base/vec.h"
#include "plan/cost.h"

/* How far a search goes: budgets in steps, the same on all machines. */
typedef struct Effort {
    uint32_t sizes; /* of the grid, the memory's own included, and all of them
                     * while the search has taken less than so many steps */
    uint64_t walk;
    uint32_t timed;       /* plans a size whose transfers are scheduled, */
    uint32_t least_timed; /* and where these plans are long */
    uint32_t finished; /* of these, whose transfers are scheduled to the end */
    uint64_t steps;    /* steps of schedules that are planned, in all */
    uint32_t packing;  /* steps of a packer on what is finished */
} Effort;
enum { EFFORTS = 4, GRID_OCTAVE = 4 };
extern const Effort efforts[EFFORTS];

/* ---- fit.c ---- */

/* Whether there seems to be any plan for the machine, of no more instructions
 * than it holds: none is made to the end. `once`: as in attempt_new. */
bool plan_exists(const Schedule *schedule, const HwSpec *spec,
                 const PlanOptions *options, const Memo *memo);
struct PlanShared {
    const Memo *memo;
};
/* What plan_make was asked. */
typedef struct Asked {
    const Schedule *schedule;
    const PlanOptions *options;
    /* Whether plan_make would make a plan of that, in so many bytes of the
     * first memory: made to the end, and judged. False, too, where the budget,
     * which it uses, ran out. */
    bool (*would_do)(const struct Asked *asked, Budget *budget, uint64_t size);
    struct Staging *tried; /* or NULL: what was found with weights beside */
} Asked;
/* Ready for fit_*; `once`: of other Facts of the same schedule and machine, but
 * for its first memory's size; or NULL. `config`: or NULL, and then listings
 * may be too long. */
Attempt *attempt_new(Arena *arena, const Schedule *schedule, const HwSpec *spec,
                     const PlanOptions *options, const Memo *memo,
                     const Config *config);
/* trial.c: the machine with another size of its first memory; tile buffers are
 * fractions of it. */
const HwSpec *spec_within(Arena *arena, const HwSpec *spec, uint64_t size);
/* One level, else two. */
bool work_fit(Attempt *a);

/* Layers in cascades; false if there are none. */
bool work_choose_cascades(Decisions *d);
/* With these. */
bool work_fit_cascades(Attempt *a);

/* Plans that the verifier found illegal: how many, and what it said last. */
typedef struct Rejected {
    uint32_t n;
    const char *wrong; /* NULL: none was */
} Rejected;
/* Whether the plan is legal, by the verifier that the options name. */
bool plan_admitted(Arena *arena, const PlanOptions *options, const Plan *plan,
                   Rejected *rejected);

/* ---- images.c ---- */

/* Whether the memories outside hold what so many images keep there. */
bool images_fit(Arena *arena, const Plan *one, uint32_t images);

/* ---- trial.c: one configuration, from cascades to actions ---- */

typedef struct Search Search;

/* A plan in the making. */
typedef struct Trial {
    Arena *arena;
    Config config;
    uint32_t number; /* of the configuration, in the order of the search */
    Schedule *schedule;
    Attempt *a;
    Plan *plan;
    Traffic traffic;
    PlanCost cost;
    PlanCost expected; /* before its transfers are scheduled; pace.c */
    uint64_t chosen;   /* fingerprint of its cascades; 0: none were chosen */
    uint64_t print;    /* of its actions */
    bool finished;
    bool counted; /* its cycles are the simulator's, not its own clock's */
} Trial;

/* Whether a part of memory depends on the memory's size: then plans for less
 * are timed in the real one, whose partitions lie elsewhere. */
bool has_partitions(const HwSpec *spec);
/* Chooses cascades; false if there are none, and the family is of them. */
bool trial_choose(Search *s, Trial *t);
/* Then places everything; false if it does not fit. */
bool trial_place(Trial *t);
/* Makes actions: bytes and instructions are known then. False, with an error,
 * if an external memory is too small. */
bool trial_act(Trial *t, Diag *diag);
/* Lowers the placement, then moves tensors apart. */
bool trial_settle(Search *s, Trial *t);
/* After that, puts transfers beside layers. Cycles are those of the plan's own
 * clock. False: it breaks a rule. */
bool trial_time(Search *s, Trial *t);
/* Asks the simulator for the cycles. False: it breaks a rule. */
bool trial_count(Search *s, Trial *t);
/* The same by the plan's own clock, once that was seen to count as the
 * simulator does. */
bool trial_clock(Search *s, Trial *t);
/* trial_time with all that shortens the schedule, from what that found. */
void trial_finish(Search *s, Trial *t);
/* Its plan of tensors alone, without all that it was made of: there are many.
 */
Plan *trial_volumes(const Search *s, const Trial *t, Arena *arena);
/* The plan is one for the real machine from here on. */
void trial_leave(const Search *s, Trial *t);

/* The schedule on a machine with a first memory of `size` bytes. */
const Schedule *schedule_within(Arena *arena, const Schedule *real,
                                uint64_t size);

/* ---- configs.c: which configurations there are ---- */

/* What became of one. */
typedef struct Outcome {
    bool fits, by_parts, too_long;
} Outcome;

/* What cascades that were chosen before came to. */
typedef struct Chosen {
    uint64_t print;
    Outcome outcome;
} Chosen;

typedef VEC(Config) Configs;
/* For a machine whose memories end there, the most promising first. */
void configs_list(const Search *s, uint64_t cap, uint64_t others, Configs *out);
/* Those that hide more, where the best so far waits for transfers. */
void configs_hide(const Search *s, uint64_t cap, uint64_t others, Configs *out);
/* Those to try where none of these fits, */
void configs_rest(const Search *s, uint64_t cap, uint64_t others, Configs *out);
/* and where nothing does in any size. */
void configs_last(const Search *s, Configs *out);
/* Those that the result of one asks for. */
void configs_follow(const Search *s, const Config *config, Outcome outcome,
                    Configs *out);

/* ---- pace.c: costs before transfers are scheduled ---- */

/* So many times what its engines are at work, a plan of the configuration
 * took. */
typedef struct Pace {
    Config config;
    double times;
} Pace;
/* Of a plan that was timed. */
void pace_note(Search *s, const Trial *t);
/* Finishing a plan of `before` cycles left so many. */
void pace_note_finished(Search *s, uint64_t before, uint64_t cycles);
PlanCost cost_expected(const Search *s, const Trial *t);

/* ---- pool.c ---- */

/* Adds a plan to those of its size; frees what is not among the best of them.
 */
void pool_add(Search *s, Trial *t);
/* Times what is in the pool, finishes the best, and empties it into those of
 * all sizes. */
void pool_time(Search *s);
/* Whether the verifier finds the plan legal; others are counted. */
bool search_admits(Search *s, const Plan *plan);

/* ---- search.c ---- */

enum { MOST_TIMED = 32, MOST_BEST = 8 };

struct Search {
    Arena *arena;
    const Schedule *schedule; /* on the real machine */
    const PlanOptions *options;
    const Effort *effort;
    const Memo *memo;
    uint64_t compulsory; /* bytes that every plan moves */
    uint64_t never;      /* no plan in fewer bytes of memory than this */
    uint32_t kinds;      /* of nodes that can be kept out of cascades: bits */
    bool hastens;        /* layers may be faster if they read from outside */
    bool any;            /* one that fits is enough */
    bool volumes;        /* weights are not placed yet: cycles do not count */
    uint64_t aside;      /* bytes that weights have beside tensors */
    Aims aims;           /* as of a Config, of what is tried */
    uint64_t steps;      /* of schedules, that may still be planned */
    bool clock_told;     /* plans' own clock was compared with the simulator, */
    bool clock_errs;     /* and was seen to count otherwise */
    uint32_t n_tried;    /* configurations */
    bool roomy;          /* as of a Config, of what is tried */
    bool judges;         /* plans are verified before they are among the best */
    Rejected rejected;
    Archive archive;
    VEC(Config) tried;
    VEC(Chosen) chosen;
    VEC(uint64_t) seen;   /* fingerprints of plans that were timed */
    VEC(Pace) pace;       /* of plans that were timed */
    double finish_leaves; /* the least part of a plan's cycles that finishing
                           * it left; 0: none was finished */
    uint32_t n_pool;      /* of one size */
    Trial *pool[MOST_TIMED + 1];
    uint32_t n_best; /* of all, the best first */
    Trial *best[MOST_BEST + 1];
};

/* Opens a search, and gives `bound` its bounds. `once`: as in attempt_new. */
Attempt *search_open(Search *s, Arena *arena, const Schedule *schedule,
                     const PlanOptions *options, const Memo *memo, Plan *bound);
/* Looks for plans; the best are in s->best. False: nothing fits. */
bool search_run(Search *s);
/* Whether everything stays, which is then the best. */
bool search_kept(Search *s, const Config *config);
/* Whether one more size is looked at after `n`. */
bool search_walks(const Search *s, uint32_t n);
/* Of so few layers that looking at more sizes takes next to no time. */
bool search_is_small(const Search *s);
/* Plans within just so many bytes of the first memory, and of the others. */
bool search_size(Search *s, uint64_t cap, uint64_t others);
/* Frees what is not joined to s->arena. */
void search_close(Search *s);
/* As it was opened. */
void search_again(Search *s);
/* Takes the best of them: its arena joins `into`. NULL: none. */
Plan *search_take(Search *s, Arena *into);

#endif
