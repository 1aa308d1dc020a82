/* Multiply-adds of nodes, against figures worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/graph.h"

#include <string.h>

static uint64_t products(const char *lines, const char *node) {
    Arena *arena = arena_new("test");
    Diag *diag = diag_new(arena);
    Graph *g = graph_read(arena, diag, "test", lines, strlen(lines));
    assert_non_null(g);
    graph_seed_constants(g, 1);
    uint64_t n = UINT64_MAX;
    for (uint32_t i = 0; i < g->node.n; i++)
        if (!strcmp(g->node.at[i].name, node))
            n = graph_products(g, &g->node.at[i]);
    arena_free(arena);
    return n;
}

static void convolutions(void **state) {
    (void)state;
    static const char net[] =
        "graph \"net\"\n"
        "const 0 seeded 6x2x3x3 seed=0x1 mean=0 spread=1\n"
        "const 1 seeded 4x5x2x2 seed=0x1 mean=0 spread=1\n"
        "input \"x\" writes=\"x\":1x4x8x8\n"
        "conv \"c\" reads=\"x\" writes=\"c\":1x6x4x4 out_c=6 groups=2 "
        "kernel=3,3 stride=2,2 dilation=1,1 pad=1,1 pad_end=1,1 weight=0\n"
        "deconv \"d\" reads=\"x\" writes=\"d\":1x5x16x16 out_c=5 groups=1 "
        "kernel=2,2 stride=2,2 dilation=1,1 pad=0,0 pad_end=0,0 weight=1\n"
        "output \"c\"\noutput \"d\"\n";
    assert_int_equal(products(net, "x"), 0);
    assert_int_equal(products(net, "c"), 6 * 4 * 4 * 2 * 3 * 3);
    assert_int_equal(products(net, "d"), 4 * 8 * 8 * 5 * 2 * 2);
}

/* An inner product over N rows is N times that of one. */
static void rows(void **state) {
    (void)state;
    static const char net[] =
        "graph \"net\"\n"
        "const 0 seeded 7x12 seed=0x1 mean=0 spread=1\n"
        "input \"x\" writes=\"x\":50x12\n"
        "input \"y\" writes=\"y\":2x7x3\n"
        "input \"z\" writes=\"z\":2x3x5\n"
        "fc \"f\" reads=\"x\" writes=\"f\":50x7 out=7 weight=0\n"
        "matmul \"m\" reads=\"y\",\"z\" writes=\"m\":2x7x5\n"
        "output \"f\"\noutput \"m\"\n";
    assert_int_equal(products(net, "f"), 50 * 7 * 12);
    assert_int_equal(products(net, "m"), 2 * 7 * 5 * 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
