/* Work in a process of its own: what comes back, every limit, every way to end,
 * and that no process is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/child.h"
#include "tests/base/printed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 1 << 16, MEGABYTE = 1 << 20 };

static Arena *arena;
static Diag *diag;

static int setup(void **state) {
    (void)state;
    arena = arena_new("test");
    diag = diag_new(arena);
    return 0;
}

/* Every child has been waited for. */
static int teardown(void **state) {
    (void)state;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    arena_free(arena);
    return 0;
}

/* Starts `work`; what child_end says of it. */
static bool ends(ChildWork *work, ChildLimits limits) {
    Child *child = child_start(arena, &limits, work, NULL);
    return child_end(child, diag, (Loc){"x.h5", 0, 0});
}

static const ChildLimits plain = {
    .who = "libx", .seconds = 5, .bytes = MEGABYTE};

static void refuse(ChildWork *work, ChildLimits limits, const char *want) {
    assert_false(ends(work, limits));
    assert_string_equal(printed(arena, diag), want);
}

/* More than a pipe holds, in pieces of other sizes than are read. */
static void count(int to, void *context) {
    for (uint32_t i = *(uint32_t *)context; i < MANY; i++)
        child_write(to, &i, sizeof i);
}

static void test_reads(void **state) {
    uint32_t first = 3, got[13];
    Child *child = child_start(arena, &plain, count, &first);
    (void)state;
    for (uint32_t i = first; i + 13 <= MANY; i += 13) {
        assert_true(child_read(child, got, sizeof got));
        assert_int_equal(got[0], i);
        assert_int_equal(got[12], i + 12);
    }
    assert_false(child_read(child, got, sizeof got));
    assert_true(child_end(child, diag, (Loc){0}));
    assert_int_equal(diag_errors(diag), 0);
}

static void test_dropped(void **state) {
    uint32_t first = 0, got;
    Child *child = child_start(arena, &plain, count, &first);
    (void)state;
    assert_true(child_read(child, &got, sizeof got));
    assert_true(child_end(child, diag, (Loc){0}));
}

static void loop(int to, void *context) {
    (void)to, (void)context;
    for (volatile int i = 0; i >= 0;)
        i = i ^ 1;
}

static void test_processor(void **state) {
    ChildLimits one = plain;
    (void)state;
    one.seconds = 1;
    refuse(loop, one,
           "x.h5: error: reading it with libx ran out of 1 s of processor "
           "time\n");
}

/* A process that sleeps takes no processor; none is allowed here, so that the
 * time by the clock is over at once. */
static void rest(int to, void *context) {
    (void)to, (void)context;
    for (;;)
        pause();
}

static void test_clock(void **state) {
    ChildLimits none = plain;
    (void)state;
    none.seconds = 0;
    refuse(rest, none,
           "x.h5: error: reading it with libx ran out of 0 s of waiting "
           "time\n");
}

/* Not through malloc: sanitizers have mapped what that gives. */
static void map_much(int to, void *context) {
    size_t size = 64 * (size_t)MEGABYTE;
    int fd = open("/dev/zero", O_RDONLY);
    void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    char answer = fd >= 0 && at == MAP_FAILED && errno == ENOMEM;
    (void)context;
    child_write(to, &answer, 1);
}

static void test_memory(void **state) {
    char answer = 0;
    Child *child = child_start(arena, &plain, map_much, NULL);
    (void)state;
    assert_true(child_read(child, &answer, 1));
    assert_true(child_end(child, diag, (Loc){0}));
    assert_true(answer);
}

static void crash(int to, void *context) {
    (void)to, (void)context;
    raise(SIGSEGV);
}

static void leave(int to, void *context) {
    (void)to, (void)context;
    _exit(3);
}

static void test_crash(void **state) {
    (void)state;
    refuse(crash, plain,
           "x.h5: error: reading it makes libx crash (signal 11)\n");
    refuse(leave, plain, "x.h5: error: reading it makes libx end early\n");
}

/* A program that ignores its children's ends learns nothing of them. */
static void test_ignored(void **state) {
    uint32_t first = MANY - 1, got;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    Child *child = child_start(arena, &plain, count, &first);
    (void)state;
    assert_true(child_read(child, &got, sizeof got));
    assert_int_equal(got, first);
    assert_true(child_end(child, diag, (Loc){0}));
    signal(SIGCHLD, before);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_reads), T(test_dropped), T(test_processor), T(test_clock),
        T(test_memory), T(test_crash), T(test_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
