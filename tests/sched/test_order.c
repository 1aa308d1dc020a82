/* test_order.c - the search for the least peak against all orders of small
 * random problems: with results in place and with shared buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "sched/best.h"
#include "sched/parts.h"

typedef struct Dice {
    uint64_t seed, at;
} Dice;

static uint32_t roll(Dice *d, uint32_t sides) {
    return (uint32_t)(rng_bits(d->seed, d->at++) % sides);
}

/* A network of n nodes in topological order. Each has a result that later ones
 * read; some write it in the place of an operand of its size; some results are
 * parts of a volume that stays whole until its last reader. */
static const OrderProblem *random_problem(Arena *arena, uint64_t seed,
                                          uint32_t n) {
    Dice d = {seed, 0};
    OrderMaker *m = order_maker(arena, n);
    uint32_t result[64], reads = 2 + roll(&d, 3);
    uint64_t bytes[64];
    uint32_t input = order_buf(m, 1 + roll(&d, 40), roll(&d, 2), false);
    for (uint32_t v = 0; v < n; v++) {
        bytes[v] = 1 + roll(&d, roll(&d, 4) ? 8 : 60);
        uint32_t n_in = v ? roll(&d, v < reads ? v + 1 : reads) : 0;
        uint32_t in[8] = {0};
        for (uint32_t k = 0; k < n_in; k++)
            in[k] = roll(&d, 3) && v > 4 ? v - 1 - roll(&d, 4) : roll(&d, v);
        bool in_place = n_in && roll(&d, 3) == 0;
        if (in_place)
            bytes[v] = bytes[in[0]];
        result[v] = order_buf(m, bytes[v], false, roll(&d, 9) == 0);
        order_touch(m, v, result[v]);
        for (uint32_t k = 0; k < n_in; k++) {
            order_wait(m, v, in[k]);
            order_touch(m, v, result[in[k]]);
            if (in_place && bytes[in[k]] == bytes[v])
                order_over(m, v, result[in[k]], bytes[v]);
        }
        if (!n_in)
            order_touch(m, v, input);
        if (v > 3 && roll(&d, 5) == 0) { /* reads the parts of a concat */
            for (uint32_t k = 0; k < 3; k++) {
                uint32_t part = roll(&d, v);
                order_wait(m, v, part);
                order_touch(m, v, result[part]);
            }
        }
    }
    return order_problem(m);
}

/* The least peak of all orders. */
static void try_all(OrderState *s, uint64_t peak, uint64_t *least) {
    if (peak >= *least)
        return;
    if (s->n == s->p->n_nodes) {
        *least = peak;
        return;
    }
    for (uint32_t v = order_next(s->ready, s->words, 0); v != ORDER_NONE;
         v = order_next(s->ready, s->words, v + 1)) {
        uint64_t need = order_cost(s, v).peak;
        order_run(s, v);
        try_all(s, need > peak ? need : peak, least);
        order_undo(s);
    }
}

static uint32_t *as_given(Arena *arena, uint32_t n) {
    uint32_t *order = ARENA_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    return order;
}

static void best_is_the_least_of_all_orders(void **state) {
    (void)state;
    uint32_t improved = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        Arena *arena = arena_new("test");
        uint32_t n = 3 + (uint32_t)(seed % 8);
        const OrderProblem *p = random_problem(arena, seed, n);
        const uint32_t *given = as_given(arena, n);
        Best best = order_best(arena, p, given, 0);
        OrderState s = order_state(arena, p);
        uint64_t least = UINT64_MAX;
        try_all(&s, s.live, &least);
        if (best.peak != least)
            fail_msg("seed %u: %u, but an order has %u", (unsigned)seed,
                     (unsigned)best.peak, (unsigned)least);
        assert_true(best.proved);
        assert_int_equal(best.bound, least);
        assert_int_equal(order_peak(arena, p, best.order, NULL), least);
        improved += best.order != given;
        arena_free(arena);
    }
    assert_true(improved > 300);
}

