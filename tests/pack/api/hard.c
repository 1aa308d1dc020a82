/* hard.c - the library where it is hard: wrong arguments, no memory, a
 * deadline, cancelling, several threads. Linked with the library by
 * tests/library.py; prints nothing where all is well. */
#include <amphora/planner.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The allocator of this program, which fails after `left` calls. */
void *__libc_calloc(size_t n, size_t size);
void *__libc_memalign(size_t align, size_t size);
static _Thread_local long left = -1;

static int fails(void) {
    return left >= 0 && left-- == 0 ? (left = 0, 1) : 0;
}

void *calloc(size_t n, size_t size) {
    return fails() ? NULL : __libc_calloc(n, size);
}

void *aligned_alloc(size_t align, size_t size) {
    return fails() ? NULL : __libc_memalign(align, size);
}

enum { N = 300 };
static amphora_planner_buffer buffer[N];
static amphora_planner_problem problem;
static int wrong;

static void expect(int fine, const char *what) {
    wrong += !fine;
    if (!fine)
        printf("wrong: %s\n", what);
}

static void make(void) {
    uint32_t x = 1;
    memset(buffer, 0, sizeof buffer);
    for (int i = 0; i < N; i++) {
        x = x * 1664525 + 1013904223;
        buffer[i].first = x >> 26;
        buffer[i].end = buffer[i].first + 1 + (x >> 12) % 30;
        buffer[i].size = 1 + (x >> 8) % 5000;
    }
    memset(&problem, 0, sizeof problem);
    problem.struct_size = sizeof problem;
    problem.buffers = buffer;
    problem.n_buffers = N;
}

static int place(amphora_planner_options *o, amphora_planner_result *r) {
    uint64_t offset[N];
    if (o)
        o->struct_size = sizeof *o;
    return (int)amphora_planner_place(&problem, o, offset, r);
}

static void arguments(void) {
    amphora_planner_result r;
    amphora_planner_options o = {0};
    o.planner = "none such";
    expect(place(&o, &r) == AMPHORA_PLANNER_INVALID, "unknown planner");
    buffer[7].first = buffer[7].end + 1;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID, "first > end");
    expect(strstr(r.message, "buffer 7") != NULL, "which buffer");
    make();
    buffer[3].size = UINT64_MAX;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID, "size");
    make();
    problem.struct_size = 1;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID, "struct_size");
    make();
    problem.capacity = 10;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INFEASIBLE, "10 bytes");
    make();
    expect(amphora_planner_place(NULL, NULL, NULL, NULL) ==
               AMPHORA_PLANNER_INVALID,
           "NULL");
    amphora_planner_relation circle[2] = {{0, 1, 2, 0}, {0, 2, 1, 0}};
    problem.relations = circle;
    problem.n_relations = 2;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INFEASIBLE, "a circle");
    make();
    buffer[1].size = 0;
    problem.relations = circle + 1;
    problem.n_relations = 1;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INFEASIBLE, "inside nothing");
    make();
}

/* Conflicts in place of lives; callers that know of none. */
static void conflicts(void) {
    amphora_planner_result r;
    static amphora_planner_pair pair[N];
    static int64_t clock[4 * N];
    for (uint32_t i = 0; i < N; i++) {
        buffer[i].first = buffer[i].end = 0;
        pair[i] = (amphora_planner_pair){i, (i + 1) % N};
    }
    expect(place(NULL, &r) == AMPHORA_PLANNER_FITS && r.proved, "no conflicts");
    uint64_t largest = r.height;
    problem.conflicts = pair;
    problem.n_conflicts = N;
    expect(place(NULL, &r) == AMPHORA_PLANNER_FITS && r.height > largest,
           "a circle of conflicts");
    pair[5].b = N;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID &&
               strstr(r.message, "conflict 5"),
           "no such buffer");
    problem.n_conflicts = SIZE_MAX;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID, "too many pairs");
    problem.struct_size = offsetof(amphora_planner_problem, conflicts);
    expect(place(NULL, &r) == AMPHORA_PLANNER_FITS && r.height == largest,
           "what was compiled before there were conflicts");
    problem.struct_size = sizeof problem;
    problem.n_conflicts = 0;
    problem.n_streams = 2;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID, "no clocks");
    problem.clocks = clock;
    for (int i = 0; i < N; i++)
        clock[4 * i] = -i, clock[4 * i + 2] = 1 - i, clock[4 * i + 3] = i & 1;
    expect(place(NULL, &r) == AMPHORA_PLANNER_FITS, "streams");
    clock[4 * 9 + 3] = -1;
    expect(place(NULL, &r) == AMPHORA_PLANNER_INVALID &&
               strstr(r.message, "buffer 9"),
           "a clock that goes back");
    make();
}

static void no_memory(void) {
    int none = 0, some = 0;
    amphora_planner_options o = {0};
    amphora_planner_result r;
    o.steps = 2000;
    for (long k = 0; k < 60; k++) {
        left = k;
        int status = place(&o, &r);
        left = -1;
        none += status == AMPHORA_PLANNER_NO_MEMORY;
        some += status == AMPHORA_PLANNER_FITS && r.stopped;
        expect(status == AMPHORA_PLANNER_NO_MEMORY ||
                   status == AMPHORA_PLANNER_FITS,
               "status without memory");
    }
    expect(none > 3 && some > 3, "both outcomes without memory");
}

static int heard;
static int cancel(void *context, const amphora_planner_progress *p) {
    (void)context;
    heard += p->better;
    return p->offsets != NULL;
}

static void stops(void) {
    amphora_planner_options o = {0};
    amphora_planner_result r;
    o.steps = 1000000000;
    o.seconds = 0.2;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    expect(place(&o, &r) == AMPHORA_PLANNER_FITS, "deadline");
    clock_gettime(CLOCK_MONOTONIC, &b);
    expect(r.proved || r.stopped, "stopped by the deadline");
    expect((double)(b.tv_sec - a.tv_sec) < 3, "the deadline is kept");
    o.progress = cancel;
    expect(place(&o, &r) == AMPHORA_PLANNER_FITS && r.stopped && heard == 1,
           "cancelled at the first placement");
}

static void *in_thread(void *height) {
    amphora_planner_options o = {0};
    amphora_planner_result r;
    o.steps = 3000;
    if (place(&o, &r) == AMPHORA_PLANNER_FITS)
        *(uint64_t *)height = r.height;
    return NULL;
}

static void threads(void) {
    pthread_t thread[4];
    uint64_t height[4] = {0};
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, in_thread, &height[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        expect(height[i] && height[i] == height[0], "the same in each thread");
}

int main(void) {
    make();
    arguments();
    conflicts();
    no_memory();
    stops();
    threads();
    return wrong;
}
