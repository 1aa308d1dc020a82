/* JSON: where an error is, printing, getters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "tests/base/printed.h"

#include "base/rng.h"

#include <string.h>

static void test_round_trip(void **state) {
    (void)state;
    static const char text[] =
        " {\"a\": [1, -2.5, 1e3, true, null], \"b\": {\"c\": \"x\\ny\"}}\n";
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    cJSON *json = json_parse(diag, "f", text, strlen(text));
    assert_non_null(json);
    assert_string_equal(
        json_print(arena, json, false),
        "{\"a\":[1,-2.5,1000,true,null],\"b\":{\"c\":\"x\\ny\"}}");
    const char *pretty = json_print(arena, json, true);
    assert_non_null(strstr(pretty, "\n\t\"b\":\t{\n\t\t\"c\":\t\"x\\ny\"\n"));
    json_free(json);
    json_free(NULL);
    arena_free(arena);
}

static void test_getters(void **state) {
    (void)state;
    static const char text[] = "{\"s\":\"x\",\"n\":2.5,\"S\":\"other\"}";
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    cJSON *json = json_parse(diag, "f", text, strlen(text));
    assert_string_equal(json_str(json, "s", "no"), "x");
    assert_string_equal(json_str(json, "n", "no"), "no");
    assert_string_equal(json_str(json, "absent", "no"), "no");
    assert_true(json_num(json, "n", 7) == 2.5);
    assert_true(json_num(json, "s", 7) == 7);
    assert_null(json_str(NULL, "s", NULL));
    json_free(json);
    arena_free(arena);
}

static void refuses(const char *text, size_t len, const char *message) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    assert_null(json_parse(diag, "f", text, len));
    assert_string_equal(printed(arena, diag), message);
    arena_free(arena);
}

static void test_places_of_errors(void **state) {
    (void)state;
    refuses("", 0, "f: error: nothing is in it\n");
    refuses("{\"a\": 1,\n \"b\": ?}\n", 18,
            "f:2:7: error: this is not JSON\n"
            "     \"b\": ?}\n"
            "          ^\n");
    refuses("[1, 2", 5,
            "f:1:5: error: this is not JSON, or not all of it\n"
            "    [1, 2\n"
            "        ^\n");
    refuses("[1]\n\n x", 7,
            "f:3:2: error: more text after the JSON value\n"
            "     x\n"
            "     ^\n");
    refuses("[1]\0\0", 5,
            "f:1:4: error: more text after the JSON value\n"
            "    [1]..\n"
            "       ^\n");
}

static void test_too_deep(void **state) {
    (void)state;
    static char text[5000];
    memset(text, '[', sizeof text);
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    assert_null(json_parse(diag, "f", text, sizeof text));
    assert_string_equal(printed(arena, diag),
                        "f:1:1001: error: nested too deep\n");
    arena_free(arena);
}

static void test_damaged_text(void **state) {
    (void)state;
    static const char good[] =
        "{\"a\":[1,-2.5e3,\"\\u00e9\\\\\"],\"b\":{\"c\":null}}";
    for (uint64_t i = 0; i < 3000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        uint64_t bits = rng_bits(2, i);
        text[bits % sizeof good] ^= (char)(1 << (bits >> 32) % 8);
        Arena *arena = arena_new("damaged");
        Diag *diag = diag_new(arena);
        size_t len = i % 2 ? sizeof good - 1 : (bits >> 8) % sizeof good;
        cJSON *json = json_parse(diag, "f", text, len);
        assert_int_equal(json == NULL, diag_errors(diag) > 0);
        json_free(json);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_getters),
        cmocka_unit_test(test_places_of_errors),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_damaged_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
