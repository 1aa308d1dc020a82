/* test_columns.c - files of words that are texts: numbers of a line as bytes,
 * and back; what is no such line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hwspec/format/format.h"

#include <string.h>

static const HwFormat format = {.n_columns = 2, .column = "dx"};

static bool read_text(Arena *arena, Diag *diag, const char *text,
                      const uint8_t **data, size_t *n) {
    *data = (const uint8_t *)text;
    *n = strlen(text);
    return format_from_columns(arena, diag, &format, "words.txt", data, n);
}

static void lines_are_numbers(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const uint8_t *data;
    size_t n;
    assert_true(read_text(arena, diag,
                          "# all\n\n  7 0123456789abcdef # one\r\n"
                          "\t18446744073709551615 ff",
                          &data, &n));
    static const uint8_t bytes[] = {
        7,    0,    0,    0,    0,    0,    0,    0,    0xef, 0xcd, 0xab,
        0x89, 0x67, 0x45, 0x23, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0,    0,    0,    0,    0,    0,    0};
    assert_int_equal(n, sizeof bytes);
    assert_memory_equal(data, bytes, n);
    format_to_columns(arena, &format, &data, &n);
    assert_string_equal((const char *)data,
                        "  7 0123456789abcdef\n"
                        "18446744073709551615 00000000000000ff\n");
    assert_int_equal(n, strlen((const char *)data));
    assert_true(read_text(arena, diag, "# nothing\n", &data, &n));
    assert_int_equal(n, 0);
    arena_free(arena);
}

static void other_lines_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"1",
                                      "1 2 3",
                                      "1 2x",
                                      "a 2",
                                      "-1 2",
                                      "1 -2",
                                      "1 g",
                                      "18446744073709551616 0",
                                      "1 10000000000000000",
                                      "1 # 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Arena *arena = arena_new("test");
        Diag *diag = diag_new(arena);
        const uint8_t *data;
        size_t n;
        const char *text = arena_printf(arena, "1 2\n%s\n3 4\n", bad[i]);
        if (read_text(arena, diag, text, &data, &n))
            fail_msg("taken: %s", bad[i]);
        const DiagMessage *said = diag_at(diag, 0);
        assert_string_equal(said->text, "2 numbers of 64 bits are needed");
        assert_int_equal(said->loc.line, 2);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_numbers),
        cmocka_unit_test(other_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
