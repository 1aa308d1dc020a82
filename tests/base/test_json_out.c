/* JSON written as it comes: the same text as cJSON prints of the whole, however
 * it is cut into pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json_out.h"
#include "base/rng.h"

enum { DEEPEST = 5, MOST = 6 };

typedef struct Random {
    uint64_t seed, at;
} Random;

static uint64_t next(Random *r) {
    return rng_bits(r->seed, r->at++);
}

static const char *any_text(Random *r) {
    static const char *const text[] = {"",         "plain text", "a \"b\" \\c",
                                       "tab\t",    "line\nline", "\x01\x1f\x7f",
                                       "\xc3\xa9", "/"};
    return text[next(r) % (sizeof text / sizeof *text)];
}

static cJSON *any_leaf(Random *r) {
    switch (next(r) % 5) {
    case 0:
        return cJSON_CreateNull();
    case 1:
        return cJSON_CreateBool(next(r) % 2 == 0);
    case 2:
        return cJSON_CreateNumber((double)(next(r) % 100000) / 64);
    case 3:
        return cJSON_CreateRaw("12345678901234567");
    default:
        return cJSON_CreateString(any_text(r));
    }
}

static cJSON *any_tree(Random *r, uint32_t depth) {
    if (depth == DEEPEST || (depth && next(r) % 3 == 0))
        return any_leaf(r);
    bool object = next(r) % 2;
    cJSON *tree = object ? cJSON_CreateObject() : cJSON_CreateArray();
    for (uint64_t n = next(r) % MOST; n > 0; n--) {
        cJSON *item = any_tree(r, depth + 1);
        if (object)
            cJSON_AddItemToObject(tree, any_text(r), item);
        else
            cJSON_AddItemToArray(tree, item);
    }
    return tree;
}

/* Some of it by hand, some as cJSON has it. */
static void write_tree(JsonOut *out, Random *r, const char *key,
                       const cJSON *tree) {
    const cJSON *item;
    if (cJSON_IsString(tree) && next(r) % 2) {
        json_out_text(out, key, tree->valuestring);
    } else if (!tree->child || next(r) % 4 == 0) {
        json_out_value(out, key, cJSON_Duplicate(tree, true));
    } else if (cJSON_IsArray(tree)) {
        json_out_list(out, key);
        cJSON_ArrayForEach(item, tree) write_tree(out, r, NULL, item);
        json_out_close(out);
    } else {
        json_out_object(out, key);
        if (next(r) % 2)
            json_out_members(out, cJSON_Duplicate(tree, true));
        else
            cJSON_ArrayForEach(item, tree)
                write_tree(out, r, item->string, item);
        json_out_close(out);
    }
}

static void trees_are_as_cjson_prints_them(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    for (uint64_t seed = 0; seed < 500; seed++) {
        Random r = {seed, 0};
        cJSON *tree = any_tree(&r, 0);
        Text text = text_new(arena);
        JsonOut out = json_out_new(&text);
        write_tree(&out, &r, NULL, tree);
        assert_string_equal(text_str(&text), json_print(arena, tree, true));
        json_free(tree);
        arena_reset(arena);
    }
    arena_free(arena);
}

/* Empty lists and objects that were opened look as cJSON's. */
static void empty_ones_are_too(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Text text = text_new(arena);
    JsonOut out = json_out_new(&text);
    json_out_object(&out, NULL);
    json_out_object(&out, "a");
    json_out_close(&out);
    json_out_list(&out, "b");
    json_out_close(&out);
    json_out_text(&out, "c", NULL);
    json_out_close(&out);
    Diag *diag = diag_new(arena);
    cJSON *back = json_parse(diag, "f", text_str(&text), text.len);
    assert_string_equal(text_str(&text), json_print(arena, back, true));
    json_free(back);
    arena_free(arena);
}

static void collect(void *context, const char *bytes, size_t len) {
    text_add_n(context, bytes, len);
}

/* What is handed on piece by piece is all of it, in order. */
static void pieces_make_the_whole(void **state) {
    (void)state;
    enum { LONG = 200000 };
    Arena *arena = arena_new("test");
    Text whole = text_new(arena), got = text_new(arena);
    Text pieces = text_into(arena, collect, &got);
    char *one = ARENA_ARRAY(arena, char, LONG);
    for (uint32_t i = 0; i < LONG; i++)
        one[i] = (char)('a' + i % 26);
    for (uint64_t i = 0; i < 60; i++) {
        size_t n = (size_t)(rng_bits(1, i) % (i % 10 ? 3000 : LONG));
        text_add_n(&whole, one, n);
        text_add_n(&pieces, one, n);
        text_addf(&whole, "%d;", (int)i);
        text_addf(&pieces, "%d;", (int)i);
    }
    text_end(&pieces);
    assert_true(pieces.cap < LONG);
    assert_string_equal(text_str(&got), text_str(&whole));
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_as_cjson_prints_them),
        cmocka_unit_test(empty_ones_are_too),
        cmocka_unit_test(pieces_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
