/* Sizes of a memory by number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size_grid.h"

static void sizes_are_numbered(void **state) {
    (void)state;
    for (uint64_t size = 1; size < 1 << 20; size += 1 + size / 50) {
        uint32_t number = grid_number(16, size);
        assert_true(grid_size(16, number) <= size);
        assert_true(grid_size(16, number + 1) > size || size < 16);
        assert_true(size - grid_size(16, number) <= size / 16);
    }
    assert_int_equal(grid_size(16, grid_number(16, (uint64_t)8 << 20)),
                     8 << 20);
}

static void sizes_end_below_one(void **state) {
    (void)state;
    uint32_t n = 0;
    for (uint64_t size = 48960, last; size; n++) {
        last = size;
        size = grid_below(4, size);
        assert_true(size < last);
    }
    assert_int_equal(grid_below(4, 48960), 40960);
    assert_int_equal(grid_below(4, 49152), 40960);
    assert_int_equal(grid_below(4, 1), 0);
    assert_int_equal(grid_below(4, 0), 0);
    assert_true(n > 40 && n < 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_are_numbered),
                                       cmocka_unit_test(sizes_end_below_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