static void the_same_every_time(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        Arena *arena = arena_new("test");
        const OrderProblem *p = random_problem(arena, seed, 40);
        const uint32_t *given = as_given(arena, 40);
        Best a = order_best(arena, p, given, 300000);
        Best b = order_best(arena, p, given, 300000);
        assert_memory_equal(a.order, b.order, 40 * sizeof *a.order);
        assert_int_equal(a.states, b.states);
        arena_free(arena);
    }
}

/* Small budgets end early, with an order, and a bound that is one. */
static void gives_up_politely(void **state) {
    (void)state;
    uint32_t gave_up = 0;
    for (uint64_t seed = 0; seed < 3; seed++) {
        Arena *arena = arena_new("test");
        const OrderProblem *p = random_problem(arena, seed, 60);
        const uint32_t *given = as_given(arena, 60);
        uint64_t peak = order_peak(arena, p, given, NULL);
        Best best = order_best(arena, p, given, 3000000);
        for (uint64_t budget = 1; budget < 100000; budget *= 10) {
            Best early = order_best(arena, p, given, budget);
            assert_true(early.peak <= peak);
            assert_true(early.bound <= best.peak);
            assert_true(early.peak >= best.bound);
            assert_int_equal(order_peak(arena, p, early.order, NULL),
                             early.peak);
            assert_int_equal(early.proved, early.peak == early.bound);
            gave_up += !early.proved;
        }
        arena_free(arena);
    }
    assert_true(gave_up > 0);
}

/* Undoing and loading lead to the same state. */
static void states_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        Arena *arena = arena_new("test");
        const OrderProblem *p = random_problem(arena, seed, 50);
        OrderState s = order_state(arena, p), t = order_state(arena, p);
        Dice d = {seed, 1000};
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t v = order_next(s.ready, s.words, roll(&d, 50));
            if (v != ORDER_NONE && roll(&d, 3)) {
                OrderCost cost = order_cost(&s, v);
                order_run(&s, v);
                assert_int_equal(s.live, cost.then);
            } else if (s.n) {
                order_undo(&s);
            }
            order_load(&t, s.done);
            assert_int_equal(s.live, t.live);
            assert_memory_equal(s.ready, t.ready, s.words * sizeof *s.ready);
            assert_memory_equal(s.left, t.left, p->n_bufs * sizeof *s.left);
        }
        arena_free(arena);
    }
}

/* ---- waists ---- */

static bool comes_before(const OrderProblem *p, uint32_t a, uint32_t b) {
    for (uint32_t k = p->pred.start[b]; k < p->pred.start[b + 1]; k++)
        if (p->pred.item[k] == a || comes_before(p, a, p->pred.item[k]))
            return true;
    return false;
}

static void parts_end_at_waists(void **state) {
    (void)state;
    uint32_t found = 0;
    for (uint64_t seed = 0; seed < 500; seed++) {
        Arena *arena = arena_new("test");
        uint32_t n = 2 + (uint32_t)(seed % 12);
        const OrderProblem *p = random_problem(arena, seed, n);
        Parts parts = parts_make(arena, p, NULL, NULL);
        bool closes[64] = {false};
        for (uint32_t i = 0; i < parts.n; i++) {
            assert_true(parts.start[i] < parts.start[i + 1]);
            closes[parts.node[parts.start[i + 1] - 1]] = true;
        }
        for (uint32_t v = 0; v < n; v++) {
            bool waist = true;
            for (uint32_t u = 0; u < n; u++)
                waist &=
                    u == v || comes_before(p, u, v) || comes_before(p, v, u);
            if (waist && !closes[v])
                fail_msg("seed %u: node %u is a waist", (unsigned)seed, v);
            found += waist;
        }
        assert_int_equal(parts.start[parts.n], n);
        arena_free(arena);
    }
    assert_true(found > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_is_the_least_of_all_orders),
        cmocka_unit_test(the_same_every_time),
        cmocka_unit_test(gives_up_politely),
        cmocka_unit_test(states_come_back),
        cmocka_unit_test(parts_end_at_waists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
