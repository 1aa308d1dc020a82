/* test_recorded.c - what each planner answers, as recorded.
 *
 * Random problems of every kind (pools, alignments, partitions, gaps, hints,
 * pins, relations; from six buffers to sixty) by every planner. A line of
 * recorded.txt is a problem: of each planner status, bytes and cost, a digest
 * of the places, and how many nodes a search took. Other answers may be as
 * good, but must be meant: `pack_test_recorded --write` makes the file anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/text.h"
#include "pack/pack.h"
#include "pack/packers.h"
#include "tests/recorded.h"

static const char *const recorded = "tests/pack/recorded.txt";

typedef struct Dice {
    uint64_t seed, at;
} Dice;

static uint32_t below(Dice *d, uint32_t n) {
    return (uint32_t)(rng_bits(d->seed, d->at++) % n);
}

static bool chance(Dice *d, uint32_t of_ten) {
    return below(d, 10) < of_ten;
}

/* What the problems of a kind have. Of no life: cuttings of a rectangle. */
typedef struct Kind {
    const char *name;
    uint32_t n_bufs, steps, life, most_bytes, n_pools;
    uint32_t gaps, hints, pins, relations, own_align; /* of ten */
    uint32_t align, part;
    uint32_t slack; /* per cent of the live peak that the pool has */
} Kind;

static const Kind kinds[] = {
    {"few", 6, 6, 4, 9, 1, 0, 0, 0, 0, 0, 1, 0, 120},
    {"tight", 14, 10, 5, 12, 1, 0, 0, 0, 0, 0, 1, 0, 100},
    {"chain", 20, 20, 3, 30, 1, 0, 0, 0, 0, 0, 1, 0, 105},
    {"long", 24, 12, 12, 50, 1, 0, 0, 0, 0, 0, 1, 0, 110},
    {"hard", 30, 16, 9, 1000, 1, 0, 0, 0, 0, 0, 1, 0, 101},
    {"harder", 40, 24, 12, 64, 1, 1, 0, 0, 0, 0, 1, 0, 102},
    {"loose", 150, 100, 10, 500, 1, 0, 0, 0, 0, 0, 16, 0, 125},
    {"many", 60, 40, 8, 100, 1, 0, 0, 0, 0, 0, 1, 0, 115},
    {"equal", 18, 9, 4, 2, 1, 0, 0, 0, 0, 0, 1, 0, 110},
    {"cuts", 16, 20, 0, 60, 1, 0, 0, 0, 0, 0, 1, 0, 100},
    {"cuttings", 40, 60, 0, 900, 1, 0, 0, 0, 0, 0, 1, 0, 100},
    {"aligned", 16, 10, 5, 40, 1, 0, 0, 0, 0, 3, 8, 0, 150},
    {"gaps", 16, 14, 9, 20, 1, 6, 0, 0, 0, 0, 1, 0, 115},
    {"hints", 12, 8, 4, 16, 1, 0, 5, 2, 0, 0, 2, 0, 150},
    {"pools", 14, 10, 5, 14, 3, 2, 2, 0, 0, 0, 2, 0, 70},
    {"related", 14, 8, 4, 16, 1, 0, 0, 0, 8, 0, 1, 0, 110},
    {"mixed", 12, 10, 4, 16, 2, 3, 2, 1, 5, 2, 2, 0, 140},
    {"parts", 8, 6, 3, 12, 1, 0, 0, 0, 5, 0, 1, 8, 250},
};
enum { KINDS = sizeof kinds / sizeof *kinds, EACH = 4, BUDGET = 1000 };

static Buffer draw_buffer(Arena *arena, Dice *d, const Kind *k) {
    uint32_t first = below(d, k->steps), life = 1 + below(d, k->life + 1);
    Buffer buf = {.first = first, .end = first + life, .hint = PACK_NO_HINT};
    for (uint32_t p = 0; p < k->n_pools; p++)
        buf.bytes[p] = p && chance(d, 3) ? 0 : 1 + below(d, k->most_bytes);
    if (life > 2 && chance(d, k->gaps)) {
        Steps *gap = ARENA_NEW(arena, Steps);
        gap->first = first + 1;
        gap->end = gap->first + 1 + below(d, life - 2);
        buf.n_gaps = 1;
        buf.gap = gap;
    }
    if (chance(d, k->hints))
        buf.hint = below(d, 30);
    buf.pin_pool = -1;
    if (chance(d, k->pins)) {
        buf.pin_pool = 0;
        buf.pin_offset = (uint64_t)k->align * below(d, 30);
    }
    buf.align = chance(d, k->own_align) ? 4u << below(d, 3) : 0;
    return buf;
}

