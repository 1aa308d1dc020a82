/* Plans of one level: chains, results in place, concats, host layers. The
 * expected texts were worked out by hand; the machine is Toy of nets.h, where
 * a volume takes as many bytes as it has elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/alloc/case.h"

static void expect(Case *c, const char *text) {
    const char *got = plan_print(c->arena, case_plan(c));
    if (strcmp(got, text))
        print_message("%s", got);
    assert_string_equal(got, text);
    arena_free(c->arena);
}

static void chain(void **state) {
    (void)state;
    Case c = case_new(4096);
    TensorId x = net_input(c.g, 3, 8, 8);
    x = net_conv(c.g, c.diag, "a", x, 4, 3, 1, 1, 1);
    x = net_pool(c.g, c.diag, "b", x, 2, 2, 0);
    graph_mark_output(c.g, x);
    expect(
        &c,
        "plan net levels 1 planner greedy_by_size height 448 bound 448\n"
        "p0 data inputs rows 0..7 of 3x8x8 at 0x0 bytes 192 buffer 3 steps "
        "0..1\n"
        "p1 data am rows 0..7 of 3x8x8 at 0x100 bytes 192 buffer 0 steps 0..0\n"
        "p2 a am rows 0..7 of 4x8x8 at 0x0 bytes 256 buffer 1 steps 0..1\n"
        "p3 b am rows 0..3 of 4x4x4 at 0x100 bytes 64 buffer 2 steps 1..1\n"
        "p4 b outputs rows 0..3 of 4x4x4 at 0x0 bytes 64 buffer 4 steps 0..1\n"
        "1 load data p0 -> p1 rows 0..7\n"
        "2 run a p1 -> p2 rows 0..7\n"
        "3 run b p2 -> p3 rows 0..3\n"
        "4 store b p3 -> p4 rows 0..3\n");
}

static void residual_in_place(void **state) {
    (void)state;
    Case c = case_new(4096);
    TensorId x = net_input(c.g, 3, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 3, 1, 1, 1);
    TensorId s = net_add(c.g, c.diag, "sum", b, a);
    TensorId d = net_conv(c.g, c.diag, "d", s, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, d);
    expect(
        &c,
        "plan net levels 1 planner greedy_by_size height 512 bound 512\n"
        "p0 data inputs rows 0..7 of 3x8x8 at 0x0 bytes 192 buffer 4 steps "
        "0..3\n"
        "p1 data am rows 0..7 of 3x8x8 at 0x100 bytes 192 buffer 0 steps 0..0\n"
        "p2 a am rows 0..7 of 4x8x8 at 0x0 bytes 256 buffer 1 steps 0..2\n"
        "p3 b am rows 0..7 of 4x8x8 at 0x100 bytes 256 buffer 2 steps 1..3\n"
        "p4 sum am rows 0..7 of 4x8x8 at 0x100 bytes 256 buffer 2 steps 1..3\n"
        "p5 d am rows 0..7 of 4x8x8 at 0x0 bytes 256 buffer 3 steps 3..3\n"
        "p6 d outputs rows 0..7 of 4x8x8 at 0x0 bytes 256 buffer 5 steps 0..3\n"
        "1 load data p0 -> p1 rows 0..7\n"
        "2 run a p1 -> p2 rows 0..7\n"
        "3 run b p2 -> p3 rows 0..7\n"
        "4 run sum p3 p2 -> p4 rows 0..7\n"
        "5 run d p4 -> p5 rows 0..7\n"
        "6 store d p5 -> p6 rows 0..7\n");
}

static void nested_concat(void **state) {
    (void)state;
    Case c = case_new(4096);
    TensorId x = net_input(c.g, 3, 4, 4);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 5, 1, 1, 1, 0);
    TensorId ab = net_concat(c.g, c.diag, "ab", 2, (TensorId[]){a, b});
    TensorId d = net_conv(c.g, c.diag, "d", ab, 6, 1, 1, 1, 0);
    TensorId all = net_concat(c.g, c.diag, "all", 2, (TensorId[]){d, ab});
    TensorId e = net_conv(c.g, c.diag, "e", all, 2, 1, 1, 1, 0);
    graph_mark_output(c.g, e);
    expect(
        &c,
        "plan net levels 1 planner greedy_by_size height 288 bound 288\n"
        "p0 data inputs rows 0..3 of 3x4x4 at 0x0 bytes 48 buffer 3 steps "
        "0..5\n"
        "p1 data am rows 0..3 of 3x4x4 at 0xf0 bytes 48 buffer 0 steps 0..0\n"
        "p2 a am rows 0..3 of 15x4x4 channel 6 at 0x0 bytes 240 buffer 1 steps "
        "0..5\n"
        "p3 b am rows 0..3 of 15x4x4 channel 10 at 0x0 bytes 240 buffer 1 "
        "steps 0..5\n"
        "p4 ab am rows 0..3 of 15x4x4 channel 6 at 0x0 bytes 240 buffer 1 "
        "steps 0..5\n"
        "p5 d am rows 0..3 of 15x4x4 at 0x0 bytes 240 buffer 1 steps 0..5\n"
        "p6 all am rows 0..3 of 15x4x4 at 0x0 bytes 240 buffer 1 steps 0..5\n"
        "p7 e am rows 0..3 of 2x4x4 at 0xf0 bytes 32 buffer 2 steps 5..5\n"
        "p8 e outputs rows 0..3 of 2x4x4 at 0x0 bytes 32 buffer 4 steps 0..5\n"
        "1 load data p0 -> p1 rows 0..3\n"
        "2 run a p1 -> p2 rows 0..3\n"
        "3 run b p2 -> p3 rows 0..3\n"
        "4 concat ab p2 p3 -> p4 rows 0..3\n"
        "5 run d p4 -> p5 rows 0..3\n"
        "6 concat all p5 p4 -> p6 rows 0..3\n"
        "7 run e p6 -> p7 rows 0..3\n"
        "8 store e p7 -> p8 rows 0..3\n");
}

static void host_between(void **state) {
    (void)state;
    Case c = case_new(4096);
    c.toy->spec.input_shares_step = true;
    c.toy->spec.input_step = 7;
    TensorId x = net_input(c.g, 3, 4, 4);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId h = net_softmax(c.g, c.diag, "h", a);
    TensorId b = net_conv(c.g, c.diag, "b", h, 4, 1, 1, 1, 0);
    TensorId s = net_add(c.g, c.diag, "s", b, a);
    TensorId out = net_softmax(c.g, c.diag, "out", s);
    graph_mark_output(c.g, out);
    expect(
        &c,
        "plan net levels 1 planner greedy_by_size height 192 bound 192\n"
        "p0 data inputs rows 0..3 of 3x4x4 at 0x0 bytes 48 buffer 4 steps "
        "0..4\n"
        "p1 data am rows 0..3 of 3x4x4 at 0x40 bytes 48 buffer 0 steps 0..0\n"
        "p2 a am rows 0..3 of 4x4x4 at 0x0 bytes 64 buffer 1 steps 0..3\n"
        "p3 a outputs rows 0..3 of 4x4x4 at 0x0 bytes 64 buffer 5 steps 0..4\n"
        "p4 h inputs rows 0..3 of 4x4x4 at 0x30 bytes 64 buffer 6 steps 0..4\n"
        "p5 h am rows 0..3 of 4x4x4 at 0x80 bytes 64 buffer 2 steps 2..2\n"
        "p6 b am rows 0..3 of 4x4x4 at 0x40 bytes 64 buffer 3 steps 2..3\n"
        "p7 s am rows 0..3 of 4x4x4 at 0x40 bytes 64 buffer 3 steps 2..3\n"
        "p8 s outputs rows 0..3 of 4x4x4 at 0x40 bytes 64 buffer 7 steps 0..4\n"
        "p9 out outputs rows 0..3 of 4x4x4 at 0x80 bytes 64 buffer 8 steps "
        "0..4\n"
        "7 load data p0 -> p1 rows 0..3\n"
        "1 run a p1 -> p2 rows 0..3\n"
        "2 store a p2 -> p3 rows 0..3\n"
        "3 host h p3 -> p4 rows 0..3\n"
        "4 load h p4 -> p5 rows 0..3\n"
        "5 run b p5 -> p6 rows 0..3\n"
        "6 run s p6 p2 -> p7 rows 0..3\n"
        "7 store s p7 -> p8 rows 0..3\n"
        "8 host out p8 -> p9 rows 0..3\n");
}

static void use_by_step(void **state) {
    (void)state;
    Case c = case_new(4096);
    TensorId x = net_input(c.g, 3, 4, 4);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 5, 1, 1, 1, 0);
    TensorId ab = net_concat(c.g, c.diag, "ab", 2, (TensorId[]){a, b});
    graph_mark_output(c.g, ab);
    const PlanStepUse *use;
    const Plan *plan = case_plan(&c);
    assert_int_equal(plan_step_use(c.arena, plan, &use), 3);
    assert_int_equal(use[0].bytes, 3 * 16 + 9 * 16);
    assert_int_equal(use[0].n, 2);
    assert_int_equal(plan->placement[use[0].placement[0]].bytes, 9 * 16);
    assert_int_equal(use[1].bytes, 9 * 16);
    assert_int_equal(use[2].bytes, 9 * 16);
    assert_int_equal(plan->am_height, 12 * 16);
    assert_int_equal(plan->am_bound, 12 * 16);
    arena_free(c.arena);
}

/* A concat with a member twice cannot be placed: the host makes it. */
static void twice_in_concat(void **state) {
    (void)state;
    Case c = case_new(4096);
    TensorId x = net_input(c.g, 3, 4, 4);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId aa = net_concat(c.g, c.diag, "aa", 2, (TensorId[]){a, a});
    TensorId b = net_conv(c.g, c.diag, "b", aa, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, b);
    const Plan *plan = case_plan(&c);
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++)
        hosts += plan->action[i].kind == ACTION_HOST;
    assert_int_equal(hosts, 1);
    arena_free(c.arena);
}

static void unknown_planner(void **state) {
    (void)state;
    Case c = case_new(4096);
    net_input(c.g, 3, 4, 4);
    const Schedule *schedule =
        sched_run(c.arena, c.diag, &c.toy->spec, c.g, "file");
    PlanOptions options = {.planner = "nonesuch"};
    bool does_not_fit;
    assert_null(plan_make(c.arena, c.diag, schedule, &options, &does_not_fit));
    assert_false(does_not_fit);
    assert_string_equal(diag_at(c.diag, 0)->text,
                        "no planner is called 'nonesuch'");
    arena_free(c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain),           cmocka_unit_test(residual_in_place),
        cmocka_unit_test(nested_concat),   cmocka_unit_test(host_between),
        cmocka_unit_test(use_by_step),     cmocka_unit_test(twice_in_concat),
        cmocka_unit_test(unknown_planner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
