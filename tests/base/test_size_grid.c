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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes_are_numbered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
