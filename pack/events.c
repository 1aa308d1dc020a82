/* events.c - the order of births and deaths; see events.h.
 *
 * Input: events. Output: the same, sorted. Who dies at a step is gone when
 * others are born at it: lives are half-open.
 */
#include "pack/events.h"

#include "base/order.h"

#include <stdlib.h>

static int by_step(const void *a, const void *b) {
    const LifeEvent *x = a, *y = b;
    return order_by3(ORDER_UP(x->step, y->step), ORDER_UP(x->birth, y->birth),
                     ORDER_UP(x->who, y->who));
}

void events_sort(LifeEvent *event, size_t n) {
    if (n)
        qsort(event, n, sizeof *event, by_step);
}
