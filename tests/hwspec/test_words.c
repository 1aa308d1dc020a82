/* test_words.c - numbers and names as single words of a listing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hwspec/insn.h"

#include <string.h>

static void numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"7", 7},
                {"-1", -1},
                {"0x0", 0},
                {"0x9", 9},
                {"0xa", 10},
                {"0xf", 15},
                {"0xA", 10},
                {"0xF", 15},
                {"0x1Bc", 444},
                {"-0x10", -16},
                {"0010", 10},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"0x7fffffffffffffff", INT64_MAX},
                {"-0x8000000000000000", INT64_MIN}};
    static const char *const bad[] = {"",
                                      "-",
                                      "0x",
                                      "-0x",
                                      "a",
                                      "1a",
                                      "0xg",
                                      "0xG",
                                      "0x@",
                                      "0x`",
                                      "0x:",
                                      "0x/",
                                      "1:",
                                      "1/",
                                      "+1",
                                      "1 ",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "0x8000000000000000",
                                      "92233720368547758070"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value = 99;
        assert_true(insn_number(good[i].text, &value));
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value;
        if (insn_number(bad[i], &value))
            fail_msg("%s is no number", bad[i]);
    }
}

/* The name of the layer in a line of null. */
static const char *name_in(Arena *arena, const HwSpec *spec, const char *word) {
    const char *line;
    HwFields f;
    HwInsn insn;
    for (uint32_t row = 0; row < spec->insns->n; row++) {
        const HwForm *form = &spec->insns->row[row].form[0];
        int32_t at = insn_token_of(form, HW_F_NAME);
        if (at < 0 || spec->insns->row[row].comment)
            continue;
        line = "";
        for (int32_t i = 0; i < (int32_t)form->n; i++)
            line = arena_printf(arena, "%s%s ", line,
                                i == at ? word
                                : form->token[i].from == HW_F_MNEMONIC
                                    ? spec->insns->row[row].mnemonic
                                    : "1");
        if (insn_parse(arena, diag_new(arena), spec, line, strlen(line),
                       (Loc){0}, &insn) == INSN_OK) {
            insn_fields(spec, &insn, &f);
            return f.str[HW_F_NAME];
        }
    }
    fail_msg("no row takes a name");
    return NULL;
}

static void names(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"conv1", "conv1"}, {"%", ""},           {"a%20b", "a b"},
        {"%25", "%"},       {"%4f", "O"},        {"%4F", "O"},
        {"%0a", "\n"},      {"%00", "%00"},      {"%4", "%4"},
        {"%4g", "%4g"},     {"%g4", "%g4"},      {"%01", "\001"},
        {"%10", "\020"},    {"a%41%42c", "aABc"}};
    Arena *arena = arena_new("test");
    const HwSpec *spec = hwspec_load(arena, diag_new(arena), "null", 0, NULL);
    assert_non_null(spec);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_string_equal(name_in(arena, spec, pairs[i][0]), pairs[i][1]);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
