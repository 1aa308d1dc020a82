/* test_damage.c - listings with any numbers in them: no crash, no hang, and
 * the same answer twice. */
#include "tests/effort.h"
#include "tests/sim/harness.h"

static uint64_t dice(uint64_t *state, uint64_t n) {
    *state += 1;
    return rng_bits(17, *state) % n;
}

/* Mostly small, sometimes absurd. */
static int64_t roll(uint64_t *state) {
    static const int64_t odd[] = {0,       -1,       1,         65536,
                                  1 << 24, 1 << 30,  INT64_MAX, INT64_MIN,
                                  4095,    99999999, 608};
    switch (dice(state, 4)) {
    case 0:
        return odd[dice(state, sizeof odd / sizeof *odd)];
    case 1:
        return (int64_t)dice(state, 1 << 16);
    default:
        return (int64_t)dice(state, 8);
    }
}

static HwInsn random_insn(Bench *b, uint64_t *state) {
    uint32_t row = (uint32_t)dice(state, b->spec->insns->n);
    HwFields f = {0};
    for (int i = 0; i < HW_F_COUNT; i++) {
        f.set[i] = true;
        f.num[i] = roll(state);
        f.str[i] = dice(state, 2) ? "a" : "b#3";
    }
    const HwRow *r = &b->spec->insns->row[row];
    f.has_op = true;
    f.op = r->serve[dice(state, r->n_serves)].op;
    return insn_build(b->arena, b->spec, row, &f, NULL);
}

static void random_listings(void **state) {
    const char *target = *state;
    for (uint64_t seed = 0; seed < cases_of(12, 4); seed++) {
        Bench *b = bench_open(target);
        uint64_t at = seed << 32;
        for (int i = 0; i < 60; i++) {
            HwInsn insn = random_insn(b, &at);
            vec_push(b->arena, &b->insn, insn);
        }
        b->options.memory_only = seed % 2;
        const SimResult *one = bench_run(b, 0, NULL);
        const SimResult *two = bench_run(b, 0, NULL);
        assert_int_equal(one->n_violations, two->n_violations);
        assert_int_equal(one->cycles, two->cycles);
        assert_true(one->n_violations > 0);
        bench_close(b);
    }
}

/* A good listing with one number changed at a time. */
static void changed_numbers(void **state) {
    const char *text =
        "1 XNConv a 3 3 1 1 1 1 1 1 16 26 2 1 1 0x0 8 8 4 0x10000 8 8 8 0\n"
        "2 XNMaxPool p 2 2 2 2 0 0 0x10000 8 8 8 0x20000 4 4 0\n"
        "3 XNEltwise s 1 0 1 0x20000 0x20000 4 4 8 0x30000 0\n"
        "4 XNUpsample u 2 2 0x30000 4 4 8 0x40000 8 8 Zero\n"
        "5 XNScatter 0x40000 0x0 8 8 8 0 1 1 0 7 0 0\n";
    (void)state;
    uint64_t at = 1;
    for (uint32_t i = 0; i < cases_of(400, 100); i++) {
        Bench *b = bench_open("xdnn-v2-28");
        bench_text(b, text);
        HwInsn *insn = &b->insn.at[dice(&at, b->insn.n)];
        const HwForm *form = &b->spec->insns->row[insn->row].form[insn->form];
        HwValue *value = ARENA_COPY(b->arena, HwValue, insn->value, form->n);
        uint32_t token = (uint32_t)dice(&at, form->n);
        if (!form->token[token].is_string)
            value[token].num = roll(&at);
        insn->value = value;
        b->options.memory_only = i % 2;
        bench_run(b, 0, NULL);
        bench_close(b);
    }
}

/* ---- layers of the host with attributes and shapes of any kind ---- */

static const char *const kinds[] = {
    "conv",  "deconv",  "pool",     "conv_pool", "fc",  "bn",    "scale",
    "act",   "eltwise", "concat",   "slice",     "lrn", "pad",   "softmax",
    "input", "reshape", "upsample", "identity",  "",    "input", "none"};
static const char *const attrs[] = {
    "kernel",      "stride",   "pad",       "pad_end",        "dilation",
    "groups",      "axis",     "begin",     "size",           "factor",
    "before",      "behind",   "global",    "count_pad",      "pool_kernel",
    "pool_stride", "pool_pad", "kind",      "within_channel", "act",
    "eps",         "alpha",    "pool_kind", "coeff"};
static const char *const words[] = {"avg", "max",  "mul",   "relu",
                                    "add", "none", "prelu", "swish"};

static Shape random_shape(uint64_t *state) {
    Shape shape = {1 + (uint32_t)dice(state, 4), {0}};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = 1 + (uint32_t)dice(state, 6);
    return shape;
}

static AttrPair random_attr(Bench *b, uint64_t *state) {
    AttrPair pair = {.name = attrs[dice(state, sizeof attrs / sizeof *attrs)]};
    if (dice(state, 4) == 0) {
        pair.word = words[dice(state, sizeof words / sizeof *words)];
        return pair;
    }
    double value[2] = {(double)roll(state), (double)roll(state)};
    pair.n = (uint32_t)dice(state, 3);
    pair.value = ARENA_COPY(b->arena, double, value, 2);
    return pair;
}

static HostLayer random_host(Bench *b, uint64_t *state) {
    Region *in = ARENA_ARRAY(b->arena, Region, 3);
    uint32_t n_in = (uint32_t)dice(state, 4);
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = bench_region(b, arena_printf(b->arena, "in%u", i),
                             random_shape(state), "inputs", 65536 * i);
        bench_input(b, in[i]);
    }
    AttrPair *attr = ARENA_ARRAY(b->arena, AttrPair, 8);
    for (int i = 0; i < 8; i++)
        attr[i] = random_attr(b, state);
    HostLayer host = {.name = "x",
                      .kind = kinds[dice(state, sizeof kinds / sizeof *kinds)],
                      .n_in = n_in,
                      .in = in,
                      .n_out = (uint32_t)dice(state, 3),
                      .n_attrs = 8,
                      .attr = attr};
    for (uint32_t i = 0; i < host.n_out; i++)
        host.out[i] = bench_region(b, arena_printf(b->arena, "out%u", i),
                                   random_shape(state), "outputs", 65536 * i);
    return host;
}

static void random_hosts(void **state) {
    static const char *const roles[] = {"weight", "bias", "scale",
                                        "mean",   "var",  "slope"};
    (void)state;
    uint64_t at = 1000;
    for (uint32_t i = 0; i < cases_of(3000, 600); i++) {
        Bench *b = bench_open("null");
        HostLayer host = random_host(b, &at);
        bench_host(b, host);
        for (int k = 0; k < 6; k++)
            bench_blob(b, "x", roles[k], random_shape(&at));
        bench_text(b, "# 1 HOST x kind");
        bench_run(b, 0, NULL);
        bench_close(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {"random v2", random_listings, NULL, NULL, "xdnn-v2-28"},
        {"random v3", random_listings, NULL, NULL, "xdnn-v3-96"},
        {"random math", random_listings, NULL, NULL, "math-engine"},
        {"random template", random_listings, NULL, NULL, "template"},
        {"random null", random_listings, NULL, NULL, "null"},
        cmocka_unit_test(changed_numbers),
        cmocka_unit_test(random_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
