/* How much of each volume stays between its uses: against all ways to choose,
 * on Toy of nets.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc/geometry/tensor_bytes.h"
#include "alloc/live/live.h"
#include "alloc/search/search.h"
#include "tests/alloc/case.h"
#include "tests/effort.h"

enum { CHANNELS = 4, ROW = 8, CHANNEL_BYTES = ROW * ROW };

/* While b (256 bytes) becomes d (256), 344 of 600 bytes are a's: one of its
 * four channels stays. */
static void one_channel_stays(void **state) {
    (void)state;
    Case c = case_new(600);
    TensorId x = net_input(c.g, 3, ROW, ROW);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 1, 1, 1, 0);
    TensorId d = net_conv(c.g, c.diag, "d", b, 4, 1, 1, 1, 0);
    TensorId e = net_conv(c.g, c.diag, "e", d, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", e, a));
    const Plan *plan = case_plan_layers(&c);
    assert_string_equal(plan->planner, "gaps");
    assert_int_equal(plan->ddr_moved,
                     plan->ddr_bound[PLAN_BOUND_ANY] + 2 * 3 * CHANNEL_BYTES);
    uint32_t parts = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Placement *out = &plan->placement[plan->action[i].out];
        if (!same_tensor(out->tensor, a) || out->n_c == CHANNELS)
            continue;
        assert_int_equal(out->c, 1);
        assert_int_equal(out->n_c, 3);
        parts++;
    }
    assert_int_equal(parts, 2);
    const char *why = plan_explain(c.arena, plan);
    assert_non_null(strstr(why, "only its first channel in steps 3 to 4"));
    assert_non_null(
        strstr(why, "; 3 channels stored to ddr, of 4; 3 channels loaded from "
                    "ddr, of 4"));
    arena_free(c.arena);
}

/* A wrong piece is missed: the judge knows channels. */
static void judged(void **state) {
    (void)state;
    Case c = case_new(600);
    TensorId x = net_input(c.g, 3, ROW, ROW);
    TensorId a = net_conv(c.g, c.diag, "a", x, 4, 1, 1, 1, 0);
    TensorId b = net_conv(c.g, c.diag, "b", a, 4, 1, 1, 1, 0);
    TensorId d = net_conv(c.g, c.diag, "d", b, 4, 1, 1, 1, 0);
    TensorId e = net_conv(c.g, c.diag, "e", d, 4, 1, 1, 1, 0);
    graph_mark_output(c.g, net_add(c.g, c.diag, "sum", e, a));
    const Plan *plan = case_plan_layers(&c);
    for (uint32_t i = 0; i < plan->n_placements; i++) {
        Placement *p = (Placement *)&plan->placement[i];
        if (p->n_c == 3 && same_tensor(p->tensor, a)) {
            p->c++;
            p->part_c++;
            p->n_c--;
        }
    }
    assert_string_equal(plan_judge(c.arena, plan),
                        "action 7 (listing step 8): a is not all there in am");
    arena_free(c.arena);
}

/* ---- bytes of the first channels ---- */

/* Up to the end of the section that the last of them is in. */
static void sections_are_taken_whole(void **state) {
    (void)state;
    enum { SECTION = 96, PARTS = 3 };
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    const HwSpec *spec = net_machine(arena, diag, "xdnn-v3-96", NULL);
    Graph *g = graph_new(arena, "sections");
    TensorId x = net_input(g, 64, ROW, ROW), part[PARTS];
    for (uint32_t i = 0; i < PARTS; i++)
        part[i] = net_conv(g, diag, arena_printf(arena, "part%u", i), x, 64, 1,
                           1, 1, 0);
    TensorId concat = net_concat(g, diag, "concat", PARTS, part);
    graph_mark_output(g, net_conv(g, diag, "last", concat, 64, 1, 1, 1, 0));
    const Schedule *schedule = sched_run(arena, diag, spec, g, "file");
    PlanOptions options = {.planner = "auto"};
    Attempt *a = attempt_new(arena, schedule, spec, &options, NULL, NULL);
    const AliasClass *alias = &a->d.alias.at[a->d.alias_of[concat.i]];
    Volume whole = volume_in(a->f, concat, 0);
    assert_int_equal(whole.c, 64 * PARTS);
    for (uint32_t n = 0; n <= whole.c; n++) {
        uint32_t sections = (n + SECTION - 1) / SECTION;
        assert_int_equal(kept_bytes(a->f, alias, n),
                         sections * SECTION * ROW * ROW);
        for (uint32_t c = 0; c < n; c++)
            assert_true(layout_offset(spec->memory[0].layout, &whole, c,
                                      ROW - 1, ROW - 1,
                                      0) < kept_bytes(a->f, alias, n));
    }
    arena_free(arena);
}

/* ---- all choices ---- */

typedef struct Free {
    Use *use;
} Free;

static uint32_t list_gaps(Decisions *d, Free *gap) {
    uint32_t n = 0;
    for (uint32_t u = 0; u < d->alias.n; u++) {
        const AliasClass *alias = &d->alias.at[u];
        for (uint32_t i = 0; i + 1 < alias->n_uses; i++)
            if (alias->use[i].step + 1 < alias->use[i + 1].step)
                gap[n++] = (Free){&alias->use[i]};
    }
    return n;
}

