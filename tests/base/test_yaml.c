/* YAML trees: places, refusals with their exact text, getters, merge, set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/yaml.h"
#include "tests/base/printed.h"

#include "base/rng.h"
#include "base/text.h"

#include <string.h>

typedef struct Fixture {
    Arena *arena;
    Diag *diag;
} Fixture;

static int set_up(void **state) {
    Arena *arena = arena_new("test");
    Fixture *f = ARENA_NEW(arena, Fixture);
    *f = (Fixture){arena, diag_new(arena)};
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    arena_free(((Fixture *)*state)->arena);
    return 0;
}

static YamlNode *parse(Fixture *f, const char *text) {
    return yaml_parse(f->arena, f->diag, "f", text, strlen(text));
}

static YamlNode *parse_good(Fixture *f, const char *text) {
    YamlNode *root = parse(f, text);
    assert_string_equal(printed(f->arena, f->diag), "");
    assert_non_null(root);
    return root;
}

static void refuses(Fixture *f, const char *text, const char *message) {
    parse(f, text);
    assert_true(diag_errors(f->diag) > 0);
    assert_string_equal(printed(f->arena, f->diag), message);
}

static void test_tree_and_places(void **state) {
    Fixture *f = *state;
    YamlNode *root = parse_good(f, "# a comment\n"
                                   "name: x y\n"
                                   "list:\n"
                                   "  - 1\n"
                                   "  - {a: \"two\", b: [3]}\n"
                                   "empty:\n");
    assert_int_equal(root->kind, YAML_MAP);
    assert_int_equal(root->n, 3);
    assert_string_equal(root->key[0], "name");
    assert_string_equal(root->item[0]->text, "x y");
    assert_int_equal(root->item[0]->loc.line, 2);
    assert_int_equal(root->item[0]->loc.col, 7);
    assert_int_equal(root->key_loc[1].line, 3);
    YamlNode *list = yaml_get(root, "list");
    assert_int_equal(list->kind, YAML_LIST);
    assert_int_equal(list->n, 2);
    assert_int_equal(list->item[1]->loc.line, 5);
    assert_int_equal(list->item[1]->loc.col, 5);
    assert_true(list->item[1]->item[0]->quoted);
    assert_int_equal(yaml_get(list->item[1], "b")->item[0]->loc.col, 20);
    assert_string_equal(root->item[2]->text, "");
}

static void test_refusals(void **state) {
    Fixture *f = *state;
    refuses(f, "a: 1\nb: 2\na: 3\n",
            "f:3:1: error: the key `a` is there twice\n"
            "    a: 3\n    ^\n"
            "f:1:1: note: the first is here\n"
            "    a: 1\n    ^\n");
    refuses(f, "a: &x 1\nb: *x\n",
            "f:1:4: error: anchors (&name) are not allowed here\n"
            "    a: &x 1\n       ^\n"
            "f:2:4: error: aliases (*name) are not allowed here\n"
            "    b: *x\n       ^\n");
    refuses(f, "a: !!int 1\n",
            "f:1:4: error: tags (!name) are not allowed here\n"
            "    a: !!int 1\n       ^\n");
    refuses(f, "[a]: 1\n",
            "f:1:1: error: a key must be a single word\n"
            "    [a]: 1\n    ^\n");
    refuses(f, "a: 1\n---\nb: 2\n",
            "f:2:1: error: a second document begins here\n"
            "    ---\n    ^\n");
    refuses(f, "", "f: error: nothing is in it\n");
    refuses(f, "# only this\n", "f: error: nothing is in it\n");
    refuses(f, "a: [1, 2\nb: 3\n",
            "f:2:2: error: did not find expected ',' or ']'\n"
            "    b: 3\n     ^\n"
            "f:1:4: note: while parsing a flow sequence\n"
            "    a: [1, 2\n       ^\n");
    refuses(f, "a:\n\tb: 1\n",
            "f:2:1: error: found character that cannot start any token\n"
            "     b: 1\n    ^\n");
}

static void test_bytes_that_are_not_text(void **state) {
    Fixture *f = *state;
    refuses(f, "a: 1\nb: \xff\n",
            "f:2:4: error: invalid leading UTF-8 octet\n"
            "    b: .\n       ^\n");
    refuses(f, "\xc3\xa9: \xc3\n",
            "f:1:5: error: invalid trailing UTF-8 octet\n"
            "    \xc3\xa9: .\n        ^\n");
    refuses(f, "a: \"x\\0y\"\n",
            "f:1:4: error: a value with a NUL byte in it\n"
            "    a: \"x\\0y\"\n       ^\n");
    assert_null(yaml_parse(f->arena, f->diag, "f", "a: \0b\n", 6));
    assert_string_equal(printed(f->arena, f->diag),
                        "f:1:4: error: control characters are not allowed\n"
                        "    a: .b\n       ^\n");
}

static void test_depth(void **state) {
    Fixture *f = *state;
    char text[2 * YAML_MAX_DEPTH + 3] = "";
    memset(text, '[', YAML_MAX_DEPTH);
    memset(text + YAML_MAX_DEPTH, ']', YAML_MAX_DEPTH);
    parse_good(f, text);
    memset(text, '[', YAML_MAX_DEPTH + 1);
    memset(text + YAML_MAX_DEPTH + 1, ']', YAML_MAX_DEPTH + 1);
    assert_null(parse(f, text));
    assert_non_null(strstr(printed(f->arena, f->diag),
                           "f:1:65: error: nested more than 64 deep\n"));
}

typedef struct Row {
    const char *text;
    bool ok;
    double value;
} Row;

#define CHECK_ROWS(T, getter)                                                  \
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {                  \
        T out = (T)77;                                                         \
        YamlNode *node = parse_good(f, rows[i].text);                          \
        assert_int_equal(getter(f->diag, node, &out), rows[i].ok);             \
        assert_true(out == (T)(rows[i].ok ? rows[i].value : 77));              \
        const char *said = printed(f->arena, f->diag);                         \
        assert_int_equal(*said == '\0', rows[i].ok);                           \
    }

static void test_whole_numbers(void **state) {
    Fixture *f = *state;
    {
        static const Row rows[] = {
            {"12", true, 12},    {"0x1f", true, 31},
            {"\"7\"", true, 7},  {"-1", false, 0},
            {"1.5", false, 0},   {"0x", false, 0},
            {"12 3", false, 0},  {"18446744073709551616", false, 0},
            {"+3", false, 0},    {"1e3", false, 0},
            {"[1]", false, 0},   {"~", false, 0},
            {"1_000", false, 0}, {"\"\"", false, 0},
            {"''", false, 0},    {"0x1fffffffff", true, 0x1fffffffff},
        };
        CHECK_ROWS(uint64_t, yaml_u64)
    }
    {
        static const Row rows[] = {{"4294967295", true, 4294967295.0},
                                   {"4294967296", false, 0}};
        CHECK_ROWS(uint32_t, yaml_u32)
    }
    {
        static const Row rows[] = {
            {"-12", true, -12},
            {"-9223372036854775808", true, -9223372036854775808.0},
            {"9223372036854775808", false, 0},
            {"-9223372036854775809", false, 0},
            {"- 3", false, 0},
            {"--3", false, 0}};
        CHECK_ROWS(int64_t, yaml_i64)
    }
}

static void test_other_numbers(void **state) {
    Fixture *f = *state;
    {
        static const Row rows[] = {{"1.5", true, 1.5},  {"-2e3", true, -2000},
                                   {".5", true, 0.5},   {"inf", false, 0},
                                   {"nan", false, 0},   {"0x1p3", false, 0},
                                   {"1e999", false, 0}, {"1:30", false, 0},
                                   {"3 4", false, 0},   {"-inf", false, 0}};
        CHECK_ROWS(double, yaml_f64)
    }
    {
        static const Row rows[] = {{"4096", true, 4096},
                                   {"4KiB", true, 4096},
                                   {"4.5MiB", true, 4718592},
                                   {"4.5 MiB", true, 4718592},
                                   {"4.5M", true, 4718592},
                                   {"0x100", true, 256},
                                   {"1KB", true, 1000},
                                   {"2GB", true, 2e9},
                                   {"3GiB", true, 3221225472.0},
                                   {"1.5", false, 0},
                                   {"0.001KiB", false, 0},
                                   {"4Q", false, 0},
                                   {"4mib", false, 0},
                                   {"-4KiB", false, 0},
                                   {"1.MiB", false, 0},
                                   {"20000000000GiB", false, 0},
                                   {"0", true, 0},
                                   {"64 B", true, 64},
                                   {"0.125KB", true, 125}};
        CHECK_ROWS(uint64_t, yaml_size)
    }
    {
        static const Row rows[] = {
            {"800MHz", true, 8e8}, {"1.2 GHz", true, 1.2e9}, {"5Hz", true, 5},
            {"0MHz", false, 0},    {"-1MHz", false, 0},      {"800", false, 0},
            {"3mhz", false, 0},    {"2kHz", true, 2000}};
        CHECK_ROWS(double, yaml_hertz)
    }
}

static void test_words(void **state) {
    Fixture *f = *state;
    static const char *const names[] = {"linear", "buffers", NULL};
    YamlNode *root = parse_good(f, "{a: true, b: no, c: buffers, d: heap, "
                                   "e: , f: \"\", g: [x]}");
    bool flag = false;
    uint32_t which = 9;
    const char *text = "before";
    assert_true(yaml_bool(f->diag, yaml_get(root, "a"), &flag) && flag);
    assert_true(yaml_enum(f->diag, yaml_get(root, "c"), names, &which));
    assert_int_equal(which, 1);
    assert_true(yaml_str(f->diag, yaml_get(root, "f"), &text));
    assert_string_equal(text, "");
    assert_false(yaml_str(f->diag, yaml_get(root, "absent"), &text));
    assert_false(yaml_is(f->diag, NULL, YAML_MAP));
    assert_string_equal(printed(f->arena, f->diag), "");
    diag_source(f->diag, "f", "", 0); /* carets have their own test */
    assert_false(yaml_bool(f->diag, yaml_get(root, "b"), &flag));
    assert_false(yaml_enum(f->diag, yaml_get(root, "d"), names, &which));
    assert_false(yaml_str(f->diag, yaml_get(root, "e"), &text));
    assert_false(yaml_str(f->diag, yaml_get(root, "g"), &text));
    assert_false(yaml_is(f->diag, yaml_get(root, "e"), YAML_LIST));
    assert_null(yaml_need(f->diag, root, "size"));
    assert_string_equal(printed(f->arena, f->diag),
                        "f:1:14: error: `no` is not true or false\n"
                        "f:1:33: error: `heap` is not one of: linear, buffers\n"
                        "f:1:42: error: a value is missing here\n"
                        "f:1:54: error: a single value is expected here, "
                        "not a list\n"
                        "f:1:42: error: a list is expected here, not nothing\n"
                        "f:1:1: error: the key `size` is missing\n");
}

