/* test_images.c - a graph, a schedule, a plan so many times: names, constants
 * that are shared, places that are not, transfers behind other images' layers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nets.h"

enum { IMAGES = 3, LAYERS = 3 };

typedef struct Made {
    Arena *arena;
    Diag *diag;
    const Graph *graph; /* of one */
    const Plan *one, *all;
    bool does_not_fit;
} Made;

static const Graph *chain(Arena *arena, Diag *diag) {
    Graph *g = graph_new(arena, "chain");
    TensorId at = net_input(g, 8, 28, 28);
    for (int i = 0; i < LAYERS; i++)
        at = net_conv(g, diag, arena_printf(arena, "layer%d", i), at, 32, 3, 1,
                      1, 1);
    graph_mark_output(g, at);
    graph_mark_original(g);
    graph_seed_constants(g, 1);
    return g;
}

static Made make(const char *machine, const char *path, const char *value) {
    Made m = {.arena = arena_new("test")};
    HwSetting setting = {path, value};
    m.diag = diag_new(m.arena);
    m.graph = chain(m.arena, m.diag);
    const HwSpec *spec =
        hwspec_load(m.arena, m.diag, machine, path ? 1 : 0, &setting);
    const Schedule *schedule =
        sched_run(m.arena, m.diag, spec, m.graph, "file");
    PlanOptions options = {.planner = "auto", .replication = true};
    m.one = plan_make(m.arena, m.diag, schedule, &options, &m.does_not_fit);
    assert_non_null(m.one);
    const Graph *graphs =
        graph_repeat(m.arena, m.graph, IMAGES, m.graph->tensor.n);
    assert_null(graph_broken(m.arena, graphs));
    options.images = IMAGES;
    m.all = plan_images(m.arena, m.diag, m.one,
                        sched_repeat(m.arena, schedule, graphs, IMAGES),
                        &options, &m.does_not_fit);
    return m;
}

static void names_and_constants(void **state) {
    (void)state;
    Made m = make("xdnn-v2-28", NULL, NULL);
    const Graph *g = m.all->schedule->graph;
    uint32_t n = m.graph->node.n;
    assert_int_equal(g->node.n, IMAGES * n);
    assert_int_equal(g->constant.n, m.graph->constant.n);
    assert_int_equal(g->output.n, IMAGES);
    for (uint32_t i = 0; i < g->node.n; i++) {
        const Node *of_first = &m.graph->node.at[i % n];
        const char *name = of_first->name;
        if (i >= n)
            name = arena_printf(m.arena, "%s@%u", name, i / n + 1);
        assert_string_equal(g->node.at[i].name, name);
        assert_int_equal(g->node.at[i].constant[CONST_WEIGHT].i,
                         of_first->constant[CONST_WEIGHT].i);
    }
    for (uint32_t t = 0; t < g->tensor.n; t++)
        assert_int_equal(g->tensor.at[t].origin.i, t);
    arena_free(m.arena);
}

/* A name with @2 may be taken. */
static void names_are_unique(void **state) {
    (void)state;
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    Graph *g = graph_new(arena, "taken");
    TensorId at = net_input(g, 8, 8, 8);
    at = net_conv(g, diag, "a", at, 8, 1, 1, 1, 0);
    at = net_conv(g, diag, "a@2", at, 8, 1, 1, 1, 0);
    graph_mark_output(g, at);
    graph_mark_original(g);
    graph_seed_constants(g, 1);
    const Graph *all = graph_repeat(arena, g, 2, g->tensor.n);
    const char *broken = graph_broken(arena, all);
    if (broken)
        fail_msg("%s", broken);
    assert_string_equal(all->node.at[4].name, "a@2_2");
    arena_free(arena);
}

/* A layer stands in front of the transfers of its step. */
static uint32_t moves_beside_layers(const Plan *plan) {
    uint32_t n = 0, step = 0;
    for (uint32_t i = 0; i < plan->n_actions; i++) {
        const Action *a = &plan->action[i];
        n += a->kind != ACTION_RUN && a->step == step;
        step = a->kind == ACTION_RUN ? a->step : step;
    }
    return n;
}

static void transfers_pass_the_boundary(void **state) {
    (void)state;
    Made m = make("xdnn-v2-28", NULL, NULL);
    assert_null(plan_judge(m.arena, m.all));
    assert_true(m.all->n_actions >= IMAGES * m.one->n_actions);
    assert_int_equal(m.all->ddr_moved, IMAGES * m.one->ddr_moved);
    assert_int_equal(moves_beside_layers(m.one), 0);
    assert_true(moves_beside_layers(m.all) >= 2 * (IMAGES - 1));
    assert_true(m.all->cycles < IMAGES * m.one->cycles);
    arena_free(m.arena);
}

/* Where a machine runs one action at a time. */
static void one_by_one(void **state) {
    (void)state;
    Made m = make("xdnn-v2-28", "tiling.overlap", "false");
    assert_null(plan_judge(m.arena, m.all));
    assert_int_equal(moves_beside_layers(m.all), 0);
    for (uint32_t i = 1; i < m.all->n_actions; i++)
        assert_true(m.all->action[i].step != m.all->action[i - 1].step);
    arena_free(m.arena);
}

static void outside_has_no_room(void **state) {
    (void)state;
    Made m = make("xdnn-v2-28", "memories.outputs.size", "128KiB");
    assert_null(m.all);
    assert_true(m.does_not_fit);
    assert_non_null(strstr(diag_at(m.diag, 0)->text, "3 images need"));
    arena_free(m.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_constants),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(transfers_pass_the_boundary),
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(outside_has_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
