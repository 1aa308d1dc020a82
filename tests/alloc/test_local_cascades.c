/* Cascades beside volumes that stay, on Toy of nets.h: rows are copied of what
 * is resident, results are loaded into concats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/fuse/fuse.h"
#include "alloc/lower/emit.h"
#include "alloc/lower/lower.h"
#include "alloc/search/search.h"
#include "tests/alloc/case.h"

enum { ROW = 8, CHANNEL_BYTES = ROW * ROW };

/* The plan with cascades only where layers do not fit. */
static Plan *mended(Case *c) {
    const Schedule *schedule =
        sched_run(c->arena, c->diag, &c->toy->spec, c->g, "file");
    PlanOptions *options = ARENA_NEW(c->arena, PlanOptions);
    options->planner = "auto";
    static const Config config = {.family = FAMILY_LOCAL, .long_too = true};
    Attempt *a =
        attempt_new(c->arena, schedule, &c->toy->spec, options, NULL, &config);
    Plan *plan = ARENA_NEW(c->arena, Plan);
    assert_true(cascades_repair(&a->d));
    assert_true(fit_around(a));
    assert_true(actions_make(a, c->diag, &a->buffers, &a->result, plan));
    assert_null(plan_judge(c->arena, plan));
    return plan;
}

static uint32_t rows_of(const Plan *plan, ActionKind kind, TensorId t) {
    uint32_t rows = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        if (a->kind == kind && same_tensor(plan->placement[a->out].tensor, t))
            rows += a->rows;
    }
    return rows;
}

/* While b (1536 bytes) is made of a (512), 1664 bytes are too few; the sum
 * needs a again, and all the time it stays. */
static Case beside(uint64_t am, TensorId *a) {
    Case c = case_new(am);
    TensorId x = net_input(c.g, 2, ROW, ROW);
    *a = net_conv(c.g, c.diag, "a", x, 8, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", *a, 24, 3, 1, 1, 1);
    TensorId d = net_conv(c.g, c.diag, "d", b, 8, 1, 1, 1, 0);
    TensorId e = net_conv(c.g, c.diag, "e", d, 8, 3, 1, 1, 1);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", e, *a));
    return c;
}

static void rows_are_copied(void **state) {
    (void)state;
    TensorId a;
    Case c = beside(1800, &a);
    const Plan *plan = mended(&c);
    assert_true(rows_of(plan, ACTION_COPY, a) >= ROW);
    assert_int_equal(rows_of(plan, ACTION_STORE, a), 0);
    assert_int_equal(rows_of(plan, ACTION_LOAD, a), 0);
    arena_free(c.arena);
}

/* Of what is left of a, rows are copied; those of the channel that is away are
 * loaded. */
static void part_is_copied(void **state) {
    (void)state;
    TensorId a;
    Case c = beside(1664, &a);
    const Plan *plan = mended(&c);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Placement *out = &plan->placement[plan->action[i].out];
        if (plan->action[i].kind == ACTION_COPY)
            assert_int_equal(out->n_c, 7);
        else if (plan->action[i].kind != ACTION_RUN &&
                 same_tensor(out->tensor, a))
            assert_int_equal(out->n_c, 1);
    }
    assert_int_equal(rows_of(plan, ACTION_STORE, a), ROW);
    arena_free(c.arena);
}

/* The judge misses what is copied from elsewhere. */
static void judged(void **state) {
    (void)state;
    TensorId a;
    Case c = beside(1664, &a);
    Plan *plan = mended(&c);
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *action = &plan->action[i];
        Placement *from = (Placement *)&plan->placement[action->in[0]];
        if (action->kind != ACTION_COPY)
            continue;
        from->offset ^= CHANNEL_BYTES;
        break;
    }
    assert_non_null(plan_judge(c.arena, plan));
    arena_free(c.arena);
}

/* Two dense layers: the concat stays from its first member on, each of its
 * others is stored by rows and loaded into it once; nothing else moves. */
static void concat_is_filled(void **state) {
    (void)state;
    Case c = case_new(1800);
    TensorId x = net_input(c.g, 2, ROW, ROW);
    TensorId all = net_conv(c.g, c.diag, "a", x, 8, 1, 1, 1, 0), part[2];
    const char *const name[2][3] = {{"b1", "c1", "k1"}, {"b2", "c2", "k2"}};
    for (uint32_t i = 0; i < 2; i++) {
        TensorId b = net_conv(c.g, c.diag, name[i][0], all, 24, 1, 1, 1, 0);
        part[i] = net_conv(c.g, c.diag, name[i][1], b, 4, 3, 1, 1, 1);
        TensorId in[] = {all, part[i]};
        all = net_concat(c.g, c.diag, name[i][2], 2, in);
    }
    graph_mark_output(c.g, net_conv(c.g, c.diag, "out", all, 2, 7, 1, 1, 3));
    const Plan *plan = mended(&c);
    Traffic traffic = plan_traffic(plan);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rows_of(plan, ACTION_STORE, part[i]), ROW);
        assert_int_equal(rows_of(plan, ACTION_LOAD, part[i]), ROW);
    }
    assert_int_equal(traffic.moved, (2 + 2 + 2 * 2 * 4) * CHANNEL_BYTES);
    arena_free(c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_copied),
        cmocka_unit_test(part_is_copied),
        cmocka_unit_test(judged),
        cmocka_unit_test(concat_is_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
