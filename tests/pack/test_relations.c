/* Relations, gaps, costs and partitions: every planner and the judge against
 * rules that are written once more here, the search against brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "pack/pack.h"
#include "tests/effort.h"

#include <string.h>

enum { MAX_BUFS = 6, STEPS = 8 };

typedef struct Case {
    PackProblem p;
    Buffer buf[MAX_BUFS];
    Steps gap[MAX_BUFS][2];
    Relation relation[MAX_BUFS];
} Case;

/* ---- the rules, step by step and byte by byte ---- */

static bool alive(const Buffer *b, uint32_t step) {
    if (step < b->first || step >= b->end)
        return false;
    for (uint32_t i = 0; i < b->n_gaps; i++)
        if (b->gap[i].first <= step && step < b->gap[i].end)
            return false;
    return true;
}

static bool both_alive(const Buffer *a, const Buffer *b) {
    for (uint32_t step = 0; step < STEPS; step++)
        if (alive(a, step) && alive(b, step))
            return true;
    return false;
}

/* Does `a` lie in `b`, by however many steps? */
static bool inside(const PackProblem *p, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < p->n_relations; i++)
        if (p->relation[i].kind == REL_INSIDE && p->relation[i].a == a)
            return p->relation[i].b == b || inside(p, p->relation[i].b, b);
    return false;
}

static bool may_overlap(const PackProblem *p, const PackResult *r, uint32_t a,
                        uint32_t b) {
    bool may = inside(p, a, b) || inside(p, b, a);
    for (uint32_t i = 0; i < p->n_relations; i++) {
        const Relation *x = &p->relation[i];
        int64_t at_a = (int64_t)r->offset[x->a];
        int64_t at_b = (int64_t)r->offset[x->b];
        if (!(x->a == a && x->b == b) && !(x->a == b && x->b == a))
            continue;
        may |= x->kind == REL_SHARE;
        may |= x->kind == REL_SAME && at_a == at_b;
        may |= x->kind == REL_BELOW && at_a + x->bytes <= at_b;
    }
    return may;
}

static bool common_byte(const PackProblem *p, const PackResult *r, uint32_t a,
                        uint32_t b, uint64_t grain) {
    uint32_t pool = (uint32_t)r->pool[a];
    for (uint64_t x = 0; x < p->buf[a].bytes[pool]; x++)
        for (uint64_t y = 0; y < p->buf[b].bytes[pool]; y++)
            if ((r->offset[a] + x) / grain == (r->offset[b] + y) / grain)
                return true;
    return false;
}

static bool pair_fine(const PackProblem *p, const PackResult *r, uint32_t a,
                      uint32_t b) {
    for (uint32_t i = 0; i < p->n_relations; i++) {
        const Relation *x = &p->relation[i];
        if (!(x->a == a && x->b == b) && !(x->a == b && x->b == a))
            continue;
        uint32_t pool = (uint32_t)r->pool[a];
        uint64_t part = p->pool[pool].partition;
        if (x->kind == REL_INSIDE &&
            (r->pool[a] != r->pool[b] ||
             r->offset[x->a] != r->offset[x->b] + (uint64_t)x->bytes ||
             (uint64_t)x->bytes + p->buf[x->a].bytes[pool] >
                 p->buf[x->b].bytes[pool]))
            return false;
        if (x->kind == REL_APART && r->pool[a] == r->pool[b] &&
            (!part || common_byte(p, r, a, b, part)))
            return false;
    }
    return r->pool[a] != r->pool[b] || !both_alive(&p->buf[a], &p->buf[b]) ||
           !common_byte(p, r, a, b, 1) || may_overlap(p, r, a, b);
}

static bool alone_fine(const PackProblem *p, const PackResult *r, uint32_t b) {
    const Buffer *buf = &p->buf[b];
    uint32_t pool = (uint32_t)r->pool[b];
    bool member = false;
    for (uint32_t i = 0; i < p->n_relations; i++)
        member |= p->relation[i].kind == REL_INSIDE && p->relation[i].a == b;
    return buf->bytes[pool] &&
           r->offset[b] + buf->bytes[pool] <= p->pool[pool].size &&
           (member || r->offset[b] % p->pool[pool].align == 0) &&
           (buf->align < 2 || r->offset[b] % buf->align == 0) &&
           (buf->pin_pool < 0 ||
            (buf->pin_pool == r->pool[b] && buf->pin_offset == r->offset[b]));
}

/* ---- brute force ---- */

typedef struct Best {
    bool any;
    uint64_t cost, height;
    uint32_t hints;
} Best;

static Best worth(const PackProblem *p, const PackResult *r) {
    Best w = {.any = true};
    uint64_t high[PACK_MAX_POOLS] = {0};
    for (uint32_t b = 0; b < p->n_bufs; b++) {
        uint32_t pool = (uint32_t)r->pool[b];
        uint64_t end = r->offset[b] + p->buf[b].bytes[pool];
        bool member = false;
        for (uint32_t i = 0; i < p->n_relations; i++)
            member |=
                p->relation[i].kind == REL_INSIDE && p->relation[i].a == b;
        w.cost += member ? 0 : p->buf[b].bytes[pool] * p->pool[pool].cost;
        w.hints += r->offset[b] == p->buf[b].hint;
        high[pool] = end > high[pool] ? end : high[pool];
    }
    for (uint32_t k = 0; k < p->n_pools; k++)
        w.height += high[k];
    return w;
}

