/* nets.h - small networks and machines for tests of plans, made in code. */
#ifndef TESTS_ALLOC_NETS_H
#define TESTS_ALLOC_NETS_H

#include "alloc/alloc.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

static inline TensorId net_node(Graph *g, Diag *diag, NodeId id,
                                const char *name) {
    TensorId out = graph_add_output(g, id, name);
    if (!graph_infer(g, id, diag)) {
        diag_print(diag, stderr);
        bug("%s has no shape", name);
    }
    return out;
}

static inline TensorId net_input(Graph *g, uint32_t c, uint32_t h, uint32_t w) {
    NodeId id = graph_add(g, OP_INPUT, "data", (Loc){0}, 0, NULL);
    TensorId t = graph_add_output(g, id, "data");
    graph_tensor(g, t)->shape = shape_nchw(1, c, h, w);
    return t;
}

/* k x k convolution; `pad` on all sides. */
static inline TensorId net_conv(Graph *g, Diag *diag, const char *name,
                                TensorId in, uint32_t out_c, uint32_t k,
                                uint32_t stride, uint32_t dilation,
                                uint32_t pad) {
    NodeId id = graph_add(g, OP_CONV, name, (Loc){0}, 1, &in);
    ConvAttr *a = &graph_node(g, id)->attr.conv;
    a->out_c = out_c;
    a->groups = 1;
    for (int i = 0; i < 2; i++) {
        a->kernel[i] = k;
        a->stride[i] = stride;
        a->dilation[i] = dilation;
        a->pad[i] = a->pad_end[i] = pad;
    }
    return net_node(g, diag, id, name);
}

static inline TensorId net_pool(Graph *g, Diag *diag, const char *name,
                                TensorId in, uint32_t k, uint32_t stride,
                                uint32_t pad) {
    NodeId id = graph_add(g, OP_POOL, name, (Loc){0}, 1, &in);
    PoolAttr *a = &graph_node(g, id)->attr.pool;
    a->kind = POOL_MAX;
    a->ceil = true;
    for (int i = 0; i < 2; i++) {
        a->kernel[i] = k;
        a->stride[i] = stride;
        a->pad[i] = a->pad_end[i] = pad;
    }
    return net_node(g, diag, id, name);
}

static inline TensorId net_add(Graph *g, Diag *diag, const char *name,
                               TensorId a, TensorId b) {
    TensorId in[] = {a, b};
    NodeId id = graph_add(g, OP_ELTWISE, name, (Loc){0}, 2, in);
    return net_node(g, diag, id, name);
}

static inline TensorId net_concat(Graph *g, Diag *diag, const char *name,
                                  uint32_t n, const TensorId *in) {
    NodeId id = graph_add(g, OP_CONCAT, name, (Loc){0}, n, in);
    graph_node(g, id)->attr.axis.axis = 1;
    return net_node(g, diag, id, name);
}

/* Only the host has this one. */
static inline TensorId net_softmax(Graph *g, Diag *diag, const char *name,
                                   TensorId in) {
    NodeId id = graph_add(g, OP_SOFTMAX, name, (Loc){0}, 1, &in);
    graph_node(g, id)->attr.axis.axis = 1;
    return net_node(g, diag, id, name);
}

static inline TensorId net_upsample(Graph *g, Diag *diag, const char *name,
                                    TensorId in, uint32_t factor) {
    NodeId id = graph_add(g, OP_UPSAMPLE, name, (Loc){0}, 1, &in);
    graph_node(g, id)->attr.up.factor[0] = factor;
    graph_node(g, id)->attr.up.factor[1] = factor;
    return net_node(g, diag, id, name);
}

/* ---- machines ---- */

/* A shipped target with the size of its active memory (NULL: as it is). */
static inline const HwSpec *net_machine(Arena *arena, Diag *diag,
                                        const char *name, const char *size) {
    HwSetting setting = {"memories.am.size", size};
    return hwspec_load(arena, diag, name, size ? 1 : 0, &setting);
}

/* A machine of bytes: volumes lie packed, every operation runs, nothing is
 * aligned. `am` bytes of active memory in `pools` equal memories. */
