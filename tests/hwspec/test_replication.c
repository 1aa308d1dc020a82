/* The replication rule: facts/xdnn.md 2.4, and a search over everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hwspec/hwspec.h"

static const HwCopies stored[] = {{2, 48}, {3, 32}};
static const HwCopies fly[] = {{2, 48}, {3, 32}, {4, 24}, {6, 16}, {12, 8}};
static const HwSpec v3 = {.replication = {.section = 96,
                                          .n_stored = 2,
                                          .n_fly = 5,
                                          .stored = stored,
                                          .fly = fly}};

static void check(Repl got, Repl wanted) {
    assert_int_equal(got.full, wanted.full);
    assert_int_equal(got.sections, wanted.sections);
    assert_int_equal(got.units, wanted.units);
    assert_int_equal(got.width, wanted.width);
}

static const struct {
    uint32_t channels, area;
    bool on_the_fly;
    Repl repl;
} published[] = {
    {3, 9, true, {0, 1, 12, 8}},
    {3, 9, false, {0, 1, 3, 32}},
    {16, 9, true, {0, 1, 6, 16}},
    {48, 9, false, {0, 1, 2, 48}},
    {64, 9, false, {0, 2, 3, 32}},
    {112, 9, false, {1, 1, 3, 32}},
    {128, 9, false, {1, 1, 3, 32}},
    {256, 9, false, {2, 2, 3, 32}},
    {512, 9, false, {5, 1, 3, 32}},
    /* recorded: 1x1 kernels gain nothing; 96 fill a section */
    {64, 1, false, {1, 0, 0, 0}},
    {1024, 1, false, {11, 0, 0, 0}},
    {192, 9, false, {2, 0, 0, 0}},
    {3, 49, false, {0, 1, 3, 32}},
    {3, 49, true, {0, 1, 12, 8}},
};

static void published_quadruples(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        check(hwspec_repl_rule(&v3, published[i].channels, published[i].area,
                               published[i].on_the_fly),
              published[i].repl);
}

static uint64_t cycles(Repl r, uint32_t area) {
    uint64_t copies = r.units ? r.units : 1;
    return (uint64_t)r.full * area +
           ((uint64_t)r.sections * area + copies - 1) / copies;
}

/* No way is cheaper than the rule's, and its sections hold the channels. */
static void never_beaten(void **state) {
    (void)state;
    for (uint32_t c = 1; c <= 300; c++)
        for (uint32_t area = 1; area <= 49; area++) {
            Repl best = hwspec_repl_rule(&v3, c, area, true);
            assert_true(best.full * 96 + best.sections * best.width >= c);
            assert_true(cycles(best, area) == hwspec_weight_rows(best, area));
            assert_true(cycles(best, area) <=
                        cycles(hwspec_repl_none(&v3, c), area));
            for (size_t i = 0; i < sizeof fly / sizeof *fly; i++) {
                uint32_t rest = c % 96, width = fly[i].width;
                Repl other = {c / 96, (rest + width - 1) / width, fly[i].units,
                              width};
                assert_true(cycles(best, area) <= cycles(other, area));
            }
        }
}

static void machine_without(void **state) {
    (void)state;
    const HwSpec none = {0};
    check(hwspec_repl_rule(&none, 64, 9, false), (Repl){0});
    check(hwspec_repl_none(&none, 64), (Repl){0});
    check(hwspec_repl_none(&v3, 97), (Repl){2, 0, 0, 0});
}

/* 512 channels under 3x3: 48 rows of the weight cache, too many to ping-pong.
 */
static void weight_rows(void **state) {
    (void)state;
    assert_int_equal(hwspec_weight_rows((Repl){5, 1, 3, 32}, 9), 48);
    assert_int_equal(hwspec_weight_rows((Repl){1, 0, 3, 32}, 9), 9);
    assert_int_equal(hwspec_weight_rows((Repl){0, 1, 12, 8}, 9), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_quadruples),
        cmocka_unit_test(never_beaten),
        cmocka_unit_test(machine_without),
        cmocka_unit_test(weight_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
