/* guard.c - see guard.h. */
#include "base/guard.h"

#include "base/diag.h"

#include <stddef.h>

static _Thread_local Guard *innermost;

void guard_open(Guard *guard) {
    guard->first = NULL;
    guard->polls = 0;
    guard->reason = GUARD_NONE;
    guard->said[0] = '\0';
    guard->outer = innermost;
    guard->out = innermost ? innermost->out : NULL;
    guard->err = innermost ? innermost->err : NULL;
    innermost = guard;
}

void guard_exit(Guard *guard) {
    innermost = guard->outer;
    while (guard->first) {
        GuardLink *link = guard->first;
        guard_remove(link);
        guard->drop(link);
    }
}

#ifdef AMPHORA_EMBEDDED /* elsewhere in diag.c */
_Noreturn void bug_at(const char *file, int line, const char *format, ...) {
    (void)file;
    (void)line;
    (void)format;
    guard_leave(GUARD_BUG);
}
#endif

bool guard_active(void) {
    return innermost;
}

_Noreturn void guard_leave(GuardReason reason) {
    innermost->reason = reason;
    longjmp(innermost->back, 1);
}

char *guard_reason_text(void) {
    return innermost->said;
}

void guard_forget(void) {
    innermost = NULL;
}

FILE *guard_out(void) {
    return innermost ? innermost->out : NULL;
}

FILE *guard_err(void) {
    return innermost ? innermost->err : NULL;
}

void guard_poll(void) {
    enum { STEPS_A_POLL = 64 };
    Guard *guard = innermost;
    if (guard && guard->poll && guard->polls++ % STEPS_A_POLL == 0 &&
        guard->poll(guard->context))
        guard_leave(GUARD_STOPPED);
}

void guard_add(GuardLink *link, void (*drop)(GuardLink *link)) {
    Guard *guard = innermost;
    *link = (GuardLink){0};
    if (!guard)
        return;
    guard->drop = drop;
    *link = (GuardLink){guard->first, &guard->first};
    if (link->next)
        link->next->at = &link->next;
    guard->first = link;
}

void guard_remove(GuardLink *link) {
    if (!link->at)
        return;
    *link->at = link->next;
    if (link->next)
        link->next->at = link->at;
    link->at = NULL;
}
