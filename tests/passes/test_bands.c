/* test_bands.c - random networks in bands of rows: the same values, by the
 * reference evaluation. Windows, strides and paddings are any; paths fork and
 * meet again. */
#include "tests/passes/net.h"

enum { GRAPHS = 300 };

static uint64_t state;

static uint32_t roll(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static TensorId window(Net *net, const char *name, TensorId in) {
    uint32_t kernel = 1 + roll(4), stride = 1 + roll(2);
    Attrs attr = conv_attr(1, kernel, stride, 0, 1);
    attr.conv.out_c = 1 + roll(6);
    for (int a = 0; a < 2; a++) {
        attr.conv.pad[a] = roll(kernel);
        attr.conv.pad_end[a] = roll(kernel);
        attr.conv.dilation[a] = 1 + (roll(4) == 0);
    }
    return net_add(net, OP_CONV, name, 1, &in, &attr);
}

static TensorId up(Net *net, const char *name, TensorId in) {
    Attrs attr = {.up = {{2, 2}}};
    return net_add(net, OP_UPSAMPLE, name, 1, &in, &attr);
}

static bool is_as_large(const Net *net, TensorId a, TensorId b, bool channels) {
    const Shape *x = &graph_tensor(net->g, a)->shape;
    const Shape *y = &graph_tensor(net->g, b)->shape;
    return x->dim[2] == y->dim[2] && x->dim[3] == y->dim[3] &&
           (!channels || x->dim[1] == y->dim[1]);
}

static bool is_small(const Net *net, TensorId at) {
    const Shape *shape = &graph_tensor(net->g, at)->shape;
    return shape->dim[2] < 12 || shape->dim[3] < 12;
}

static TensorId any_window(Net *net, const char *name, TensorId at) {
    return is_small(net, at) ? net_conv(net, name, at, 4, 3, 1, 1, 1)
                             : window(net, name, at);
}

/* Each number is drawn in a statement of its own: C leaves open in which order
 * arguments are. */
static TensorId any_pool(Net *net, const char *name, TensorId at) {
    PoolKind kind = roll(2) ? POOL_MAX : POOL_AVG;
    uint32_t kernel = 2 + roll(2);
    uint32_t stride = 1 + roll(2);
    uint32_t pad = roll(2);
    bool ceil = roll(2);
    return net_pool(net, name, at, kind, kernel, stride, pad, ceil);
}

static TensorId any_node(Net *net, uint32_t i, TensorId at, TensorId kept) {
    const char *name = arena_printf(net->arena, "n%u", i);
    const TensorId both[] = {at, kept};
    switch (roll(8)) {
    case 0:
        return net_act(net, name, at, ACT_RELU);
    case 1:
        return is_small(net, at) ? up(net, name, at) : any_pool(net, name, at);
    case 2:
        if (is_as_large(net, at, kept, true))
            return net_eltwise(net, name, ELT_ADD, 2, both);
        break;
    case 3:
        if (is_as_large(net, at, kept, false) && !same_tensor(at, kept))
            return net_concat(net, name, 2, both);
    }
    return any_window(net, name, at);
}

static TensorId any_input(Net *net) {
    uint32_t channels = 1 + roll(3);
    uint32_t rows = 16 + roll(60);
    return net_input(net, channels, rows, 16 + roll(20));
}

static void make_random(Net *net) {
    TensorId at = any_input(net);
    TensorId kept = at;
    uint32_t n = 2 + roll(9);
    for (uint32_t i = 0; i < n; i++) {
        TensorId next = any_node(net, i, at, kept);
        if (roll(3) == 0)
            kept = at;
        at = next;
    }
    net_output(net, net_conv(net, "last", at, 2, 1, 1, 0, 1));
}

static void keeps_values(void **unused) {
    (void)unused;
    Net shelf = net_new();
    const HwSpec *spec =
        net_spec(&shelf, "vision-npu", "rewrites.bands", "true");
    uint32_t banded = 0;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        Net net = net_new();
        state = i;
        make_random(&net);
        net_seal(&net);
        PassContext context = {.spec = spec,
                               .diag = net.diag,
                               .scratch = net.scratch,
                               .bands = BANDS_OF_ALL,
                               .band_bytes = 1024u << roll(6)};
        assert_true(passes_run(net.g, &context, NULL, NULL, NULL));
        net_compare(&net);
        banded += context.banded;
        net_free(&net);
    }
    print_message("%u of %u networks in bands\n", banded, GRAPHS);
    assert_true(banded > GRAPHS / 4);
    net_free(&shelf);
}

/* Where nobody asks, nothing changes. */
static void only_where_asked(void **unused) {
    (void)unused;
    for (int asked = 0; asked < 2; asked++) {
        Net net = net_new();
        TensorId in = net_input(&net, 3, 40, 40);
        net_output(&net, net_conv(&net, "c", in, 8, 3, 1, 1, 1));
        net_seal(&net);
        PassContext context = {
            .spec = net_spec(&net, "vision-npu", "rewrites.bands", "true"),
            .diag = net.diag,
            .scratch = net.scratch,
            .bands = asked ? BANDS_OF_ALL : BANDS_OF_NONE,
            .band_bytes = 4096};
        assert_true(passes_run(net.g, &context, NULL, NULL, NULL));
        assert_int_equal(context.banded, asked);
        assert_int_equal(net.g->node.n > 2, asked);
        net_free(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_values),
                                       cmocka_unit_test(only_where_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
