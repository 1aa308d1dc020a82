/* child.h - work in a process of its own, with limits.
 *
 * For libraries that read what a stranger wrote: one that loops, crashes or
 * asks for all memory takes its process with it, not ours. What the work finds
 * comes back through a pipe.
 */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/diag.h"

typedef struct ChildLimits {
    const char *who;  /* "libhdf5", for messages */
    uint32_t seconds; /* of a processor */
    uint64_t bytes;   /* of memory, beside what is mapped when it starts */
} ChildLimits;

/* Runs in the child, which ends when it returns. Must not allocate from arenas
 * nor touch stdio: what the parent has buffered would be written twice. */
typedef void ChildWork(int to, void *context);

typedef struct Child Child;

/* Starts `work`. Never NULL: where no process can be had, nothing is read from
 * it and child_end says so. */
Child *child_start(Arena *arena, const ChildLimits *limits, ChildWork *work,
                   void *context);

/* For the work: writes to the parent, or ends the child where nobody reads. */
void child_write(int to, const void *bytes, size_t len);

/* The next `len` bytes that the child wrote; false: it ended before, or was
 * ended since it takes too long. */
bool child_read(Child *child, void *at, size_t len);

/* Waits for its end; whatever is left unread is dropped. False after an error
 * at `loc`: a limit was reached, it crashed, or could not be started. */
bool child_end(Child *child, Diag *diag, Loc loc);

#endif