static bool better(const Best *a, const Best *b) {
    if (!b->any || a->cost != b->cost)
        return !b->any || a->cost < b->cost;
    return a->height != b->height ? a->height < b->height : a->hints > b->hints;
}

static void brute_force(const PackProblem *p, PackResult *r, uint32_t b,
                        Best *best) {
    if (b == p->n_bufs) {
        Best w = worth(p, r);
        if (better(&w, best))
            *best = w;
        return;
    }
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        for (uint64_t at = 0; at < p->pool[pool].size; at++) {
            r->pool[b] = (int32_t)pool;
            r->offset[b] = at;
            bool fine = alone_fine(p, r, b);
            for (uint32_t i = 0; i < b && fine; i++)
                fine = pair_fine(p, r, i, b);
            if (fine)
                brute_force(p, r, b + 1, best);
        }
}

/* ---- random problems ---- */

typedef struct Dice {
    uint64_t seed, n;
} Dice;

static uint32_t draw(Dice *d, uint32_t below) {
    return (uint32_t)(rng_bits(d->seed, d->n++) % below);
}

static void draw_buffer(Dice *d, Case *c, uint32_t b) {
    Buffer *buf = &c->buf[b];
    uint32_t first = draw(d, STEPS - 1);
    *buf = (Buffer){.first = first, .pin_pool = -1, .hint = PACK_NO_HINT};
    buf->end = first + 1 + draw(d, STEPS - first);
    for (uint32_t k = 0; k < c->p.n_pools; k++)
        buf->bytes[k] = 1 + draw(d, 4);
    if (c->p.n_pools > 1 && draw(d, 8) == 0)
        buf->bytes[1] = 0;
    if (draw(d, 3) == 0) {
        uint32_t from = first + draw(d, buf->end - first);
        uint32_t to = from + draw(d, buf->end - from + 1);
        c->gap[b][0] = (Steps){from, to};
        from = to + draw(d, buf->end - to + 1);
        c->gap[b][1] = (Steps){from, from + draw(d, buf->end - from + 1)};
        buf->gap = c->gap[b];
        buf->n_gaps = 1 + draw(d, 2);
    }
    if (draw(d, 4) == 0)
        buf->hint = draw(d, 8);
    if (draw(d, 6) == 0)
        buf->align = 1 + draw(d, 3);
    if (draw(d, 12) == 0) {
        buf->pin_pool = 0;
        buf->pin_offset = draw(d, 6);
    }
}

static void draw_relation(Dice *d, Case *c) {
    Relation r = {.kind = (RelationKind)draw(d, N_RELATIONS)};
    r.a = draw(d, c->p.n_bufs);
    r.b = draw(d, c->p.n_bufs);
    bool twice = false; /* in two others, or in a circle */
    for (uint32_t i = 0; i < c->p.n_relations; i++)
        twice |= c->relation[i].kind == REL_INSIDE && c->relation[i].a == r.a;
    if (r.a == r.b || (r.kind == REL_INSIDE && (twice || r.a < r.b)))
        return;
    r.bytes = draw(d, 3);
    if (r.kind == REL_BELOW)
        r.bytes -= 1;
    c->relation[c->p.n_relations++] = r;
}

static void draw_case(uint64_t seed, Case *c) {
    Dice d = {seed, 0};
    *c = (Case){.p = {.n_pools = 1 + (seed % 4 == 3), .seed = seed}};
    c->p.n_bufs = c->p.n_pools > 1 ? 4 : 3 + draw(&d, 3);
    c->p.buf = c->buf;
    c->p.relation = c->relation;
    for (uint32_t k = 0; k < c->p.n_pools; k++)
        c->p.pool[k] = (Pool){.size = 5 + draw(&d, 6),
                              .align = 1 + draw(&d, 2),
                              .partition = draw(&d, 3) ? 2 + draw(&d, 3) : 0,
                              .cost = c->p.n_pools > 1 ? draw(&d, 3) : 0};
    for (uint32_t b = 0; b < c->p.n_bufs; b++)
        draw_buffer(&d, c, b);
    for (uint32_t n = draw(&d, MAX_BUFS); n; n--)
        draw_relation(&d, c);
}

