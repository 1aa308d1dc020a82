/* Files: mapped in, and written whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/base/printed.h"
#include "tests/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Fixture {
    Arena *arena;
    Diag *diag;
    char folder[512];
} Fixture;

static int set_up(void **state) {
    Arena *arena = arena_new("test");
    Fixture *f = ARENA_NEW(arena, Fixture);
    f->arena = arena;
    f->diag = diag_new(arena);
    snprintf(f->folder, sizeof f->folder, "%s/amphora-file-XXXXXX", scratch());
    *state = f;
    return mkdtemp(f->folder) ? 0 : -1;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    int bad = rmdir(f->folder); /* a test leaves nothing behind */
    arena_free(f->arena);
    return bad;
}

static const char *in_folder(Fixture *f, const char *name) {
    return arena_printf(f->arena, "%s/%s", f->folder, name);
}

static int entries(const char *folder) {
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A folder with a file, a link to it, links out of the folder, and one to a
 * folder outside. */
static void names_stay_in_their_folder(void **state) {
    Fixture *f = *state;
    const char *file = in_folder(f, "data"), *in = in_folder(f, "in");
    const char *out = in_folder(f, "out"), *up = in_folder(f, "up");
    const char *below = in_folder(f, "below");
    assert_true(file_write(f->arena, f->diag, file, "x", 1));
    assert_int_equal(symlink("data", in), 0);
    assert_int_equal(symlink("/dev/null", out), 0);
    assert_int_equal(symlink("..", up), 0);
    assert_true(file_make_dir(f->arena, f->diag, below));
    assert_string_equal(file_inside(f->arena, f->folder, "data"), file);
    assert_string_equal(file_inside(f->arena, f->folder, "in"), in);
    assert_non_null(file_inside(f->arena, f->folder, "./below/none"));
    assert_non_null(file_inside(f->arena, f->folder, "..data"));
    assert_null(file_inside(f->arena, f->folder, "out"));
    assert_null(file_inside(f->arena, f->folder, "up/none/../../etc"));
    assert_null(file_inside(f->arena, f->folder, "../data"));
    assert_null(file_inside(f->arena, f->folder, "below/.."));
    assert_null(file_inside(f->arena, below, "../data"));
    assert_null(file_inside(f->arena, f->folder, "/dev/null"));
    assert_null(file_inside(f->arena, f->folder, "a\\b"));
    assert_null(file_inside(f->arena, f->folder, ""));
    assert_null(file_inside(f->arena, f->folder, "up"));
    unlink(file), unlink(in), unlink(out), unlink(up), rmdir(below);
}

static void test_write_then_read(void **state) {
    Fixture *f = *state;
    const char *path = in_folder(f, "a.bin");
    Bytes bytes;
    assert_true(file_write(f->arena, f->diag, path, "old", 3));
    assert_true(file_write(f->arena, f->diag, path, "a\0b\n", 4));
    assert_true(file_read(f->arena, f->diag, path, &bytes));
    assert_int_equal(bytes.len, 4);
    assert_memory_equal(bytes.at, "a\0b\n", 4);
    assert_int_equal(entries(f->folder), 1);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    assert_true(file_exists(path));
    unlink(path);
    assert_false(file_exists(path));
}

static void test_never_over_what_was_read(void **state) {
    Fixture *f = *state;
    const char *path = in_folder(f, "net.json"), *link = in_folder(f, "link");
    Diag *fresh = diag_new(f->arena);
    Bytes bytes;
    assert_true(file_write(f->arena, fresh, path, "net", 3));
    assert_true(file_read(f->arena, f->diag, path, &bytes));
    assert_int_equal(symlink(path, link), 0);
    assert_false(file_write(f->arena, f->diag, path, "plan", 4));
    assert_false(file_write(f->arena, f->diag, link, "plan", 4));
    assert_int_equal(diag_errors(f->diag), 2);
    assert_memory_equal(bytes.at, "net", 3);
    assert_true(file_replace(f->arena, f->diag, path, "plan", 4));
    unlink(link);
    unlink(path);
}

static void test_empty_file(void **state) {
    Fixture *f = *state;
    const char *path = in_folder(f, "empty");
    Bytes bytes;
    assert_true(file_write(f->arena, f->diag, path, NULL, 0));
    assert_true(file_read(f->arena, f->diag, path, &bytes));
    assert_int_equal(bytes.len, 0);
    unlink(path);
}

static void test_all_or_none(void **state) {
    Fixture *f = *state;
    const char *first = in_folder(f, "first"), *folder = in_folder(f, "taken");
    assert_int_equal(mkdir(folder, 0777), 0);
    const FilePart part[] = {{.path = first, .data = "1", .len = 1},
                             {.path = folder, .data = "2", .len = 1}};
    assert_false(file_write_all(f->arena, f->diag, 2, part));
    assert_false(file_exists(first));
    assert_int_equal(entries(f->folder), 1);
    rmdir(folder);
    assert_true(file_write_all(f->arena, f->diag, 2, part));
    assert_int_equal(entries(f->folder), 2);
    unlink(first);
    unlink(folder);
}

static void refuses(Fixture *f, const char *path, const char *why) {
    Bytes bytes;
    assert_false(file_read(f->arena, f->diag, path, &bytes));
    assert_string_equal(printed(f->arena, f->diag),
                        arena_printf(f->arena, "%s: error: %s\n", path, why));
}

static void test_what_cannot_be_read(void **state) {
    Fixture *f = *state;
    refuses(f, "/nowhere/x", "cannot open: No such file or directory");
    refuses(f, f->folder, "cannot read: Is a directory");
    refuses(f, "/dev/full", "cannot read: not a regular file");
}

static void cannot_write(Fixture *f, const char *path, const char *why) {
    assert_false(file_write(f->arena, f->diag, path, "data", 4));
    assert_string_equal(
        printed(f->arena, f->diag),
        arena_printf(f->arena, "%s: error: cannot write: %s\n", path, why));
}

static void test_where_nothing_can_be_written(void **state) {
    Fixture *f = *state;
    cannot_write(f, in_folder(f, "no/such/file"), "No such file or directory");
    cannot_write(f, f->folder, "Is a directory");
    assert_int_equal(entries(f->folder), 0);
    cannot_write(f, "/dev/full", "No space left on device");
    struct stat info;
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode)); /* not replaced by a file */
}

