/* test_rejected.c - a plan that the judge finds wrong is not the answer: the
 * next one is, and it says how many were dropped. Here the judge finds fault
 * with the first plans that it sees, whatever they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nets.h"

static uint32_t to_reject, judged;

static const char *strict(Arena *arena, const Plan *plan) {
    return judged++ < to_reject ? "it is disliked" : plan_judge(arena, plan);
}

static const Graph *network(Arena *arena, Diag *diag) {
    Graph *g = graph_new(arena, "chain");
    TensorId a = net_input(g, 8, 28, 28);
    for (int i = 0; i < 6; i++) {
        a = net_conv(g, diag, arena_printf(arena, "layer%d", i), a,
                     16 + 8 * ((uint32_t)i % 3), 3, 1, 1, 1);
        if (i == 2)
            graph_mark_output(g, a);
    }
    graph_mark_output(g, a);
    graph_mark_original(g);
    graph_seed_constants(g, 1);
    return g;
}

static void check(const char *machine, const char *size) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    HwSetting setting = {"memories.am.size", size};
    const HwSpec *spec = hwspec_load(arena, diag, machine, 1, &setting);
    const Schedule *schedule =
        sched_run(arena, diag, spec, network(arena, diag), "file");
    PlanOptions options = {.planner = "auto",
                           .replication = true,
                           .no_remedy = true,
                           .judge = strict};
    bool does_not_fit;
    for (to_reject = 0; to_reject < 4; to_reject++) {
        judged = 0;
        const Plan *plan =
            plan_make(arena, diag, schedule, &options, &does_not_fit);
        assert_non_null(plan);
        assert_int_equal(plan->rejected, to_reject);
        assert_null(plan_judge(arena, plan));
    }
    to_reject = UINT32_MAX;
    judged = 0;
    assert_null(plan_make(arena, diag, schedule, &options, &does_not_fit));
    assert_true(judged >= 4);
    arena_free(arena);
}

static void software_tiles(void **state) {
    (void)state;
    check("xdnn-v2-28", "24KiB");
}

static void hardware_nests(void **state) {
    (void)state;
    check("tile-npu", "16KiB");
}

static void rings(void **state) {
    (void)state;
    check("ring-npu", "24KiB");
}

static void weights_in_active_memory(void **state) {
    (void)state;
    check("stage-npu", "24KiB");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(software_tiles),
        cmocka_unit_test(hardware_nests),
        cmocka_unit_test(rings),
        cmocka_unit_test(weights_in_active_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