static void check_planner(Arena *arena, const Case *c, const char *name,
                          const Best *best) {
    PackResult r;
    const char *used;
    pack_memory(arena, &c->p, name, true, &r, &used);
    bool complete = !strcmp(name, "exact") || !strcmp(name, "portfolio");
    if (complete)
        assert_int_equal(r.status, best->any ? PACK_FITS : PACK_INFEASIBLE);
    if (r.status != PACK_FITS) {
        assert_true(r.status == PACK_FAILS || !best->any);
        return;
    }
    for (uint32_t b = 0; b < c->p.n_bufs; b++) {
        assert_true(alone_fine(&c->p, &r, b));
        for (uint32_t i = 0; i < b; i++)
            assert_true(pair_fine(&c->p, &r, i, b));
    }
    Best w = worth(&c->p, &r);
    assert_int_equal(w.cost, r.cost);
    assert_int_equal(w.hints, r.hints);
    assert_true(best->any && !better(&w, best));
    assert_true(r.cost_bound <= best->cost);
    assert_true(best->height >= r.bound);
    if (r.proved || complete) {
        assert_int_equal(w.cost, best->cost);
        assert_int_equal(w.height, best->height);
    }
    if (complete) {
        assert_true(r.proved);
        assert_int_equal(w.hints, best->hints);
    }
}

static void test_planners(void **state) {
    (void)state;
    uint32_t possible = 0;
    const uint32_t seeds = cases_of(3000, 400);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        Arena *arena = arena_new("seed");
        Case c;
        draw_case(seed, &c);
        PackResult r = {.pool = ARENA_ARRAY(arena, int32_t, MAX_BUFS),
                        .offset = ARENA_ARRAY(arena, uint64_t, MAX_BUFS)};
        Best best = {0};
        brute_force(&c.p, &r, 0, &best);
        possible += best.any;
        for (uint32_t i = 0; i < n_planners; i++)
            check_planner(arena, &c, planners[i].name, &best);
        arena_free(arena);
    }
    assert_in_range(possible, seeds / 4, seeds);
}

/* Random placements, right and wrong: the judge says what the rules say. */
static void test_judge(void **state) {
    (void)state;
    uint32_t right = 0;
    enum { SEEDS = 20000 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Arena *arena = arena_new("seed");
        Case c;
        draw_case(seed, &c);
        PackResult r = {.pool = ARENA_ARRAY(arena, int32_t, MAX_BUFS),
                        .offset = ARENA_ARRAY(arena, uint64_t, MAX_BUFS)};
        Dice d = {seed, 1000};
        bool fine = true;
        for (uint32_t b = 0; b < c.p.n_bufs; b++) {
            r.pool[b] = (int32_t)draw(&d, c.p.n_pools);
            r.offset[b] = draw(&d, 8);
            fine &= alone_fine(&c.p, &r, b);
            for (uint32_t i = 0; i < b && fine; i++)
                fine = pair_fine(&c.p, &r, i, b);
        }
        const char *wrong = pack_verify(arena, &c.p, &r);
        assert_int_equal(fine, !wrong);
        right += fine;
        arena_free(arena);
    }
    assert_in_range(right, SEEDS / 200, SEEDS);
}

/* Buffers inside others inside others, where their relations put them, or one
 * byte further. */
static void draw_nested(Dice *d, Case *c, PackResult *r) {
    *c = (Case){.p = {.n_pools = 1, .n_bufs = MAX_BUFS}};
    c->p.pool[0] = (Pool){.size = 14, .align = 1};
    c->p.buf = c->buf;
    c->p.relation = c->relation;
    for (uint32_t b = 0; b < MAX_BUFS; b++) {
        uint32_t first = draw(d, 3), whole = b;
        if (b && draw(d, 9))
            whole = draw(d, 4) ? b - 1 : draw(d, b);
        uint64_t room = c->buf[whole].bytes[0];
        uint32_t less = draw(d, 3), at = whole < b ? draw(d, less + 1) : 0;
        c->buf[b] = (Buffer){.first = first,
                             .end = first + 1 + draw(d, STEPS - first),
                             .bytes = {whole == b    ? 6
                                       : room > less ? room - less
                                                     : 1},
                             .pin_pool = -1,
                             .hint = PACK_NO_HINT};
        r->pool[b] = 0;
        r->offset[b] = 7 * draw(d, 2);
        if (whole == b)
            continue;
        c->relation[c->p.n_relations++] = (Relation){REL_INSIDE, b, whole, at};
        r->offset[b] = r->offset[whole] + at + (draw(d, 20) == 0);
    }
}

static void test_nested(void **state) {
    (void)state;
    uint32_t right = 0;
    enum { SEEDS = 40000 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        Arena *arena = arena_new("seed");
        Case c;
        Dice d = {seed, 0};
        PackResult r = {.pool = ARENA_ARRAY(arena, int32_t, MAX_BUFS),
                        .offset = ARENA_ARRAY(arena, uint64_t, MAX_BUFS)};
        draw_nested(&d, &c, &r);
        bool fine = true;
        for (uint32_t b = 0; b < MAX_BUFS && fine; b++) {
            fine = alone_fine(&c.p, &r, b);
            for (uint32_t i = 0; i < b && fine; i++)
                fine = pair_fine(&c.p, &r, i, b);
        }
        assert_int_equal(fine, !pack_verify(arena, &c.p, &r));
        right += fine;
        arena_free(arena);
    }
    assert_in_range(right, SEEDS / 50, SEEDS / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_planners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
