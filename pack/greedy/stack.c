/* stack.c - each on top of all that it conflicts with, none in a gap
 * between two: what the two greedy planners of TVM's unified static memory
 * planner do (tvm-rfcs 0009). Kept to compare with; greedy_by_size and
 * greedy_by_conflicts, in nearly the same orders, use the gaps.
 *
 * Equal sizes: more conflicts first; equal numbers of conflicts: larger first;
 * then the last first, as TVM has it with names.
 */
#include "pack/free_list.h"
#include "pack/packers.h"

#include "base/order.h"

#include <stdlib.h>

typedef struct Key {
    uint64_t major, minor;
    uint32_t buf;
} Key;

static int most_first(const void *a, const void *b) {
    const Key *x = a, *y = b;
    return order_by3(ORDER_DOWN(x->major, y->major),
                     ORDER_DOWN(x->minor, y->minor),
                     ORDER_DOWN(x->buf, y->buf));
}

static uint64_t above_all(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[gaps->n - 1].at;
}

static void stack(Arena *arena, const PackProblem *problem, PackResult *result,
                  bool by_size) {
    uint32_t n = problem->n_bufs;
    Key *key = ARENA_ARRAY(arena, Key, n);
    const uint32_t *conflicts = pack_conflicts(arena, problem);
    for (uint32_t b = 0; b < n; b++) {
        uint64_t bytes = buf_bytes(problem, b);
        key[b] = by_size ? (Key){bytes, conflicts[b], b}
                         : (Key){conflicts[b], bytes, b};
    }
    if (n)
        qsort(key, n, sizeof *key, most_first);
    Placer *placer = placer_new(arena, problem, result);
    for (uint32_t i = 0; i < n; i++)
        placer_put(placer, key[i].buf, above_all, NULL);
}

void plan_stack_by_size(Arena *arena, const PackProblem *problem,
                        PackResult *result) {
    stack(arena, problem, result, true);
}

void plan_stack_by_conflicts(Arena *arena, const PackProblem *problem,
                             PackResult *result) {
    stack(arena, problem, result, false);
}
