/* Layers that run depth first by stripes, bounds of bytes over DDR, and that
 * more memory never moves more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/alloc/case.h"
#include "tests/effort.h"

static const char *story(Case *c, const Plan *plan) {
    static const char *const kind[] = {"load", "store", "run", "concat",
                                       "host"};
    const char *text = "";
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        TensorId t = plan->placement[a->out].tensor;
        text = arena_printf(c->arena, "%s%s %s %u..%u", text, kind[a->kind],
                            graph_tensor(c->g, t)->name, a->row,
                            a->row + a->rows - 1);
        if (a->again)
            text = arena_printf(c->arena, "%s again %u", text, a->again);
        text = arena_printf(c->arena, "%s\n", text);
    }
    return text;
}

static void expect(Case *c, const Plan *plan, const char *text) {
    const char *got = story(c, plan);
    if (strcmp(got, text))
        print_message("%s", got);
    assert_string_equal(got, text);
}

/* 2 x 8 x 8 in, 8 x 8 x 8 between, 2 x 8 x 8 out: 640 bytes whole. In 480 two
 * stripes of 4 rows: the halo of b's rows is a's rows 3 and 4, twice. */
static Case chain(uint64_t am) {
    Case c = case_new(am);
    TensorId t = net_input(c.g, 2, 8, 8);
    t = net_conv(c.g, c.diag, "a", t, 8, 3, 1, 1, 1);
    t = net_conv(c.g, c.diag, "b", t, 2, 3, 1, 1, 1);
    graph_mark_output(c.g, t);
    return c;
}

static void two_stripes(void **state) {
    (void)state;
    Case c = chain(480);
    const Plan *plan = case_plan(&c);
    expect(&c, plan,
           "load data 0..5\n"
           "run a 0..4\n"
           "run b 0..3\n"
           "store b 0..3\n"
           "load data 2..7\n"
           "run a 3..7 again 2\n"
           "run b 4..7\n"
           "store b 4..7\n");
    assert_int_equal(plan->ddr_bound[PLAN_BOUND_ANY], 256);
    assert_int_equal(plan->ddr_bound[PLAN_BOUND_ORDER], 256);
    assert_int_equal(plan->ddr_moved, 256 + 4 * 16);
    arena_free(c.arena);
}

static void whole_when_it_fits(void **state) {
    (void)state;
    Case c = chain(640);
    const Plan *plan = case_plan(&c);
    assert_false(plan->two_levels);
    assert_int_equal(plan->ddr_moved, plan->ddr_bound[PLAN_BOUND_ANY]);
    arena_free(c.arena);
}

/* The judge counts the rows that are computed again. */
static void judged(void **state) {
    (void)state;
    Case c = chain(480);
    const Plan *plan = case_plan(&c);
    assert_null(plan_judge(c.arena, plan));
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].again) {
            ((Action *)plan->action)[i].again--;
            assert_string_equal(plan_judge(c.arena, plan),
                                "action 5 (listing step 6): a is computed out "
                                "of order, or twice in am");
        }
    arena_free(c.arena);
}

/* The operand of a sum that is also read with a halo comes from outside twice:
 * rows of it with and without the halo are different volumes. */
static void residual(void **state) {
    (void)state;
    Case c = case_new(320);
    TensorId x = net_input(c.g, 2, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 2, 3, 1, 1, 1);
    TensorId b = net_conv(c.g, c.diag, "b", a, 2, 3, 1, 1, 1);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", b, x));
    const Plan *plan = case_plan(&c);
    assert_true(plan->two_levels);
    uint32_t stored = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++)
        stored +=
            plan->action[i].kind == ACTION_STORE ? plan->action[i].rows : 0;
    assert_int_equal(stored, 8); /* of the sum: nothing else leaves */
    arena_free(c.arena);
}

/* The same when it is made in the cascade: the sum reads a copy of the rows
 * that it needs, nothing but the image and the sum crosses DDR. */
static void residual_inside(void **state) {
    (void)state;
    Case c = case_new(640);
    TensorId x = net_input(c.g, 1, 16, 8);
    TensorId s = net_conv(c.g, c.diag, "s", x, 4, 1, 1, 1, 0);
    TensorId a = net_conv(c.g, c.diag, "a", s, 4, 3, 1, 1, 1);
    TensorId b = net_conv(c.g, c.diag, "b", a, 2, 3, 1, 1, 1);
    TensorId d = net_conv(c.g, c.diag, "d", b, 4, 1, 1, 1, 0);
    TensorId e = net_add(c.g, c.diag, "e", d, s);
    graph_mark_output(c.g, net_conv(c.g, c.diag, "f", e, 1, 1, 1, 1, 0));
    const Plan *plan = case_plan(&c);
    uint32_t copies = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        Action *action = (Action *)&plan->action[i];
        if (action->kind != ACTION_COPY)
            continue;
        const Placement *from = &plan->placement[action->in[0]];
        assert_true(same_tensor(from->tensor, s));
        assert_true(action->rows < from->rows);
        assert_true(action->legal.op == HW_OP_POOL_MAX);
        copies++;
    }
    assert_true(copies >= 2);
    /* rows of the image again for the halos, but nothing of s (512) */
    assert_in_range(plan->ddr_moved, 256, 256 + 511);
    for (uint32_t i = 0; i < plan->n_actions; i++)
        if (plan->action[i].kind == ACTION_COPY)
            ((Action *)plan->action)[i].row++;
    assert_non_null(strstr(plan_judge(c.arena, plan), "the wrong way"));
    arena_free(c.arena);
}

/* While a step runs that nothing can tile, what waits must be elsewhere. */
static void barrier(void **state) {
    (void)state;
    Case c = case_new(300);
    c.toy->spec.tiling.rows.ops &= ~(1u << HW_OP_CONV);
    TensorId x = net_input(c.g, 2, 8, 8);
    TensorId a = net_conv(c.g, c.diag, "a", x, 2, 3, 1, 1, 1);
    TensorId b = net_conv(c.g, c.diag, "b", a, 2, 3, 1, 1, 1);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", b, a));
    TensorId d = net_conv(c.g, c.diag, "d", b, 2, 3, 1, 1, 1);
    graph_mark_output(c.g, net_add(c.g, c.diag, "last", d, a));
    const Plan *plan = case_plan(&c);
    /* a (128) waits while b (128) becomes d (128): 84 do not fit; a store and
     * a load of each */
    assert_int_equal(plan->ddr_bound[PLAN_BOUND_ORDER],
                     plan->ddr_bound[PLAN_BOUND_ANY] + 2 * 84);
    assert_true(plan->ddr_moved >= plan->ddr_bound[PLAN_BOUND_ORDER]);
    arena_free(c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stripes),     cmocka_unit_test(whole_when_it_fits),
        cmocka_unit_test(judged),          cmocka_unit_test(residual),
        cmocka_unit_test(residual_inside), cmocka_unit_test(barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
