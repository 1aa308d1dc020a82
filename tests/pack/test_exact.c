/* The search for the least height: against brute force on small problems,
 * perfect packings by construction, the hard problems of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/vec.h"
#include "pack/exact/exact.h"
#include "pack/pack.h"
#include "tests/effort.h"

#include <stdio.h>
#include <string.h>

static const uint64_t NO_LIMIT = UINT64_C(1) << 50;

static PackProblem problem_of(const Buffer *buf, uint32_t n, uint64_t size) {
    PackProblem problem = {.n_pools = 1, .n_bufs = n, .buf = buf};
    problem.pool[0] = (Pool){.size = size, .align = 1};
    return problem;
}

static PackResult run(Arena *arena, const PackProblem *problem) {
    PackResult result;
    const char *used;
    pack_memory(arena, problem, "exact", false, &result, &used);
    return result;
}

/* ---- small problems, every order ---- */

/* Numbers from a stream, one after the other. */
typedef struct Draw {
    uint64_t seed, n;
} Draw;

static uint32_t draw(Draw *d, uint32_t below) {
    return (uint32_t)(rng_bits(d->seed, d->n++) % below);
}

/* From one aligned offset to the next. */
static uint32_t step_of(const PackProblem *p, uint32_t b) {
    uint64_t step = p->pool[0].align, own = p->buf[b].align;
    while (own && step % own)
        step += p->pool[0].align;
    return (uint32_t)step;
}

/* Up to two gaps, with a step of life before, between and behind them. */
static void draw_gaps(Arena *arena, Draw *d, Buffer *buf) {
    Steps *gap = ARENA_ARRAY(arena, Steps, 2);
    buf->gap = gap;
    for (uint32_t at = buf->first + 1; at + 1 < buf->end && buf->n_gaps < 2;) {
        uint32_t first = at + draw(d, buf->end - 1 - at);
        uint32_t end = first + 1 + draw(d, buf->end - 1 - first);
        gap[buf->n_gaps++] = (Steps){first, end};
        at = end + 1;
    }
}