/* A limit on file sizes stands in for a full disk. */
static void test_full_disk_leaves_nothing(void **state) {
    Fixture *f = *state;
    const char *path = in_folder(f, "big");
    assert_true(file_write(f->arena, f->diag, path, "before", 6));
    struct rlimit was, tiny;
    getrlimit(RLIMIT_FSIZE, &was);
    tiny = was;
    tiny.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tiny);
    char *data = arena_alloc(f->arena, 5000, 1);
    bool ok = file_write(f->arena, f->diag, path, data, 5000);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_false(ok);
    assert_string_equal(
        printed(f->arena, f->diag),
        arena_printf(f->arena, "%s: error: cannot write: File too large\n",
                     path));
    Bytes bytes;
    assert_true(file_read(f->arena, f->diag, path, &bytes));
    assert_int_equal(bytes.len, 6);
    assert_memory_equal(bytes.at, "before", 6);
    assert_int_equal(entries(f->folder), 1);
    unlink(path);
}

static void test_make_dir(void **state) {
    Fixture *f = *state;
    const char *deep = in_folder(f, "a/b");
    assert_true(file_make_dir(f->arena, f->diag, deep));
    assert_true(file_make_dir(f->arena, f->diag, deep));
    const char *plain = in_folder(f, "a/b/file");
    assert_true(file_write(f->arena, f->diag, plain, "", 0));
    assert_false(file_make_dir(f->arena, f->diag, plain));
    assert_string_equal(
        printed(f->arena, f->diag),
        arena_printf(f->arena,
                     "%s: error: cannot make the folder: Not a directory\n",
                     plain));
    unlink(plain);
    rmdir(deep);
    rmdir(in_folder(f, "a"));
}

static void test_names(void **state) {
    Fixture *f = *state;
    assert_string_equal(file_stem(f->arena, "a/b/net.prototxt"), "net");
    assert_string_equal(file_stem(f->arena, "net"), "net");
    assert_string_equal(file_stem(f->arena, "a.b/.hidden"), ".hidden");
    assert_string_equal(file_dir(f->arena, "a/b/net"), "a/b");
    assert_string_equal(file_dir(f->arena, "net"), ".");
    assert_string_equal(file_dir(f->arena, "/net"), "/");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_write_then_read),
        TEST(test_never_over_what_was_read),
        TEST(names_stay_in_their_folder),
        TEST(test_empty_file),
        TEST(test_all_or_none),
        TEST(test_what_cannot_be_read),
        TEST(test_where_nothing_can_be_written),
        TEST(test_full_disk_leaves_nothing),
        TEST(test_make_dir),
        TEST(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
