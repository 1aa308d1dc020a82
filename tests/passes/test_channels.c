/* test_channels.c - random networks whose convolutions have more channels than
 * the engine takes: the same values by the reference evaluation, and engines
 * run what they did not. Of concats they take members, not parts of these. */
#include "passes/legal.h"
#include "tests/passes/net.h"
#include "tests/scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GRAPHS = 300 };

static uint64_t state;

static uint32_t roll(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static uint32_t channels(const Net *net, TensorId t) {
    return graph_tensor(net->g, t)->shape.dim[1];
}

static TensorId any_conv(Net *net, const char *name, TensorId at) {
    uint32_t kernel = 1 + 2 * roll(2), out_c = 4 + roll(40);
    if (roll(4) == 0)
        return net_conv(net, name, at, channels(net, at), 3, 1, 1,
                        channels(net, at));
    return net_conv(net, name, at, out_c, kernel, 1, kernel / 2, 1);
}

static TensorId any_node(Net *net, uint32_t i, TensorId at, TensorId kept) {
    const char *name = arena_printf(net->arena, "n%u", i);
    const TensorId both[] = {at, kept};
    switch (roll(7)) {
    case 0:
        return net_act(net, name, at, ACT_RELU);
    case 1:
        return net_pool(net, name, at, POOL_MAX, 3, 1, 1, false);
    case 2:
        if (channels(net, at) == channels(net, kept))
            return net_eltwise(net, name, ELT_ADD, 2, both);
        break;
    case 3:
        if (!same_tensor(at, kept) && channels(net, at) < 60)
            return net_concat(net, name, 2, both);
    }
    return any_conv(net, name, at);
}

static void make_random(Net *net) {
    uint32_t c = 1 + roll(30);
    TensorId at = net_input(net, c, 6, 6);
    TensorId kept = at;
    uint32_t n = 2 + roll(8);
    for (uint32_t i = 0; i < n; i++) {
        TensorId next = any_node(net, i, at, kept);
        if (roll(3) == 0)
            kept = at;
        at = next;
    }
    net_output(net, net_conv(net, "last", at, 4, 3, 1, 1, 1));
    if (roll(4) == 0)
        net_output(net, kept);
}

/* A machine of few channels. */
static const HwSpec *few(Net *net, const char *target) {
    char path[512];
    snprintf(path, sizeof path, "%s/amphora-channels-XXXXXX", scratch());
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *to = fdopen(file, "w");
    fprintf(to,
            "extends: %s\nmachine: {name: few}\n"
            "engines: {array: {limits: {in.c: ..32, out.c: ..24, "
            "taps: ..144}}}\n",
            target);
    fclose(to);
    const HwSpec *spec = net_spec(net, path, NULL, NULL);
    unlink(path);
    return spec;
}

static uint32_t on_host(const Net *net, const Graph *g, const HwSpec *spec) {
    uint32_t n = 0;
    (void)net;
    for (uint32_t i = 0; i < g->node.n; i++)
        n += g->node.at[i].op == OP_CONV &&
             legal_check(NULL, spec, g, (NodeId){i}).engine < 0;
    return n;
}

static void keeps_values(void **unused) {
    (void)unused;
    static const char *const target[] = {"vision-npu", "ring-npu", "stage-npu"};
    Net shelf = net_new();
    const HwSpec *spec[3];
    for (uint32_t k = 0; k < 3; k++)
        spec[k] = few(&shelf, target[k]);
    uint32_t before = 0, after = 0;
    for (uint32_t i = 0; i < GRAPHS; i++) {
        Net net = net_new();
        state = i;
        make_random(&net);
        net_run(&net, spec[i % 3]);
        net_compare(&net);
        before += on_host(&net, net.original, spec[i % 3]);
        after += on_host(&net, net.g, spec[i % 3]);
        net_free(&net);
    }
    print_message("convolutions of the host: %u, %u before\n", after, before);
    assert_true(before > GRAPHS / 2);
    assert_int_equal(after, 0);
    net_free(&shelf);
}

/* Each layer reads all before it, by a list of these or by a concat of the
 * last concat. */
static void make_prefixes(Net *net, uint32_t layers, bool held) {
    TensorId feature[32], whole;
    feature[0] = whole =
        net_conv(net, "stem", net_input(net, 4, 6, 6), 4, 3, 1, 1, 1);
    for (uint32_t i = 1; i < layers; i++) {
        feature[i] = net_conv(net, arena_printf(net->arena, "c%u", i), whole, 4,
                              3, 1, 1, 1);
        const TensorId both[] = {whole, feature[i]};
        whole = net_concat(net, arena_printf(net->arena, "w%u", i),
                           held ? 2 : i + 1, held ? both : feature);
    }
    net_output(net, whole);
}

static void takes_members(void **unused) {
    (void)unused;
    enum { LAYERS = 24, CHANNELS = 4, MOST = 144 / 9 };
    uint32_t convs = 1, n[OP_COUNT] = {0};
    for (uint32_t i = 1; i < LAYERS; i++)
        convs += (i * CHANNELS + MOST - 1) / MOST;
    for (int held = 0; held < 2; held++) {
        Net net = net_new();
        const HwSpec *spec = few(&net, "vision-npu");
        make_prefixes(&net, LAYERS, held);
        net_run(&net, spec);
        net_compare(&net);
        assert_int_equal(on_host(&net, net.g, spec), 0);
        memset(n, 0, sizeof n);
        for (uint32_t i = 0; i < net.g->node.n; i++)
            n[net.g->node.at[i].op]++;
        assert_int_equal(n[OP_CONV], convs);
        assert_int_equal(n[OP_ELTWISE], convs - LAYERS);
        assert_true(n[OP_CONCAT] < LAYERS);
        net_free(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_values),
                                       cmocka_unit_test(takes_members)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
