/* replication.h - how each volume is stored: off, by the rule, by search, or
 * as a file says. */
#ifndef DRIVER_REPLICATION_H
#define DRIVER_REPLICATION_H

#include "driver/pipeline.h"

/* Plans `p->schedule` as options->replication says. */
ExitCode replication_plan(Arena *arena, Diag *diag, const Options *options,
                          Pipeline *p);

/* A PlanCycles: from image to image, as the simulator counts; UINT64_MAX where
 * there is no listing of the plan. Its context: what points of a sweep share,
 * or NULL. */
uint64_t simulated_cycles(void *context, const Plan *plan);

/* False for "off". */
bool replication_on(const Options *options);

#endif
