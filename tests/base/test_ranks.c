/* Sets of numbers with neighbours, against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ranks.h"
#include "base/rng.h"

#include <stdbool.h>

static uint32_t scan_below(const bool *is_in, uint32_t limit) {
    while (limit--)
        if (is_in[limit])
            return limit;
    return RANKS_NONE;
}

static uint32_t scan_above(const bool *is_in, uint32_t n, uint32_t limit) {
    while (++limit < n)
        if (is_in[limit])
            return limit;
    return RANKS_NONE;
}

/* Few members and many, in sets of one level and of several. */
static void test_neighbours(void **state) {
    static const uint32_t size[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, 9000};
    (void)state;
    for (uint32_t s = 0; s < sizeof size / sizeof *size; s++) {
        Arena *arena = arena_new("test");
        uint32_t n = size[s];
        Ranks ranks = ranks_new(arena, n);
        bool *is_in = ARENA_ARRAY(arena, bool, n);
        for (uint32_t i = 0; i < 2000; i++) {
            uint32_t at = (uint32_t)(rng_bits(s, i) % n);
            is_in[at] = rng_bits(s + 100, i) % 2000 > i; /* ever fewer */
            if (is_in[at])
                ranks_add(&ranks, at);
            else
                ranks_remove(&ranks, at);
            uint32_t limit = (uint32_t)(rng_bits(s + 200, i) % n);
            assert_int_equal(ranks_below(&ranks, limit),
                             scan_below(is_in, limit));
            assert_int_equal(ranks_above(&ranks, limit),
                             scan_above(is_in, n, limit));
        }
        assert_int_equal(ranks_below(&ranks, n), scan_below(is_in, n));
        arena_free(arena);
    }
}

static void test_empty(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Ranks ranks = ranks_new(arena, 0);
    assert_int_equal(ranks_below(&ranks, 0), RANKS_NONE);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
