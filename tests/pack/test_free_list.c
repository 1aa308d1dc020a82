/* Placers: the tree over time and the sorted lists offer the same gaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "pack/free_list.h"
#include "pack/interval_tree.h"

#include <stdlib.h>

static uint32_t draw(uint64_t seed, uint32_t i, uint32_t below) {
    return (uint32_t)(rng_bits(seed, i) % below);
}

/* Some are never alive, some have an alignment, a hint, or no second pool. */
static Buffer *draw_buffers(Arena *arena, uint64_t seed, uint32_t n) {
    Buffer *buf = ARENA_ARRAY(arena, Buffer, n);
    for (uint32_t i = 0; i < n; i++) {
        Buffer *b = &buf[i];
        b->first = draw(seed, i, n / 4);
        b->end = b->first + draw(seed + 1, i, i % 7 ? 50 : n);
        b->bytes[0] = 1 + draw(seed + 2, i, 300);
        b->bytes[1] = i % 3 ? 1 + draw(seed + 3, i, 200) : 0;
        b->align = i % 5 ? 1 : 12;
        b->hint = i % 4 ? PACK_NO_HINT : draw(seed + 4, i, 5000);
        b->pin_pool = -1;
    }
    buf[17].pin_pool = 0;
    buf[17].pin_offset = 777;
    return buf;
}

static uint64_t choose_last(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[gaps->n - 1].at;
}

/* Every third in its last gap, the others in their lowest. */
static void place(Placer *placer, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b = (uint32_t)((uint64_t)k * 7919 % n); /* a prime */
        if (k % 3)
            placer_put_lowest(placer, b);
        else
            placer_put(placer, b, choose_last, NULL);
    }
}

static PackResult empty_result(Arena *arena, uint32_t n) {
    return (PackResult){.pool = ARENA_ARRAY(arena, int32_t, n),
                        .offset = ARENA_ARRAY(arena, uint64_t, n),
                        .failed = PACK_NO_BUFFER};
}

/* The lists never retire anybody here, so they may be asked in any order. */
static void test_tree_places_as_lists_do(void **state) {
    enum { N = 1500 };
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed += 10) {
        Arena *arena = arena_new("test");
        PackProblem p = {.n_pools = 2, .n_bufs = N};
        p.pool[0] = (Pool){.size = seed ? 9000 : 100000, .align = 1};
        p.pool[1] = (Pool){.size = 4000, .align = 8};
        p.buf = draw_buffers(arena, seed, N);
        PackResult tree = empty_result(arena, N), list = empty_result(arena, N);
        place(placer_new(arena, &p, &tree), N);
        place(placer_new_by_birth(arena, &p, &list), N);
        assert_int_equal(tree.status, seed ? PACK_FAILS : PACK_FITS);
        assert_int_equal(tree.status, list.status);
        assert_int_equal(tree.failed, list.failed);
        for (uint32_t b = 0; b < N; b++) {
            assert_int_equal(tree.pool[b], list.pool[b]);
            assert_int_equal(tree.offset[b], list.offset[b]);
        }
        if (!seed)
            assert_null(pack_verify(arena, &p, &tree));
        arena_free(arena);
    }
}

static uint64_t choose_first(const void *context, const Gaps *gaps) {
    (void)context;
    return gaps->gap[0].at;
}

/* Each life of ten steps or more has a gap, or two. */
static void draw_gaps(Arena *arena, uint64_t seed, Buffer *buf, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t life = buf[i].end - buf[i].first, at = buf[i].first;
        if (life < 10)
            continue;
        uint32_t third = life / 3;
        Steps gap[] = {{at + 1, at + third}, {at + third + 2, at + 2 * third}};
        buf[i].n_gaps = 1 + draw(seed + 5, i, 2);
        buf[i].gap = ARENA_COPY(arena, Steps, gap, 2);
    }
}

