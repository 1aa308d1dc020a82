/* test_advice.c - sizes that would do are sizes that were tried: whatever the
 * quick answers say, and however few tries there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/explain/advice.h"

enum { MOST = 4096 };

/* A memory's sizes, and who has been asked for which. */
typedef struct World {
    uint64_t seems_from, does_from; /* the least sizes */
    uint64_t hole;                  /* does not do, though less does; 0: none */
    bool tried[MOST];
    uint32_t seen, done; /* calls */
} World;

static bool seems(void *context, uint64_t size) {
    World *w = context;
    w->seen++;
    return size >= w->seems_from;
}

static bool does(void *context, uint64_t size) {
    World *w = context;
    w->done++;
    if (size < MOST)
        w->tried[size] = true;
    return size >= w->does_from && size != w->hole;
}

static SizeAdvice ask(World *w, uint64_t step, uint64_t fine, uint64_t fails,
                      uint32_t tries) {
    return advise_size(&(SizeSearch){.step = step,
                                     .fine = fine,
                                     .fails = fails,
                                     .guess = fails + 1,
                                     .seems = seems,
                                     .does = does,
                                     .context = w,
                                     .guesses = 40,
                                     .tries = tries});
}

static void test_right_guess_takes_two_tries(void **state) {
    (void)state;
    World w = {.seems_from = 560, .does_from = 560};
    SizeAdvice a = ask(&w, 16, 16, 32, 16);
    assert_int_equal(a.enough, 560);
    assert_int_equal(a.too_small, 544);
    assert_int_equal(w.done, 2);
}

static void test_last_granule_ends_early(void **state) {
    (void)state;
    World w = {.seems_from = 553, .does_from = 553};
    SizeAdvice a = ask(&w, 16, 1, 32, 16);
    assert_int_equal(a.enough, 553);
    assert_int_equal(a.too_small, 552);
}

static void test_wrong_guesses_are_mended(void **state) {
    (void)state;
    for (uint64_t from = 33; from < 1500; from += 7) {
        World low = {.seems_from = 16, .does_from = from};
        World high = {.seems_from = 1600, .does_from = from};
        SizeAdvice a = ask(&low, 1, 1, 32, 40), b = ask(&high, 1, 1, 32, 40);
        assert_int_equal(a.enough, from);
        assert_int_equal(a.too_small, from - 1);
        assert_int_equal(b.enough, from);
        assert_int_equal(b.too_small, from - 1);
    }
}

/* What is said was tried, or is the size that failed already. */
static void test_nothing_untried_is_said(void **state) {
    (void)state;
    for (uint32_t tries = 0; tries < 12; tries++)
        for (uint64_t from = 40; from < 900; from += 13) {
            World w = {.seems_from = 300, .does_from = from, .hole = from + 1};
            SizeAdvice a = ask(&w, 4, 2, 36, tries);
            assert_true(w.done <= tries);
            if (a.enough)
                assert_true(w.tried[a.enough] && a.enough >= from &&
                            a.enough != w.hole);
            if (a.too_small)
                assert_true(a.too_small < a.enough &&
                            (a.too_small < from || a.too_small == w.hole) &&
                            (w.tried[a.too_small] || a.too_small == 36));
        }
}

static void test_odd_size_of_its_own(void **state) {
    (void)state;
    World w = {.seems_from = 48, .does_from = 48};
    SizeAdvice a = ask(&w, 16, 16, 41, 16);
    assert_int_equal(a.enough, 48);
    assert_int_equal(a.too_small, 32);
    assert_true(w.tried[32]);
}

static void test_nothing_does(void **state) {
    (void)state;
    World w = {.seems_from = UINT64_MAX, .does_from = UINT64_MAX};
    assert_int_equal(ask(&w, 16, 16, 32, 16).enough, 0);
    assert_int_equal(w.done, 0);
    World wrong = {.seems_from = 64, .does_from = UINT64_MAX};
    assert_int_equal(ask(&wrong, 16, 16, 32, 16).enough, 0);
    assert_int_equal(wrong.done, 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_guess_takes_two_tries),
        cmocka_unit_test(test_last_granule_ends_early),
        cmocka_unit_test(test_wrong_guesses_are_mended),
        cmocka_unit_test(test_nothing_untried_is_said),
        cmocka_unit_test(test_odd_size_of_its_own),
        cmocka_unit_test(test_nothing_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
