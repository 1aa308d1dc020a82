/* archive.c - see archive.h. */
#include "alloc/search/archive.h"

#include "base/order.h"

#include <stdlib.h>

bool archive_add(Archive *archive, const Candidate *candidate) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < archive->at.n; i++)
        if (plan_cost_no_worse(&archive->at.at[i].cost, &candidate->cost))
            return false;
    for (uint32_t i = 0; i < archive->at.n; i++)
        if (!plan_cost_no_worse(&candidate->cost, &archive->at.at[i].cost))
            archive->at.at[n++] = archive->at.at[i];
    archive->at.n = n;
    vec_push(archive->arena, &archive->at, *candidate);
    return true;
}

static int by_bytes(const void *a, const void *b) {
    const PlanCost *x = a, *y = b;
    return order_by(ORDER_UP(x->bytes, y->bytes),
                    order_by3(ORDER_UP(x->cycles, y->cycles),
                              ORDER_UP(x->memory, y->memory),
                              ORDER_UP(x->instructions, y->instructions)));
}

uint32_t archive_front(Arena *arena, const Archive *archive,
                       const PlanCost **out) {
    uint32_t n = archive->at.n;
    PlanCost *cost = ARENA_ARRAY(arena, PlanCost, n + 1);
    for (uint32_t i = 0; i < n; i++)
        cost[i] = archive->at.at[i].cost;
    if (n)
        qsort(cost, n, sizeof *cost, by_bytes);
    *out = cost;
    return n;
}
