/* The whole grammar of protobuf's text format, and what is said of bad input.
 */
#include "frontends/proto/textformat.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static Arena *arena;
static Diag *diag;

static int setup(void **state) {
    (void)state;
    arena = arena_new("test");
    diag = diag_new(arena);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static ProtoMessage *parse_n(const char *text, size_t len) {
    /* A copy of the exact size, so that reading behind it is seen. */
    Bytes bytes = {(const uint8_t *)arena_copy(arena, text, len, 1, 1), len};
    return textformat_parse(arena, diag, "t", bytes);
}

static ProtoMessage *parse(const char *text) {
    return parse_n(text, strlen(text));
}

/* All messages, one a line. */
static const char *messages(void) {
    static const char *const kinds[] = {"error", "warning", "note"};
    Text text = text_new(arena);
    for (uint32_t i = 0; i < diag_count(diag); i++) {
        const DiagMessage *m = diag_at(diag, i);
        text_addf(&text, "%u:%u: %s: %s\n", m->loc.line, m->loc.col,
                  kinds[m->kind], m->text);
    }
    return text_str(&text);
}

/* The tree in one canonical form. */
static void show(Text *out, const ProtoMessage *message) {
    for (uint32_t i = 0; i < message->n; i++) {
        const ProtoField *f = &message->field[i];
        text_addf(out, "%s%s@%u:%u", i ? " " : "", f->name, f->loc.line,
                  f->loc.col);
        if (f->kind == PROTO_MESSAGE) {
            text_add(out, "{");
            show(out, f->message);
            text_add(out, "}");
        } else if (f->kind == PROTO_STRING) {
            text_addf(out, "='%s'", f->text);
        } else if (f->kind == PROTO_WORD) {
            text_addf(out, "=%s", f->text);
        } else if (f->whole) {
            text_addf(out, "=%lld", (long long)f->integer);
        } else {
            text_addf(out, "=%g", f->number);
        }
    }
}

static void check(const char *text, const char *tree) {
    ProtoMessage *message = parse(text);
    assert_string_equal(messages(), "");
    assert_non_null(message);
    Text out = text_new(arena);
    show(&out, message);
    assert_string_equal(text_str(&out), tree);
}

static void refuse(const char *text, const char *what) {
    diag = diag_new(arena);
    assert_null(parse(text));
    assert_string_equal(messages(), what);
}

static void test_structure(void **state) {
    (void)state;
    check("", "");
    check(" # only a comment", "");
    check("a: 1", "a@1:1=1");
    check("a {}", "a@1:1{}");
    check("a: {}", "a@1:1{}");
    check("a < b: 2 >", "a@1:1{b@1:5=2}");
    check("a: < b { c: x } >\nd:y", "a@1:1{b@1:6{c@1:10=x}} d@2:1=y");
    check("a: 1, b: 2; c: 3 d: 4", "a@1:1=1 b@1:7=2 c@1:13=3 d@1:18=4");
    check("a:1#x\n# y {\nb:2", "a@1:1=1 b@3:1=2");
    check("\xef\xbb\xbf"
          "a:1",
          "a@1:4=1");
    check("a:1\r\n\tb:2", "a@1:1=1 b@2:2=2");
}

static void test_lists(void **state) {
    (void)state;
    check("a: [1, 2 , 3]", "a@1:1=1 a@1:1=2 a@1:1=3");
    check("a: []", "");
    check("a [{b: 1}, <c: 2>]", "a@1:1{b@1:5=1} a@1:1{c@1:13=2}");
    check("a: ['x' \"y\", z]", "a@1:1='xy' a@1:1=z");
}

static void test_names_in_brackets(void **state) {
    (void)state;
    check("[pkg.ext]: 1", "[pkg.ext]@1:1=1");
    check("[ pkg . ext ] { a: 1 }", "[pkg.ext]@1:1{a@1:17=1}");
    check("any { [type.example.com/pkg.T] { a: 1 } }",
          "any@1:1{[type.example.com/pkg.T]@1:7{a@1:34=1}}");
    refuse("[pkg", "1:5: error: expected a name in brackets, found the end of "
                   "the file\n");
}

static void test_numbers(void **state) {
    (void)state;
    check("a:0 a:7 a:-7 a:- 7", "a@1:1=0 a@1:5=7 a@1:9=-7 a@1:14=-7");
    check("a:0x1F a:0XaB a:017 a:-0x10",
          "a@1:1=31 a@1:8=171 a@1:15=15 a@1:21=-16");
    check("a:9223372036854775807", "a@1:1=9223372036854775807");
    check("a:-9223372036854775808", "a@1:1=-9223372036854775808");
    check("a:18446744073709551615", "a@1:1=-1");
    check("a:18446744073709551616", "a@1:1=1.84467e+19");
    check("a:1.5 a:.5 a:5. a:1.5f a:2F a:1e3 a:1E-3 a:2.5e+1f",
          "a@1:1=1.5 a@1:7=0.5 a@1:12=5 a@1:17=1.5 a@1:24=2 a@1:29=1000 "
          "a@1:35=0.001 a@1:42=25");
    check("a:inf a:-inf a:nan", "a@1:1=inf a@1:7=-inf a@1:14=nan");
    ProtoMessage *m = parse("a:-nan b:-infinity");
    assert_true(isnan(m->field[0].number) && isinf(m->field[1].number));
}

static void test_strings(void **state) {
    (void)state;
    check("a:'it' a:\"it's\"", "a@1:1='it' a@1:8='it's'");
    check("a: 'x' # and\n \"y\"", "a@1:1='xy'");
    check("a:'\\n\\t\\\\\\'\\\"\\?'", "a@1:1='\n\t\\'\"?'");
    check("a:'\\101\\x42\\x4a\\7z'", "a@1:1='ABJ\az'");
    check("a:'\\u00e9\\U0001F600\\ud83d\\ude00'",
          "a@1:1='\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80'");
    ProtoMessage *m = parse("a:'x\\000y'");
    assert_int_equal(m->field[0].len, 3);
    assert_memory_equal(m->field[0].text, "x\0y", 4);
}

static void test_values(void **state) {
    (void)state;
    const char *words[] = {"RED", "GREEN", NULL};
    bool b = false;
    double d = 0;
    uint32_t u = 9;
    const ProtoMessage *m =
        parse("t: true f: f one: 1 inf: infinity e: GREEN n: 0 n: 1 m {x: 1} "
              "m {y: 2} u: 7");
    assert_true(proto_bool(diag, m, "t", &b) && b);
    assert_true(proto_bool(diag, m, "f", &b) && !b);
    assert_true(proto_bool(diag, m, "one", &b) && b);
    assert_true(proto_f64(diag, m, "inf", &d) && isinf(d));
    assert_true(proto_enum(diag, m, "e", words, &u) && u == 1);
    assert_true(proto_enum(diag, m, "n", words, &u) && u == 1);
    assert_false(proto_u32(diag, m, "absent", &u));
    const ProtoMessage *merged = proto_message(arena, diag, m, "m");
    assert_int_equal(merged->n, 2);
    proto_warn_unused(arena, diag, m, (const char *const[]){"y", NULL});
    assert_string_equal(messages(),
                        "1:72: warning: unknown field 'u' is ignored\n");
}

static void test_wrong_values(void **state) {
    (void)state;
    const char *words[] = {"RED", "GREEN", NULL}, *s;
    bool b;
    double d;
    uint32_t u;
    const ProtoMessage *m = parse("a: BLUE b: {} c: -1 d: 1.5 e: 'z\\0'");
    assert_false(proto_enum(diag, m, "a", words, &u));
    assert_false(proto_bool(diag, m, "b", &b));
    assert_false(proto_u32(diag, m, "c", &u));
    assert_false(proto_u32(diag, m, "d", &u));
    assert_false(proto_f64(diag, m, "a", &d));
    assert_false(proto_str(diag, m, "e", &s));
    assert_string_equal(
        messages(),
        "1:4: error: 'a' must be one of RED, GREEN, not BLUE\n"
        "1:12: error: 'b' must be true or false, not a message\n"
        "1:18: error: 'c' must be a whole number from 0 to 4294967295, not -1\n"
        "1:24: error: 'd' must be a whole number from 0 to 4294967295, not "
        "1.5\n"
        "1:4: error: 'a' must be a number, not BLUE\n"
        "1:31: error: 'e' must be a string without NUL bytes, not z\n");
}

static void test_bad_structure(void **state) {
    (void)state;
    refuse("layer {\n  a: 1\n", "1:7: error: this '{' is never closed\n");
    refuse("a <", "1:3: error: this '<' is never closed\n");
    refuse("a {>", "1:4: error: expected the name of a field, found '>'\n");
    refuse("}", "1:1: error: expected the name of a field, found '}'\n");
    refuse("a", "1:2: error: expected ':' or '{' behind 'a', found the end of "
                "the file\n");
    refuse("a b", "1:3: error: expected ':' or '{' behind 'a', found 'b'\n");
    refuse("a:", "1:3: error: expected a value for 'a', found the end of the "
                 "file\n");
    refuse("a: }", "1:4: error: expected a value for 'a', found '}'\n");
    refuse("a: [1 2]",
           "1:7: error: expected ',' or ']' in a list, found '2'\n");
    refuse("a: [1,]", "1:7: error: expected a value for 'a', found ']'\n");
    refuse("a: -x", "1:4: error: expected a number behind '-', found 'x'\n");
    refuse("\x01", "1:1: error: expected the name of a field, found byte "
                   "0x01\n");
    diag = diag_new(arena);
    assert_null(parse_n("a:1\0b:2", 7));
    assert_string_equal(messages(), "1:4: error: expected the name of a field, "
                                    "found byte 0x00\n");
}

static void test_bad_scalars(void **state) {
    (void)state;
    refuse("a: 224X224_1\nb: 1.2.3\nc: 08 d: 0x e: 1e",
           "1:4: error: '224X224_1' is not a number\n"
           "2:4: error: '1.2.3' is not a number\n"
           "3:4: error: '08' is not a number\n"
           "3:10: error: '0x' is not a number\n"
           "3:16: error: '1e' is not a number\n");
    refuse("a: 'x\nb: 1",
           "1:4: error: this string is not closed on its line\n");
    refuse("a: \"x\\", "1:4: error: this string is not closed on its line\n");
    refuse("a: 'ok' 'x", "1:9: error: this string is not closed on its line\n");
    refuse("a: '\\q' b: '\\x' c: '\\ud800'",
           "1:5: error: unknown escape in a string\n"
           "1:13: error: unknown escape in a string\n"
           "1:21: error: unknown escape in a string\n");
    refuse("a: '\\777'", "1:5: error: unknown escape in a string\n");
}

static void test_nesting(void **state) {
    (void)state;
    enum { DEEP = 100000 };
    char *text = arena_alloc(arena, DEEP * 2 + 1, 1);
    for (int i = 0; i < DEEP; i++)
        memcpy(text + 2 * i, "a{", 2);
    assert_null(parse(text));
    assert_string_equal(messages(),
                        "1:202: error: messages are nested more than 100 "
                        "deep\n");
}

static void test_many_errors_stop(void **state) {
    (void)state;
    Text text = text_new(arena);
    for (int i = 0; i < 100000; i++)
        text_add(&text, "a:1x ");
    assert_null(parse(text_str(&text)));
    assert_int_equal(diag_errors(diag), 100);
}

/* A string of a megabyte of escapes, and its memory. */
static void test_long_string(void **state) {
    (void)state;
    enum { LONG = 1 << 20 };
    Text text = text_new(arena);
    text_add(&text, "a: '");
    for (int i = 0; i < LONG; i++)
        text_add(&text, "\\001");
    text_add(&text, "'");
    size_t before = arena_used(arena);
    ProtoMessage *m = parse(text_str(&text));
    assert_int_equal(m->field[0].len, LONG);
    assert_true(arena_used(arena) - before < 4 * text.len);
}

/* Every prefix, and every byte changed, of a text with all forms in it. */
static void test_damage(void **state) {
    (void)state;
    static const char good[] =
        "a: 1 b { c: 'x\\u0041' \"y\" } d <e: [1, -2.5e3f, inf]> "
        "[x.y/z]: { f: 0x1F, g: TRUE; } # end\nh: -nan";
    for (size_t n = 0; n < sizeof good; n++)
        parse_n(good, n);
    for (size_t i = 0; i + 1 < sizeof good; i++)
        for (int bit = 0; bit < 8; bit++) {
            char bad[sizeof good];
            memcpy(bad, good, sizeof good);
            bad[i] = (char)(bad[i] ^ (1 << bit));
            parse_n(bad, sizeof good - 1);
        }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_structure),        TEST(test_lists),
        TEST(test_numbers),          TEST(test_names_in_brackets),
        TEST(test_strings),          TEST(test_values),
        TEST(test_wrong_values),     TEST(test_bad_structure),
        TEST(test_bad_scalars),      TEST(test_nesting),
        TEST(test_many_errors_stop), TEST(test_long_string),
        TEST(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
