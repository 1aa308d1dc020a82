/* Fronts and marks of points against a search of all pairs; CSV; the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "report/points.h"

#include <string.h>

static const char *const path[] = {"memories.am.size", "replication"};

static Point make(Arena *arena, uint32_t index, uint64_t capacity,
                  uint64_t cycles, uint64_t am, uint64_t ddr) {
    const char **value = ARENA_ARRAY(arena, const char *, 2);
    value[0] = arena_printf(arena, "%d", (int)capacity);
    value[1] = "safe";
    return (Point){.index = index,
                   .network = "a<b>.prototxt",
                   .target = "m",
                   .n_settings = 2,
                   .path = path,
                   .value = value,
                   .name = "a<b> m",
                   .reason = "",
                   .cycles = cycles,
                   .am_capacity = capacity,
                   .am_peak = am,
                   .ddr = ddr};
}

static uint64_t below(uint64_t *drawn, uint64_t n) {
    return rng_bits(7, (*drawn)++) % n;
}

static bool beaten(const Point *a, const Point *b, PointAxis axis) {
    uint64_t x = point_axis(a, axis), y = point_axis(b, axis);
    bool less =
        a->cycles < b->cycles || x < y || a->am_capacity < b->am_capacity;
    return a->status == POINT_FITS && a->cycles <= b->cycles && x <= y &&
           (a->cycles < b->cycles || x < y || less);
}

static void fronts_are_those_of_all_pairs(void **state) {
    (void)state;
    uint64_t drawn = 0;
    for (int round = 0; round < 200; round++) {
        Arena *arena = arena_new("test");
        uint32_t n = 1 + (uint32_t)below(&drawn, 12);
        Point *p = ARENA_ARRAY(arena, Point, n);
        for (uint32_t i = 0; i < n; i++) {
            p[i] = make(arena, i, 1 + below(&drawn, 4), 1 + below(&drawn, 5),
                        below(&drawn, 5), below(&drawn, 5));
            p[i].status = below(&drawn, 4) ? POINT_FITS : POINT_NO_FIT;
        }
        for (PointAxis axis = AXIS_AM; axis < AXIS_COUNT; axis++) {
            bool *front = points_front(arena, n, p, axis);
            for (uint32_t i = 0; i < n; i++) {
                bool best = p[i].status == POINT_FITS;
                for (uint32_t k = 0; k < n; k++)
                    best &= k == i || !beaten(&p[k], &p[i], axis);
                assert_int_equal(front[i], best);
            }
        }
        arena_free(arena);
    }
}

static void enough_is_the_smallest_that_pays(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Point p[] = {
        make(arena, 0, 100, 500, 1, 9000), make(arena, 1, 200, 400, 1, 8000),
        make(arena, 2, 300, 300, 1, 8000), make(arena, 3, 400, 299, 1, 7990),
        make(arena, 4, 500, 298, 1, 8000)};
    bool *enough = points_enough(arena, 5, p);
    for (int i = 0; i < 5; i++)
        assert_int_equal(enough[i], i == 2);
    arena_free(arena);
}

static void names_cannot_break_the_page(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Point p[] = {make(arena, 0, 100, 500, 1, 9000),
                 make(arena, 1, 200, 400, 1, 8000)};
    p[1].status = POINT_NO_FIT;
    p[1].reason = "step \"<x>\" & more";
    const char *page = points_page(arena, 2, p);
    assert_null(strstr(page, "a<b>"));
    assert_non_null(strstr(page, "\"a\\u003cb>.prototxt\""));
    assert_non_null(strstr(page, "step \\\"\\u003cx>\\\" & more"));
    assert_non_null(strstr(points_csv(arena, 2, p),
                           "1,\"a<b>.prototxt\",m,200,safe,does not "
                           "fit,,,,,,,,,\"step \"\"<x>\"\" & more\"\n"));
    arena_free(arena);
}

/* 100 cycles at 1 GHz are less than 90 at 500 MHz. */
static void clocks_are_compared_by_time(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Point p[2] = {make(arena, 0, 8, 100, 8, 8), make(arena, 1, 8, 90, 8, 8)};
    p[0].ms = 100e-6;
    p[1].ms = 90e-6;
    assert_false(points_by_time(2, p));
    assert_true(points_front(arena, 2, p, AXIS_AM)[1]);
    p[1].ms = 180e-6;
    assert_true(points_by_time(2, p));
    const bool *front = points_front(arena, 2, p, AXIS_AM);
    assert_true(front[0] && !front[1]);
    assert_int_equal(point_cost(&p[0], true), 100);
    const char *page = points_page(arena, 2, p);
    assert_non_null(strstr(page, "\"by_time\":1"));
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fronts_are_those_of_all_pairs),
        cmocka_unit_test(enough_is_the_smallest_that_pays),
        cmocka_unit_test(names_cannot_break_the_page),
        cmocka_unit_test(clocks_are_compared_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
