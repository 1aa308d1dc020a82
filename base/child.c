/* child.c - fork, limits, a pipe; see child.h.
 *
 * Invariants: each child is waited for, by its own id; none outlives its limit
 * of processor time, even where the parent is gone. The limit on time by the
 * clock is only for a child that sleeps: a busy machine must not change what is
 * read.
 */
#include "base/child.h"

#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Wall-clock seconds for each second of a processor. */
enum { PATIENCE = 60 };

struct Child {
    ChildLimits limits;
    pid_t pid; /* -1: none was started */
    int from, error;
    bool late; /* it was killed since it did not end */
    time_t until;
};

static time_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---- in the child ---- */

/* Bytes of address space in use, which sanitizers reserve terabytes of. */
static uint64_t mapped_now(void) {
    char text[32] = "";
    uint64_t pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) > 0)
        for (const char *at = text; *at >= '0' && *at <= '9'; at++)
            pages = pages * 10 + (uint64_t)(*at - '0');
    close(fd);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Lowers a limit; one that is lower stays. */
static void lower(int what, uint64_t soft, uint64_t hard) {
    struct rlimit limit;
    if (getrlimit(what, &limit))
        return;
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > hard)
        limit.rlim_max = (rlim_t)hard;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > soft)
        limit.rlim_cur = (rlim_t)soft;
    setrlimit(what, &limit);
}

/* A signal must end the child silently, whatever the parent does about it. */
static void reset_signals(void) {
    static const int ends[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                               SIGABRT, SIGXCPU, SIGPIPE};
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    sigemptyset(&plain.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &plain, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void limit_self(const ChildLimits *limits) {
    uint64_t mapped = mapped_now();
    reset_signals();
    lower(RLIMIT_CORE, 0, 0);
    lower(RLIMIT_CPU, limits->seconds, (uint64_t)limits->seconds + 1);
    if (mapped)
        lower(RLIMIT_AS, mapped + limits->bytes, mapped + limits->bytes);
}

void child_write(int to, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len) {
        ssize_t wrote = write(to, at, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            _exit(1);
        at += wrote;
        len -= (size_t)wrote;
    }
}

/* ---- in the parent ---- */

/* Forks; the two ends of the pipe go to no other program. */
static pid_t start(Child *child, int *to) {
    int end[2];
    if (pipe(end))
        return -1;
    fcntl(end[0], F_SETFD, FD_CLOEXEC);
    fcntl(end[1], F_SETFD, FD_CLOEXEC);
    pid_t pid = fork();
    if (pid < 0) {
        int error = errno;
        close(end[0]);
        close(end[1]);
        errno = error;
        return pid;
    }
    close(end[pid == 0 ? 0 : 1]);
    child->from = end[0];
    *to = end[1];
    return pid;
}

Child *child_start(Arena *arena, const ChildLimits *limits, ChildWork *work,
                   void *context) {
    Child *child = ARENA_NEW(arena, Child);
    int to = -1;
    child->limits = *limits;
    child->until = now() + (time_t)limits->seconds * PATIENCE;
    child->pid = start(child, &to);
    child->error = errno;
    if (child->pid)
        return child;
    guard_forget();
    limit_self(limits);
    work(to, context);
    _exit(0);
}

/* Waits until there is something to read; false after killing it. */
static bool wait_for(Child *child) {
    for (;;) {
        time_t left = child->until - now();
        struct pollfd one = {.fd = child->from, .events = POLLIN};
        int n = left > 0 ? poll(&one, 1, 1000) : -1;
        if (n > 0)
            return true;
        if (left <= 0 || (n < 0 && errno != EINTR)) {
            child->late = true;
            kill(child->pid, SIGKILL);
            return false;
        }
    }
}

/* Up to `len` bytes; 0 where no more will come. */
static size_t take(Child *child, void *at, size_t len) {
    while (child->pid > 0 && !child->late && wait_for(child)) {
        ssize_t got = read(child->from, at, len);
        if (got >= 0)
            return (size_t)got;
        if (errno != EINTR)
            return 0;
    }
    return 0;
}

bool child_read(Child *child, void *at, size_t len) {
    uint8_t *to = at;
    while (len) {
        size_t got = take(child, to, len);
        if (!got)
            return false;
        to += got;
        len -= got;
    }
    return true;
}

/* Its status; 0 where a program that ignores SIGCHLD lets none be known. */
static int reap(const Child *child) {
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0)
        if (errno != EINTR)
            return 0;
    return status;
}

static bool judge(const Child *child, int status, Diag *diag, Loc loc) {
    const ChildLimits *limits = &child->limits;
    int sign = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (child->late)
        diag_error(diag, loc,
                   "reading it with %s ran out of %u s of waiting time",
                   limits->who, limits->seconds * PATIENCE);
    else if (sign == SIGXCPU)
        diag_error(diag, loc,
                   "reading it with %s ran out of %u s of processor time",
                   limits->who, limits->seconds);
    else if (sign)
        diag_error(diag, loc, "reading it makes %s crash (signal %d)",
                   limits->who, sign);
    else if (status)
        diag_error(diag, loc, "reading it makes %s end early", limits->who);
    return !status && !child->late;
}

bool child_end(Child *child, Diag *diag, Loc loc) {
    char rest[4096];
    if (child->pid < 0) {
        diag_error(diag, loc, "no process could be started for %s: %s",
                   child->limits.who, strerror(child->error));
        return false;
    }
    while (take(child, rest, sizeof rest))
        continue;
    close(child->from);
    return judge(child, reap(child), diag, loc);
}
