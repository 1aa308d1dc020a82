/* events.c - the order of births and deaths; see events.h.
 *
 * Input: events. Output: the same, sorted. Who dies at a step is gone when
 * others are born at it: lives are half-open.
 */
#include "pack/events.h"

#include <stdlib.h>

static int by_step(const void *a, const void *b) {
    const LifeEvent *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->birth != y->birth)
        return x->birth ? 1 : -1;
    return x->who < y->who ? -1 : x->who > y->who;
}

void events_sort(LifeEvent *event, size_t n) {
    if (n)
        qsort(event, n, sizeof *event, by_step);
}
