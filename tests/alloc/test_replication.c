/* test_replication.c - which volumes are stored with copies: the model's choice
 * against all combinations, and plans that carry copies through a concat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/search/replication.h"
#include "nets.h"

static const HwSpec *machine(Arena *arena, Diag *diag) {
    return net_machine(arena, diag, "xdnn-v3-96", NULL);
}

/* A chain whose widths need copies, with a pool beside a convolution, and a
 * concat that a 3x3 convolution reads. */
static const Graph *forked(Arena *arena, Diag *diag, uint32_t c) {
    Graph *g = graph_new(arena, "forked");
    TensorId in = net_input(g, 3, 32, 32);
    TensorId a = net_conv(g, diag, "a", in, c, 3, 1, 1, 1);
    TensorId pool = net_pool(g, diag, "pool", a, 2, 2, 0);
    TensorId b = net_conv(g, diag, "b", a, 16, 3, 2, 1, 1);
    TensorId p = net_conv(g, diag, "p", pool, 48, 1, 1, 1, 0);
    TensorId both[] = {p, b};
    TensorId cat = net_concat(g, diag, "cat", 2, both);
    TensorId d = net_conv(g, diag, "d", cat, 40, 3, 1, 1, 1);
    net_conv(g, diag, "e", d, 200, 3, 1, 1, 1);
    return g;
}

static Repl *without(Arena *arena, const HwSpec *spec, const Graph *g) {
    Repl *stored = ARENA_ARRAY(arena, Repl, g->tensor.n);
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++)
        stored[t.i] = hwspec_repl_none(spec, plan_volume(g, t).c);
    return stored;
}

static uint64_t least_of_all(CopyModel *m, Repl *stored) {
    const CopyVolume *v;
    uint32_t n = copies_volumes(m, &v);
    uint64_t least = UINT64_MAX, count = 1;
    for (uint32_t i = 0; i < n; i++)
        count *= v[i].n;
    assert_true(n >= 4 && count < 1000);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t rest = k;
        for (uint32_t i = 0; i < n; i++) {
            stored[v[i].tensor.i] = v[i].way[rest % v[i].n];
            rest /= v[i].n;
        }
        uint64_t cycles = copies_cycles(m, stored);
        least = cycles < least ? cycles : least;
    }
    return least;
}

static void test_least_of_all_combinations(void **state) {
    (void)state;
    static const uint32_t width[] = {8, 20, 33, 64, 100, 128};
    for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
        Arena *arena = arena_new("test");
        Diag *diag = diag_new(arena);
        const HwSpec *spec = machine(arena, diag);
        const Graph *g = forked(arena, diag, width[i]);
        CopyModel *m =
            copies_model(arena, sched_run(arena, diag, spec, g, "file"));
        Repl *stored = without(arena, spec, g);
        uint64_t least = least_of_all(m, without(arena, spec, g));
        assert_true(copies_cycles(m, stored) > least);
        copies_choose(m, stored);
        assert_true(copies_cycles(m, stored) == least);
        arena_free(arena);
    }
}

/* 16 channels: 25 taps take 9 rows of the array from three copies, 5 from six;
 * 96 take as many rows either way, and make no flight. */
static void test_more_copies_on_the_fly(void **state) {
    (void)state;
    static const uint32_t width[] = {16, 96};
    for (size_t i = 0; i < 2; i++) {
        Arena *arena = arena_new("test");
        Diag *diag = diag_new(arena);
        Graph *g = graph_new(arena, "narrow");
        TensorId in = net_input(g, 96, 56, 56);
        TensorId a = net_conv(g, diag, "a", in, width[i], 1, 1, 1, 0);
        net_conv(g, diag, "b", a, 96, 5, 1, 1, 2);
        const HwSpec *spec = machine(arena, diag);
        CopyModel *m =
            copies_model(arena, sched_run(arena, diag, spec, g, "file"));
        Repl *stored = without(arena, spec, g);
        copies_choose(m, stored);
        const CopyFly *fly;
        uint32_t n = copies_flies(m, stored, &fly);
        assert_int_equal(n, width[i] == 16);
        if (n)
            assert_string_equal(graph_node(g, fly[0].node)->name, "b");
        arena_free(arena);
    }
}

static TensorId called(const Graph *g, const char *name) {
    for (TensorId t = {0}; t.i < g->tensor.n; t.i++)
        if (!strcmp(graph_tensor(g, t)->name, name))
            return t;
    return NO_TENSOR;
}

static void test_parts_take_their_concats_copies(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = machine(arena, diag);
    const Graph *g = forked(arena, diag, 64);
    const Schedule *schedule = sched_run(arena, diag, spec, g, "file");
    CopyModel *m = copies_model(arena, schedule);
    TensorId cat = called(g, "cat");
    assert_string_equal(copies_refusal(m, called(g, "b")),
                        "it is part of a concat, which decides");
    assert_null(copies_refusal(m, cat));
    Repl *chosen = ARENA_ARRAY(arena, Repl, g->tensor.n);
    chosen[cat.i] = (Repl){0, 2, 3, 32};
    PlanOptions options = {
        .planner = "auto", .replication = true, .chosen = chosen};
    bool does_not_fit;
    const Plan *plan =
        plan_make(arena, diag, schedule, &options, &does_not_fit);
    assert_non_null(plan);
    uint32_t parts = 0;
    for (uint32_t i = 0; i < plan->n_placements; i++) {
        const Placement *p = &plan->placement[i];
        if (p->tensor.i != called(g, "b").i || p->memory != 0)
            continue;
        parts++;
        assert_int_equal(p->part_c, 48);
        assert_int_equal(p->whole.repl.sections, 2);
        assert_int_equal(p->bytes, 2 * 96 * 16 * 16);
    }
    assert_int_equal(parts, 1);
    arena_free(arena);
}

/* A part that somebody reads by itself lies where there are no copies. */
static void test_part_that_is_read(void **state) {
    (void)state;
    static const struct {
        uint32_t channels;
        const char *why;
    } part[] = {{96, NULL}, {112, "a part of it is read by itself"}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        Arena *arena = arena_new("test");
        Diag *diag = diag_new(arena);
        const HwSpec *spec = machine(arena, diag);
        Graph *g = graph_new(arena, "read");
        TensorId in = net_input(g, 3, 8, 8);
        TensorId a = net_conv(g, diag, "a", in, part[i].channels, 3, 1, 1, 1);
        TensorId b = net_conv(g, diag, "b", a, 32, 3, 1, 1, 1);
        TensorId both[] = {a, b};
        TensorId cat = net_concat(g, diag, "cat", 2, both);
        net_conv(g, diag, "c", cat, 32, 3, 1, 1, 1);
        const Schedule *schedule = sched_run(arena, diag, spec, g, "file");
        const char *why = copies_refusal(copies_model(arena, schedule), cat);
        assert_int_equal(!why, !part[i].why);
        if (why)
            assert_string_equal(why, part[i].why);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_of_all_combinations),
        cmocka_unit_test(test_more_copies_on_the_fly),
        cmocka_unit_test(test_parts_take_their_concats_copies),
        cmocka_unit_test(test_part_that_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
