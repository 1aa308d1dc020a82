/* test_model.c - orders and steps of networks: the seed compiler's example,
 * random networks with concats and results in place against all their orders
 * and all their steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/sched/nets.h"

/* The slides' module: the two 1x1 reductions merged, counted with 32. */
static const Graph *inception_3b(Arena *arena) {
    Graph *g = graph_new(arena, "inception_3b");
    TensorId x = add(g, OP_INPUT, 0, NULL, 256, 28);
    TensorId reduce = add(g, OP_CONV, 1, &x, 32, 1);
    TensorId pool = add(g, OP_POOL, 1, &x, 0, 3);
    TensorId part[4] = {
        add(g, OP_CONV, 1, &x, 128, 1), add(g, OP_CONV, 1, &reduce, 192, 3),
        add(g, OP_CONV, 1, &reduce, 96, 5), add(g, OP_CONV, 1, &pool, 64, 1)};
    graph_mark_output(g, add(g, OP_CONCAT, 4, part, 0, 0));
    graph_verify(g, "test");
    return g;
}

static const Schedule *schedule(Arena *arena, const HwSpec *spec,
                                const Graph *g, const char *strategy,
                                SideBySide aim) {
    SchedOptions options = {.strategy = strategy, .aim = aim};
    return sched_search(arena, diag_new(arena), spec, g, &options);
}

static void the_slides_example(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = packed(arena);
    const Graph *g = inception_3b(arena);
    const Schedule *s = schedule(arena, spec, g, "enumerate", SIDE_BY_SIDE_NOT);
    assert_int_equal(s->facts.orders, 120);
    assert_int_equal(s->facts.seed_peak, 1505280);
    assert_int_equal(s->facts.seed_steps, 7);
    s = schedule(arena, spec, g, "best", SIDE_BY_SIDE_NOT);
    assert_int_equal(s->facts.peak, 903168);
    assert_true(s->facts.proved);
    assert_int_equal(s->n_steps, 7);
    s = schedule(arena, spec, g, "best", SIDE_BY_SIDE_STEPS);
    assert_int_equal(s->facts.peak, 953344);
    assert_int_equal(s->n_steps, 6);
    assert_true(s->facts.cost_proved);
    assert_int_equal(s->facts.least_cost, 6);
    s = schedule(arena, spec, g, "best", SIDE_BY_SIDE_PEAK);
    assert_int_equal(s->facts.peak, 903168);
    assert_int_equal(s->n_steps, 7);
    arena_free(arena);
}

/* ---- random networks ---- */

static void try_orders(OrderState *s, uint64_t peak, uint64_t *least) {
    if (peak >= *least)
        return;
    if (s->n == s->p->n_nodes)
        *least = peak;
    for (uint32_t v = order_next(s->ready, s->words, 0); v != ORDER_NONE;
         v = order_next(s->ready, s->words, v + 1)) {
        uint64_t need = order_cost(s, v).peak;
        order_run(s, v);
        try_orders(s, need > peak ? need : peak, least);
        order_undo(s);
    }
}

static void best_orders_of_networks(void **state) {
    (void)state;
    Arena *machine = arena_new("machine");
    const HwSpec *spec = packed(machine);
    uint32_t concats = 0;
    for (uint64_t seed = 0; seed < cases_of(2000, 500); seed++) {
        Arena *arena = arena_new("test");
        const Graph *g = random_graph(arena, seed, 4 + (uint32_t)(seed % 5));
        Model m = model_make(arena, MODEL_MACHINE, spec, g, true);
        const Schedule *s = schedule(arena, spec, g, "best", SIDE_BY_SIDE_NOT);
        OrderState walk = order_state(arena, m.p);
        uint64_t least = UINT64_MAX;
        try_orders(&walk, walk.live, &least);
        if (s->facts.peak != least)
            fail_msg("seed %u: %u, but an order has %u", (unsigned)seed,
                     (unsigned)s->facts.peak, (unsigned)least);
        assert_true(s->facts.proved);
        for (uint32_t i = 0; i < g->node.n; i++)
            concats += g->node.at[i].op == OP_CONCAT;
        arena_free(arena);
    }
    assert_true(concats > cases_of(200, 50));
    arena_free(machine);
}

/* ---- steps ---- */

typedef struct Steps {
    const Model *m;
    OrderState s;
    uint64_t most; /* bytes that a step may take */
    uint32_t steps;
    uint64_t peak;
} Steps;

/* Every way to go on from here, by steps of one or two nodes. */
static void try_steps(Steps *x, uint32_t steps, uint64_t peak) {
    OrderState *s = &x->s;
    if (steps > x->steps || (steps == x->steps && peak >= x->peak))
        return;
    if (s->n == s->p->n_nodes) {
        x->steps = steps;
        x->peak = peak;
        return;
    }
    for (uint32_t a = 0; a < s->p->n_nodes; a++)
        for (uint32_t b = a; b < s->p->n_nodes; b++) {
            uint32_t step[2] = {a, b}, trail = s->n;
            if (!(s->ready[0] >> a & 1) || !(s->ready[0] >> b & 1) ||
                (b != a && !can_join(x->m, step, 1, b)))
                continue;
            uint64_t now = order_run_step(s, b == a ? 1 : 2, step);
            if (now <= x->most)
                try_steps(x, steps + 1, now > peak ? now : peak);
            while (s->n > trail)
                order_undo(s);
        }
}

