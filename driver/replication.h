/* replication.h - how each volume is stored: off, by the rule, by search, or
 * as a file says. */
#ifndef DRIVER_REPLICATION_H
#define DRIVER_REPLICATION_H

#include "driver/pipeline.h"

/* Plans `p->schedule` as options->replication says. */
ExitCode replication_plan(Arena *arena, Diag *diag, const Options *options,
                          Pipeline *p);

/* False for "off". */
bool replication_on(const Options *options);

#endif