/* Some with alignment, some with gaps, some with a pin or two. */
static PackProblem small_problem(Arena *arena, uint64_t seed) {
    Draw d = {seed, 0};
    uint32_t n = 4 + draw(&d, 3);
    Buffer *buf = ARENA_ARRAY(arena, Buffer, n);
    PackProblem problem = problem_of(buf, n, NO_LIMIT);
    problem.seed = seed;
    problem.pool[0].align = draw(&d, 3) ? 1 : 1 + draw(&d, 4);
    bool pins = !draw(&d, 3), own = !draw(&d, 4);
    bool gaps = seed % 2;
    for (uint32_t b = 0; b < n; b++) {
        uint32_t first = draw(&d, 7);
        buf[b] = (Buffer){.first = first,
                          .end = first + 1 + draw(&d, 5),
                          .bytes = {1 + draw(&d, 12)},
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
        if (own && !draw(&d, 2))
            buf[b].align = 1 + draw(&d, 5);
        if (gaps && draw(&d, 3))
            draw_gaps(arena, &d, &buf[b]);
        if (pins && !draw(&d, 3)) {
            buf[b].pin_pool = 0;
            buf[b].pin_offset = step_of(&problem, b) * draw(&d, 8);
        }
    }
    return problem;
}

static bool clear_of_others(const PackProblem *p, const int64_t *at, uint32_t b,
                            int64_t offset) {
    for (uint32_t i = 0; i < p->n_bufs; i++)
        if (i != b && at[i] >= 0 && bufs_conflict(&p->buf[i], &p->buf[b]) &&
            at[i] < offset + (int64_t)p->buf[b].bytes[0] &&
            offset < at[i] + (int64_t)p->buf[i].bytes[0])
            return false;
    return true;
}

/* Each order, each buffer as low as it goes: one of them is a best one. */
static int64_t brute_force(const PackProblem *p, int64_t *at, int64_t height) {
    int64_t best = INT64_MAX;
    bool complete = true;
    for (uint32_t b = 0; b < p->n_bufs; b++) {
        if (at[b] >= 0)
            continue;
        complete = false;
        int64_t offset = 0;
        while (!clear_of_others(p, at, b, offset))
            offset += step_of(p, b);
        int64_t end = offset + (int64_t)p->buf[b].bytes[0];
        at[b] = offset;
        int64_t found = brute_force(p, at, end > height ? end : height);
        at[b] = -1;
        best = found < best ? found : best;
    }
    return complete ? height : best;
}

/* -1: the pins collide. */
static int64_t least_height(const PackProblem *p) {
    int64_t at[8], height = 0;
    for (uint32_t b = 0; b < p->n_bufs; b++) {
        const Buffer *buf = &p->buf[b];
        at[b] = buf->pin_pool < 0 ? -1 : (int64_t)buf->pin_offset;
        int64_t end = at[b] + (int64_t)buf->bytes[0];
        height = at[b] >= 0 && end > height ? end : height;
    }
    for (uint32_t b = 0; b < p->n_bufs; b++)
        if (at[b] >= 0 && !clear_of_others(p, at, b, at[b]))
            return -1;
    return brute_force(p, at, height);
}

static void test_against_brute_force(void **state) {
    (void)state;
    uint32_t above_peak = 0, raised = 0;
    for (uint64_t seed = 0; seed < cases_of(3000, 600); seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = small_problem(arena, seed);
        int64_t least = least_height(&problem);
        PackResult result = run(arena, &problem);
        if (least < 0) {
            assert_int_equal(result.status, PACK_INFEASIBLE);
            arena_free(arena);
            continue;
        }
        assert_int_equal(result.status, PACK_FITS);
        assert_int_equal(result.height[0], least);
        assert_int_equal(result.bound, least);
        assert_true(result.proved);
        raised += result.nodes > 0;
        above_peak += pack_live_peak(arena, &problem, NULL) < (uint64_t)least;
        problem.any_fit = true;
        problem.pool[0].size = (uint64_t)least;
        assert_int_equal(run(arena, &problem).status, PACK_FITS);
        problem.pool[0].size = (uint64_t)least - 1;
        assert_int_equal(run(arena, &problem).status, PACK_INFEASIBLE);
        arena_free(arena);
    }
    assert_true(above_peak > cases_of(300, 60) &&
                raised > cases_of(100, 20)); /* not all are easy */
}

/* ---- alignments ---- */

/* Lives of up to `life` of so many steps, sizes up to `most`, alignments up to
 * 8. */
static PackProblem aligned_problem(Arena *arena, uint64_t seed, uint32_t n,
                                   uint32_t steps, uint32_t life,
                                   uint32_t most) {
    Draw d = {seed, 0};
    Buffer *buf = ARENA_ARRAY(arena, Buffer, n);
    for (uint32_t b = 0; b < n; b++) {
        uint32_t first = draw(&d, steps);
        buf[b] = (Buffer){.first = first,
                          .end = first + 1 + draw(&d, life),
                          .bytes = {1 + draw(&d, most)},
                          .align = 1 + draw(&d, 8),
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
        if (seed % 3 == 0 && !draw(&d, 3))
            draw_gaps(arena, &d, &buf[b]);
    }
    return problem_of(buf, n, NO_LIMIT);
}

static void test_alignments(void **state) {
    (void)state;
    uint32_t wasted = 0;
    for (uint64_t seed = 0; seed < cases_of(1500, 300); seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem =
            aligned_problem(arena, seed, 4 + (uint32_t)(seed % 3), 3, 4, 12);
        PackResult result = run(arena, &problem);
        assert_int_equal(result.height[0], least_height(&problem));
        assert_true(result.proved);
        wasted += pack_live_peak(arena, &problem, NULL) < result.height[0];
        arena_free(arena);
    }
    assert_true(wasted > cases_of(700, 140));
}

/* What alignments waste among ten alive at once is seen without a search for
 * the whole. */
static void test_bounds_of_alignments(void **state) {
    (void)state;
    uint32_t proved = 0;
    for (uint64_t seed = 0; seed < cases_of(30, 6); seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = aligned_problem(arena, seed, 30, 10, 5, 20);
        problem.budget = 40000;
        PackResult result = run(arena, &problem);
        assert_true(result.height[0] >= result.bound);
        proved += result.proved;
        arena_free(arena);
    }
    assert_in_range(proved, cases_of(20, 4), 30);
}

/* ---- why nothing fits ---- */

/* The set does not fit, by brute force, and without any one of it the rest
 * does. */
static void check_conflict(const PackProblem *p, const PackConflict *conflict) {
    Buffer buf[8];
    PackProblem part = *p;
    part.buf = buf;
    for (uint32_t left_out = 0; left_out <= conflict->n; left_out++) {
        part.n_bufs = 0;
        for (uint32_t k = 0; k < conflict->n; k++)
            if (k != left_out)
                buf[part.n_bufs++] = p->buf[conflict->buf[k]];
        int64_t least = least_height(&part);
        bool fits = least >= 0 && (uint64_t)least <= p->pool[0].size;
        assert_int_equal(fits, left_out < conflict->n);
    }
}

static void test_irreducible(void **state) {
    (void)state;
    uint32_t small = 0;
    for (uint64_t seed = 0; seed < cases_of(400, 100); seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = small_problem(arena, seed);
        PackConflict conflict;
        int64_t least = least_height(&problem);
        if (least >= 0) {
            problem.pool[0].size = (uint64_t)least;
            pack_irreducible(arena, &problem, &conflict);
            assert_false(conflict.infeasible);
            problem.pool[0].size = (uint64_t)least - 1;
        }
        pack_irreducible(arena, &problem, &conflict);
        assert_true(conflict.infeasible && conflict.irreducible);
        check_conflict(&problem, &conflict);
        small += conflict.n < problem.n_bufs;
        arena_free(arena);
    }
    assert_true(small > cases_of(100, 25));
}

/* ---- perfect packings ---- */

typedef struct Rect {
    uint32_t first, end;
    uint64_t low, high;
} Rect;

/* Cuts a rectangle of `steps` x `bytes` into n by seeded cuts, the largest of
 * three drawn ones each time; their order is drawn, too. */
static PackProblem cut_rectangle(Arena *arena, uint64_t seed, uint32_t n,
                                 uint32_t steps, uint64_t bytes) {
    Draw d = {seed, 0};
    Rect *rect = ARENA_ARRAY(arena, Rect, n);
    rect[0] = (Rect){0, steps, 0, bytes};
    for (uint32_t k = 1; k < n;) {
        Rect *r = &rect[draw(&d, k)];
        for (int i = 0; i < 2; i++) {
            Rect *other = &rect[draw(&d, k)];
            if ((other->high - other->low) * (other->end - other->first) >
                (r->high - r->low) * (r->end - r->first))
                r = other;
        }
        Rect *piece = &rect[k];
        *piece = *r;
        if (draw(&d, 2) && r->end - r->first > 1)
            r->end = piece->first =
                r->first + 1 + draw(&d, r->end - r->first - 1);
        else if (r->high - r->low > 1)
            r->high = piece->low =
                r->low + 1 + draw(&d, (uint32_t)(r->high - r->low - 1));
        else
            continue;
        k++;
    }
    Buffer *buf = ARENA_ARRAY(arena, Buffer, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = draw(&d, i + 1);
        buf[i] = buf[to];
        buf[to] = (Buffer){.first = rect[i].first,
                           .end = rect[i].end,
                           .bytes = {rect[i].high - rect[i].low},
                           .pin_pool = -1,
                           .hint = PACK_NO_HINT};
    }
    return problem_of(buf, n, NO_LIMIT);
}

static void test_perfect_packings(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        Arena *arena = arena_new("seed");
        uint32_t n = 20 + 10 * (uint32_t)seed;
        PackProblem problem = cut_rectangle(arena, seed, n, 300, 5000);
        PackResult result = run(arena, &problem);
        assert_int_equal(result.status, PACK_FITS);
        assert_int_equal(result.height[0], 5000);
        assert_true(result.proved);
        arena_free(arena);
    }
}

/* Hundreds of pieces: found along time. */
static void test_large_packings(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = cut_rectangle(arena, seed, 900, 1 << 16, 1 << 24);
        PackResult result = run(arena, &problem);
        assert_int_equal(result.height[0], 1 << 24);
        assert_true(result.proved);
        assert_true(result.nodes < 20000);
        arena_free(arena);
    }
}

