/* test_dependences.c - actions that wait for what they must, and for no more:
 * random plans against all pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/overlap/dependences.h"
#include "nets.h"

enum { PLANS = 20, ACTIONS = 400, VOLUMES = 24, AM = 400 };

typedef struct Random {
    uint64_t n;
} Random;

static uint32_t below(Random *random, uint32_t n) {
    enum { SEED = 7 };
    return (uint32_t)(rng_bits(SEED, random->n++) % n);
}

/* Volumes in active memory, then as many in backing memory. */
static Placement *placements(Arena *arena, Random *random, uint32_t backing) {
    Placement *p = ARENA_ARRAY(arena, Placement, 2 * VOLUMES);
    for (uint32_t i = 0; i < 2 * VOLUMES; i++) {
        Volume v = {1 + below(random, 6),
                    1 + below(random, 6),
                    1 + below(random, 4),
                    {0}};
        uint32_t part = below(random, v.c);
        p[i] = (Placement){.memory = i < VOLUMES ? 0 : backing,
                           .whole = v,
                           .bytes = (uint64_t)v.c * v.h * v.w,
                           .offset = below(random, AM),
                           .part_c = part,
                           .n_c = v.c - part,
                           .rows = v.h};
    }
    return p;
}

static Action action(Arena *arena, Random *random, const Placement *p) {
    static const ActionKind kinds[] = {ACTION_LOAD, ACTION_STORE, ACTION_RUN,
                                       ACTION_CONCAT};
    ActionKind kind = kinds[below(random, 4)];
    uint32_t in = below(random, VOLUMES), out = below(random, VOLUMES);
    in += kind == ACTION_LOAD ? VOLUMES : 0;
    out += kind == ACTION_STORE ? VOLUMES : 0;
    return (Action){.kind = kind,
                    .n_in = 1,
                    .in = ARENA_COPY(arena, uint32_t, &in, 1),
                    .out = out,
                    .rows =
                        p[in].rows < p[out].rows ? p[in].rows : p[out].rows};
}

static bool conflict(Arena *arena, const Plan *plan, uint32_t i, uint32_t k) {
    const Action *a = &plan->action[i], *b = &plan->action[k];
    Accesses x = accesses_of(arena, plan, a), y = accesses_of(arena, plan, b);
    return (is_move(a) || is_move(b)) && accesses_meet(&x, &y);
}

/* By pairs [i * ACTIONS + k]: k is done when i begins. */
static bool *done_by(Arena *arena, const Plan *plan, const Waits *waits) {
    bool *done = ARENA_ARRAY(arena, bool, ACTIONS *ACTIONS);
    for (uint32_t i = 0; i < ACTIONS; i++)
        for (uint32_t k = i; k-- > 0 && i - k <= WINDOW;) {
            bool layers =
                is_layer(&plan->action[i]) && is_layer(&plan->action[k]);
            uint32_t d = i - k - 1;
            if (!layers && near_next(&waits->before[i], d) != d)
                continue;
            done[i * ACTIONS + k] = true;
            for (uint32_t j = 0; j < k; j++)
                done[i * ACTIONS + j] |= done[k * ACTIONS + j];
        }
    return done;
}

static void compare(Arena *arena, const Plan *plan) {
    Waits waits = waits_find(arena, plan, plan->action, ACTIONS);
    bool *done = done_by(arena, plan, &waits);
    for (uint32_t i = 0; i < ACTIONS; i++)
        for (uint32_t k = i > WINDOW ? i - WINDOW : 0; k < i; k++) {
            uint32_t d = i - k - 1;
            bool waits_for = near_next(&waits.before[i], d) == d;
            bool waited_by = near_next(&waits.after[k], d) == d;
            bool must = conflict(arena, plan, i, k);
            assert_true(!must || done[i * ACTIONS + k]);
            assert_true(!waits_for || must);
            assert_int_equal(waits_for, waited_by);
        }
}

static void waits_are_those_of_all_pairs(void **state) {
    (void)state;
    Random random = {0};
    for (uint32_t n = 0; n < PLANS; n++) {
        Arena *arena = arena_new("test");
        Toy *toy = toy_new(arena, AM, 1);
        Schedule schedule = {.spec = &toy->spec};
        Placement *p = placements(arena, &random, (uint32_t)toy->spec.backing);
        Action *all = ARENA_ARRAY(arena, Action, ACTIONS);
        for (uint32_t i = 0; i < ACTIONS; i++)
            all[i] = action(arena, &random, p);
        Plan plan = {.schedule = &schedule,
                     .n_actions = ACTIONS,
                     .action = all,
                     .n_placements = 2 * VOLUMES,
                     .placement = p};
        compare(arena, &plan);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_those_of_all_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
