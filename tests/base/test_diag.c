/* Messages: the exact text, the caret, the limit on errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/base/printed.h"

#include <string.h>

static const char source[] = "first line\n\tkey: v\x01lue\nlast";

static void test_line_and_caret(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    diag_source(diag, "a.yaml", source, sizeof source - 1);
    diag_error(diag, (Loc){"a.yaml", 2, 7}, "bad %s %d", "value", 3);
    diag_note(diag, (Loc){"a.yaml", 1, 1}, "begun here");
    diag_warning(diag, (Loc){"a.yaml", 3, 4}, "late");
    assert_string_equal(printed(arena, diag), "a.yaml:2:7: error: bad value 3\n"
                                              "     key: v.lue\n"
                                              "          ^\n"
                                              "a.yaml:1:1: note: begun here\n"
                                              "    first line\n"
                                              "    ^\n"
                                              "a.yaml:3:4: warning: late\n"
                                              "    last\n"
                                              "       ^\n");
    assert_string_equal(printed(arena, diag), ""); /* once only */
    assert_int_equal(diag_errors(diag), 1);
    assert_int_equal(diag_count(diag), 3);
    assert_int_equal(diag_at(diag, 2)->kind, DIAG_WARNING);
    arena_free(arena);
}

static void test_places_without_a_line(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    diag_source(diag, "a", "x", 1);
    diag_error(diag, (Loc){NULL, 0, 0}, "no file");
    diag_error(diag, (Loc){"m.onnx", 0, 17}, "cut off");
    diag_error(diag, (Loc){"m.onnx", 0, 0}, "whole file");
    diag_error(diag, (Loc){"unknown", 3, 4}, "no source");
    diag_error(diag, (Loc){"a", 9, 1}, "behind the end");
    diag_error(diag, (Loc){"a", 1, 0}, "no column");
    assert_string_equal(printed(arena, diag),
                        "amphora: error: no file\n"
                        "m.onnx: byte 17: error: cut off\n"
                        "m.onnx: error: whole file\n"
                        "unknown:3:4: error: no source\n"
                        "a:9:1: error: behind the end\n"
                        "a:1:0: error: no column\n");
    arena_free(arena);
}

static void test_at_most_twenty_errors(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    for (int i = 1; i <= 25; i++) {
        diag_error(diag, (Loc){NULL, 0, 0}, "e%d", i);
        diag_note(diag, (Loc){NULL, 0, 0}, "n%d", i);
    }
    const char *text = printed(arena, diag);
    assert_non_null(strstr(text, "error: e20\namphora: note: n20\n"
                                 "amphora: and 5 more errors\n"));
    assert_null(strstr(text, "e21"));
    assert_null(strstr(text, "n21"));
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_and_caret),
        cmocka_unit_test(test_places_without_a_line),
        cmocka_unit_test(test_at_most_twenty_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