/* A packing with pieces taken out: welded items find the bound. */
static void test_thinned_packings(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = cut_rectangle(arena, seed, 300, 1000, 1 << 20);
        problem.n_bufs -= problem.n_bufs / 10;
        PackResult result = run(arena, &problem);
        assert_true(result.height[0] <= 1 << 20);
        assert_true(result.proved);
        arena_free(arena);
    }
}

static PackResult run_named(Arena *arena, const PackProblem *problem,
                            const char *name) {
    PackResult result;
    const char *used;
    pack_memory(arena, problem, name, true, &result, &used);
    assert_int_equal(result.status, PACK_FITS);
    return result;
}

/* Two buffers live while the bottom is pinned up to 700, one after the other;
 * both live while it is not. Each copy takes steps of its own. */
static PackProblem beside_pins(Arena *arena, uint32_t copies, uint64_t size) {
    static const Buffer one[] = {
        {.first = 0, .end = 2, .bytes = {300}, .pin_pool = -1},
        {.first = 1, .end = 3, .bytes = {300}, .pin_pool = -1},
        {.first = 0, .end = 1, .bytes = {700}},
        {.first = 1, .end = 2, .bytes = {100}},
        {.first = 2, .end = 3, .bytes = {700}},
    };
    enum { N = sizeof one / sizeof *one };
    Buffer *buf = ARENA_ARRAY(arena, Buffer, copies * N);
    for (uint32_t i = 0; i < copies * N; i++) {
        buf[i] = one[i % N];
        buf[i].first += i / N * 3;
        buf[i].end += i / N * 3;
        buf[i].hint = PACK_NO_HINT;
    }
    return problem_of(buf, copies * N, size);
}

