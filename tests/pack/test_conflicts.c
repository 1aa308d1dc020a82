/* Lists of conflicts and lives on streams: the lives made of them say the same
 * of each pair, and the least heights are those of the graph itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "pack/conflicts.h"
#include "pack/pack.h"

#include <string.h>

enum { MOST = 40, STREAMS = 3 };

typedef struct Draw {
    uint64_t seed, n;
} Draw;

static uint32_t draw(Draw *d, uint32_t below) {
    return (uint32_t)(rng_bits(d->seed, d->n++) % below);
}

typedef struct Case {
    uint32_t n;
    bool conflict[MOST][MOST];
    Buffer buf[MOST];
    Pair pair[MOST * MOST];
    size_t n_pairs;
    int64_t clock[MOST * 2 * STREAMS];
} Case;

static void draw_buffers(Case *c, Draw *d, uint32_t n) {
    memset(c, 0, sizeof *c);
    c->n = n;
    for (uint32_t b = 0; b < n; b++)
        c->buf[b] = (Buffer){
            .bytes = {1 + draw(d, 30)}, .hint = PACK_NO_HINT, .pin_pool = -1};
}

/* Some pairs, some of them twice; some buffers have lives, too. */
static void draw_pairs(Case *c, Draw *d) {
    uint32_t dense = 1 + draw(d, 9);
    for (uint32_t b = 0; b < c->n; b++) {
        if (!draw(d, 3)) {
            c->buf[b].first = draw(d, 10);
            c->buf[b].end = c->buf[b].first + draw(d, 6);
        }
        for (uint32_t a = 0; a < b; a++) {
            c->conflict[a][b] = bufs_conflict(&c->buf[a], &c->buf[b]);
            if (draw(d, 10) >= dense)
                continue;
            c->conflict[a][b] = true;
            c->pair[c->n_pairs++] = draw(d, 2) ? (Pair){a, b} : (Pair){b, a};
        }
    }
}

static void draw_clocks(Case *c, Draw *d) {
    for (uint32_t b = 0; b < c->n; b++)
        for (uint32_t s = 0; s < STREAMS; s++) {
            int64_t *born = &c->clock[2 * STREAMS * b + s];
            born[0] = draw(d, 9);
            born[STREAMS] = born[0] + draw(d, 5);
        }
    for (uint32_t b = 0; b < c->n; b++)
        for (uint32_t a = 0; a < b; a++) {
            const int64_t *x = &c->clock[2 * STREAMS * a];
            const int64_t *y = &c->clock[2 * STREAMS * b];
            bool before = true, behind = true, none = true, never = true;
            for (uint32_t s = 0; s < STREAMS; s++) {
                before &= x[STREAMS + s] <= y[s];
                behind &= y[STREAMS + s] <= x[s];
                none &= x[STREAMS + s] == x[s];
                never &= y[STREAMS + s] == y[s];
            }
            c->conflict[a][b] = !before && !behind && !none && !never;
        }
}

static void make_lives(Arena *arena, Case *c, bool streams) {
    Clocks clocks = {c->clock, STREAMS};
    assert_true(conflicts_to_lives(arena, (Pairs){c->pair, c->n_pairs},
                                   streams ? &clocks : NULL, c->buf, c->n));
    for (uint32_t b = 0; b < c->n; b++) {
        const Buffer *x = &c->buf[b];
        for (uint32_t k = 0; k < x->n_gaps; k++)
            assert_true(x->gap[k].first < x->gap[k].end &&
                        x->gap[k].first >= (k ? x->gap[k - 1].end : x->first) &&
                        x->gap[k].end <= x->end);
        for (uint32_t a = 0; a < b; a++)
            assert_int_equal(bufs_conflict(&c->buf[a], x), c->conflict[a][b]);
    }
}

/* Every order, each buffer as low as it goes: one of them is the least. */
static uint64_t least(const Case *c, uint64_t *at, uint32_t placed) {
    uint64_t best = UINT64_MAX, top = 0;
    if (placed == (1u << c->n) - 1) {
        for (uint32_t b = 0; b < c->n; b++)
            if (at[b] + c->buf[b].bytes[0] > top)
                top = at[b] + c->buf[b].bytes[0];
        return top;
    }
    for (uint32_t b = 0; b < c->n; b++) {
        if (placed >> b & 1)
            continue;
        bool moved = true;
        for (at[b] = 0; moved;) {
            moved = false;
            for (uint32_t a = 0; a < c->n; a++) {
                uint64_t end = at[a] + c->buf[a].bytes[0];
                bool meets = a < b ? c->conflict[a][b] : c->conflict[b][a];
                if (placed >> a & 1 && meets && at[b] < end &&
                    at[a] < at[b] + c->buf[b].bytes[0]) {
                    at[b] = end;
                    moved = true;
                }
            }
        }
        uint64_t found = least(c, at, placed | 1u << b);
        best = found < best ? found : best;
    }
    return best;
}

static uint64_t search(const Case *c) {
    Arena *arena = arena_new("test");
    PackProblem problem = {.n_pools = 1, .n_bufs = c->n, .buf = c->buf};
    problem.pool[0] = (Pool){.size = UINT64_C(1) << 40, .align = 1};
    PackResult result;
    const char *used;
    pack_memory(arena, &problem, "portfolio", true, &result, &used);
    assert_int_equal(result.status, PACK_FITS);
    assert_true(result.proved);
    uint64_t height = result.height[0];
    arena_free(arena);
    return height;
}

static void test_lives_say_the_same(void **state) {
    (void)state;
    static Case c;
    for (uint64_t seed = 0; seed < 300; seed++) {
        Arena *arena = arena_new("test");
        Draw d = {seed, 0};
        draw_buffers(&c, &d, 1 + draw(&d, MOST));
        if (seed % 3)
            draw_pairs(&c, &d);
        else
            draw_clocks(&c, &d);
        make_lives(arena, &c, seed % 3 == 0);
        arena_free(arena);
    }
}

static void test_least_heights(void **state) {
    (void)state;
    static Case c;
    for (uint64_t seed = 0; seed < 150; seed++) {
        Arena *arena = arena_new("test");
        uint64_t at[MOST];
        Draw d = {seed + 1000, 0};
        draw_buffers(&c, &d, 2 + draw(&d, 6));
        if (seed % 3)
            draw_pairs(&c, &d);
        else
            draw_clocks(&c, &d);
        make_lives(arena, &c, seed % 3 == 0);
        assert_int_equal(search(&c), least(&c, at, 0));
        arena_free(arena);
    }
}

/* Lives on one line, as pairs: no gap, as many steps as births. */
static void test_lines_stay_lines(void **state) {
    (void)state;
    static Case c;
    for (uint64_t seed = 0; seed < 50; seed++) {
        Arena *arena = arena_new("test");
        Draw d = {seed + 2000, 0};
        draw_buffers(&c, &d, MOST);
        uint32_t first = 0;
        uint32_t born[MOST], dies[MOST];
        for (uint32_t b = 0; b < MOST; b++) {
            born[b] = first += draw(&d, 3);
            dies[b] = first + 1 + draw(&d, 20);
        }
        for (uint32_t b = 0; b < MOST; b++)
            for (uint32_t a = 0; a < b; a++)
                if ((c.conflict[a][b] = born[b] < dies[a]))
                    c.pair[c.n_pairs++] = (Pair){a, b};
        make_lives(arena, &c, false);
        for (uint32_t b = 0; b < MOST; b++)
            assert_int_equal(c.buf[b].n_gaps, 0);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives_say_the_same),
        cmocka_unit_test(test_least_heights),
        cmocka_unit_test(test_lines_stay_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