static void draw_relations(Arena *arena, Dice *d, const Kind *k,
                           PackProblem *problem) {
    static const RelationKind plain[] = {REL_SHARE, REL_SAME, REL_BELOW};
    Relation *relation = ARENA_ARRAY(arena, Relation, k->n_bufs);
    for (uint32_t a = 0; a + 1 < k->n_bufs; a++) {
        if (!chance(d, k->relations))
            continue;
        RelationKind kind = k->part ? REL_APART : plain[below(d, 3)];
        uint32_t b = a + 1 + below(d, k->n_bufs - a - 1);
        int64_t ahead = kind == REL_BELOW ? (int64_t)below(d, 8) - 3 : 0;
        relation[problem->n_relations++] = (Relation){kind, a, b, ahead};
    }
    problem->relation = relation;
}

/* Cuts the steps and bytes of one buffer in two: with all together there is
 * no byte that is free at any step. */
static void cut(Dice *d, Buffer *a, Buffer *b) {
    *b = *a;
    if (a->end - a->first > 1 && (a->bytes[0] < 2 || chance(d, 5))) {
        b->first = a->end = a->first + 1 + below(d, a->end - a->first - 1);
    } else if (a->bytes[0] > 1) {
        a->bytes[0] = 1 + below(d, (uint32_t)a->bytes[0] - 1);
        b->bytes[0] -= a->bytes[0];
    }
}

static void draw_cuts(Dice *d, const Kind *k, Buffer *buf) {
    buf[0] = (Buffer){.end = k->steps, .bytes = {k->most_bytes}};
    buf[0].pin_pool = -1;
    buf[0].hint = PACK_NO_HINT;
    for (uint32_t n = 1; n < k->n_bufs; n++)
        cut(d, &buf[below(d, n)], &buf[n]);
}

static PackProblem draw(Arena *arena, const Kind *k, uint64_t seed) {
    Dice d = {rng_seed(k->name, seed), 0};
    Buffer *buf = ARENA_ARRAY(arena, Buffer, k->n_bufs);
    for (uint32_t i = 0; i < k->n_bufs; i++)
        buf[i] = draw_buffer(arena, &d, k);
    if (!k->life)
        draw_cuts(&d, k, buf);
    PackProblem problem = {.n_pools = k->n_pools,
                           .n_bufs = k->n_bufs,
                           .buf = buf,
                           .seed = seed,
                           .budget = BUDGET};
    uint32_t step;
    problem.pool[0].align = 1;
    uint64_t peak = pack_live_peak(arena, &problem, &step);
    for (uint32_t p = 0; p < k->n_pools; p++)
        problem.pool[p] = (Pool){.size = peak * k->slack / 100,
                                 .align = k->align,
                                 .partition = k->part,
                                 .cost = p};
    draw_relations(arena, &d, k, &problem);
    return problem;
}

/* "bottom fits 12+0 0 3 1 5f3a": places, cost, bound, nodes, digest. */
static void add_answer(Arena *arena, Text *line, const PackProblem *problem,
                       const Planner *planner) {
    static const char *const said[] = {"fits", "fails", "none"};
    PackResult r;
    const char *used;
    pack_memory(arena, problem, planner->name, false, &r, &used);
    text_addf(line, "; %s %s", planner->name, said[r.status]);
    if (r.status != PACK_FITS) {
        text_addf(line, " %u", r.failed);
        return;
    }
    assert_null(pack_verify(arena, problem, &r));
    uint64_t places = 1;
    for (uint32_t i = 0; i < problem->n_bufs; i++)
        places = rng_bits(places ^ r.offset[i], (uint64_t)(r.pool[i] + 1));
    for (uint32_t p = 0; p < problem->n_pools; p++)
        text_addf(line, "%s%llu", p ? "+" : " ",
                  (unsigned long long)r.height[p]);
    text_addf(line, " %llu/%llu %llu%s %u %llu %04x",
              (unsigned long long)r.cost, (unsigned long long)r.cost_bound,
              (unsigned long long)r.bound, r.proved ? "!" : "", r.hints,
              (unsigned long long)r.nodes, (unsigned)(places & 0xffff));
}

static const char *answers(Arena *arena) {
    Text text = text_new(arena);
    for (uint32_t k = 0; k < KINDS; k++)
        for (uint64_t seed = 0; seed < EACH; seed++) {
            PackProblem problem = draw(arena, &kinds[k], seed);
            text_addf(&text, "%s %llu", kinds[k].name,
                      (unsigned long long)seed);
            for (uint32_t i = 0; i < n_planners; i++)
                add_answer(arena, &text, &problem, &planners[i]);
            text_addf(&text, "\n");
        }
    return text_str(&text);
}

static void test_answers(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    recorded_compare(recorded, answers(arena));
    arena_free(arena);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--write"))
        return recorded_write(recorded, answers(arena_new("test")));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