/* Never more than 1000 bytes are alive; above the pins there is not room for
 * both. No planner and no search is needed to see it. */
static void test_pins_refute(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    PackProblem problem = beside_pins(arena, 100, 1299);
    PackResult result;
    const char *used;
    pack_memory(arena, &problem, "auto", false, &result, &used);
    assert_int_equal(result.status, PACK_INFEASIBLE);
    assert_string_equal(used, "greedy_by_size");
    assert_int_equal(result.bound, 1300);
    assert_int_equal(result.nodes, 0);
    problem.pool[0].size = 1300;
    assert_int_equal(run_named(arena, &problem, "auto").height[0], 1300);
    arena_free(arena);
}

/* Small problems with pins: what the search places is not refuted. */
static void test_pins_do_not_refute(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < cases_of(2000, 400); seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = small_problem(arena, seed);
        PackResult result = run(arena, &problem);
        uint64_t bound = 0;
        problem.pool[0].size = result.height[0];
        if (result.status == PACK_FITS)
            assert_false(exact_refuted(&problem, &bound));
        arena_free(arena);
    }
}

/* A draw costs steps by its items, however soon it fails. */
static void test_draws_cost_steps(void **state) {
    (void)state;
    enum { STEPS = 10000, COPIES = 100 };
    Arena *arena = arena_new("test");
    PackProblem problem = beside_pins(arena, COPIES, 1299);
    Strip *strip = strip_new(arena, &problem);
    Portfolio *crew = crew_new(arena, strip, 1);
    int64_t *low = ARENA_ARRAY(arena, int64_t, strip->n);
    assert_int_equal(crew_within(crew, 1299, STEPS, low), NONE);
    assert_in_range(crew_cost(crew).draws, 1, 2 * STEPS / (5 * COPIES / 4));
    arena_free(arena);
}

static void test_climb_and_portfolio(void **state) {
    (void)state;
    uint32_t lower = 0;
    for (uint64_t seed = 100; seed < cases_of(110, 105); seed++) {
        Arena *arena = arena_new("seed");
        PackProblem problem = cut_rectangle(arena, seed, 60, 300, 5000);
        uint64_t greedy =
            run_named(arena, &problem, "greedy_by_size").height[0];
        uint64_t climbed = run_named(arena, &problem, "hill_climb").height[0];
        assert_true(climbed <= greedy);
        lower += climbed < greedy;
        assert_true(run_named(arena, &problem, "portfolio").proved);
        arena_free(arena);
    }
    assert_true(lower > cases_of(5, 2));
}

