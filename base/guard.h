/* guard.h - work that can be given up in the middle.
 *
 * Between guard_open and guard_exit a thread's work ends early where memory
 * runs out, where it finds a bug, or where the guard's `poll` says so: all
 * arenas made since are given back, and control returns to the guard. So a
 * library that others embed never ends their program. A thread without a guard
 * is not affected. The innermost guard of a thread is all the state there is;
 * it also knows where what the work says to people goes.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum GuardReason {
    GUARD_NONE,
    GUARD_STOPPED,
    GUARD_NO_MEMORY,
    GUARD_BUG
} GuardReason;

/* What an arena keeps to be found by its guard. */
typedef struct GuardLink {
    struct GuardLink *next, **at; /* `at` NULL: in no guard's list */
} GuardLink;

typedef struct Guard {
    jmp_buf back;
    GuardLink *first;
    void (*drop)(GuardLink *link);
    bool (*poll)(void *context); /* true: stop; NULL: never */
    void *context;
    GuardReason reason;
    char said[1 << 9]; /* of a bug or of memory: which */
    FILE *out, *err;   /* or NULL: nowhere; an inner guard has its outer's */
    uint32_t polls;
    struct Guard *outer;
} Guard;

/* Between guard_open and guard_exit:
 *     guard_open(&guard);
 *     if (guard_begins(&guard))
 *         work, which ends here or is given up
 *     guard_exit(&guard);
 * and then `reason` tells which. */
void guard_open(Guard *guard);
#define guard_begins(guard) (setjmp((guard)->back) == 0)
void guard_exit(Guard *guard);

bool guard_active(void);
_Noreturn void guard_leave(GuardReason reason);

/* Room for what is said of the reason. */
char *guard_reason_text(void);

/* In a new process: what guards here belongs to its parent. */
void guard_forget(void);

/* Where results and what accompanies them are printed; NULL: nowhere. */
FILE *guard_out(void);
FILE *guard_err(void);

/* Called by what may take long, once a step. */
void guard_poll(void);

/* Of arenas. */
void guard_add(GuardLink *link, void (*drop)(GuardLink *link));
void guard_remove(GuardLink *link);

#endif
