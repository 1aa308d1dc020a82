/* Which engines an instruction waits for: by bytes, and by which engines can
 * be at work together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/waits.h"

enum { CONV, POOL, ELTWISE, MOVES, N_ENGINES = MOVES };
#define UNIT(engine) (UINT64_C(1) << (engine))
#define ALL (UNIT(MOVES + 1) - 1)

/* Volumes of 100 bytes side by side, each read or written as a whole. */
enum { N_PLACES = 6, BYTES = 100 };
static const uint32_t number[N_PLACES] = {0, 1, 2, 3, 4, 5};

typedef struct Case {
    Arena *arena;
    HwEngine engine[N_ENGINES];
    HwSpec spec;
    Schedule schedule;
    Placement place[N_PLACES];
    Action action[8];
    int32_t style[8]; /* of actions */
    Plan plan;
    Waits waits;
} Case;

/* The convolution can run beside the pool, nothing beside the third. */
static void begin(Case *c) {
    *c = (Case){.arena = arena_new("test")};
    c->engine[CONV].beside = 1u << POOL;
    c->engine[POOL].beside = 1u << CONV;
    c->spec = (HwSpec){.n_engines = N_ENGINES, .engine = c->engine};
    c->schedule.spec = &c->spec;
    for (uint32_t i = 0; i < N_PLACES; i++)
        c->place[i] = (Placement){.offset = (uint64_t)BYTES * i,
                                  .bytes = BYTES,
                                  .buffer = i,
                                  .n_c = 1,
                                  .whole = {1, 10, 10, {0}}};
    for (uint32_t i = 0; i < 8; i++)
        c->style[i] = -1;
    c->plan = (Plan){.schedule = &c->schedule,
                     .n_placements = N_PLACES,
                     .placement = c->place,
                     .action = c->action};
    c->waits = (Waits){.arena = c->arena, .plan = &c->plan};
}

static uint64_t add(Case *c, ActionKind kind, int32_t engine, uint32_t in,
                    uint32_t out) {
    uint32_t i = c->plan.n_actions++;
    c->action[i] = (Action){.kind = kind,
                            .legal = {.engine = engine},
                            .n_in = 1,
                            .in = &number[in],
                            .out = out,
                            .style = c->style[i]};
    return waits_before(&c->waits, i);
}

static uint64_t runs(Case *c, int32_t engine, uint32_t in, uint32_t out) {
    return add(c, ACTION_RUN, engine, in, out);
}

static void engines_run_side_by_side(void **state) {
    (void)state;
    Case c;
    begin(&c);
    assert_int_equal(runs(&c, CONV, 0, 1), UNIT(CONV));
    assert_int_equal(runs(&c, POOL, 2, 3), UNIT(POOL));
    assert_int_equal(runs(&c, ELTWISE, 4, 5),
                     UNIT(CONV) | UNIT(POOL) | UNIT(ELTWISE));
    assert_int_equal(runs(&c, CONV, 0, 1), UNIT(ELTWISE) | UNIT(CONV));
    arena_free(c.arena);
    begin(&c);
    assert_int_equal(runs(&c, POOL, 2, 3), UNIT(POOL));
    assert_int_equal(runs(&c, CONV, 0, 1), UNIT(CONV));
    arena_free(c.arena);
}

/* Tiles pass through active memory on ways of their own: who is beside them is
 * not asked. */
static void tiles_run_alone(void **state) {
    (void)state;
    for (uint32_t tiled = 0; tiled < 2; tiled++) {
        Case c;
        begin(&c);
        c.style[tiled] = 0;
        assert_int_equal(runs(&c, CONV, 0, 1), UNIT(CONV));
        assert_int_equal(runs(&c, POOL, 2, 3), UNIT(CONV) | UNIT(POOL));
        arena_free(c.arena);
    }
}

static void transfers_run_beside_all(void **state) {
    (void)state;
    Case c;
    begin(&c);
    assert_int_equal(add(&c, ACTION_LOAD, -1, 0, 1) & ALL, ALL);
    assert_int_equal(runs(&c, ELTWISE, 2, 3), UNIT(ELTWISE));
    assert_int_equal(runs(&c, ELTWISE, 1, 4), UNIT(MOVES) | UNIT(ELTWISE));
    assert_int_equal(runs(&c, ELTWISE, 1, 5), UNIT(ELTWISE));
    assert_int_equal(add(&c, ACTION_STORE, -1, 5, 0) & ALL, ALL);
    arena_free(c.arena);
}

/* Who reads what is written waits, and who writes what is read or written. */
static void bytes_make_engines_wait(void **state) {
    (void)state;
    static const struct {
        uint32_t in, out;
        bool waits;
    } rows[] = {{2, 3, false}, {0, 3, false}, {1, 3, true},
                {2, 0, true},  {2, 1, true},  {3, 2, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Case c;
        begin(&c);
        runs(&c, CONV, 0, 1);
        assert_int_equal(runs(&c, POOL, rows[i].in, rows[i].out),
                         UNIT(POOL) | (rows[i].waits ? UNIT(CONV) : 0));
        arena_free(c.arena);
    }
}

/* Does the pool, of bytes [at, at + n) of a memory, wait for who writes
 * 100..199 of memory 0? */
static bool meets(uint64_t at, uint64_t n, uint32_t memory) {
    Case c;
    begin(&c);
    c.place[2].offset = at;
    c.place[2].bytes = n;
    c.place[2].memory = memory;
    runs(&c, CONV, 0, 1);
    uint64_t units = runs(&c, POOL, 2, 5);
    arena_free(c.arena);
    assert_int_equal(units & ~UNIT(CONV), UNIT(POOL));
    return units & UNIT(CONV);
}

/* A byte in common is enough; in another memory it is another one. */
static void ends_and_memories_keep_apart(void **state) {
    (void)state;
    assert_true(meets(199, 30, 0));
    assert_false(meets(200, 30, 0));
    assert_true(meets(71, 30, 0));
    assert_false(meets(70, 30, 0));
    assert_true(meets(150, 1, 0));
    assert_true(meets(1, 400, 0));
    assert_false(meets(150, 1, 1));
    assert_false(meets(1000, 5, 0));
    assert_false(meets(5, 6, 0));
}

/* Channels of one volume lie apart, though their bytes interleave. */
static void parts_of_a_volume_are_apart(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t by = i / 2, lower = i % 2;
        Case c;
        begin(&c);
        c.place[1].whole.c = 8;
        c.place[1].n_c = 4;
        c.place[2] = c.place[1];
        c.place[1].part_c = lower ? 4 - by : 0;
        c.place[2].part_c = lower ? 0 : 4 - by;
        runs(&c, CONV, 0, 1);
        assert_int_equal(runs(&c, POOL, 3, 2),
                         UNIT(POOL) | (by ? UNIT(CONV) : 0));
        arena_free(c.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_run_side_by_side),
        cmocka_unit_test(tiles_run_alone),
        cmocka_unit_test(transfers_run_beside_all),
        cmocka_unit_test(bytes_make_engines_wait),
        cmocka_unit_test(ends_and_memories_keep_apart),
        cmocka_unit_test(parts_of_a_volume_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