typedef struct Toy {
    HwSpec spec;
    HwMemory memory[PACK_MAX_POOLS + 3];
    HwEngine engine[2];
    HwTileStyle style[2];
} Toy;

static const Layout toy_layout = {.name = "chw",
                                  .n = 3,
                                  .axis = {{.dim = LAYOUT_C, .round = 1},
                                           {.dim = LAYOUT_H, .round = 1},
                                           {.dim = LAYOUT_W, .round = 1}},
                                  .element = 1};

static inline HwMemory toy_memory(const char *name, HwRole role,
                                  uint64_t size) {
    return (HwMemory){.name = name,
                      .role = role,
                      .size = size,
                      .unit = 1,
                      .align = 1,
                      .partitions = 1,
                      .burst = 1,
                      .layout = &toy_layout};
}

/* The engine works in these memories only: bits. */
static inline void toy_reach(HwEngine *engine, uint32_t memories) {
    for (uint32_t i = 0; i < HW_OPERANDS; i++)
        engine->lies[i] = memories;
}

static inline Toy *toy_new(Arena *arena, uint64_t am, uint32_t pools) {
    static const char *const names[] = {"am", "am1", "am2", "am3"};
    Toy *t = ARENA_NEW(arena, Toy);
    for (uint32_t m = 0; m < pools; m++)
        t->memory[m] = toy_memory(names[m], HW_ACTIVE, am);
    t->memory[pools] = toy_memory("ddr", HW_BACKING, 1 << 20);
    t->memory[pools + 1] = toy_memory("inputs", HW_INPUT, 1 << 20);
    t->memory[pools + 2] = toy_memory("outputs", HW_OUTPUT, 1 << 20);
    uint32_t reach = (1u << pools) - 1;
    t->engine[0] =
        (HwEngine){.name = "conv",
                   .ops = 1u << HW_OP_CONV | 1u << HW_OP_CONV_GROUPED |
                          1u << HW_OP_CONV_DEPTHWISE | 1u << HW_OP_DECONV |
                          1u << HW_OP_CONV_POOL_MAX,
                   .part_align = 1};
    t->engine[1] = (HwEngine){.name = "misc",
                              .ops = 1u << HW_OP_POOL_MAX |
                                     1u << HW_OP_POOL_AVG | 1u << HW_OP_ADD |
                                     1u << HW_OP_SCALE | 1u << HW_OP_UPSAMPLE,
                              .in_place = true,
                              .part_align = 1};
    toy_reach(&t->engine[0], reach);
    toy_reach(&t->engine[1], reach);
    t->spec =
        (HwSpec){.machine = "toy",
                 .element = 1,
                 .n_memories = pools + 3,
                 .memory = t->memory,
                 .n_active = pools,
                 .backing = (int32_t)pools,
                 .input = (int32_t)pools + 1,
                 .output = (int32_t)pools + 2,
                 .n_engines = 2,
                 .engine = t->engine,
                 .tiling = {.kind = HW_TILING_SOFTWARE,
                            .rows.ops = t->engine[0].ops | t->engine[1].ops,
                            .tiles.style = t->style}};
    return t;
}

static inline const char *net_size(Arena *arena, uint64_t bytes) {
    return arena_printf(arena, "%llu", (unsigned long long)bytes);
}

static inline const Plan *net_plan(Arena *arena, Diag *diag, const HwSpec *spec,
                                   const Graph *g, bool *does_not_fit) {
    const Schedule *schedule = sched_run(arena, diag, spec, g, "file");
    PlanOptions options = {.planner = "auto", .replication = true};
    return plan_make(arena, diag, schedule, &options, does_not_fit);
}

/* The same, without a search for a size that would do. */
static inline const Plan *net_plan_only(Arena *arena, Diag *diag,
                                        const HwSpec *spec, const Graph *g,
                                        bool *does_not_fit) {
    const Schedule *schedule = sched_run(arena, diag, spec, g, "file");
    PlanOptions options = {
        .planner = "auto", .replication = true, .no_remedy = true};
    return plan_make(arena, diag, schedule, &options, does_not_fit);
}

