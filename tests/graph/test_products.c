/* Multiply-adds of nodes, against figures worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/eval.h"
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

/* As many columns of the right matrix at a time as there is room for: here two
 * of five, either way that it lies. */
static void blocks_of_columns(void **state) {
    (void)state;
    enum { K = 400000, N = 5 };
    Arena *arena = arena_new("test");
    float *a = ARENA_ARRAY(arena, float, K),
          *b = ARENA_ARRAY(arena, float, K *N);
    for (uint32_t i = 0; i < K; i++)
        a[i] = (float)(i % 3);
    for (uint32_t i = 0; i < K * N; i++)
        b[i] = (float)(i % 7);
    for (int transposed = 0; transposed < 2; transposed++) {
        float out[2 * N] = {0};
        eval_product(1, N, K, (Matrix){a, K, false},
                     (Matrix){b, transposed ? K : N, transposed}, out, N);
        for (uint32_t n = 0; n < N; n++) {
            double sum = 0;
            for (uint32_t k = 0; k < K; k++)
                sum += (double)a[k] *
                       (double)b[transposed ? n * K + k : k * N + n];
            assert_true(out[n] == (float)sum);
        }
        assert_true(out[N] == 0);
    }
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(rows),
        cmocka_unit_test(blocks_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