static void test_unknown_keys(void **state) {
    Fixture *f = *state;
    YamlNode *root = parse_good(f, "memories:\n"
                                   "  am: {size: 1, alignment: 2}\n"
                                   "  ddr: {sise: 1, size: 3, aling: 4}\n"
                                   "engins:\n"
                                   "  deep: {inside: {more: 1}}\n"
                                   "list: [{a: 1, zzzzzz: 2}]\n");
    YamlNode *memories = yaml_get(root, "memories");
    yaml_get(root, "engines");
    for (uint32_t i = 0; i < memories->n; i++) {
        YamlNode *memory = yaml_get(memories, memories->key[i]);
        yaml_get(memory, "size");
        yaml_get(memory, "align");
        yaml_get(memory, "align");
    }
    yaml_get(yaml_get(root, "list")->item[0], "a");
    diag_source(f->diag, "f", "", 0);
    yaml_check_used(f->diag, root);
    assert_string_equal(
        printed(f->arena, f->diag),
        "f:2:17: error: unknown key `alignment`; did you mean `align`?\n"
        "f:3:9: error: unknown key `sise`; did you mean `size`?\n"
        "f:3:27: error: unknown key `aling`; did you mean `align`?\n"
        "f:4:1: error: unknown key `engins`; did you mean `engines`?\n"
        "f:6:15: error: unknown key `zzzzzz`\n");
}

