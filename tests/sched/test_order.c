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
    for (uint64_t seed = 0; seed < 3000; seed++) {
        Arena *arena = arena_new("test");
        uint32_t n = 3 + (uint32_t)(seed % 9);
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
    assert_true(improved > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_is_the_least_of_all_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
