/* Codes halfway between two: which a listing may make, and what follows. */
#include "net.h"

#include "graph/halfway.h"

enum { N = 4 };
static const uint64_t all[N] = {0, 1, 2, 3};

static void code(Net *net, TensorId tensor) {
    graph_tensor(net->g, tensor)->quant =
        (Quant){.type = QUANT_I8, .scale = 1, .round = QUANT_UP};
}

static void expect(const float *value, const float want[N]) {
    for (int i = 0; i < N; i++)
        assert_true(value[i] == want[i]);
}

static void test_taken(void **state) {
    (void)state;
    Net net = net_new();
    TensorId x = net_input(&net, "x", (Shape){4, {1, N, 1, 1}});
    TensorId a = net_act(&net, "a", x, ACT_RELU);
    TensorId b = net_act(&net, "b", a, ACT_RELU);
    TensorId c = net_act(&net, "c", x, ACT_RELU);
    code(&net, a);
    code(&net, b);
    const float *const in[] = {(const float[N]){2.5F, 2.75F, -1, 100}};
    Values values = graph_eval(net.arena, net.g, 1, in);
    Halfway h = halfway_start(net.arena, net.g);
    halfway_next(&h, values);
    expect(values.at[b.i], (const float[N]){3, 3, 0, 100});

    const float made[N] = {2, 2, 0, 99}; /* of which the first may be */
    halfway_take(&h, &(MadeCodes){a, N, all, made});
    assert_int_equal(h.codes, 1);
    expect(values.at[a.i], (const float[N]){2, 3, 0, 100});
    assert_false(halfway_refresh(&h, a));
    assert_false(halfway_refresh(&h, c));
    assert_true(halfway_refresh(&h, b));
    assert_false(halfway_refresh(&h, b));
    expect(values.at[b.i], (const float[N]){2, 3, 0, 100});

    halfway_take(&h, &(MadeCodes){b, N, all, made}); /* codes that move */
    assert_int_equal(h.codes, 1);
    expect(values.at[b.i], (const float[N]){2, 3, 0, 100});
    net_free(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