static void best_steps_of_networks(void **state) {
    (void)state;
    Arena *machine = arena_new("machine");
    const HwSpec *spec = packed(machine);
    uint32_t packed_some = 0;
    for (uint64_t seed = 0; seed < cases_of(600, 150); seed++) {
        Arena *arena = arena_new("test");
        const Graph *g = random_graph(arena, seed, 3 + (uint32_t)(seed % 5));
        Model m = model_make(arena, MODEL_MACHINE, spec, g, true);
        const Schedule *serial =
            schedule(arena, spec, g, "best", SIDE_BY_SIDE_NOT);
        const Schedule *fewest =
            schedule(arena, spec, g, "best", SIDE_BY_SIDE_STEPS);
        const Schedule *least =
            schedule(arena, spec, g, "best", SIDE_BY_SIDE_PEAK);
        Steps x = {&m, order_state(arena, m.p), UINT64_MAX, 100, 0};
        try_steps(&x, 0, x.s.live);
        assert_int_equal(fewest->n_steps, x.steps);
        assert_int_equal(fewest->facts.peak, x.peak);
        x.most = serial->facts.peak;
        x.steps = 100;
        try_steps(&x, 0, x.s.live);
        assert_int_equal(least->n_steps, x.steps);
        assert_int_equal(least->facts.peak, serial->facts.peak);
        packed_some += fewest->n_steps < serial->n_steps;
        arena_free(arena);
    }
    assert_true(packed_some > cases_of(50, 12));
    arena_free(machine);
}

/* In all strategies and objectives each node has one step, behind its operands,
 * and a concat comes right behind its last member. */
static void every_schedule_is_one(void **state) {
    (void)state;
    Arena *machine = arena_new("machine");
    const HwSpec *spec = packed(machine);
    for (uint64_t seed = 0; seed < cases_of(40, 10); seed++) {
        Arena *arena = arena_new("test");
        const Graph *g = random_graph(arena, seed, 30);
        for (uint32_t k = 0; k < n_strategies * SIDE_BY_SIDE_COUNT; k++) {
            const Schedule *s =
                schedule(arena, spec, g, strategies[k % n_strategies].name,
                         (SideBySide)(k / n_strategies));
            for (uint32_t i = 0; i < g->node.n; i++) {
                const Node *node = &g->node.at[i];
                int64_t last = -1, at = s->step_of[i];
                for (uint32_t t = 0; t < node->n_in; t++) {
                    NodeId from = graph_tensor(g, node->in[t])->producer;
                    if (graph_node(g, from)->op != OP_INPUT &&
                        s->step_of[from.i] > last)
                        last = s->step_of[from.i];
                }
                if (node->op != OP_INPUT)
                    assert_true(at > last);
                if (node->op == OP_CONCAT)
                    assert_int_equal(s->step[at].n, 1);
            }
            assert_true(s->facts.peak >= s->facts.bound);
        }
        arena_free(arena);
    }
    arena_free(machine);
}

/* ---- cycles ---- */

/* The engine works on 3 results, 4 channels, 2 taps, 5 rows, 7 columns at a
 * time, at half its speed, with a clock of a third. */
static const HwEngine slow = {.name = "slow",
                              .ops = (HwOps)-1,
                              .clock = 1e6,
                              .efficiency = 0.5,
                              .setup = 11,
                              .unroll = {3, 4, 2, 5, 7, 0}};

static uint64_t cycles_of(const HwEngine *engine, Node node, Shape in,
                          Shape out, HwOp op) {
    Arena *arena = arena_new("test");
    const HwSpec spec = {.clock = 3e6, .n_engines = 1, .engine = engine};
    Graph *g = graph_new(arena, "net");
    TensorId x = graph_add_output(
        g, graph_add(g, OP_INPUT, "x", (Loc){0}, 0, NULL), "x");
    NodeId id = graph_add(g, node.op, "n", (Loc){0}, 1, &x);
    graph_node(g, id)->attr = node.attr;
    TensorId y = graph_add_output(g, id, "y");
    graph_tensor(g, x)->shape = in;
    graph_tensor(g, y)->shape = out;
    Legal legal[] = {{.engine = -1}, {.op = op}};
    if (op == HW_OP_HOST)
        legal[1].engine = -1;
    const Model m = {.spec = &spec, .g = g, .node = &id, .legal = legal};
    uint64_t cycles = model_cycles(&m, 0);
    arena_free(arena);
    return cycles;
}