/* With gaps in lives; the second placer is a copy of a fresh one. */
static void test_lowest_is_the_first_of_all_gaps(void **state) {
    enum { N = 60 };
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed += 10) {
        Arena *arena = arena_new("test");
        PackProblem p = {.n_pools = 2, .n_bufs = N};
        p.pool[0] = (Pool){.size = 2000 + 100 * seed, .align = 1};
        p.pool[1] = (Pool){.size = 1000, .align = 8};
        Buffer *buf = draw_buffers(arena, seed, N);
        draw_gaps(arena, seed, buf, N);
        p.buf = buf;
        PackResult listed = empty_result(arena, N), none = listed, found;
        none.pool = ARENA_ARRAY(arena, int32_t, N);
        none.offset = ARENA_ARRAY(arena, uint64_t, N);
        found = empty_result(arena, N);
        Placer *slow = placer_new(arena, &p, &listed);
        Placer *fresh = placer_new(arena, &p, &none);
        Placer *quick = placer_like(arena, fresh, &found);
        for (uint32_t k = 0; k < N; k++) {
            placer_put(slow, k * 7 % N, choose_first, NULL);
            placer_put_lowest(quick, k * 7 % N);
        }
        assert_int_equal(found.status, listed.status);
        for (uint32_t b = 0; b < N; b++) {
            assert_int_equal(found.pool[b], listed.pool[b]);
            assert_int_equal(found.offset[b], listed.offset[b]);
        }
        arena_free(arena);
    }
}

enum { SIZE = 256 };

/* Cells that anybody has taken in the life of the buffer. */
static void mark_taken(const PackProblem *p, const Run *run, uint32_t n,
                       const Buffer *buf, bool taken[SIZE + 1]) {
    for (uint32_t i = 0; i <= SIZE; i++)
        taken[i] = i == SIZE;
    for (uint32_t b = 0; b < n; b++)
        for (uint64_t c = run[b].at; c < run[b].end; c++)
            taken[c] |= bufs_conflict(&p->buf[b], buf);
}

/* All stretches that the tree offers, against cells; runs may overlap. */
static void expect_stretches(const Occupied *o, const PackProblem *p,
                             const Run *run, uint32_t n, uint32_t align) {
    const Buffer *buf = &p->buf[n];
    bool taken[SIZE + 1];
    Look look;
    mark_taken(p, run, n, buf, taken);
    occupied_look(o, buf, buf->bytes[0], align, SIZE, &look);
    for (uint32_t at = 0; at < SIZE;) {
        uint32_t end = at, fit = (at + align - 1) / align * align;
        while (!taken[end])
            end++;
        if (fit + buf->bytes[0] <= end) {
            Run free;
            assert_true(look_next(&look, &free));
            assert_int_equal(free.at, fit);
            assert_int_equal(free.end, end);
        }
        at = end + 1;
    }
    assert_false(look_next(&look, &(Run){0}));
}

static void test_stretches_against_cells(void **state) {
    enum { N = 60 };
    (void)state;
    for (uint64_t seed = 100; seed < 400; seed++) {
        Arena *arena = arena_new("test");
        PackProblem p = {.n_pools = 1, .n_bufs = N};
        Buffer *buf = ARENA_ARRAY(arena, Buffer, N);
        Run run[N];
        p.buf = buf;
        for (uint32_t b = 0; b < N; b++) {
            buf[b].first = draw(seed, 2 * b, 40);
            buf[b].end = buf[b].first + 1 + draw(seed, 2 * b + 1, 20);
            buf[b].bytes[0] = 1 + draw(~seed, 2 * b, 20);
            run[b].at = draw(~seed, 2 * b + 1, SIZE - 20);
            run[b].end = run[b].at + buf[b].bytes[0];
        }
        Occupied *o = occupied_new(arena, &p);
        for (uint32_t b = 0; b < N; b++) {
            expect_stretches(o, &p, run, b, 1 + b % 5);
            occupied_add(o, &buf[b], run[b]);
        }
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_places_as_lists_do),
        cmocka_unit_test(test_lowest_is_the_first_of_all_gaps),
        cmocka_unit_test(test_stretches_against_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