/* A tree in one line: {a:1 b:[2 3]}. */
static void show(Text *text, const YamlNode *node) {
    if (node->kind == YAML_SCALAR) {
        text_add(text, node->text);
        return;
    }
    text_add(text, node->kind == YAML_MAP ? "{" : "[");
    for (uint32_t i = 0; i < node->n; i++) {
        text_add(text, i ? " " : "");
        if (node->kind == YAML_MAP)
            text_addf(text, "%s:", node->key[i]);
        show(text, node->item[i]);
    }
    text_add(text, node->kind == YAML_MAP ? "}" : "]");
}

static const char *shown(Fixture *f, const YamlNode *node) {
    Text text = text_new(f->arena);
    show(&text, node);
    return text_str(&text);
}

static void test_merge(void **state) {
    Fixture *f = *state;
    YamlNode *base = parse_good(f, "{a: 1, m: {x: 1, y: {p: 1}, l: [1, 2]}, "
                                   "k: {z: 1}}");
    YamlNode *over = parse_good(f, "\n{new: 5, m: {y: {q: 2}, l: [3], x: 9}, "
                                   "k: word}");
    YamlNode *merged = yaml_merge(f->arena, base, over);
    assert_string_equal(shown(f, merged),
                        "{a:1 m:{x:9 y:{p:1 q:2} l:[3]} k:word new:5}");
    assert_string_equal(shown(f, base),
                        "{a:1 m:{x:1 y:{p:1} l:[1 2]} k:{z:1}}");
    YamlNode *m = yaml_get(merged, "m");
    assert_int_equal(yaml_get(m, "x")->loc.line, 2);
    assert_int_equal(yaml_get(yaml_get(m, "y"), "p")->loc.line, 1);
    yaml_get(yaml_get(m, "y"), "q");
    diag_source(f->diag, "f", "", 0);
    yaml_check_used(f->diag, merged); /* works on merged maps too */
    assert_string_equal(printed(f->arena, f->diag),
                        "f:1:2: error: unknown key `a`\n"
                        "f:2:25: error: unknown key `l`\n"
                        "f:2:40: error: unknown key `k`\n"
                        "f:2:2: error: unknown key `new`\n");
}