static void cycles_are_products_of_ceilings(void **state) {
    (void)state;
    const Shape in = shape_nchw(1, 10, 9, 15), out = shape_nchw(1, 8, 11, 13);
    Node conv = {.op = OP_CONV};
    conv.attr.conv = (ConvAttr){.out_c = 8,
                                .groups = 1,
                                .kernel = {3, 1},
                                .stride = {1, 1},
                                .dilation = {1, 1}};
    /* 8/3, 11/5, 13/7, 10/4 and 3/2, rounded up, are 3 * 3 * 2 * 3 * 2 = 108
     * steps; (108 / 0.5 + 11) * 3 */
    assert_int_equal(cycles_of(&slow, conv, in, out, HW_OP_CONV), 681);
    conv.attr.conv.groups = 5; /* 2 channels each: 36 steps */
    assert_int_equal(cycles_of(&slow, conv, in, out, HW_OP_CONV_GROUPED), 249);
    Node deconv = conv;
    deconv.op = OP_DECONV;
    assert_int_equal(cycles_of(&slow, deconv, in, out, HW_OP_DECONV), 249);
    HwEngine rows = slow; /* 2 * 3 taps of a row in lanes of 4: 2; 1 column */
    rows.unroll.row_taps = 2;
    conv.attr.conv.kernel[0] = 1;
    conv.attr.conv.kernel[1] = 3;
    assert_int_equal(cycles_of(&rows, conv, in, out, HW_OP_CONV_GROUPED), 249);
    rows.unroll.row_taps = 1; /* not these: 3 taps by 2 */
    assert_int_equal(cycles_of(&rows, conv, in, out, HW_OP_CONV_GROUPED), 249);
    rows.unroll.in_c = 8; /* 6 of 8 lanes: 1 */
    rows.unroll.row_taps = 2;
    assert_int_equal(cycles_of(&rows, conv, in, out, HW_OP_CONV_GROUPED), 141);
    Node pool = {.op = OP_POOL};
    pool.attr.pool.kernel[0] = 2;
    pool.attr.pool.kernel[1] = 5; /* 10 taps by 2: 90 steps */
    assert_int_equal(cycles_of(&slow, pool, in, out, HW_OP_POOL_MAX), 573);
    pool.attr.pool.global = true; /* 9 * 15 by 2: 68 * 18 steps */
    assert_int_equal(cycles_of(&slow, pool, in, out, HW_OP_POOL_MAX), 7377);
    Node both = conv; /* 9 x 13 of the convolution: 3 * 2 * 2 * 1 * 2 */
    both.op = OP_CONV_POOL;
    assert_int_equal(
        cycles_of(&slow, both, in, shape_nchw(1, 8, 3, 3), HW_OP_CONV_POOL_MAX),
        3 * (24 * 2 + 11));
    Node add = {.op = OP_ELTWISE};
    assert_int_equal(cycles_of(&slow, add, in, out, HW_OP_ADD), 141);
    assert_int_equal(cycles_of(&slow, add, in, out, HW_OP_HOST), 0);
    Node concat = {.op = OP_CONCAT};
    assert_int_equal(cycles_of(&slow, concat, in, out, HW_OP_CONCAT), 0);
    HwEngine plain = {.ops = (HwOps)-1, .unroll = {1, 1, 1, 1, 1, 0}};
    assert_int_equal(cycles_of(&plain, add, in, out, HW_OP_ADD), 8 * 11 * 13);
}

/* ---- several images ---- */

static void images_come_one_behind_the_other(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    const HwSpec *spec = packed(arena);
    const Graph *g = random_graph(arena, 3, 9);
    const Schedule *one = schedule(arena, spec, g, "best", SIDE_BY_SIDE_STEPS);
    const Schedule *all =
        sched_repeat(arena, one, graph_repeat(arena, g, 3, g->tensor.n), 3);
    assert_int_equal(all->n_steps, 3 * one->n_steps);
    assert_int_equal(all->facts.cycles, 3 * one->facts.cycles);
    assert_int_equal(all->facts.peak, one->facts.peak);
    for (uint32_t s = 0; s < all->n_steps; s++) {
        uint32_t image = s / one->n_steps, at = s % one->n_steps;
        assert_int_equal(all->live[s], one->live[at]);
        assert_int_equal(all->step[s].n, one->step[at].n);
        for (uint32_t k = 0; k < all->step[s].n; k++) {
            NodeId node = all->step[s].slot[k].node;
            assert_int_equal(node.i,
                             one->step[at].slot[k].node.i + image * g->node.n);
            assert_int_equal(all->step_of[node.i], s);
        }
    }
    for (uint32_t i = 0; i < 3 * g->node.n; i++)
        assert_int_equal(all->step_of[i] == NONE,
                         one->step_of[i % g->node.n] == NONE);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slides_example),
        cmocka_unit_test(best_orders_of_networks),
        cmocka_unit_test(best_steps_of_networks),
        cmocka_unit_test(every_schedule_is_one),
        cmocka_unit_test(cycles_are_products_of_ceilings),
        cmocka_unit_test(images_come_one_behind_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
