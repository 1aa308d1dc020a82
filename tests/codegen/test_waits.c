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
                            .style = -1};
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
}

static void transfers_run_beside_all(void **state) {
    (void)state;
    Case c;
    begin(&c);
    assert_int_equal(add(&c, ACTION_LOAD, -1, 0, 1), ALL);
    assert_int_equal(runs(&c, ELTWISE, 2, 3), UNIT(ELTWISE));
    assert_int_equal(runs(&c, ELTWISE, 1, 4), UNIT(MOVES) | UNIT(ELTWISE));
    assert_int_equal(runs(&c, ELTWISE, 1, 5), UNIT(ELTWISE));
    assert_int_equal(add(&c, ACTION_STORE, -1, 5, 0), ALL);
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

/* A byte in common is enough; in another memory it is another one. */
static void ends_and_memories_keep_apart(void **state) {
    (void)state;
    for (uint32_t by = 0; by < 3; by++) {
        Case c;
        begin(&c);
        c.place[2].offset = c.place[1].offset + BYTES - (by > 0);
        c.place[2].memory = by > 1;
        runs(&c, CONV, 0, 1);
        assert_int_equal(runs(&c, POOL, 2, 5),
                         UNIT(POOL) | (by == 1 ? UNIT(CONV) : 0));
        arena_free(c.arena);
    }
}

/* Channels of one volume lie apart, though their bytes interleave. */
static void parts_of_a_volume_are_apart(void **state) {
    (void)state;
    for (uint32_t by = 0; by < 2; by++) {
        Case c;
        begin(&c);
        for (uint32_t i = 1; i < 3; i++) {
            c.place[i] = c.place[1];
            c.place[i].whole.c = 8;
            c.place[i].n_c = 4;
        }
        c.place[2].part_c = 4 - by;
        runs(&c, CONV, 0, 1);
        assert_int_equal(runs(&c, POOL, 3, 2),
                         UNIT(POOL) | (by ? UNIT(CONV) : 0));
        arena_free(c.arena);
    }
}

/* What was planned for less memory waits as it would there. */
static void places_in_less_memory_count(void **state) {
    (void)state;
    Case c;
    begin(&c);
    c.place[2].later = BYTES;
    runs(&c, CONV, 0, 1);
    assert_int_equal(runs(&c, POOL, 2, 5), UNIT(CONV) | UNIT(POOL));
    arena_free(c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_run_side_by_side),
        cmocka_unit_test(transfers_run_beside_all),
        cmocka_unit_test(bytes_make_engines_wait),
        cmocka_unit_test(ends_and_memories_keep_apart),
        cmocka_unit_test(parts_of_a_volume_are_apart),
        cmocka_unit_test(places_in_less_memory_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
