/* call.h - work that a program asked of the library: under a guard
 * (base/guard.h), so that neither lack of memory nor a bug of ours ends the
 * program, and with streams to the program's own function.
 */
#ifndef DRIVER_CALL_H
#define DRIVER_CALL_H

#include <amphora/amphora.h>

#include "base/guard.h"

/* What the work prints; `error`: errno of the first that was not taken. */
typedef struct Sink {
    amphora_write *write; /* NULL: nobody reads it */
    void *context;
    amphora_stream stream;
    int error;
    FILE *file;
} Sink;

/* False: no memory. */
bool sink_open(Sink *sink, amphora_stream stream, amphora_write *write,
               void *context);
void sink_close(Sink *sink);
/* All that was printed is with the program, and written there; else `error`. */
bool sink_flush(Sink *sink);

typedef void CallWork(void *task);

/* Runs the work; out, err may be NULL. GUARD_NONE: it ended by itself; else
 * `said` tells the reason. */
enum { CALL_SAID = sizeof((Guard *)0)->said };
GuardReason call_guarded(CallWork *work, void *task, Sink *out, Sink *err,
                         char said[CALL_SAID]);

#endif
