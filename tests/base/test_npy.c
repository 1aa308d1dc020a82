/* .npy files: our own, NumPy's as bytes, and broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/npy.h"
#include "base/text.h"
#include "tests/base/printed.h"
#include "tests/scratch.h"

#include <string.h>
#include <unistd.h>

typedef struct Fixture {
    Arena *arena;
    Diag *diag;
    char path[512];
} Fixture;

static int set_up(void **state) {
    Arena *arena = arena_new("test");
    Fixture *f = ARENA_NEW(arena, Fixture);
    f->arena = arena;
    f->diag = diag_new(arena);
    snprintf(f->path, sizeof f->path, "%s/amphora-npy-XXXXXX", scratch());
    int fd = mkstemp(f->path);
    *state = f;
    return close(fd);
}

static int tear_down(void **state) {
    Fixture *f = *state;
    unlink(f->path);
    arena_free(f->arena);
    return 0;
}

static void round_trip(Fixture *f, const Npy *npy) {
    Npy back;
    assert_true(npy_write(f->arena, diag_new(f->arena), f->path, npy));
    assert_true(npy_read(f->arena, f->diag, f->path, &back));
    assert_int_equal(back.rank, npy->rank);
    assert_memory_equal(back.dim, npy->dim, sizeof npy->dim);
    assert_int_equal(back.count, npy->count);
    if (npy->count)
        assert_memory_equal(back.data, npy->data, npy->count * sizeof(float));
}

static void test_round_trip(void **state) {
    float data[24];
    for (int i = 0; i < 24; i++)
        data[i] = (float)i / 7 - 1;
    round_trip(*state, &(Npy){3, {2, 3, 4}, data, 24, NULL});
    round_trip(*state, &(Npy){1, {5}, data, 5, NULL});
    round_trip(*state, &(Npy){0, {0}, data, 1, NULL});
    round_trip(*state, &(Npy){2, {3, 0}, data, 0, NULL});
    round_trip(*state, &(Npy){1, {3}, (float[]){-128, 0, 127}, 3, "|i1"});
    round_trip(*state, &(Npy){1, {2}, (float[]){-30000, 7}, 2, "<i2"});
    round_trip(*state, &(Npy){8, {1, 1, 1, 2, 1, 1, 1, 3}, data, 6, NULL});
}

/* A file as NumPy writes it; version 1 unless `version` says otherwise. */
static void put_file(Fixture *f, char version, const char *dict,
                     const void *data, size_t len) {
    Text text = text_new(f->arena);
    size_t n = strlen(dict);
    const char size[] = {version, 0, (char)n, (char)(n >> 8), 0, 0};
    text_add_n(&text, "\x93NUMPY", 6);
    text_add_n(&text, size, version == 1 ? 4 : 6);
    text_add(&text, dict);
    text_add_n(&text, data, len);
    assert_true(file_replace(f->arena, f->diag, f->path, text.at, text.len));
}

#define DICT(kind, shape)                                                      \
    "{'descr': '" kind "', 'fortran_order': False, 'shape': (" shape "), }  "  \
    "\n"

static void test_element_kinds(void **state) {
    Fixture *f = *state;
    const double f8[] = {1.5, -2};
    const uint8_t u1[] = {0, 255};
    const int8_t i1[] = {-128, 127};
    const int32_t i4[] = {-70000, 5};
    const int64_t i8[] = {-1, INT64_C(1) << 40};
    const struct {
        const char *dict;
        const void *data;
        size_t len;
        float want[2];
    } row[] = {
        {DICT("<f8", "2,"), f8, sizeof f8, {1.5f, -2}},
        {DICT("|u1", "2,"), u1, sizeof u1, {0, 255}},
        {DICT("|i1", "2L,"), i1, sizeof i1, {-128, 127}},
        {DICT("<i4", "1, 2"), i4, sizeof i4, {-70000, 5}},
        {DICT("<i8", "2, 1"), i8, sizeof i8, {-1, 1099511627776.0f}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (char version = 1; version <= 3; version++) {
            Npy npy;
            put_file(f, version, row[i].dict, row[i].data, row[i].len);
            assert_true(npy_read(f->arena, f->diag, f->path, &npy));
            assert_int_equal(npy.count, 2);
            assert_memory_equal(npy.data, row[i].want, sizeof row[i].want);
        }
}

static void test_broken_files(void **state) {
    Fixture *f = *state;
    const float data[4] = {0};
    const struct {
        char version;
        const char *dict, *why;
    } row[] = {
        {1, DICT(">f4", "4,"), "its elements are none of"},
        {1, DICT("<f4", "5,"), "its shape does not go with its length"},
        {1, DICT("<f4", "-1,"), "its shape does not go with its length"},
        {1, DICT("<f4", "99999999999999999999,"), "its shape does not"},
        {1, DICT("<f4", "999999999, 999999999, 999999999"), "its shape"},
        {1, DICT("<f4", "1,1,1,1,1,1,1,1,1"), "its shape does not"},
        {1, DICT("<f4", "4"), NULL},
        {1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4,)}",
         "it does not say in which order it is"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4,",
         "its shape does not go with its length"},
        {1, "{}", "its elements are none of"},
        {9, DICT("<f4", "4,"), "unknown version"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Npy npy;
        put_file(f, row[i].version, row[i].dict, data, sizeof data);
        assert_int_equal(npy_read(f->arena, f->diag, f->path, &npy),
                         !row[i].why);
        const char *said = printed(f->arena, f->diag);
        assert_true(row[i].why ? !!strstr(said, row[i].why) : !*said);
    }
}

static void test_cut_off_anywhere(void **state) {
    Fixture *f = *state;
    const float data[3] = {1, 2, 3};
    Npy npy;
    Bytes whole;
    npy = (Npy){1, {3}, (float *)(uintptr_t)data, 3, NULL};
    assert_true(npy_write(f->arena, diag_new(f->arena), f->path, &npy));
    assert_true(file_read(f->arena, f->diag, f->path, &whole));
    for (size_t len = 0; len < whole.len; len++) {
        assert_true(file_replace(f->arena, f->diag, f->path, whole.at, len));
        assert_false(npy_read(f->arena, f->diag, f->path, &npy));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),
        TEST(test_element_kinds),
        TEST(test_broken_files),
        TEST(test_cut_off_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
