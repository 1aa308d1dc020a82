/* What moves, by volume; layers that run together; few rows for tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/moves.h"

#include <stdlib.h>
#include <string.h>

typedef struct Run {
    Arena *arena;
    const Listing *listing;
    const SimResult *sim;
} Run;

/* a and b in two stripes each, one after the other by turns; then c, whose
 * operand is loaded again. */
static const char stripes[] =
    "1 XNGather 0x0 0x0 56 20 1 0 1 1 0 9 0 1 # x\n"
    "2 XNMaxPool a#0 1 1 1 1 0 0 0x0 56 10 1 0x10000 56 10 0\n"
    "3 XNMaxPool b#0 1 1 1 1 0 0 0x10000 56 10 1 0x20000 56 10 0\n"
    "4 XNScatter 0x20000 0x8000 56 20 1 0 1 1 0 9 0 0 # y\n"
    "5 XNGather 0x0 0x0 56 20 1 0 1 1 10 19 0 1 # x\n"
    "6 XNMaxPool a#1 1 1 1 1 0 0 0x0 56 10 1 0x10000 56 10 0\n"
    "7 XNMaxPool b#1 1 1 1 1 0 0 0x10000 56 10 1 0x20000 56 10 0\n"
    "8 XNScatter 0x20000 0x8000 56 20 1 0 1 1 10 19 0 0 # y\n"
    "9 XNGather 0x0 0x8000 56 20 1 0 1 1 0 19 0 0 # y\n"
    "10 XNMaxPool c 2 2 2 2 0 0 0x0 56 20 1 0x30000 28 10 0\n";

static Run run_listing(const char *text, size_t len) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = hwspec_load(arena, diag, "xdnn-v2-28", 0, NULL);
    assert_non_null(spec);
    const Listing *listing =
        listing_parse(arena, diag, spec, "t.cmd", text, len);
    SimOptions options = {.memory_only = true};
    const SimResult *sim =
        listing ? sim_run(arena, diag, listing, 0, NULL, &options) : NULL;
    diag_print(diag, stderr);
    assert_non_null(sim);
    return (Run){arena, listing, sim};
}

static void moves_add_up_to_what_was_counted(void **state) {
    (void)state;
    Run r = run_listing(stripes, strlen(stripes));
    const VolumeMoves *v;
    uint32_t n = moves_by_volume(r.arena, r.listing, r.sim, &v);
    assert_int_equal(n, 2);
    assert_string_equal(v[0].name, "x");
    assert_int_equal(v[0].loads, 2);
    assert_int_equal(v[0].stores, 0);
    assert_int_equal(v[0].read, 56 * 20 * 2);
    assert_string_equal(v[1].name, "y");
    assert_int_equal(v[1].loads, 1);
    assert_int_equal(v[1].stores, 2);
    assert_int_equal(v[0].read + v[1].read, r.sim->backing_read);
    assert_int_equal(v[0].written + v[1].written, r.sim->backing_written);
    arena_free(r.arena);
}

static void layers_whose_tiles_alternate_run_together(void **state) {
    (void)state;
    Run r = run_listing(stripes, strlen(stripes));
    const LayersTogether *t;
    assert_int_equal(moves_together(r.arena, r.listing, r.sim, &t), 1);
    assert_string_equal(t->first, "a");
    assert_string_equal(t->last, "b");
    assert_int_equal(t->layers, 2);
    assert_int_equal(t->tiles, 2);
    assert_int_equal(t->from, r.sim->event[1].start);
    assert_int_equal(t->read, 56 * 10 * 2);    /* the second half of x, */
    assert_int_equal(t->written, 56 * 10 * 2); /* the first of y */
    arena_free(r.arena);
}

static void many_events_become_few_rows_of_the_same_sums(void **state) {
    (void)state;
    enum { TIMES = 600 };
    size_t len = strlen(stripes);
    char *text = malloc(TIMES * len + 1);
    assert_non_null(text);
    for (int i = 0; i < TIMES; i++)
        memcpy(text + (size_t)i * len, stripes, len);
    text[TIMES * len] = 0;
    Run r = run_listing(text, TIMES * len);
    const SimResult *rows = rows_of(r.arena, r.listing, r.sim);
    /* x and y loaded, y stored, a, b, c */
    assert_int_equal(rows->n_events, 6);
    uint64_t read = 0, cycles = 0, all = 0;
    for (uint32_t i = 0; i < rows->n_events; i++) {
        read += rows->event[i].read;
        cycles += rows->event[i].cycles;
    }
    for (uint32_t i = 0; i < r.sim->n_events; i++)
        all += r.sim->event[i].cycles;
    assert_int_equal(read, r.sim->backing_read);
    assert_int_equal(cycles, all);
    assert_ptr_equal(rows_of(r.arena, r.listing, rows), rows);
    free(text);
    arena_free(r.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_add_up_to_what_was_counted),
        cmocka_unit_test(layers_whose_tiles_alternate_run_together),
        cmocka_unit_test(many_events_become_few_rows_of_the_same_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