/* The same with no layers run together. */
static inline const Plan *net_plan_layers(Arena *arena, Diag *diag,
                                          const HwSpec *spec, const Graph *g,
                                          bool *does_not_fit) {
    const Schedule *schedule = sched_run(arena, diag, spec, g, "file");
    PlanOptions options = {
        .planner = "auto", .replication = true, .layer_by_layer = true};
    return plan_make(arena, diag, schedule, &options, does_not_fit);
}

/* ---- random networks ---- */

typedef struct RandomNet {
    Graph *g;
    Diag *diag;
    uint64_t seed, at;
    TensorId pool[256];
    uint32_t n;
} RandomNet;

static inline uint32_t net_draw(RandomNet *r, uint32_t below) {
    return (uint32_t)(rng_bits(r->seed, r->at++) % below);
}

static inline Volume net_volume(const RandomNet *r, TensorId t) {
    return plan_volume(r->g, t);
}

/* An earlier tensor of the same height and width; `same_c`: and channels. */
static inline TensorId net_partner(RandomNet *r, TensorId t, bool same_c) {
    Volume v = net_volume(r, t);
    for (uint32_t tries = 0; tries < 8; tries++) {
        TensorId o = r->pool[net_draw(r, r->n)];
        Volume u = net_volume(r, o);
        if (!same_tensor(o, t) && u.h == v.h && u.w == v.w &&
            (!same_c || u.c == v.c))
            return o;
    }
    return NO_TENSOR;
}

static inline TensorId net_random_node(RandomNet *r, const char *name) {
    static const uint32_t widths[] = {8, 16, 24, 40, 64, 96, 100, 192};
    uint32_t back = r->n < 6 ? r->n : 6;
    TensorId in = r->pool[r->n - 1 - net_draw(r, back)];
    TensorId other;
    uint32_t out_c = widths[net_draw(r, 8)];
    switch (net_draw(r, 12)) {
    case 0:
        return net_pool(r->g, r->diag, name, in, 3, 1 + net_draw(r, 2), 1);
    case 1:
    case 2:
        other = net_partner(r, in, true);
        if (other.i != NONE)
            return net_add(r->g, r->diag, name, in, other);
        break;
    case 3:
    case 4:
    case 5:
        other = net_partner(r, in, false);
        if (other.i != NONE)
            return net_concat(r->g, r->diag, name, 2, (TensorId[]){in, other});
        break;
    case 6:
        return net_draw(r, 3)
                   ? net_conv(r->g, r->diag, name, in, out_c, 1, 1, 1, 1)
                   : net_softmax(r->g, r->diag, name, in);
    case 7:
        if (net_volume(r, in).h < 40)
            return net_upsample(r->g, r->diag, name, in, 2);
        break;
    case 8:
        return net_conv(r->g, r->diag, name, in, out_c, 3, 2, 1, 1);
    case 9:
        return net_conv(r->g, r->diag, name, in, out_c, 3, 1, 2, 2);
    }
    uint32_t k = 1 + 2 * net_draw(r, 2);
    return net_conv(r->g, r->diag, name, in, out_c, k, 1, 1, k / 2);
}

/* `n` nodes over an input of size x size; every tensor that nothing reads is
 * an output, and now and then one that is read. */
static inline Graph *net_random(Arena *arena, Diag *diag, uint64_t seed,
                                uint32_t n, uint32_t size) {
    RandomNet r = {.g = graph_new(arena, "random"), .diag = diag, .seed = seed};
    r.pool[r.n++] = net_input(r.g, 3 + net_draw(&r, 40), size, size);
    for (uint32_t i = 0; i < n; i++)
        r.pool[r.n++] = net_random_node(&r, arena_printf(arena, "n%u", i + 1));
    Uses uses = graph_uses(arena, r.g);
    for (TensorId t = {0}; t.i < r.g->tensor.n; t.i++)
        if (uses.start[t.i] == uses.start[t.i + 1] || net_draw(&r, 12) == 0)
            graph_mark_output(r.g, t);
    return r.g;
}

#endif
