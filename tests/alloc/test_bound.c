/* test_bound.c - no plan moves less than what is said that it must. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/alloc/case.h"
#include "tests/effort.h"

/* Branches of one tensor that meet in a wide concat, again and again. */
static Graph *fans(Arena *arena, Diag *diag, uint64_t seed) {
    RandomNet r = {.g = graph_new(arena, "fans"), .diag = diag, .seed = seed};
    TensorId x = net_input(r.g, 1 + net_draw(&r, 6), 8, 8);
    for (uint32_t fan = 0, n = 0; fan < 2; fan++) {
        TensorId member[8];
        uint32_t wide = 3 + net_draw(&r, 6);
        for (uint32_t i = 0; i < wide; i++) {
            uint32_t k = 1 + 2 * net_draw(&r, 2);
            TensorId in = i && !net_draw(&r, 3) ? member[i - 1] : x;
            member[i] = net_conv(r.g, diag, arena_printf(arena, "n%u", n++), in,
                                 1 + net_draw(&r, 8), k, 1, 1, k / 2);
            if (!net_draw(&r, 8))
                graph_mark_output(r.g, member[i]);
        }
        x = net_concat(r.g, diag, arena_printf(arena, "n%u", n++), wide,
                       member);
        x = net_conv(r.g, diag, arena_printf(arena, "n%u", n++), x,
                     1 + net_draw(&r, 8), 1, 1, 1, 0);
    }
    graph_mark_output(r.g, x);
    return r.g;
}

typedef const Plan *Planning(Arena *, Diag *, const HwSpec *, const Graph *,
                             bool *);

typedef struct Count {
    uint32_t found, more;
} Count;

/* Plans of the network for several sizes of a machine; NULL: the toy. */
static void hold(const char *machine, Planning *planning, uint64_t seed,
                 uint32_t random, uint64_t step, Count *count) {
    for (uint64_t size = step; size <= 20 * step; size += step) {
        Arena *arena = arena_new("bounds");
        Diag *diag = diag_new(arena);
        bool does_not_fit;
        const HwSpec *spec =
            machine ? net_machine(arena, diag, machine, net_size(arena, size))
                    : &toy_new(arena, size, 1)->spec;
        const Graph *g = random ? net_random(arena, diag, seed, random, 33)
                                : fans(arena, diag, seed);
        const Plan *plan = planning(arena, diag, spec, g, &does_not_fit);
        if (plan) {
            assert_true(plan->ddr_compulsory <= plan->ddr_bound);
            assert_true(plan->ddr_bound <= plan->ddr_layers);
            assert_true(plan->ddr_bound <= plan->ddr_moved);
            if (planning == net_plan_layers)
                assert_true(plan->ddr_layers <= plan->ddr_moved);
            count->found++;
            count->more += plan->ddr_bound > plan->ddr_compulsory;
        }
        arena_free(arena);
    }
}

/* Members of a concat leave one by one, once each. */
static void layers_hold(void **state) {
    (void)state;
    Count count = {0};
    for (uint64_t seed = 1; seed <= cases_of(60, 20); seed++)
        hold(NULL, net_plan_layers, seed, 0, 200, &count);
    for (uint64_t seed = 1; seed <= cases_of(20, 4); seed++)
        hold(NULL, net_plan_layers, seed, 12, 4000, &count);
    assert_true(count.found > 100);
}

/* Where an instruction runs a layer, all plans are layer by layer. */
static void hardware_holds(void **state) {
    (void)state;
    Count count = {0};
    for (uint64_t seed = 1; seed <= cases_of(3, 1); seed++)
        hold("tile-npu", net_plan_only, seed, 0, 256, &count);
    hold("xdnn-v3-96", net_plan_only, 1, 12, 65536, &count);
    print_message("%u plans, %u with more than what is compulsory\n",
                  count.found, count.more);
    assert_true(count.more > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_hold),
        cmocka_unit_test(hardware_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
