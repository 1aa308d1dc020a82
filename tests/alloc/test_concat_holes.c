/* test_concat_holes.c - concats that lend their bytes: in memories of about the
 * peak that sched foretells, random networks are planned (plan_make judges each
 * plan), and where slots were needed the live peak is the one foretold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nets.h"
#include "tests/effort.h"

static const HwSpec *machine(Arena *arena, uint64_t bytes) {
    Diag *diag = diag_new(arena);
    HwSetting size = {"memories.am.size",
                      arena_printf(arena, "%llu", (unsigned long long)bytes)};
    const HwSpec *spec =
        hwspec_load(arena, diag, "tests/sched/data/packed-16.yaml", 1, &size);
    diag_print(diag, stderr);
    assert_non_null(spec);
    return spec;
}

static TensorId concat(Graph *g, Diag *diag, const TensorId *in, uint32_t n) {
    NodeId id = graph_add(g, OP_CONCAT, "cat", (Loc){0}, n, in);
    graph_node(g, id)->attr.axis.axis = 1;
    return net_node(g, diag, id, "cat");
}

/* Modules of branches that are joined, as in the Inception networks. */
static Graph *modules(Arena *arena, uint64_t seed) {
    Diag *diag = diag_new(arena);
    Graph *g = graph_new(arena, "net");
    TensorId at = net_input(g, 16, 8, 8);
    uint64_t dice = 0;
    uint32_t n_modules = 1 + (uint32_t)(rng_bits(seed, dice++) % 3);
    for (uint32_t m = 0; m < n_modules; m++) {
        TensorId end[4];
        uint32_t n = 2 + (uint32_t)(rng_bits(seed, dice++) % 3);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t length = 1 + (uint32_t)(rng_bits(seed, dice++) % 3);
            end[i] = at;
            for (uint32_t k = 0; k < length; k++) {
                uint32_t c = 3 + (uint32_t)(rng_bits(seed, dice++) % 60);
                end[i] = net_conv(g, diag, "conv", end[i], c, 1, 1, 1, 0);
            }
        }
        at = concat(g, diag, end, n);
    }
    graph_mark_output(g, net_conv(g, diag, "last", at, 4, 1, 1, 1, 0));
    graph_verify(g, "test");
    return g;
}

static const Schedule *best(Arena *arena, const HwSpec *spec, const Graph *g) {
    SchedOptions options = {.strategy = "best"};
    return sched_search(arena, diag_new(arena), spec, g, &options);
}

static void plans_in_little_memory(void **state) {
    (void)state;
    PlanOptions options = {.planner = "auto"};
    uint32_t slots = 0, exact = 0;
    for (uint64_t seed = 0; seed < cases_of(300, 60); seed++) {
        Arena *arena = arena_new("test");
        const Graph *g = modules(arena, seed);
        uint64_t peak = best(arena, machine(arena, 1 << 20), g)->facts.peak;
        uint64_t more = seed % 3 * (peak / 32) / 2 * 2;
        const Schedule *s = best(arena, machine(arena, peak + more), g);
        assert_int_equal(s->facts.peak, peak);
        bool does_not_fit;
        const Plan *plan =
            plan_make(arena, diag_new(arena), s, &options, &does_not_fit);
        assert_non_null(plan);
        assert_null(plan_judge(arena, plan));
        if (plan->fills_holes) {
            slots++;
            exact += more == 0;
            assert_false(plan->two_levels);
            assert_int_equal(plan->am_live, peak);
            assert_true(plan->am_height <= peak + more);
        }
        arena_free(arena);
    }
    assert_true(slots > cases_of(200, 40));
    assert_true(exact > cases_of(60, 12));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
