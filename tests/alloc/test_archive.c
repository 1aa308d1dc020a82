/* The archive keeps what no other plan is as good as, and its best is that of
 * all plans that were ever added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/search/archive.h"
#include "base/rng.h"

enum { PLANS = 60, ROUNDS = 40 };

static const PlanCost *best_of(const PlanCost *all, uint32_t n, uint64_t size,
                               PlanObjective objective) {
    const PlanCost *best = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (all[i].memory <= size &&
            (!best || plan_cost_less(objective, &all[i], best)))
            best = &all[i];
    return best;
}

static void keeps_the_best(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        Arena *arena = arena_new("test");
        Archive archive = {.arena = arena};
        PlanCost all[PLANS];
        for (uint32_t i = 0; i < PLANS; i++) {
            all[i] = (PlanCost){rng_bits(seed, 4 * i) % 9 + 1,
                                rng_bits(seed, 4 * i + 1) % 9 + 1,
                                rng_bits(seed, 4 * i + 2) % 9 + 1,
                                rng_bits(seed, 4 * i + 3) % 9 + 1};
            archive_add(&archive, &(Candidate){i, all[i]});
        }
        const PlanCost *front;
        uint32_t n = archive_front(arena, &archive, &front);
        for (int o = 0; o < PLAN_OBJECTIVES; o++)
            for (uint64_t size = 0; size < 11; size++) {
                const PlanCost *is = best_of(front, n, size, (PlanObjective)o);
                const PlanCost *should =
                    best_of(all, PLANS, size, (PlanObjective)o);
                assert_true(!is == !should);
                assert_false(is &&
                             plan_cost_less((PlanObjective)o, should, is));
            }
        arena_free(arena);
    }
}

static void front_is_sorted(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Archive archive = {.arena = arena};
    const PlanCost *front;
    assert_true(archive_add(&archive, &(Candidate){0, {9, 5, 1, 4}}));
    assert_true(archive_add(&archive, &(Candidate){1, {5, 9, 1, 4}}));
    assert_false(archive_add(&archive, &(Candidate){2, {9, 5, 1, 4}}));
    assert_true(archive_add(&archive, &(Candidate){3, {8, 4, 1, 4}}));
    assert_int_equal(archive_front(arena, &archive, &front), 2);
    assert_int_equal(front[0].bytes, 4);
    assert_int_equal(front[1].cycles, 5);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_best),
        cmocka_unit_test(front_is_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
