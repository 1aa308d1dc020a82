/* Sizes of a memory by number, and plans that are as good as chance has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/search/boxes.h"
#include "base/rng.h"

static void sizes_are_numbered(void **state) {
    (void)state;
    for (uint64_t size = 1; size < 1 << 20; size += 1 + size / 50) {
        uint32_t number = box_number(16, size);
        assert_true(box_size(16, number) <= size);
        assert_true(box_size(16, number + 1) > size || size < 16);
        assert_true(size - box_size(16, number) <= size / 16);
    }
    assert_int_equal(box_size(16, box_number(16, (uint64_t)8 << 20)), 8 << 20);
}

/* Fewer bytes and cycles for larger sizes, and much chance. */
typedef struct Chance {
    uint64_t seed;
    uint32_t asked;
} Chance;

static Box by_chance(void *context, uint64_t size, const Box *below,
                     const Box *above) {
    Chance *c = context;
    uint64_t least = ((uint64_t)1 << 32) / size, seed = c->seed;
    Price p = {least + rng_bits(seed, 3 * size) % (least + 1),
               least + rng_bits(seed, 3 * size + 1) % (least + 1)};
    c->asked++;
    bool fits = rng_bits(seed, 3 * size + 2) % 16 > 0;
    return fits && box_within(p, below, above) ? (Box){true, size, p, 0}
                                               : *below;
}

static Box found(Chance *c, uint64_t size) {
    enum { LOW = 1 << 14, HIGH = 1 << 22 };
    const Box none = {0};
    Box above = {true, HIGH, {1000, 1000}, 0}, below = none;
    for (uint64_t at = LOW; !below.any; at += 64)
        below = by_chance(c, at, &none, &above);
    below.size = LOW;
    return boxes_halve(&(Halving){by_chance, c, 16, 256}, below, above, size);
}

static void more_never_costs_more(void **state) {
    enum { SEEDS = 40, SIZES = 200, FIRST = 1 << 14, STEP = 20971 };
    (void)state;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        Chance c = {.seed = seed};
        Box before = found(&c, FIRST);
        for (uint32_t i = 1; i < SIZES; i++) {
            uint64_t size = FIRST + (uint64_t)i * STEP;
            Box box = found(&c, size < 1 << 22 ? size : (1 << 22) - 1);
            assert_true(box.any && box.size <= size);
            assert_true(price_no_more(box.price, before.price));
            before = box;
        }
    }
}

static void few_sizes_are_planned(void **state) {
    (void)state;
    Chance c = {.seed = 7};
    found(&c, 3 << 18);
    assert_in_range(c.asked, 1, 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_numbered),
        cmocka_unit_test(more_never_costs_more),
        cmocka_unit_test(few_sizes_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
