/* test_bank_spread.c - room that is used against waiting: operands of sums lie
 * in different partitions, and pools clear of the convolution before them,
 * where active memory is large enough; plans in less are as good as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nets.h"

enum { BLOCKS = 4, SIDE = 32, CHANNELS = 96 };

/* Blocks with a sum each; the shortcut is the sum before. */
static const Graph *residual(Arena *arena, Diag *diag) {
    Graph *g = graph_new(arena, "residual");
    TensorId at = net_conv(g, diag, "first", net_input(g, CHANNELS, SIDE, SIDE),
                           CHANNELS, 3, 1, 1, 1);
    for (int i = 0; i < BLOCKS; i++) {
        TensorId a = net_conv(g, diag, arena_printf(arena, "a%d", i), at,
                              CHANNELS, 3, 1, 1, 1);
        TensorId b = net_conv(g, diag, arena_printf(arena, "b%d", i), a,
                              CHANNELS, 3, 1, 1, 1);
        at = net_add(g, diag, arena_printf(arena, "sum%d", i), at, b);
    }
    graph_mark_output(g, at);
    return g;
}

static bool in_two_partitions(const Plan *plan, const Action *a) {
    const HwMemory *m = &plan->schedule->spec->memory[0];
    const Placement *x = &plan->placement[a->in[0]];
    const Placement *y = &plan->placement[a->in[1]];
    uint32_t x_first = hwspec_partition_of(m, x->offset);
    uint32_t y_first = hwspec_partition_of(m, y->offset);
    return hwspec_partition_of(m, x->offset + x->bytes - 1) < y_first ||
           hwspec_partition_of(m, y->offset + y->bytes - 1) < x_first;
}

/* Of the sums, those that read both operands at once. */
static uint32_t parallel_sums(const char *size) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = net_machine(arena, diag, "xdnn-v3-96", size);
    bool does_not_fit;
    const Plan *plan =
        net_plan(arena, diag, spec, residual(arena, diag), &does_not_fit);
    assert_non_null(plan);
    uint32_t n = 0, sums = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].kind == ACTION_RUN && plan->action[i].n_in == 2) {
            sums++;
            n += in_two_partitions(plan, &plan->action[i]);
        }
    assert_int_equal(sums, BLOCKS);
    arena_free(arena);
    return n;
}

/* A volume takes 98,304 bytes; three of them are alive at a time. Bytes that
 * the partitions leave over are in nobody's way. */
static void sums_read_both_at_once(void **state) {
    (void)state;
    assert_int_equal(parallel_sums(NULL), BLOCKS);
    assert_int_equal(parallel_sums("1MiB"), BLOCKS);
    assert_int_equal(parallel_sums("294912"), BLOCKS);
    assert_int_equal(parallel_sums("294976"), BLOCKS);
    assert_int_equal(parallel_sums("295104"), BLOCKS);
}

/* No room: a sum's operands share a partition, and the plan is still right,
 * or plan_make would have failed. */
static void no_room(void **state) {
    (void)state;
    assert_true(parallel_sums("245760") < BLOCKS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_read_both_at_once),
        cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
