/* Arenas, vectors, texts, maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

#include <stdio.h>
#include <string.h>

static bool all_zero(const unsigned char *at, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (at[i])
            return false;
    return true;
}

static void test_aligned_and_zeroed(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    for (size_t round = 0; round < 2; round++) {
        for (size_t size = 0; size < 3000; size += 7)
            for (size_t align = 1; align <= 64; align *= 2) {
                unsigned char *at = arena_alloc(arena, size, align);
                assert_int_equal((uintptr_t)at % align, 0);
                assert_true(all_zero(at, size));
                memset(at, 0xA5, size);
            }
        arena_reset(arena);
        assert_int_equal(arena_used(arena), 0);
    }
    arena_free(arena);
    arena_free(NULL);
}

static void test_blocks_do_not_overlap(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    enum { N = 500 };
    unsigned char *at[N];
    for (size_t i = 0; i < N; i++) {
        at[i] = arena_alloc(arena, i * 37, 8);
        memset(at[i], (int)(i & 255), i * 37);
    }
    unsigned char *large = arena_alloc(arena, 10 << 20, 64);
    memset(large, 1, 10 << 20);
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i * 37; k++)
            assert_int_equal(at[i][k], i & 255);
    assert_int_equal(arena_used(arena), 37 * N * (N - 1) / 2 + (10 << 20));
    arena_free(arena);
}

static void test_copies(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const uint32_t numbers[] = {1, 2, 3};
    const uint32_t *copy = ARENA_COPY(arena, uint32_t, numbers, 3);
    assert_memory_equal(copy, numbers, sizeof numbers);
    assert_string_equal(arena_strndup(arena, "abcdef", 3), "abc");
    assert_string_equal(arena_strdup(arena, ""), "");
    assert_string_equal(arena_printf(arena, "%d-%s", 7, "x"), "7-x");
    arena_free(arena);
}

static void test_vec_grows(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    VEC(uint64_t) v = {0};
    for (uint64_t i = 0; i < 10000; i++)
        vec_push(arena, &v, i * i);
    assert_int_equal(v.n, 10000);
    for (uint32_t i = 0; i < v.n; i++)
        assert_int_equal(v.at[i], (uint64_t)i * i);
    arena_free(arena);
}

static void test_text_appends(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Text text = text_new(arena);
    assert_string_equal(text_str(&text), "");
    for (int i = 0; i < 1000; i++)
        text_addf(&text, "%d,", i % 10);
    text_add_n(&text, "end!", 3);
    assert_int_equal(text.len, 2003);
    assert_memory_equal(text_str(&text), "0,1,2,3,4,5,6,7,8,9,0,", 22);
    assert_string_equal(text_str(&text) + 2000, "end");
    arena_free(arena);
}

static void test_map_keeps_everything(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Map *map = map_new(arena);
    char key[16];
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%u", i);
        assert_true(map_put(map, key, i)); /* the key is copied */
    }
    assert_false(map_put(map, "k17", 99));
    assert_int_equal(map_get(map, "k17", 0), 99);
    assert_int_equal(map_get(map, "k4999", 0), 4999);
    assert_int_equal(map_get(map, "absent", 42), 42);
    assert_true(map_put(map, "", 5));
    assert_int_equal(map_get(map, "", 0), 5);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned_and_zeroed),
        cmocka_unit_test(test_blocks_do_not_overlap),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_vec_grows),
        cmocka_unit_test(test_text_appends),
        cmocka_unit_test(test_map_keeps_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