static void cannot_set(Fixture *f, YamlNode *root, const char *path,
                       const char *message) {
    assert_false(yaml_set(f->arena, f->diag, root, path, "3"));
    assert_string_equal(printed(f->arena, f->diag), message);
}

static void test_set_through_keys_with_dots(void **state) {
    Fixture *f = *state;
    YamlNode *root = parse_good(f, "{a: {b.c: {d: 1}}, e.f: 3}");
    assert_true(yaml_set(f->arena, f->diag, root, "a.b.c.d", "4"));
    assert_true(yaml_set(f->arena, f->diag, root, "e.f", "6"));
    assert_string_equal(shown(f, root), "{a:{b.c:{d:4}} e.f:6}");
    cannot_set(f, root, "a.b.d",
               "--set a.b.d=3: error: nothing is called `a.b`; "
               "there are: b.c\n");
}

static void test_set(void **state) {
    Fixture *f = *state;
    YamlNode *root = parse_good(f, "{memories: {am: {size: 1, align: 2}}, "
                                   "list: [7, {x: 8}], none: {}}");
    uint64_t size = 0;
    YamlNode *am = yaml_get(yaml_get(root, "memories"), "am");
    assert_true(yaml_set(f->arena, f->diag, root, "memories.am.size", "2MiB"));
    assert_true(yaml_size(f->diag, yaml_get(am, "size"), &size));
    assert_int_equal(size, 2 << 20);
    assert_true(yaml_set(f->arena, f->diag, root, "list.0", "5"));
    assert_true(yaml_set(f->arena, f->diag, root, "list.1.x", "6"));
    assert_string_equal(shown(f, yaml_get(root, "list")), "[5 {x:6}]");
    cannot_set(f, root, "memories.dm.size",
               "--set memories.dm.size=3: error: nothing is called "
               "`memories.dm`; there are: am\n");
    cannot_set(f, root, "memories.am",
               "--set memories.am=3: error: `memories.am` is not a single "
               "value; there are: size, align\n");
    cannot_set(f, root, "list.2",
               "--set list.2=3: error: nothing is called `list.2`; "
               "it is a list: 0 to 1\n");
    cannot_set(f, root, "list.0.x",
               "--set list.0.x=3: error: nothing is called `list.0.x`; "
               "it is a single value\n");
    cannot_set(f, root, "none.x",
               "--set none.x=3: error: nothing is called `none.x`; "
               "it is empty\n");
    cannot_set(f, root, "",
               "--set =3: error: nothing is called ``; "
               "there are: memories, list, none\n");
    assert_true(yaml_set(f->arena, f->diag, root, "memories.am.align", "x"));
    assert_false(yaml_u64(f->diag, yaml_get(am, "align"), &size));
    assert_string_equal(printed(f->arena, f->diag),
                        "--set memories.am.align=x: error: `x` is not a whole "
                        "number from 0 to 2^64-1\n");
}

/* No damage makes the parser crash, or accept and hand out a NULL. */
static void test_damaged_text(void **state) {
    Fixture *f = *state;
    static const char good[] = "memories:\n  am: {size: 4MiB, ports: [1, 2]}\n"
                               "text: |\n  a\n  b\n'q': \"\\u00e9\"\n";
    for (uint64_t i = 0; i < 3000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        uint64_t bits = rng_bits(1, i);
        size_t len = i % 2 ? sizeof good - 1 : (bits >> 8) % sizeof good;
        for (int k = 0; k < 3; k++) {
            uint64_t more = rng_bits(bits, (uint64_t)k);
            text[more % sizeof good] ^= (char)(1 << (more >> 32) % 8);
        }
        Arena *arena = arena_new("damaged");
        Diag *diag = diag_new(arena);
        YamlNode *root = yaml_parse(arena, diag, "f", text, len);
        assert_true(root || diag_errors(diag) > 0);
        if (root)
            yaml_check_used(diag, root);
        printed(arena, diag);
        arena_free(arena);
    }
    assert_non_null(parse_good(f, good));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_tree_and_places),
        TEST(test_refusals),
        TEST(test_bytes_that_are_not_text),
        TEST(test_depth),
        TEST(test_whole_numbers),
        TEST(test_other_numbers),
        TEST(test_words),
        TEST(test_unknown_keys),
        TEST(test_merge),
        TEST(test_set),
        TEST(test_set_through_keys_with_dots),
        TEST(test_damaged_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
