/* replication.h - which volumes can be stored with copies, and what it would
 * save.
 *
 * A model of a whole schedule in which nothing overlaps and everything stays in
 * active memory: an engine takes the longest of its array, its ports and its
 * weights (hwspec/cost.h). How a volume lies changes the cycles of who writes
 * it and of who reads it, and of nobody else.
 */
#ifndef ALLOC_SEARCH_REPLICATION_H
#define ALLOC_SEARCH_REPLICATION_H

#include "plan/plan.h"

enum { COPIES_MAX_WAYS = 16 };

/* A volume with a choice. */
typedef struct CopyVolume {
    TensorId tensor;
    uint32_t n;                /* >= 2 */
    Repl way[COPIES_MAX_WAYS]; /* [0]: without copies */
} CopyVolume;

typedef struct CopyModel CopyModel;
CopyModel *copies_model(Arena *arena, const Schedule *schedule);
uint32_t copies_volumes(const CopyModel *model, const CopyVolume **out);

/* Why the volume must do without copies; NULL if it may have them. */
const char *copies_refusal(const CopyModel *model, TensorId tensor);

/* The ways of a volume of so many channels; 0: the machine has no copies. */
uint32_t copies_ways(const HwSpec *spec, uint32_t channels,
                     Repl way[COPIES_MAX_WAYS]);

/* Cycles with each tensor stored as `stored` says, by tensor id. */
uint64_t copies_cycles(CopyModel *model, const Repl *stored);

/* Changes `stored` to the fewest cycles: exact for groups of volumes that share
 * nodes if their combinations are few, else until no single volume helps. */
void copies_choose(CopyModel *model, Repl *stored);

/* A convolution that would run faster if its input came from backing memory,
 * since more copies can be made on that way than can be stored. */
typedef struct CopyFly {
    NodeId node;
    uint64_t gain; /* cycles, the way there and back taken off */
} CopyFly;
/* The most gain first. */
uint32_t copies_flies(CopyModel *model, const Repl *stored,
                      const CopyFly **out);

#endif