static bool holds(Decisions *d, Buffers *p) {
    buffers_make(d, p);
    for (uint32_t t = 0; t < p->n_times; t++)
        if (p->live[t] > d->f->total)
            return false;
    return true;
}

static bool has_place(Decisions *d, Buffers *p) {
    PackResult result;
    Times blocked;
    return holds(d, p) && place_tied(d, p, &result, &blocked);
}

/* Least bytes of all ways to keep channels of some gaps that have a place, if
 * less than `most`. */
static double best_of_all(Decisions *d, Buffers *p, const Free *gap, uint32_t n,
                          double most) {
    double best = most;
    uint32_t ways = 1;
    for (uint32_t k = 0; k < n; k++)
        ways *= CHANNELS + 1;
    for (uint32_t way = 0; way < ways; way++) {
        uint32_t rest = way;
        for (uint32_t k = 0; k < n; k++, rest /= CHANNELS + 1) {
            uint32_t kept = rest % (CHANNELS + 1);
            gap[k].use->spilled = kept < CHANNELS;
            gap[k].use->retained = kept % CHANNELS;
        }
        if (spills_cost(d) < best && has_place(d, p))
            best = spills_cost(d);
    }
    return best;
}

/* A chain with sums that reach back. */
static void grow(Case *c, uint64_t seed) {
    TensorId made[8] = {net_input(c->g, CHANNELS, ROW, ROW)};
    uint32_t n = 1, draw = 0;
    while (n < 7) {
        TensorId last = made[n - 1];
        const char *name = arena_printf(c->arena, "n%u", n);
        bool sum = n > 3 && rng_bits(seed, draw++) % 2;
        TensorId back = made[1 + rng_bits(seed, draw++) % n % (n - n / 2)];
        made[n++] =
            sum && !same_tensor(back, last)
                ? net_add(c->g, c->diag, name, last, back)
                : net_conv(c->g, c->diag, name, last, CHANNELS, 1, 1, 1, 0);
    }
    graph_mark_output(c->g, made[n - 1]);
}

static void equals_the_best_choice(void **state) {
    (void)state;
    uint32_t tried = 0, equal = 0;
    for (uint64_t seed = 0; seed < cases_of(800, 160); seed++) {
        Case c = case_new(2 * CHANNELS * CHANNEL_BYTES +
                          CHANNEL_BYTES / 2 * (seed % 9));
        grow(&c, seed);
        const Schedule *schedule =
            sched_run(c.arena, c.diag, &c.toy->spec, c.g, "file");
        PlanOptions options = {.planner = "auto"};
        Attempt *a =
            attempt_new(c.arena, schedule, &c.toy->spec, &options, NULL, NULL);
        Free gap[32];
        uint32_t n = list_gaps(&a->d, gap);
        for (uint32_t k = 0; k < n; k++) {
            gap[k].use->spilled = true;
            gap[k].use->retained = 0;
        }
        if (n > 0 && n <= 4 && fit_spills(a, spills_cost(&a->d))) {
            double found = spills_cost(&a->d);
            double best = best_of_all(&a->d, &a->buffers, gap, n, found);
            tried++;
            equal += found <= best;
        }
        arena_free(c.arena);
    }
    print_message("%u networks, %u with the best of all choices\n", tried,
                  equal);
    assert_true(tried >= cases_of(100, 20) && equal == tried);
}

/* What is said of plans layer by layer holds for all that are found, and is
 * more than what holds for others. */
static void bounds_hold(void **state) {
    (void)state;
    uint32_t found = 0, more = 0;
    for (uint64_t seed = 1; seed <= cases_of(40, 8); seed++)
        for (uint64_t size = 4000; size <= 40000; size += 4000) {
            Arena *arena = arena_new("bounds");
            Diag *diag = diag_new(arena);
            bool does_not_fit;
            const Plan *plan = net_plan_layers(
                arena, diag, &toy_new(arena, size, 1)->spec,
                net_random(arena, diag, seed, 12, 33), &does_not_fit);
            if (plan) {
                assert_true(plan->ddr_bound[PLAN_BOUND_ORDER] <=
                            plan->ddr_bound[PLAN_BOUND_LAYERS]);
                assert_true(plan->ddr_bound[PLAN_BOUND_LAYERS] <=
                            plan->ddr_moved);
                found++;
                more += plan->ddr_bound[PLAN_BOUND_ORDER] <
                        plan->ddr_bound[PLAN_BOUND_LAYERS];
            }
            arena_free(arena);
        }
    print_message("%u plans, %u with a bound of their own\n", found, more);
    assert_true(found > cases_of(100, 20) && more > cases_of(5, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_channel_stays),
        cmocka_unit_test(judged),
        cmocka_unit_test(sections_are_taken_whole),
        cmocka_unit_test(equals_the_best_choice),
        cmocka_unit_test(bounds_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
