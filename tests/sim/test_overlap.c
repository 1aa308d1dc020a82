/* test_overlap.c - whether two operands share a cell, against a set of all
 * cells of the one. */
#include "tests/sim/harness.h"

#include "sim/run.h"

enum { CELLS = 4096, MOST = 6, ROUNDS = 20000 };

typedef struct Rng {
    uint64_t i;
} Rng;

static uint32_t rng_below(Rng *rng, uint32_t n) {
    return (uint32_t)(rng_bits(22, rng->i++) % n);
}

static uint64_t *ladder(Arena *arena, uint32_t n, uint64_t step) {
    uint64_t *at = ARENA_ARRAY(arena, uint64_t, n);
    for (uint32_t i = 0; i < n; i++)
        at[i] = i * step;
    return at;
}

/* Rows from some row on, as in a ring. */
static void turn(Rng *rng, uint64_t *at, uint32_t n) {
    for (uint32_t first = rng_below(rng, n); first; first--) {
        uint64_t head = at[0];
        memmove(at, at + 1, (n - 1) * sizeof *at);
        at[n - 1] = head;
    }
}

/* Planes, pixels, or chunks of channels, with room between rows or none. */
static Place place_of(Rng *rng, Arena *arena) {
    Place p = {.c = 1 + rng_below(rng, MOST),
               .h = 1 + rng_below(rng, MOST),
               .w = 1 + rng_below(rng, MOST),
               .start = rng_below(rng, 100)};
    uint64_t pitch = p.w + rng_below(rng, 2) * rng_below(rng, 4);
    uint64_t plane = p.h * pitch + rng_below(rng, 2) * rng_below(rng, 9);
    uint64_t pixel = p.c + rng_below(rng, 2) * rng_below(rng, 4);
    bool planar = rng_below(rng, 2);
    uint64_t *h_at = ladder(arena, p.h, planar ? pitch : p.w * pixel);
    uint32_t *copies = ARENA_ARRAY(arena, uint32_t, p.c);
    p.c_at = ladder(arena, p.c, planar ? plane : 1);
    p.w_at = ladder(arena, p.w, planar ? 1 : pixel);
    turn(rng, h_at, p.h);
    p.h_at = h_at;
    p.copy_step = CELLS / 8;
    for (uint32_t c = 0; c < p.c; c++)
        copies[c] = rng_below(rng, 4) ? 1 : 2;
    p.copies = copies;
    return p;
}

/* Counts each cell; how many of them `set` has. */
static uint32_t visit(Place *p, uint8_t *set, bool marks) {
    uint32_t met = 0;
    p->first = UINT64_MAX;
    for (uint32_t c = 0; c < p->c; c++)
        for (uint32_t k = 0; k < p->copies[c]; k++)
            for (uint32_t h = 0; h < p->h; h++)
                for (uint32_t w = 0; w < p->w; w++) {
                    uint64_t cell = p->start + p->c_at[c] + k * p->copy_step +
                                    p->h_at[h] + place_columns(p, h)[w];
                    assert_true(cell < CELLS);
                    p->first = cell < p->first ? cell : p->first;
                    p->end = cell >= p->end ? cell + 1 : p->end;
                    met += set[cell];
                    set[cell] |= marks;
                }
    return met;
}

static void test_overlap(void **state) {
    (void)state;
    uint32_t seen[2] = {0};
    Rng rng = {0};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        Arena *arena = arena_new("test");
        Run run = {.work = arena};
        uint8_t *set = ARENA_ARRAY(arena, uint8_t, CELLS);
        Place a = place_of(&rng, arena), b = place_of(&rng, arena);
        if (rng_below(&rng, 2)) { /* other rows of the same volume */
            b = a;
            b.h_at += rng_below(&rng, a.h);
            b.h -= (uint32_t)(b.h_at - a.h_at);
            a.h = 1 + rng_below(&rng, a.h);
            a.c = 1 + rng_below(&rng, a.c);
        }
        visit(&a, set, true);
        bool meet = visit(&b, set, false) > 0;
        assert_int_equal(place_overlap(&run, &a, &b), meet);
        assert_int_equal(place_overlap(&run, &b, &a), meet);
        seen[meet]++;
        arena_free(arena);
    }
    assert_true(seen[0] > ROUNDS / 8 && seen[1] > ROUNDS / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
