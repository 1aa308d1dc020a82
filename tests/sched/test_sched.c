/* test_sched.c - the file's order as steps, on a small network and on random
 * ones; the text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "sched/sched.h"

#define BIT(NAME) (1u << HW_OP_##NAME)

static const Layout layout = {
    .name = "am",
    .n = 3,
    .axis = {{LAYOUT_C, 0, false, false, 1},
             {LAYOUT_H, 0, false, false, 1},
             {LAYOUT_W, 0, false, false, 1}},
    .element = 1,
};
static const HwMemory memory = {.name = "am", .layout = &layout};
static const HwEngine engine = {.name = "array",
                                .ops = BIT(CONV) | BIT(POOL_MAX)};
static const HwSpec spec = {
    .machine = "toy",
    .n_memories = 1,
    .memory = &memory,
    .n_active = 1,
    .n_engines = 1,
    .engine = &engine,
};

static TensorId add(Graph *g, Diag *diag, OpKind op, const char *name,
                    uint32_t n_in, const TensorId *in) {
    NodeId id = graph_add(g, op, name, (Loc){0}, n_in, in);
    Node *node = graph_node(g, id);
    if (op == OP_CONV) {
        node->attr.conv.out_c = 4;
        node->attr.conv.kernel[0] = node->attr.conv.kernel[1] = 1;
    } else if (op == OP_CONCAT || op == OP_SOFTMAX) {
        node->attr.axis.axis = 1;
    }
    TensorId out = graph_add_output(g, id, name);
    if (op == OP_INPUT)
        graph_tensor(g, out)->shape = shape_nchw(1, 4, 3, 3);
    assert_true(graph_infer(g, id, diag));
    return out;
}

static void concats_follow_their_last_member(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    Graph *g = graph_new(arena, "net");
    TensorId in = add(g, diag, OP_INPUT, "data", 0, NULL), t[3], cat[2];
    t[0] = add(g, diag, OP_CONV, "a", 1, &in);
    t[1] = add(g, diag, OP_CONV, "b", 1, &in);
    t[2] = add(g, diag, OP_CONV, "late", 1, &in);
    cat[0] = add(g, diag, OP_CONCAT, "inner", 2, t);
    cat[1] = add(g, diag, OP_CONV, "later", 1, &t[2]);
    TensorId both[] = {cat[0], cat[1]};
    TensorId outer = add(g, diag, OP_CONCAT, "outer", 2, both);
    graph_mark_output(g, add(g, diag, OP_SOFTMAX, "prob", 1, &outer));
    graph_verify(g, "test");
    const Schedule *s = sched_run(arena, diag, &spec, g, "file");
    assert_non_null(s);
    assert_string_equal(
        sched_print(arena, s),
        "1 array a\n"
        "2 array b\n"
        "3 concat inner\n"
        "4 array late\n"
        "5 array later\n"
        "6 concat outer\n"
        "7 host prob (no engine of toy runs softmax)\n");
    assert_int_equal(s->step_of[0], NONE);
    assert_int_equal(s->step_of[4], 2);
    assert_ptr_equal(s->graph, g);
    assert_string_equal(s->strategy, "file");
    arena_free(arena);
}

static void an_unknown_strategy_is_an_error(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    assert_null(sched_run(arena, diag, &spec, graph_new(arena, "g"), "bset"));
    assert_int_equal(diag_errors(diag), 1);
    assert_string_equal(diag_at(diag, 0)->text,
                        "no schedule strategy \"bset\"; there are: file, "
                        "best, dfs, random, enumerate");
    arena_free(arena);
}

static Graph *random_graph(Arena *arena, Diag *diag, uint64_t seed) {
    Graph *g = graph_new(arena, "net");
    TensorId in[3];
    uint64_t at = 0;
    for (int i = 0; i < 2; i++)
        add(g, diag, OP_INPUT, "data", 0, NULL);
    for (int i = 0; i < 30; i++) {
        bool concat = rng_bits(seed, at++) % 3 == 0;
        for (int k = 0; k < 3; k++)
            in[k].i = (uint32_t)(rng_bits(seed, at++) % g->tensor.n);
        uint64_t channels = 0;
        for (int k = 0; k < 3; k++)
            channels += graph_tensor(g, in[k])->shape.dim[1];
        if (concat && channels < 1000)
            add(g, diag, OP_CONCAT, "cat", 3, in);
        else
            add(g, diag, OP_CONV, "conv", 1, in);
    }
    return g;
}

/* The step in which everything a node reads is there; -1 for inputs. */
static int64_t ready(const Schedule *s, const Node *node) {
    int64_t last = -1;
    for (uint32_t k = 0; k < node->n_in; k++) {
        NodeId producer = graph_tensor(s->graph, node->in[k])->producer;
        uint32_t step = s->step_of[producer.i];
        if (step != NONE && (int64_t)step > last)
            last = step;
    }
    return last;
}

static void check_schedule(const Schedule *s) {
    const Graph *g = s->graph;
    uint32_t steps = 0, before = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *node = &g->node.at[i];
        uint32_t step = s->step_of[i];
        assert_int_equal(step == NONE, node->op == OP_INPUT);
        if (step == NONE)
            continue;
        steps++;
        assert_int_equal(s->step[step].n, 1);
        assert_int_equal(s->step[step].slot[0].node.i, i);
        assert_true(ready(s, node) < (int64_t)step);
        if (node->op == OP_CONCAT) { /* only concats come between */
            for (int64_t k = ready(s, node) + 1; k < (int64_t)step; k++)
                assert_int_equal(graph_node(g, s->step[k].slot[0].node)->op,
                                 OP_CONCAT);
        } else {
            if (!strcmp(s->strategy, "file"))
                assert_true(step >= before);
            before = step;
        }
    }
    assert_int_equal(s->n_steps, steps);
}

static void every_order_is_one(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        Arena *arena = arena_new("test");
        Diag *diag = diag_new(arena);
        Graph *g = random_graph(arena, diag, seed);
        for (uint32_t i = 0; i < n_strategies; i++)
            check_schedule(
                sched_run(arena, diag, &spec, g, strategies[i].name));
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concats_follow_their_last_member),
        cmocka_unit_test(an_unknown_strategy_is_an_error),
        cmocka_unit_test(every_order_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
