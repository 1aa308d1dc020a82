/* machine.h - a small machine, and what it makes of a layer, for tests. */
#ifndef TESTS_PASSES_MACHINE_H
#define TESTS_PASSES_MACHINE_H

#include "net.h"

#include "hwspec/insn.h"
#include "passes/legal.h"

#define BIT(NAME) (1u << HW_OP_##NAME)

static const Layout layout96 = {
    .name = "am",
    .n = 4,
    .axis = {{LAYOUT_C, 96, false, false, 1},
             {LAYOUT_H, 0, false, false, 1},
             {LAYOUT_W, 0, false, false, 1},
             {LAYOUT_C, 96, true, false, 1}},
    .element = 1,
};

/* A small machine: convolutions at multiples of 8, the rest at 96. */
typedef struct Machine {
    HwMemory memory;
    HwEngine engine[2];
    HwInsnSet insns;
    HwSpec spec;
} Machine;

static inline HwRange range(uint64_t lo, uint64_t hi) {
    return (HwRange){.set = true, .lo = lo, .hi = hi};
}

static inline void machine_make(Machine *m) {
    *m = (Machine){0};
    m->memory = (HwMemory){.name = "am", .layout = &layout96};
    m->engine[0] = (HwEngine){
        .name = "conv",
        .ops = BIT(CONV) | BIT(CONV_POOL_MAX) | BIT(FC) | BIT(DECONV),
        .part_align = 8,
    };
    m->engine[0].acts[HW_OP_CONV] = 1u << HW_ACT_RELU | 1u << HW_ACT_PRELU;
    m->engine[0].limit[HW_LIMIT_KERNEL_W] = range(1, 14);
    m->engine[0].limit[HW_LIMIT_TAPS] = range(0, 4608);
    m->engine[1] = (HwEngine){
        .name = "pool",
        .ops = BIT(POOL_MAX) | BIT(POOL_AVG) | BIT(ADD) | BIT(ACT),
        .part_align = 96,
        .divisor = HW_DIVISOR_KERNEL,
    };
    m->engine[1].acts[HW_OP_ACT] = 1u << HW_ACT_RELU;
    m->spec = (HwSpec){
        .machine = "toy",
        .n_memories = 1,
        .memory = &m->memory,
        .n_active = 1,
        .n_engines = 2,
        .engine = m->engine,
        .insns = &m->insns,
    };
}

static inline Legal check(Net *net, const Machine *m, const char *name) {
    return legal_check(net->arena, &m->spec, net->g, net_find(net, name));
}

static inline void expect(Net *net, const Machine *m, const char *name,
                          const char *reason) {
    Legal legal = check(net, m, name);
    if (!reason) {
        if (legal.reason)
            fail_msg("%s: %s", name, legal.reason);
        return;
    }
    assert_int_equal(legal.engine, -1);
    assert_int_equal(legal.op, HW_OP_HOST);
    assert_non_null(legal.reason);
    assert_string_equal(legal.reason, reason);
}

#endif
