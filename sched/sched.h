/* sched.h - Graph -> Schedule: the order of steps and what runs in each. */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "graph/graph.h"
#include "passes/legal.h"

typedef struct Slot {
    NodeId node;
    Legal legal; /* engine or host, and why */
} Slot;

/* At most one slot an engine. INPUT nodes have no step; CONCAT nodes have one
 * of their own (nothing runs in it, but the listing tells of it). */
typedef struct Step {
    uint32_t n;
    const Slot *slot;
} Step;

/* What is known of an order. Bytes are those of volumes alive in active memory
 * while a step runs, in the machine's layouts; a concat's members lie in its
 * volume, and their bytes serve others until they are written. */
typedef struct OrderFacts {
    uint64_t peak;   /* at the worst step */
    uint64_t bound;  /* no order of one node a step has less; 0: not sought */
    bool proved;     /* no other has less: peak == bound */
    uint64_t states; /* sets of done nodes that the search met */
    uint64_t cycles; /* estimate: of each step the longest slot */
    /* Steps of several nodes: none cost less, in steps (or, for TIME, in
     * cycles), where the aim bounds bytes in its way; 0: not sought. */
    uint64_t least_cost;
    bool cost_proved; /* these have least_cost */
    /* --order enumerate: parts between joins, the orders of all of them (at
     * most UINT64_MAX), and what the seed compiler's count of bytes says */
    uint32_t parts;
    uint64_t orders, seed_peak;
    uint32_t seed_steps; /* the joins at both ends included */
} OrderFacts;

typedef struct Schedule {
    const HwSpec *spec; /* NULL: no machine; bytes of 4 an element */
    const Graph *graph;
    const char *strategy;
    uint32_t n_steps;
    const Step *step;
    const uint32_t *step_of; /* by node id; NONE for INPUT */
    OrderFacts facts;
    const uint64_t *live; /* by step: bytes */
} Schedule;

/* A strategy is a row; "file" is the graph's own order. */
typedef struct OrderTask OrderTask;
typedef struct Ordering Ordering;
typedef struct Strategy {
    const char *name;
    void (*run)(Arena *arena, const OrderTask *task, Ordering *out);
    const char *doc;
} Strategy;
extern const Strategy strategies[];
extern const uint32_t n_strategies;

/* What steps of several nodes are to be good for. NOT: one node a step. */
typedef enum SideBySide {
    SIDE_BY_SIDE_NOT,
    SIDE_BY_SIDE_PEAK,  /* least peak, then fewest steps */
    SIDE_BY_SIDE_STEPS, /* fewest steps, then least peak */
    SIDE_BY_SIDE_TIME,  /* least estimated time that fits into active memory */
    SIDE_BY_SIDE_COUNT
} SideBySide;
extern const char *const side_by_side_name[SIDE_BY_SIDE_COUNT + 1];

typedef struct SchedOptions {
    const char *strategy;
    SideBySide aim;
    uint64_t seed;    /* of "random" */
    uint64_t budget;  /* looks at nodes before a search gives up; 0: default */
    bool replication; /* volumes are stored with copies, as plan_make's */
    bool ahead;       /* engines that work ahead run what they can */
} SchedOptions;

/* NULL with an error if no strategy has that name. */
const Schedule *sched_run(Arena *arena, Diag *diag, const HwSpec *spec,
                          const Graph *g, const char *strategy);

/* The same with options. `spec` may be NULL: then every node counts, results of
 * element-wise nodes take the place of their first operand of that size, and
 * concats copy (the convention of facts/two-level.md 1.2). */
const Schedule *sched_search(Arena *arena, Diag *diag, const HwSpec *spec,
                             const Graph *g, const SchedOptions *options);

/* The steps so many times, over a graph that graph_repeat has made. */
const Schedule *sched_repeat(Arena *arena, const Schedule *one,
                             const Graph *graph, uint32_t images);

/* One step a line: "12 conv conv2/3x3" ... */
const char *sched_print(Arena *arena, const Schedule *schedule);

#endif