/* A hundred thousand buffers, a thousand alive at a time. */
static void test_many(void **state) {
    (void)state;
    const uint32_t n = cases_of(100000, 10000);
    Arena *arena = arena_new("test");
    Buffer *buf = ARENA_ARRAY(arena, Buffer, n);
    Draw d = {3, 0};
    for (uint32_t b = 0; b < n; b++) {
        uint32_t first = draw(&d, n);
        buf[b] = (Buffer){.first = first,
                          .end = first + 1 + draw(&d, 2000),
                          .bytes = {64 * (1 + draw(&d, 1000))},
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
    }
    PackProblem problem = problem_of(buf, n, NO_LIMIT);
    problem.pool[0].align = 128;
    PackResult result = run_named(arena, &problem, "large");
    assert_true(result.height[0] < result.bound * 108 / 100);
    arena_free(arena);
}

/* Rounded up to the alignment, all steps are full, and the sweep stacks them
 * so that the highest leaves the pool. */
static void test_full_but_for_padding(void **state) {
    (void)state;
    static const uint32_t row[][3] = {
        {2, 8, 6}, {4, 6, 64}, {6, 10, 3}, {8, 10, 50}, {2, 4, 3}};
    Arena *arena = arena_new("test");
    enum { N = sizeof row / sizeof *row };
    Buffer buf[N];
    for (uint32_t b = 0; b < N; b++)
        buf[b] = (Buffer){.first = row[b][0],
                          .end = row[b][1],
                          .bytes = {row[b][2]},
                          .pin_pool = -1,
                          .hint = PACK_NO_HINT};
    for (uint64_t size = 147; size < 200; size++) {
        PackProblem problem = problem_of(buf, N, size);
        problem.pool[0].align = 97;
        problem.budget = 30000;
        PackResult result = run_named(arena, &problem, "portfolio");
        assert_int_equal(result.height[0], 147);
    }
    arena_free(arena);
}

/* The same steps, the same answer. */
static void test_deterministic(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    PackProblem problem = cut_rectangle(arena, 77, 150, 200, 1 << 20);
    problem.budget = 3000;
    PackResult one = run(arena, &problem), two = run(arena, &problem);
    assert_int_equal(one.nodes, two.nodes);
    assert_int_equal(one.height[0], two.height[0]);
    assert_memory_equal(one.offset, two.offset,
                        problem.n_bufs * sizeof *one.offset);
    arena_free(arena);
}

/* ---- problems of others ---- */

/* Lines "id,lower,upper,size" under a heading. */
static PackProblem read_csv(Arena *arena, const char *path, uint64_t size) {
    Bytes file;
    VEC(Buffer) bufs = {0};
    assert_true(file_read(arena, diag_new(arena), path, &file));
    const char *text = arena_strndup(arena, (const char *)file.at, file.len);
    while ((text = strchr(text, '\n')) && text[1]) {
        Buffer buf = {.pin_pool = -1, .hint = PACK_NO_HINT};
        unsigned long long bytes;
        text++;
        assert_int_equal(
            sscanf(text, "%*[^,],%u,%u,%llu", &buf.first, &buf.end, &bytes), 3);
        buf.bytes[0] = bytes;
        vec_push(arena, &bufs, buf);
    }
    return problem_of(bufs.at, bufs.n, size);
}

static void test_hard_problems(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t least;
    } row[] = {{"A.1048576", 1048576}, {"C.1048576", 1039360},
               {"E.1048576", 1048576}, {"H.1048576", 1048576},
               {"input.12", 12},       {"idealloc_resnet50", 1515472556}};
    if (!file_exists("../shared/data/placement"))
        skip();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *arena = arena_new("row");
        const char *path =
            arena_printf(arena, "../shared/data/placement/%s.csv", row[i].name);
        PackProblem problem = read_csv(arena, path, NO_LIMIT);
        PackResult result = run(arena, &problem);
        assert_int_equal(result.height[0], row[i].least);
        assert_true(result.proved);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_brute_force),
        cmocka_unit_test(test_alignments),
        cmocka_unit_test(test_bounds_of_alignments),
        cmocka_unit_test(test_irreducible),
        cmocka_unit_test(test_perfect_packings),
        cmocka_unit_test(test_large_packings),
        cmocka_unit_test(test_thinned_packings),
        cmocka_unit_test(test_pins_refute),
        cmocka_unit_test(test_pins_do_not_refute),
        cmocka_unit_test(test_draws_cost_steps),
        cmocka_unit_test(test_climb_and_portfolio),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_full_but_for_padding),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_hard_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
