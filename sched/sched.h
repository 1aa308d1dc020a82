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

typedef struct Schedule {
    const HwSpec *spec;
    const Graph *graph;
    const char *strategy;
    uint32_t n_steps;
    const Step *step;
    const uint32_t *step_of; /* by node id; NONE for INPUT */
} Schedule;

/* A strategy is a row; "file" is the graph's own order. */
typedef struct Strategy {
    const char *name;
    const Schedule *(*run)(Arena *arena, const HwSpec *spec, const Graph *g);
    const char *doc;
} Strategy;
extern const Strategy strategies[];
extern const uint32_t n_strategies;

/* NULL with an error if no strategy has that name. */
const Schedule *sched_run(Arena *arena, Diag *diag, const HwSpec *spec,
                          const Graph *g, const char *strategy);

/* One step a line: "12 conv conv2/3x3" ... */
const char *sched_print(Arena *arena, const Schedule *schedule);

#endif
