/* alloc.h - Schedule -> Plan: the planner's door. */
#ifndef ALLOC_ALLOC_H
#define ALLOC_ALLOC_H

#include "base/budget.h"
#include "plan/plan.h"

enum { PLAN_MOST_EFFORT = 3 };

/* As plan_judge. */
typedef const char *PlanJudge(Arena *arena, const Plan *plan);

/* Cycles that a plan takes; UINT64_MAX: it breaks a rule. */
typedef uint64_t PlanCycles(void *context, const Plan *plan);

/* What plans of one schedule, by the same options, have in common on machines
 * that differ in the size of their first memory alone: what one of them found
 * out no other one finds again. Each plan is the one that it is alone. */
typedef struct PlanShared PlanShared;

/* Told of each size of memory that was searched: what it took so far, and the
 * least cost that was found, or NULL. False ends the search: what it has by
 * then is its result. */
typedef bool PlanWatch(void *context, const PlanEffort *effort,
                       const PlanCost *best);

typedef struct PlanOptions {
    const char *planner;   /* "auto" */
    bool replication;      /* the rule of facts/xdnn.md 2.4, or none */
    bool layer_by_layer;   /* none run together by stripes */
    uint64_t aside;        /* bytes of the first memory that its size lacks, as
                            * weights must have them: */
    const char *aside_for; /* the layer whose smallest block is the largest */
    bool no_remedy;     /* what does not fit asks for no size that would do */
    bool first_will_do; /* the first plan with weights beside tensors */
    /* or NULL; by tensor id: how it is stored, all zero: by the rule */
    const Repl *chosen;
    /* or NULL; by node id: it is to read its input by tiles from backing
     * memory, with the copies that can be made on the way */
    const bool *fly;
    /* or NULL; by node id: an input that is a state, which stays in active
     * memory from call to call, as does what it is in the next one */
    const bool *states;
    bool no_states; /* what runs it keeps states by itself */
    PlanObjective objective;
    double recompute;   /* a plan computes at most so many times the products of
                         * the network; 0: as many as stripes make it */
    bool front;         /* Plan.front is to have plans, too, that the objective
                         * makes no use of */
    uint32_t effort;    /* of the search: 0 to PLAN_MOST_EFFORT */
    uint32_t images;    /* of the listing that this is the plan of one of; 0:
                         * just one */
    PlanCycles *cycles; /* or NULL: then bytes alone decide between plans */
    void *context;
    PlanWatch *watch;   /* or NULL */
    void *watcher;      /* its context */
    PlanJudge *judge;   /* NULL: plan_judge */
    PlanShared *shared; /* or NULL */
    /* or NULL: another schedule of the same graph, whose plan would do as well:
     * a refusal's advice is for either */
    const Schedule *other;
    /* plan_make's own: what searches may still do, NULL: anything; what a
     * refusal's advice is for */
    Budget *budget;
    PlanEffort *spent;
    const struct Asked *asked;
} PlanOptions;

/* `options`: whose `cycles`, `chosen` and `fly` all plans have. It lives as
 * long as `arena`. */
PlanShared *plan_shared_new(Arena *arena, const Schedule *schedule,
                            const PlanOptions *options);

/* NULL after errors. When nothing fits: one error with the explanation
 * (step, volumes, bytes each, bytes short, the remedy if wanted), and
 * *does_not_fit. */
const Plan *plan_make(Arena *arena, Diag *diag, const Schedule *real,
                      const PlanOptions *options, bool *does_not_fit);

/* The plan of one image `options->images` times, over a schedule that
 * sched_repeat has made, on the same machine, which may hold more instructions;
 * where transfers run beside layers, those of one image beside layers of
 * others. Its cost is that of all images; `front` stays that of one. NULL after
 * errors; *does_not_fit: in memories, or as instructions. */
const Plan *plan_images(Arena *arena, Diag *diag, const Plan *one,
                        const Schedule *schedule, const PlanOptions *options,
                        bool *does_not_fit);

#endif
