/* Random networks on shipped machines with shrinking active memories: every
 * plan passes the judge (plan_make ends the program otherwise), and what fits
 * into a memory fits into every larger one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/alloc/nets.h"
#include "tests/effort.h"

/* How often each situation came up. */
typedef struct Seen {
    uint32_t runs, fit, two_levels, row_tiles, hardware, spills, hosts;
    uint32_t dissolved, joined; /* concats: in backing memory, in cascades */
} Seen;

static void look(Seen *seen, const Plan *plan) {
    const HwSpec *spec = plan->schedule->spec;
    bool row_tiles = false, hardware = false, spills = false, dissolved = false;
    bool hosts = false, joined = false;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        HwRole out = spec->memory[plan->placement[a->out].memory].role;
        row_tiles |= a->kind == ACTION_RUN && a->n_tiles > 1;
        hardware |= a->style >= 0;
        spills |= a->kind == ACTION_STORE && out == HW_BACKING;
        dissolved |= a->kind == ACTION_CONCAT && out == HW_BACKING;
        joined |= a->kind == ACTION_CONCAT && a->n_tiles > 1;
        hosts |= a->kind == ACTION_HOST;
    }
    seen->two_levels += plan->two_levels;
    seen->row_tiles += row_tiles;
    seen->hardware += hardware;
    seen->spills += spills;
    seen->dissolved += dissolved;
    seen->joined += joined;
    seen->hosts += hosts;
}

/* Sizes that would do are looked for with few networks: each takes as many
 * plans as a sweep of sizes. */
static bool wants_remedy(uint64_t seed) {
    return seed == 2;
}

/* Every concat is placed, also those that legal_check leaves to the host: of
 * network inputs, of what the host makes, of network outputs. Engines reach
 * one memory, one each, or two of three. */
static const Plan *toy_plan(Arena *arena, Diag *diag, const Graph *g,
                            uint64_t size, uint64_t seed, bool *does_not_fit) {
    uint32_t pools = 1 + (uint32_t)(seed % 3);
    Toy *toy = toy_new(arena, size, pools);
    for (uint32_t m = pools; m < pools + 3; m++)
        toy->memory[m].size = 1 << 26;
    toy_reach(&toy->engine[0], pools < 3 ? 1 : 3);
    toy_reach(&toy->engine[1], pools < 3 ? pools : 6);
    const Schedule *schedule = sched_run(arena, diag, &toy->spec, g, "file");
    for (uint32_t s = 0; s < schedule->n_steps; s++) {
        Slot *slot = (Slot *)schedule->step[s].slot;
        if (graph_node(g, slot->node)->op == OP_CONCAT)
            slot->legal = (Legal){-1, HW_OP_CONCAT, NULL};
    }
    PlanOptions options = {.planner = "auto", .no_remedy = !wants_remedy(seed)};
    return plan_make(arena, diag, schedule, &options, does_not_fit);
}

static bool fits(Seen *seen, const char *machine, uint64_t size, uint64_t seed,
                 uint32_t nodes, uint32_t pixels) {
    Arena *arena = arena_new("sweep");
    Diag *diag = diag_new(arena);
    Graph *g = net_random(arena, diag, seed, nodes, pixels);
    bool does_not_fit;
    const Plan *plan;
    if (machine) {
        const HwSpec *spec =
            net_machine(arena, diag, machine, net_size(arena, size));
        assert_non_null(spec);
        plan = (wants_remedy(seed) ? net_plan : net_plan_only)(
            arena, diag, spec, g, &does_not_fit);
    } else {
        plan = toy_plan(arena, diag, g, size, seed, &does_not_fit);
    }
    assert_true((plan != NULL) != does_not_fit);
    if (!plan)
        assert_int_equal(diag_errors(diag), 1);
    else
        look(seen, plan);
    arena_free(arena);
    return plan != NULL;
}

/* What enough seeds have; with sanitizers there are few. */
static void enough(bool seen) {
    assert_true(seen || TEST_SANITIZED);
}

/* machine NULL: Toy */
static Seen sweep(const char *machine, uint64_t alias, uint32_t seeds) {
    Seen seen = {0};
    uint64_t times = cases_of(2, 4);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        bool fit_before = false;
        for (uint64_t size = alias; size <= 512 * alias; size *= times) {
            bool fit = fits(&seen, machine, size, seed, 24, 33);
            if (fit_before && !fit)
                fail_msg("%s seed %u: %u bytes fail, half of it fits",
                         machine ? machine : "toy", (unsigned)seed,
                         (unsigned)size);
            fit_before = fit;
            seen.fit += fit;
            seen.runs++;
        }
    }
    print_message("%s: of %u, %u fit: %u two levels, %u planks, %u hardware, "
                  "%u spills, %u dissolved, %u joined, %u hosts\n",
                  machine ? machine : "toy", seen.runs, seen.fit,
                  seen.two_levels, seen.row_tiles, seen.hardware, seen.spills,
                  seen.dissolved, seen.joined, seen.hosts);
    assert_true(seen.fit && seen.fit < seen.runs);
    enough(seen.two_levels);
    enough(seen.spills && seen.hosts);
    enough(seen.dissolved || seen.joined);
    return seen;
}

static void v2(void **state) {
    (void)state;
    enough(sweep("xdnn-v2-28", 3 * 4096, cases_up_to(16, 4, 1)).row_tiles);
}
static void v3(void **state) {
    (void)state;
    enough(sweep("xdnn-v3-96", 96 * 6 * 16, cases_up_to(16, 4, 2)).hardware);
}
static void rings(void **state) {
    (void)state;
    enough(sweep("ring-npu", 1024, cases_up_to(16, 4, 1)).row_tiles);
}
static void nests(void **state) {
    (void)state;
    enough(sweep("tile-npu", 1024, cases_up_to(5, 5, 1)).hardware);
}
static void lines(void **state) {
    (void)state;
    enough(sweep("line-npu", 1024, cases_up_to(3, 1, 1)).row_tiles);
}
static void toy(void **state) {
    (void)state;
    enough(sweep(NULL, 700, cases_up_to(30, 8, 3)).row_tiles);
}
static void math(void **state) {
    (void)state;
    sweep("math-engine", 8192, cases_up_to(16, 4, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2),    cmocka_unit_test(v3),
        cmocka_unit_test(math),  cmocka_unit_test(rings),
        cmocka_unit_test(nests), cmocka_unit_test(lines),
        cmocka_unit_test(toy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
