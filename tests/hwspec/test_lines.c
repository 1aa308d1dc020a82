/* Line buffers: no pixel that is still wanted shares its place, over random
 * sizes, and the pixels that they take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "hwspec/lines.h"

#include <stdbool.h>
#include <string.h>

enum { MOST_PIXELS = 4096, BANDS = 6 };

typedef struct Cells {
    uint32_t row[MOST_PIXELS], col[MOST_PIXELS];
    bool used[MOST_PIXELS];
} Cells;

/* Writes column `col` of the band; all pixels of the last `span` columns, and
 * of the rows above, must be there then. */
static void write_column(Cells *cells, const LineBuffer *l, uint32_t width,
                         uint32_t band, uint32_t col) {
    for (uint32_t i = 0; i < l->band; i++) {
        int64_t row = (int64_t)band * l->band + i - l->shift;
        if (row < 0)
            continue;
        uint64_t at = lines_pixel(l, width, (uint32_t)row, col);
        assert_true(at < lines_pixels(l, width));
        cells->row[at] = (uint32_t)row;
        cells->col[at] = col;
        cells->used[at] = true;
    }
}

static void expect_there(const Cells *cells, const LineBuffer *l,
                         uint32_t width, int64_t row, uint32_t col) {
    if (row < 0)
        return;
    uint64_t at = lines_pixel(l, width, (uint32_t)row, col);
    assert_true(cells->used[at]);
    assert_int_equal(cells->row[at], row);
    assert_int_equal(cells->col[at], col);
}

static void expect_wanted(const Cells *cells, const LineBuffer *l,
                          uint32_t width, uint32_t band, uint32_t col) {
    int64_t top = (int64_t)band * l->band - l->shift;
    uint32_t first = col + 1 > l->span ? col + 1 - l->span : 0;
    for (int64_t row = top - l->keep; row < top; row++)
        for (uint32_t c = first; c < width; c++)
            expect_there(cells, l, width, row, c);
    for (int64_t row = top; row < top + l->band; row++)
        for (uint32_t c = first; c <= col; c++)
            expect_there(cells, l, width, row, c);
    /* the next band's, where the readers have gone by */
    for (int64_t row = top + l->band - l->keep; row < top + l->band; row++)
        for (uint32_t c = 0; c + l->span <= col + 1; c++)
            expect_there(cells, l, width, row, c);
}

static uint32_t draw(uint64_t seed, uint32_t n, uint32_t most) {
    return (uint32_t)(rng_bits(seed, n) % (most + 1));
}

static void what_is_wanted_is_there(void **state) {
    (void)state;
    static Cells cells;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint32_t width = 1 + draw(seed, 0, 11);
        LineBuffer l = {.band = 1 + draw(seed, 1, 4),
                        .keep = draw(seed, 2, 7),
                        .span = 1 + draw(seed, 3, width - 1)};
        l.shift = draw(seed, 4, l.band - 1);
        memset(&cells, 0, sizeof cells);
        for (uint32_t band = 0; band < BANDS; band++)
            for (uint32_t col = 0; col < width; col++) {
                write_column(&cells, &l, width, band, col);
                if (band * l.band >= l.keep + l.shift)
                    expect_wanted(&cells, &l, width, band, col);
            }
    }
}

static void runs_lie_together(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint32_t width = 1 + draw(seed, 0, 20);
        LineBuffer l = {.band = 1 + draw(seed, 1, 4),
                        .keep = draw(seed, 2, 7),
                        .span = 1 + draw(seed, 3, width - 1)};
        for (uint32_t row = 0; row < 20; row++)
            for (uint32_t col = 0; col < width; col++) {
                uint32_t n = lines_run(&l, width, row, col);
                assert_in_range(n, 1, width - col);
                for (uint32_t i = 1; i < n; i++)
                    assert_int_equal(lines_pixel(&l, width, row, col + i),
                                     lines_pixel(&l, width, row, col) + i);
            }
    }
}

static void rings_of_rows(void **state) {
    (void)state;
    LineBuffer ring = {.band = 1, .keep = 2, .span = 7};
    assert_int_equal(lines_pixels(&ring, 7), 21);
    for (uint32_t row = 0; row < 10; row++)
        for (uint32_t col = 0; col < 7; col++)
            assert_int_equal(lines_pixel(&ring, 7, row, col),
                             row % 3 * 7 + col);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wanted_is_there),
        cmocka_unit_test(runs_lie_together),
        cmocka_unit_test(rings_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
